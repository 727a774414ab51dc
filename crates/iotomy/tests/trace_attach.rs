//! `iotomy trace -p PID` and `-a`.

use crate::support;

use std::fs;
use std::process::Stdio;
use std::time::Instant;

use nix::sys::signal::Signal;
use support::{
    BackgroundProcess, Need, Traced, Tracing, Watching, bare, bpf, count, count_of, doubled_until,
    each_observer, has, iotomy, is_polling, perl_with_threads, program, root, skip, state, status,
    until, until_watching,
};

/// Rows for all that others may begin on this machine while its CPUs are theirs.
const ROWS: &str = "1000000";

/// Threads blocked in a read; upon a line, 23 calls each, a child with 7, and the end upon another.
const THREADS: &str = r#"
    use threads; $| = 1; pipe my $from, my $to or die;
    my @threads = map { threads->create(sub { sysread $from, my $byte, 1; getppid for 1..23 }) } 1..3;
    print "ready\n"; <STDIN>;
    syswrite $to, "xxx"; $_->join for @threads;
    if (!fork) { getppid for 1..7; exit } wait;
    print "done\n"; <STDIN>;
"#;

fn attach(observer: &str, options: &[&str], pid: u32) -> Watching {
    let pid_text = pid.to_string();
    let options = [&["-p", &pid_text], options].concat();
    let watching = Tracing::new(observer, &options, &[]).start();
    until_watching(&watching, observer, pid);
    watching
}

fn is_well(process: &BackgroundProcess) {
    until("it is free and asleep", || {
        let free = status(process.pid(), "TracerPid")? == "0";
        (free && state(process.pid()) == Some('S')).then_some(())
    });
}

#[test]
fn a_running_process_is_watched_with_its_threads_and_children_to_its_end() {
    if !perl_with_threads() {
        return;
    }
    each_observer(|observer| {
        let (mut subject, _) = BackgroundProcess::ready(&["perl", "-e", THREADS]);
        let watching = attach(observer, &[], subject.pid());
        subject.say("\n");
        assert_eq!(subject.line(), "done");
        let pid = subject.pid();
        assert_eq!(subject.end(), 0);
        let traced = watching.end();
        assert_eq!(traced.code(), 0, "{}", traced.stderr());
        let record = traced.record();
        assert_eq!(count(&record, "getppid"), 3 * 23 + 7, "{observer}");
        assert_eq!(record.observer.lost_events, 0);
        // Four threads were in a call when the watch began.
        assert_eq!(record.observer.incomplete_calls, 4, "{observer}");
        assert_eq!((record.exit, record.command.len()), (None, 0));
        let first = &record.processes[0];
        assert_eq!((first.pid, first.exec.as_str(), first.threads), (pid, "perl", 4));
        assert_eq!(first.argv[..2], ["perl", "-e"]);
        assert_eq!(record.processes[1].ppid, pid);
        assert!(record.still_running.is_empty());
    });
}

#[test]
fn an_interrupt_ends_the_watch_and_leaves_the_process_as_it_was() {
    if !perl_with_threads() {
        return;
    }
    each_observer(|observer| {
        for signal in [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP] {
            let (mut subject, _) = BackgroundProcess::ready(&["perl", "-e", THREADS]);
            let watching = attach(observer, &[], subject.pid());
            watching.signal(signal);
            let traced = watching.end();
            assert_eq!(traced.code(), 0, "{observer} {signal}");
            assert!(traced.stderr().contains("watched for"), "{}", traced.stderr());
            let record = traced.record();
            assert_eq!(record.still_running.len(), 1, "{:?}", record.still_running);
            assert_eq!(record.still_running[0].pid, subject.pid());
            is_well(&subject);
            subject.say("\n");
            assert_eq!(subject.line(), "done", "{observer}");
            assert_eq!(subject.end(), 0);
        }
    });
}

