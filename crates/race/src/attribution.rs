//! Why one command takes longer: the difference of the untraced medians as a sum of terms from one
//! traced run of each, and the residual the terms leave. Pure: records in, records out.
//!
//! The observer's overhead is a range. Its middle, per call, is subtracted from the traced times
//! first: a part inside the call, the rest from the time between calls, where it is spent. The
//! remaining difference between traced and untraced runs is not spread over the terms; it is shown
//! as the residual. A term is compared with the upper end of the range: a smaller difference may be
//! the observer's.

use std::collections::BTreeMap;

use iotomy_record::{Attribution, Harness, Metric, Race, RaceCommand, Term, TermKind, Trace};

/// The share of the observer's price that falls between a call's two time stamps, and so into the
/// call: half of what is done at entry comes after its stamp, half of what is done at return before.
const INSIDE: f64 = 0.5;

/// Accounts for every difference the race compared; for the whole time of a command that ran alone.
pub fn attributions(race: &Race) -> Vec<Attribution> {
    let mut pairs: Vec<(&str, &str)> = Vec::new();
    for comparison in &race.comparisons {
        let pair = (comparison.base.as_str(), comparison.other.as_str());
        if !pairs.contains(&pair) {
            pairs.push(pair);
        }
    }
    if let ([one], []) = (&race.commands[..], &pairs[..]) {
        pairs.push((&one.label, &one.label));
    }
    let harness = &race.harness;
    let mut found = Vec::new();
    for (base, other) in pairs {
        let (Some(a), Some(b)) = (race.command(base), race.command(other)) else { continue };
        for metric in [Metric::Wall, Metric::Cpu] {
            let b = Side::for_command(b, metric, harness);
            let a = match base == other {
                true => Some(Side::default()),
                false => Side::for_command(a, metric, harness),
            };
            if let (Some(a), Some(b)) = (a, b) {
                found.push(attribution(base, other, metric, &a, &b));
            }
        }
    }
    found
}

/// The wall time of a traced run without what watching it cost, in ns.
pub fn less_price(trace: &Trace) -> f64 {
    let price = trace.observer.cost_ns_per_call * calls(trace) as f64;
    // Threads side by side pay side by side.
    (trace.wall_ns as f64 - price / side_by_side(trace)).max(0.0)
}

/// The most that watching added to a call, in ns.
fn most(trace: &Trace) -> f64 {
    let [_, most] = trace.observer.cost_range_ns();
    most
}

fn calls(trace: &Trace) -> u64 {
    trace
        .calls
        .iter()
        .map(|call| call.calls.saturating_add(call.in_flight))
        .fold(0, u64::saturating_add)
}

/// How many threads were at it at once, on average; 1 at least.
fn side_by_side(trace: &Trace) -> f64 {
    let active = |row: &iotomy_record::LedgerRow| row.user_ns as f64 + row.calls_on_cpu_ns as f64;
    let active: f64 = trace.ledger.iter().map(active).sum();
    (active / trace.wall_ns.max(1) as f64).max(1.0)
}

/// The threads that io_uring makes in a process.
const WORKERS: &str = "io_uring threads";

/// One part of a side's time.
#[derive(Debug, Default, Clone, Copy)]
struct TimeShare {
    ns: f64,
    count: u64,
    /// Of operations of io_uring.
    bytes: u64,
    /// The most that watching may have added.
    price: f64,
}

/// The time of a side, by kind.
#[derive(Debug, Default)]
struct Side {
    untraced_ns: f64,
    traced_ns: f64,
    parts: BTreeMap<(TermKind, String), TimeShare>,
}

impl Side {
    /// Nothing for a command without a traced run.
    fn for_command(command: &RaceCommand, metric: Metric, harness: &Harness) -> Option<Self> {
        let trace = command.trace.as_ref()?;
        let mut side = Self {
            untraced_ns: match metric {
                Metric::Wall => command.wall.median_ns,
                Metric::Cpu => command.cpu.median_ns,
            },
            ..Self::default()
        };
        if trace.observer.times_inflated || trace.ledger.is_empty() {
            // Times of such a run are the observer's: what it can tell is how often.
            for call in &trace.calls {
                let part = side.share(TermKind::Syscall, &call.syscall);
                part.count = part.count.saturating_add(call.calls);
                part.price += most(trace) * call.calls as f64;
            }
            return Some(side);
        }
        side.add_cpu(trace, harness);
        side.add_rings(trace);
        if metric == Metric::Cpu {
            let workers = trace.ledger.iter().map(|row| row.worker_ns as f64).sum();
            side.share(TermKind::Workers, WORKERS).ns = workers;
        }
        if metric == Metric::Wall {
            side.add_waits(trace);
            let startups: Vec<f64> = command.runs.iter().map(|run| run.startup_ns as f64).collect();
            side.add_overlap(trace);
            let startup = iotomy_stats::median(&startups).unwrap_or(0.0);
            side.share(TermKind::Startup, "start-up").ns = startup;
        }
        side.traced_ns = side.parts.values().map(|part| part.ns).sum();
        Some(side)
    }

    fn share(&mut self, kind: TermKind, name: &str) -> &mut TimeShare {
        self.parts.entry((kind, name.to_owned())).or_default()
    }

