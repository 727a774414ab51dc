//! `iotomy trace --interval`: each interval has what came in it, and all of them have what came.

use crate::support;

use std::io::{BufRead, BufReader, Read};
use std::process::{Command, Stdio};

use iotomy_record::store::{Record, parse_record};
use iotomy_record::{Call, Trace};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use support::{SLEEPS, doubled_until, each_observer, has, iotomy, text, until_blocked_in};

/// Sleeps 40 ms as often as it is told, and after each makes 23 calls that fail. How many intervals that takes is a
/// matter of the machine: one that is busy may end an interval late.
const STEPS: &str = "for (1..shift) { select undef, undef, undef, 0.04; \
                     for (1..23) { rmdir '/nope/nope' } }";

fn options<'a>(observer: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    [&["trace", "--observer", observer, "-i", "0.1"], more].concat()
}

fn lines(text: &str) -> Vec<Trace> {
    let record = |line: &str| match parse_record(line.as_bytes()).unwrap() {
        Record::Trace(record) => *record,
        other => panic!("{other:?}"),
    };
    text.lines().map(record).collect()
}

fn sum(records: &[Trace], name: &str, part: fn(&Call) -> u64) -> u64 {
    let calls = records.iter().flat_map(|record| &record.calls);
    calls.filter(|call| call.syscall == name).map(part).sum()
}

fn run(mut command: Command) -> (String, String) {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    (text(&output.stdout[..]), text(&output.stderr[..]))
}

#[test]
fn intervals_add_up_to_all_that_the_command_did() {
    if !has("perl") {
        return;
    }
    each_observer(|observer| {
        let has_several = |(records, _): &(Vec<Trace>, u64)| {
            let has_some = |one: &&Trace| one.calls.iter().any(|call| call.syscall == "rmdir");
            records.iter().filter(has_some).count() >= 3
        };
        let (records, steps) = doubled_until(20, has_several, |steps| {
            let number = steps.to_string();
            let command = ["-q", "--json", "-", "--", "perl", "-e", STEPS, &number];
            let (text, said) = run(iotomy(&options(observer, &command)));
            assert_eq!(said, "");
            (lines(&text), u64::from(steps))
        });
        assert_eq!(sum(&records, "rmdir", |call| call.calls), steps * 23);
        assert_eq!(sum(&records, "rmdir", |call| call.errors), steps * 23);
        // An interval may have calls whose errors are read in the next one.
        let missing = |call: &Call| call.error_kinds.get("ENOENT").copied().unwrap_or(0);
        assert_eq!(sum(&records, "rmdir", missing), steps * 23);
        assert_eq!(sum(&records, "rmdir", |call| call.wall_times.total()), steps * 23);
        let mut ns = 0;
        for (at, record) in records.iter().enumerate() {
            let interval = record.interval.unwrap();
            assert_eq!((interval.number, interval.start_ns), (at as u64 + 1, ns));
            assert_eq!(interval.is_last, at + 1 == records.len());
            assert_eq!(record.exit.is_some(), interval.is_last);
            ns += record.wall_ns;
            for call in &record.calls {
                assert_eq!(
                    (&*call.exec, call.wall_times.total()),
                    ("perl", call.calls),
                    "{call:?}"
                );
                // A thread can be in no call for longer than the interval.
                assert!(call.in_flight <= 1);
            }
        }
        // Its sleeps are no longer than the whole, and each is counted where it was.
        let asleep = |name: &str| sum(&records, name, |call| call.wall_ns);
        let asleep = asleep("select") + asleep("pselect6");
        assert!((steps * 40_000_000..=ns).contains(&asleep), "{asleep} of {ns}");
    });
}

#[test]
fn processes_that_ended_are_counted_in_the_interval_in_which_they_ran() {
    each_observer(|observer| {
        let has_several = |(records, _): &(Vec<Trace>, usize)| records.len() >= 4;
        let (records, rounds) = doubled_until(3, has_several, |rounds| {
            let script = format!("for i in $(seq {rounds}); do rmdir /nope/nope; sleep 0.15; done");
            let words = options(observer, &["-q", "--json", "-", "--", "sh", "-c", &script]);
            let output = iotomy(&words).output().unwrap();
            (lines(&text(&output.stdout[..])), rounds as usize)
        });
        assert_eq!(sum(&records, "rmdir", |call| call.errors), rounds as u64);
        // The call in which each ended: in the last interval, and before in one at most that ended
        // while it was in progress.
        for name in ["rmdir", "sleep"] {
            let calls = |records: &[Trace]| {
                let calls = records.iter().flat_map(|record| &record.calls);
                calls.filter(|call| call.exec == name && call.syscall == "exit_group").count()
            };
            let (last, others) = records.split_last().unwrap();
            let [in_last, before] = [calls(std::slice::from_ref(last)), calls(others)];
            assert!(in_last <= rounds && before <= rounds, "{name}: {records:?}");
            assert!(in_last + before >= rounds, "{name}: {records:?}");
        }
    });
}

