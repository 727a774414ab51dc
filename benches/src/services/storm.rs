//! As many calls as the machine makes, under iotomy with everything: how many, and how many it lost.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use iotomy_record::store;

use crate::child::{Signals, die_with_parent, guarded, own_path};
use crate::scratch::Scratch;
use crate::services::watcher::EVERYTHING;

/// Calls between two looks at the clock.
const BATCH: u64 = 10_000;

/// The calls that were made, and those that iotomy counted.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Storm {
    pub(crate) seconds: f64,
    pub(crate) made: u64,
    pub(crate) counted: u64,
    pub(crate) lost: u64,
}

/// Options of the process that makes the calls.
#[derive(Debug, clap::Args)]
pub(crate) struct StormArgs {
    seconds: u32,
    result: PathBuf,
}

/// Makes the cheapest call on every CPU for some seconds, and writes the number of calls and the time in ns.
pub(crate) fn run(args: &StormArgs) -> Result<()> {
    die_with_parent()?;
    let is_over = AtomicBool::new(false);
    let began = Instant::now();
    let seconds = Duration::from_secs(args.seconds.into());
    let cpus = std::thread::available_parallelism().context("cannot count the CPUs")?.get();
    let made: u64 = std::thread::scope(|threads| {
        let loops = (0..cpus).map(|_| {
            threads.spawn(|| {
                let mut made = 0;
                while !is_over.load(Ordering::Relaxed) {
                    for _ in 0..BATCH {
                        std::hint::black_box(rustix::process::getppid());
                    }
                    made += BATCH;
                    if began.elapsed() >= seconds {
                        is_over.store(true, Ordering::Relaxed);
                    }
                }
                made
            })
        });
        let loops: Vec<_> = loops.collect();
        loops.into_iter().map(|one| one.join().unwrap_or_default()).sum()
    });
    let text = format!("{made} {}", began.elapsed().as_nanos());
    fs::write(&args.result, text).context("cannot write the number of calls")
}

impl Storm {
    /// Makes the calls under iotomy.
    pub(crate) fn measure(
        signals: &Signals,
        iotomy: &str,
        folder: &Scratch,
        seconds: u32,
    ) -> Result<Self> {
        let text = |path: PathBuf| path.to_str().map(str::to_owned).context("a path is not UTF-8");
        let result = folder.path().join("storm");
        let record = text(folder.path().join("storm.json"))?;
        let (own, result_text) = (text(own_path()?)?, text(result.clone())?);
        let duration = seconds.to_string();
        let trace = [iotomy, "trace", "-q", "--observer=bpf", "--json", &record];
        let storm = ["--", &own, "services", "storm", &duration, &result_text];
        let argv: Vec<String> =
            [&trace[..], &EVERYTHING, &storm].concat().into_iter().map(str::to_owned).collect();
        let null = fs::File::options().write(true).open("/dev/null");
        let mut command = guarded(&argv, null.context("cannot open /dev/null")?)?;
        let mut child = command.spawn().context("cannot start iotomy")?;
        let status =
            signals.wait_at_most(&mut child, Duration::from_secs(u64::from(seconds) + 60))?;
        if !status.success() {
            bail!("the storm ended with {status}");
        }
        let made = fs::read_to_string(&result).context("the storm left no number")?;
        let (made, ns) = made.split_once(' ').context("the storm left no time")?;
        let trace =
            store::load_trace(Path::new(&record)).context("cannot read the storm's record")?;
        let rows = trace.calls.iter().filter(|row| row.syscall == "getppid");
        Ok(Self {
            seconds: ns.parse::<f64>().context("the storm's time")? / 1e9,
            made: made.parse().context("the storm's number")?,
            counted: rows.map(|row| row.calls).sum(),
            lost: trace.observer.lost_events,
        })
    }

    /// Returns the calls per second.
    pub(crate) fn rate(&self) -> f64 {
        self.made as f64 / self.seconds
    }

    /// Returns the calls that were not counted, and the events that iotomy itself counted as lost.
    pub(crate) fn missing(&self) -> u64 {
        self.made.abs_diff(self.counted) + self.lost
    }
}
