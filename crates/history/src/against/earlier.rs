//! The baseline: its runs, and the measures of each.

use std::collections::BTreeSet;

use iotomy_record::label::label;
use iotomy_record::store::{Record, RecordRef};
use iotomy_record::{KeptRun, Machine, Measure};

use super::{conditions, measures, same, subjects};
use crate::{HistoryError, Pick, Store};

/// The sessions of a baseline that are used, the newest.
const MOST: usize = 50;

/// The run to compare with a baseline.
#[derive(Debug)]
pub struct Candidate<'a> {
    /// The kind of its record: `race`, `limits`…
    pub kind: &'a str,
    /// Its commands, or other subjects.
    pub subjects: Vec<String>,
    /// Where it is measured, by the name that the history has for it.
    pub machine: Machine,
    /// Its number in the history, if it is kept: a run is never part of its own baseline.
    pub id: Option<u64>,
    /// Whether there is to be no verdict: then a baseline of another machine will do, or the run itself.
    pub is_unjudged: bool,
}

impl<'a> Candidate<'a> {
    /// A run that is kept, with its record.
    pub fn kept(kept: &'a KeptRun, record: RecordRef<'a>) -> Self {
        Self {
            kind: &kept.kind,
            subjects: subjects(&measures(record)),
            machine: Machine { name: kept.machine.clone(), ..record.machine().clone() },
            id: Some(kept.id),
            is_unjudged: false,
        }
    }
}

/// A baseline: the runs that the user named, and nothing else.
#[derive(Debug)]
pub struct Earlier {
    /// The newest of them, whose conditions count.
    pub kept: KeptRun,
    record: Record,
    /// The measurements of each session, the newest included; the oldest first.
    sessions: Vec<EarlierSession>,
    /// Whether it was requested by its name.
    is_named: bool,
}

#[derive(Debug)]
struct EarlierSession {
    id: u64,
    measures: Vec<Measure>,
}

impl EarlierSession {
    fn from_record(id: u64, record: RecordRef<'_>) -> Self {
        Self { id, measures: measures(record) }
    }
}

impl Earlier {
    /// The requested baseline: for a name, all runs that did the same as `candidate`, on its
    /// machine, under the conditions of the newest of them; otherwise one run.
    ///
    /// # Errors
    /// When there is none, none on the candidate's machine, or its record cannot be read.
    pub fn load(
        store: &Store,
        pick: &Pick,
        candidate: &Candidate<'_>,
    ) -> Result<Self, HistoryError> {
        // Those that do not come from a record are whole.
        let subjects = candidate.subjects.iter().map(|subject| label(subject)).collect();
        let machine = candidate.machine.clone();
        let candidate = &Candidate { subjects, machine, ..*candidate };
        let is_itself = |kept: &KeptRun| Some(kept.id) == candidate.id;
        let itself = || HistoryError::Itself { asked: pick.to_string() };
        let Pick::Name(name) = pick else {
            let kept = store.find(pick)?;
            if is_itself(&kept) && !candidate.is_unjudged {
                return Err(itself());
            }
            let must_be_here = !candidate.is_unjudged && kept.kind == candidate.kind;
            if must_be_here && !store.machine_of(&candidate.machine)?.has(&kept) {
                return Err(elsewhere(store, kept.id.to_string(), &kept, candidate)?);
            }
            let record = store.record(kept.id)?;
            let sessions = vec![EarlierSession::from_record(kept.id, record.as_ref())];
            return Earlier { kept, record, sessions, is_named: false }.with(candidate);
        };
        let mut runs = store.named(name)?;
        prefer(&mut runs, |run| !is_itself(&run.kept));
        if runs.iter().any(|run| is_itself(&run.kept)) && !candidate.is_unjudged {
            return Err(itself());
        }
        prefer(&mut runs, |run| run.kept.kind == candidate.kind);
        let Some(newest) = runs.last() else {
            return Err(HistoryError::NoBaseline {
                asked: name.clone(),
                path: store.path().to_owned(),
            });
        };
        let here = store.machine_of(&candidate.machine)?;
        let is_here = runs.iter().any(|run| here.has(&run.kept));
        // The caller reports runs of another kind: they are a baseline on no machine.
        let is_kind = runs.iter().any(|run| run.kept.kind == candidate.kind);
        if !is_here && is_kind && !candidate.is_unjudged {
            return Err(elsewhere(store, format!("{name:?}"), &newest.kept, candidate)?);
        }
        let wanted = if is_here { here } else { store.machine_of_run(&newest.kept)? };
        runs.retain(|run| wanted.has(&run.kept));
        prefer(&mut runs, |run| run.subjects.iter().any(|one| candidate.subjects.contains(one)));
        prefer(&mut runs, |run| run.kept.kernel == candidate.machine.kernel);
        Self::of_runs(store, name, runs.into_iter().map(|run| run.kept).collect(), candidate)
    }

