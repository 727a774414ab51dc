//! Truth: every observer watches a program that does exactly so many of a thing, and must have
//! counted exactly so many.
//!
//! Each test runs every registered observer. One that does not work here is skipped, which is
//! printed with the reason and counted. Watches wait for children of this process, so the tests
//! take turns.

mod harness;

use std::time::Duration;

use harness::{Watched, command, each_observer, subject, watch};
use iotomy_observe::{ObserveError, Request, Target};
use iotomy_record::{Exit, FileKind};
use iotomy_sys::launch::{Credentials, LaunchError};

/// Watches the subject and looks at what every observer makes of it.
fn truth(arguments: &[&str], check: impl Fn(&Watched)) {
    each_observer(|observer| {
        let watched = watch(observer, &command(subject(), arguments));
        assert_eq!(watched.exit, Some(Exit::Code(0)), "{watched:?}");
        assert!(watched.still_running.is_empty());
        check(&watched);
    });
}

#[test]
fn calls_of_one_thread_are_counted_exactly() {
    truth(&["getppid", "23"], |watched| {
        assert_eq!(watched.calls("getppid"), 23);
        assert_eq!(watched.row("getppid").return_log2.total(), 23);
        assert_eq!(watched.row("getppid").wall_log2.total(), 23);
        assert_eq!(watched.processes.len(), 1);
        assert_eq!(watched.processes[0].exec, "iotomy-subject");
        assert_eq!(watched.processes[0].argv[1..], ["getppid", "23"]);
        assert_eq!(watched.processes[0].ppid, std::process::id());
        assert_eq!(watched.processes[0].threads, 1);
        assert!(watched.processes[0].max_rss_bytes > 0 && watched.processes[0].minor_faults > 0);
        assert_eq!(watched.calls("execve"), 1, "the one that made the image");
        assert_eq!((watched.calls("exit_group"), watched.in_flight("exit_group")), (0, 1));
        assert_eq!(watched.observer.incomplete_calls, 0);
        assert_eq!(watched.observer.lost_events, 0);
        assert!(watched.observer.cost_ns_per_call > 0.0);
    });
}

#[test]
fn errors_are_counted_by_name() {
    truth(&["errors"], |watched| {
        assert_eq!(watched.errors("openat", "ENOENT"), 23);
        assert_eq!(watched.errors("readv", "EBADF"), 7);
        assert_eq!((watched.calls("readv"), watched.row("readv").errors), (7, 7));
        assert_eq!(watched.row("readv").return_log2.total(), 0);
        assert_eq!(watched.row("readv").bytes, 0);
    });
}

#[test]
fn a_32_bit_call_of_a_64_bit_program_is_named_by_its_own_table() {
    truth(&["int80", "23"], |watched| {
        assert_eq!(watched.calls("getpid(i386)"), 23);
        assert_eq!(watched.calls("writev"), 0, "20 is another call in the other table");
    });
}

#[test]
fn a_32_bit_call_names_its_descriptor_in_its_own_register() {
    truth(&["int80-write", "23"], |watched| {
        assert_eq!(watched.calls("write(i386)"), 23);
        let pipes: Vec<_> = watched.files.iter().filter(|f| f.kind == FileKind::Pipe).collect();
        assert_eq!(pipes.len(), 1, "not the decoy: {pipes:?}");
        assert_eq!((pipes[0].write_calls, pipes[0].read_calls), (23, 23));
    });
}

#[test]
fn calls_that_seccomp_refuses_are_counted() {
    truth(&["refused", "23"], |watched| {
        assert_eq!((watched.calls("getppid"), watched.errors("getppid", "EACCES")), (46, 23));
        assert_eq!(watched.row("getppid").wall_log2.total(), 46);
        assert_eq!(watched.observer.incomplete_calls, 0);
    });
}

