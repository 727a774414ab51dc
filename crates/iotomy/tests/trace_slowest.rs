//! The slowest calls, each whole.

use crate::support;

use iotomy_record::{Trace, WakeContext, WholeCall};
use support::{
    Tracing, bpf, children, doubled_until, each_observer, has, iotomy, state, status, traced, until,
};

/// Sleeps of 1 to 100 ms in no order, by calls of one name.
const SLEEPS: &str = "select undef, undef, undef, (1 + $_ * 37 % 100) / 1000 for 1..100";

#[test]
fn the_slowest_are_kept_and_no_others() {
    if !has("perl") {
        return;
    }
    each_observer(|observer| {
        let options = ["--slowest", "7", "--call", "select,pselect6"];
        let record = traced(observer, &options, &["perl", "-e", SLEEPS]).record();
        let walls: Vec<u64> = record.slowest.iter().map(|call| call.wall_ns).collect();
        assert_eq!(walls.len(), 7);
        for (wall, ms) in walls.iter().zip((94..=100).rev()) {
            // A sleep lasts no less than it was asked to; late, it may pass another.
            assert!(*wall >= ms * 1_000_000, "{walls:?}");
        }
        // The longest of all that were counted is the first.
        let longest = record.calls.iter().map(|call| call.max_ns).max();
        assert_eq!(longest, walls.first().copied());
        for call in &record.slowest {
            assert_eq!((call.returned, &call.error), (0, &None));
            assert_eq!(call.thread, "perl", "{call:?}");
            assert_eq!(call.tid, call.pid);
            assert!(call.start_ns + call.wall_ns <= record.wall_ns + 1_000_000_000, "{call:?}");
            assert!(call.arguments.len() >= 5, "{call:?}");
        }
        // One that was over before it began, on a CPU that was held up, did not block.
        let blocked: u64 = record.slowest.iter().filter_map(|call| call.blocked_ns).sum();
        assert_eq!(blocked > 0, observer == "bpf", "{:?}", record.slowest);
    });
}

#[test]
fn a_call_is_told_whole() {
    each_observer(|observer| {
        let folder = tempfile::tempdir().unwrap();
        let fifo = folder.path().join("fifo");
        nix::unistd::mkfifo(&fifo, nix::sys::stat::Mode::S_IRWXU).unwrap();
        // The other end is opened 0.2 s after `cat` has been seen asleep in its call.
        let script = "exec 3<&0; (read word <&3; sleep 0.2; echo hello > fifo) & cat fifo nowhere";
        let options = ["--slowest", "100", "--call", "openat,open,read"];
        let mut tracing = Tracing::new(observer, &options, &["sh", "-c", script]);
        tracing.command.current_dir(folder.path());
        let mut watching = tracing.start();
        let below = |pid: u32| children(pid).into_iter().chain([pid]);
        let is_asleep = |pid: &u32| {
            status(*pid, "Name").is_some_and(|name| name == "cat") && state(*pid) == Some('S')
        };
        until("cat waits for the other end", || {
            children(watching.pid()).into_iter().flat_map(below).find(is_asleep)
        });
        watching.say("\n");
        let traced = watching.end();
        let record = traced.record();
        // With fewer than there is room for, all are kept: the short ones, too.
        assert!(record.slowest.len() < 100, "{}", record.slowest.len());
        let path = fifo.canonicalize().unwrap();
        let of_cat = |is: &dyn Fn(&WholeCall) -> bool| {
            let found = record.slowest.iter().find(|call| call.exec == "cat" && is(call));
            found.unwrap_or_else(|| panic!("{:#?}", record.slowest))
        };
        let opened = of_cat(&|call| {
            call.syscall.starts_with("open") && call.path.as_deref() == path.to_str()
        });
        assert!(opened.wall_ns > 100_000_000, "{opened:?}");
        assert!(opened.returned > 2 && opened.error.is_none() && opened.bytes.is_none());
        assert!(opened.arguments.len() >= 3, "{opened:?}");
        let read = of_cat(&|call| call.syscall == "read" && call.bytes == Some(6));
        assert_eq!(read.path.as_deref(), path.to_str());
        assert_eq!(read.arguments[0], opened.returned.unsigned_abs());
        let is_nowhere =
            |call: &WholeCall| call.path.as_deref().is_some_and(|path| path.ends_with("nowhere"));
        assert_eq!(of_cat(&is_nowhere).error.as_deref(), Some("ENOENT"));
        let text = traced.stderr();
        assert!(text.contains("slowest call") && text.contains(" = ENOENT: "), "{text}");
        if observer != "bpf" {
            assert_eq!(opened.woken_by, None);
            return;
        }
        // The shell that opens the other end.
        let waker = opened.woken_by.as_ref().unwrap();
        assert_eq!(waker.thread, "sh", "{waker:?}");
        let is_made = record.processes.iter().any(|one| one.pid == waker.tid);
        assert!(is_made && waker.tid != opened.pid, "{waker:?}");
        assert!([WakeContext::Thread, WakeContext::Unknown].contains(&waker.context), "{waker:?}");
        assert_eq!(waker.syscall.as_deref(), Some(opened.syscall.as_str()));
        assert!(text.contains(&format!("sh ({})", waker.tid)), "{text}");
    });
}

