//! The requests of an interval.
//!
//! Counts are differences, as those of calls. A request counts in the interval in which its answer is known to have
//! ended: with the next one over its connection, or with the connection's end. The last interval has those that nothing
//! followed.

use crate::interval_rows::{Counted, durations_since};
use crate::{Exchange, Socket, statistic};

impl Counted for Exchange {
    type Key = Socket;
    type Seen = Self;
    type Row = Self;

    fn of_record(row: &Self) -> Self {
        row.clone()
    }

    fn key(&self) -> Socket {
        self.ends.unnamed()
    }

    fn merge(&mut self, other: &Self) {
        Self::merge(self, other);
    }

    fn merge_seen(seen: &mut Self, other: &Self) {
        Self::merge(seen, other);
    }

    fn since(&self, seen: &mut Self) -> Option<Self> {
        let before = (&mut seen.wall_times, &mut seen.max_ns);
        let (wall_times, _, max_is_bound) =
            durations_since((&self.wall_times, self.max_ns), before);
        let mut row = statistic::since(self, seen);
        row.ends.clone_from(&self.ends);
        (row.max_ns, row.max_is_bound) = (wall_times.max_ns, max_is_bound && wall_times.max_ns > 0);
        row.wall_times = wall_times;
        let is_used = statistic::is_used(&row) || row.in_flight > 0 || row.wall_times.total() > 0;
        is_used.then_some(row)
    }
}

/// The rows of a snapshot, whose requests that have no answer yet are in no count.
pub(super) fn answered(now: &[Exchange]) -> Vec<Exchange> {
    now.iter().map(|now| Exchange { in_flight: 0, ..now.clone() }).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::Intervals;
    use super::*;
    use crate::interval_rows::SeenTable;
    use crate::{ImageCounts, Role, Snapshot, Trace};

    fn ends(port: u16) -> Socket {
        Socket {
            protocol: "tcp".into(),
            local: Some(format!("127.0.0.1:{port}")),
            role: Some(Role::Accept),
            ..Socket::default()
        }
    }

    /// So many requests of so many µs each in turn.
    fn served(port: u16, requests: u64) -> Exchange {
        let mut row = Exchange {
            ends: ends(port),
            requests,
            unanswered: requests / 4,
            pipelined: requests / 3,
            ..Exchange::default()
        };
        for at in 1..=requests {
            row.wall_times.add(at * 1000);
            row.wall_ns += at * 1000;
        }
        row.max_ns = row.wall_times.max_ns;
        (row.on_cpu_ns, row.other_ns) = (row.wall_ns / 2, row.wall_ns - row.wall_ns / 2);
        row
    }

    fn snapshot(elapsed_ns: u64, requests: Vec<Exchange>) -> Snapshot {
        let exec = "server".to_owned();
        let image = ImageCounts { id: 1, pid: 10, exec, requests, ..ImageCounts::default() };
        let (images, lost_exchanges) = (vec![image], elapsed_ns);
        Snapshot { elapsed_ns, images, lost_exchanges, ..Snapshot::default() }
    }

    /// The record of a watch that ended with these.
    fn record(rows: &[Exchange]) -> Trace {
        let mut record = crate::store::parse_trace(include_bytes!("store/plain.json")).unwrap();
        record.wall_ns = 1_000;
        record.observer.lost_exchanges = 1_000;
        (record.calls, record.files, record.ledger) = Default::default();
        let owned = |row: &Exchange| Exchange { pid: 10, exec: "server".into(), ..row.clone() };
        record.requests = rows.iter().map(owned).collect();
        record
    }

    #[test]
    fn an_interval_has_the_requests_that_ended_in_it() {
        let mut intervals = Intervals::default();
        let first = intervals.advance(&snapshot(10, vec![served(80, 4), served(81, 1)]));
        assert_eq!(first.requests.len(), 2);
        assert_eq!(first.lost_exchanges, 10);
        let second = intervals.advance(&snapshot(20, vec![served(80, 6), served(81, 1)]));
        let [row] = &second.requests[..] else { panic!("{:?}", second.requests) };
        assert_eq!((row.pid, &*row.exec), (10, "server"));
        assert_eq!((row.requests, row.wall_ns, row.max_ns), (2, 11_000, 6_000));
        assert_eq!(row.wall_times.total(), 2);
        let mut whole = record(&[served(80, 6), served(81, 2)]);
        whole.requests[0].in_flight = 1;
        let last = intervals.finish(&whole);
        let rows: Vec<_> = last.requests.iter().map(|row| (row.requests, row.in_flight)).collect();
        assert_eq!(rows, [(1, 0), (0, 1)]);
        assert_eq!(last.lost_exchanges, 980);
    }

    #[test]
    fn the_longest_of_a_later_interval_is_known_by_its_bucket() {
        let mut seen = SeenTable::<Exchange>::default();
        let mut now = served(80, 9);
        seen.advance(1, &<_>::default(), std::slice::from_ref(&now));
        now.requests += 1;
        now.wall_times.add(2_000);
        let row = seen.advance(1, &<_>::default(), std::slice::from_ref(&now)).remove(0);
        assert!((2_000..2_300).contains(&row.max_ns) && row.max_is_bound, "{row:?}");
    }

    proptest! {
        #[test]
        fn intervals_add_up_to_the_requests_of_the_record(
            steps in prop::collection::vec((0u64..5, 0u64..5), 1..7),
        ) {
            let mut intervals = Intervals::default();
            let (mut rows, mut sums) = (Vec::new(), (0, 0));
            for (at, (of_one, of_other)) in (1..).zip(&steps) {
                sums = (sums.0 + of_one, sums.1 + of_other);
                let now = vec![served(80, sums.0), served(81, sums.1)];
                rows.extend(intervals.advance(&snapshot(at, now)).requests);
            }
            let whole = record(&[served(80, sums.0 + 1), served(81, sums.1)]);
            rows.extend(intervals.finish(&whole).requests);
            for row in &whole.requests {
                let mut sum = Exchange::default();
                rows.iter().filter(|one| one.ends == row.ends).for_each(|one| sum.merge(one));
                let parts = |of: &Exchange| {
                    (of.requests, of.unanswered, of.pipelined, of.wall_ns, of.on_cpu_ns, of.other_ns)
                };
                prop_assert_eq!(parts(&sum), parts(row));
                prop_assert_eq!(sum.wall_times.buckets(), row.wall_times.buckets());
                prop_assert_eq!(sum.max_ns, row.max_ns);
            }
        }
    }
}
