//! Truth of processes and threads: which are watched, under which identity, from when on, and how
//! each ends. As in `truth.rs`, every test runs every observer.

use crate::harness;

use std::collections::BTreeMap;
use std::io::Write;
use std::time::Duration;

use harness::{
    Running, Watched, command, each_observer, subject, truth, watch, watch_for_a_while,
    watch_running,
};
use iotomy_observe::{Filter, ObserveError, Request, Target};
use iotomy_record::{Exit, Key};
use iotomy_sys::launch::{Credentials, LaunchError};
use iotomy_test_requirements::Need;

#[test]
fn threads_share_their_process_s_image() {
    truth(&["threads", "23", "23"], |watched| {
        assert_eq!(watched.calls("getppid"), 23 * 23);
        assert_eq!(watched.processes.len(), 1);
        assert_eq!(watched.processes[0].threads, 24);
        assert_eq!(watched.in_flight("exit"), 23);
        assert_eq!(watched.observer.incomplete_calls, 0);
    });
}

#[test]
fn forked_and_vforked_children_are_images_of_their_parent_s_program() {
    for way in ["forks", "vforks"] {
        truth(&[way, "23"], |watched| {
            assert_eq!(watched.calls("getppid"), 23 * 23, "{way}");
            assert_eq!(watched.processes.len(), 24);
            let root = &watched.processes[0];
            for child in &watched.processes[1..] {
                assert_eq!((child.ppid, child.threads), (root.pid, 1));
                assert_eq!((&child.exec, &child.argv), (&root.exec, &root.argv));
                assert_eq!(watched.calls_of(child.pid, "getppid"), 23);
            }
            assert_eq!(watched.calls("clone") + watched.calls("vfork"), 23, "not twice a child");
        });
    }
}

#[test]
fn a_thousand_short_lived_children_are_all_seen() {
    truth(&["children", "1000"], |watched| {
        assert_eq!(watched.calls("getppid"), 1000);
        assert_eq!(watched.processes.len(), 1001);
        assert_eq!(watched.in_flight("exit_group"), 1001);
        assert_eq!(watched.observer.incomplete_calls, 0);
    });
}

#[test]
fn of_many_images_those_that_are_alike_are_put_together_as_they_are_read() {
    each_observer(|observer| {
        let request = command(subject(), &["children", "50"]);
        let watched = watch(observer, &Request { images_apart: 50, ..request.clone() });
        assert_eq!(watched.calls("getppid"), 50);
        let images: u64 = watched.processes.iter().map(|one| u64::from(one.count())).sum();
        assert_eq!(images, 51);
        assert_eq!(watched.in_flight("exit_group"), 51);
        let rows = watched.calls.iter().filter(|row| row.syscall == "getppid");
        let pid = watched.processes[1].pid;
        let rows: Vec<_> = rows.map(|row| (row.pid, row.calls)).collect();
        match observer.declaration().name {
            "bpf" => {
                assert_eq!(rows, [(pid, 50)]);
                // All of its tables say so, or a finding would take the sum for one process.
                assert_eq!((watched.processes.len(), watched.ledger.len()), (2, 2));
                assert_eq!(watched.processes[1].instances, 50);
            }
            // The other one does without.
            _ => assert_eq!((rows.len(), watched.processes.len()), (50, 51)),
        }
        // As many as may be apart are.
        let watched = watch(observer, &Request { images_apart: 51, ..request });
        let rows = watched.calls.iter().filter(|row| row.syscall == "getppid");
        assert_eq!(rows.count(), 50);
    });
}

#[test]
fn a_chain_of_a_hundred_processes_is_followed_to_its_end() {
    truth(&["chain", "100"], |watched| {
        assert_eq!(watched.calls("getppid"), 100);
        assert_eq!(watched.processes.len(), 100);
        let linked = watched.processes.windows(2).all(|pair| pair[1].ppid == pair[0].pid);
        assert!(linked, "each is the child of the one before");
    });
}

#[test]
fn an_exec_begins_a_new_image_and_is_counted_in_the_old_one() {
    truth(&["execs", "23"], |watched| {
        assert_eq!(watched.processes.len(), 24);
        assert_eq!(watched.calls("getppid"), 23);
        assert_eq!(watched.calls("execve"), 24);
        let pid = watched.processes[0].pid;
        for (left, image) in (0..=23).rev().zip(&watched.processes) {
            assert_eq!((image.pid, image.threads), (pid, 1));
            assert_eq!(image.argv[1..], ["execs".to_owned(), left.to_string()]);
        }
        let made = |row: &&iotomy_record::Call| row.syscall == "execve";
        // The first image has the execve that created it and that of its successor; the last has
        // none.
        let counts: Vec<u64> = watched.calls.iter().filter(made).map(|row| row.calls).collect();
        assert_eq!(counts.len(), 23);
        assert_eq!((counts[0], counts[1..].iter().sum::<u64>()), (2, 22));
    });
}

