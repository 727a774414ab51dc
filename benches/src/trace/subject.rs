//! The watched processes: loops of calls that time themselves, so that the figure excludes the
//! start and the end of every observer, and a crowd of processes.
//!
//! A subject runs in a separate process, pinned to one CPU, and makes only its calls between its
//! clock reads. `getppid` is timed in batches of half a millisecond; the result is the 5th
//! percentile of the batches, because preemption or a busy neighbour on the same core makes most
//! batches of a run slower and leaves some undisturbed. `dd` reports its own copying time on
//! standard error.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Instant;

use anyhow::{Context, Result, bail};

use crate::child::{die_with_parent, own_path, part};
use crate::cpus;
use crate::stats;

/// Number of batches in which a loop is timed.
const BATCHES: u64 = 256;
/// The block size of dd, in bytes.
pub(crate) const DD_BLOCK: u64 = 8192;
/// Number of different calls of each member of a crowd, in addition to those of its start and end.
const MEMBER_CALLS: usize = 12;

/// The process that makes the calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Subject {
    /// `getppid(2)` in a loop: the shortest call, so its relative overhead is the highest.
    Getppid,
    /// `dd bs=8k` from a memory file to the null device: alternating reads and writes.
    Dd,
}

impl Subject {
    pub(crate) const ALL: [Self; 2] = [Self::Getppid, Self::Dd];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Getppid => "getppid",
            Self::Dd => "dd",
        }
    }

    /// Returns the call that verifies the observer's count: its name, its number, and how many of
    /// the `calls` calls are of this kind.
    pub(crate) fn counted(self, calls: u64) -> (&'static str, u32, u64) {
        match self {
            Self::Getppid => ("getppid", 110, calls),
            Self::Dd => ("read", 0, calls / 2),
        }
    }

    /// Returns the command that makes `calls` calls on `cpu` and writes its time to `result`.
    pub(crate) fn argv(self, calls: u64, cpu: usize, result: &Path) -> Result<Vec<String>> {
        let text = |path: &Path| path.to_str().map(str::to_owned).context("a path is not UTF-8");
        Ok(vec![
            text(&own_path()?)?,
            "trace".to_owned(),
            format!("subject-{}", self.name()),
            format!("--calls={calls}"),
            format!("--cpu={cpu}"),
            format!("--result={}", text(result)?),
        ])
    }

    /// Returns ns per call, from the subject's output.
    pub(crate) fn read_result(self, calls: u64, result: &Path) -> Result<f64> {
        let text = fs::read_to_string(result).context("cannot read the subject's result")?;
        match self {
            Self::Getppid => {
                let batches: Vec<f64> = text.lines().filter_map(|ns| ns.parse().ok()).collect();
                if batches.len() as u64 != BATCHES {
                    bail!("the subject did not end its loop");
                }
                let batch = stats::undisturbed(&batches).unwrap_or_default();
                Ok(batch / (calls / BATCHES) as f64)
            }
            Self::Dd => {
                let seconds = dd_seconds(&text).with_context(|| format!("dd said: {text}"))?;
                Ok(seconds * 1e9 / calls as f64)
            }
        }
    }

    /// Returns a number of calls near `calls` that the subject can make.
    pub(crate) fn whole(self, calls: u64) -> u64 {
        match self {
            Self::Getppid => calls.div_ceil(BATCHES) * BATCHES,
            Self::Dd => calls / 2 * 2,
        }
    }
}

/// Returns the time in dd's output, as in `… copied, 0.196673 s, 2.7 GB/s`.
fn dd_seconds(text: &str) -> Option<f64> {
    let line = text.lines().find(|line| line.contains(" copied, "))?;
    line.split(" copied, ").nth(1)?.split(' ').next()?.parse().ok()
}

/// Options of a subject that makes calls.
#[derive(Debug, clap::Args)]
pub(crate) struct SubjectArgs {
    #[arg(long)]
    calls: u64,
    #[arg(long)]
    cpu: usize,
    #[arg(long)]
    result: PathBuf,
}

