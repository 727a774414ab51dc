//! The connections of an interval.
//!
//! Counts are differences, as those of calls. A round-trip time is no count but a figure of a moment:
//! an interval has that of the connections that ended in it, and of those that were open at its end.

use crate::growth::more;
use crate::interval_rows::Counted;
use crate::statistic::{Joins, Statistics as _};
use crate::{Connection, ConnectionCounts, Socket, TcpFigures, statistic};

/// The most that was seen of the connections with a peer.
#[derive(Debug, Default)]
pub(super) struct Seen {
    /// Of TCP's figures, those of connections that had ended.
    counts: Connection,
    /// TCP's counts and times: of connections that had ended and of those that were open.
    tcp: TcpFigures,
}

impl Counted for ConnectionCounts {
    type Key = Socket;
    type Seen = Seen;
    type Row = Connection;

    /// All of its connections count as ended.
    fn of_record(row: &Connection) -> Self {
        Self { counts: row.clone(), open: None }
    }

    fn key(&self) -> Socket {
        self.counts.ends.unnamed()
    }

    fn merge(&mut self, other: &Self) {
        self.counts.merge(&other.counts);
    }

    fn merge_seen(seen: &mut Seen, other: &Seen) {
        seen.counts.merge(&other.counts);
        seen.tcp.merge(&other.tcp);
    }

    fn since(&self, seen: &mut Seen) -> Option<Connection> {
        let Self { counts: now, open } = self;
        let tcp = figures_since(now.tcp.as_ref(), open.as_ref(), seen);
        let Seen { counts: seen, .. } = seen;
        let mut row = statistic::since(now, seen);
        row.ends.clone_from(&now.ends);
        // Of a shorter one than that of an earlier interval nothing is known.
        row.max_ns = if now.max_ns > seen.max_ns { now.max_ns } else { 0 };
        seen.max_ns = seen.max_ns.max(now.max_ns);
        row.max_queued = if now.max_queued > seen.max_queued { now.max_queued } else { 0 };
        seen.max_queued = seen.max_queued.max(now.max_queued);
        row.queue_limit = now.queue_limit;
        let has_news = tcp.as_ref().is_some_and(statistic::is_used);
        row.tcp = tcp;
        (statistic::is_used(&row) || has_news).then_some(row)
    }
}

