//! Faults injected into the real calls of every mover, from outside: nothing is lost, duplicated or
//! reported wrong.

use crate::support;

use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::process::{Command, Stdio};

use iotomy_test_requirements::{Need, skip};

use support::carry_report::CarryReport;
use support::{carry, content, difference, folders};

/// What a run goes between.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Route {
    FileToFile,
    FileToPipe,
    PipeToFile,
}

use Route::{FileToFile, FileToPipe, PipeToFile};

/// Movers, routes, and the calls that carry the bytes there. A call that the start of every program
/// makes too is disturbed only where it is made on the file named.
const DISTURBED: [(&str, Route, &str, Option<&str>); 24] = [
    ("read-write", FileToFile, "read", Some("source")),
    ("read-write", FileToFile, "write", Some("target")),
    ("read-write", FileToPipe, "read", Some("source")),
    ("read-write", PipeToFile, "write", Some("target")),
    ("splice", FileToFile, "splice", None),
    ("splice", FileToPipe, "splice", None),
    ("splice", PipeToFile, "splice", None),
    ("copy-file-range", FileToFile, "copy_file_range", None),
    ("sendfile", FileToFile, "sendfile", None),
    ("sendfile", FileToPipe, "sendfile", None),
    ("mmap-write", FileToFile, "write", Some("target")),
    ("vmsplice", FileToPipe, "vmsplice", None),
    ("vmsplice", FileToPipe, "read", Some("source")),
    ("io-uring", FileToFile, "io_uring_enter", None),
    ("io-uring", FileToPipe, "io_uring_enter", None),
    ("io-uring", PipeToFile, "io_uring_enter", None),
    ("direct", FileToFile, "pread64", Some("source")),
    ("direct", FileToFile, "pwrite64", Some("target")),
    ("pipelined", FileToFile, "read", Some("source")),
    ("pipelined", FileToPipe, "read", Some("source")),
    ("pipelined", FileToFile, "write", Some("target")),
    ("parallel", FileToFile, "copy_file_range", None),
    // Where copy_file_range(2) is refused besides.
    ("parallel", FileToFile, "pread64", Some("source")),
    ("parallel", FileToFile, "pwrite64", Some("target")),
];

struct Fault<'a> {
    mover: &'a str,
    route: Route,
    call: &'a str,
    on: Option<&'a str>,
    errno: &'a str,
    when: u32,
    /// Another injection, for faults that come together.
    also: Option<&'a str>,
}

/// Runs a mover with a fault; returns what it told and what reached the target.
fn run(fault: &Fault<'_>, folder: &Path) -> (CarryReport, Vec<u8>) {
    let (source, target) = (folder.join("source"), folder.join("target"));
    let _ = std::fs::remove_file(&target);
    let mut strace = Command::new("strace");
    strace.args(["-f", "-qq", "-o", "/dev/null"]);
    if let Some(on) = fault.on {
        strace.arg("-P").arg(folder.join(on));
    }
    let trace = fault.also.and_then(|also| also.split(':').next());
    strace.arg("-e").arg(format!("trace={},{}", fault.call, trace.unwrap_or(fault.call)));
    if let Some(also) = fault.also {
        strace.arg("-e").arg(format!("inject={also}"));
    }
    strace
        .arg("-e")
        .arg(format!("inject={}:error={}:when={}", fault.call, fault.errno, fault.when));
    strace.arg(carry()).arg(fault.mover);
    let stream = Path::new("-");
    strace.arg(if fault.route == PipeToFile { stream } else { &source });
    strace.arg(if fault.route == FileToPipe { stream } else { &target });
    let (feed, into) = std::io::pipe().unwrap();
    let feeder = (fault.route == PipeToFile).then(|| {
        let mut source = File::open(&source).unwrap();
        let mut into = into.try_clone().unwrap();
        // A run that fails does not take it all.
        std::thread::spawn(move || drop(std::io::copy(&mut source, &mut into)))
    });
    drop(into);
    let mut child =
        strace.stdin(feed).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    drop(strace);
    let mut arrived = Vec::new();
    child.stdout.take().unwrap().read_to_end(&mut arrived).unwrap();
    let mut line = String::new();
    child.stderr.take().unwrap().read_to_string(&mut line).unwrap();
    child.wait().unwrap();
    feeder.map(std::thread::JoinHandle::join);
    if fault.route != FileToPipe {
        arrived = std::fs::read(&target).unwrap_or_default();
    }
    let told = CarryReport::parse(&line).unwrap_or_else(|| panic!("{}: {line}", describe(fault)));
    (told, arrived)
}

