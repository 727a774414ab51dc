//! The counts of one interval of a watch, from snapshots.
//!
//! The one invariant: the intervals add up to the record of the whole watch. A snapshot may miss a
//! thread that ends while it is taken, and the next one has it: so a difference is not to the
//! snapshot before but to the most that has been counted so far, and the last interval is the
//! difference of the record to all of that.

use std::collections::{BTreeMap, HashMap};

use crate::growth::more;
use crate::interval_requests::answered;
use crate::interval_rows::{Image, SeenTable};
use crate::{
    Call, Connection, ConnectionCounts, Exchange, FileKind, FileUse, Interval, LedgerRow, Process,
    RingOperation, Snapshot, Trace, statistic,
};

/// The tables of an interval.
#[derive(Debug, Clone, PartialEq)]
pub struct IntervalCounts {
    /// Its place.
    pub interval: Interval,
    /// Its length.
    pub wall_ns: u64,
    /// The images that lived or counted something in it.
    pub processes: Vec<Process>,
    /// The calls that returned in it or were in progress.
    pub calls: Vec<Call>,
    /// The files used in it, without who used them.
    pub files: Vec<FileUse>,
    /// What came of connections in it.
    pub connections: Vec<Connection>,
    /// The ring operations that came in it.
    pub ring_operations: Vec<RingOperation>,
    /// The requests of connections that ended in it.
    pub requests: Vec<Exchange>,
    /// The time of threads in it.
    pub ledger: Vec<LedgerRow>,
    /// Events that found no room in it.
    pub lost: u64,
    /// Connections, and outcomes of such, that found no room in it.
    pub lost_connections: u64,
    /// Requests of rings that found no room in it, or whose end was not seen.
    pub lost_requests: u64,
    /// Requests of connections that found no room in it, and calls on connections that found none.
    pub lost_exchanges: u64,
}

/// The name of an image whose program the observer has not read.
const UNKNOWN: &str = "?";

/// What has been given out so far.
#[derive(Debug, Default)]
pub struct Intervals {
    number: u64,
    elapsed_ns: u64,
    lost: u64,
    lost_connections: u64,
    lost_requests: u64,
    lost_exchanges: u64,
    /// By the image's number in the watch: the most that was counted.
    images: HashMap<u32, Counted>,
    connections: SeenTable<ConnectionCounts>,
    rings: SeenTable<RingOperation>,
    requests: SeenTable<Exchange>,
    /// Of all, by name.
    given: HashMap<Image, Counted>,
    files: BTreeMap<(FileKind, String), FileUse>,
}

#[derive(Debug, Default)]
struct Counted {
    calls: HashMap<String, Call>,
    ledger: LedgerRow,
}

impl Intervals {
    /// The interval that ends with this snapshot.
    pub fn advance(&mut self, now: &Snapshot) -> IntervalCounts {
        let counts = self.since_last(now);
        self.give(&counts);
        counts
    }

    /// The same where [`Intervals::finish`] will not ask what was given out: what is known of images goes with them, and
    /// so the memory of a watch that goes on for ever stays bounded.
    pub fn since_last(&mut self, now: &Snapshot) -> IntervalCounts {
        let mut counts = self.begin(now.elapsed_ns);
        counts.lost = now.lost.saturating_sub(self.lost);
        self.lost = self.lost.max(now.lost);
        counts.lost_connections = more(now.lost_connections, &mut self.lost_connections);
        counts.lost_requests = more(now.lost_requests, &mut self.lost_requests);
        counts.lost_exchanges = more(now.lost_exchanges, &mut self.lost_exchanges);
        // One whose program is not known yet will be counted under its name.
        for image in now.images.iter().filter(|image| image.exec != UNKNOWN) {
            let name = (image.pid, image.exec.clone());
            let seen = self.images.entry(image.id).or_default();
            let ledger = image.ledger.as_ref().map(|now| ledger_since(now, &mut seen.ledger));
            let mut is_used = counts.add(&name, &image.calls, ledger.as_ref(), seen);
            is_used |= extend(
                &mut counts.connections,
                self.connections.advance(image.id, &name, &image.connections),
            );
            is_used |= extend(
                &mut counts.ring_operations,
                self.rings.advance(image.id, &name, &image.ring_operations),
            );
            is_used |= extend(
                &mut counts.requests,
                self.requests.advance(image.id, &name, &answered(&image.requests)),
            );
            if image.threads > 0 || is_used {
                counts.processes.push(Process {
                    pid: image.pid,
                    exec: image.exec.clone(),
                    called: image.called.clone(),
                    title: image.title.clone(),
                    threads: image.threads,
                    ..Process::default()
                });
            }
        }
        for file in &now.files {
            let seen = self.files.entry((file.kind, file.path.clone())).or_default();
            counts.files.extend(file_since(file, seen));
        }
        counts.sort();
        for id in &now.forgotten {
            self.images.remove(id);
            self.connections.forget(*id);
            self.rings.forget(*id);
            self.requests.forget(*id);
        }
        counts
    }

