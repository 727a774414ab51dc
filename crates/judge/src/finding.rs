//! The parts of a finding: its declaration, and the rules that look at a record.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};

use iotomy_record::{Anatomy, CopyRun, Finding, Limits, Race, Verdict};
use serde_json::Value;

use crate::run::Run;

/// A finding that can be made.
#[derive(Debug)]
pub struct Declaration {
    /// Its name in records.
    pub id: &'static str,
    /// How it is meant.
    pub verdict: Verdict,
    /// A summary of a few words.
    pub summary: &'static str,
    /// When it is made, and from which data.
    pub description: &'static str,
    /// The rules, each for one kind of record.
    pub(crate) rules: &'static [Rule],
}

/// The input of a rule.
#[derive(Debug)]
pub(crate) enum Rule {
    /// One run: a trace, or a contender of a race with the time it takes untraced.
    Run(fn(&Run<'_>) -> Option<UnnamedFinding>),
    /// A race as a whole.
    Race(fn(&Race) -> Vec<UnnamedFinding>),
    /// A race as a whole, and the machine's limits.
    RaceByLimits(fn(&Race, &KnownLimits<'_>) -> Vec<UnnamedFinding>),
    /// A run with dissected calls.
    Anatomy(fn(&Anatomy) -> Option<UnnamedFinding>),
    /// A copy.
    Copy(fn(&Copied<'_>) -> Option<UnnamedFinding>),
}

/// The result of a rule, before it gets its id and verdict.
#[derive(Debug, PartialEq)]
pub(crate) struct UnnamedFinding {
    pub(crate) text: String,
    pub(crate) evidence: BTreeMap<String, Value>,
    pub(crate) advice: Option<String>,
}

impl UnnamedFinding {
    pub(crate) fn new<const N: usize>(text: String, evidence: [(&str, Value); N]) -> Self {
        let evidence = evidence.into_iter().map(|(key, value)| (key.to_owned(), value)).collect();
        Self { text, evidence, advice: None }
    }

    pub(crate) fn advise(self, advice: impl Into<String>) -> Self {
        Self { advice: Some(advice.into()), ..self }
    }
}

impl Declaration {
    pub(crate) fn finding(&self, found: UnnamedFinding) -> Finding {
        Finding {
            id: self.id.to_owned(),
            verdict: self.verdict,
            text: found.text,
            evidence: found.evidence,
            advice: found.advice,
        }
    }

    pub(crate) fn of_run(&self, run: &Run<'_>) -> Option<Finding> {
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

/// Limits, and which of them were missed.
#[derive(Debug)]
pub(crate) struct KnownLimits<'a> {
    pub(crate) limits: Option<&'a Limits>,
    pub(crate) missing: RefCell<BTreeSet<&'static str>>,
}

impl KnownLimits<'_> {
    /// The value of a limit of the machine, in its unit.
    pub(crate) fn limit(&self, name: &'static str) -> Option<f64> {
        let value = self.limits.and_then(|limits| limits.of_machine(name)).and_then(|l| l.value);
        if value.is_none() {
            self.missing.borrow_mut().insert(name);
        }
        value
    }

    /// The value of a limit of the machine, and the distance between its quartiles.
    pub(crate) fn spread(&self, name: &'static str) -> Option<(f64, f64)> {
        let value = self.limit(name)?;
        let spread = self.limits?.of_machine(name)?.spread.unwrap_or(0.0);
        Some((value, spread))
    }
}

/// A copy, and the limits it is compared with.
#[derive(Debug)]
pub(crate) struct Copied<'a> {
    pub(crate) record: &'a CopyRun,
    pub(crate) limits: &'a KnownLimits<'a>,
}