fn describe(fault: &Fault<'_>) -> String {
    let Fault { mover, route, call, errno, when, .. } = fault;
    format!("{mover} {route:?}, {call} number {when} is {errno}")
}

/// What holds whatever happened.
fn check(fault: &Fault<'_>, all: &[u8], folder: &Path) -> CarryReport {
    let (told, arrived) = run(fault, folder);
    let label = format!("{}: {told:?}", describe(fault));
    // Who works on several places at once may have written behind the first failure.
    let scattered = matches!(fault.mover, "io-uring" | "parallel") && told.outcome == "failed";
    if scattered {
        assert!(arrived.len() >= told.moved, "{label}");
    } else {
        assert_eq!(arrived.len(), told.moved, "{label}");
    }
    assert_eq!(difference(&arrived[..told.moved], &all[..told.moved]), None, "{label}");
    assert!(told.moved + told.lost <= all.len(), "{label}");
    if fault.route != PipeToFile {
        assert_eq!((told.source_at, told.lost), (Some(told.moved), 0), "{label}");
    }
    if fault.route != FileToPipe {
        assert_eq!(told.target_at, Some(told.moved), "{label}");
    }
    if told.outcome == "done" {
        assert_eq!(told.moved, all.len(), "{label}");
    }
    figures(fault, &told, &label);
    told
}

/// What happened to the bytes is told of those that were moved, whatever happened after them.
fn figures(fault: &Fault<'_>, told: &CarryReport, label: &str) {
    let (moved, into_file) = (told.moved, fault.route != FileToPipe);
    let [referenced, copied, touched] = told.traffic;
    let read_and_written = (0, 2 * moved, moved);
    let expected = match fault.mover {
        "read-write" | "pipelined" | "io-uring" => read_and_written,
        "mmap-write" => (0, moved, moved),
        "vmsplice" => (moved, moved, moved),
        "sendfile" => (moved, if into_file { moved } else { 0 }, 0),
        // What a pipe still held has been read and written.
        "splice" => {
            let pages = moved - touched;
            (pages, if into_file { pages } else { 0 } + 2 * touched, touched)
        }
        // Some file systems share what is copied.
        "copy-file-range" => (referenced, moved - referenced, 0),
        "parallel" => (referenced, moved - touched - referenced + 2 * touched, touched),
        // A file system in memory copies all the same, and the last block goes the plain way.
        "direct" => (0, copied.min(2 * moved), moved),
        other => panic!("{other} has no figures here"),
    };
    assert_eq!((referenced, copied, touched), expected, "{label}: figures");
}