#[test]
fn bytes_are_summed_and_laid_out_in_buckets() {
    truth(&["pipe", "23", "5000"], |watched| {
        let write = watched.row("write");
        assert_eq!((write.calls, write.bytes, write.return_log2.buckets[12]), (23, 115_000, 23));
        assert_eq!(watched.row("read").return_log2.buckets[12], 23);
        let pipes: Vec<_> = watched.files.iter().filter(|f| f.kind == FileKind::Pipe).collect();
        assert_eq!(pipes.iter().map(|file| file.write_bytes).sum::<u64>(), 115_000);
        assert_eq!(pipes.iter().map(|file| file.read_bytes).sum::<u64>(), 115_000);
        assert_eq!(pipes.iter().map(|file| file.read_calls).sum::<u64>(), 23);
        assert!(pipes.iter().all(|file| file.path.starts_with("pipe:[")));
    });
}

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
        // The first image has its own making and that of its successor, the last has none.
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
    });
}

#[test]
fn a_stopped_child_stays_stopped_until_it_is_continued() {
    truth(&["stopped", "23"], |watched| assert_eq!(watched.calls("getppid"), 23));
}

#[test]
fn a_sleep_takes_its_time_and_a_long_read_takes_cpu_time() {
    truth(&["sleep", "100"], |watched| {
        let row = watched.row("nanosleep");
        assert_eq!(row.calls, 1);
        assert!(row.wall_ns >= 100_000_000 && row.max_ns == row.wall_ns);
        // On a busy machine it may wait for a CPU once it is woken; that is not part of the sleep.
        if let (Some(blocked_ns), Some(on_cpu_ns)) = (row.blocked_ns, row.on_cpu_ns) {
            assert!(blocked_ns >= 95_000_000 && on_cpu_ns <= 5_000_000, "{row:?}");
        }
    });
    truth(&["spin-read", "100"], |watched| {
        let row = watched.row("read");
        let process = &watched.processes[0];
        assert!(process.user_ns + process.system_ns >= 100_000_000, "{process:?}");
        if let (Some(on_cpu_ns), Some(blocked_ns)) = (row.on_cpu_ns, row.blocked_ns) {
            assert!(on_cpu_ns >= 95_000_000, "{row:?}");
            assert!(blocked_ns <= 5_000_000, "{row:?}");
        }
        assert!(process.max_rss_bytes >= 16 << 20);
    });
}

/// What interrupts and a hypervisor take of a CPU is in the one and not in the other: where a
/// neighbour takes much, one run of five without it must do.
#[test]
fn time_on_a_cpu_is_what_the_scheduler_says_it_is() {
    each_observer(|observer| {
        let agrees = || {
            let watched = watch(observer, &command(subject(), &["spin-read", "100"]));
            let Some(ledger) = watched.ledger.first() else { return Ok(()) };
            let (row, process) = (watched.row("read"), &watched.processes[0]);
            let by_kernel_ns = process.user_ns + process.system_ns;
            let booked_ns = ledger.user_ns + ledger.calls_on_cpu_ns;
            let is_the_call_s = row.on_cpu_ns.is_some_and(|ns| ns * 100 <= by_kernel_ns * 105);
            let apart_ns = booked_ns.abs_diff(by_kernel_ns);
            if is_the_call_s && apart_ns * 50 <= ledger.thread_ns + 50_000_000 {
                return Ok(());
            }
            Err(format!("{row:?} {ledger:?} {process:?}"))
        };
        let mut said = Vec::new();
        while let Err(error) = agrees() {
            said.push(error);
            assert!(said.len() < 5, "{said:#?}");
        }
    });
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
        let target = command(subject(), &["outlive", "300"]);
        let left = watch(observer, &target);
        assert_eq!(left.exit, Some(Exit::Code(0)));
        assert_eq!(left.still_running.len(), 1, "{:?}", left.still_running);
        assert_eq!(left.still_running[0].exec, "iotomy-subject");
        let waited = observer.watch(&Request { wait: true, ..target }).map(Watched).unwrap();
        assert!(waited.still_running.is_empty());
        assert_eq!((waited.calls("nanosleep"), waited.in_flight("nanosleep")), (1, 0));
        assert!(waited.wall_ns < 300_000_000, "the command's own time");
    });
}

