//! The value of a condition, where all facts are known or only some.

use crate::arithmetic::{DividedByZero, calculated, unary};
use crate::ast::Binary;
use crate::check::Node;

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

impl Outcome {
    pub(crate) fn from_integer(value: i64) -> Self {
        if value == 0 { Self::False } else { Self::True }
    }
}

/// What is known.
pub(crate) struct Known<'a> {
    pub(crate) fact: &'a dyn Fn(u16) -> Option<i64>,
    pub(crate) matches: &'a dyn Fn(u8) -> Option<bool>,
}

impl Default for Known<'_> {
    fn default() -> Self {
        Self { fact: &|_| None, matches: &|_| None }
    }
}

/// The value, `None` where it depends on what is not known.
type Value = Result<Option<i64>, DividedByZero>;

impl Node {
    pub(crate) fn evaluated(&self, known: &Known<'_>) -> Value {
        match self {
            Self::Constant(value) => Ok(Some(*value)),
            Self::Fact(fact) => Ok((known.fact)(*fact)),
            Self::Matches(bit) => Ok((known.matches)(*bit).map(i64::from)),
            Self::Unary(operator, of) => Ok(of
                .evaluated(known)?
                .map(|value| unary(*operator, value.cast_unsigned()).cast_signed())),
            Self::Binary(Binary::And, left, right) => settle(left, right, false, known),
            Self::Binary(Binary::Or, left, right) => settle(left, right, true, known),
            Self::Binary(operator, left, right) => {
                match (left.evaluated(known)?, right.evaluated(known)?) {
                    (Some(left), Some(right)) => binary(*operator, left, right).map(Some),
                    _ => Ok(None),
                }
            }
            Self::Conditional(condition, first, second) => match condition.evaluated(known)? {
                Some(0) => second.evaluated(known),
                Some(_) => first.evaluated(known),
                None => {
                    // An error in a branch that may not be taken is none yet.
                    let [first, second] =
                        [first, second].map(|branch| branch.evaluated(known).ok().flatten());
                    Ok(first.filter(|_| first == second))
                }
            },
        }
    }
}

/// `&&`, which false settles, and `||`, which truth does.
fn settle(left: &Node, right: &Node, settled_by: bool, known: &Known<'_>) -> Value {
    let left = left.evaluated(known)?.map(|value| value != 0);
    if left == Some(settled_by) {
        return Ok(Some(i64::from(settled_by)));
    }
    let right = match (left, right.evaluated(known)) {
        // It may never come to this.
        (None, Err(_)) => None,
        (_, right) => right?.map(|value| value != 0),
    };
    let is_settled = right == Some(settled_by);
    Ok(match left {
        _ if is_settled => Some(i64::from(settled_by)),
        None => None,
        Some(_) => right.map(i64::from),
    })
}

fn binary(operator: Binary, left: i64, right: i64) -> Result<i64, DividedByZero> {
    let value = calculated(operator, true, left.cast_unsigned(), right.cast_unsigned())?;
    Ok(value.cast_signed())
}