    /// Of runs of one name, in the order they were kept.
    fn of_runs(
        store: &Store,
        name: &str,
        runs: Vec<KeptRun>,
        candidate: &Candidate<'_>,
    ) -> Result<Self, HistoryError> {
        let mut found: Option<Self> = None;
        let mut seen = BTreeSet::new();
        let mut unlike = None;
        for kept in runs.into_iter().rev() {
            if found.as_ref().is_some_and(|found| found.sessions.len() == MOST) {
                break;
            }
            // A record that was imported again is no further session.
            if !seen.insert(kept.started.clone()) {
                continue;
            }
            let record = store.record(kept.id)?;
            // An interrupted run is not a session: the user who stopped it had seen its interim
            // result.
            if is_interrupted(&record) {
                continue;
            }
            let session = EarlierSession::from_record(kept.id, record.as_ref());
            match &mut found {
                None => {
                    let first = Self { kept, record, sessions: vec![session], is_named: true };
                    match first.with(candidate) {
                        Ok(first) => found = Some(first),
                        Err(error) => unlike = unlike.or(Some(error)),
                    }
                }
                Some(found) => {
                    if found.is_like(record.as_ref()) {
                        found.sessions.push(session);
                    }
                }
            }
        }
        let Some(mut found) = found else {
            let cut_short = || HistoryError::CutShort { asked: name.to_owned() };
            return Err(unlike.unwrap_or_else(cut_short));
        };
        found.sessions.reverse();
        Ok(found)
    }

    #[cfg(test)]
    pub(super) fn of_record(kept: KeptRun, record: Record, others: &[Vec<Measure>]) -> Self {
        let mut sessions: Vec<EarlierSession> =
            others.iter().map(|one| EarlierSession { id: 0, measures: one.clone() }).collect();
        sessions.push(EarlierSession::from_record(kept.id, record.as_ref()));
        Self { kept, record, sessions, is_named: true }
    }

    /// Whether another run of its name did the same, or a part of it, under the same conditions.
    fn is_like(&self, record: RecordRef<'_>) -> bool {
        let then = self.record.as_ref();
        let mine = self.subjects();
        then.schema() == record.schema()
            && measures(record).iter().any(|one| mine.contains(&one.subject))
            && !then.machine().differences(record.machine()).iter().any(|one| one.matters)
            && !conditions(then, record).iter().any(|one| one.matters)
    }

    /// Its newest record.
    pub fn record(&self) -> &Record {
        &self.record
    }

    /// The numbers of its runs that have any of these measures.
    pub(super) fn runs_with(&self, measures: &[&Measure]) -> Vec<u64> {
        let has = |session: &&EarlierSession| {
            session.measures.iter().any(|one| measures.iter().any(|wanted| same(one, wanted)))
        };
        self.sessions.iter().filter(has).map(|one| one.id).collect()
    }

    /// Its name, or else its number.
    pub fn called(&self) -> String {
        let name = self.kept.name.clone().filter(|_| self.is_named);
        name.unwrap_or_else(|| self.kept.id.to_string())
    }

    /// The commands of a race, or its other subjects.
    pub fn subjects(&self) -> Vec<String> {
        subjects(&measures(self.record.as_ref()))
    }

    /// Itself, where there is something to compare, as [`super::against()`] matches them.
    fn with(self, candidate: &Candidate<'_>) -> Result<Self, HistoryError> {
        let before = self.subjects();
        let after: BTreeSet<&String> = candidate.subjects.iter().collect();
        if self.kept.kind != candidate.kind
            || (before.len() == 1 && after.len() == 1)
            || before.iter().any(|one| after.contains(one))
        {
            return Ok(self);
        }
        Err(HistoryError::Unlike {
            first: self.called(),
            second: candidate.subjects.join(" | "),
            why: format!(
                "they have no common command; {} is of {}",
                self.called(),
                before.join(" | ")
            ),
        })
    }

    /// A measure in each of its sessions, of a measure that its newest has.
    pub(super) fn sessions_of<'a>(&'a self, measure: &Measure) -> Vec<&'a Measure> {
        let of =
            |session: &'a EarlierSession| session.measures.iter().find(|one| same(one, measure));
        self.sessions.iter().filter_map(of).collect()
    }
}

/// That a run is of another machine than the one to be judged.
fn elsewhere(
    store: &Store,
    asked: String,
    kept: &KeptRun,
    candidate: &Candidate<'_>,
) -> Result<HistoryError, HistoryError> {
    let there = store.machine_of_run(kept)?;
    let here = store.machine_of(&candidate.machine)?;
    let hint = match there.hardware == here.hardware && !there.name.is_empty() {
        true => {
            format!("; if it is this one under another name, set IOTOMY_MACHINE={}", there.name)
        }
        false => String::new(),
    };
    let (there, here) = (there.long_title(), here.long_title());
    Ok(HistoryError::Elsewhere { asked, there, here, hint })
}

/// Whether a signal ended it before it had run as long as it was to.
fn is_interrupted(record: &Record) -> bool {
    match record {
        Record::Race(race) => race.interrupted.is_some(),
        Record::Sweep(sweep) => sweep.run.is_partial,
        _ => false,
    }
}

/// Keeps the items for which this holds, if there are any.
fn prefer<Item>(items: &mut Vec<Item>, is: impl Fn(&Item) -> bool) {
    if items.iter().any(&is) {
        items.retain(is);
    }
}
