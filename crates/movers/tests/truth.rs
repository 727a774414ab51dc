//! The calls a mover declares are the calls it makes: watched from outside, and compared with what a
//! run that moves nothing makes.

use crate::support;

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, Stdio};

use iotomy_movers::{MOVERS, Probe};
use iotomy_test_requirements::{Need, skip};

use support::folders::{self, Folder};
use support::{carry, content, moves, name};

/// Calls of the language's runtime: memory, threads, and checks of descriptors when they are closed.
const RUNTIME: [&str; 18] = [
    "brk",
    "mmap",
    "munmap",
    "mprotect",
    "madvise",
    "close",
    "fcntl",
    "clone3",
    "futex",
    "exit",
    "rseq",
    "prctl",
    "gettid",
    "sigaltstack",
    "sched_getaffinity",
    "set_robust_list",
    "rt_sigaction",
    "rt_sigprocmask",
];

type Counts = BTreeMap<String, u32>;

/// The calls of one run, by name, or `None` when the mover does not serve the pair.
fn calls(mover: &str, folder: &Path, source: &Path, to_pipe: bool) -> Option<Counts> {
    let (log, target) = (folder.join("log"), folder.join("target"));
    let _ = std::fs::remove_file(&target);
    let output = Command::new("strace")
        .args(["-f", "-qq", "-o"])
        .arg(&log)
        .arg(carry())
        .arg(mover)
        .arg(source)
        .arg(if to_pipe { Path::new("-") } else { &target })
        .arg(SIZE.to_string())
        .stdin(Stdio::null())
        .output()
        .unwrap();
    if !String::from_utf8_lossy(&output.stderr).starts_with("done") {
        return None;
    }
    let mut counts = Counts::new();
    for line in std::fs::read_to_string(log).unwrap().lines() {
        // A number, spaces, and a call; or the rest of a call, or a signal.
        let Some((_, call)) = line.split_once(' ') else { continue };
        let Some((call, _)) = call.trim_start().split_once('(') else { continue };
        if call.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_') {
            *counts.entry(call.to_owned()).or_default() += 1;
        }
    }
    Some(counts)
}

/// Bytes a run moves.
const SIZE: usize = 3_000_001;

/// Compares what every mover that serves declares with what it does; returns who did.
fn compare(folder: &Folder, to_pipe: bool) -> Vec<&'static str> {
    let source = folder.path().join("source");
    std::fs::write(&source, content(SIZE)).unwrap();
    compare_from(&source, folder, to_pipe)
}

fn compare_from(source: &Path, folder: &Folder, to_pipe: bool) -> Vec<&'static str> {
    let nothing = calls("null", folder.path(), source, to_pipe).unwrap();
    let mut served = Vec::new();
    for mover in MOVERS.iter().copied().filter(|mover| moves(*mover)) {
        let declared = mover.declaration().calls;
        let Some(seen) = calls(name(mover), folder.path(), source, to_pipe) else {
            println!("{} on {}: not served, into a pipe: {to_pipe}", name(mover), folder.name);
            continue;
        };
        let more = |call: &str| {
            let count = |counts: &Counts| counts.get(call).copied().unwrap_or(0);
            count(&seen).saturating_sub(count(&nothing))
        };
        for call in seen.keys().filter(|call| more(call) > 0) {
            assert!(
                declared.contains(&call.as_str()) || RUNTIME.contains(&call.as_str()),
                "{} on {} makes {call} and does not declare it",
                name(mover),
                folder.name
            );
        }
        assert!(more(declared[0]) > 0, "{} makes no {}", name(mover), declared[0]);
        served.push(name(mover));
    }
    served
}

fn is_watchable() -> bool {
    Command::new("strace").arg("-V").stdout(Stdio::null()).status().is_ok()
}

#[test]
fn movers_make_the_calls_they_declare_and_no_others() {
    if !is_watchable() {
        return skip(Need::Programs, "no strace");
    }
    let folder = folders::here();
    let mut served = compare(&folder, false);
    served.extend(compare(&folder, true));
    served.extend(compare_from(Path::new("/dev/zero"), &folder, false));
    for mover in MOVERS.iter().copied().filter(|mover| moves(*mover)) {
        // Extents are shared, and the page cache is gone past, where the file system can.
        let depends = ["reflink", "direct"].contains(&name(mover)) || mover.probe() != Probe::Ready;
        assert!(depends || served.contains(&name(mover)), "{} was never looked at", name(mover));
    }
}

#[test]
fn movers_that_share_extents_make_the_calls_they_declare_and_no_others() {
    if !is_watchable() {
        return skip(Need::Programs, "no strace");
    }
    for kind in ["xfs", "btrfs"] {
        match folders::image(kind) {
            Ok(folder) => {
                let served = compare(&folder, false);
                assert!(served.contains(&"reflink"), "{kind}: {served:?}");
            }
            Err(reason) => skip(Need::Devices, &reason),
        }
    }
}