fn every_fault(errnos: &[&str], whens: &[u32], verdict: impl Fn(&Fault<'_>, &CarryReport) -> bool) {
    if Command::new("strace").arg("-V").stdout(Stdio::null()).status().is_err() {
        return skip(Need::Programs, "no strace");
    }
    let folder = folders::here();
    let all = content((3 << 20) + 4000);
    std::fs::write(folder.path().join("source"), &all).unwrap();
    let mut seen = 0;
    for (mover, route, call, on) in DISTURBED {
        for errno in errnos {
            for &when in whens {
                let also = (mover == "parallel" && call != "copy_file_range")
                    .then_some("copy_file_range:error=ENOSYS");
                let fault = Fault { mover, route, call, on, errno, when, also };
                let told = check(&fault, &all, folder.path());
                assert!(verdict(&fault, &told), "{}: {told:?}", describe(&fault));
                seen += usize::from(told.outcome != "done");
            }
        }
    }
    println!("{seen} runs of {} were not done", DISTURBED.len() * errnos.len() * whens.len());
}

#[test]
fn interruptions_and_full_pipes_are_gone_through() {
    every_fault(&["EINTR", "EAGAIN"], &[1, 3], |_, told| told.outcome == "done");
}

#[test]
fn failures_are_told_with_their_reason_and_place() {
    every_fault(&["EIO", "ENOSPC"], &[1, 2, 3], |fault, told| match told.outcome.as_str() {
        "failed" => told.errno == if fault.errno == "EIO" { 5 } else { 28 },
        "done" => fault.when > 1,
        _ => false,
    });
}

#[test]
fn refusals_of_the_first_call_leave_everything_to_others() {
    every_fault(&["ENOSYS", "EXDEV", "EINVAL", "EPERM"], &[1], |fault, told| {
        match told.outcome.as_str() {
            "failed" => fault.mover == "read-write" || fault.call != fault.mover.replace('-', "_"),
            _ => true,
        }
    });
}

/// splice(2) from its own pipe into the target fails; what the pipe holds is drained by write(2).
fn splice_out<'a>(errno: &'a str, also: Option<&'a str>) -> Fault<'a> {
    // Only deliveries touch the target; this is the second.
    let on = Some("target");
    let (mover, route, call) = ("splice", FileToFile, "splice");
    Fault { mover, route, call, on, errno, when: 2, also }
}

/// The same into a pipe, which has no name: the first round has been taken, and delivered in part.
fn splice_out_to_a_pipe<'a>(errno: &'a str, also: Option<&'a str>) -> Fault<'a> {
    let (mover, route, call) = ("splice", FileToPipe, "splice");
    Fault { mover, route, call, on: None, errno, when: 3, also }
}

#[test]
fn what_an_intermediate_pipe_holds_is_not_lost() {
    if Command::new("strace").arg("-V").stdout(Stdio::null()).status().is_err() {
        return skip(Need::Programs, "no strace");
    }
    let folder = folders::here();
    let all = content((3 << 20) + 4000);
    std::fs::write(folder.path().join("source"), &all).unwrap();
    for fault in [splice_out, splice_out_to_a_pipe] {
        // The target takes no pages: the rest is copied.
        let report = check(&fault("EINVAL", None), &all, folder.path());
        assert_eq!(report.outcome, "done");
        // The target fails: what was in the pipe is saved, and the failure is reported.
        let report = check(&fault("EIO", None), &all, folder.path());
        assert_eq!((report.outcome.as_str(), report.errno), ("failed", 5));
        // Nothing can be saved: the source gets back what was taken.
        let report = check(&fault("EIO", Some("write:error=ENOSPC:when=1")), &all, folder.path());
        assert_eq!((report.outcome.as_str(), report.errno), ("failed", 28));
    }
}

#[test]
fn a_ring_that_never_has_room_for_requests_is_an_error() {
    if Command::new("strace").arg("-V").stdout(Stdio::null()).status().is_err() {
        return skip(Need::Programs, "no strace");
    }
    let folder = folders::here();
    let all = content(300_000);
    std::fs::write(folder.path().join("source"), &all).unwrap();
    for errno in ["EAGAIN", "EBUSY"] {
        // No call hands a request over.
        let mut strace = Command::new("strace");
        strace.args(["-f", "-qq", "-o", "/dev/null", "-e", "trace=io_uring_enter", "-e"]);
        strace.arg(format!("inject=io_uring_enter:error={errno}"));
        strace.arg(carry()).arg("io-uring");
        strace.args([folder.path().join("source"), folder.path().join("target")]);
        let line = String::from_utf8(strace.output().unwrap().stderr).unwrap();
        let told = CarryReport::parse(&line).unwrap_or_else(|| panic!("{line}"));
        let is_refused = told.outcome == "refused";
        assert!(is_refused || (told.outcome.as_str(), told.moved) == ("failed", 0), "{told:?}");
    }
}
