//! A record held against an earlier one.
//!
//! Their runs are no pairs: whatever changed on the machine between the two sessions is in the
//! difference. What is known of that is told ([`Difference`]); what sessions differ by in themselves is
//! taken from others that did the same, where they are kept, and widens the interval. Where they are
//! not, only a large difference is called one.

use std::collections::BTreeSet;

use iotomy_record::store::{Record, RecordRef};
use iotomy_record::{Against, Change, Difference, Kept, Measure, Race, RaceVerdict, Verdict};
use iotomy_stats::{Interval, shift_between, widened};

use crate::measures::{details, measures};
use crate::trend::Series;
use crate::{HistoryError, Pick, Store};

/// The chance that an interval does not hold the ratio.
const ALPHA: f64 = 0.05;

/// The least difference that is called one where it is known what sessions differ by.
const LEAST: f64 = 0.01;

/// The same where that is not known: it keeps what is wrongly called different below 5 in 100 where
/// sessions wander by 2 % (one standard deviation), as the tests simulate.
const LEAST_UNKNOWN: f64 = 0.05;

/// An earlier record, and what sessions like it measured.
#[derive(Debug)]
pub struct Earlier {
    /// What is known of it without its record.
    pub kept: Kept,
    record: Record,
    /// Of each of its measures, the figures of sessions that did the same, itself included.
    sessions: Vec<(String, String, Vec<f64>)>,
}

impl Earlier {
    /// The run that is asked for; `but` is a run whose figures are not to count as a session of it,
    /// because it is the one to be compared.
    ///
    /// # Errors
    /// When there is none, or its record cannot be read.
    pub fn load(store: &Store, pick: &Pick, but: Option<u64>) -> Result<Self, HistoryError> {
        let kept = store.find(pick)?;
        let record = store.record(kept.id)?;
        let mut sessions = Vec::new();
        for one in measures(record.as_ref()) {
            let series = Series { kind: &kept.kind, subject: &one.subject, measure: &one.name };
            let found = store.sessions(series, kept.id, but)?;
            sessions.push((one.subject, one.name, found));
        }
        Ok(Self { kept, record, sessions })
    }

    /// Its record.
    pub fn record(&self) -> &Record {
        &self.record
    }

    /// Its name, or else its number.
    pub fn called(&self) -> String {
        self.kept.name.clone().unwrap_or_else(|| self.kept.id.to_string())
    }

    /// The commands of a race, or what else was measured.
    pub fn subjects(&self) -> Vec<String> {
        subjects(&measures(self.record.as_ref()))
    }

    /// Whether there is something to compare with these, as [`against()`] matches them.
    ///
    /// # Errors
    /// When there is nothing, which names both.
    pub fn matches(&self, subjects: &[String]) -> Result<(), HistoryError> {
        let before = self.subjects();
        let after: BTreeSet<&String> = subjects.iter().collect();
        if (before.len() == 1 && after.len() == 1) || before.iter().any(|one| after.contains(one)) {
            return Ok(());
        }
        Err(HistoryError::Unlike {
            first: self.called(),
            second: subjects.join(" | "),
            why: format!(
                "they have no command in common; {} is of {}",
                self.called(),
                before.join(" | ")
            ),
        })
    }

    fn sessions_of(&self, measure: &Measure) -> &[f64] {
        let same = |(subject, name, _): &&(String, String, Vec<f64>)| {
            *subject == measure.subject && *name == measure.name
        };
        self.sessions.iter().find(same).map_or(&[], |(.., found)| found)
    }
}

/// Holds `now`, made by `version` of iotomy, against an earlier record of the same kind. With
/// `in_detail`, traces are compared call by call.
///
/// # Errors
/// When they have no measure in common.
pub fn against(
    earlier: &Earlier,
    now: RecordRef<'_>,
    version: &str,
    in_detail: bool,
) -> Result<Against, HistoryError> {
    let then = earlier.record.as_ref();
    let unlike = |why: String| HistoryError::Unlike {
        first: earlier.called(),
        second: crate::subject(now),
        why,
    };
    if then.schema() != now.schema() {
        return Err(unlike(format!("one is {}, the other {}", then.schema(), now.schema())));
    }
    let all = |record| {
        let mut found = measures(record);
        found.extend(details(record).into_iter().filter(|_| in_detail));
        found
    };
    let (mut old, mut new) = (all(then), all(now));
    let mut differences = then.machine().differences(now.machine());
    differences.extend(differs("iotomy", &earlier.kept.version, version, false));
    differences.extend(conditions(then, now));
    differences.extend(matched(&old, &mut new));
    if in_detail && !details(now).is_empty() {
        complete(&mut old, &mut new);
    }
    let has_verdict = !differences.iter().any(|difference| difference.matters);
    let mut changes: Vec<Change> = Vec::new();
    for now in &new {
        let Some(then) = old.iter().find(|then| same(then, now)) else { continue };
        if !changes.iter().any(|met| met.subject == now.subject && met.measure == now.name) {
            changes.push(change(then, now, earlier.sessions_of(then), has_verdict));
        }
    }
    let first = changes.iter().filter(|one| is_indexed(then, one)).count();
    // Of calls, those that make the most difference come first, and times before counts.
    let apart = |one: &Change| (one.now - one.then).abs();
    changes[first..].sort_by(|a, b| {
        (a.unit.is_empty()).cmp(&b.unit.is_empty()).then(apart(b).total_cmp(&apart(a)))
    });
    if changes.is_empty() {
        return Err(unlike("they have no measure in common".to_owned()));
    }
    let (baseline, started) = (earlier.called(), earlier.kept.started.clone());
    Ok(Against { baseline, started, differences, changes })
}

