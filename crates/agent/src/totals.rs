//! The sums of all watches, by service and call.
//!
//! The one invariant: no number ever goes back. What a watch adds is what it counted beyond the most that was seen of it
//! ([`iotomy_record::Intervals`]), and a new watch begins at nothing. Where a part of the time is counted, each count stands
//! for as many as the interval's factor says: for a whole number, so that the parts of a sum still add up to it.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use iotomy_record::{Call, IntervalCounts, LedgerRow, Times};
use iotomy_sys::syscalls::transfer;

use crate::service::{By, OTHER, Services};

/// The upper bounds of durations, in ns. A time is a whole number of ns, and the kernel's buckets end at one less than a
/// power of two: so many took at most this long, exactly.
pub const BOUNDS_NS: [u64; 12] = [
    (1 << 10) - 1,
    (1 << 12) - 1,
    (1 << 14) - 1,
    (1 << 16) - 1,
    (1 << 18) - 1,
    (1 << 20) - 1,
    (1 << 22) - 1,
    (1 << 24) - 1,
    (1 << 26) - 1,
    (1 << 28) - 1,
    (1 << 30) - 1,
    (1 << 32) - 1,
];

/// How many errors of a call have labels; the others are added up.
const MOST_ERRORS: usize = 16;

/// Calls by numbers that the kernel has no name for.
const UNNAMED: &str = "unknown";

/// What was counted since the agent began.
#[derive(Debug, Default)]
pub(crate) struct Totals {
    pub(crate) services: Services,
    /// By place of the service.
    pub(crate) of_services: Vec<OfService>,
    pub(crate) lost: u64,
    /// Of the number of a call of all services, by its label.
    pub(crate) variances: BTreeMap<String, f64>,
}

/// The counts of a service.
#[derive(Debug, Default)]
pub(crate) struct OfService {
    pub(crate) calls: BTreeMap<String, OfCall>,
    pub(crate) ledger: LedgerRow,
    /// On-CPU time of calls by its estimate, for which its threads had no time on a CPU so far.
    owed_ns: u64,
}

/// The counts of a call of a service.
#[derive(Debug, Default)]
pub(crate) struct OfCall {
    pub(crate) calls: u64,
    pub(crate) errors: BTreeMap<String, u64>,
    pub(crate) bytes: u64,
    /// Of the calls that returned.
    pub(crate) wall_ns: u64,
    /// By bound; the last one has those above all of them.
    pub(crate) durations: [u64; BOUNDS_NS.len() + 1],
}

impl Totals {
    /// Adds what came in an interval, of which each call stands for so many.
    pub(crate) fn add(
        &mut self,
        counts: &IntervalCounts,
        factor: u32,
        by: By,
        most_services: usize,
    ) {
        let factor = u64::from(factor);
        self.lost = self.lost.saturating_add(counts.lost);
        let named = counts.processes.iter().map(|one| {
            let program = if one.called.is_empty() { &one.exec } else { &one.called };
            ((one.pid, one.exec.as_str()), by.service(program, &one.title))
        });
        let names: HashMap<(u32, &str), String> = named.collect();
        for call in counts.calls.iter().filter(|call| has_returned(call)) {
            let service = self.service(&names, (call.pid, &call.exec), most_services);
            let name = call_label(&call.syscall);
            match service.calls.get_mut(name) {
                Some(sum) => sum.add(call, factor),
                None => service.calls.entry(name.to_owned()).or_default().add(call, factor),
            }
        }
        for row in &counts.ledger {
            self.service(&names, (row.pid, &row.exec), most_services).add(row, factor);
        }
    }

    /// Adds to the variance of a call, by its name; without one, of those that have none of their own.
    pub(crate) fn add_variance(&mut self, call: &str, more: f64) {
        let label = if call.is_empty() { UNNAMED } else { call_label(call) };
        *self.variances.entry(label.to_owned()).or_default() += more;
    }

    /// Each call that a service made, with the variance of its number.
    pub(crate) fn variances(&self) -> impl Iterator<Item = (&str, f64)> {
        let names: BTreeSet<&str> =
            self.of_services.iter().flat_map(|one| one.calls.keys().map(String::as_str)).collect();
        names.into_iter().map(|name| (name, self.variances.get(name).copied().unwrap_or(0.0)))
    }