#[test]
fn a_duration_ends_the_watch_and_leaves_the_process_as_it_was() {
    if !has("perl") {
        return;
    }
    each_observer(|observer| {
        let busy = r#"$| = 1; print "$$\n"; getppid while 1"#;
        let (subject, _) = BackgroundProcess::ready(&["perl", "-e", busy]);
        let pid = subject.pid().to_string();
        // How much it does meanwhile is a matter of the machine.
        let record = doubled_until(
            1,
            |record| count(record, "getppid") > 100,
            |fifths| {
                let (began, fifths) = (Instant::now(), f64::from(fifths));
                let seconds = (fifths / 5.0).to_string();
                let traced = support::traced(observer, &["-p", &pid, "-d", &seconds], &[]);
                assert_eq!(traced.code(), 0);
                // The time until the first thread is watched is part of the duration.
                assert!(began.elapsed().as_secs_f64() >= fifths / 5.0, "{observer}");
                traced.record()
            },
        );
        // One may be under way when the watch begins, and one when it ends.
        assert!(record.observer.incomplete_calls <= 2);
        until("it is free and runs", || {
            let free = status(subject.pid(), "TracerPid")? == "0";
            (free && state(subject.pid()) == Some('R')).then_some(())
        });
    });
}

#[test]
fn a_watch_that_ignores_a_hang_up_is_not_ended_by_one() {
    if !has("perl") {
        return;
    }
    each_observer(|observer| {
        let asks = r#"$| = 1; print "$$\n"; <STDIN>; getppid for 1..23; print "done\n"; <STDIN>"#;
        let (mut subject, _) = BackgroundProcess::ready(&["perl", "-e", asks]);
        let pid = subject.pid().to_string();
        let mut tracing = Tracing::new(observer, &["-p", &pid], &[]);
        let mut nohup = bare("perl", &["-e", "$SIG{HUP} = 'IGNORE'; exec @ARGV"]);
        nohup.arg(tracing.command.get_program()).args(tracing.command.get_args());
        tracing.command = nohup;
        let watching = tracing.start();
        until_watching(&watching, observer, subject.pid());
        watching.signal(Signal::SIGHUP);
        // Taken from the descriptor, where it is pending until then.
        until("it has taken the signal", || {
            let pending = status(watching.pid(), "ShdPnd")?;
            (u64::from_str_radix(&pending, 16).unwrap() == 0).then_some(())
        });
        subject.say("\n");
        assert_eq!(subject.line(), "done");
        assert_eq!(subject.end(), 0);
        assert_eq!(count(&watching.end().record(), "getppid"), 23, "{observer}");
    });
}

#[test]
fn what_cannot_be_attached_to_is_an_error_in_a_line() {
    let nobody = fs::read_to_string("/proc/sys/kernel/pid_max").unwrap();
    each_observer(|observer| {
        for pid in [nobody.trim(), "2147483647"] {
            let output = iotomy(&["trace", "--observer", observer, "-p", pid]).output().unwrap();
            let error = String::from_utf8(output.stderr).unwrap();
            assert_eq!(output.status.code(), Some(2), "{error}");
            let said = format!("iotomy: cannot attach to process {pid}: No such process");
            assert!(error.starts_with(&said), "{error}");
            assert_eq!(error.lines().count(), 1);
        }
    });
    for pid in ["0", "-1", "4294967296", "x", ""] {
        let output = iotomy(&["trace", "-p", pid]).output().unwrap();
        assert_eq!(output.status.code(), Some(2));
        assert!(!output.stderr.is_empty());
    }
}

#[test]
fn what_has_ended_and_iotomy_itself_cannot_be_attached_to() {
    each_observer(|observer| {
        let mut zombie = bare("true", &[]).spawn().unwrap();
        until("it is a zombie", || (state(zombie.id()) == Some('Z')).then_some(()));
        let pid = zombie.id().to_string();
        let output = iotomy(&["trace", "--observer", observer, "-p", &pid]).output().unwrap();
        let error = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{observer}: {error}");
        let said = format!(
            "iotomy: cannot attach to process {pid}: it has ended, and stays a zombie until its parent, \
             process {}, waits for it; list the processes with `ps -e`",
            std::process::id()
        );
        assert_eq!(error.trim_end(), said, "{observer}");
        zombie.wait().unwrap();
        // A shell that becomes iotomy has its id.
        let script = format!("exec \"$0\" trace --observer {observer} -p $$ -d 1");
        let output = bare("sh", &["-c", &script, support::IOTOMY]).output().unwrap();
        let error = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{observer}: {error}");
        assert!(error.contains(": it is iotomy itself, which never watches itself; "), "{error}");
        assert_eq!(error.lines().count(), 1, "{error}");
    });
}

