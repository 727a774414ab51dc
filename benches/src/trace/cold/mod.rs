//! The overhead of observers whose rows are out of the caches, with each of iotomy's options that adds rows.
//!
//! The runs are in blocks, one of each observer in random order; an overhead is the difference from the bare run of the
//! same block.

mod results;
pub(crate) mod subject;

use std::fs::{self, File};
use std::path::Path;

use anyhow::{Context, Result, bail};
use iotomy_record::store;

use crate::child::{Interrupted, Signals, guarded};
use crate::floor::Floor;
use crate::order::Order;
use crate::peers;
use crate::run::progress;
use crate::scratch::Scratch;
use crate::trace::observer::BPFTRACE_SCRIPT;

pub(crate) use self::results::{block, method, rows};

/// Consecutive failures after which an observer is no longer measured.
const PATIENCE: u32 = 2;
/// `write` on this ABI.
const WRITE: u32 = 1;

/// How an observer is attached.
#[derive(Debug, Clone, Copy)]
enum Means {
    Nobody,
    /// Programs of this bench.
    Floor(fn() -> Result<Floor>),
    /// `iotomy trace` with these options.
    Iotomy(&'static [&'static str]),
    Bpftrace,
}

const BARE: &str = "bare";
const PEER: &str = "bpftrace";

/// The observers by name.
static OBSERVERS: [(&str, Means); 9] = [
    (BARE, Means::Nobody),
    ("two empty BPF programs", Means::Floor(Floor::empty)),
    ("two that read the clock", Means::Floor(Floor::clock)),
    ("iotomy trace", Means::Iotomy(&[])),
    ("iotomy trace --files", Means::Iotomy(&["--files"])),
    ("iotomy trace --peers", Means::Iotomy(&["--peers"])),
    ("iotomy trace --threads", Means::Iotomy(&["--threads"])),
    ("iotomy trace --requests", Means::Iotomy(&["--requests"])),
    (PEER, Means::Bpftrace),
];

/// The runs of an observer.
#[derive(Debug, Default)]
pub(crate) struct ColdObserver {
    name: &'static str,
    /// ns per call, block by block.
    times: Vec<Option<f64>>,
    /// The reason why it is not, or no longer, measured.
    skipped: Option<String>,
}

/// What was measured, in the order of the observers.
#[derive(Debug, Default)]
pub(crate) struct Cold(Vec<ColdObserver>);

/// Measures every observer in this many blocks.
pub(crate) fn measure(
    signals: &Signals,
    iotomy: &str,
    folder: &Scratch,
    order: &mut Order,
    blocks: u32,
) -> Result<Cold> {
    fs::write(folder.path().join("script.bt"), BPFTRACE_SCRIPT)
        .context("cannot write the script of bpftrace")?;
    let mut runs = Runs { signals, iotomy, folder: folder.path(), cpu: crate::cpus::last()? };
    let of = |(name, means): &(&'static str, Means)| ColdObserver {
        name,
        skipped: match means {
            Means::Bpftrace => peers::version("bpftrace").err(),
            _ => None,
        },
        ..ColdObserver::default()
    };
    let mut cold = Cold(OBSERVERS.iter().map(of).collect());
    let mut failures = [0; OBSERVERS.len()];
    let mut turns: Vec<usize> = (0..OBSERVERS.len()).collect();
    for number in 1..=blocks {
        order.shuffle(&mut turns);
        for at in turns.iter().copied() {
            let observer = &mut cold.0[at];
            if observer.skipped.is_some() {
                continue;
            }
            progress(&format!("cold calls, block {number} of {blocks}: {}", observer.name));
            let run = runs.run(OBSERVERS[at].1);
            signals.check()?;
            match run {
                Ok(ns) => {
                    failures[at] = 0;
                    observer.times.push(Some(ns));
                }
                Err(error) if error.is::<Interrupted>() || observer.name == BARE => {
                    return Err(error.context(format!("cold calls, {}", observer.name)));
                }
                Err(error) => {
                    failures[at] += 1;
                    observer.times.push(None);
                    if failures[at] >= PATIENCE {
                        observer.skipped = Some(format!("failed: {error:#}"));
                    }
                }
            }
        }
    }
    Ok(cold)
}

/// The environment of runs.
struct Runs<'a> {
    signals: &'a Signals,
    iotomy: &'a str,
    folder: &'a Path,
    cpu: usize,
}

impl Runs<'_> {
    /// Returns ns per call.
    fn run(&mut self, means: Means) -> Result<f64> {
        let [result, errors, seen, script] =
            ["result", "errors", "seen", "script.bt"].map(|name| self.folder.join(name));
        for file in [&result, &seen] {
            let _ = fs::remove_file(file);
        }
        let subject = subject::argv(self.cpu, &result)?;
        let (joined, seen_text) = (subject.join(" "), seen.to_string_lossy());
        let script = script.to_string_lossy();
        let trace = [self.iotomy, "trace", "--quiet", "--observer=bpf", "--json", &seen_text];
        let (before, after) = match means {
            Means::Nobody | Means::Floor(_) => (Vec::new(), &subject[..]),
            Means::Iotomy(options) => ([&trace[..], options, &["--"]].concat(), &subject[..]),
            Means::Bpftrace => {
                (vec!["bpftrace", "-q", "-o", &seen_text, "-c", &joined, &script], &[][..])
            }
        };
        let argv: Vec<String> =
            before.into_iter().map(str::to_owned).chain(after.iter().cloned()).collect();
        let mut command =
            guarded(&argv, File::create(&errors).context("cannot create a temporary file")?)?;
        let mut floor = match means {
            Means::Floor(load) => Some(load()?),
            _ => None,
        };
        let attached = floor.as_mut().map(Floor::attach).transpose()?;
        let mut child = command.spawn().context("cannot start a run")?;
        let status = self.signals.wait(&mut child);
        drop(attached);
        let status = status?;
        if !status.success() {
            let complaint = fs::read_to_string(&errors).unwrap_or_default();
            let last = complaint.lines().rfind(|line| !line.is_empty()).unwrap_or_default();
            bail!("it ended with {status}: {last}");
        }
        let counted = match means {
            Means::Nobody | Means::Floor(_) => None,
            Means::Iotomy(_) => Some(counted_by_iotomy(&seen)?),
            Means::Bpftrace => Some(counted_by_bpftrace(&seen)?),
        };
        // An observer that does not count would win.
        if let Some(counted) = counted.filter(|counted| *counted < subject::WRITES) {
            bail!("it counted {counted} writes of {}", subject::WRITES);
        }
        subject::read_result(&result)
    }
}

/// Returns the writes in iotomy's record.
fn counted_by_iotomy(record: &Path) -> Result<u64> {
    let trace = store::load_trace(record).context("cannot read the record")?;
    let lost = [
        trace.observer.lost_events,
        trace.observer.lost_files,
        trace.observer.lost_connections,
        trace.observer.lost_exchanges,
    ];
    if lost.iter().any(|lost| *lost > 0) {
        bail!("it lost {lost:?} events, files, connections and requests");
    }
    if trace.view.requests && !trace.requests.iter().any(|row| row.requests > 0) {
        bail!("it timed no request");
    }
    Ok(trace.calls.iter().filter(|row| row.syscall == "write").map(|row| row.calls).sum())
}

/// Returns the writes in bpftrace's output.
fn counted_by_bpftrace(output: &Path) -> Result<u64> {
    let text = fs::read_to_string(output).context("bpftrace left no output")?;
    Ok(text.lines().filter_map(|line| peers::bpftrace_count(line, WRITE)).sum())
}
