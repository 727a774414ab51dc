//! The end of a watch by a call (`--until`): on the first call that fulfils the condition, with a status
//! that tells.

use crate::support;

use std::process::{Child, Command, Stdio};

use iotomy_record::Exit;
use iotomy_record::store::{Record, parse_record};
use support::{Traced, Tracing, bpf, each_observer, has, iotomy, text, traced};

const ENDED_BY_CALL: i32 = 3;

/// Writes 1 to 3,000 bytes, one after another, and says that it has come to its end.
const WRITES: &str = "open F, '>', '/dev/null'; for (1..3000) { syswrite F, 'x' x $_ } print 'done'; \
                      exit 7";

fn calls(traced: &Traced, name: &str) -> u64 {
    traced.record().calls.iter().filter(|row| row.syscall == name).map(|row| row.calls).sum()
}

#[test]
fn the_first_call_that_fulfils_it_ends_the_watch_and_the_command_runs_on() {
    if !has("perl") {
        return;
    }
    each_observer(|observer| {
        let options = ["--call", "write", "--until", "bytes == 1234 || bytes > 1300"];
        let traced = traced(observer, &options, &["perl", "-e", WRITES]);
        assert_eq!(traced.code(), ENDED_BY_CALL, "{}", traced.stderr());
        assert_eq!(traced.stdout(), "done");
        let record = traced.record();
        assert_eq!(record.exit, Some(Exit::Code(7)));
        assert_eq!(record.view.until, "bytes == 1234 || bytes > 1300");
        let end = record.ended_by.as_ref().unwrap();
        assert_eq!((&*end.call.syscall, end.call.bytes), ("write", Some(1234)));
        assert_eq!((&*end.call.exec, end.call.path.as_deref()), ("perl", Some("/dev/null")));
        assert_eq!((end.call.arguments.len(), end.call.arguments[2]), (3, 1234));
        assert_eq!((end.count, end.sum_bytes, end.sum_duration_ns), (None, None, None));
        // Not one more is counted.
        assert_eq!(calls(&traced, "write"), 1234);
        let bytes: u64 = record.calls.iter().map(|row| row.bytes).sum();
        assert_eq!(bytes, (1..=1234).sum::<u64>());
        assert!(end.call.start_ns + end.call.wall_ns <= record.wall_ns);
        let stderr = traced.stderr();
        assert!(stderr.contains("ended by") && stderr.contains("write in perl ("), "{stderr}");
    });
}

#[test]
fn sums_are_of_the_counted_calls() {
    if !has("perl") {
        return;
    }
    each_observer(|observer| {
        let all = ["perl", "-e", WRITES];
        for (options, writes, sums) in [
            (&["--call", "write", "--until", "count() >= 1000"][..], 1000, (Some(1000), None)),
            (
                &["--where", "bytes > 100 && call == \"write\"", "--until", "count() == 5"],
                5,
                (Some(5), None),
            ),
            (&["--call", "write", "--until", "sum(bytes) > 1M"], 1448, (None, Some(1_049_076))),
            (
                &[
                    "--where",
                    "call == \"write\"",
                    "--until",
                    "sum(bytes) / count() >= 100 && bytes % 2",
                ],
                199,
                (Some(199), Some(19_900)),
            ),
        ] {
            let traced = traced(observer, options, &all);
            assert_eq!(traced.code(), ENDED_BY_CALL, "{options:?} {}", traced.stderr());
            let end = traced.record().ended_by.clone().unwrap();
            assert_eq!(calls(&traced, "write"), writes, "{options:?}");
            assert_eq!((end.count, end.sum_bytes), sums, "{options:?}");
            let asked = if sums.0.is_some() { "count() was " } else { "sum(bytes) was 1.00 MiB" };
            // The line may be wrapped.
            let stderr = traced.stderr().split_whitespace().collect::<Vec<_>>().join(" ");
            assert!(stderr.contains(asked), "{stderr}");
        }
    });
}

#[test]
fn a_command_that_no_call_ends_the_watch_of_keeps_its_status() {
    if !has("perl") {
        return;
    }
    each_observer(|observer| {
        let options = ["--until", "call == \"write\" && bytes > 1M"];
        let traced = traced(observer, &options, &["perl", "-e", WRITES]);
        assert_eq!(traced.code(), 7);
        assert_eq!(traced.record().ended_by, None);
        assert!(traced.stderr().contains("no call fulfilled"), "{}", traced.stderr());
    });
}

#[test]
fn a_slow_call_is_the_one_that_was_slow() {
    if !has("perl") {
        return;
    }
    // Asleep for 1, 2, … tenths of a second.
    let script = "for (1..9) { rmdir '/nope' for (1..50); select undef, undef, undef, 0.1 * $_ }";
    each_observer(|observer| {
        let options = ["--until", "duration > 350ms"];
        let traced = traced(observer, &options, &["perl", "-e", script]);
        assert_eq!(traced.code(), ENDED_BY_CALL, "{}", traced.stderr());
        let end = traced.record().ended_by.clone().unwrap();
        assert!(end.call.wall_ns > 350_000_000, "{end:?}");
        // Unless the machine kept one waiting, it is the fourth.
        assert!(calls(&traced, "rmdir") <= 200 && calls(&traced, "rmdir").is_multiple_of(50));
    });
}

/// A process that is ended with the test.
struct Running(Child);