#[test]
fn a_process_of_any_name_is_watched_and_its_name_harms_no_terminal() {
    if !has("perl") {
        return;
    }
    // Of a kernel's name at most 15 bytes: a line break, a pattern, an escape, a bracket, and no UTF-8.
    const SCRIPT: &str = r#"
        $| = 1; $0 = "a\nb*) Z\e[31m\xff"; print "ready\n"; <STDIN>; getppid for 1..23; print "done\n"; <STDIN>;
    "#;
    each_observer(|observer| {
        let (mut subject, _) = BackgroundProcess::ready(&["perl", "-e", SCRIPT]);
        let watching = attach(observer, &["--threads"], subject.pid());
        subject.say("\n");
        assert_eq!(subject.line(), "done");
        assert_eq!(subject.end(), 0);
        let traced = watching.end();
        assert_eq!(traced.code(), 0, "{observer}: {}", traced.stderr());
        let record = traced.record();
        assert_eq!(count(&record, "getppid"), 23, "{observer}");
        assert_eq!(record.threads[0].name, "a\nb*) Z\u{1b}[31m\\xff", "{observer}");
        let text = traced.stderr();
        assert!(text.contains("a\\nb*) Z\\x1b[31m\\xff"), "{observer}: {text}");
        for line in text.lines() {
            assert_eq!(iotomy_record::printable(line, true), line, "{observer}");
        }
    });
}

/// Some kernels keep their first process from BPF, and from ptrace.
#[test]
fn a_process_that_the_kernel_hides_is_refused_and_not_shown_as_idle() {
    each_observer(|observer| {
        let words = ["trace", "--observer", observer, "-p", "1", "-d", "0.1", "-q", "--json", "-"];
        let output = iotomy(&words).output().unwrap();
        let error = String::from_utf8(output.stderr).unwrap();
        if output.status.success() {
            let record = iotomy_record::store::parse_trace(&output.stdout).unwrap();
            return assert_eq!(record.processes[0].pid, 1, "{observer}");
        }
        assert_eq!(output.status.code(), Some(2), "{observer}: {error}");
        let refusals = [
            "iotomy: cannot watch process 1: the kernel does not show it to BPF programs; try --observer ptrace",
            "iotomy: cannot attach to process 1: ",
        ];
        assert!(refusals.iter().any(|said| error.starts_with(said)), "{observer}: {error}");
    });
}

#[test]
fn a_thread_of_the_kernel_cannot_be_attached_to() {
    if status(2, "Name").is_none_or(|name| name != "kthreadd") {
        skip(Need::Machine, "process 2 is no kernel thread here");
        return;
    }
    each_observer(|observer| {
        let output = iotomy(&["trace", "--observer", observer, "-p", "2"]).output().unwrap();
        let error = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{observer}: {error}");
        assert!(error.starts_with("iotomy: cannot attach to process 2: "), "{error}");
        assert!(error.contains("; watch the whole machine with `iotomy trace -a`"), "{error}");
    });
    // It has no -a of its own that it could name.
    if bpf() {
        let output = iotomy(&["anatomy", "-p", "2"]).output().unwrap();
        let error = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{error}");
        assert!(error.contains("; watch the whole machine with `iotomy trace -a`"), "{error}");
    }
}

#[test]
fn a_thread_that_is_not_the_first_stands_for_its_process_or_is_refused() {
    if !perl_with_threads() {
        return;
    }
    each_observer(|observer| {
        let (mut subject, _) = BackgroundProcess::ready(&["perl", "-e", THREADS]);
        let tasks = fs::read_dir(format!("/proc/{}/task", subject.pid())).unwrap();
        let tids = tasks.map(|task| task.unwrap().file_name().into_string().unwrap());
        let last = tids.max_by_key(|tid| tid.parse::<u32>().unwrap()).unwrap();
        let traced = support::traced(observer, &["-p", &last, "-d", "0.05"], &[]);
        let error = traced.stderr();
        match traced.code() {
            0 => assert_eq!(traced.record().processes[0].pid, subject.pid(), "{observer}"),
            code => {
                assert_eq!(code, 2);
                assert!(error.starts_with("iotomy: cannot attach to process"), "{error}");
                assert!(error.contains(&subject.pid().to_string()), "{observer}: {error}");
            }
        }
        subject.say("\n");
        assert_eq!(subject.line(), "done");
    });
}