fn figures_since(
    ended: Option<&TcpFigures>,
    open: Option<&TcpFigures>,
    seen: &mut Seen,
) -> Option<TcpFigures> {
    let none = TcpFigures::default();
    let (ended, open) = (ended.unwrap_or(&none), open.unwrap_or(&none));
    let of_ended = seen.counts.tcp.get_or_insert_default();
    let had_ended = of_ended.measured > 0;
    let mut all = ended.clone();
    all.merge(open);
    // Counts and times are what came in the interval.
    let mut row = statistic::since(&all, &mut seen.tcp);
    let has_ended = ended.measured > of_ended.measured;
    for figure in TcpFigures::statistics() {
        let of = figure.field.number;
        let value = match figure.shape.joins {
            Joins::Sum => continue,
            // Of a moment: the connections that have ended since, and those that are open.
            Joins::Gauge => of(ended).map_or(of(open), |now| {
                let mut before = of(of_ended).unwrap_or(0);
                let new = more(now, &mut before);
                (figure.field.set)(of_ended, before);
                Some(new.saturating_add(of(open).unwrap_or(0)))
            }),
            // Extremes of those that ended are of the whole watch: once one has ended, they may be its.
            Joins::Most | Joins::Least if !had_ended => of(&all),
            Joins::Most | Joins::Least if !has_ended => of(open),
            Joins::Most | Joins::Least => None,
        };
        if let Some(value) = value {
            (figure.field.set)(&mut row, value);
        }
    }
    (row != none).then_some(row)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::Intervals;
    use super::*;
    use crate::interval_rows::SeenTable;
    use crate::{ImageCounts, Snapshot, Trace};

    /// A connection that was made at a step, has sent so much in each, and may have ended at one.
    #[derive(Debug, Clone, Copy)]
    struct Life {
        began: usize,
        ended: Option<usize>,
        rtt_us: u64,
        segments: u64,
    }

    impl Life {
        /// Its figures when this step is over.
        fn figures(self, step: usize) -> TcpFigures {
            let steps = self.ended.unwrap_or(step).min(step) + 1 - self.began;
            TcpFigures {
                measured: 1,
                rtts: 1,
                rtt_us: self.rtt_us,
                min_rtt_us: self.rtt_us,
                max_rtt_us: self.rtt_us,
                segments: self.segments * steps as u64,
                retransmits: steps as u64,
                ..TcpFigures::default()
            }
        }

        fn has_ended(self, step: usize) -> bool {
            self.ended.is_some_and(|at| at <= step)
        }
    }

    fn sum<'l>(lives: impl Iterator<Item = &'l Life>, step: usize) -> Option<TcpFigures> {
        let mut sum = None;
        for life in lives {
            let sum: &mut TcpFigures = sum.get_or_insert_default();
            sum.merge(&life.figures(step));
        }
        sum
    }

    fn ends() -> Socket {
        Socket { protocol: "tcp".into(), remote: Some("[::1]:80".into()), ..Socket::default() }
    }

    /// The counts when a step is over.
    fn counts(lives: &[Life], step: usize) -> ConnectionCounts {
        let known: Vec<Life> = lives.iter().copied().filter(|one| one.began <= step).collect();
        let (ended, open): (Vec<Life>, Vec<Life>) =
            known.iter().partition(|one| one.has_ended(step));
        let opened = known.len() as u64;
        let counts = Connection {
            ends: ends(),
            opened,
            timed: opened,
            connect_ns: known.iter().map(|one| one.rtt_us).sum(),
            max_ns: known.iter().map(|one| one.rtt_us).max().unwrap_or(0),
            closed: Some(ended.len() as u64),
            errors: [("ECONNREFUSED".to_owned(), opened / 2)].into(),
            read_calls: opened * 3,
            read_bytes: opened * 10 + step as u64,
            tcp: sum(ended.iter(), step),
            ..Connection::default()
        };
        ConnectionCounts { counts, open: sum(open.iter(), step) }
    }

    fn image(connections: Vec<ConnectionCounts>) -> ImageCounts {
        let (id, pid, exec) = (1, 10, "server".to_owned());
        ImageCounts { id, pid, exec, connections, ..ImageCounts::default() }
    }

    /// The record of a watch that ended with this step.
    fn record(lives: &[Life], step: usize) -> Trace {
        let mut record = crate::store::parse_trace(include_bytes!("store/plain.json")).unwrap();
        record.wall_ns = 1_000;
        (record.calls, record.files, record.ledger) = Default::default();
        let ConnectionCounts { mut counts, open } = counts(lives, step);
        match (&mut counts.tcp, open) {
            (Some(sum), Some(open)) => sum.merge(&open),
            (sum, open) => *sum = sum.take().or(open),
        }
        record.connections = vec![Connection { pid: 10, exec: "server".into(), ..counts }];
        record
    }

    fn intervals(lives: &[Life], steps: usize) -> Vec<Connection> {
        let mut intervals = Intervals::default();
        let mut all = Vec::new();
        for step in 0..steps {
            let images = vec![image(vec![counts(lives, step)])];
            let (elapsed_ns, lost_connections) = (step as u64 + 1, step as u64);
            let now = Snapshot { elapsed_ns, images, lost_connections, ..Snapshot::default() };
            let counts = intervals.advance(&now);
            assert_eq!(counts.lost_connections, u64::from(step > 0));
            all.extend(counts.connections);
        }
        all.extend(intervals.finish(&record(lives, steps)).connections);
        all
    }

    #[test]
    fn figures_of_a_moment_are_those_of_the_connections_of_the_interval() {
        let lives = [
            Life { began: 0, ended: Some(1), rtt_us: 40, segments: 5 },
            Life { began: 0, ended: None, rtt_us: 90, segments: 7 },
            Life { began: 2, ended: Some(2), rtt_us: 10, segments: 1 },
        ];
        let rows = intervals(&lives, 3);
        let figures: Vec<_> = rows.iter().map(|row| row.tcp.as_ref().unwrap()).collect();
        let rtts: Vec<_> = figures.iter().map(|tcp| (tcp.measured, tcp.rtt_us)).collect();
        // Two that are open; one that ended and one that is open; the same; one that is open.
        assert_eq!(rtts, [(2, 130), (2, 130), (2, 100), (1, 90)]);
        let extremes: Vec<_> = figures.iter().map(|tcp| (tcp.min_rtt_us, tcp.max_rtt_us)).collect();
        // From the third on, the least could be that of one that ended before.
        assert_eq!(extremes, [(40, 90), (40, 90), (0, 0), (0, 0)]);
        let segments: Vec<_> = figures.iter().map(|tcp| tcp.segments).collect();
        assert_eq!(segments, [12, 12, 8, 7]);
        let opened: Vec<_> = rows.iter().map(|row| (row.opened, row.closed, row.max_ns)).collect();
        assert_eq!(opened, [(2, Some(0), 90), (0, Some(1), 0), (1, Some(1), 0), (0, Some(0), 0)]);
        assert!(rows.iter().all(|row| (row.pid, &*row.exec) == (10, "server")));
    }

    #[test]
    fn an_interval_in_which_nothing_came_has_no_row() {
        let idle = ConnectionCounts { open: Some(TcpFigures::default()), ..counts(&[], 0) };
        let mut seen = SeenTable::default();
        assert!(seen.advance(1, &<_>::default(), &[idle]).is_empty());
    }

    #[test]
    fn the_name_of_a_peer_may_come_later() {
        let named = |peer: Option<&str>| Connection {
            ends: Socket { peer: peer.map(str::to_owned), ..ends() },
            opened: 3,
            ..Connection::default()
        };
        let mut seen = SeenTable::default();
        let counts = ConnectionCounts { counts: named(None), open: None };
        assert_eq!(seen.advance(1, &<_>::default(), &[counts]).len(), 1);
        let of_record = seen.finish(&[named(Some("server"))]);
        assert!(of_record.values().flatten().next().is_none(), "{of_record:?}");
    }

    proptest! {
        #[test]
        fn intervals_add_up_to_the_connections_of_the_record(
            lives in prop::collection::vec((0usize..6, prop::option::of(0usize..6), 1u64..90), 0..9),
            steps in 1usize..6,
        ) {
            let life = |(began, lasted, segments): (usize, Option<usize>, u64)| Life {
                began,
                ended: lasted.map(|steps| began + steps),
                rtt_us: segments,
                segments,
            };
            let lives: Vec<Life> = lives.into_iter().map(life).collect();
            let rows = intervals(&lives, steps);
            let whole = &record(&lives, steps).connections[0];
            let sum = |part: fn(&Connection) -> u64| rows.iter().map(part).sum::<u64>();
            for part in [
                (|row| row.opened) as fn(&Connection) -> u64,
                |row| row.closed.unwrap_or(0),
                |row| row.timed,
                |row| row.connect_ns,
                |row| row.errors.values().sum(),
                |row| row.read_calls,
                |row| row.read_bytes,
                |row| row.tcp.as_ref().map_or(0, |tcp| tcp.segments),
                |row| row.tcp.as_ref().map_or(0, |tcp| tcp.retransmits),
            ] {
                prop_assert_eq!(sum(part), part(whole));
            }
        }
    }
}
