//! A part of the time that is counted (`--sample`). That estimates are near is proved where they are made
//! (`crates/stats/src/windows.rs`); here is what holds in every run.

use crate::support;

use std::process::{Child, Stdio};

use iotomy_record::Trace;
use nix::sys::signal::Signal;
use support::attached::Attached;
use support::{
    Traced, Tracing, bpf, count, doubled_until, has, iotomy, state, text, traced, until,
};

/// Makes thousands of calls, all of which fail, and as many times more; then sleeps for 0.3 s.
const FAILS: &str = "for (1..shift) { rmdir '/nope' for 1..1000 } \
                     select undef, undef, undef, 0.3; exit 3";

/// A run in which windows opened, and the thousands of its calls.
fn sampled(part: &str) -> (Traced, u64) {
    let mut made = 0;
    let run = doubled_until(
        100,
        |run: &Traced| {
            let record = run.record();
            record.sample.as_ref().unwrap().windows >= 2 && count(&record, "rmdir") > 0
        },
        |thousands| {
            made = 1_000 * u64::from(thousands);
            let words = ["perl", "-e", FAILS, &thousands.to_string()];
            traced("bpf", &["--sample", part], &words)
        },
    );
    (run, made)
}

fn printed(n: u64) -> String {
    let digits = n.to_string();
    let groups: Vec<String> = digits.as_bytes().rchunks(3).rev().map(text).collect();
    groups.join(",")
}

#[test]
fn what_windows_saw_is_recorded_and_the_report_scales_it() {
    if !bpf() || !has("perl") {
        return;
    }
    let (run, made) = sampled("1/2");
    assert_eq!(run.code(), 3, "{}", run.stderr());
    let record = run.record();
    let sample = record.sample.clone().unwrap();
    assert_eq!((sample.n, sample.window_ns), (2, 10_000_000));
    assert!(sample.open_ns > 0 && sample.open_ns <= sample.watched_ns, "{sample:?}");
    assert!(sample.open_ns <= sample.windows * sample.window_ns, "{sample:?}");
    assert!(sample.margins.is_some(), "{sample:?}");
    // No call is counted twice, nor one that was not made.
    let seen = count(&record, "rmdir");
    assert!((1..=made).contains(&seen), "{seen} of {made}");
    let rmdir = record.calls.iter().find(|call| call.syscall == "rmdir").unwrap();
    assert_eq!((rmdir.errors, rmdir.error_kinds["ENOENT"]), (seen, seen));
    assert!(sample.margins_of("rmdir").is_some(), "{sample:?}");
    // Sleep is seen all the time, be it in a call that counts or not.
    let blocked: u64 = record.ledger.iter().map(|row| row.blocked_ns).sum();
    assert!(blocked >= 300_000_000, "{blocked}");
    assert_eq!((record.files.len(), record.findings.len()), (0, 0));
    let scaled = (u128::from(seen) * u128::from(sample.watched_ns)
        + u128::from(sample.open_ns) / 2)
        / u128::from(sample.open_ns);
    let scaled = u64::try_from(scaled).unwrap();
    assert!(run.stderr().contains("sampled     10 ms of each 20 ms at random"), "{}", run.stderr());
    // In every form: the report, the saved record shown, and a table of it.
    let json = run.json();
    let json = json.to_str().unwrap();
    let shown = iotomy(&["show", json]).output().unwrap();
    for report in [run.stderr().to_owned(), text(&shown.stdout[..])] {
        let row = report.lines().find(|line| line.trim_start().starts_with("rmdir ")).unwrap();
        assert!(report.contains(&printed(scaled)), "{scaled}: {row}");
    }
    let csv = iotomy(&["report", "--csv", "--part", "calls", json]).output().unwrap();
    let csv = text(&csv.stdout[..]);
    let head: Vec<&str> = csv.lines().next().unwrap().split(',').collect();
    let row = csv.lines().find(|line| line.starts_with("rmdir,")).unwrap();
    let cells: Vec<&str> = row.split(',').collect();
    let cell = |key: &str| cells[head.iter().position(|one| *one == key).unwrap()];
    assert_eq!(cell("calls"), scaled.to_string(), "{csv}");
    let margin = sample.margins_of("rmdir").unwrap().calls;
    assert_eq!(cell("calls_margin"), margin.to_string(), "{csv}");
    let brief = iotomy(&["show", "--brief", json]).output().unwrap();
    assert!(text(&brief.stdout[..]).contains(&printed(scaled)), "{}", text(&brief.stdout[..]));
    // Estimates are not compared.
    let compared = iotomy(&["diff", json, json]).output().unwrap();
    assert_eq!(compared.status.code(), Some(2));
    let refusal = text(&compared.stderr[..]);
    assert!(refusal.contains("it counted calls in 1/2 of the time (--sample)"), "{refusal}");
}

#[test]
fn one_part_of_one_is_all() {
    if !bpf() || !has("perl") {
        return;
    }
    let words = ["perl", "-e", "rmdir '/nope' for 1..1234"];
    for options in [&[][..], &["--sample", "1/1"]] {
        let record = traced("bpf", options, &words).whole_record();
        assert_eq!((count(&record, "rmdir"), record.sample.is_none()), (1_234, true));
        assert!(!record.files.is_empty());
    }
}