    /// Of how many images something is known, or was given out.
    #[cfg(test)]
    pub(crate) fn images_known(&self) -> usize {
        self.images.len() + self.given.len()
    }

    /// The last interval: what the record of the watch has beyond those before.
    pub fn finish(mut self, record: &Trace) -> IntervalCounts {
        let mut counts = self.begin(record.wall_ns);
        counts.interval.is_last = true;
        let lost = record.observer.lost_events.saturating_add(record.observer.lost_files);
        counts.lost = lost.saturating_sub(self.lost);
        counts.lost_connections =
            more(record.observer.lost_connections, &mut self.lost_connections);
        counts.lost_requests = more(record.observer.lost_requests, &mut self.lost_requests);
        counts.lost_exchanges = more(record.observer.lost_exchanges, &mut self.lost_exchanges);
        let mut whole: BTreeMap<Image, (BTreeMap<&str, Call>, Option<LedgerRow>)> = BTreeMap::new();
        let mut connections = std::mem::take(&mut self.connections).finish(&record.connections);
        let mut rings = std::mem::take(&mut self.rings).finish(&record.ring_operations);
        let mut requests = std::mem::take(&mut self.requests).finish(&record.requests);
        for name in connections.keys().chain(rings.keys()).chain(requests.keys()) {
            whole.entry(name.clone()).or_default();
        }
        for call in &record.calls {
            let (calls, _) = whole.entry((call.pid, call.exec.clone())).or_default();
            match calls.get_mut(call.syscall.as_str()) {
                Some(sum) => sum.merge(call),
                None => _ = calls.insert(&call.syscall, call.clone()),
            }
        }
        for row in &record.ledger {
            let (_, ledger) = whole.entry((row.pid, row.exec.clone())).or_default();
            statistic::add(ledger.get_or_insert_default(), row);
        }
        for (name, (calls, ledger)) in whole {
            let mut seen = self.given.remove(&name).unwrap_or_default();
            let calls: Vec<Call> = calls.into_values().collect();
            let ledger = ledger.as_ref().map(|now| ledger_since(now, &mut seen.ledger));
            let process =
                record.processes.iter().find(|one| (one.pid, &one.exec) == (name.0, &name.1));
            let mut is_used = counts.add(&name, &calls, ledger.as_ref(), &mut seen);
            is_used |=
                extend(&mut counts.connections, connections.remove(&name).unwrap_or_default());
            is_used |= extend(&mut counts.ring_operations, rings.remove(&name).unwrap_or_default());
            is_used |= extend(&mut counts.requests, requests.remove(&name).unwrap_or_default());
            if is_used {
                counts.processes.push(Process {
                    pid: name.0,
                    exec: name.1.clone(),
                    called: process.map(|one| one.called.clone()).unwrap_or_default(),
                    title: process.map(|one| one.title.clone()).unwrap_or_default(),
                    ..Process::default()
                });
            }
        }
        let mut files: BTreeMap<(FileKind, &str), FileUse> = BTreeMap::new();
        for file in &record.files {
            let sum = files.entry((file.kind, &file.path)).or_insert_with(|| FileUse {
                kind: file.kind,
                path: file.path.clone(),
                socket: file.socket.clone(),
                ..FileUse::default()
            });
            statistic::add(sum, file);
        }
        for (key, file) in files {
            let seen = self.files.entry((key.0, key.1.to_owned())).or_default();
            counts.files.extend(file_since(&file, seen));
        }
        counts.sort();
        counts
    }

    fn begin(&mut self, until_ns: u64) -> IntervalCounts {
        self.number += 1;
        let start_ns = self.elapsed_ns;
        self.elapsed_ns = until_ns.max(start_ns);
        IntervalCounts {
            interval: Interval { number: self.number, start_ns, is_last: false },
            wall_ns: self.elapsed_ns - start_ns,
            processes: Vec::new(),
            calls: Vec::new(),
            files: Vec::new(),
            connections: Vec::new(),
            ring_operations: Vec::new(),
            requests: Vec::new(),
            ledger: Vec::new(),
            lost: 0,
            lost_connections: 0,
            lost_requests: 0,
            lost_exchanges: 0,
        }
    }