#[test]
fn a_thread_that_dies_inside_a_call_leaves_it_in_flight() {
    truth(&["thread-dies"], |watched| {
        assert_eq!((watched.calls("readv"), watched.in_flight("readv")), (0, 1));
        assert_eq!(watched.row("readv").wall_log2.total(), 0);
        assert_eq!(watched.observer.incomplete_calls, 1);
        assert_eq!(watched.processes[0].threads, 2);
    });
}

#[test]
fn an_exec_by_another_thread_than_the_first_is_followed() {
    truth(&["exec-from-thread"], |watched| {
        assert_eq!(watched.calls("getppid"), 23);
        assert_eq!((watched.calls("pause"), watched.in_flight("pause")), (0, 1));
        assert_eq!(watched.processes.len(), 2);
        assert_eq!(watched.processes[0].pid, watched.processes[1].pid);
        assert_eq!((watched.processes[0].threads, watched.processes[1].threads), (2, 1));
        assert_eq!(watched.observer.incomplete_calls, 1);
    });
}

#[test]
fn handled_signals_are_delivered_untouched() {
    for way in ["signal", "signal-rt"] {
        truth(&[way, "23"], |watched| {
            assert_eq!(watched.calls("kill"), 23);
            assert_eq!(watched.calls("rt_sigreturn"), 23);
        });
    }
}

#[test]
fn an_interrupted_call_returns_what_the_kernel_says() {
    truth(&["interrupted"], |watched| {
        assert_eq!(watched.calls("readv"), 1);
        let kinds = &watched.row("readv").error_kinds;
        assert!(kinds.contains_key("ERESTARTSYS") || kinds.contains_key("EINTR"), "{kinds:?}");
        // Its handler's return leads back to that error, and is none of its own.
        assert_eq!((watched.calls("rt_sigreturn"), watched.row("rt_sigreturn").errors), (1, 0));
    });
}

#[test]
fn a_stopped_child_stays_stopped_until_it_is_continued() {
    truth(&["stopped", "23"], |watched| assert_eq!(watched.calls("getppid"), 23));
}

#[test]
fn death_by_a_signal_is_the_command_s_exit() {
    each_observer(|observer| {
        for signal in [9, 15] {
            let target = command(subject(), &["die", &signal.to_string()]);
            let watched = watch(observer, &target);
            assert_eq!(watched.exit, Some(Exit::Signal(signal)));
        }
    });
}

#[test]
fn children_that_outlive_the_command_are_listed_or_waited_for() {
    each_observer(|observer| {
        // Longer than any machine needs to end a watch; the process is killed afterwards.
        let left = watch(observer, &command(subject(), &["outlive", "600000"]));
        assert_eq!(left.exit, Some(Exit::Code(0)));
        assert_eq!(left.still_running.len(), 1, "{:?}", left.still_running);
        assert_eq!(left.still_running[0].exec, "iotomy-workload");
        harness::kill(left.still_running[0].pid);
        let target = Request { wait: true, ..command(subject(), &["outlive", "2000"]) };
        let waited = observer.watch(&target).map(Watched).unwrap();
        assert!(waited.still_running.is_empty());
        assert_eq!((waited.calls("nanosleep"), waited.in_flight("nanosleep")), (1, 0));
        assert!(waited.wall_ns < waited.row("nanosleep").wall_ns, "the command's own time");
    });
}

#[test]
fn a_program_that_cannot_be_executed_is_an_error_with_its_errno() {
    each_observer(|observer| {
        let error = observer.watch(&command("/etc/passwd", &[])).unwrap_err();
        let ObserveError::Launch(error) = error else { panic!("{error}") };
        assert_eq!(
            error.to_string(),
            "cannot execute /etc/passwd: Permission denied (os error 13)"
        );
        assert!(harness::children().is_empty(), "the one that could not is waited for");
    });
}

#[test]
fn a_command_runs_as_another_user_where_that_is_allowed_and_says_so_where_not() {
    let is_root = harness::user() == 0;
    let uid = if is_root { 65534 } else { 0 };
    let mut target = command("/bin/sleep", &["0"]);
    let Target::Command(command) = &mut target.target else { unreachable!() };
    command.credentials = Some(Credentials { uid, gid: uid, groups: vec![] });
    each_observer(|observer| match observer.watch(&target) {
        Ok(watched) => assert_eq!((is_root, watched.exit), (true, Some(Exit::Code(0)))),
        Err(ObserveError::Launch(LaunchError::Credentials { uid: 0, .. })) => assert!(!is_root),
        Err(error) => panic!("{error}"),
    });
}

