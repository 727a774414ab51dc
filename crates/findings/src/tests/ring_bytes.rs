//! Bytes that io_uring moved, in the findings of bytes that calls move.

use iotomy_record::RingOperation;

use super::pipelines::pipeline;
use super::*;

fn requests(op: &str, submitted: u64, bytes: u64) -> RingOperation {
    RingOperation {
        pid: 1,
        exec: "prog".into(),
        op: op.into(),
        submitted,
        completed: submitted,
        inline: submitted,
        bytes,
        ..RingOperation::default()
    }
}

/// A run whose ring did this, with these files and a call for every sixteen requests.
fn run(rings: Vec<RingOperation>, files: Vec<FileUse>) -> Trace {
    let enters = rings.iter().map(|row| row.submitted / 16).sum();
    let calls = vec![call("io_uring_enter", enters)];
    let mut run = Trace { calls, files, ring_operations: rings, ..trace() };
    run.observer.sees_rings = Some(true);
    run
}

fn text(run: &Trace, id: &str) -> Option<String> {
    judged(run.clone()).into_iter().find(|(one, _)| one == id).map(|(_, text)| text)
}

#[test]
fn what_a_ring_reads_is_not_faster_than_memory() {
    let read = |mega: u64| {
        let bytes = mega * 1_000_000;
        let ring = requests("read_fixed", 20_000, bytes);
        text(&run(vec![ring], vec![source(bytes, 20_000)]), "impossible-rate")
    };
    assert_eq!(read(2_150), None);
    assert!(read(2_300).unwrap().contains("23 GB/s"));
}

#[test]
fn what_a_ring_splices_is_passed_on_by_reference() {
    let spliced = |bytes| text(&run(vec![requests("splice", 16, bytes)], vec![]), "by-reference");
    assert!(spliced(MIB).unwrap().starts_with("splice (io_uring) moved 1 MiB in total"));
    assert_eq!(spliced(MIB - 1), None);
}

#[test]
fn a_program_that_carries_bytes_by_its_ring_relays_them() {
    let relayed = |reads: u64, writes: u64| {
        let files = vec![source(64 * MIB, 512), sink(FileKind::Pipe, "pipe:[7]", 64 * MIB, 512)];
        let rings = vec![requests("read", 512, reads), requests("write_fixed", 512, writes)];
        let mut run = run(rings, files);
        (run.ledger[0].user_ns, run.ledger[0].calls_on_cpu_ns) = (MS, 99 * MS);
        text(&run, "relay")
    };
    assert!(relayed(64 * MIB, 64 * MIB).unwrap().contains("splice moves them without it"));
    assert!(relayed(58 * MIB, 58 * MIB).is_some());
    // Most of it went another way.
    assert_eq!(relayed(57 * MIB, 64 * MIB), None);
    assert_eq!(relayed(64 * MIB, 57 * MIB), None);
}

#[test]
fn small_requests_of_a_ring_are_no_calls() {
    // 64 MiB by 512 bytes, most of them by calls.
    let found = |by_ring| {
        let ring = requests("read", by_ring, 512 * by_ring);
        text(&run(vec![ring], vec![source(64 * MIB, 131_072)]), "small-requests")
    };
    assert_eq!(found(131_072), None);
    assert_eq!(found(13_108), None);
    assert!(found(13_107).is_some());
}

#[test]
fn what_threads_of_io_uring_fetched_is_not_told_to_be_nothing() {
    let fetched = |worker, sqpoll| {
        let ring = RingOperation { worker, sqpoll, ..requests("read", 64, 64 * MIB) };
        let mut run = run(vec![ring], vec![source(64 * MIB, 64)]);
        run.processes[0].storage_read_bytes = Some(0);
        text(&run, "page-cache").unwrap().contains("fetched nothing from storage")
    };
    assert!(fetched(0, 0));
    assert!(!fetched(1, 0));
    assert!(!fetched(0, 1));
}

#[test]
fn syncs_by_a_ring_are_syncs() {
    let synced = |op: &str, syncs, wall_ns| {
        let ring = RingOperation { wall_ns, ..requests(op, syncs, 0) };
        run(vec![ring], vec![sink(FileKind::File, "/data/g", 64 * 4096, 64)])
    };
    let found = |run: &Trace| text(run, "sync-per-write");
    assert_eq!(
        found(&synced("fsync", 32, MS)).unwrap(),
        "32 calls and io_uring requests of fsync and fdatasync for 64 writes to 1 file; the \
         threads were blocked in the calls for 0 ns, and the requests took 1 ms in all"
    );
    assert_eq!(found(&synced("fsync", 31, MS)), None);
    assert_eq!(found(&synced("fsync", 32, MS - 1)), None);
    let mut dirty = synced("nop", 32, MS);
    (dirty.files[0].write_bytes, dirty.files[0].dirty_bytes) = (64 * MIB, Some(64 * MIB));
    assert!(text(&dirty, "still-dirty").unwrap().contains("no call that syncs was made"));
    dirty.ring_operations[0].op = "fsync".into();
    assert!(!text(&dirty, "still-dirty").unwrap().contains("no call that syncs was made"));
    dirty.ring_operations.clear();
    dirty.observer.sees_rings = Some(false);
    dirty.calls.push(call("io_uring_enter", 1));
    assert_eq!(text(&dirty, "still-dirty"), None);
}

#[test]
fn a_run_whose_workers_work_does_not_wait_for_something_outside() {
    let waited = |worker_ns| {
        let mut run = run(vec![requests("write", 64, MIB)], vec![]);
        run.ledger[0].user_ns = 10 * MS;
        run.ledger[0].blocked_ns = 90 * MS;
        run.ledger[0].worker_ns = worker_ns;
        text(&run, "blocked-on")
    };
    assert!(waited(40 * MS).is_some());
    assert_eq!(waited(40 * MS + 1), None);
}

#[test]
fn a_process_of_a_pipeline_may_wait_for_its_own_workers() {
    let limited = |worker_ns| {
        let mut trace = pipeline([[20, 79, 1], [95, 3, 2], [5, 94, 1]]);
        trace.ledger[0].worker_ns = worker_ns;
        text(&trace, "pipeline-limit")
    };
    assert!(limited(0).is_some());
    assert_eq!(limited(1), None);
}
