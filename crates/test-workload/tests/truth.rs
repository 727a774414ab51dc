//! Truth: every observer watches a program that makes an exactly known number of calls, and must
//! report exactly that number.
//!
//! Each test runs every registered observer. An observer that does not work here is skipped; the
//! skip is printed with the reason and counted. Watches wait for children of this process, so the
//! tests run one at a time.

use crate::harness;

use std::process::Command;
use std::time::Duration;

use harness::{command, each_observer, subject, truth, watch};
use iotomy_observe::Request;
use iotomy_record::{Exit, FileKind};

#[test]
fn calls_of_one_thread_are_counted_exactly() {
    truth(&["getppid", "23"], |watched| {
        assert_eq!(watched.calls("getppid"), 23);
        assert_eq!(watched.row("getppid").return_log2.total(), 23);
        assert_eq!(watched.row("getppid").wall_log2.total(), 23);
        assert_eq!(watched.processes.len(), 1);
        assert_eq!(watched.processes[0].exec, "iotomy-workload");
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
        let counted = (watched.calls("getppid"), watched.errors("getppid", "EACCES"));
        assert_eq!(counted, (46, 23), "{:?}", watched.observer);
        assert_eq!(watched.row("getppid").wall_log2.total(), 46);
        assert_eq!(watched.observer.incomplete_calls, 0);
    });
}

#[test]
fn calls_that_seccomp_answers_with_success_are_counted() {
    truth(&["answered", "23"], |watched| {
        let row = watched.row("getppid");
        assert_eq!((row.calls, row.errors), (23, 0), "{:?}", watched.observer);
        assert_eq!(row.return_log2.zero, 23);
        assert_eq!(watched.observer.incomplete_calls, 0);
    });
}

#[test]
fn calls_that_a_supervisor_answers_are_counted() {
    truth(&["notified", "23"], |watched| {
        let row = watched.row("getppid");
        assert_eq!((row.calls, row.errors), (46, 23), "{:?}", watched.observer);
        assert_eq!(row.error_kinds["EACCES"], 23);
        assert_eq!(row.return_log2.buckets[2], 23, "the value 7");
        assert_eq!(watched.observer.incomplete_calls, 0);
    });
}

#[test]
fn what_seccomp_does_is_counted_as_strace_counts_it() {
    for way in [["refused", "7"], ["answered", "7"], ["notified", "7"]] {
        let Some(counts) = harness::strace(subject(), &way) else { return };
        truth(&way, |watched| {
            assert_eq!(watched.counts()["getppid"], counts["getppid"], "{way:?}");
        });
    }
}

/// The bytes of a call, and of all files.
fn bytes(watched: &harness::Watched, call: &str) -> u64 {
    watched.row(call).bytes
}

#[test]
fn the_bytes_of_several_messages_are_those_of_all() {
    truth(&["messages", "23"], |watched| {
        assert_eq!((watched.calls("sendmmsg"), bytes(watched, "sendmmsg")), (23, 23 * 600));
        assert_eq!((watched.calls("recvmmsg"), bytes(watched, "recvmmsg")), (23, 23 * 600));
        let sockets = || watched.files.iter().filter(|file| file.kind == FileKind::Socket);
        assert_eq!(sockets().map(|file| file.read_bytes).sum::<u64>(), 23 * 600);
        assert_eq!(sockets().map(|file| file.write_bytes).sum::<u64>(), 23 * 600);
    });
}

#[test]
fn what_is_looked_at_or_cut_off_is_not_among_the_bytes() {
    truth(&["peeked", "23"], |watched| {
        assert_eq!(bytes(watched, "write"), 3 * 23 * 1000);
        for call in ["recvfrom", "recvmsg", "recvmmsg"] {
            assert_eq!((watched.calls(call), bytes(watched, call)), (46, 230), "{call}");
        }
        let sockets = || watched.files.iter().filter(|file| file.kind == FileKind::Socket);
        assert_eq!(sockets().map(|file| file.read_bytes).sum::<u64>(), 3 * 230);
        assert_eq!(sockets().map(|file| file.read_calls).sum::<u64>(), 3 * 46);
    });
}

