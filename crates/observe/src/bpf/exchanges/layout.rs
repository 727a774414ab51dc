//! The structs of `exchanges.h`.

use iotomy_record::{Exchange, Role, Times};

use super::super::connection_rows::ConnectionKey;
use super::super::layout::{Fields, Sparse, TIMES, Wire, sparse};

/// The tables, as the trace's session knows them.
pub(super) const EXCHANGES: &str = "exchanges";
pub(super) const CHANNELS: &str = "channels";
pub(super) const COUNTERS: &str = "counters of exchanges";

/// `struct exchange_counters`.
#[derive(Debug, Default)]
pub(super) struct Counters {
    pub(super) lost: u64,
    pub(super) unclear: u64,
}

impl Wire for Counters {
    const SIZE: usize = 2 * 8;

    fn read(from: &mut Fields<'_>) -> Self {
        Self { lost: from.u64(), unclear: from.u64() }
    }
}

/// `struct spent`: where a thread spent its time.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct Spent {
    on_cpu_ns: u64,
    runnable_ns: u64,
    disk_ns: u64,
    peer_ns: u64,
    lock_ns: u64,
    other_ns: u64,
}

impl Wire for Spent {
    const SIZE: usize = 6 * 8;

    fn read(from: &mut Fields<'_>) -> Self {
        Self {
            on_cpu_ns: from.u64(),
            runnable_ns: from.u64(),
            disk_ns: from.u64(),
            peer_ns: from.u64(),
            lock_ns: from.u64(),
            other_ns: from.u64(),
        }
    }
}

/// `struct exchange_row`.
#[derive(Debug, Default)]
pub(super) struct Row {
    requests: u64,
    unanswered: u64,
    pipelined: u64,
    moved: u64,
    unseen: u64,
    wall_ns: u64,
    max_ns: u64,
    unread_ns: u64,
    spent: Spent,
    wall: Sparse,
}

impl Wire for Row {
    const SIZE: usize = 8 * 8 + Spent::SIZE + 4 * TIMES;

    fn read(from: &mut Fields<'_>) -> Self {
        Self {
            requests: from.u64(),
            unanswered: from.u64(),
            pipelined: from.u64(),
            moved: from.u64(),
            unseen: from.u64(),
            wall_ns: from.u64(),
            max_ns: from.u64(),
            unread_ns: from.u64(),
            spent: Spent::read(from),
            wall: sparse(from, TIMES, 4),
        }
    }
}

impl Row {
    /// In the record's terms, without whose it is.
    pub(super) fn exchange(&self) -> Exchange {
        let mut times = Times::default();
        self.wall.iter().for_each(|(bucket, count)| times.add_bucket(*bucket, *count));
        times.max_ns = self.max_ns;
        let Spent { on_cpu_ns, runnable_ns, disk_ns, peer_ns, lock_ns, other_ns } = self.spent;
        let known = [self.unread_ns, on_cpu_ns, runnable_ns, disk_ns, peer_ns, lock_ns, other_ns];
        let known = known.into_iter().fold(0, u64::saturating_add);
        Exchange {
            requests: self.requests,
            unanswered: self.unanswered,
            pipelined: self.pipelined,
            moved: self.moved,
            unseen_arrivals: self.unseen,
            wall_ns: self.wall_ns,
            max_ns: self.max_ns,
            wall_times: times,
            unread_ns: self.unread_ns,
            on_cpu_ns,
            runnable_ns,
            disk_ns,
            peer_ns,
            lock_ns,
            other_ns,
            elsewhere_ns: self.wall_ns.saturating_sub(known),
            ..Exchange::default()
        }
    }
}

/// `struct channel`: a connection that was there when the watch ended.
pub(super) struct Channel {
    pub(super) key: ConnectionKey,
    arrived_ns: u64,
    began_ns: u64,
    read_ns: u64,
    end_ns: u64,
    spent: Spent,
    writing: bool,
    moved: bool,
    pipelined: bool,
    unseen: bool,
}

impl Wire for Channel {
    const SIZE: usize = ConnectionKey::SIZE + 8 * 8 + Spent::SIZE + 5 * 8 + 6 * 4;

    fn read(from: &mut Fields<'_>) -> Self {
        let key = ConnectionKey::read(from);
        let (_inode, _generation) = (from.u64(), from.u64());
        let (arrived_ns, _newest_ns) = (from.u64(), from.u64());
        let (began_ns, read_ns) = (from.u64(), from.u64());
        let (end_ns, _write_ns) = (from.u64(), from.u64());
        let spent = Spent::read(from);
        let _at_first: [u64; 5] = std::array::from_fn(|_| from.u64());
        let (_tid, writing, moved) = (from.u32(), from.u32() > 0, from.u32() > 0);
        let (pipelined, _of_next, unseen) = (from.u32() > 0, from.u32(), from.u32() > 0);
        Self {
            key,
            arrived_ns,
            began_ns,
            read_ns,
            end_ns,
            spent,
            writing,
            moved,
            pipelined,
            unseen,
        }
    }
}

impl Channel {
    /// Whether it has a request that has no answer yet.
    pub(super) fn is_in_flight(&self) -> bool {
        let is_waiting = self.key.name.role == Some(Role::Accept) && self.arrived_ns > 0;
        let is_begun = self.key.name.role.is_some() && self.began_ns > 0;
        is_waiting || is_begun && !self.is_answered()
    }

    fn is_answered(&self) -> bool {
        self.began_ns > 0 && self.end_ns > 0 && !self.writing
    }

    /// What its last exchange adds to the row: an answer that no request has followed is whole. `ended`: the process
    /// has, and with it the connection.
    pub(super) fn last(&self, ended: bool) -> Option<Exchange> {
        self.key.name.role?;
        let is_in_flight = self.is_in_flight();
        if self.is_answered() {
            let wall_ns = self.end_ns.saturating_sub(self.began_ns);
            let mut times = Times::default();
            times.add(wall_ns);
            let row = Row {
                requests: 1,
                pipelined: self.pipelined.into(),
                moved: self.moved.into(),
                unseen: self.unseen.into(),
                wall_ns,
                max_ns: wall_ns,
                unread_ns: self.read_ns.saturating_sub(self.began_ns),
                spent: self.spent,
                wall: times.buckets().to_vec(),
                ..Row::default()
            };
            let mut last = row.exchange();
            // The next request has come, too.
            let next = u64::from(is_in_flight);
            *(if ended { &mut last.unanswered } else { &mut last.in_flight }) = next;
            return Some(last);
        }
        is_in_flight.then(|| match ended {
            true => Exchange { unanswered: 1, ..Exchange::default() },
            false => Exchange { in_flight: 1, ..Exchange::default() },
        })
    }
}