#[test]
fn a_call_without_room_for_all_its_rows_is_lost_as_a_whole() {
    each_observer(|observer| {
        // By turns calls that return, fail and sleep find their tables full.
        for rows in 1..12 {
            let watched = watch(
                observer,
                &Request {
                    rows,
                    ..command("/bin/sh", &["-c", "ls / /nope >/dev/null 2>&1; sleep 0.01"])
                },
            );
            for row in &watched.calls {
                let returns = row.return_log2.total() + row.errors;
                assert_eq!((row.wall_log2.total(), returns), (row.calls, row.calls), "{row:?}");
            }
        }
    });
}

#[test]
fn a_duration_ends_the_watch_and_not_the_command() {
    each_observer(|observer| {
        let mut target = command(subject(), &["sleep", "400"]);
        target.duration = Some(Duration::from_millis(100));
        let watched = watch(observer, &target);
        assert_eq!(watched.exit, Some(Exit::Code(0)));
        assert_eq!((watched.calls("nanosleep"), watched.in_flight("nanosleep")), (0, 1));
        assert_eq!(watched.observer.incomplete_calls, 1);
        assert!((50_000_000..400_000_000).contains(&watched.wall_ns));
        assert_eq!(watched.still_running.len(), 1);
    });
}

#[test]
fn only_the_calls_asked_for_are_reported() {
    each_observer(|observer| {
        let mut target = command(subject(), &["int80", "23"]);
        target.calls = Some(["getpid".to_owned()].into());
        let watched = watch(observer, &target);
        assert!(watched.calls.iter().all(|row| row.syscall.starts_with("getpid")));
        assert_eq!(watched.calls("getpid(i386)"), 23);
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
        let target = Request { target: Target::Process(running.pid()), ..command("", &[]) };
        let watched = std::thread::scope(|scope| {
            let watched = scope.spawn(|| observer.watch(&target).map(Watched).unwrap());
            running.let_go_once_watched(observer.declaration().name);
            watched.join().unwrap()
        });
        assert_eq!(running.wait(), 0);
        assert_eq!(watched.calls("getppid"), 46);
        assert_eq!(watched.observer.incomplete_calls, 2, "those its threads were in");
        assert_eq!(watched.calls("read"), 0);
        assert_eq!((watched.exit, watched.processes[0].threads), (None, 2));
        assert_eq!(watched.processes[0].exec, "iotomy-subject");

        let mut running = harness::Running::start(&["on-demand", "23"]);
        let target = Request {
            target: Target::Process(running.pid()),
            duration: Some(Duration::from_millis(50)),
            ..command("", &[])
        };
        let watched = watch(observer, &target);
        assert_eq!(watched.still_running.len(), 1);
        assert_eq!(watched.observer.incomplete_calls, 0, "of those it saw neither end");
        running.let_go();
        assert_eq!(running.wait(), 0, "it goes on after the watch");
    });
}

#[test]
fn a_process_that_makes_threads_while_it_is_attached_to_is_one_image() {
    each_observer(|observer| {
        if observer.declaration().name != "bpf" {
            return; // no ledger
        }
        // It is to outlast ten watches, however long they take to begin, and is then killed.
        let storm = ["thread-storm", "600000"];
        let mut running =
            Killed(std::process::Command::new(subject()).args(storm).spawn().unwrap());
        std::thread::sleep(Duration::from_millis(100));
        for _ in 0..10 {
            let duration = Some(Duration::from_millis(50));
            assert!(running.0.try_wait().unwrap().is_none(), "it still makes threads");
            let target = Target::Process(running.0.id());
            let watched = watch(observer, &Request { target, duration, ..command("", &[]) });
            assert_eq!(watched.processes.len(), 1, "{:#?}", watched.processes);
            assert_eq!(watched.still_running.len(), 1);
            let row = &watched.ledger[0];
            let parts = [row.user_ns, row.calls_on_cpu_ns, row.blocked_ns, row.runnable_ns];
            assert!(parts.iter().all(|part| *part <= row.thread_ns), "{row:?}");
        }
    });
}

/// A process that does not outlive its test, also when that fails.
struct Killed(std::process::Child);

