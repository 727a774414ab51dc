//! Findings for a record just made: by the limits that are kept, and those they miss, measured now.

use std::time::SystemTime;

use iotomy_findings::Judgement;
use iotomy_host::rfc3339;
use iotomy_limits::kept::Cache;
use iotomy_limits::{LimitsPlan, declaration};
use iotomy_record::{Finding, Limits};

use super::limits::ProgressLine;
use super::this_machine::machine;

/// Judges by the limits that are kept, and measures none.
pub(super) fn findings_by_kept(judge: impl Fn(Option<&Limits>) -> Judgement) -> Vec<Finding> {
    let kept = Cache::of_user().and_then(|cache| cache.load(&machine()));
    judge(kept.as_ref()).findings
}

/// Judges, and where a limit is missed, measures it, keeps it for the next time and judges again.
pub(super) fn findings(quiet: bool, judge: impl Fn(Option<&Limits>) -> Judgement) -> Vec<Finding> {
    let Judgement { findings, missing } = judge(None);
    if missing.is_empty() {
        return findings;
    }
    let machine = machine();
    let cache = Cache::of_user();
    let kept = cache.as_ref().and_then(|cache| cache.load(&machine));
    let Judgement { findings, missing } = judge(kept.as_ref());
    let only: Vec<_> = missing.into_iter().filter_map(declaration).collect();
    if only.is_empty() {
        return findings;
    }
    let started = rfc3339(SystemTime::now());
    let mut line = ProgressLine::on_terminal(quiet);
    let plan = LimitsPlan { only, folders: Vec::new() };
    let limits = plan.run(None, &started, &mut |progress| line.show(progress));
    line.clear();
    let mut known = Limits { schema: Limits::SCHEMA.to_owned(), started, machine, limits };
    if let Some(cache) = cache {
        // That it cannot be kept costs the next one this measurement, and nothing else.
        let _ = cache.save(&known, kept.clone());
    }
    known.limits.extend(kept.into_iter().flat_map(|kept| kept.limits));
    judge(Some(&known)).findings
}