#[test]
fn children_that_may_not_be_traced_are_counted_or_told_of() {
    truth(&["untraced", "6"], |watched| {
        let told = watched.observer.untraced_tasks;
        match watched.observer.name.as_str() {
            "bpf" => assert_eq!((watched.calls("getppid"), told), (6 * 23, 0)),
            _ => assert_eq!((watched.calls("getppid"), told), (0, 6)),
        }
    });
}

#[test]
fn a_file_that_is_renamed_is_counted_under_each_of_its_names() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let script = "cd \"$0\" && exec 3> log && echo one >&3 && mv log log.1 && echo second >&3 && \
        echo x > a.tmp && mv a.tmp a && cat a log.1 && mkdir d && mv a d/a && cat d/a && mv d/a a && cat a && \
        mkdir e && echo yy > e/f && mv e g && cat g/f";
    each_observer(|observer| {
        let arguments = ["-c", script, folder.path().to_str().unwrap()];
        let watched = watch(observer, &command("/bin/sh", &arguments));
        assert_eq!(watched.exit, Some(Exit::Code(0)));
        let use_of = |name: &str| {
            let of = path(name);
            let files = || watched.files.iter().filter(|file| file.path == of);
            (
                files().map(|file| file.read_bytes).sum::<u64>(),
                files().map(|file| file.write_bytes).sum::<u64>(),
            )
        };
        let name = observer.declaration().name;
        assert_eq!(use_of("log"), (0, 4), "{name}: {:#?}", watched.files);
        assert_eq!(use_of("log.1"), (11, 7), "{name}: {:#?}", watched.files);
        assert_eq!(use_of("a.tmp"), (0, 2), "{name}: {:#?}", watched.files);
        assert_eq!(use_of("a"), (4, 0), "{name}: {:#?}", watched.files);
        assert_eq!(use_of("d/a"), (2, 0), "{name}: {:#?}", watched.files);
        assert_eq!(use_of("e/f"), (0, 3), "{name}: {:#?}", watched.files);
        assert_eq!(use_of("g/f"), (3, 0), "{name}: {:#?}", watched.files);
        for entry in ["log.1", "a", "d", "g/f", "g"] {
            let _ = std::fs::remove_file(path(entry));
            let _ = std::fs::remove_dir(path(entry));
        }
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
fn a_call_in_flight_is_in_no_mean_and_in_no_maximum() {
    truth(&["thread-dies"], |watched| {
        let row = watched.row("readv");
        assert_eq!((row.calls, row.in_flight, row.open_ns), (0, 1, Some(row.wall_ns)), "{row:?}");
        let ended = row.ended();
        assert_eq!((ended.calls, ended.wall_ns, ended.max_ns), (0, 0, 0), "{row:?}");
        for row in watched.calls.iter().filter(|row| row.in_flight == 0) {
            assert_eq!(row.ended().max_ns, row.wall_times.max_ns, "{row:?}");
            assert_eq!(row.open_ns, None);
        }
    });
}

#[test]
fn a_sleep_takes_its_time_and_a_long_read_takes_cpu_time() {
    truth(&["sleep", "400"], |watched| {
        let row = watched.row("nanosleep");
        assert_eq!(row.calls, 1);
        assert!(row.wall_ns >= 400_000_000 && row.max_ns == row.wall_ns);
        // On a busy machine it may have run queue delay before it blocks and after it is woken; that is not part of the
        // blocked time.
        if let (Some(blocked_ns), Some(on_cpu_ns)) = (row.blocked_ns, row.on_cpu_ns) {
            assert!(blocked_ns >= 200_000_000 && on_cpu_ns * 4 <= blocked_ns, "{row:?}");
        }
    });
    truth(&["spin-read", "100"], |watched| {
        let row = watched.row("read");
        let process = &watched.processes[0];
        assert!(process.user_ns + process.system_ns >= 100_000_000, "{process:?}");
        if let (Some(on_cpu_ns), Some(blocked_ns)) = (row.on_cpu_ns, row.blocked_ns) {
            assert!(on_cpu_ns >= 80_000_000 && blocked_ns * 4 <= on_cpu_ns, "{row:?}");
        }
        assert!(process.max_rss_bytes >= 16 << 20);
    });
}

/// Keeps this thread, and what it starts, from being preempted by the programs of others, where that is allowed.
///
/// When a wake-up preempts a thread, the kernel counts its time to that wake-up, and the observer to the switch, which comes
/// some microseconds later: beside a program that wakes thousands of times a second that is a tenth of the time.
fn before_all_others() {
    let tid = rustix::thread::gettid().to_string();
    let _ = Command::new("chrt").args(["--fifo", "--pid", "1", &tid]).output();
}

/// Only one of the two figures includes the time that interrupts and a hypervisor take from a CPU, so they may differ
/// by the amount that the kernel counts for those. The kernel counts in ticks, so only one run of five must agree.
#[test]
fn time_on_a_cpu_is_what_the_scheduler_says_it_is() {
    before_all_others();
    each_observer(|observer| {
        if !observer.declaration().splits_time {
            return;
        }
        let agrees = || {
            let taken_ns = harness::taken_ns();
            let watched = watch(observer, &command(subject(), &["spin-read", "100"]));
            let taken_ns = harness::taken_ns() - taken_ns;
            let ledger = &watched.ledger[0];
            let (row, process) = (watched.row("read"), &watched.processes[0]);
            let by_kernel_ns = process.user_ns + process.system_ns;
            let booked_ns = ledger.user_ns + ledger.calls_on_cpu_ns;
            let most_ns = by_kernel_ns / 100 * 105 + taken_ns;
            let is_the_call_s = row.on_cpu_ns.is_some_and(|ns| ns <= most_ns);
            let apart_ns = booked_ns.abs_diff(by_kernel_ns).saturating_sub(taken_ns);
            if is_the_call_s && apart_ns * 50 <= ledger.thread_ns + 50_000_000 {
                return Ok(());
            }
            Err(format!("{row:?} {ledger:?} {process:?}, {taken_ns} ns taken"))
        };
        let mut said = Vec::new();
        while let Err(error) = agrees() {
            said.push(error);
            assert!(said.len() < 5, "{said:#?}");
        }
    });
}

#[test]
fn a_call_without_room_for_all_its_rows_is_lost_as_a_whole() {
    each_observer(|observer| {
        // Calls that return, fail and block find their tables full in turn.
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
        // If the command has not reached its sleep, or the watch its end, within that duration, the next try is longer.
        let tries = [100, 400, 1_600, 6_400].map(|ms: u64| {
            move || {
                let mut target = command(subject(), &["sleep", &(4 * ms).to_string()]);
                target.duration = Some(Duration::from_millis(ms));
                watch(observer, &target)
            }
        });
        let mut watched = tries.into_iter().map(|run| run());
        let in_time = |watched: &harness::Watched| {
            assert_eq!(watched.exit, Some(Exit::Code(0)));
            (watched.calls("nanosleep"), watched.in_flight("nanosleep")) == (0, 1)
        };
        let watched = watched.find(in_time).expect("a watch that ends before the command");
        assert_eq!(watched.observer.incomplete_calls, 1);
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
fn no_more_time_is_booked_than_the_processors_have() {
    // All CPUs of the machine: under a quota fewer CPUs run for longer, and for a moment more than
    // one.
    let stat = std::fs::read_to_string("/proc/stat").unwrap();
    let is_cpu = |line: &&str| line.starts_with("cpu") && !line.starts_with("cpu ");
    let cpus = stat.lines().filter(is_cpu).count() as u64;
    each_observer(|observer| {
        if !observer.declaration().splits_time {
            return;
        }
        let watched = watch(observer, &command(subject(), &["threads", "64", "20000"]));
        let row = &watched.ledger[0];
        let booked = row.user_ns + row.calls_on_cpu_ns;
        let there_is = watched.wall_ns * cpus;
        assert!(booked <= there_is + there_is / 20, "{booked} of {there_is}: {row:?}");
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
        // The language's startup code polls the three standard streams.
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
    // Excludes threads: how often their allocations call the kernel is random.
    for arguments in [&["forks", "5"][..], &["vforks", "5"], &["execs", "3"], &["errors"]] {
        let Some(expected) = harness::strace(subject(), arguments) else { return };
        truth(arguments, |watched| assert_eq!(watched.counts(), expected, "{arguments:?}"));
    }
}
