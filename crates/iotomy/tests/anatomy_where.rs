//! `iotomy anatomy --where`: only the calls for which a condition holds are split, and the rest is one
//! row.

use crate::support;

use std::process::Output;

use iotomy_record::{Anatomy, DissectedCall, LedgerRow, store};
use support::sampling::fast_rate;
use support::{anatomy, doubled_until, has, iotomy};

/// Waits for short and long messages in turn, each asked for and sent a while after that.
const WORK: &str = r#"
    pipe my $from, my $to or die; pipe my $asked, my $ask or die;
    my $rounds = shift;
    if (!fork) {
        for (1..$rounds) {
            for my $length (10, 1000) {
                sysread $asked, my $go, 1; select undef, undef, undef, 0.02;
                syswrite $to, "x" x $length;
            }
        }
        exit;
    }
    for (1..2 * $rounds) { syswrite $ask, "x"; sysread $from, my $message, 4096 }
    wait;
"#;

fn dissected(condition: &str, options: &[&str], words: &[&str]) -> (Anatomy, Output) {
    let folder = tempfile::tempdir().unwrap();
    let mut command = iotomy(&["anatomy", "--json", "record.json", "--where", condition]);
    let output = command.args(options).arg("--").args(words).current_dir(&folder).output().unwrap();
    let record = store::load_anatomy(folder.path().join("record.json"));
    (record.unwrap_or_else(|error| panic!("{error}: {output:?}")), output)
}

#[test]
fn a_condition_that_no_call_can_fulfil_is_refused() {
    for (condition, said) in [
        ("bytes < 0", "no values can fulfil this"),
        (
            "call == \"getpid\" && bytes > 5",
            "no call or ring operation that is counted can fulfil this",
        ),
        // Ring operations are not dissected.
        ("call == \"ring:read\"", "no call or ring operation that is counted can fulfil this"),
    ] {
        let output = iotomy(&["anatomy", "--where", condition, "true"]).output().unwrap();
        let error = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{error}");
        assert!(error.starts_with("iotomy: --where: ") && error.contains(said), "{error}");
    }
}

/// The only call that is dissected.
fn only<'r>(record: &'r Anatomy, name: &str) -> &'r DissectedCall {
    let mut calls = record.calls.iter().filter(|row| row.syscall.is_some());
    let call = calls.next().unwrap_or_else(|| panic!("nothing: {record:#?}"));
    assert_eq!((call.syscall.as_deref(), calls.next()), (Some(name), None));
    assert!(record.stacks.iter().all(|one| one.syscall.as_deref().is_none_or(|it| it == name)));
    call
}

/// What `iotomy` says is left out, in ms, and the whole.
fn row(output: &Output, label: &str) -> f64 {
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    let line = text.lines().find_map(|line| line.trim_start().strip_prefix(label));
    let line = line.unwrap_or_else(|| panic!("no {label}: {text}"));
    let number = line.split_whitespace().next().unwrap().replace(',', "");
    number.parse().unwrap_or_else(|_| panic!("{label} {line}"))
}

#[test]
fn sleeps_belong_to_the_calls_that_count_once_they_have_returned() {
    if !anatomy() || !has("perl") {
        return;
    }
    // How much was read is known when all of the sleep is over.
    let condition = "call == \"read\" && bytes == 1000";
    let blocked = |record: &Anatomy| -> u64 {
        record.trace.calls.iter().map(|row| row.blocked_ns.unwrap()).sum()
    };
    let mut rounds = 0;
    let run = |next| {
        rounds = next;
        dissected(condition, &[], &["perl", "-e", WORK, &rounds.to_string()])
    };
    let ledger_of = |record: &Anatomy, part: fn(&LedgerRow) -> u64| -> u64 {
        record.trace.ledger.iter().map(part).sum()
    };
    let outside_of = |record: &Anatomy| -> u64 {
        let outside = record.calls.iter().filter(|row| row.syscall.is_none());
        outside.map(|row| row.blocked_ns).sum()
    };
    // What is asleep and does not count. The child waits for 20 ms before each message.
    let left_out_of = |record: &Anatomy| {
        ledger_of(record, |row| row.blocked_ns) - blocked(record) - outside_of(record)
    };
    // On a busy machine, a message may be there before it is waited for, and a sleep be over before it began.
    let sleeps = |(record, _): &(Anatomy, Output)| blocked(record) > 0 && left_out_of(record) > 0;
    let (record, output) = doubled_until(3, sleeps, run);
    assert!(output.status.success(), "{output:?}");
    let counted: u64 = record.trace.calls.iter().map(|row| row.calls).sum();
    assert_eq!(counted, u64::from(rounds));
    let call = only(&record, "read");
    assert_eq!(call.blocked_ns, blocked(&record));
    // All of it has its reason: no sleep was booked elsewhere.
    let waits: u64 = call.layers.iter().map(|layer| layer.waits.get("pipe").unwrap_or(&0)).sum();
    assert_eq!(waits, call.blocked_ns, "{call:#?}");
    // The other sleeps are left out, and not taken for time outside calls.
    let of_faults = ledger_of(&record, |row| row.fault_ns.unwrap_or(0));
    assert!(outside_of(&record) <= of_faults, "{:#?}", record.calls);
    let left_out = left_out_of(&record);
    assert!(row(&output, "calls left out") >= left_out as f64 / 1e6 - 0.1);
    assert!(row(&output, "residual").abs() <= 0.1);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(stderr.contains("only calls where call == \"read\" && bytes == 1000"), "{stderr}");
}

