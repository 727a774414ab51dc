//! The language as a whole: what texts mean, what is wrong with them, and that the emitted
//! instructions do what the evaluator does.

mod generated;
mod instructions;
mod language;
mod machine;
mod problems;
mod programs;
mod random;
mod reference;

use crate::{Aggregation, Condition, Kind, Outcome, Problem, Scope, Variable, compile};

const fn variable(name: &'static str, kind: Kind, fact: u16) -> Variable {
    Variable { name, kind, fact, summary: "" }
}

/// Four numbers and two strings.
pub(crate) const VARIABLES: [Variable; 7] = [
    variable("bytes", Kind::Integer, 0),
    variable("errno", Kind::Integer, 1),
    variable("fd", Kind::Integer, 2),
    variable("duration", Kind::Integer, 3),
    variable("call", Kind::String, 0x100),
    variable("path", Kind::String, 0x101),
    variable("file", Kind::String, 0x101),
];
/// What is added up has the values of `fd` and `duration`.
const AGGREGATIONS: [Aggregation; 2] = [
    Aggregation { function: "count", of: None, fact: 2, summary: "" },
    Aggregation { function: "sum", of: Some("bytes"), fact: 3, summary: "" },
];
/// The facts of the numbers, and the word of matches.
pub(crate) const WORDS: u16 = 5;

const CONSTANTS: [(&str, i64); 2] = [("ENOENT", 2), ("EAGAIN", 11)];

pub(crate) fn compiled(text: &str) -> Result<Condition, Problem> {
    compile(text, scope())
}

pub(crate) fn scope() -> Scope<'static> {
    Scope { variables: &VARIABLES, constants: &CONSTANTS, aggregations: &AGGREGATIONS }
}

/// What the strings of a condition match.
pub(crate) fn matches(condition: &Condition, call: &str, path: &str) -> u64 {
    let tests = condition.tests().iter().enumerate();
    let matching = tests.map(|(bit, test)| {
        let text = if test.fact == 0x100 { call } else { path };
        u64::from(test.pattern.matches(text.as_bytes())) << bit
    });
    matching.sum()
}

/// The outcome with these numbers, of the evaluator and of the instructions.
pub(crate) fn outcome(condition: &Condition, numbers: [i64; 4], matches: u64) -> Outcome {
    let evaluated = condition.evaluate(&|fact| numbers[usize::from(fact)], matches);
    let facts: Vec<u64> =
        numbers.iter().map(|number| number.cast_unsigned()).chain([matches]).collect();
    let code = condition.emit(WORDS, 4096).unwrap();
    assert_eq!(machine::run(&code, &facts), evaluated, "{condition:?} {numbers:?}");
    evaluated
}