#[test]
fn a_script_is_called_by_its_own_name() {
    let folder = tempfile::tempdir().unwrap();
    let script = folder.path().join("a-script-with-a-long-name.sh");
    harness::write_program(&script, "#!/bin/sh\nexit 23\n");
    each_observer(|observer| {
        let watched = watch(observer, &command(&script, &["x"]));
        assert_eq!(watched.exit, Some(Exit::Code(23)));
        assert_eq!(watched.processes[0].exec, "a-script-with-a-long-name.sh");
        assert_eq!(watched.processes[0].argv.last().unwrap(), "x");
    });
}

#[test]
fn a_running_process_is_watched_with_all_its_threads_and_left_running() {
    each_observer(|observer| {
        let mut running = harness::Running::start(&["on-demand", "23"]);
        let target = Request { target: Target::process(running.pid()), ..command("", &[]) };
        let watched = watch_running(observer, &target, &mut running, Running::let_go);
        assert_eq!(running.wait(), 0);
        assert_eq!(watched.calls("getppid"), 46);
        assert_eq!(watched.observer.incomplete_calls, 2, "those its threads were in");
        assert_eq!(watched.calls("read"), 0);
        assert_eq!((watched.exit, watched.processes[0].threads), (None, 2));
        assert_eq!(watched.processes[0].exec, "iotomy-workload");

        let mut running = harness::Running::start(&["on-demand", "23"]);
        let target = Request { target: Target::process(running.pid()), ..command("", &[]) };
        let watched = watch_for_a_while(observer, &target, |one| one.still_running.len() == 1);
        assert_eq!(watched.observer.incomplete_calls, 0, "of those it saw neither end");
        running.let_go();
        assert_eq!(running.wait(), 0, "it goes on after the watch");
    });
}

#[test]
fn a_process_that_was_stopped_before_the_watch_is_blocked_as_stopped() {
    each_observer(|observer| {
        if observer.declaration().name != "bpf" {
            return; // no ledger
        }
        let mut running = harness::Running::start(&["on-demand", "23"]);
        let pid = rustix::process::Pid::from_raw(running.pid().cast_signed()).unwrap();
        let send = |signal| rustix::process::kill_process(pid, signal).unwrap();
        send(rustix::process::Signal::STOP);
        let tasks = format!("/proc/{}/task", running.pid());
        let is_stopped = |task: std::fs::DirEntry| {
            let stat = std::fs::read_to_string(task.path().join("stat")).unwrap();
            stat.rsplit(") ").next().unwrap().starts_with('T')
        };
        while !std::fs::read_dir(&tasks).unwrap().all(|task| is_stopped(task.unwrap())) {
            std::thread::sleep(Duration::from_millis(1));
        }
        let target = Target::process(running.pid());
        let duration = Some(Duration::from_millis(50));
        let watched = watch(observer, &Request { target, duration, ..command("", &[]) });
        send(rustix::process::Signal::CONT);
        running.let_go();
        assert_eq!(running.wait(), 0);
        let [row] = &watched.ledger[..] else { panic!("{:?}", watched.ledger) };
        assert!(row.stopped_ns > 0, "{row:?}");
        assert_eq!((row.stopped_ns, row.stopped_ns), (row.blocked_ns, row.thread_ns));
    });
}

/// An entry shows that the attached process was in no call, so a return without an entry belongs to a refused call, and
/// not to a call from before the watch.
#[test]
fn calls_that_are_refused_are_counted_in_a_process_that_was_in_none() {
    each_observer(|observer| {
        let folder = tempfile::tempdir().unwrap();
        let go = folder.path().join("go");
        std::fs::write(&go, [0]).unwrap();
        let words = ["refused-after-a-spin", "23", go.to_str().unwrap()];
        let mut running = harness::Running::until_ready(&words);
        let target = Request { target: Target::process(running.pid()), ..command("", &[]) };
        let watched = watch_running(observer, &target, &mut running, |_| {
            let mut go = std::fs::OpenOptions::new().write(true).open(&go).unwrap();
            go.write_all(&[1]).unwrap();
        });
        assert_eq!(running.wait(), 0);
        let counted = (watched.calls("getppid"), watched.errors("getppid", "EACCES"));
        assert_eq!(counted, (23, 23), "{:?}", watched.observer);
        assert_eq!(watched.calls("sched_yield"), 1);
        assert_eq!(watched.observer.incomplete_calls, 0);
    });
}

