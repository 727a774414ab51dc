//! The parts of a finding: its declaration, and the rules that look at a record.

use std::borrow::Cow;
use std::collections::BTreeMap;

use iotomy_record::{Anatomy, CopyRun, Finding, Race, Trace, Verdict};
use serde_json::Value;

use crate::facts::Fact;
use crate::known_limits::KnownLimits;
use crate::run::Run;

/// A finding that can be made.
#[derive(Debug)]
pub struct FindingDeclaration {
    /// Its name in records.
    pub id: &'static str,
    /// How it is meant.
    pub verdict: Verdict,
    /// A summary of a few words.
    pub summary: &'static str,
    /// When it is made, and from which data.
    pub description: &'static str,
    /// The facts that it rests on: it is not made of a record that lacks one.
    pub facts: &'static [Fact],
    /// The rules, each for one kind of record.
    pub(crate) rules: &'static [Rule],
}

/// The input of a rule.
#[derive(Debug)]
pub(crate) enum Rule {
    /// One run: a trace, or a command of a race with the time it takes untraced.
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
    /// Whether the advice is about how the command is run: for a process that ran before, it is none.
    pub(crate) is_about_command: bool,
}

impl UnnamedFinding {
    pub(crate) fn new<const N: usize>(text: String, evidence: [(&str, Value); N]) -> Self {
        let evidence = evidence.into_iter().map(|(key, value)| (key.to_owned(), value)).collect();
        Self { text, evidence, advice: None, is_about_command: false }
    }

    pub(crate) fn advise(self, advice: impl Into<String>) -> Self {
        Self { advice: Some(advice.into()), ..self }
    }

    /// The same, where the advice is to run the command in another way.
    pub(crate) fn advise_command(self, advice: impl Into<String>) -> Self {
        Self { is_about_command: true, ..self.advise(advice) }
    }
}

impl FindingDeclaration {
    pub(crate) fn finding(&self, found: UnnamedFinding) -> Finding {
        Finding {
            id: self.id.to_owned(),
            verdict: self.verdict,
            text: found.text,
            evidence: found.evidence,
            advice: found.advice,
        }
    }

    /// Judges a run, if its record has the facts.
    pub(crate) fn of_run(&self, run: &Run<'_>) -> Option<Finding> {
        let rule = self.rules.iter().find_map(|rule| match rule {
            Rule::Run(rule) => Some(rule),
            _ => None,
        })?;
        if !self.has_facts(run.trace) {
            return None;
        }
        let mut found = rule(run)?;
        if let Some(label) = run.label {
            found.text = format!("{label}: {}", found.text);
            found.evidence.insert("contender".to_owned(), Value::from(label));
        }
        if run.trace.command.is_empty() && found.is_about_command {
            found.advice = None;
        }
        Some(self.finding(found))
    }

    /// Judges a race as a whole, without those of its traces that lack a fact.
    pub(crate) fn of_race(&self, race: &Race, limits: &KnownLimits<'_>) -> Vec<Finding> {
        let lacks = |trace: &Trace| !self.has_facts(trace);
        let mut race = Cow::Borrowed(race);
        let those = race.commands.iter().map(|one| one.trace.as_ref().is_some_and(lacks));
        for at in
            those.enumerate().filter_map(|(at, lacks)| lacks.then_some(at)).collect::<Vec<_>>()
        {
            race.to_mut().commands[at].trace = None;
        }
        let found = self.rules.iter().flat_map(|rule| match rule {
            Rule::Race(rule) => rule(&race),
            Rule::RaceByLimits(rule) => rule(&race, limits),
            _ => Vec::new(),
        });
        found.map(|found| self.finding(found)).collect()
    }

    /// Judges an anatomy by its layers, if its record has the facts.
    pub(crate) fn of_anatomy(&self, record: &Anatomy) -> Option<Finding> {
        let rule = self.rules.iter().find_map(|rule| match rule {
            Rule::Anatomy(rule) => Some(rule),
            _ => None,
        })?;
        let has_facts = self.facts.iter().all(|fact| fact.is_whole_in(record));
        has_facts.then(|| rule(record))?.map(|found| self.finding(found))
    }

    fn has_facts(&self, trace: &Trace) -> bool {
        self.facts.iter().all(|fact| fact.is_whole(trace))
    }
}

/// A copy, and the limits it is compared with.
#[derive(Debug)]
pub(crate) struct Copied<'a> {
    pub(crate) record: &'a CopyRun,
    pub(crate) limits: &'a KnownLimits<'a>,
}
