use super::*;
use crate::ImageCounts;

fn common() -> Trace {
    let mut record = crate::store::parse_trace(include_bytes!("store/plain.json")).unwrap();
    (record.wall_ns, record.observer.lost_events) = (0, 0);
    (record.processes, record.calls, record.files, record.ledger) = Default::default();
    record.command.clear();
    record
}

/// A process whose reads so far are these, each of 1 µs more than the one before.
fn image(id: u32, reads: u64, threads: u32) -> ImageCounts {
    let mut read = Call { syscall: "read".into(), calls: reads, ..Call::default() };
    (1..=reads).for_each(|at| read.wall_times.add(at * 1000));
    (read.wall_ns, read.max_ns) = (reads * 10, read.wall_times.max_ns);
    read.in_flight = u64::from(threads);
    let ledger = LedgerRow {
        thread_ns: reads * 100,
        user_ns: reads * 60,
        calls_on_cpu_ns: reads * 10,
        ..LedgerRow::default()
    };
    let (exec, calls, ledger) = ("prog".to_owned(), vec![read], Some(ledger));
    ImageCounts { id, pid: 100 + id, exec, threads, calls, ledger, ..ImageCounts::default() }
}

fn snapshot(elapsed_ns: u64, images: Vec<ImageCounts>) -> Snapshot {
    Snapshot { elapsed_ns, images, lost: elapsed_ns / 1000, ..Snapshot::default() }
}

#[test]
fn only_the_newest_intervals_are_kept_and_added_up() {
    let mut stretch = LastStretch::new(3_000, common());
    for second in 1..=9 {
        stretch.advance(&snapshot(second * 1000, vec![image(1, second * second, 1)]));
    }
    // The last one is shorter: those before that have the length with it.
    stretch.advance(&snapshot(9_400, vec![image(1, 100, 1)]));
    let record = stretch.record();
    let ring = Ring { asked_ns: 3_000, start_ns: 6_000, ..Ring::default() };
    assert_eq!(record.ring, Some(ring));
    assert_eq!(stretch.record(), record, "it goes on as it was");
    assert_eq!((record.wall_ns, record.observer.lost_events), (3_400, 3));
    let [call] = &record.calls[..] else { panic!("{:?}", record.calls) };
    assert_eq!((call.calls, call.wall_ns, call.in_flight), (100 - 36, 640, 1));
    assert_eq!((call.max_ns, call.max_is_bound), (100_000, false));
    assert_eq!((call.wall_times.total(), call.wall_log2.total()), (64, 64));
    assert_eq!((record.ledger.len(), record.ledger[0].thread_ns), (1, 6400));
    assert_eq!((record.processes[0].user_ns, record.processes[0].system_ns), (64 * 60, 640));
    assert_eq!(record.still_running.len(), 1);
}

#[test]
fn ring_operations_are_those_of_the_newest_intervals() {
    let with_rings = |submitted: u64, completed: u64| {
        let row = RingOperation {
            op: "read".into(),
            bytes: completed * 10,
            submitted,
            completed,
            inline: completed,
            in_flight: submitted - completed,
            ..RingOperation::default()
        };
        ImageCounts { ring_operations: vec![row], ..image(1, 1, 1) }
    };
    let mut stretch = LastStretch::new(2_000, common());
    for (second, rings) in (1..).zip([(5, 4), (9, 9), (20, 17)]) {
        let now = snapshot(second * 1000, vec![with_rings(rings.0, rings.1)]);
        stretch.advance(&Snapshot { lost_requests: second, ..now });
    }
    let record = stretch.record();
    let [row] = &record.ring_operations[..] else { panic!("{:?}", record.ring_operations) };
    assert_eq!((row.pid, &*row.exec, &*row.op), (101, "prog", "read"));
    assert_eq!((row.submitted, row.completed, row.in_flight), (15, 13, 3));
    assert_eq!((row.bytes, record.observer.lost_requests), (130, 2));
}

