//! Which calls and ring operations are counted: a condition on each (`--where`), in D's expressions (crate `d`);
//! which of these ends the watch (`--until`); what they are grouped by (`grouping.rs`). The variables are the same.
//!
//! A condition is decided in two steps. By a call's number alone much is known ([`Filter::of_call`]):
//! its name, its groups, whether it has a descriptor or a path at all. Only where that leaves it open,
//! the facts of the single call decide, in the kernel or here ([`Filter::holds`]).

use std::time::Duration;

use iotomy_dtrace::{Instruction, Outcome, Problem, StringTest};
use iotomy_record::{EndedBy, WholeCall};

use crate::call_names::{bits, is_of_call, is_of_ring};
use crate::compiled::{Compiled, Verdict};
use crate::grouping::Grouping;
use crate::naming::CallNumber;
use crate::variables::{AGGREGATIONS, CallFacts, Sums, fact};

/// Which calls are counted, which of them ends the watch, and by what they are grouped. The usual one
/// lets every call pass, and none end anything.
#[derive(Debug, Clone, Default)]
pub struct Filter {
    r#where: Option<Compiled>,
    until: Option<Compiled>,
    /// Where the watch goes on after a call that was to end it: how long no other is asked.
    pause: Option<Duration>,
    pub(crate) by: Grouping,
}

