//! Truth of ring operations: a program makes an exactly known number of requests by each way that they can take, and
//! an observer that sees rings must report exactly that number; one that does not, none.
//!
//! Watches wait for children of this process, so the tests run one at a time.

use crate::harness;

use harness::rings::{N, file, rings, rings_of};
use harness::{Need, Running, command, each_observer, skip, subject, watch, watch_running};
use iotomy_observe::{Request, Target};
use iotomy_record::{Exit, FileKind};
use iotomy_sys::nop_ring::NopRing;

#[test]
fn what_is_there_is_read_by_the_thread_that_submits() {
    rings("inline", |rings| {
        let read = rings.of("read");
        assert_eq!((read.submitted, read.completed, read.inline), (N, N, N));
        assert_eq!((read.bytes, read.errors, read.wall_times.total()), (100 * N, 0, N));
        assert_eq!((read.registered_files, read.forced_async, read.unlinked), (0, 0, 0));
        assert!(read.max_ns > 0 && read.wall_ns >= read.max_ns);
        // From 64 to 127 bytes.
        assert_eq!((read.result_log2.buckets[6], read.result_log2.total()), (N, N));
        assert_eq!(rings.sums.len(), 1);
        assert_eq!(rings.watched.calls("io_uring_enter"), N);
        // The page that the subject wrote before by a call of its own.
        assert_eq!(file(&rings.watched, FileKind::File), [N, 100 * N, 1, 4096]);
    });
}

#[test]
fn many_requests_of_one_submission_are_each_counted() {
    rings("batch", |rings| {
        let nop = rings.of("nop");
        assert_eq!((nop.submitted, nop.completed, nop.inline, nop.bytes), (N, N, N, 0));
        assert_eq!(nop.result_log2.total(), 0);
        assert_eq!(rings.watched.calls("io_uring_enter"), 1);
    });
}

#[test]
fn registered_files_and_buffers_are_those_of_the_file() {
    rings("fixed", |rings| {
        let (read, write) = (rings.of("read_fixed"), rings.of("write_fixed"));
        assert_eq!((read.completed, read.bytes), (N, 100 * N));
        assert_eq!((write.completed, write.bytes), (N, 200 * N));
        assert_eq!((read.registered_files, write.registered_files), (N, N));
        assert_eq!(file(&rings.watched, FileKind::File), [N, 100 * N, 1 + N, 4096 + 200 * N]);
    });
}

/// Whether a read of an empty pipe can be tried: on kernels before Linux 6.4 it waits, and so goes to a
/// worker once the pipe was ready.
fn can_try_pipes() -> bool {
    let (reader, _writer) = rustix::pipe::pipe().expect("a pipe");
    let mut room = [0; 1];
    let mut into = [std::io::IoSliceMut::new(&mut room)];
    let flags = rustix::io::ReadWriteFlags::NOWAIT;
    let read = rustix::io::preadv2(&reader, &mut into, u64::MAX, flags);
    read == Err(rustix::io::Errno::AGAIN)
}

#[test]
fn what_is_not_ready_is_polled() {
    rings("polled", |rings| {
        let read = rings.of("read");
        assert_eq!((read.completed, read.inline, read.bytes), (N, 0, 100 * N));
        let ways = if can_try_pipes() { (N, 0) } else { (0, N) };
        assert_eq!((read.polled, read.worker), ways);
        assert_eq!(file(&rings.watched, FileKind::Pipe)[..2], [N, 100 * N]);
    });
}

#[test]
fn what_must_not_wait_is_a_workers() {
    rings("async", |rings| {
        let read = rings.of("read");
        assert_eq!((read.completed, read.worker, read.inline, read.bytes), (N, N, 0, 100 * N));
        assert_eq!(read.forced_async, N);
        assert_eq!(file(&rings.watched, FileKind::File)[..2], [N, 100 * N]);
    });
    rings("unbounded", |rings| {
        let read = rings.of("read");
        assert_eq!((read.completed, read.worker, read.worker_unbounded), (N, N, N));
        assert_eq!(read.bytes, 100 * N);
    });
    rings("bounded", |rings| {
        let fsync = rings.of("fsync");
        assert_eq!((fsync.completed, fsync.worker, fsync.worker_unbounded), (N, N, 0));
    });
}

