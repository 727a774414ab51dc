//! Conditions: a clause's predicate alone, of facts that are its caller's.
//!
//! The compiler of programs makes steps of it as of any predicate ([`crate::form`]); what differs is
//! what names and strings are (`compile/words.rs`). Where the last step is come to, a record, the
//! condition holds. The steps become BPF instructions by the emitter of programs, with values in
//! registers in place of a machine's memory (`kernel/condition.rs`).

use std::ops::RangeInclusive;

use crate::compile::compile_predicate;
use crate::error::{Problem, Span};
use crate::evaluate::{Known, Outcome, outcome};
use crate::form::{Clause, Fact, Form, Step};
use crate::parser::parse;
use crate::pattern::{StringTest, Tests};
use crate::ranges;
use crate::scope::Scope;

/// A checked expression.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Condition {
    /// A form of one clause.
    pub(crate) form: Form,
    tests: Tests,
}

/// Reads a text and checks it.
///
/// # Errors
/// The first thing that is wrong, and where.
pub fn compile(text: &str, scope: Scope<'_>) -> Result<Condition, Problem> {
    compile_beside(text, scope, &[])
}

/// The same beside a condition with these string tests: its own tests begin with them, so that both
/// conditions can be given one word of matches.
///
/// # Errors
/// As [`compile`]; and when the tests are too many together.
pub fn compile_beside(
    text: &str,
    scope: Scope<'_>,
    tests: &[StringTest],
) -> Result<Condition, Problem> {
    let tests = Tests { all: tests.to_vec(), places: Vec::new() };
    let (form, tests) = compile_predicate(parse(text)?, scope, tests)?;
    Ok(Condition { form, tests })
}

impl Condition {
    /// The string tests, by their bit.
    pub fn tests(&self) -> &[StringTest] {
        &self.tests.all
    }

    /// Its own string tests, without those it stands beside, and where each of them is in the text.
    pub fn own_tests(&self) -> impl Iterator<Item = (&StringTest, &Span)> {
        let Tests { all, places } = &self.tests;
        let mut own: Vec<_> = all[all.len() - places.len()..].iter().zip(places).collect();
        // The deeper side of an operator was read first.
        own.sort_by_key(|(_, place)| place.start);
        own.into_iter()
    }

    /// Whether it has a use for a fact, of an integer or a string.
    pub fn uses(&self, fact: u16) -> bool {
        let mut steps = self.form.clauses.iter().flat_map(|clause| &clause.steps);
        steps.any(
            |step| matches!(step, Step::Fact { fact: Fact::Word(one, ..), .. } if *one == fact),
        ) || self.tests().iter().any(|test| test.fact == fact)
    }

    /// The outcome for these facts, and this word of matches.
    pub fn evaluate(&self, facts: &dyn Fn(u16) -> i64, matches: u64) -> Outcome {
        let known = Known {
            fact: &|fact| Some(facts(fact)),
            matches: &|bit| Some(matches >> bit & 1 == 1),
        };
        outcome(self.clause(), &known).unwrap_or(Outcome::False)
    }

    /// The outcome as far as it is settled by what is known; `None` where it depends on the rest.
    pub fn settled(
        &self,
        fact: &dyn Fn(u16) -> Option<i64>,
        matches: &dyn Fn(&StringTest) -> Option<bool>,
    ) -> Option<Outcome> {
        let matches = |bit: u8| self.tests().get(usize::from(bit)).and_then(matches);
        outcome(self.clause(), &Known { fact, matches: &matches })
    }

    /// What is wrong with it if no facts of these ranges can fulfil it, and which part cannot hold; `None` where some
    /// may.
    pub fn unfulfilled(&self, range: &dyn Fn(u16) -> RangeInclusive<i64>) -> Option<Problem> {
        ranges::unfulfilled(self.clause(), range)
    }

    pub(crate) fn clause(&self) -> &Clause {
        &self.form.clauses[0]
    }
}