/// Makes the calls of `subject`.
pub(crate) fn run(subject: Subject, args: &SubjectArgs) -> Result<()> {
    die_with_parent()?;
    cpus::stay_on(args.cpu)?;
    let mut result = File::create(&args.result).context("cannot create the subject's result")?;
    match subject {
        Subject::Getppid => {
            let mut batches = [0u128; BATCHES as usize];
            for batch in &mut batches {
                let start = Instant::now();
                for _ in 0..args.calls / BATCHES {
                    std::hint::black_box(rustix::process::getppid());
                }
                *batch = start.elapsed().as_nanos();
            }
            let text: String = batches.iter().map(|ns| format!("{ns}\n")).collect();
            result.write_all(text.as_bytes()).context("cannot write the subject's result")
        }
        Subject::Dd => {
            let count = format!("count={}", args.calls / 2);
            let mut dd = Command::new("dd");
            dd.args(["of=/dev/null", "bs=8k", &count]).env("LC_ALL", "C").stderr(result);
            Err(dd.exec()).context("cannot run dd")
        }
    }
}

/// Options of a crowd.
#[derive(Debug, clap::Args)]
pub(crate) struct CrowdArgs {
    #[arg(long)]
    processes: usize,
}

/// Starts processes that make some calls and remain blocked; prints `ready` on standard output when
/// all of them are, and releases them when standard input ends.
pub(crate) fn crowd(args: &CrowdArgs) -> Result<()> {
    die_with_parent()?;
    let (stay, go) = io::pipe().context("cannot make a pipe")?;
    let (mut arrivals, arrive) = io::pipe().context("cannot make a pipe")?;
    let mut members: Vec<Child> = Vec::with_capacity(args.processes);
    for _ in 0..args.processes {
        let mut member = part("trace", "member")?;
        member.stdin(stay.try_clone()?).stdout(arrive.try_clone()?);
        members.push(member.stderr(Stdio::null()).spawn().context("cannot start a member")?);
    }
    drop(arrive);
    let mut all = vec![0; args.processes];
    arrivals.read_exact(&mut all).context("a member ended early")?;
    println!("ready");
    io::stdin().read_to_end(&mut Vec::new()).context("cannot read standard input")?;
    drop((stay, go));
    for mut member in members {
        member.wait().context("cannot wait for a member")?;
    }
    Ok(())
}

/// Discards the return value of a call that cannot fail.
fn done<Returned>(_: Returned) -> rustix::io::Result<()> {
    Ok(())
}

/// Runs a member of a crowd. Together with the start and the end of a program, it makes about 25
/// different calls.
pub(crate) fn member() -> Result<()> {
    use rustix::{fs, process, thread};
    die_with_parent()?;
    let null = fs::open("/dev/null", fs::OFlags::RDWR, fs::Mode::empty())?;
    let calls: [&dyn Fn() -> rustix::io::Result<()>; MEMBER_CALLS] = [
        &|| done(process::getpid()),
        &|| done(process::getppid()),
        &|| done(process::getuid()),
        &|| done(process::geteuid()),
        &|| done(thread::gettid()),
        &|| process::getsid(None).map(drop),
        &|| process::getpgid(None).map(drop),
        &|| fs::fstat(&null).map(drop),
        &|| fs::fstatfs(&null).map(drop),
        &|| rustix::io::dup(&null).map(drop),
        &|| thread::sched_getaffinity(None).map(drop),
        &|| done(rustix::system::uname()),
    ];
    for call in calls {
        call()?;
    }
    let mut out = io::stdout();
    out.write_all(b".").and_then(|()| out.flush()).context("cannot report as ready")?;
    io::stdin().read_to_end(&mut Vec::new()).context("cannot read standard input")?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_dd_took_is_read_from_what_it_says() {
        let said = "65536+0 records in\n65536+0 records out\n\
                    536870912 bytes (537 MB, 512 MiB) copied, 0.126378 s, 4.2 GB/s\n";
        assert_eq!(dd_seconds(said), Some(0.126378));
        assert_eq!(dd_seconds("dd: failed to open"), None);
    }

    #[test]
    fn a_subject_makes_whole_batches_and_whole_blocks() {
        assert_eq!(Subject::Getppid.whole(257), 512);
        assert_eq!(Subject::Dd.whole(33), 32);
    }
}
