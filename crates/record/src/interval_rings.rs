//! The ring operations of an interval.
//!
//! Counts are differences, as those of calls. A request counts in the interval in which it was submitted, and
//! again, with all of its time, in the one in which it ended; how many are in flight is a figure of the end.

use crate::growth::more;
use crate::histogram::Histogram;
use crate::interval_rows::{Counted, durations_since};
use crate::{RingOperation, statistic};

impl Counted for RingOperation {
    type Key = String;
    type Seen = Self;
    type Row = Self;

    fn of_record(row: &Self) -> Self {
        row.clone()
    }

    fn key(&self) -> String {
        self.op.clone()
    }

    fn merge(&mut self, other: &Self) {
        Self::merge(self, other);
    }

    fn merge_seen(seen: &mut Self, other: &Self) {
        Self::merge(seen, other);
    }

    fn since(&self, seen: &mut Self) -> Option<Self> {
        let before = (&mut seen.wall_times, &mut seen.max_ns);
        let (wall_times, max_ns, max_is_bound) =
            durations_since((&self.wall_times, self.max_ns), before);
        let mut row = statistic::since(self, seen);
        row.op.clone_from(&self.op);
        row.result_log2 = results_since(&self.result_log2, &mut seen.result_log2);
        row.wall_log2 = wall_times.log2();
        row.wall_times = wall_times;
        (row.max_ns, row.max_is_bound) = (max_ns, max_is_bound);
        // Its counters are read one after another while the kernel counts: each may come an interval late.
        let is_used =
            statistic::is_used(&row) || row.wall_times.total() + row.result_log2.total() > 0;
        is_used.then_some(row)
    }
}

fn results_since(now: &Histogram, seen: &mut Histogram) -> Histogram {
    let mut row = Histogram { zero: more(now.zero, &mut seen.zero), ..Histogram::default() };
    for (at, count) in now.buckets.iter().enumerate().filter(|(_, count)| **count > 0) {
        // The slot of zero comes before those of the powers of two.
        row.add_slot(at + 1, more(*count, &mut seen.buckets[at]));
    }
    row
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::Intervals;
    use super::*;
    use crate::{ImageCounts, Snapshot, Trace};

    /// So many requests of so many µs each in turn, of which some go on.
    fn reads(ended: u64, in_flight: u64) -> RingOperation {
        let mut row = RingOperation {
            op: "read".into(),
            submitted: ended + in_flight,
            completed: ended,
            in_flight,
            errors: ended / 3,
            error_kinds: [("EAGAIN".to_owned(), ended / 3)].into(),
            bytes: 100 * (ended - ended / 3),
            inline: ended,
            ..RingOperation::default()
        };
        row.error_kinds.retain(|_, count| *count > 0);
        row.result_log2.add_slot(7, ended - ended / 3);
        for at in 1..=ended {
            row.wall_times.add(at * 1000);
            row.wall_ns += at * 1000;
        }
        row.wall_log2 = row.wall_times.log2();
        row.max_ns = row.wall_times.max_ns;
        row
    }

    fn snapshot(elapsed_ns: u64, images: Vec<ImageCounts>, lost_requests: u64) -> Snapshot {
        Snapshot { elapsed_ns, images, lost_requests, ..Snapshot::default() }
    }

    fn image(id: u32, rows: Vec<RingOperation>) -> ImageCounts {
        let exec = "prog".to_owned();
        ImageCounts { id, pid: 10 + id, exec, ring_operations: rows, ..ImageCounts::default() }
    }

    /// The record of a watch that ended with these.
    fn record(images: &[ImageCounts]) -> Trace {
        let mut record = crate::store::parse_trace(include_bytes!("store/plain.json")).unwrap();
        record.wall_ns = 1_000;
        (record.processes, record.calls, record.files, record.ledger) = Default::default();
        for image in images {
            let rows = image.ring_operations.iter().cloned();
            record.ring_operations.extend(rows.map(|row| RingOperation {
                pid: image.pid,
                exec: image.exec.clone(),
                ..row
            }));
        }
        record
    }

    #[test]
    fn an_interval_has_the_requests_that_came_in_it() {
        let mut intervals = Intervals::default();
        let first = intervals.advance(&snapshot(1, vec![image(1, vec![reads(6, 2)])], 3));
        let row = &first.ring_operations[0];
        assert_eq!((row.pid, &*row.exec, &*row.op, first.lost_requests), (11, "prog", "read", 3));
        assert_eq!((row.submitted, row.completed, row.in_flight, row.bytes), (8, 6, 2, 400));
        assert_eq!((row.max_ns, row.max_is_bound), (6_000, false));
        let second = intervals.advance(&snapshot(2, vec![image(1, vec![reads(9, 0)])], 4));
        let row = &second.ring_operations[0];
        assert_eq!((row.submitted, row.completed, row.in_flight, row.bytes), (1, 3, 0, 200));
        assert_eq!((row.errors, row.error_kinds["EAGAIN"], second.lost_requests), (1, 1, 1));
        assert_eq!((row.result_log2.buckets[6], row.result_log2.total()), (2, 2));
        assert_eq!((row.wall_times.total(), row.wall_log2.total(), row.max_ns), (3, 3, 9_000));
        assert_eq!((row.wall_ns, row.inline), (24_000, 3));
        let idle = intervals.advance(&snapshot(3, vec![image(1, vec![reads(9, 0)])], 4));
        assert_eq!((idle.ring_operations, idle.lost_requests), (vec![], 0));
        // The last one has what only the record has: of two images of one name.
        let images = [image(1, vec![reads(9, 0)]), image(1, vec![reads(3, 1)])];
        let last = intervals.finish(&record(&images));
        let row = &last.ring_operations[0];
        assert_eq!((row.submitted, row.completed, row.in_flight), (4, 3, 1));
        assert!(row.max_is_bound && (3_000..3_200).contains(&row.max_ns), "{row:?}");
    }

    proptest! {
        #[test]
        fn intervals_add_up_to_the_operations_of_the_record(
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
                        seen.push(image(id as u32, vec![reads(whole[id], more % 3)]));
                    }
                }
                all.extend(intervals.advance(&snapshot(at as u64, seen, 0)).ring_operations);
            }
            let images: Vec<_> =
                (0..3).map(|id| image(id, vec![reads(whole[id as usize], 1)])).collect();
            let record = record(&images);
            all.extend(intervals.finish(&record).ring_operations);
            for part in [
                (|row| row.completed) as fn(&RingOperation) -> u64,
                |row| row.errors,
                |row| row.error_kinds.values().sum(),
                |row| row.bytes,
                |row| row.result_log2.total(),
                |row| row.wall_ns,
                |row| row.wall_times.total(),
                |row| row.inline,
            ] {
                let due: u64 = record.ring_operations.iter().map(part).sum();
                prop_assert_eq!(all.iter().map(part).sum::<u64>(), due);
            }
        }
    }
}
