//! A run that mostly waits for something outside it.
//!
//! While a watched thread runs, or is ready to run, the others may wait for it: that is not a wait for the
//! outside. While none does, only the outside can wake one.

use std::collections::BTreeMap;

use iotomy_record::numbers::{duration, share};
use iotomy_record::{LedgerRow, Verdict};
use serde_json::json;

use crate::facts::Fact;
use crate::finding::{FindingDeclaration, Rule, UnnamedFinding};
use crate::run::Run;

pub(crate) static DECLARATION: FindingDeclaration = FindingDeclaration {
    id: "blocked-on",
    verdict: Verdict::Note,
    summary: "for at least half of the run, every watched thread was blocked",
    description: "The wall time of the run, minus the time its threads spent on CPUs and in run \
        queues, is at least half of the wall time: for that long no watched thread ran or was \
        ready to run, so a cause outside the run ended each sleep. The finding names the calls \
        that blocked longest; it names those that wait for the run's own threads and children \
        (futex, wait4, waitid) only if there is no other. If most of the blocked time is that of \
        threads that a signal or a debugger had stopped, the finding says that instead. Of \
        programs that accept connections, and of processes that ran before the watch, only calls \
        other than those that wait for requests (epoll_wait, poll, read, accept, timers and similar) \
        count, and page faults: they must be half of that time. An idle server does not match. A run that waits for its own threads, \
        children or pipes while one of them works does not match.",
    facts: &[Fact::Times(&[]), Fact::Rings(&[]), Fact::Ledger, Fact::Tree],
    rules: &[Rule::Run(judge)],
};

/// Calls that usually wait for another thread or process of the run.
const FOR_OWN: [&str; 3] = ["wait4", "waitid", "futex"];
/// Calls that wait for somebody who wants something, or for the time of day.
const FOR_REQUESTS: [&str; 26] = [
    "epoll_wait",
    "epoll_pwait",
    "epoll_pwait2",
    "poll",
    "ppoll",
    "select",
    "pselect6",
    "accept",
    "accept4",
    "read",
    "readv",
    "recvfrom",
    "recvmsg",
    "recvmmsg",
    "io_uring_enter",
    "io_getevents",
    "io_pgetevents",
    "msgrcv",
    "mq_timedreceive",
    "rt_sigtimedwait",
    "rt_sigsuspend",
    "pause",
    "nanosleep",
    "clock_nanosleep",
    "restart_syscall",
    "semtimedop",
];
const ACCEPTS: [&str; 3] = ["accept", "accept4", "listen"];
/// The blocked time of a shorter run is its own start.
const SHORTEST_NS: u64 = 2_000_000;

fn judge(run: &Run<'_>) -> Option<UnnamedFinding> {
    let wall_ns = run.trace.wall_ns;
    // The lost time may have been work.
    if run.trace.ledger.is_empty() || run.trace.observer.lost_events > 0 || wall_ns < SHORTEST_NS {
        return None;
    }
    let active_ns = run.on_cpu_ns().saturating_add(run.runnable_ns());
    let active_ns = active_ns.saturating_add(run.residual_ns());
    let idle_ns = wall_ns.saturating_sub(active_ns);
    if idle_ns < wall_ns / 2 {
        return None;
    }
    if let Some(found) = stopped(run, idle_ns) {
        return Some(found);
    }
    let serves = run.trace.command.is_empty() || run.total(&ACCEPTS).begun() > 0;
    if serves && waited_for_more_than_requests_ns(run) < idle_ns / 2 {
        return None;
    }
    let longest = longest(run, serves);
    let named: Vec<String> =
        longest.iter().map(|(name, ns)| format!("{name} {}", duration(*ns as f64))).collect();
    let named = match named.is_empty() {
        true => String::new(),
        false => format!(". Blocked longest, summed over threads: {}", named.join(", ")),
    };
    let text = format!(
        "for at least {} of {} ({}) no watched thread ran or was ready to run: the run waited for \
         something outside it, such as a timer, a device, the network or another process{named}",
        duration(idle_ns as f64),
        duration(wall_ns as f64),
        share(idle_ns.into(), wall_ns.into()),
    );
    let evidence =
        [("idle_ns", json!(idle_ns)), ("wall_ns", json!(wall_ns)), ("calls", json!(longest))];
    Some(UnnamedFinding::new(text, evidence))
}

/// The same where threads had been stopped for most of the blocked time.
fn stopped(run: &Run<'_>, idle_ns: u64) -> Option<UnnamedFinding> {
    let sum = |part: fn(&LedgerRow) -> u64| {
        run.trace.ledger.iter().map(part).fold(0, u64::saturating_add)
    };
    let (stopped_ns, blocked_ns) = (sum(|row| row.stopped_ns), sum(|row| row.blocked_ns));
    if stopped_ns == 0 || stopped_ns < blocked_ns / 2 {
        return None;
    }
    let row = run.trace.ledger.iter().max_by_key(|row| row.stopped_ns)?;
    let text = format!(
        "for at least {} of {} ({}) no watched thread ran or was ready to run: a signal (SIGSTOP, SIGTSTP) or a \
         debugger had stopped threads for {}, summed over them, most of it in {} ({})",
        duration(idle_ns as f64),
        duration(run.trace.wall_ns as f64),
        share(idle_ns.into(), run.trace.wall_ns.into()),
        duration(stopped_ns as f64),
        run.name_of(row.pid, &row.exec, row.image),
        row.pid,
    );
    let evidence = [
        ("idle_ns", json!(idle_ns)),
        ("wall_ns", json!(run.trace.wall_ns)),
        ("stopped_ns", json!(stopped_ns)),
    ];
    Some(UnnamedFinding::new(text, evidence).advise(format!("kill -CONT {}", row.pid)))
}

/// The time blocked in calls that wait for no request, and in page faults.
fn waited_for_more_than_requests_ns(run: &Run<'_>) -> u64 {
    let is_other = |name: &str| !FOR_REQUESTS.contains(&name) && !FOR_OWN.contains(&name);
    let calls = run.trace.calls.iter().filter(|call| is_other(&call.syscall));
    let in_calls = calls.map(|call| call.blocked_ns.unwrap_or(0)).fold(0, u64::saturating_add);
    let in_faults = run.trace.ledger.iter().map(|row| row.fault_ns.unwrap_or(0));
    in_faults.fold(in_calls, u64::saturating_add)
}

/// Up to three calls with the longest blocked time, each with a twentieth of it at least.
fn longest<'r>(run: &'r Run<'_>, serves: bool) -> Vec<(&'r str, u64)> {
    let mut slept = BTreeMap::<&str, u64>::new();
    for call in &run.trace.calls {
        let sum = slept.entry(&call.syscall).or_default();
        *sum = sum.saturating_add(call.blocked_ns.unwrap_or(0));
    }
    if serves {
        slept.retain(|name, _| !FOR_REQUESTS.contains(name));
    }
    let is_own = |name: &str| FOR_OWN.contains(&name);
    if slept.iter().any(|(name, ns)| !is_own(name) && *ns > 0) {
        slept.retain(|name, _| !is_own(name));
    }
    let all = slept.values().fold(0, |sum: u64, ns| sum.saturating_add(*ns));
    let mut longest: Vec<(&str, u64)> =
        slept.into_iter().filter(|(_, ns)| *ns > 0 && *ns >= all / 20).collect();
    longest.sort_by_key(|(_, ns)| std::cmp::Reverse(*ns));
    longest.truncate(3);
    longest
}