/// Sleeps of 31 to 40 ms, in rounds.
const ROUNDS: &str =
    "for (1..shift) { for (1..10) { select undef, undef, undef, (30 + $_) / 1000 } }";

/// The records of intervals of so many rounds, with the slowest sleeps of each, and the report.
fn intervals(observer: &str, slowest: &str, rounds: u32) -> (Vec<Trace>, String) {
    let options = ["trace", "--observer", observer, "-i", "0.1", "--slowest", slowest];
    let choice = ["--call", "select,pselect6", "--json", "-"];
    let rounds = rounds.to_string();
    let command = ["--", "perl", "-e", ROUNDS, &rounds];
    let output = iotomy(&[&options[..], &choice, &command].concat()).output().unwrap();
    let text = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{text}");
    let lines = String::from_utf8(output.stdout).unwrap();
    (lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect(), text)
}

#[test]
fn an_interval_has_the_slowest_calls_that_returned_in_it() {
    if !has("perl") {
        return;
    }
    each_observer(|observer| {
        let has_some = |record: &&Trace| !record.slowest.is_empty();
        let has_several =
            |(records, _): &(Vec<Trace>, _)| records.iter().filter(has_some).count() >= 3;
        let (records, text) =
            doubled_until(2, has_several, |rounds| intervals(observer, "2", rounds));
        for record in &records {
            let slowest = &record.slowest;
            assert!(slowest.len() <= 2, "{slowest:#?}");
            assert!(slowest.is_sorted_by_key(|call| std::cmp::Reverse(call.wall_ns)));
            let interval = record.interval.unwrap();
            for call in slowest.iter().filter(|_| !interval.is_last) {
                let end_ns = interval.start_ns + record.wall_ns;
                assert!(call.start_ns + call.wall_ns <= end_ns, "{call:?} {interval:?}");
                assert_eq!(call.exec, "perl");
            }
        }
        let longest = records.iter().flat_map(|one| &one.calls).map(|call| call.max_ns).max();
        let kept = records.iter().flat_map(|one| &one.slowest).map(|call| call.wall_ns).max();
        assert_eq!(longest, kept, "the longest of all is the slowest of its interval");
        let tables = text.matches("slowest call").count();
        assert_eq!(tables, records.iter().filter(has_some).count(), "{text}");
    });
}

#[test]
fn with_room_for_all_calls_each_is_in_one_interval() {
    if !has("perl") {
        return;
    }
    each_observer(|observer| {
        let has_several = |(records, ..): &(Vec<Trace>, _)| records.len() >= 4;
        let (records, rounds) = doubled_until(2, has_several, |rounds| {
            (intervals(observer, "100", rounds).0, rounds as usize)
        });
        let calls = records.iter().flat_map(|record| &record.slowest);
        let mut starts: Vec<u64> = calls.map(|call| call.start_ns).collect();
        assert_eq!(starts.len(), rounds * 10);
        starts.sort_unstable();
        starts.dedup();
        assert_eq!(starts.len(), rounds * 10, "no call is in two");
    });
}

#[test]
fn a_timer_is_no_thread() {
    if !support::bpf() {
        return;
    }
    let options = ["--slowest", "1", "--call", "nanosleep,clock_nanosleep"];
    let record = traced("bpf", &options, &["sleep", "0.2"]).record();
    let waker = record.slowest[0].woken_by.clone().unwrap();
    assert_ne!(waker.context, WakeContext::Thread, "{waker:?}");
}

