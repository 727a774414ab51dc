//! Changing the interest of a descriptor for every event of it.

use iotomy_record::Verdict;
use iotomy_record::numbers::thousands;
use serde_json::json;

use crate::run::Run;
use crate::{Declaration, Found, Rule};

pub(crate) static DECLARATION: Declaration = Declaration {
    id: "ctl-per-event",
    verdict: Verdict::Advice,
    summary: "one epoll_ctl for every other event or more",
    description: "1,000 or more calls of epoll_ctl beyond two for each connection accepted, and at least one for two events that epoll_wait and \
                  its kin returned: what registering saves over poll is spent on registering again.",
    rules: &[Rule::Run(judge)],
};

const WAITS: [&str; 3] = ["epoll_wait", "epoll_pwait", "epoll_pwait2"];
const MANY: u64 = 1_000;

fn judge(run: &Run<'_>) -> Option<Found> {
    let (all, waits) = (run.total(&["epoll_ctl"]), run.total(&WAITS));
    let accepts = run.total(&["accept", "accept4"]);
    // Each connection is added once, and removed once.
    let changes = all.calls.saturating_sub(2 * accepts.calls.saturating_sub(accepts.errors));
    if changes < MANY || changes < waits.ready / 2 || waits.calls == 0 {
        return None;
    }
    let text = format!(
        "{} calls of epoll_ctl for {} events",
        thousands(changes.into()),
        thousands(waits.ready.into())
    );
    let evidence = [("epoll_ctl", json!(changes)), ("events", json!(waits.ready))];
    let advice = "register once and leave it: level-triggered, or edge-triggered (EPOLLET) and read to EAGAIN";
    Some(Found::new(text, evidence).advise(advice))
}
