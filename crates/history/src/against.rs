//! The comparison of a record with a baseline.
//!
//! A baseline is what the user named: one run, or all runs of one name. No other run contributes,
//! neither to its level nor to the spread between its sessions; a saved regression changes nothing.
//! Runs of two sessions are not paired: any change of the machine between them is part of the
//! difference. Known changes are reported ([`Difference`]); how much sessions differ by themselves
//! is the subject of [`iotomy_stats::sessions`].

mod earlier;

use iotomy_record::measures::measures;
use iotomy_record::store::RecordRef;
use iotomy_record::{Against, Change, Difference, Measure, Race, RaceVerdict, Verdict};
use iotomy_stats::sessions::{LeveledSession, SessionVerdict, apart};

pub use self::earlier::{Candidate, Earlier};
use crate::HistoryError;

/// Holds `now`, made by `version` of iotomy, against an earlier record of the same kind.
///
/// # Errors
/// When they have no common measure.
pub fn against(
    earlier: &Earlier,
    now: RecordRef<'_>,
    version: &str,
) -> Result<Against, HistoryError> {
    let then = earlier.record().as_ref();
    let unlike = |why: String| HistoryError::Unlike {
        first: earlier.called(),
        second: crate::subject(now),
        why,
    };
    if then.schema() != now.schema() {
        return Err(unlike(format!("one is {} and the other {}", then.schema(), now.schema())));
    }
    let (old, mut new) = (measures(then), measures(now));
    let mut differences = then.machine().differences(now.machine());
    differences.extend(differs("iotomy", &earlier.kept.version, version, false));
    differences.extend(conditions(then, now));
    differences.extend(matched(&old, &mut new));
    let has_verdict = !differences.iter().any(|difference| difference.matters);
    let mut changes: Vec<Change> = Vec::new();
    let mut compared: Vec<&Measure> = Vec::new();
    for now in &new {
        let Some(then) = old.iter().find(|then| same(then, now)) else { continue };
        if !changes.iter().any(|met| met.subject == now.subject && met.measure == now.name) {
            changes.push(change(then, now, &earlier.sessions_of(then), has_verdict));
            compared.push(then);
        }
    }
    if changes.is_empty() {
        return Err(unlike("they have no common measure".to_owned()));
    }
    let (baseline, started) = (earlier.called(), earlier.kept.started.clone());
    Ok(Against { baseline, started, runs: earlier.runs_with(&compared), differences, changes })
}

fn same(one: &Measure, other: &Measure) -> bool {
    one.subject == other.subject && one.name == other.name && one.unit == other.unit
}

fn subjects(measures: &[Measure]) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    for one in measures {
        if !found.contains(&one.subject) {
            found.push(one.subject.clone());
        }
    }
    found
}

fn differs(what: &str, then: &str, now: &str, matters: bool) -> Option<Difference> {
    let (what, then, now) = (what.to_owned(), then.to_owned(), now.to_owned());
    (then != now).then_some(Difference { what, then, now, matters })
}

/// Where either side has one subject, these are compared, whatever their names; otherwise those of
/// the same name, and the others are reported.
fn matched(old: &[Measure], new: &mut [Measure]) -> Vec<Difference> {
    let (before, after) = (subjects(old), subjects(new));
    if let ([then], [now]) = (before.as_slice(), after.as_slice()) {
        new.iter_mut().for_each(|one| one.subject.clone_from(then));
        return differs(Difference::COMMAND, then, now, false).into_iter().collect();
    }
    let gone = before.iter().filter(|one| !after.contains(one));
    let added = after.iter().filter(|one| !before.contains(one));
    gone.filter_map(|one| differs(Difference::COMMAND, one, "", false))
        .chain(added.filter_map(|one| differs(Difference::COMMAND, "", one, false)))
        .collect()
}

