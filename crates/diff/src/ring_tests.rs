use iotomy_record::{DiffSideName, DiffVerdict, RingOperation, Times};

use super::tests::{compared, row, trace};
use super::*;

/// So many requests of an operation, of 1,000 ns each.
fn requests(op: &str, submitted: u64) -> RingOperation {
    let mut wall_times = Times::default();
    (0..submitted).for_each(|_| wall_times.add(1_000));
    RingOperation {
        pid: 7,
        exec: "cat".into(),
        op: op.into(),
        submitted,
        completed: submitted,
        inline: submitted,
        bytes: 10 * submitted,
        wall_ns: 1_000 * submitted,
        max_ns: 1_000,
        wall_times,
        ..RingOperation::default()
    }
}

fn with_rings(rings: Vec<RingOperation>) -> Trace {
    let mut run = Trace { ring_operations: rings, ..trace("cat", &[]) };
    run.observer.sees_rings = Some(true);
    run
}

fn ends(row: &iotomy_record::DiffRow, measure: &str) -> (Option<f64>, Option<f64>) {
    let delta = row.measure(measure).unwrap();
    (delta.a, delta.b)
}

#[test]
fn operations_of_io_uring_are_compared_by_name() {
    let a = with_rings(vec![requests("read", 4), requests("fsync", 1), requests("nop", 2)]);
    let mut slow = requests("read", 4);
    (slow.wall_ns, slow.max_ns) = (9_000, 6_000);
    // Of two images, which are one program.
    let more = RingOperation { image: 2, ..requests("read", 2) };
    let b = with_rings(vec![slow, more, requests("write", 3), requests("nop", 2)]);
    let found = compared(a, b);
    let read = row(&found.ring_operations, "read");
    assert_eq!((read.program.as_str(), read.verdict), ("cat", DiffVerdict::Differs));
    assert_eq!(ends(read, "submitted"), (Some(4.0), Some(6.0)));
    assert_eq!(ends(read, "bytes"), (Some(40.0), Some(60.0)));
    assert_eq!(ends(read, "wall_ns"), (Some(4_000.0), Some(11_000.0)));
    assert_eq!(ends(read, "mean_ns"), (Some(1_000.0), Some(11_000.0 / 6.0)));
    assert_eq!(ends(read, "wall_max_ns"), (Some(1_000.0), Some(6_000.0)));
    assert_eq!(row(&found.ring_operations, "nop").verdict, DiffVerdict::Equal);
    assert_eq!(row(&found.ring_operations, "fsync").only_in, Some(DiffSideName::A));
    let write = row(&found.ring_operations, "write");
    assert_eq!((write.only_in, ends(write, "mean_ns").0), (Some(DiffSideName::B), None));
    // Most time first.
    assert_eq!(found.ring_operations[0].name, "read");
}

#[test]
fn errors_and_ways_that_differ_are_a_difference() {
    let compare = |change: fn(&mut RingOperation)| {
        let mut changed = requests("read", 4);
        change(&mut changed);
        let found = compared(with_rings(vec![requests("read", 4)]), with_rings(vec![changed]));
        row(&found.ring_operations, "read").clone()
    };
    assert_eq!(compare(|_| {}).verdict, DiffVerdict::Equal);
    let by_workers = compare(|row| (row.inline, row.worker) = (0, 4));
    assert_eq!(by_workers.verdict, DiffVerdict::Differs);
    assert_eq!(ends(&by_workers, "worker"), (Some(0.0), Some(4.0)));
    let failed = compare(|row| {
        row.errors = 1;
        row.error_kinds.insert("EIO".into(), 1);
    });
    assert_eq!(failed.verdict, DiffVerdict::Differs);
    assert_eq!(failed.error_kinds["EIO"], [0.0, 1.0]);
}

#[test]
fn runs_whose_rings_were_not_watched_are_not_compared_with_others() {
    let with = || with_rings(vec![requests("read", 4)]);
    let mut without = trace("cat", &[]);
    without.observer.sees_rings = Some(false);
    let found = compared(with(), without.clone());
    assert!(found.ring_operations.is_empty());
    let why = found.left_out.iter().find(|one| one.table == "ring_operations").unwrap();
    assert_eq!(why.why, "B was traced without watching what io_uring did");
    // No run used a ring.
    assert!(compared(with_rings(vec![]), without).left_out.is_empty());
    let found = compared(with(), with_rings(vec![]));
    assert_eq!(row(&found.ring_operations, "read").only_in, Some(DiffSideName::A));
}
