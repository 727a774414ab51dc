//! What the numbers of a record mean: can they be true, what hides behind them, what to try.
//!
//! A finding is a file and a line in [`FINDINGS`]: its declaration, from which help, the catalogue and
//! the tests come, and the rule that looks at a record. This knows no screen and runs nothing: the same
//! record with the same limits is judged the same for ever.
//!
//! The one invariant: a finding says only what its evidence shows. What a record does not tell (files
//! that were not watched, a limit that was not measured) leads to no finding, and never to a guess.

mod blocked_on;
mod by_reference;
mod cpu_saturation;
mod ctl_per_event;
mod different_output;
mod disturbed;
mod errors_as_work;
mod failures;
mod few_ready;
mod filtered;
mod herd;
mod holes;
mod impossible_rate;
mod left_behind;
mod mapped_untouched;
mod noise;
mod null_sink;
mod open_not_read;
mod page_cache;
mod relay;
mod run;
mod shell;
mod small_requests;
mod stat_storm;
mod still_dirty;
mod sync_per_write;
mod too_short;
mod traced_otherwise;
mod untraced;

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};

use iotomy_record::{Anatomy, CopyRun, Finding, Limits, Race, Trace, Verdict};
use serde_json::Value;

use run::Run;

/// A finding that can be made.
#[derive(Debug)]
pub struct Declaration {
    /// Its name in records.
    pub id: &'static str,
    /// How it is meant.
    pub verdict: Verdict,
    /// What it says, in a few words.
    pub summary: &'static str,
    /// When it is made, and from what.
    pub description: &'static str,
    /// What looks, at records of one kind each.
    rules: &'static [Rule],
}