#[test]
fn samples_belong_to_the_calls_that_count_and_the_others_are_counted_apart() {
    if !anatomy() || !has("perl") {
        return;
    }
    let reads = r#"
        open my $zero, "<", "/dev/zero" or die;
        for (1..shift) { sysread $zero, my $small, 4096; sysread $zero, my $large, 1 << 20 }
    "#;
    let run = |rounds: u32| {
        let words = ["perl", "-e", reads, &rounds.to_string()];
        dissected("bytes > 64K", &["--rate", &fast_rate()], &words)
    };
    let enough = |(record, _): &(Anatomy, Output)| {
        let reads = record.calls.iter().filter(|row| row.syscall.as_deref() == Some("read"));
        let samples: u64 = reads.map(|row| row.samples).sum();
        samples > 100 && record.sampling.left_out > 0
    };
    let (record, output) = doubled_until(200, enough, run);
    let call = only(&record, "read");
    assert!(call.on_cpu_ns > 0, "{call:#?}");
    let large = record.trace.calls.iter().map(|row| row.bytes / (1 << 20)).sum::<u64>();
    assert_eq!(record.trace.calls.iter().map(|row| row.calls).sum::<u64>(), large);
    let sampled: u64 = record.calls.iter().map(|row| row.samples).sum();
    assert_eq!(sampled + record.sampling.lost, record.sampling.samples);
    let stderr = String::from_utf8_lossy(&output.stderr);
    let words: Vec<&str> = stderr.split_whitespace().collect();
    assert!(words.join(" ").contains(" more in calls left out"), "{stderr}");
}

#[test]
fn a_call_that_never_returns_is_left_out_where_its_outcome_decides() {
    if !anatomy() || !has("perl") {
        return;
    }
    let script = "$SIG{ALRM} = 'DEFAULT'; alarm shift; select undef, undef, undef, 1000";
    // How soon it is in its call is a matter of the machine.
    let is_left_out = |(_, output, seconds): &(Anatomy, Output, u32)| {
        row(output, "calls left out") >= f64::from(*seconds) * 900.0
    };
    let (record, ..) = doubled_until(1, is_left_out, |seconds| {
        let words = ["perl", "-e", script, &seconds.to_string()];
        let (record, output) = dissected("duration > 1ms", &[], &words);
        assert_eq!(output.status.code(), Some(128 + 14), "{output:?}");
        (record, output, seconds)
    });
    let calls = || record.calls.iter().filter(|row| row.syscall.is_some());
    assert!(calls().all(|row| !matches!(row.syscall.as_deref(), Some("select" | "pselect6"))));
}

#[test]
fn timelines_are_of_calls_that_count() {
    if !anatomy() || !has("perl") {
        return;
    }
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let file = folder.path().join("file");
    let script = r#"
        open my $file, "+>", shift or die;
        for (1..4) { syswrite $file, "x" x 4_000_000; syswrite $file, "y" x 100 }
    "#;
    let words = ["perl", "-e", script, file.to_str().unwrap()];
    let (record, output) = dissected("bytes == 100", &["--timeline=5"], &words);
    let Some(timelines) = &record.timelines else {
        return iotomy_test_requirements::skip(
            iotomy_test_requirements::Need::Bpf,
            &format!("no timelines: {output:?}"),
        );
    };
    let results: Vec<i64> = timelines.calls.iter().map(|call| call.returned).collect();
    assert_eq!(results, [100; 4], "{timelines:#?}");
}

#[test]
fn mistakes_are_shown_at_their_place_and_groups_are_for_trace() {
    let refused = |options: &[&str], expected: &str| {
        let output = iotomy(&[&["anatomy"], options, &["--", "true"]].concat()).output().unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{stderr}");
        assert!(stderr.contains(expected), "{stderr}");
    };
    refused(&["--where", "byte > 1"], "byte > 1\n    ^");
    refused(&["--by", "call"], "anatomy has no option --by; trace has one");
}