fn same(one: &Measure, other: &Measure) -> bool {
    one.subject == other.subject && one.name == other.name && one.unit == other.unit
}

/// A call that only one of two traces has was made no time in the other.
fn complete(old: &mut Vec<Measure>, new: &mut Vec<Measure>) {
    let lacking = |of: &[Measure], there: &[Measure]| -> Vec<Measure> {
        let missing = there.iter().filter(|one| !of.iter().any(|other| same(one, other)));
        missing.map(|one| Measure { value: 0.0, ..one.clone() }).collect()
    };
    old.extend(lacking(old, new));
    new.extend(lacking(new, old));
}

/// Whether it is one of the measures that stand in front of the details.
fn is_indexed(record: RecordRef<'_>, change: &Change) -> bool {
    measures(record).iter().any(|one| one.name == change.measure)
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

/// Where either has one subject, that is what is compared, whatever it is called; else those of the
/// same name, and the others are told.
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

/// What the two were asked to do, as far as times depend on it.
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
        (RecordRef::Sweep(then), RecordRef::Sweep(now)) => {
            found.push(differs("experiment", &then.experiment, &now.experiment, true));
        }
        _ => {}
    }
    found.into_iter().flatten().collect()
}

/// The contenders whose numbers cannot be true.
fn impossible(race: &Race) -> String {
    let found = race.findings.iter().filter(|found| found.verdict == Verdict::Impossible);
    let labels = found.filter_map(|found| found.evidence.get("contender")?.as_str());
    labels.collect::<Vec<_>>().join(", ")
}

fn change(then: &Measure, now: &Measure, sessions: &[f64], has_verdict: bool) -> Change {
    let ratio = |a: f64, b: f64| (a > 0.0 && b > 0.0).then(|| b / a);
    let logs = |values: &[f64]| -> Vec<f64> {
        values.iter().copied().filter(|value| *value > 0.0).map(f64::ln).collect()
    };
    let is_counted = then.unit.is_empty();
    let within = shift_between(&logs(&then.samples), &logs(&now.samples), ALPHA);
    let point = within.map(|found| found.point).or(ratio(then.value, now.value).map(f64::ln));
    let known = point.and_then(|point| {
        let within = within.unwrap_or(Interval { point, low: point, high: point });
        widened(within, &logs(sessions))
    });
    let least = if known.is_some() { LEAST } else { LEAST_UNKNOWN };
    let interval = known.or(within).map(|found| found.map(f64::exp)).filter(|_| !is_counted);
    let verdict = match interval {
        Some(found) if has_verdict => verdict(found, least, &then.unit),
        _ => RaceVerdict::Undecided,
    };
    Change {
        subject: now.subject.clone(),
        measure: now.name.clone(),
        unit: now.unit.clone(),
        then: then.value.max(0.0),
        now: now.value.max(0.0),
        runs_then: then.runs,
        runs_now: now.runs,
        ratio: point.map(f64::exp),
        ci95: interval.map(|found| [found.low, found.high]),
        verdict: (!is_counted).then_some(verdict),
        sessions: sessions.len() as u64,
        min_effect: least,
    }
}

/// Of a rate, more is faster; of a time, slower.
fn verdict(ratio: Interval, least: f64, unit: &str) -> RaceVerdict {
    let (more, less) = match unit.ends_with("/s") {
        true => (RaceVerdict::Faster, RaceVerdict::Slower),
        false => (RaceVerdict::Slower, RaceVerdict::Faster),
    };
    let (up, down) = (1.0 + least, 1.0 / (1.0 + least));
    match ratio {
        Interval { low, .. } if low > up => more,
        Interval { high, .. } if high < down => less,
        Interval { low, high, .. } if low >= down && high <= up => RaceVerdict::NoDifference,
        _ => RaceVerdict::Undecided,
    }
}

#[cfg(test)]
#[path = "against_tests.rs"]
mod tests;