#[test]
fn of_a_command_that_ends_early_no_error_is_claimed() {
    if !bpf() || !has("perl") {
        return;
    }
    // A window in 10 s: there is one, or none, or the machine was so slow that there were more.
    let run = traced("bpf", &["--sample", "1/1000"], &["perl", "-e", "rmdir '/nope' for 1..99"]);
    assert_eq!(run.code(), 0, "{}", run.stderr());
    let record = run.record();
    let sample = record.sample.clone().unwrap();
    assert!(count(&record, "rmdir") <= 99);
    assert_eq!(sample.margins.is_none(), sample.windows < 2, "{sample:?}");
    assert_eq!(sample.calls.is_empty(), sample.windows < 2, "{sample:?}");
    let said = run.stderr();
    let expected = match sample.windows {
        0 => "no call was counted",
        1 => "their error is not known, of 1 window",
        _ => "± is the 95 % margin",
    };
    assert!(said.contains(expected) && !said.contains("nothing seen"), "{said}");
}

#[test]
fn chosen_calls_and_processes_are_sampled() {
    if !bpf() || !has("perl") {
        return;
    }
    let script = "for (1..200) { rmdir '/nope' for 1..1000; chdir '/nope' }";
    let words = ["perl", "-e", script];
    let only_rmdir = |record: &Trace| record.calls.iter().all(|call| call.syscall == "rmdir");
    let record = traced("bpf", &["--sample", "1/3", "--call", "rmdir"], &words).record();
    assert!(only_rmdir(&record) && count(&record, "rmdir") <= 200_000, "{:?}", record.calls);
    assert_eq!(record.observer.calls_left_out, None);
    let condition = ["--sample", "1/3", "--where", "errno == ENOENT && call == \"rmdir\""];
    let record = traced("bpf", &condition, &words).record();
    assert!(only_rmdir(&record) && count(&record, "rmdir") <= 200_000, "{:?}", record.calls);
}

#[test]
fn what_needs_all_calls_is_refused() {
    for options in [
        &["--live"][..],
        &["-i", "1"],
        &["--ring", "5"],
        &["--until", "errno == EIO"],
        &["--files"],
        &["--peers"],
        &["--requests"],
        &["--paths"],
        &["--threads"],
        &["--by", "call"],
        &["--slowest", "3"],
        &["--save"],
    ] {
        let output = iotomy(&["trace", "--sample", "1/10"]).args(options).arg("true").output();
        let output = output.unwrap();
        let said = text(&output.stderr[..]);
        assert_eq!(output.status.code(), Some(2), "{options:?}: {said}");
        let named = ["--sample <1/N>", "cannot be used with"].map(|part| said.contains(part));
        assert_eq!(named, [true; 2], "{options:?}: {said}");
    }
    for part in ["10", "1/0", "2/10", "1/1001", "1/-3", "1/ten", "0.1", ""] {
        let output = iotomy(&["trace", "--sample", part, "true"]).output().unwrap();
        let said = text(&output.stderr[..]);
        assert_eq!(output.status.code(), Some(2), "{part}: {said}");
        assert!(said.contains("expected 1/N with N from 1 to 1000, as in 1/10"), "{part}: {said}");
    }
    let ptrace = ["trace", "--observer", "ptrace", "--sample", "1/10", "true"];
    let output = iotomy(&ptrace).output().unwrap();
    let said = text(&output.stderr[..]);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("leave out --sample"), "{said}");
}

/// A process that fails without end, ended with the test.
struct Busy(Child);

impl Busy {
    fn start() -> Self {
        let mut perl = support::bare("perl", &["-e", "rmdir '/nope' while 1"]);
        Self(perl.stdout(Stdio::null()).spawn().unwrap())
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn a_sampled_watch_that_is_killed_leaves_nothing_and_the_process_as_it_was() {
    if !bpf() || !has("perl") {
        return;
    }
    let busy = Busy::start();
    let pid = busy.0.id().to_string();
    let mut watch = Tracing::new("bpf", &["--sample", "1/2", "-p", &pid], &[]).start();
    let held = until("its programs are attached", || {
        let held = Attached::to(watch.pid());
        (held.has("prog") && held.has("link") && held.has("map")).then_some(held)
    });
    watch.signal(Signal::SIGKILL);
    held.until_gone();
    assert!(matches!(state(busy.0.id()), Some('R' | 'S')), "{:?}", state(busy.0.id()));
    // Another watch begins as if there had been none, and a signal ends it.
    watch = Tracing::new("bpf", &["--sample", "1/2", "-d", "0.5", "-p", &pid], &[]).start();
    let run = watch.end();
    assert_eq!(run.code(), 0, "{}", run.stderr());
    let record = run.record();
    let sample = record.sample.clone().unwrap();
    assert!(sample.open_ns <= sample.watched_ns, "{sample:?}");
    assert!(record.calls.iter().all(|call| call.entered_before == 0), "{:?}", record.calls);
}