impl Filter {
    /// By a condition on the variables of [`crate::VARIABLES`].
    ///
    /// # Errors
    /// What is wrong with the text, and where.
    pub fn new(text: &str) -> Result<Self, Problem> {
        Ok(Self { r#where: Some(Compiled::new(text, &[], &[])?), ..Self::default() })
    }

    /// The same, with a condition on the variables of [`crate::VARIABLES`] and [`AGGREGATIONS`] that ends the
    /// watch when a call for which it holds has returned. Calls that are not counted end nothing.
    ///
    /// # Errors
    /// What is wrong with the text, and where.
    pub fn until(self, text: &str) -> Result<Self, Problem> {
        let until = Compiled::new(text, AGGREGATIONS, self.tests())?;
        Ok(Self { until: Some(until), ..self })
    }

    /// The same, in which such a call ends nothing: the viewer is shown it, and sees none that returns within
    /// `pause` of it. Sums begin anew after that.
    #[must_use]
    pub fn going_on(self, pause: Duration) -> Self {
        Self { pause: Some(pause), ..self }
    }

    /// The same, whose calls are grouped by variables of [`crate::VARIABLES`] as well.
    ///
    /// # Errors
    /// There is no such variable, it is there twice, or there are more than four.
    pub fn grouped(self, by: &[String]) -> Result<Self, String> {
        Ok(Self { by: Grouping::new(by)?, ..self })
    }

    /// Whether it lets every call pass, and groups none.
    pub fn is_none(&self) -> bool {
        self.conditions().next().is_none() && self.by.is_none()
    }

    /// Whether it may leave calls out.
    pub(crate) fn restricts(&self) -> bool {
        self.r#where.is_some()
    }

    /// Whether a condition is asked of calls that are counted: of the one that ends the watch, or of those that the
    /// viewer is shown.
    pub(crate) fn has_until(&self) -> bool {
        self.until.is_some()
    }

    /// Where the watch goes on after a call that fulfilled that condition: how long no other is asked.
    pub(crate) fn pause(&self) -> Option<Duration> {
        self.pause.filter(|_| self.has_until())
    }

    /// The end of the watch by a call, with the sums that the condition asks for.
    pub(crate) fn ended_by(&self, call: WholeCall, sums: Sums) -> EndedBy {
        let asked = |fact, sum: i64| self.uses(fact).then_some(sum.cast_unsigned());
        EndedBy {
            call,
            count: asked(fact::COUNT, sums.count),
            sum_bytes: asked(fact::SUM_OF_BYTES, sums.bytes),
            sum_duration_ns: asked(fact::SUM_OF_DURATIONS, sums.duration_ns),
        }
    }

    fn conditions(&self) -> impl Iterator<Item = &Compiled> {
        self.r#where.iter().chain(&self.until)
    }

    /// The instructions of the condition on calls that are counted, and of that which ends the watch.
    pub(crate) fn code(&self) -> [&[Instruction]; 2] {
        [&self.r#where, &self.until].map(|one| one.as_ref().map_or(&[][..], |one| &one.code))
    }

    /// Whether a condition needs a fact, or a group does.
    pub(crate) fn uses(&self, fact: u16) -> bool {
        self.conditions().any(|one| one.condition.uses(fact)) || self.by.facts().contains(&fact)
    }

    /// Whether the condition that ends the watch asks for sums.
    pub(crate) fn uses_sums(&self) -> bool {
        AGGREGATIONS.iter().any(|sum| self.uses(sum.fact))
    }

    /// The strings that are compared, by their bit. The tests of the last condition begin with those
    /// of the one before.
    pub(crate) fn tests(&self) -> &[StringTest] {
        self.conditions().last().map_or(&[], |one| one.condition.tests())
    }

    /// Whether the calls of a name as records have it are counted.
    pub(crate) fn of_call(&self, name: &str) -> Verdict {
        self.r#where.as_ref().map_or(Verdict::All, |one| one.of_call(name))
    }

    /// Whether a counted call of a name as records have it ends the watch.
    pub(crate) fn ends_at_call(&self, name: &str) -> Verdict {
        match (self.of_call(name), &self.until) {
            (Verdict::None, _) | (_, None) => Verdict::None,
            (_, Some(until)) => until.of_call(name),
        }
    }

    /// Whether the requests by an operation of io_uring are counted.
    pub(crate) fn of_ring(&self, operation: &str) -> Verdict {
        self.r#where.as_ref().map_or(Verdict::All, |one| one.of_ring(operation))
    }

    /// Whether a counted request by it ends the watch.
    pub(crate) fn ends_at_ring(&self, operation: &str) -> Verdict {
        match (self.of_ring(operation), &self.until) {
            (Verdict::None, _) | (_, None) => Verdict::None,
            (_, Some(until)) => until.of_ring(operation),
        }
    }

    /// Bits of the tests of its call that an operation matches.
    pub(crate) fn ring_bits(&self, operation: &str) -> u64 {
        let of_ring = |test: &StringTest| {
            matches!(test.fact, fact::CALL | fact::GROUP) && is_of_ring(test, operation)
        };
        bits(self.tests().iter().map(of_ring))
    }

    /// Bits of the tests of its call that a call matches.
    pub(crate) fn call_bits(&self, name: &str) -> u64 {
        let of_call = |test: &StringTest| {
            matches!(test.fact, fact::CALL | fact::GROUP) && is_of_call(test, name)
        };
        bits(self.tests().iter().map(of_call))
    }

    /// Bits of the tests of a variable.
    pub(crate) fn bits_of(&self, fact: u16) -> u64 {
        bits(self.tests().iter().map(|test| test.fact == fact))
    }

    /// Bits of the tests of a variable that an empty text passes.
    pub(crate) fn bits_of_no(&self, fact: u16) -> u64 {
        let passes = |test: &StringTest| test.fact == fact && test.pattern.matches(b"");
        bits(self.tests().iter().map(passes))
    }

    /// Whether a call that returned is counted.
    pub(crate) fn holds(&self, call: CallNumber, facts: &CallFacts) -> Outcome {
        let of = |one: &Compiled| one.holds(call, facts, &Sums::default());
        self.r#where.as_ref().map_or(Outcome::True, of)
    }

    /// Whether a call that is counted ends the watch; the sums have it.
    pub(crate) fn ends_at(&self, call: CallNumber, facts: &CallFacts, sums: &Sums) -> Outcome {
        self.until.as_ref().map_or(Outcome::False, |one| one.holds(call, facts, sums))
    }
}

#[cfg(test)]
#[path = "filter_tests.rs"]
mod tests;
