use proptest::prelude::*;

use super::*;
use crate::ImageCounts;

/// A call of an image that has returned so often, each time after as many µs as its number.
fn call(calls: u64, in_flight: u64) -> Call {
    let mut call = Call { syscall: "read".into(), calls, in_flight, ..Call::default() };
    for at in 1..=calls {
        call.wall_times.add(at * 1000);
    }
    call.errors = calls / 3;
    call.error_kinds = [("EAGAIN".to_owned(), calls / 3)].into();
    call.error_kinds.retain(|_, count| *count > 0);
    call.bytes = calls * 7;
    call.wall_ns = calls * 100 + in_flight * 10;
    call.open_ns = Some(in_flight * 10);
    call.on_cpu_ns = Some(calls * 50);
    call.max_ns = call.wall_times.max_ns;
    call
}

fn image(id: u32, calls: u64, in_flight: u64) -> ImageCounts {
    ImageCounts {
        id,
        pid: 10 + id,
        exec: "prog".into(),
        threads: 1,
        ledger: Some(LedgerRow { thread_ns: calls * 1000, user_ns: calls, ..LedgerRow::default() }),
        calls: vec![call(calls, in_flight)],
        ..ImageCounts::default()
    }
}

fn snapshot(elapsed_ns: u64, images: Vec<ImageCounts>) -> Snapshot {
    Snapshot { elapsed_ns, images, ..Snapshot::default() }
}

fn record(wall_ns: u64, images: &[ImageCounts]) -> Trace {
    let mut record = crate::store::parse_trace(include_bytes!("store/plain.json")).unwrap();
    record.wall_ns = wall_ns;
    (record.processes, record.calls, record.files, record.ledger) = Default::default();
    for image in images {
        let (pid, exec) = (image.pid, image.exec.clone());
        let calls = image.calls.iter().cloned();
        record.calls.extend(calls.map(|call| Call { pid, exec: exec.clone(), ..call }));
        let ledger = image.ledger.iter().cloned();
        record.ledger.extend(ledger.map(|row| LedgerRow { pid, exec: exec.clone(), ..row }));
    }
    record
}

#[test]
fn an_interval_has_what_came_since_the_one_before() {
    let mut intervals = Intervals::default();
    let first = intervals.advance(&snapshot(1_000, vec![image(1, 6, 1)]));
    assert_eq!((first.interval.number, first.interval.start_ns, first.wall_ns), (1, 0, 1_000));
    assert_eq!((first.calls[0].calls, first.calls[0].bytes, first.calls[0].in_flight), (6, 42, 1));
    let second = intervals.advance(&snapshot(2_500, vec![image(1, 9, 0)]));
    assert_eq!((second.interval.start_ns, second.wall_ns), (1_000, 1_500));
    let row = &second.calls[0];
    assert_eq!((row.calls, row.errors, row.bytes, row.in_flight), (3, 1, 21, 0));
    assert_eq!(row.error_kinds["EAGAIN"], 1);
    // Six calls and the time in progress had been given out.
    assert_eq!(row.wall_ns, 900 - 610);
    assert_eq!((row.wall_times.total(), row.max_ns, row.max_is_bound), (3, 9_000, false));
    assert_eq!((&*second.processes[0].exec, second.processes[0].pid), ("prog", 11));
    let idle = intervals.advance(&snapshot(3_000, vec![image(1, 9, 0)]));
    assert_eq!((idle.calls.len(), idle.ledger.len(), idle.processes.len()), (0, 0, 1));
}

#[test]
fn a_maximum_that_an_earlier_call_reached_is_a_bound() {
    let mut intervals = Intervals::default();
    let mut before = image(1, 1, 0);
    before.calls[0].wall_times.add(900_000);
    before.calls[0].max_ns = 900_000;
    intervals.advance(&snapshot(1, vec![before.clone()]));
    let mut after = before;
    after.calls[0].calls += 1;
    after.calls[0].wall_times.add(5_000);
    let row = &intervals.advance(&snapshot(2, vec![after])).calls[0];
    assert!(row.max_is_bound && (5_000..5_400).contains(&row.max_ns), "{row:?}");
}

