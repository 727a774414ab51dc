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
    let mut values = Values(vec![None; usize::from(clause.registers)]);
    let (mut holds, mut is_divided) = (false, false);
    for (at, step) in clause.steps.iter().enumerate() {
        if !is_reached[at] {
            continue;
        }
        let (to, value) = match step {
            Step::Integer { to, value } => (to, Some(*value)),
            Step::Fact { to, fact: Fact::Word(number, ..), .. } => {
                (to, (known.fact)(*number).map(i64::cast_unsigned))
            }
            Step::Fact { to, fact: Fact::Matches(bit, is), .. } => {
                (to, (known.matches)(*bit).map(|matches| u64::from(matches == *is)))
            }
            Step::Move { to, from } => (to, values.of(*from)),
            Step::Unary { to, operator, from } => {
                (to, values.of(*from).map(|value| unary(*operator, value)))
            }
            Step::Binary { to, operator, signed, left, right } => {
                let sides = values.of(*left).zip(values.of(*right));
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
                let truth = values.of(*value).map(|value| value != 0);
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
        values.write(*to, value);
        is_reached[at + 1] = true;
    }
    match (is_reached[end], holds, is_divided) {
        (true, false, false) => Some(Outcome::False),
        (false, true, false) => Some(Outcome::True),
        (false, false, true) => Some(Outcome::DividedByZero),
        _ => None,
    }
}

/// The values of registers, of each whether it was written and whether it is known.
struct Values(Vec<Option<Option<u64>>>);

impl Values {
    fn of(&self, register: Register) -> Option<u64> {
        self.0[usize::from(register)].flatten()
    }

    fn write(&mut self, register: Register, value: Option<u64>) {
        let place = &mut self.0[usize::from(register)];
        *place = match place {
            Some(other) if *other != value => Some(None),
            _ => Some(value),
        };
    }
}
