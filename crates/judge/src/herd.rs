//! Woken for a connection that another took.

use std::collections::BTreeSet;

use iotomy_record::numbers::{counted, thousands};
use iotomy_record::{Call, Verdict};
use serde_json::json;

use crate::finding::{Declaration, Rule, UnnamedFinding};
use crate::run::{Run, total};

pub(crate) static DECLARATION: Declaration = Declaration {
    id: "herd",
    verdict: Verdict::Advice,
    summary: "most calls of accept found no connection after a wake-up (thundering herd)",
    description: "In two or more threads, at least 100 calls of accept returned EAGAIN, more than \
        two thirds of all, and poll, epoll_wait and similar calls had returned at least as many \
        ready descriptors to these processes (accept without a wake-up does not match). If \
        several threads wait for one listener, a connection wakes them all, and one gets it.",
    rules: &[Rule::Run(judge)],
};

const CALLS: [&str; 2] = ["accept", "accept4"];
const MANY: u64 = 100;

fn judge(run: &Run<'_>) -> Option<UnnamedFinding> {
    let accepts = run.trace.calls.iter().filter(|call| CALLS.contains(&call.syscall.as_str()));
    let (mut all, mut vain, mut processes) = (0, 0, BTreeSet::new());
    for call in accepts {
        let of_call = call.error_kinds.get("EAGAIN").copied().unwrap_or(0);
        all += call.calls;
        vain += of_call;
        if of_call > 0 {
            processes.insert(call.pid);
        }
    }
    let of_those = |call: &&Call| processes.contains(&call.pid) && call.ready.is_some();
    let woken = total(run.trace.calls.iter().filter(of_those)).ready;
    let threads = run.trace.processes.iter().filter(|image| processes.contains(&image.pid));
    let threads = threads.map(|image| u64::from(image.threads)).sum::<u64>();
    let threads = threads.max(processes.len() as u64);
    if vain < MANY || vain / 2 <= all / 3 || threads < 2 || woken < vain {
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
