//! The time ledger of a round, from a watched run.

use iotomy_record::{LedgerRow, Trace};

use crate::harness::Params;

/// Whether the case gets a ledger: backends, file systems and policies do, with all other axes at
/// their usual values.
pub(super) fn is_watched(case: &Params) -> bool {
    let is_plain = |name: &str, usual: &str| case.name(name) == usual;
    is_plain("op", "round")
        && is_plain("sched", "normal")
        && is_plain("layout", "default")
        && case.number("threads") == 1
        && case.number("name") == 14
        && case.number("files") == 10
}

/// Returns how the time of a round is spent, including start and end of the process and excluding
/// the tracing overhead.
pub(super) fn ledger(trace: &Trace, rounds: f64) -> Vec<(&'static str, f64)> {
    if trace.observer.times_inflated {
        return Vec::new();
    }
    let calls: u64 = trace.calls.iter().map(|call| call.calls).sum();
    let watching = calls as f64 * trace.observer.cost_ns_per_call;
    let sum =
        |of: fn(&LedgerRow) -> u64| trace.ledger.iter().map(|row| of(row) as f64).sum::<f64>();
    vec![
        ("calls", calls as f64 / rounds),
        ("user_ns", sum(|row| row.user_ns) / rounds),
        ("in_calls_ns", (sum(|row| row.calls_on_cpu_ns) - watching).max(0.0) / rounds),
        ("blocked_ns", sum(|row| row.blocked_ns) / rounds),
        ("waiting_ns", sum(|row| row.runnable_ns) / rounds),
    ]
}