#[test]
fn a_watch_that_is_shorter_is_there_as_a_whole() {
    let mut stretch = LastStretch::new(3_000, common());
    stretch.advance(&snapshot(1_500, vec![image(1, 7, 1)]));
    stretch.advance(&snapshot(2_000, vec![image(1, 8, 0)]));
    let record = stretch.record();
    assert_eq!((record.wall_ns, record.ring.unwrap().start_ns), (2_000, 0));
    assert_eq!((record.calls[0].calls, record.calls[0].in_flight), (8, 0));
    assert!(LastStretch::new(3_000, common()).record().calls.is_empty());
}

#[test]
fn memory_is_bounded_however_many_processes_end() {
    let mut stretch = LastStretch::new(5_000, common());
    for round in 0..200u32 {
        let ended = (0..50).map(|at| image(1 + round * 50 + at, 3, 0)).collect();
        let mut now = snapshot(u64::from(round + 1) * 1000, ended);
        now.forgotten = (0..50).map(|at| 1 + round * 50 + at).collect();
        stretch.advance(&now);
        assert!(stretch.steps.len() <= 6);
        assert_eq!(stretch.intervals.images_known(), 0);
        assert!(stretch.steps.iter().all(|(_, step)| step.calls.len() == 1));
    }
    let record = stretch.record();
    assert_eq!(record.calls.iter().map(|call| call.calls).sum::<u64>(), 5 * 50 * 3);
    assert_eq!(record.process_count(), 250);
}

#[test]
fn identical_images_are_put_together_in_joined_intervals() {
    let mut stretch = LastStretch::new(1_000_000, common());
    for round in 0..50u32 {
        let ended = (0..10).map(|at| image(1 + round * 10 + at, 3, 0)).collect();
        let mut now = snapshot(u64::from(round + 1) * 1000, ended);
        now.forgotten = (0..10).map(|at| 1 + round * 10 + at).collect();
        stretch.advance(&now);
        let rows: usize = stretch.steps.iter().map(|(_, step)| step.calls.len()).sum();
        assert!(rows <= 5 * stretch.steps.len(), "{rows} of {}", stretch.steps.len());
    }
    let record = stretch.record();
    assert_eq!(record.calls.iter().map(|call| call.calls).sum::<u64>(), 50 * 10 * 3);
    assert_eq!(record.process_count(), 500);
}

#[test]
fn memory_is_bounded_however_often_the_counts_are_asked_for() {
    let mut stretch = LastStretch::new(1_000_000, common());
    for at in 1..=3_000 {
        stretch.advance(&snapshot(at * 1_000, vec![image(1, at, 1)]));
        assert!(stretch.steps.len() <= 21, "{}", stretch.steps.len());
    }
    let record = stretch.record();
    let length = record.wall_ns / 1_000;
    assert!((1_000..=1_100).contains(&length), "{length}");
    assert_eq!(record.ring.unwrap().start_ns + record.wall_ns, 3_000_000);
    let [call] = &record.calls[..] else { panic!("{:?}", record.calls) };
    assert_eq!((call.calls, call.wall_times.total(), call.in_flight), (length, length, 1));
    assert_eq!(record.observer.lost_events, length);
}

#[test]
fn the_slowest_calls_are_those_of_the_stretch() {
    let mut common = common();
    common.view.slowest = 2;
    let mut stretch = LastStretch::new(3_000, common);
    for (second, times) in (1..).zip([vec![90], vec![70, 5], vec![], vec![60, 50], vec![1]]) {
        let call = |end_ns, wall_ns| crate::WholeCall {
            start_ns: end_ns - wall_ns,
            wall_ns,
            ..Default::default()
        };
        let mut slowest: Vec<_> = times.into_iter().map(|ns| call(second * 1000, ns)).collect();
        // One that returned before the stretch, and came with its first snapshot.
        slowest.extend((second == 3).then(|| call(1_990, 80)));
        stretch.advance(&Snapshot { slowest, ..snapshot(second * 1000, vec![image(1, 1, 1)]) });
    }
    let times: Vec<u64> = stretch.record().slowest.iter().map(|call| call.wall_ns).collect();
    assert_eq!(times, [60, 50]);
}
