//! Woken for a connection that another took.

use std::collections::{BTreeMap, BTreeSet};

use iotomy_record::numbers::{counted, thousands};
use iotomy_record::{Call, Verdict};
use serde_json::json;

use crate::facts::Fact;
use crate::finding::{FindingDeclaration, Rule, UnnamedFinding};
use crate::run::{Run, total};

pub(crate) static DECLARATION: FindingDeclaration = FindingDeclaration {
    id: "herd",
    verdict: Verdict::Advice,
    summary: "calls of accept found no connection after a wake-up (thundering herd)",
    description: "In two or more threads, at least 100 calls of accept returned EAGAIN, at least two \
        fifths of all, and poll, epoll_wait and similar calls had returned at least as many \
        ready descriptors to these processes (accept without a wake-up does not match). In some of the \
        processes they are at least 10 more than the connections: a program that accepts until \
        there is no other has one EAGAIN for each connection at most. If several threads wait \
        for one listener, a connection wakes them all, and one gets it.",
    facts: &[Fact::Calls(&CALLS), Fact::Calls(&WAITS)],
    rules: &[Rule::Run(judge)],
};

const CALLS: [&str; 2] = ["accept", "accept4"];
/// Those that tell of connections.
const WAITS: [&str; 7] =
    ["poll", "ppoll", "select", "pselect6", "epoll_wait", "epoll_pwait", "epoll_pwait2"];
const MANY: u64 = 100;
const BEYOND: u64 = 10;

fn judge(run: &Run<'_>) -> Option<UnnamedFinding> {
    let accepts = run.trace.calls.iter().filter(|call| CALLS.contains(&call.syscall.as_str()));
    let (mut all, mut vain, mut by_process) = (0, 0, BTreeMap::<u32, [u64; 2]>::new());
    for call in accepts {
        let of_call = call.error_kinds.get("EAGAIN").copied().unwrap_or(0);
        all = u64::saturating_add(all, call.calls);
        vain = u64::saturating_add(vain, of_call);
        let [made, in_vain] = by_process.entry(call.pid).or_default();
        *made = made.saturating_add(call.calls.saturating_sub(call.errors));
        *in_vain = in_vain.saturating_add(of_call);
    }
    by_process.retain(|_, [_, vain]| *vain > 0);
    let processes: BTreeSet<u32> = by_process.keys().copied().collect();
    let beyond = by_process.values().map(|[made, vain]| vain.saturating_sub(*made));
    let beyond = beyond.fold(0, u64::saturating_add);
    let of_those = |call: &&Call| processes.contains(&call.pid) && WAITS.contains(&&*call.syscall);
    let woken = total(run.trace.calls.iter().filter(of_those)).ready;
    let threads = run.trace.processes.iter().filter(|image| processes.contains(&image.pid));
    let threads = threads.map(|image| u64::from(image.threads)).sum::<u64>();
    let threads = threads.max(processes.len() as u64);
    if vain < MANY || vain / 2 < all / 5 || beyond < BEYOND || threads < 2 || woken < vain {
        return None;
    }
    let text = format!(
        "{} of {} calls of accept found no connection, in {} of {}: if several wait for one \
         listener, a connection wakes them all, and one gets it",
        thousands(vain.into()),
        thousands(all.into()),
        counted(processes.len() as u128, "process", "processes"),
        counted(threads.into(), "thread", "threads"),
    );
    let evidence = [
        ("vain", json!(vain)),
        ("accepts", json!(all)),
        ("threads", json!(threads)),
        ("ready", json!(woken)),
    ];
    let advice = "use EPOLLEXCLUSIVE, or one listener per thread with SO_REUSEPORT";
    Some(UnnamedFinding::new(text, evidence).advise(advice))
}
