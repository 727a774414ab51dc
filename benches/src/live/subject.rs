//! The watched process: reads of one page of a cached file, one after another, for some seconds.
//!
//! It times itself, and also reports the CPU time of its parent in that period; when traced, the parent is iotomy. The
//! figures therefore exclude the start and the end of a watch, and no signal for the start of the watch is needed.

use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};

use crate::child::{die_with_parent, own_path};
use crate::cpus;
use crate::run::thread_ns;

/// The call, and the size of each read.
pub(crate) const CALL: &str = "pread64";
const PAGE: usize = 4096;
/// Size of the file in bytes; all of it is in memory.
const FILE_BYTES: usize = 4 << 20;
/// Calls between two clock reads: some hundreds of µs.
const BATCH: u64 = 1_000;

/// Options of the subject.
#[derive(Debug, clap::Args)]
pub(crate) struct SubjectArgs {
    #[arg(long)]
    seconds: u32,
    #[arg(long)]
    cpu: usize,
    #[arg(long)]
    file: PathBuf,
    #[arg(long)]
    result: PathBuf,
}

/// The subject's report of a run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct SubjectReport {
    pub(crate) calls: u64,
    pub(crate) wall_ns: u64,
    pub(crate) cpu_ns: u64,
    /// CPU time of its parent.
    pub(crate) parent_ns: u64,
}

/// Creates the file that is read.
pub(crate) fn lay_out(file: &Path) -> Result<()> {
    fs::write(file, vec![7; FILE_BYTES]).context("cannot write the file to read")
}

/// Returns the command that makes calls for this many seconds.
pub(crate) fn argv(seconds: u32, cpu: usize, file: &Path, result: &Path) -> Result<Vec<String>> {
    let own = own_path()?;
    let text = |path: &Path| path.to_str().map(str::to_owned).context("a path is not UTF-8");
    Ok(vec![
        text(&own)?,
        "live".to_owned(),
        "subject".to_owned(),
        format!("--seconds={seconds}"),
        format!("--cpu={cpu}"),
        format!("--file={}", text(file)?),
        format!("--result={}", text(result)?),
    ])
}

/// Makes the calls and writes the report.
pub(crate) fn run(args: &SubjectArgs) -> Result<()> {
    die_with_parent()?;
    cpus::stay_on(args.cpu)?;
    let file = File::open(&args.file).context("cannot open the file to read")?;
    let mut page = vec![0; PAGE];
    let pages = (FILE_BYTES / PAGE) as u64;
    let long = Duration::from_secs(args.seconds.into());
    let parent = rustix::process::getppid().context("the subject has no parent")?;
    let before = on_cpu_ns(parent.as_raw_pid())?;
    let mut calls = 0;
    let (began, cpu) = (Instant::now(), thread_ns());
    let wall = loop {
        for call in calls..calls + BATCH {
            file.read_exact_at(&mut page, call % pages * PAGE as u64)
                .context("cannot read the file")?;
        }
        calls += BATCH;
        let wall = began.elapsed();
        if wall >= long {
            break wall;
        }
    };
    let cpu_ns = thread_ns() - cpu;
    let parent_ns = on_cpu_ns(parent.as_raw_pid())?.saturating_sub(before);
    let text = format!("{calls} {} {cpu_ns} {parent_ns}\n", wall.as_nanos());
    fs::write(&args.result, text).context("cannot write the subject's result")
}

/// Reads the subject's report.
pub(crate) fn read_result(path: &Path) -> Result<SubjectReport> {
    let text = fs::read_to_string(path).context("cannot read the subject's result")?;
    let numbers: Vec<u64> = text.split_whitespace().filter_map(|word| word.parse().ok()).collect();
    let [calls, wall_ns, cpu_ns, parent_ns] = numbers[..] else {
        bail!("the subject said {text:?}");
    };
    ensure!(calls > 0, "the subject made no call");
    Ok(SubjectReport { calls, wall_ns, cpu_ns, parent_ns })
}

/// Returns the CPU time of all threads of a process so far.
fn on_cpu_ns(pid: i32) -> Result<u64> {
    let tasks = format!("/proc/{pid}/task");
    let mut sum = 0;
    for task in fs::read_dir(&tasks).with_context(|| format!("cannot read {tasks}"))? {
        // The time of a thread that has ended meanwhile is unknown; iotomy's threads live as long
        // as it does.
        let path = task.with_context(|| format!("cannot read {tasks}"))?.path().join("schedstat");
        let text = fs::read_to_string(path).unwrap_or_default();
        sum += text.split(' ').next().and_then(|ns| ns.parse::<u64>().ok()).unwrap_or(0);
    }
    Ok(sum)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_subject_says_is_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("result");
        fs::write(&path, "1000 2000 1500 7\n").unwrap();
        let said = SubjectReport { calls: 1000, wall_ns: 2000, cpu_ns: 1500, parent_ns: 7 };
        assert_eq!(read_result(&path).unwrap(), said);
        for wrong in ["", "1 2 3", "0 1 2 3"] {
            fs::write(&path, wrong).unwrap();
            assert!(read_result(&path).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_process_has_been_on_a_cpu() {
        assert!(on_cpu_ns(std::process::id().cast_signed()).unwrap() > 0);
    }
}
