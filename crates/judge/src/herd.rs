//! Woken for a connection that another took.

use std::collections::BTreeSet;

use iotomy_record::Verdict;
use iotomy_record::numbers::{counted, thousands};
use serde_json::json;

use crate::run::Run;
use crate::{Declaration, Found, Rule};

pub(crate) static DECLARATION: Declaration = Declaration {
    id: "herd",
    verdict: Verdict::Advice,
    summary: "accept found nothing most of the time: many were woken for one connection",
    description: "In two threads or more, 100 or more calls of accept returned EAGAIN, and they are more than two thirds \
                  of all: each was woken for a connection that another took.",
    rules: &[Rule::Run(judge)],
};

const CALLS: [&str; 2] = ["accept", "accept4"];
const MANY: u64 = 100;

fn judge(run: &Run<'_>) -> Option<Found> {
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
    let threads = run.trace.processes.iter().filter(|image| processes.contains(&image.pid));
    let threads = threads.map(|image| u64::from(image.threads)).sum::<u64>();
    let threads = threads.max(processes.len() as u64);
    if vain < MANY || vain / 2 <= all / 3 || threads < 2 {
        return None;
    }
    let text = format!(
        "{} of {} calls of accept in {} found nothing: all were woken, and one was served",
        thousands(vain.into()),
        thousands(all.into()),
        counted(threads.into(), "thread", "threads"),
    );
    let evidence = [("vain", json!(vain)), ("accepts", json!(all)), ("threads", json!(threads))];
    let advice = "EPOLLEXCLUSIVE, or a listener each by SO_REUSEPORT";
    Some(Found::new(text, evidence).advise(advice))
}