impl Running {
    fn new(program: &str, arguments: &[&str]) -> Self {
        let mut command = Command::new(program);
        command.args(arguments).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        Self(command.spawn().unwrap())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn of_a_running_process_the_status_says_whether_a_call_ended_the_watch() {
    if !has("perl") {
        return;
    }
    each_observer(|observer| {
        let idle = Running::new("sleep", &["600"]);
        let pid = idle.0.id().to_string();
        let options = ["-p", &pid, "-d", "0.2", "--until", "errno == ENOTDIR"];
        let ended = Tracing::new(observer, &options, &[]).run();
        assert_eq!((ended.code(), &ended.record().ended_by), (1, &None));
        let script = "for (;;) { rmdir '/etc/hostname/x'; select undef, undef, undef, 0.01 }";
        let busy = Running::new("perl", &["-e", script]);
        let pid = busy.0.id().to_string();
        // Without a limit to the time, and with one that is far away.
        for limit in [&[][..], &["-d", "600"]] {
            let options = [&["-p", &pid, "--until", "errno == ENOTDIR"], limit].concat();
            let ended = Tracing::new(observer, &options, &[]).run();
            assert_eq!(ended.code(), ENDED_BY_CALL, "{}", ended.stderr());
            let end = ended.record().ended_by.clone().unwrap();
            assert_eq!(end.call.error.as_deref(), Some("ENOTDIR"));
            assert_eq!(end.call.path.as_deref(), Some("/etc/hostname/x"));
            assert_eq!(end.call.pid, busy.0.id());
        }
    });
}

#[test]
fn of_all_processes_the_first_is_found_and_hardly_any_more_counted() {
    if !bpf() || !has("perl") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().canonicalize().unwrap().join("nowhere");
    let path = path.to_str().unwrap();
    let condition = format!("errno == ENOENT && path == \"{path}\"");
    let counted = "call == \"rmdir\"";
    let options = ["-a", "--where", counted, "--until", &condition];
    let watch = Tracing::new("bpf", &options, &[]).start();
    // They flood it, whenever it begins.
    const FLOODS: u64 = 4;
    let script = format!("1 while rmdir('{path}') || 1");
    let flood = |_| Running::new("perl", &["-e", &script]);
    let floods: Vec<Running> = (0..FLOODS).map(flood).collect();
    let ended = watch.end();
    drop(floods);
    assert_eq!(ended.code(), ENDED_BY_CALL, "{}", ended.stderr());
    let end = ended.record().ended_by.clone().unwrap();
    assert_eq!((end.call.path.as_deref(), &*end.call.exec), (Some(path), "perl"));
    // Others may have returned at the same moment, on other CPUs, or have been interrupted there.
    assert!(calls(&ended, "rmdir") <= FLOODS, "{} of {FLOODS}", calls(&ended, "rmdir"));
}

#[test]
fn a_thread_that_floods_it_is_stopped_at_its_first_call() {
    if !has("perl") {
        return;
    }
    each_observer(|observer| {
        let script = "for (1..20000) { rmdir '/nope/nope' }";
        let options = ["--until", "call == \"rmdir\" && errno == ENOENT"];
        let traced = traced(observer, &options, &["perl", "-e", script]);
        assert_eq!((traced.code(), calls(&traced, "rmdir")), (ENDED_BY_CALL, 1));
    });
}

#[test]
fn what_is_not_counted_ends_nothing() {
    if !has("perl") {
        return;
    }
    let script = "rmdir '/nope'; chdir '/nope'; rmdir '/nope'";
    each_observer(|observer| {
        for filter in [["--call", "chdir"], ["--where", "call == \"chdir\""]] {
            let options = [&filter[..], &["--until", "errno == ENOENT"]].concat();
            let traced = traced(observer, &options, &["perl", "-e", script]);
            let end = traced.record().ended_by.clone().unwrap();
            assert_eq!((&*end.call.syscall, calls(&traced, "rmdir")), ("chdir", 0));
        }
    });
}

#[test]
fn the_last_interval_names_the_call() {
    if !has("perl") {
        return;
    }
    each_observer(|observer| {
        let words = ["trace", "--observer", observer, "-i", "60", "--json", "-"];
        let script = WRITES.replace("print 'done';", "");
        let rest = ["--until", "bytes == 77", "--", "perl", "-e", &script];
        let output = iotomy(&[&words[..], &rest].concat()).output().unwrap();
        assert_eq!(output.status.code(), Some(ENDED_BY_CALL));
        let lines = text(&output.stdout[..]);
        let last = lines.lines().last().unwrap();
        let Record::Trace(record) = parse_record(last.as_bytes()).unwrap() else {
            panic!("{last}")
        };
        assert_eq!(record.ended_by.unwrap().call.bytes, Some(77));
        let stderr = text(&output.stderr[..]);
        assert!(stderr.contains("ended the watch") && stderr.contains("ended by"), "{stderr}");
    });
}

#[test]
fn mistakes_are_told_at_their_place() {
    for (option, condition, place, said) in [
        ("--until", "byte > 5", "^^^^", "did you mean `bytes`"),
        ("--until", "count > 5", "^^^^^", "write count()"),
        ("--until", "sum(fd) > 5", "^^", "write sum(bytes) or sum(duration)"),
        ("--until", "duration > 10", "", ""),
        ("--where", "count() > 5", "^^^^^", "unknown function `count`"),
        ("--until", "call == \"raed\"", "^^^^^^", "no call has this name"),
        ("--until", "call == \"ring:reed\"", "^^^^^^^^^^^", "no call has this name"),
    ] {
        let output = iotomy(&["trace", option, condition, "true"]).output().unwrap();
        let stderr = text(&output.stderr[..]);
        if said.is_empty() {
            assert_ne!(output.status.code(), Some(2), "{stderr}");
            continue;
        }
        assert_eq!(output.status.code(), Some(2), "{condition}: {stderr}");
        assert!(stderr.contains(place) && stderr.contains(said), "{condition}: {stderr}");
        assert!(stderr.starts_with(&format!("iotomy: {option}: ")), "{stderr}");
    }
}