/// What a rule looks at.
#[derive(Debug)]
enum Rule {
    /// One run: a trace, or a contender of a race with the time it takes untraced.
    Run(fn(&Run<'_>) -> Option<UnnamedFinding>),
    /// A race as a whole.
    Race(fn(&Race) -> Vec<UnnamedFinding>),
    /// A race as a whole, and the machine's limits.
    RaceByLimits(fn(&Race, &KnownLimits<'_>) -> Vec<UnnamedFinding>),
    /// A run whose calls were dissected.
    Anatomy(fn(&Anatomy) -> Option<UnnamedFinding>),
    /// A copy.
    Copy(fn(&Copied<'_>) -> Option<UnnamedFinding>),
}

/// Every finding, the gravest first.
pub static FINDINGS: &[&Declaration] = &[
    &impossible_rate::DECLARATION,
    &mapped_untouched::DECLARATION,
    &errors_as_work::DECLARATION,
    &failures::DECLARATION,
    &left_behind::DECLARATION,
    &traced_otherwise::DECLARATION,
    &different_output::DECLARATION,
    &too_short::DECLARATION,
    &noise::DECLARATION,
    &small_requests::DECLARATION,
    &relay::DECLARATION,
    &sync_per_write::DECLARATION,
    &few_ready::DECLARATION,
    &ctl_per_event::DECLARATION,
    &herd::DECLARATION,
    &null_sink::DECLARATION,
    &holes::DECLARATION,
    &by_reference::DECLARATION,
    &page_cache::DECLARATION,
    &still_dirty::DECLARATION,
    &blocked_on::DECLARATION,
    &cpu_saturation::DECLARATION,
    &stat_storm::DECLARATION,
    &open_not_read::DECLARATION,
    &untraced::DECLARATION,
    &shell::DECLARATION,
    &disturbed::DECLARATION,
    &filtered::DECLARATION,
];

/// What was found, before it has a name.
#[derive(Debug, PartialEq)]
struct UnnamedFinding {
    text: String,
    evidence: BTreeMap<String, Value>,
    advice: Option<String>,
}

impl UnnamedFinding {
    fn new<const N: usize>(text: String, evidence: [(&str, Value); N]) -> Self {
        let evidence = evidence.into_iter().map(|(key, value)| (key.to_owned(), value)).collect();
        Self { text, evidence, advice: None }
    }

    fn advise(self, advice: impl Into<String>) -> Self {
        Self { advice: Some(advice.into()), ..self }
    }
}

impl Declaration {
    fn finding(&self, found: UnnamedFinding) -> Finding {
        Finding {
            id: self.id.to_owned(),
            verdict: self.verdict,
            text: found.text,
            evidence: found.evidence,
            advice: found.advice,
        }
    }

    fn of_run(&self, run: &Run<'_>) -> Option<Finding> {
        let rule = self.rules.iter().find_map(|rule| match rule {
            Rule::Run(rule) => Some(rule),
            _ => None,
        });
        let mut found = rule?(run)?;
        if let Some(label) = run.label {
            found.text = format!("{label}: {}", found.text);
            found.evidence.insert("contender".to_owned(), Value::from(label));
        }
        Some(self.finding(found))
    }
}

/// What judging came to.
#[derive(Debug, Default, PartialEq)]
pub struct Judgement {
    /// In the order of [`FINDINGS`], those of each contender together.
    pub findings: Vec<Finding>,
    /// The limits that were asked for and not there: with them, there might be more.
    pub missing: BTreeSet<&'static str>,
}

/// Limits, and which of them were missed.
#[derive(Debug)]
struct KnownLimits<'a> {
    limits: Option<&'a Limits>,
    missing: RefCell<BTreeSet<&'static str>>,
}

impl KnownLimits<'_> {
    /// The value of a limit of the machine, in its unit.
    fn limit(&self, name: &'static str) -> Option<f64> {
        let value = self.limits.and_then(|limits| limits.of_machine(name)).and_then(|l| l.value);
        if value.is_none() {
            self.missing.borrow_mut().insert(name);
        }
        value
    }

    /// The value of a limit of the machine, and the distance between its quartiles.
    fn spread(&self, name: &'static str) -> Option<(f64, f64)> {
        let value = self.limit(name)?;
        let spread = self.limits?.of_machine(name)?.spread.unwrap_or(0.0);
        Some((value, spread))
    }
}

/// A copy, and what it is held against.
#[derive(Debug)]
struct Copied<'a> {
    record: &'a CopyRun,
    limits: &'a KnownLimits<'a>,
}

/// Judges one watched run.
pub fn trace(record: &Trace, limits: Option<&Limits>) -> Judgement {
    let yardstick = KnownLimits { limits, missing: RefCell::default() };
    let run = Run::new(None, record, record.wall_ns as f64, &yardstick);
    let findings = FINDINGS.iter().filter_map(|declared| declared.of_run(&run)).collect();
    Judgement { findings, missing: yardstick.missing.into_inner() }
}

/// Judges a run that was dissected: as a trace, and by its layers.
pub fn anatomy(record: &Anatomy, limits: Option<&Limits>) -> Judgement {
    let mut judgement = trace(&record.trace, limits);
    for declared in FINDINGS {
        for rule in declared.rules {
            if let Rule::Anatomy(rule) = rule {
                judgement.findings.extend(rule(record).map(|found| declared.finding(found)));
            }
        }
    }
    judgement
}

/// Judges a race: each contender by its traced run and its untraced time, then the whole.
pub fn race(record: &Race, limits: Option<&Limits>) -> Judgement {
    let yardstick = KnownLimits { limits, missing: RefCell::default() };
    let mut findings = Vec::new();
    for contender in &record.contenders {
        let Some(trace) = &contender.trace else { continue };
        let run = Run::new(Some(&contender.label), trace, contender.wall.median_ns, &yardstick);
        findings.extend(FINDINGS.iter().filter_map(|declared| declared.of_run(&run)));
    }
    for declared in FINDINGS {
        for rule in declared.rules {
            let found = match rule {
                Rule::Race(rule) => rule(record),
                Rule::RaceByLimits(rule) => rule(record, &yardstick),
                _ => continue,
            };
            findings.extend(found.into_iter().map(|found| declared.finding(found)));
        }
    }
    Judgement { findings, missing: yardstick.missing.into_inner() }
}

/// Judges a copy.
pub fn copy(record: &CopyRun, limits: Option<&Limits>) -> Judgement {
    let yardstick = KnownLimits { limits, missing: RefCell::default() };
    let copied = Copied { record, limits: &yardstick };
    let mut findings = Vec::new();
    for declared in FINDINGS {
        for rule in declared.rules {
            if let Rule::Copy(rule) = rule {
                findings.extend(rule(&copied).map(|found| declared.finding(found)));
            }
        }
    }
    Judgement { findings, missing: yardstick.missing.into_inner() }
}

#[cfg(test)]
mod tests;
