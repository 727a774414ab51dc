//! One file opened over and over.

use std::collections::BTreeMap;

use iotomy_record::Verdict;
use iotomy_record::numbers::{duration, share, thousands};
use serde_json::json;

use crate::facts::Fact;
use crate::finding::{FindingDeclaration, Rule, UnnamedFinding};
use crate::run::Run;

pub(crate) static DECLARATION: FindingDeclaration = FindingDeclaration {
    id: "opened-again",
    verdict: Verdict::Advice,
    summary: "a program opened one file many times",
    description: "In a record of `trace --paths`: a program opened one path at least 1,000 times \
        with success, and that took at least 1 % of the run's time. Each open looks up the path \
        and makes a new descriptor, which one that stays open saves.",
    facts: &[Fact::Calls(&OPENS), Fact::Paths],
    rules: &[Rule::Run(judge)],
};

pub(crate) const OPENS: [&str; 4] = ["open", "openat", "openat2", "creat"];
pub(crate) const MANY: u64 = 1_000;
/// Of the run's time: less is not worth a word.
pub(crate) const WORTH: u64 = 100;

fn judge(run: &Run<'_>) -> Option<UnnamedFinding> {
    let mut opened: BTreeMap<(u32, &str, u32, &str), (u64, u64)> = BTreeMap::new();
    let those =
        run.trace.paths.iter().filter(|one| {
            OPENS.contains(&one.syscall.as_str()) && one.error.is_none() && !one.second
        });
    for one in those {
        let Some(path) = &one.path else { continue };
        let (calls, ns) = opened.entry((one.pid, &one.exec, one.image, path)).or_default();
        *calls = calls.saturating_add(one.calls);
        *ns = ns.saturating_add(one.wall_ns);
    }
    let ((pid, exec, image, path), (calls, ns)) =
        opened.into_iter().max_by_key(|(_, (calls, _))| *calls)?;
    if calls < MANY || ns < run.trace.wall_ns / WORTH {
        return None;
    }
    let text = format!(
        "{} opened {path} {} times, which took {} ({} of the run's time)",
        run.name_of(pid, exec, image),
        thousands(calls.into()),
        duration(ns as f64),
        share(ns.into(), run.trace.wall_ns.into()),
    );
    let evidence = [
        ("exec", json!(exec)),
        ("path", json!(path)),
        ("opens", json!(calls)),
        ("wall_ns", json!(ns)),
    ];
    let advice = "open it once and keep the descriptor; pread reads it again from any place";
    Some(UnnamedFinding::new(text, evidence).advise(advice))
}