    /// Notes what an interval has.
    fn give(&mut self, counts: &IntervalCounts) {
        for call in &counts.calls {
            let given = self.given.entry((call.pid, call.exec.clone())).or_default();
            match given.calls.get_mut(&call.syscall) {
                Some(sum) => sum.merge(call),
                None => _ = given.calls.insert(call.syscall.clone(), call.clone()),
            }
        }
        for row in &counts.ledger {
            let given = self.given.entry((row.pid, row.exec.clone())).or_default();
            statistic::add(&mut given.ledger, row);
        }
    }
}

impl IntervalCounts {
    /// Adds what an image has beyond what was seen of it. Whether that is anything.
    fn add(
        &mut self,
        (pid, exec): &Image,
        calls: &[Call],
        ledger: Option<&LedgerRow>,
        seen: &mut Counted,
    ) -> bool {
        let before = (self.calls.len(), self.ledger.len());
        for call in calls {
            let seen = seen.calls.entry(call.syscall.clone()).or_default();
            let row = call_since(call, seen);
            self.calls.extend(row.map(|row| Call { pid: *pid, exec: exec.clone(), ..row }));
        }
        let row = ledger.filter(|row| row.thread_ns > 0).cloned();
        self.ledger.extend(row.map(|row| LedgerRow { pid: *pid, exec: exec.clone(), ..row }));
        before != (self.calls.len(), self.ledger.len())
    }

    fn sort(&mut self) {
        self.requests.sort_by_key(|row| std::cmp::Reverse(row.wall_ns));
        self.ring_operations.sort_by_key(|row| std::cmp::Reverse(row.submitted));
        self.connections.sort_by_key(|row| std::cmp::Reverse((row.opened, row.before)));
        self.calls.sort_by(|a, b| b.wall_ns.cmp(&a.wall_ns).then(a.syscall.cmp(&b.syscall)));
        let bytes = |file: &FileUse| file.read_bytes.saturating_add(file.write_bytes);
        self.files.sort_by_key(|file| std::cmp::Reverse(bytes(file)));
    }
}

/// Adds rows. Whether there are any.
fn extend<R>(table: &mut Vec<R>, mut rows: Vec<R>) -> bool {
    let is_used = !rows.is_empty();
    table.append(&mut rows);
    is_used
}

fn call_since(now: &Call, seen: &mut Call) -> Option<Call> {
    let mut wall_times = now.wall_times.since(&seen.wall_times);
    let longest = |now_ns: u64, seen_ns: u64| match now_ns <= seen_ns {
        true => (wall_times.highest().min(now_ns), true),
        // Above all before it, the longest call is of this interval.
        false => (now_ns, false),
    };
    let (max_ns, max_is_bound) = match wall_times.is_empty() {
        // Of calls in progress, which are no part of the longest one that ended.
        true => longest(now.max_ns, seen.max_ns),
        false => longest(now.wall_times.max_ns, seen.wall_times.max_ns),
    };
    seen.wall_times.merge(&wall_times);
    wall_times.max_ns = if wall_times.is_empty() { 0 } else { max_ns };
    seen.max_ns = seen.max_ns.max(now.max_ns);
    let ended_ns = now.wall_ns.saturating_sub(now.open_ns.unwrap_or(0));
    let mut row = statistic::since(now, seen);
    row.syscall.clone_from(&now.syscall);
    (row.max_ns, row.max_is_bound) = (max_ns, max_is_bound);
    row.ended_ns = Some(more(ended_ns, seen.ended_ns.get_or_insert_default()));
    // Snapshots have none of these.
    (row.open_ns, row.entered_before, row.asked, row.ready) = (None, 0, None, None);
    row.wall_log2 = wall_times.log2();
    row.wall_times = wall_times;
    // A snapshot reads one table after another: errors may be seen an interval after their calls.
    (statistic::is_used(&row) || row.wall_times.total() > 0).then_some(row)
}

fn ledger_since(now: &LedgerRow, seen: &mut LedgerRow) -> LedgerRow {
    LedgerRow {
        thread_ns: more(now.thread_ns, &mut seen.thread_ns),
        user_ns: more(now.user_ns, &mut seen.user_ns),
        calls_on_cpu_ns: more(now.calls_on_cpu_ns, &mut seen.calls_on_cpu_ns),
        blocked_ns: more(now.blocked_ns, &mut seen.blocked_ns),
        runnable_ns: more(now.runnable_ns, &mut seen.runnable_ns),
        ..LedgerRow::default()
    }
}

fn file_since(now: &FileUse, seen: &mut FileUse) -> Option<FileUse> {
    let counts = statistic::since(now, seen);
    let mut row = FileUse { pid: 0, exec: String::new(), ..now.clone() };
    statistic::set(&mut row, &counts);
    statistic::is_used(&row).then_some(row)
}

#[cfg(test)]
#[path = "interval_tests.rs"]
mod tests;
