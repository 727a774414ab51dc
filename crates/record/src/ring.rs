//! The last stretch of a watch: its newest intervals, added up.
//!
//! The one invariant is the bound on memory: of a process that has ended nothing is kept for longer
//! than the stretch, and identical ones that ended in one interval are one entry there.

use std::cmp::Reverse;
use std::collections::VecDeque;
use std::collections::hash_map::{Entry, HashMap};

use crate::{
    Call, Exchange, Intervals, LedgerRow, Process, Ring, RingOperation, Running, Snapshot, Socket,
    Trace, statistic, without_numbers,
};

/// The newest intervals of a watch that goes on: as few as have the length that is asked for.
#[derive(Debug)]
pub struct LastStretch {
    asked_ns: u64,
    intervals: Intervals,
    /// What the records have in common.
    common: Trace,
    /// In the order they came, each with its beginning.
    steps: VecDeque<(u64, Trace)>,
}

/// A row's image.
type Image = (u32, String);

impl LastStretch {
    /// Of this length, with what its record has in common with that of the watch.
    pub fn new(asked_ns: u64, common: Trace) -> Self {
        Self { asked_ns, intervals: Intervals::default(), common, steps: VecDeque::new() }
    }

    /// The common part of the record.
    pub fn common_mut(&mut self) -> &mut Trace {
        &mut self.common
    }

    /// The counts as they are now; what is older than the stretch goes.
    pub fn advance(&mut self, now: &Snapshot) {
        let counts = self.intervals.since_last(now);
        let alive = counts.processes.iter().filter(|process| process.threads > 0);
        let still_running =
            alive.map(|process| Running { pid: process.pid, exec: process.exec.clone() }).collect();
        let mut step = Trace {
            wall_ns: counts.wall_ns,
            still_running,
            processes: counts.processes,
            calls: counts.calls,
            ring_operations: counts.ring_operations,
            requests: counts.requests,
            ledger: counts.ledger,
            slowest: now.slowest.clone(),
            ..self.common.clone()
        };
        step.observer.lost_events = counts.lost;
        step.observer.lost_requests = counts.lost_requests;
        step.observer.lost_exchanges = counts.lost_exchanges;
        step.roll_up();
        self.push(counts.interval.start_ns, step);
        let mut length: u64 = self.steps.iter().map(|(_, step)| step.wall_ns).sum();
        while let Some((_, oldest)) = self.steps.front()
            && length - oldest.wall_ns >= self.asked_ns
            && self.steps.len() > 1
        {
            length -= oldest.wall_ns;
            self.steps.pop_front();
        }
    }

    /// Adds an interval. Short ones are put together, however many snapshots there are: two neighbours are longer than a
    /// tenth of the stretch. Identical images that ended in different ones are then one entry, too.
    fn push(&mut self, start_ns: u64, step: Trace) {
        match self.steps.back_mut() {
            Some((_, last)) if last.wall_ns.saturating_add(step.wall_ns) <= self.asked_ns / 10 => {
                let before = std::mem::replace(last, self.common.clone());
                let mut places = Places::default();
                [before, step].into_iter().for_each(|one| places.add(last, one));
                last.roll_up();
            }
            _ => self.steps.push_back((start_ns, step)),
        }
    }

    /// The record of the stretch.
    pub fn record(&self) -> Trace {
        let start_ns = self.steps.front().map_or(0, |(start_ns, _)| *start_ns);
        let ring = Ring { asked_ns: self.asked_ns, start_ns, ..Ring::default() };
        let mut record = Trace { ring: Some(ring), ..self.common.clone() };
        let mut places = Places::default();
        for (_, step) in &self.steps {
            let mut step = step.clone();
            // A call that returns while a snapshot is taken may come with the next one.
            step.slowest.retain(|call| call.start_ns.saturating_add(call.wall_ns) > start_ns);
            places.add(&mut record, step);
        }
        record.requests.sort_by_key(|row| Reverse(row.wall_ns));
        record.calls.iter_mut().for_each(|call| call.wall_log2 = call.wall_times.log2());
        // The sum is the CPU time; the kernel's own accounting of a process begins before the stretch.
        for process in &mut record.processes {
            let own = places.ledger.get(&(process.pid, process.exec.clone()));
            if let Some(row) = own.map(|at| &record.ledger[*at]) {
                (process.user_ns, process.system_ns) = (row.user_ns, row.calls_on_cpu_ns);
            }
        }
        record
    }
}