#[test]
fn what_was_submitted_before_the_watch_is_told_when_it_ends() {
    if let Err(e) = NopRing::entered() {
        return skip(Need::IoUring, &format!("no ring: {e}"));
    }
    each_observer(|observer| {
        if observer.declaration().name != "bpf" {
            return;
        }
        let mut running = Running::until_ready(&["rings", "on-demand", &N.to_string()]);
        let target = Request { target: Target::process(running.pid()), ..command("", &[]) };
        let watched = watch_running(observer, &target, &mut running, Running::let_go);
        assert_eq!(running.wait(), 0);
        if watched.observer.sees_rings != Some(true) {
            return skip(Need::IoUring, "this kernel does not have io_uring's tracepoints");
        }
        let row = |op: &str| {
            let of = watched.ring_operations.iter().find(|row| row.op == op);
            of.map(|row| (row.submitted, row.completed, row.before, row.in_flight, row.bytes))
        };
        assert_eq!((row("read"), row("nop")), (Some((0, 0, N, 0, 0)), Some((N, N, 0, 0, 0))));
    });
}

#[test]
fn a_submission_thread_works_for_the_program_that_has_the_ring() {
    rings("sqpoll", |rings| {
        let nop = rings.of("nop");
        assert_eq!((nop.completed, nop.sqpoll, nop.inline), (N, N, 0));
    });
}

#[test]
fn what_is_linked_to_a_failure_is_cancelled() {
    rings("linked", |rings| {
        let (read, nop) = (rings.of("read"), rings.of("nop"));
        assert_eq!((read.completed, read.errors, read.error_kinds["EBADF"]), (N, N, N));
        assert_eq!((read.result_log2.total(), read.wall_log2.total()), (0, N));
        assert_eq!((nop.completed, nop.cancelled, nop.error_kinds["ECANCELED"]), (N, N, N));
        assert_eq!((read.unlinked, nop.unlinked), (0, N));
    });
}

#[test]
fn cancellations_and_the_cancelled_are_counted() {
    rings("cancelled", |rings| {
        let (read, cancel) = (rings.of("read"), rings.of("async_cancel"));
        assert_eq!((read.completed, read.cancelled, read.polled), (N, N, N));
        assert_eq!((cancel.completed, cancel.errors, read.unlinked), (N, 0, 0));
    });
}

#[test]
fn a_request_with_many_results_is_one() {
    rings("accept", |rings| {
        let accept = rings.of("accept");
        assert_eq!((accept.submitted, accept.completed, accept.multishot_completions), (1, 1, N));
        assert_eq!((accept.cancelled, accept.errors), (1, 1));
    });
    rings("poll", |rings| {
        let poll = rings.of("poll_add");
        assert_eq!((poll.submitted, poll.completed, poll.multishot_completions), (1, 1, N));
        assert_eq!(poll.cancelled, 1);
    });
}

#[test]
fn requests_without_a_completion_end() {
    rings("silent", |rings| {
        let nop = rings.of("nop");
        // Of those whose place the kernel has not used again, it cannot be known.
        assert_eq!((nop.submitted, nop.errors, nop.wall_times.total()), (N, 0, 0));
        assert!(nop.in_flight < N, "{nop:?}");
    });
}

#[test]
fn completions_that_find_the_queue_full_are_completions() {
    rings("overflow", |rings| {
        let read = rings.of("read");
        assert_eq!((read.submitted, read.completed, read.in_flight), (N, N, 0), "{read:?}");
        assert_eq!((read.overflows, read.bytes), (N - 4, 100 * N), "{read:?}");
        assert_eq!((read.result_log2.buckets[6], read.result_log2.total()), (N, N));
    });
}

#[test]
fn what_is_refused_when_it_is_submitted_is_a_failure() {
    rings("refused", |rings| {
        let timeout = rings.of("timeout");
        assert_eq!((timeout.submitted, timeout.completed, timeout.errors), (N, N, N));
        assert_eq!(timeout.error_kinds["EFAULT"], N);
    });
}

#[test]
fn what_waits_when_the_program_ends_is_cancelled_or_in_flight() {
    rings("in-flight", |rings| {
        let read = rings.of("read");
        assert_eq!((read.submitted, read.cancelled + read.in_flight), (N, N), "{read:?}");
    });
}

