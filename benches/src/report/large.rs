//! A trace whose record has a requested size.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use iotomy_record::Trace;
use iotomy_record::store::{RecordRef, load_trace};

use crate::child::Signals;
use crate::report::command::run_to_end;

/// Some dozens of short processes of three programs.
const SCRIPT: &str = "for n in 1 2 3 4 5 6 7 8; do ls -l /etc; cat /etc/passwd; done > /dev/null";

/// Writes a record of about `bytes` bytes and returns its number of processes: those of a script, traced now and
/// repeated.
pub(crate) fn record(signals: &Signals, iotomy: &str, path: &Path, bytes: u64) -> Result<usize> {
    let place = path.to_str().context("the path of the record is not UTF-8")?;
    run_to_end(signals, &[iotomy, "trace", "-q", "--json", place, "--", "sh", "-c", SCRIPT])?;
    let small = load_trace(path)?;
    let size = fs::metadata(path).context("cannot look at the record")?.len();
    ensure!(!small.processes.is_empty(), "the trace of the script has no process");
    let times = u32::try_from(bytes.div_ceil(size.max(1))).context("too large a record")?;
    let large = repeated(&small, times);
    let here = std::env::current_dir().context("cannot tell the current folder")?;
    RecordRef::Trace(&large).save_to(path, &here)?;
    Ok(large.processes.len())
}

/// Repeats the same processes this many times, each with a different id.
fn repeated(trace: &Trace, times: u32) -> Trace {
    let ids = trace.processes.iter().map(|process| process.pid);
    // Larger than the distance between any two ids of the trace.
    let step = ids.clone().max().unwrap_or(0) - ids.min().unwrap_or(0) + 1;
    let mut large = Trace {
        processes: Vec::new(),
        calls: Vec::new(),
        files: Vec::new(),
        paths: Vec::new(),
        connections: Vec::new(),
        slowest: Vec::new(),
        by: None,
        ledger: Vec::new(),
        ..trace.clone()
    };
    for time in 0..times {
        let moved = |pid: u32| pid.wrapping_add(time.wrapping_mul(step));
        large.processes.extend(trace.processes.iter().cloned().map(|mut one| {
            (one.pid, one.ppid) = (moved(one.pid), moved(one.ppid));
            one
        }));
        large.calls.extend(trace.calls.iter().cloned().map(|mut one| {
            one.pid = moved(one.pid);
            one
        }));
        large.files.extend(trace.files.iter().cloned().map(|mut one| {
            one.pid = moved(one.pid);
            one
        }));
        large.ledger.extend(trace.ledger.iter().cloned().map(|mut one| {
            one.pid = moved(one.pid);
            one
        }));
    }
    large
}