/// Where the rows of the record are.
#[derive(Default)]
struct Places {
    processes: HashMap<Image, usize>,
    calls: HashMap<(Image, String), usize>,
    rings: HashMap<(Image, String), usize>,
    requests: HashMap<(Image, Socket), usize>,
    ledger: HashMap<Image, usize>,
}

impl Places {
    /// Adds an interval to a record.
    fn add(&mut self, record: &mut Trace, step: Trace) {
        record.wall_ns = record.wall_ns.saturating_add(step.wall_ns);
        let lost = &mut record.observer.lost_events;
        *lost = lost.saturating_add(step.observer.lost_events);
        let lost = &mut record.observer.lost_requests;
        *lost = lost.saturating_add(step.observer.lost_requests);
        let lost = &mut record.observer.lost_exchanges;
        *lost = lost.saturating_add(step.observer.lost_exchanges);
        // Of the last one: what is in progress at the end.
        record.calls.iter_mut().for_each(|call| call.in_flight = 0);
        record.ring_operations.iter_mut().for_each(|row| row.in_flight = 0);
        record.requests.iter_mut().for_each(|row| row.in_flight = 0);
        record.still_running = step.still_running;
        step.processes.into_iter().for_each(|one| self.add_process(record, one));
        step.calls.into_iter().for_each(|one| self.add_call(record, one));
        step.ring_operations.into_iter().for_each(|one| self.add_ring(record, one));
        step.requests.into_iter().for_each(|one| self.add_request(record, one));
        step.ledger.into_iter().for_each(|one| self.add_ledger(record, one));
        record.slowest.extend(step.slowest);
        record.slowest.sort_by_key(|call| Reverse(call.wall_ns));
        record.slowest.truncate(record.view.slowest as usize);
    }

    fn add_process(&mut self, record: &mut Trace, one: Process) {
        match self.processes.entry((one.pid, one.exec.clone())) {
            Entry::Vacant(place) => {
                place.insert(record.processes.len());
                record.processes.push(one);
            }
            Entry::Occupied(place) => {
                let sum = &mut record.processes[*place.get()];
                // Some that ended share the entry of the first, which may have been alive before.
                sum.instances = sum.instances.max(one.instances);
                sum.threads = sum.threads.max(one.threads);
                sum.title = match sum.instances {
                    0 => one.title,
                    _ => without_numbers(&one.title),
                };
            }
        }
    }

    fn add_call(&mut self, record: &mut Trace, one: Call) {
        match self.calls.entry(((one.pid, one.exec.clone()), one.syscall.clone())) {
            Entry::Vacant(place) => {
                place.insert(record.calls.len());
                record.calls.push(one);
            }
            Entry::Occupied(place) => {
                let sum = &mut record.calls[*place.get()];
                sum.merge(&one);
            }
        }
    }

    fn add_ring(&mut self, record: &mut Trace, one: RingOperation) {
        match self.rings.entry(((one.pid, one.exec.clone()), one.op.clone())) {
            Entry::Vacant(place) => {
                place.insert(record.ring_operations.len());
                record.ring_operations.push(one);
            }
            Entry::Occupied(place) => record.ring_operations[*place.get()].merge(&one),
        }
    }

    fn add_request(&mut self, record: &mut Trace, one: Exchange) {
        match self.requests.entry(((one.pid, one.exec.clone()), one.ends.unnamed())) {
            Entry::Vacant(place) => {
                place.insert(record.requests.len());
                record.requests.push(one);
            }
            Entry::Occupied(place) => record.requests[*place.get()].merge(&one),
        }
    }

    fn add_ledger(&mut self, record: &mut Trace, one: LedgerRow) {
        match self.ledger.entry((one.pid, one.exec.clone())) {
            Entry::Vacant(place) => {
                place.insert(record.ledger.len());
                record.ledger.push(one);
            }
            Entry::Occupied(place) => statistic::add(&mut record.ledger[*place.get()], &one),
        }
    }
}

#[cfg(test)]
#[path = "ring_tests.rs"]
mod tests;