impl Drop for Killed {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn no_more_time_is_booked_than_the_processors_have() {
    let cpus = std::thread::available_parallelism().unwrap().get() as u64;
    truth(&["threads", "64", "20000"], |watched| {
        let Some(row) = watched.ledger.first() else { return };
        let booked = row.user_ns + row.calls_on_cpu_ns;
        let there_is = watched.wall_ns * cpus;
        assert!(booked <= there_is + there_is / 20, "{booked} of {there_is}: {row:?}");
    });
}

#[test]
fn a_process_that_does_not_exist_cannot_be_attached_to() {
    each_observer(|observer| {
        let target = Request { target: Target::Process(u32::MAX >> 2), ..command("", &[]) };
        let error = observer.watch(&target).unwrap_err();
        assert!(matches!(error, ObserveError::Attach { .. }), "{error}");
    });
}

#[test]
fn files_of_one_anonymous_inode_are_told_apart() {
    truth(&["anonymous", "23"], |watched| {
        let of = |name: &str| {
            let rows = watched.files.iter().filter(|file| file.path.contains(name));
            rows.map(|file| (file.read_calls, file.write_calls, file.write_bytes))
                .collect::<Vec<_>>()
        };
        assert_eq!(of("[eventfd]"), [(0, 23, 23 * 8)], "{:?}", watched.files);
        assert_eq!(of("[timerfd]"), [(23, 0, 0)], "{:?}", watched.files);
    });
}

#[test]
fn mappings_of_a_file_are_counted_and_anonymous_ones_are_not() {
    truth(&["maps", "23"], |watched| {
        let own = std::fs::canonicalize(subject()).unwrap();
        let file = watched.files.iter().find(|file| file.path == own.to_str().unwrap()).unwrap();
        assert_eq!((file.map_calls, file.mapped_bytes), (23, 23 * 65536), "{file:?}");
        assert_eq!(file.size_bytes, Some(std::fs::metadata(&own).unwrap().len()));
    });
}

#[test]
fn descriptors_asked_after_and_ready_are_summed() {
    truth(&["polls", "23"], |watched| {
        let poll = watched.row("poll");
        // The language's own start asks after the three standard streams.
        assert_eq!(poll.calls, 24);
        assert_eq!((poll.asked, poll.ready), (Some(23 * 5 + 3), Some(23 * 2)));
    });
}

#[test]
fn a_copy_by_dd_is_counted_block_by_block() {
    let folder = tempfile::tempdir().unwrap();
    let (from, to) = (folder.path().join("from"), folder.path().join("to"));
    std::fs::write(&from, vec![7u8; 4 << 20]).unwrap();
    let arguments = [
        format!("if={}", from.display()),
        format!("of={}", to.display()),
        "bs=8192".to_owned(),
        "status=none".to_owned(),
    ];
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    each_observer(|observer| {
        let watched = watch(observer, &command("/bin/dd", &arguments));
        let (read, write) = (watched.row("read"), watched.row("write"));
        assert_eq!((read.return_log2.buckets[13], write.return_log2.buckets[13]), (512, 512));
        assert_eq!((write.calls, write.bytes), (512, 4 << 20));
        let source = watched.files.iter().find(|file| file.path == from.to_str().unwrap()).unwrap();
        assert_eq!((source.read_calls, source.read_bytes), (513, 4 << 20));
        let target = watched.files.iter().find(|file| file.path == to.to_str().unwrap()).unwrap();
        assert_eq!((target.write_calls, target.write_bytes), (512, 4 << 20));
        assert_eq!((target.kind, target.read_calls), (FileKind::File, 0));
    });
}

#[test]
fn counts_agree_with_strace_call_by_call() {
    // Not of threads: how often their allocations call the kernel is a matter of luck.
    for arguments in [&["forks", "5"][..], &["vforks", "5"], &["execs", "3"], &["errors"]] {
        let Some(expected) = harness::strace(subject(), arguments) else { return };
        truth(arguments, |watched| assert_eq!(watched.counts(), expected, "{arguments:?}"));
    }
}