/// The requested settings of both runs that times depend on.
fn conditions(then: RecordRef<'_>, now: RecordRef<'_>) -> Vec<Difference> {
    let mut found: Vec<Option<Difference>> = Vec::new();
    match (then, now) {
        (RecordRef::Race(then), RecordRef::Race(now)) => {
            let (a, b) = (&then.plan, &now.plan);
            let line = |line: &Option<String>| line.clone().unwrap_or_default();
            let dropped = |is: bool| if is { "dropped" } else { "not dropped" };
            found.extend([
                differs("output to", &a.output, &b.output, true),
                differs("caches", &a.cache, &b.cache, true),
                differs("all caches", dropped(a.drop_caches), dropped(b.drop_caches), true),
                differs("prepare", &line(&a.prepare), &line(&b.prepare), true),
                differs("setup", &line(&a.setup), &line(&b.setup), false),
                differs("impossible", &impossible(then), &impossible(now), true),
            ]);
            let both = impossible(now);
            if !both.is_empty() && impossible(then) == both {
                found.push(Some(Difference {
                    what: "impossible".to_owned(),
                    then: both.clone(),
                    now: both,
                    matters: true,
                }));
            }
        }
        (RecordRef::Trace(then), RecordRef::Trace(now)) => {
            found.push(differs("observer", &then.observer.name, &now.observer.name, true));
        }
        (RecordRef::Anatomy(then), RecordRef::Anatomy(now)) => {
            let (a, b) = (then.sampling.hz.to_string(), now.sampling.hz.to_string());
            found.push(differs("samples a second", &a, &b, true));
        }
        (RecordRef::Copy(then), RecordRef::Copy(now)) => {
            let mover = |mover: &Option<String>| mover.clone().unwrap_or_default();
            found.push(differs("mover", &mover(&then.mover), &mover(&now.mover), false));
        }
        (RecordRef::Limits(then), RecordRef::Limits(now)) => {
            for new in &now.limits {
                let same = |old: &&iotomy_record::Limit| old.name == new.name;
                let old = then.limits.iter().find(same);
                found.push(old.and_then(|old| {
                    differs(&format!("method of {}", new.name), &old.method, &new.method, true)
                }));
            }
        }
        (RecordRef::D(then), RecordRef::D(now)) => {
            found.push(differs("program", &then.program, &now.program, true));
        }
        (RecordRef::Sweep(then), RecordRef::Sweep(now)) => {
            found.push(differs("experiment", &then.experiment, &now.experiment, true));
        }
        _ => {}
    }
    found.into_iter().flatten().collect()
}

/// The commands with impossible numbers.
fn impossible(race: &Race) -> String {
    let found = race.findings.iter().filter(|found| found.verdict == Verdict::Impossible);
    let labels = found.filter_map(|found| found.evidence.get("contender")?.as_str());
    labels.collect::<Vec<_>>().join(", ")
}

/// Compares a measure with that of each session of the baseline, of which `then` is the newest.
fn change(then: &Measure, now: &Measure, sessions: &[&Measure], has_verdict: bool) -> Change {
    let is_counted = then.unit.is_empty();
    let sessions: Vec<LeveledSession> = sessions.iter().filter_map(|one| session(one)).collect();
    let held = match session(now) {
        Some(now) if then.value > 0.0 && !is_counted => apart(&sessions, &now),
        _ => None,
    };
    let ratio = (then.value > 0.0 && now.value > 0.0).then(|| now.value / then.value);
    let levels = || sessions.iter().map(|one| one.level.exp());
    let range =
        [levels().fold(f64::INFINITY, f64::min), levels().fold(f64::NEG_INFINITY, f64::max)];
    let is_several = sessions.len() > 1 && !is_counted;
    let verdict = held.filter(|_| has_verdict).map(|held| verdict(held.verdict(), &then.unit));
    Change {
        subject: now.subject.clone(),
        measure: now.name.clone(),
        unit: now.unit.clone(),
        then: held.filter(|_| is_several).map_or(then.value, |held| held.level.exp()).max(0.0),
        now: now.value.max(0.0),
        runs_then: then.runs,
        runs_now: now.runs,
        ratio: held.map(|held| held.point.exp()).or(ratio),
        ci95: held.and_then(|held| held.interval).map(|found| [found.low.exp(), found.high.exp()]),
        verdict: (!is_counted).then_some(verdict.unwrap_or(RaceVerdict::Undecided)),
        sessions: sessions.len() as u64,
        min_effect: held.map_or(0.0, |held| held.least),
        more_runs: held.filter(|_| has_verdict).and_then(|held| Some(held.more_runs? as u64)),
        range: is_several.then_some(range),
    }
}

/// A measure as a session of [`iotomy_stats`]; none for a value without a logarithm.
fn session(measure: &Measure) -> Option<LeveledSession> {
    let positive = measure.samples.iter().copied().filter(|value| *value > 0.0);
    (measure.value > 0.0).then(|| LeveledSession {
        level: measure.value.ln(),
        samples: positive.map(f64::ln).collect(),
    })
}

/// Of a rate, more is faster; of a time, slower.
fn verdict(standing: SessionVerdict, unit: &str) -> RaceVerdict {
    let (more, less) = match unit.ends_with("/s") {
        true => (RaceVerdict::Faster, RaceVerdict::Slower),
        false => (RaceVerdict::Slower, RaceVerdict::Faster),
    };
    match standing {
        SessionVerdict::Above => more,
        SessionVerdict::Below => less,
        SessionVerdict::Level => RaceVerdict::NoDifference,
        SessionVerdict::Unknown => RaceVerdict::Undecided,
    }
}

#[cfg(test)]
mod tests;