#[test]
fn a_process_that_makes_threads_while_it_is_attached_to_is_one_image() {
    each_observer(|observer| {
        if observer.declaration().name != "bpf" {
            return; // no ledger
        }
        // The process must outlast ten watches, however long they take to start; it is killed
        // afterwards.
        let storm = ["thread-storm", "600000"];
        let mut running =
            Killed(std::process::Command::new(subject()).args(storm).spawn().unwrap());
        let tasks = format!("/proc/{}/task", running.0.id());
        iotomy_test_requirements::wait::until("it makes threads", || {
            std::fs::read_dir(&tasks).unwrap().count() >= 2
        });
        for _ in 0..10 {
            assert!(running.0.try_wait().unwrap().is_none(), "it still makes threads");
            let target = Target::process(running.0.id());
            let request = Request { target, ..command("", &[]) };
            let watched = watch_for_a_while(observer, &request, |one| one.still_running.len() == 1);
            assert_eq!(watched.processes.len(), 1, "{:#?}", watched.processes);
            let row = &watched.ledger[0];
            let parts = [row.user_ns, row.calls_on_cpu_ns, row.blocked_ns, row.runnable_ns];
            assert!(parts.iter().all(|part| *part <= row.thread_ns), "{row:?}");
        }
    });
}

#[test]
fn a_process_that_does_not_exist_cannot_be_attached_to() {
    each_observer(|observer| {
        let target = Request { target: Target::process(u32::MAX >> 2), ..command("", &[]) };
        let error = observer.watch(&target).unwrap_err();
        assert!(matches!(error, ObserveError::Attach { .. }), "{error}");
    });
}

/// A process that is killed at the end of its test, even when the test fails.
struct Killed(std::process::Child);