#[test]
fn operations_that_are_not_chosen_are_left_out() {
    rings_of(Some(&["read"]), "linked", |rings| {
        let read = rings.of("read");
        assert_eq!((read.completed, read.error_kinds["EBADF"], rings.sums.len()), (N, N, 1));
    });
    rings_of(Some(&["accept"]), "accept", |rings| {
        let accept = rings.of("accept");
        assert_eq!((accept.submitted, accept.multishot_completions, rings.sums.len()), (1, N, 1));
    });
    rings_of(Some(&["write_fixed"]), "fixed", |rings| {
        let write = rings.of("write_fixed");
        assert_eq!((write.completed, write.bytes, rings.sums.len()), (N, 200 * N, 1));
        assert_eq!(file(&rings.watched, FileKind::File), [0, 0, 1 + N, 4096 + 200 * N]);
    });
}

#[test]
fn what_is_left_out_is_not_lost_nor_counted_for_another() {
    for way in ["silent", "overflow", "in-flight", "poll", "threads", "cancelled"] {
        rings_of(Some(&["statx"]), way, |rings| assert_eq!(rings.sums.len(), 0, "{way}"));
    }
    // The reads have the names of nops whose results found no room, and no result but that they are cancelled.
    rings_of(Some(&["read"]), "overflow-nops", |rings| {
        let read = rings.of("read");
        assert_eq!(
            (read.submitted, read.cancelled, read.bytes),
            (N, read.completed, 0),
            "{read:?}"
        );
        assert_eq!(rings.sums.len(), 1);
    });
}

#[test]
fn rings_of_several_threads_are_their_programs() {
    rings("threads", |rings| {
        let nop = rings.of("nop");
        assert_eq!((nop.completed, nop.inline), (2 * N, 2 * N));
        assert_eq!(rings.watched.ring_operations.len(), 1);
    });
}

/// There is room at hand for 64 operations, and for as many files.
#[test]
fn requests_of_more_programs_than_there_is_room_for_at_hand_are_counted() {
    rings("processes", |rings| {
        const PROCESSES: u64 = 80;
        let all = PROCESSES * N;
        let read = rings.of("read");
        assert_eq!((read.submitted, read.completed, read.inline), (all, all, all));
        assert_eq!((read.bytes, read.wall_times.total()), (100 * all, all));
        let rows = &rings.watched.ring_operations;
        assert_eq!(rows.len() as u64, PROCESSES);
        assert!(rows.iter().all(|row| row.completed == N), "{rows:#?}");
        let by_calls = [0, 0, PROCESSES, 4096 * PROCESSES];
        let by_ring = [all, 100 * all, 0, 0];
        let both: [u64; 4] = std::array::from_fn(|at| by_calls[at] + by_ring[at]);
        assert_eq!(file(&rings.watched, FileKind::File), both);
    });
}

#[test]
fn workers_time_is_their_programs_and_not_its_threads() {
    if let Err(e) = NopRing::entered() {
        return skip(Need::IoUring, &format!("no ring: {e}"));
    }
    each_observer(|observer| {
        let file = tempfile::NamedTempFile::new().expect("a file");
        let path = file.path().to_str().expect("a path of ours");
        let watched = watch(observer, &command(subject(), &["ring-workers", path]));
        assert_eq!(watched.exit, Some(Exit::Code(0)), "{watched:?}");
        let Some(row) = watched.ledger.first() else { return };
        let ran: u64 = std::fs::read_to_string(path).expect("it wrote it").parse().expect("ns");
        // Its last look came before the workers' end, of which there may be one for each request.
        let reads = watched.ring_operations.iter().map(|row| row.submitted).sum::<u64>();
        let more = ran / 50 + reads * 100_000;
        assert!((ran..=ran + more).contains(&row.worker_ns), "{ran} {}", row.worker_ns);
        let booked = row.user_ns + row.calls_on_cpu_ns + row.blocked_ns + row.runnable_ns;
        assert_eq!(i128::from(row.thread_ns), i128::from(booked) + i128::from(row.residual_ns));
    });
}

#[test]
fn a_ring_that_a_child_has_is_charged_to_who_submits() {
    rings("forked", |rings| {
        let mut by_pid: Vec<_> =
            rings.watched.ring_operations.iter().map(|row| (row.pid, row.completed)).collect();
        by_pid.sort_unstable();
        let parent = rings.watched.processes.first().unwrap().pid;
        let of = |is_parent: bool| {
            by_pid.iter().filter(|(pid, _)| (*pid == parent) == is_parent).map(|(_, n)| *n).sum()
        };
        let (parent, child): (u64, u64) = (of(true), of(false));
        assert_eq!((parent, child), (N, 2 * N), "{by_pid:?}");
    });
}