#[test]
fn a_process_that_ends_meanwhile_is_an_end_or_an_error_and_never_a_hang() {
    each_observer(|observer| {
        for moment in 0..8 {
            let seconds = format!("0.{:03}", moment * 15);
            let mut subject = bare("sleep", &[&seconds]).spawn().unwrap();
            let pid = subject.id().to_string();
            // A zombie for a while, when it ends before this process asks for it.
            let traced = support::traced(observer, &["-p", &pid], &[]);
            subject.wait().unwrap();
            assert!(matches!(traced.code(), 0 | 2), "{observer}: {}", traced.stderr());
            assert_eq!(traced.code() == 0, traced.json().exists(), "{}", traced.stderr());
            if traced.code() == 0 {
                traced.record();
            }
        }
    });
}

#[test]
fn an_exec_in_an_attached_process_begins_a_new_image() {
    each_observer(|observer| {
        let script = "echo ready; read line; exec sh -c 'exit 3'";
        let (mut subject, _) = BackgroundProcess::ready(&["sh", "-c", script]);
        let watching = attach(observer, &[], subject.pid());
        subject.say("go\n");
        assert_eq!(subject.end(), 3);
        let record = watching.end().record();
        let argv: Vec<&str> =
            record.processes.iter().map(|p| p.argv.last().unwrap().as_str()).collect();
        assert_eq!(argv, [script, "exit 3"], "{observer}");
    });
}

#[test]
fn the_machine_is_watched_but_for_iotomy_itself() {
    if !bpf() || !has("perl") {
        return;
    }
    let asks = r#"$| = 1; print "$$\n"; <STDIN>; getppid for 1..23; print "done\n"; <STDIN>"#;
    let (mut before, _) = BackgroundProcess::ready(&["perl", "-e", asks]);
    let watching = Tracing::new("bpf", &["-a", "--max-rows", ROWS], &[]).start();
    until_watching(&watching, "bpf", 0);
    before.say("\n");
    assert_eq!(before.line(), "done");
    let (mut after, _) = BackgroundProcess::ready(&["perl", "-e", asks]);
    after.say("\n");
    assert_eq!(after.line(), "done");
    let (own, pids) = (watching.pid(), [before.pid(), after.pid()]);
    watching.signal(Signal::SIGINT);
    let traced = watching.end();
    assert_eq!(traced.code(), 0);
    let record = traced.record();
    for pid in pids {
        assert_eq!(count_of(&record, pid, "getppid"), 23);
        assert!(record.still_running.iter().any(|running| running.pid == pid));
    }
    assert!(record.processes.iter().all(|process| process.pid != own));
    assert!(record.ledger.iter().all(|row| row.pid != own));
    assert_eq!((record.exit, record.observer.lost_events), (None, 0));
}

#[test]
fn a_watch_of_the_machine_ends_after_its_duration() {
    if !bpf() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let path = program(folder.path(), "seen-by-all", b"#!/bin/sh\nread never\n");
    let (_before, _) = BackgroundProcess::ready(&["sh", "-c", "echo ready; read never"]);
    let watch = |halves: u32| {
        let (began, seconds) = (Instant::now(), f64::from(halves) / 2.0);
        let words = ["-a", "--max-rows", ROWS, "-d", &seconds.to_string()];
        let traced = Tracing::new("bpf", &words, &[]).start();
        until("it watches or is over", || {
            (is_polling(traced.pid()) || state(traced.pid()) == Some('Z')).then_some(())
        });
        let mut after = bare(path.to_str().unwrap(), &[]).stdin(Stdio::piped()).spawn().unwrap();
        let traced = traced.end();
        assert!(began.elapsed().as_secs_f64() >= seconds);
        drop(after.stdin.take());
        let pid = after.id();
        after.wait().unwrap();
        (traced, pid)
    };
    // Where it had not begun when the time was up, it takes longer here.
    let has_begun = |(traced, pid): &(Traced, u32)| {
        traced.record().processes.iter().any(|p| p.pid == *pid && p.exec == "seen-by-all")
    };
    let (traced, _) = doubled_until(1, has_begun, watch);
    assert!(traced.record().view.machine);
    assert!(traced.stderr().starts_with("the machine, "), "{}", traced.stderr());
}