impl Drop for Killed {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Whether the signal ends the caller or is handled, the caller never sees such a call return.
#[test]
fn calls_in_place_of_which_seccomp_sends_a_signal_are_open_by_every_observer() {
    for (words, open, exit) in [
        (&["trapped", "23"][..], 23, Exit::Code(0)),
        (&["killed-by-seccomp"][..], 1, Exit::Signal(31)),
        (&["thread-killed-by-seccomp"][..], 1, Exit::Code(0)),
    ] {
        each_observer(|observer| {
            let watched = watch(observer, &command(subject(), words));
            let row = watched.row("getppid");
            assert_eq!((row.calls, row.errors, row.in_flight), (0, 0, open), "{words:?}");
            assert_eq!(watched.observer.incomplete_calls, open, "{words:?}");
            assert_eq!(watched.exit, Some(exit), "{words:?}");
        });
    }
}

#[test]
fn numbers_that_no_call_has_are_told_alike_by_every_observer() {
    truth(&["odd-numbers", "23"], |watched| {
        assert_eq!(watched.errors("syscall_500", "ENOSYS"), 23);
        let row = watched.row("syscall_other");
        assert_eq!((row.calls, row.error_kinds["ENOSYS"]), (46, 46));
    });
}

/// Seven calls each time, the x32 one of them among the two of `syscall_other`.
#[test]
fn numbers_that_no_call_has_are_decided_on_as_any_other_by_every_observer() {
    let unnamed = |watched: &Watched| -> BTreeMap<String, u64> {
        let rows = watched.calls.iter().filter(|row| row.syscall.starts_with("syscall_"));
        rows.map(|row| (row.syscall.clone(), row.calls)).collect()
    };
    let all = [
        ("syscall_500", 23),
        ("syscall_511", 23),
        ("syscall_999", 23),
        ("syscall_999(i386)", 23),
        ("syscall_other", 69),
    ];
    let named = |rows: &[(&str, u64)]| -> BTreeMap<String, u64> {
        rows.iter().map(|(name, calls)| ((*name).to_owned(), *calls)).collect()
    };
    let filters: [(Filter, &[(&str, u64)]); 8] = [
        (Filter::default().grouped(&["call".to_owned()]).unwrap(), &all),
        (Filter::default().until("count() > 99999999").unwrap(), &all),
        (Filter::new("pid > 0").unwrap(), &all),
        (Filter::new("fd == -1 && path == \"\" && bytes == 0").unwrap(), &all),
        (Filter::new("call == \"syscall_other\"").unwrap(), &all[1..]),
        (Filter::new("call != \"syscall_other\"").unwrap(), &all[..1]),
        (Filter::new("call == \"syscall_*\" && pid > 0").unwrap(), &all),
        (Filter::new("group == \"%io\" && pid > 0").unwrap(), &[]),
    ];
    each_observer(|observer| {
        let request = command(subject(), &["unnamed-numbers", "23"]);
        for (filter, expected) in &filters {
            let watched = watch(observer, &Request { filter: filter.clone(), ..request.clone() });
            assert_eq!(unnamed(&watched), named(expected), "{filter:?}");
            let rows = watched.by.iter().flat_map(|by| &by.rows);
            let is_unnamed =
                |key: &Key| matches!(key, Key::Text(call) if call.starts_with("syscall_"));
            let grouped: u64 =
                rows.filter(|row| is_unnamed(&row.key[0])).map(|row| row.calls).sum();
            assert_eq!(grouped, if watched.by.is_some() { 7 * 23 } else { 0 });
        }
        let filter = Filter::new("errno == ENOSYS").unwrap();
        let watched = watch(observer, &Request { filter, ..request.clone() });
        assert_eq!(watched.errors("syscall_999", "ENOSYS"), 23);
        assert_eq!(watched.errors("syscall_999(i386)", "ENOSYS"), 23);
        let filter =
            Filter::default().until("errno == ENOSYS && call == \"syscall_other\"").unwrap();
        let watched = watch(observer, &Request { filter, ..request.clone() });
        assert_eq!(watched.ended_by.as_ref().unwrap().call.syscall, "syscall_511");
        for (calls, expected) in [("syscall_other", &all[1..]), ("getppid", &[])] {
            let calls = Some([calls.to_owned()].into());
            let watched = watch(observer, &Request { calls, ..request.clone() });
            assert_eq!(unnamed(&watched), named(expected));
        }
    });
}

/// A thread that is blocked throughout shows no end of its call; a thread that was woken does.
#[test]
fn what_a_thread_was_in_when_the_watch_began_is_told() {
    each_observer(|observer| {
        let request = |running: &harness::Running| Request {
            target: Target::process(running.pid()),
            ..command("", &[])
        };
        let mut running = harness::Running::start(&["on-demand", "23"]);
        let are_both_in_one = |watched: &harness::Watched| {
            watched.calls.iter().map(|row| row.in_flight).sum::<u64>() == 2
        };
        let asleep = watch_for_a_while(observer, &request(&running), are_both_in_one);
        running.let_go();
        assert_eq!(running.wait(), 0);
        assert_eq!(asleep.calls.iter().map(|row| row.calls + row.entered_before).sum::<u64>(), 0);
        if let [ledger] = &asleep.ledger[..] {
            let named: u64 = asleep.calls.iter().filter_map(|row| row.blocked_ns).sum();
            assert_eq!(named, ledger.blocked_ns, "all of it has a name");
        }
        let mut running = harness::Running::start(&["on-demand", "23"]);
        let whole = request(&running);
        let woken = watch_running(observer, &whole, &mut running, Running::let_go);
        assert_eq!(running.wait(), 0);
        assert_eq!(woken.calls.iter().map(|row| row.entered_before).sum::<u64>(), 2);
        assert_eq!(woken.observer.incomplete_calls, 2);
    });
}

#[test]
fn sleep_in_page_faults_is_told_apart() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("mapped");
    let mut file = std::fs::File::create(&path).unwrap();
    file.write_all(&vec![1; 256 * 4096]).unwrap();
    file.sync_all().unwrap();
    truth(&["touches", path.to_str().unwrap()], |watched| {
        let [ledger] = &watched.ledger[..] else { return };
        let in_calls: u64 = watched.calls.iter().filter_map(|row| row.blocked_ns).sum();
        assert_eq!(ledger.fault_ns, Some(ledger.blocked_ns - in_calls));
        if watched.processes[0].major_faults < 23 {
            return harness::skip(Need::Machine, "this file system keeps its files in memory");
        }
        assert!(ledger.fault_ns > Some(0), "{:?}", watched.processes);
    });
}

#[test]
fn the_capacity_is_the_cpus_that_the_threads_might_use() {
    let nproc = std::process::Command::new("nproc").env_remove("OMP_NUM_THREADS").output();
    let all: u32 = String::from_utf8(nproc.unwrap().stdout).unwrap().trim().parse().unwrap();
    for (command, cpus) in [("getppid", all), ("pinned", 1)] {
        truth(&[command, "23"], |watched| {
            let capacity = watched.cpu_capacity.unwrap();
            assert_eq!(capacity.affinity, cpus, "{command}");
            let least = capacity.quota.unwrap_or(f64::MAX).min(cpus.into());
            assert_eq!(capacity.cpus, least);
        });
    }
}
