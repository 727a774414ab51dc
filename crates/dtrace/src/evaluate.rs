//! What comes of a condition, where all facts are known or only some.
//!
//! Jumps go forward only, so one pass over the steps follows all paths that are not ruled out. A
//! register that two of them write differently is not known where they meet.

use crate::arithmetic::{calculated, unary};
use crate::form::{Clause, Fact, Register, Step};

/// What comes of a condition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// It does not hold.
    False,
    /// It holds.
    True,
    /// It has no value: D's error at run time.
    DividedByZero,
}

/// What is known.
pub(crate) struct Known<'a> {
    pub(crate) fact: &'a dyn Fn(u16) -> Option<i64>,
    pub(crate) matches: &'a dyn Fn(u8) -> Option<bool>,
}

/// The outcome that all paths have; `None` where it depends on what is not known.
pub(crate) fn outcome(clause: &Clause, known: &Known<'_>) -> Option<Outcome> {
    let end = clause.steps.len();
    let mut is_reached = vec![false; end + 1];
    is_reached[0] = true;
    // Of each register whether it was written, and whether its value is known.
    let mut values: Vec<Option<Option<u64>>> = vec![None; usize::from(clause.registers)];
    let (mut holds, mut is_divided) = (false, false);
    for (at, step) in clause.steps.iter().enumerate() {
        if !is_reached[at] {
            continue;
        }
        let read = |register: &Register| values[usize::from(*register)].flatten();
        let (to, value) = match step {
            Step::Integer { to, value } => (to, Some(*value)),
            Step::Fact { to, fact: Fact::Word(number, ..), .. } => {
                (to, (known.fact)(*number).map(i64::cast_unsigned))
            }
            Step::Fact { to, fact: Fact::Matches(bit, is), .. } => {
                (to, (known.matches)(*bit).map(|matches| u64::from(matches == *is)))
            }
            Step::Move { to, from } => (to, read(from)),
            Step::Unary { to, operator, from } => {
                (to, read(from).map(|value| unary(*operator, value)))
            }
            Step::Binary { to, operator, signed, left, right } => {
                let sides = read(left).zip(read(right));
                let value = sides.map(|(one, other)| calculated(*operator, *signed, one, other));
                match value.transpose() {
                    Ok(value) => (to, value),
                    Err(_) => {
                        is_divided = true;
                        continue;
                    }
                }
            }
            Step::Jump { to } => {
                is_reached[*to as usize] = true;
                continue;
            }
            Step::JumpIf { value, is, to } => {
                let truth = read(value).map(|value| value != 0);
                is_reached[*to as usize] |= truth != Some(!is);
                is_reached[at + 1] |= truth != Some(*is);
                continue;
            }
            // The last one. A condition has no others.
            _ => {
                holds = true;
                continue;
            }
        };
        let place = &mut values[usize::from(*to)];
        *place = Some(if place.is_some_and(|other| other != value) { None } else { value });
        is_reached[at + 1] = true;
    }
    match (is_reached[end], holds, is_divided) {
        (true, false, false) => Some(Outcome::False),
        (false, true, false) => Some(Outcome::True),
        (false, false, true) => Some(Outcome::DividedByZero),
        _ => None,
    }
}