    /// Time on CPUs: in calls, in page faults, and the rest.
    fn add_cpu(&mut self, trace: &Trace, harness: &Harness) {
        let cost = trace.observer.cost_ns_per_call;
        let outside = cost * (1.0 - INSIDE) * calls(trace) as f64;
        let user: u64 = trace.ledger.iter().map(|row| row.user_ns).fold(0, u64::saturating_add);
        let user = (user as f64 - outside).max(0.0);
        // The way into the kernel and out of it is the call's, and lies outside its time stamps.
        let crossings = (harness.call_ns.unwrap_or(0.0) * calls(trace) as f64).min(user);
        let crossing = crossings / calls(trace).max(1) as f64;
        for call in &trace.calls {
            let entered = call.calls.saturating_add(call.in_flight);
            let inside = cost * INSIDE * entered as f64;
            let part = self.share(TermKind::Syscall, &call.syscall);
            part.count = part.count.saturating_add(entered);
            part.ns += (call.on_cpu_ns.unwrap_or(0) as f64 - inside).max(0.0);
            part.ns += crossing * entered as f64;
            part.price += most(trace) * entered as f64;
        }
        let user = user - crossings;
        let faults: u64 = trace.processes.iter().map(|process| process.minor_faults).sum();
        let in_faults = (faults as f64 * harness.fault_ns.unwrap_or(0.0)).min(user);
        *self.share(TermKind::Faults, "page faults") =
            TimeShare { ns: in_faults, count: faults, ..TimeShare::default() };
        let price = most(trace) * calls(trace) as f64;
        *self.share(TermKind::User, "user") =
            TimeShare { ns: user - in_faults, price, ..TimeShare::default() };
    }

    /// Requests to io_uring. Their times are no part of the sum: while a request is in flight, threads run, or
    /// wait in a call, and those times are terms. What io_uring's own threads run is beside those of the
    /// program, as CPU time that is counted with the process, and as wall time in which it waits or goes on.
    fn add_rings(&mut self, trace: &Trace) {
        for row in &trace.ring_operations {
            let part = self.share(TermKind::Ring, &row.op);
            part.count = part.count.saturating_add(row.submitted);
            part.bytes = part.bytes.saturating_add(row.bytes);
        }
    }

    /// Blocked time and run queue delay.
    fn add_waits(&mut self, trace: &Trace) {
        let first = trace.processes.first().map(|process| process.pid);
        let is_tree = trace.processes.iter().any(|process| Some(process.pid) != first);
        let mut in_calls = 0.0;
        for call in &trace.calls {
            let blocked = call.blocked_ns.unwrap_or(0) as f64;
            in_calls += blocked;
            // Waiting for its own children is accounted for in the children.
            if is_tree && matches!(call.syscall.as_str(), "wait4" | "waitid") {
                continue;
            }
            if blocked > 0.0 {
                let part = self.share(TermKind::Blocked, &call.syscall);
                part.ns += blocked;
                part.count = part.count.saturating_add(call.calls);
            }
        }
        let blocked: f64 = trace.ledger.iter().map(|row| row.blocked_ns as f64).sum();
        let elsewhere = (blocked - in_calls).max(0.0);
        if elsewhere > 0.0 {
            self.share(TermKind::Blocked, "page faults").ns = elsewhere;
        }
        let runnable: f64 = trace.ledger.iter().map(|row| row.runnable_ns as f64).sum();
        self.share(TermKind::Runnable, "run queue delay").ns = runnable;
    }

    /// Time that concurrent threads count twice.
    fn add_overlap(&mut self, trace: &Trace) {
        let threads: u64 = trace.processes.iter().map(|process| u64::from(process.threads)).sum();
        let images = trace.processes.len() as u64;
        let pids: std::collections::BTreeSet<u32> =
            trace.processes.iter().map(|process| process.pid).collect();
        if pids.len() > 1 || threads > images {
            let sum: f64 = self.parts.values().map(|part| part.ns).sum();
            self.share(TermKind::Overlap, "overlap").ns = less_price(trace) - sum;
        }
    }
}

fn attribution(base: &str, other: &str, metric: Metric, a: &Side, b: &Side) -> Attribution {
    let keys: std::collections::BTreeSet<_> = a.parts.keys().chain(b.parts.keys()).collect();
    let mut terms: Vec<Term> = keys
        .into_iter()
        .map(|key| {
            let of = |side: &Side| side.parts.get(key).copied().unwrap_or_default();
            let (x, y) = (of(a), of(b));
            let (base_ns, other_ns) = (whole(x.ns), whole(y.ns));
            Term {
                name: key.1.clone(),
                kind: key.0,
                delta_ns: other_ns.saturating_sub(base_ns),
                calls_base: x.count,
                calls_other: y.count,
                base_ns,
                other_ns,
                price_ns: whole(x.price.max(y.price)).unsigned_abs(),
                bytes_base: x.bytes,
                bytes_other: y.bytes,
            }
        })
        .filter(|term| {
            (term.base_ns, term.other_ns) != (0, 0)
                || term.calls_base.saturating_add(term.calls_other) > 0
        })
        .collect();
    // The largest first; the sort is stable and equals come by kind and name.
    terms.sort_by_key(|term| std::cmp::Reverse(term.delta_ns.unsigned_abs()));
    let delta_ns = whole(b.untraced_ns).saturating_sub(whole(a.untraced_ns));
    let explained = terms.iter().fold(0i64, |sum, term| sum.saturating_add(term.delta_ns));
    Attribution {
        base: base.to_owned(),
        other: other.to_owned(),
        metric,
        delta_ns,
        terms,
        residual_ns: delta_ns.saturating_sub(explained),
        traced_base_ns: whole(a.traced_ns).unsigned_abs(),
        traced_other_ns: whole(b.traced_ns).unsigned_abs(),
    }
}

/// To whole ns, in which sums are exact.
fn whole(ns: f64) -> i64 {
    // The cast saturates.
    ns.round() as i64
}

#[cfg(test)]
#[path = "attribution/tests.rs"]
mod tests;