#[test]
fn a_report_is_printed_for_each_interval_and_none_of_the_whole() {
    if !has("perl") {
        return;
    }
    each_observer(|observer| {
        let heads = |said: &String| said.lines().filter(|line| line.contains(" · ")).count();
        let said = doubled_until(
            20,
            |said: &String| heads(said) >= 3,
            |steps| {
                let words = ["--", "perl", "-e", STEPS, &steps.to_string()];
                let (out, said) = run(iotomy(&options(observer, &words)));
                assert_eq!(out, "");
                said
            },
        );
        assert!(said.contains("  rmdir") && !said.contains("where the time went"), "{said}");
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("report");
        let words = ["-o", file.to_str().unwrap(), "--", "perl", "-e", STEPS, "5"];
        let (_, said) = run(iotomy(&options(observer, &words)));
        assert_eq!(said, "");
        assert!(std::fs::read_to_string(file).unwrap().contains("  rmdir"));
    });
}

#[test]
fn an_interrupt_ends_the_watch_of_a_process_with_the_interval_that_was_begun() {
    each_observer(|observer| {
        let mut sleeper = Command::new("sleep").arg("1000").spawn().unwrap();
        until_blocked_in(sleeper.id(), &SLEEPS);
        let pid = sleeper.id().to_string();
        let mut command = iotomy(&options(observer, &["-q", "--json", "-", "-p", &pid]));
        let mut watching = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut reader = BufReader::new(watching.stdout.take().unwrap());
        // The first comes while the watch goes on.
        let mut text = String::new();
        reader.read_line(&mut text).unwrap();
        kill(Pid::from_raw(watching.id().cast_signed()), Signal::SIGINT).unwrap();
        reader.read_to_string(&mut text).unwrap();
        assert!(watching.wait().unwrap().success());
        sleeper.kill().unwrap();
        sleeper.wait().unwrap();
        let records = lines(&text);
        assert!(records.len() >= 2);
        let is_last = |record: &Trace| record.interval.unwrap().is_last;
        let (last, others) = records.split_last().unwrap();
        assert!(is_last(last) && !others.iter().any(is_last));
        // It sleeps all the time: in progress at each end.
        assert_eq!(sum(&records, "clock_nanosleep", |call| call.calls), 0);
        assert!(records[0].calls.iter().all(|call| call.in_flight == 1), "{:?}", records[0].calls);
    });
}

#[test]
fn an_interval_of_no_length_and_a_live_view_with_intervals_are_refused() {
    let status = |words: &[&str]| iotomy(words).output().unwrap().status.code();
    assert_eq!(status(&["trace", "-i", "0", "--", "true"]), Some(2));
    assert_eq!(status(&["trace", "-i", "1", "--live", "--", "true"]), Some(2));
}

/// A pipe that gives two bytes at once, and nothing for as long as the watch goes on.
const TWO_AND_A_WAIT: &str = "pipe R, W; syswrite W, 'xy'; sysread R, $_, 1; sysread R, $_, 1; \
                              while ($n++ < shift) { select undef, undef, undef, 0.05 } sysread R, $_, 1";

#[test]
fn the_mean_of_an_interval_is_of_calls_that_returned_in_it() {
    if !has("perl") {
        return;
    }
    each_observer(|observer| {
        let script =
            format!("timeout 1 perl -e \"{}\" 4; true", TWO_AND_A_WAIT.replace('$', "\\$"));
        let command = ["-q", "--json", "-", "--", "sh", "-c", &script];
        let (text, _) = run(iotomy(&options(observer, &command)));
        let reads = |record: &Trace| -> Vec<Call> {
            let rows =
                record.calls.iter().filter(|call| call.syscall == "read" && call.exec == "perl");
            rows.cloned().collect()
        };
        let records = lines(&text);
        let waiting: Vec<Call> = records
            .iter()
            .flat_map(reads)
            .filter(|row| row.calls == 0 && row.in_flight == 1)
            .collect();
        assert!(!waiting.is_empty(), "{records:?}");
        for row in waiting {
            let ended = row.ended();
            assert_eq!((ended.calls, ended.wall_ns, ended.max_ns), (0, 0, 0), "{row:?}");
        }
    });
}