/// A call that goes on through three intervals, beside short ones.
#[test]
fn a_call_in_progress_is_no_part_of_the_mean_and_the_maximum_of_an_interval() {
    let mut intervals = Intervals::default();
    let with_open = |calls: u64, open_ns: u64| {
        let mut image = image(1, calls, u64::from(open_ns > 0));
        image.calls[0].wall_ns = calls * 100 + open_ns;
        image.calls[0].open_ns = Some(open_ns);
        image.calls[0].max_ns = image.calls[0].wall_times.max_ns.max(open_ns);
        image
    };
    for (at, calls) in [(1, 2), (2, 5)] {
        let row =
            &intervals.advance(&snapshot(at, vec![with_open(calls, at * 1_000_000)])).calls[0];
        let ended = row.ended();
        let new = if at == 1 { 2 } else { 3 };
        assert_eq!((ended.calls, ended.wall_ns, row.in_flight), (new, new * 100, 1), "{row:?}");
        assert_eq!(
            (ended.max_ns, row.max_ns, row.max_is_bound),
            (calls * 1000, calls * 1000, false)
        );
        assert_eq!(row.wall_ns, new * 100 + 1_000_000);
    }
    // Where nothing ended, there is neither.
    let row = &intervals.advance(&snapshot(3, vec![with_open(5, 3_000_000)])).calls[0];
    assert_eq!((row.ended().calls, row.ended().wall_ns, row.ended().max_ns), (0, 0, 0));
    assert_eq!((row.in_flight, row.wall_ns, row.max_ns), (1, 1_000_000, 3_000_000));
    // It returns: its whole time is that of this interval's call.
    let mut last = with_open(5, 0);
    last.calls[0].calls = 6;
    last.calls[0].wall_times.add(3_500_000);
    last.calls[0].wall_ns += 3_500_000;
    last.calls[0].max_ns = 3_500_000;
    last.calls[0].open_ns = None;
    let row = &intervals.finish(&record(4, &[last])).calls[0];
    assert_eq!((row.wall_ns, row.in_flight, row.max_is_bound), (500_000, 0, false));
    let ended = row.ended();
    assert_eq!((ended.calls, ended.wall_ns, ended.max_ns), (1, 3_500_000, 3_500_000));
}

#[test]
fn an_image_that_has_ended_and_is_looked_at_again_is_counted_once() {
    let mut intervals = Intervals::default();
    let ended = ImageCounts { threads: 0, ..image(1, 6, 0) };
    assert_eq!(intervals.advance(&snapshot(1, vec![ended.clone()])).calls[0].calls, 6);
    let again = intervals.advance(&snapshot(2, vec![ended]));
    assert_eq!((again.calls.len(), again.processes.len()), (0, 0));
}

#[test]
fn a_thread_that_one_snapshot_missed_is_not_counted_twice() {
    let mut intervals = Intervals::default();
    let mut sum = 0;
    for calls in [6, 2, 9] {
        let counts = intervals.advance(&snapshot(calls, vec![image(1, calls, 0)]));
        sum += counts.calls.iter().map(|call| call.calls).sum::<u64>();
    }
    assert_eq!(sum, 9);
    let last = intervals.finish(&record(20, &[image(1, 9, 0)]));
    assert_eq!((last.calls.len(), last.interval.is_last, last.wall_ns), (0, true, 11));
}

#[test]
fn errors_that_are_seen_later_than_their_calls_are_given_then() {
    for is_last in [false, true] {
        let mut intervals = Intervals::default();
        let whole = image(1, 6, 0);
        let mut early = whole.clone();
        early.calls[0].errors = 0;
        early.calls[0].error_kinds.clear();
        let first = intervals.advance(&snapshot(1, vec![early]));
        assert_eq!((first.calls[0].calls, first.calls[0].errors), (6, 0));
        let next = match is_last {
            true => intervals.finish(&record(2, &[whole])),
            false => intervals.advance(&snapshot(2, vec![whole])),
        };
        let row = &next.calls[0];
        assert_eq!((row.calls, row.errors, row.error_kinds["EAGAIN"]), (0, 2, 2));
    }
}

proptest! {
    /// Images that count, end, and come again under another number, with looks that miss some.
    #[test]
    fn intervals_add_up_to_the_record(
        steps in prop::collection::vec(prop::collection::vec((0u64..9, any::<bool>()), 3), 1..9),
    ) {
        let mut intervals = Intervals::default();
        let mut whole = [0u64; 3];
        let mut all = Vec::new();
        for (at, step) in steps.iter().enumerate() {
            let mut seen = Vec::new();
            for (id, (more, missed)) in step.iter().enumerate() {
                whole[id] += more;
                if !missed {
                    seen.push(image(id as u32, whole[id], *more % 2));
                }
            }
            all.push(intervals.advance(&snapshot(at as u64 * 10, seen)));
        }
        let images: Vec<_> = (0..3).map(|id| image(id, whole[id as usize], 1)).collect();
        let record = record(1_000, &images);
        all.push(intervals.finish(&record));
        let sum = |part: fn(&Call) -> u64| -> u64 {
            all.iter().flat_map(|one| &one.calls).map(part).sum()
        };
        let of_record = |part: fn(&Call) -> u64| -> u64 { record.calls.iter().map(part).sum() };
        prop_assert_eq!(sum(|call| call.calls), of_record(|call| call.calls));
        prop_assert_eq!(sum(|call| call.errors), of_record(|call| call.errors));
        prop_assert_eq!(sum(|call| call.bytes), of_record(|call| call.bytes));
        prop_assert_eq!(sum(|call| call.wall_ns), of_record(|call| call.wall_ns));
        prop_assert_eq!(sum(|call| call.wall_times.total()), of_record(|call| call.wall_times.total()));
        prop_assert_eq!(sum(|call| call.error_kinds.values().sum()), of_record(|call| call.errors));
        let thread: u64 = all.iter().flat_map(|one| &one.ledger).map(|row| row.thread_ns).sum();
        prop_assert_eq!(thread, record.ledger.iter().map(|row| row.thread_ns).sum::<u64>());
        prop_assert_eq!(all.iter().map(|one| one.wall_ns).sum::<u64>(), 1_000);
    }
}