#[test]
fn a_process_that_ended_before_a_watch_of_the_machine_is_no_part_of_it() {
    if !bpf() {
        return;
    }
    let mut ended = bare("true", &[]).spawn().unwrap();
    let pid = ended.id();
    until("it has ended", || (state(pid) == Some('Z')).then_some(()));
    let watching = Tracing::new("bpf", &["-a", "--max-rows", ROWS], &[]).start();
    until_watching(&watching, "bpf", 0);
    ended.wait().unwrap();
    watching.signal(Signal::SIGINT);
    let record = watching.end().record();
    assert!(record.processes.iter().all(|process| process.pid != pid));
    assert_eq!(record.observer.lost_events, 0);
}

#[test]
fn nothing_is_lost_of_a_machine_on_which_processes_end_as_its_watch_begins() {
    if !bpf() {
        return;
    }
    let endless = "echo ready; while :; do /bin/true; done";
    // By others' leave: on one CPU, three of them would keep the watch from its work for minutes.
    let _busy =
        [(); 3].map(|()| BackgroundProcess::ready(&["nice", "-n", "19", "sh", "-c", endless]));
    // One in eight of such watches met a thread between its last moments, before that was mended.
    for _ in 0..20 {
        let options = ["-a", "-d", "0.03", "--max-rows", ROWS];
        let record = Tracing::new("bpf", &options, &[]).start().end().record();
        assert_eq!(record.observer.lost_events, 0);
    }
}

#[test]
fn the_machine_cannot_be_watched_by_ptrace() {
    let output = iotomy(&["trace", "--observer", "ptrace", "-a"]).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    let error = String::from_utf8(output.stderr).unwrap();
    assert!(error.contains("the whole machine") && error.contains("bpf"), "{error}");
    assert_eq!(error.lines().count(), 1);
}

#[test]
fn another_users_process_is_refused_without_privilege() {
    if !root() || !has("setpriv") {
        return;
    }
    let folder = support::for_everyone();
    let (subject, _) = BackgroundProcess::ready(&["sh", "-c", "echo ready; read never"]);
    let mut command = support::as_nobody(folder.path());
    let output = command.args(["trace", "-p", &subject.pid().to_string()]).output().unwrap();
    let error = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{error}");
    let last = error.lines().last().unwrap();
    assert!(last.contains("EPERM") && last.contains("root"), "{error}");
    let mut command = support::as_nobody(folder.path());
    let words = ["trace", "--observer", "ptrace", "-p", &subject.pid().to_string()];
    let error = String::from_utf8(command.args(words).output().unwrap().stderr).unwrap();
    assert!(error.contains("Operation not permitted") && error.contains("root"), "{error}");
}

/// A process whose first thread has ended while another one writes.
const LEADERLESS: &str = r#"
import ctypes, os, threading, time
def work():
    while True: os.write(out, b"x"); time.sleep(0.001)
out = os.open("/dev/null", os.O_WRONLY)
threading.Thread(target=work).start()
print("ready", flush=True)
ctypes.CDLL(None).syscall(60, 0)
"#;

#[test]
fn a_process_whose_first_thread_has_ended_is_watched() {
    if !has("python3") {
        return;
    }
    let (subject, _) = BackgroundProcess::ready(&["python3", "-c", LEADERLESS]);
    let pid = subject.pid().to_string();
    let state = || std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    while !state().contains(") Z ") {
        std::thread::yield_now();
    }
    each_observer(|observer| {
        let words = ["trace", "--observer", observer, "-p", &pid, "-d", "0.3", "-q", "--json", "-"];
        let output = iotomy(&words).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        let record = iotomy_record::store::parse_trace(&output.stdout).unwrap();
        assert!(
            record.calls.iter().any(|row| row.syscall == "write" && row.calls > 0),
            "{observer}"
        );
    });
}