#[test]
fn more_than_there_is_room_for_are_refused() {
    let output = support::iotomy(&["trace", "--slowest", "101", "--", "true"]).output().unwrap();
    let refused = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{refused}");
    assert!(refused.contains("101") && refused.contains("100"), "{refused}");
}

/// A loop of events beside a thread that waits for another one, and a file that is written to.
const WAITS: &str = r#"
import os, select, threading, time
r, w = os.pipe(); e = select.epoll(); e.register(r, select.EPOLLIN)
lock = threading.Lock(); lock.acquire()
thread = threading.Thread(target=lock.acquire); thread.start()
e.poll(0.3); select.select([r], [], [], 0.3); lock.release(); thread.join()
os.write(w, b'x')
"#;

#[test]
fn waits_for_work_are_left_out_unless_they_are_chosen() {
    if !has("python3") {
        return;
    }
    each_observer(|observer| {
        let names = |options: &[&str]| -> Vec<String> {
            let record = traced(observer, options, &["python3", "-c", WAITS]).record();
            record.slowest.into_iter().map(|call| call.syscall).collect()
        };
        let is_wait = |name: &String| {
            ["epoll_wait", "epoll_pwait", "pselect6", "select", "futex"].contains(&&**name)
        };
        let usual = names(&["--slowest", "100"]);
        assert!(!usual.is_empty() && !usual.iter().any(is_wait), "{observer}: {usual:?}");
        for options in [&["--call", "%poll,futex"][..], &["--where", "duration > 100ms"]] {
            let chosen = names(&[&["--slowest", "100"], options].concat());
            assert!(chosen.iter().any(is_wait), "{observer} {options:?}: {chosen:?}");
        }
    });
}

const CALLS: &str = r#"
#include <unistd.h>
__attribute__((noinline)) int inner(int fd) { return write(fd, "x", 1) + 1; }
__attribute__((noinline)) int outer(int fd) { return inner(fd) + 1; }
int main(void) { return outer(1) - 3; }
"#;

#[test]
fn the_functions_that_a_call_was_made_in_are_named() {
    if !bpf() || !has("cc") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let (source, program) = (folder.path().join("calls.c"), folder.path().join("calls"));
    std::fs::write(&source, CALLS).unwrap();
    let options = ["-O1", "-fno-omit-frame-pointer", "-fno-optimize-sibling-calls"];
    let mut compiler = support::bare("cc", &options);
    let built = compiler.arg(&source).arg("-o").arg(&program).status();
    assert!(built.unwrap().success());
    let program = program.to_str().unwrap();
    let traced = traced("bpf", &["--slowest", "1", "--call", "write"], &[program]);
    let record = traced.record();
    let callers = &record.slowest[0].callers;
    let function = |at: usize| callers.get(at).and_then(|one| one.function.as_deref());
    assert!(function(0).is_some_and(|name| name.contains("write")), "{callers:#?}");
    assert!(callers[0].file.as_deref().unwrap().contains("libc"), "{callers:#?}");
    // Whether the C library's function has moved the stack by then is the library's affair.
    let of_program: Vec<&str> = callers
        .iter()
        .filter(|one| one.file.as_deref() == Some(program))
        .filter_map(|one| one.function.as_deref())
        .collect();
    assert!(of_program.ends_with(&["outer", "main"]), "{callers:#?}");
    let has_gap = callers.iter().any(|one| one.function.is_none() && one.file.is_none());
    assert_ne!(of_program.first() == Some(&"inner"), has_gap, "{callers:#?}");
    let text = traced.stderr().split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(text.contains("in ") && text.contains("outer < main"), "{text}");
}

#[test]
fn without_the_helper_that_finds_mappings_calls_have_no_callers() {
    if !bpf() {
        return;
    }
    let words = ["trace", "-q", "--slowest", "1", "--json", "-", "--", "true"];
    let output = support::iotomy(&words).env("IOTOMY_REFUSE", "helper=180:EINVAL").output();
    let output = output.unwrap();
    assert!(output.status.success(), "{output:?}");
    let record: iotomy_record::Trace = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(record.slowest.len(), 1);
    assert!(record.slowest[0].callers.is_empty());
    let missing = &record.observer.missing;
    assert!(missing.iter().any(|one| one.feature == "bpf_find_vma"), "{missing:?}");
}