    fn service(
        &mut self,
        names: &HashMap<(u32, &str), String>,
        image: (u32, &str),
        most: usize,
    ) -> &mut OfService {
        // A row without a process would be a defect of the watch; its counts are kept.
        let place = self.services.place(names.get(&image).map_or(OTHER, String::as_str), most);
        if place >= self.of_services.len() {
            self.of_services.resize_with(place + 1, OfService::default);
        }
        &mut self.of_services[place]
    }

    /// Each service with its counts.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&str, &OfService)> {
        self.services.names().iter().map(String::as_str).zip(&self.of_services)
    }
}

impl OfService {
    /// Adds the time of threads. What they had on a CPU is exact; the part of it that was in calls is an estimate, which
    /// may be ahead of it: then the rest of it is given as there is time.
    fn add(&mut self, row: &LedgerRow, factor: u64) {
        let on_cpu_ns = row.user_ns.saturating_add(row.calls_on_cpu_ns);
        self.owed_ns = self.owed_ns.saturating_add(row.calls_on_cpu_ns.saturating_mul(factor));
        let in_calls_ns = self.owed_ns.min(on_cpu_ns);
        self.owed_ns -= in_calls_ns;
        let sum = &mut self.ledger;
        for (sum, more) in [
            (&mut sum.thread_ns, row.thread_ns),
            (&mut sum.user_ns, on_cpu_ns - in_calls_ns),
            (&mut sum.calls_on_cpu_ns, in_calls_ns),
            (&mut sum.blocked_ns, row.blocked_ns),
            (&mut sum.runnable_ns, row.runnable_ns),
        ] {
            *sum = sum.saturating_add(more);
        }
    }
}

impl OfCall {
    /// How many times are in the distribution.
    pub(crate) fn timed(&self) -> u64 {
        self.durations.iter().fold(0, |sum: u64, count| sum.saturating_add(*count))
    }

    /// Adds a row, of which each stands for so many.
    fn add(&mut self, call: &Call, factor: u64) {
        let add = |sum: &mut u64, more: u64| *sum = sum.saturating_add(more.saturating_mul(factor));
        add(&mut self.calls, call.calls);
        add(&mut self.bytes, call.bytes);
        add(&mut self.wall_ns, call.ended_ns.unwrap_or(0));
        for (error, count) in call.error_kinds.iter().filter(|(_, count)| **count > 0) {
            let has_label = self.errors.contains_key(error)
                || self.errors.keys().filter(|one| *one != OTHER).count() < MOST_ERRORS;
            let label = if has_label { error } else { OTHER };
            add(self.errors.entry(label.to_owned()).or_default(), *count);
        }
        for (sum, more) in self.durations.iter_mut().zip(by_bound(&call.wall_times)) {
            add(sum, more);
        }
    }
}

/// Counts by bound, each without those of the bounds below.
fn by_bound(times: &Times) -> [u64; BOUNDS_NS.len() + 1] {
    let mut counts = [0; BOUNDS_NS.len() + 1];
    let mut low_ns = 0;
    for (count, high_ns) in counts.iter_mut().zip(BOUNDS_NS.into_iter().chain([u64::MAX])) {
        *count = times.count_between(low_ns, high_ns);
        low_ns = high_ns.saturating_add(1);
    }
    counts
}

/// Whether a row has more than a call in progress.
fn has_returned(call: &Call) -> bool {
    call.calls > 0
        || !call.wall_times.is_empty()
        || call.error_kinds.values().any(|count| *count > 0)
}

/// The label of a call. A program may ask for any number: those without a name are one call.
fn call_label(name: &str) -> &str {
    if name.starts_with("syscall_") { UNNAMED } else { name }
}

/// Which way a call moves bytes.
pub(crate) fn direction(call: &str) -> &'static str {
    let plain = call.strip_suffix("(i386)").unwrap_or(call);
    match (transfer(plain), plain) {
        (Some(how), _) if how.from.is_some() && how.to.is_some() => "copy",
        (Some(how), _) if how.to.is_some() => "write",
        (_, "process_vm_writev") => "write",
        _ => "read",
    }
}

#[cfg(test)]
#[path = "totals_tests.rs"]
mod tests;
