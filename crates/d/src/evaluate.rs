//! The value of a condition, where all facts are known or only some.

use crate::ast::{Binary, Unary};
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
    pub(crate) fn of(value: i64) -> Self {
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

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct DividedByZero;

impl Node {
    pub(crate) fn evaluated(&self, known: &Known<'_>) -> Value {
        match self {
            Self::Constant(value) => Ok(Some(*value)),
            Self::Fact(fact) => Ok((known.fact)(*fact)),
            Self::Matches(bit) => Ok((known.matches)(*bit).map(i64::from)),
            Self::Unary(operator, of) => {
                Ok(of.evaluated(known)?.map(|value| unary(*operator, value)))
            }
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

fn unary(operator: Unary, value: i64) -> i64 {
    match operator {
        Unary::Negative => value.wrapping_neg(),
        Unary::Positive => value,
        Unary::Not => i64::from(value == 0),
        Unary::Complement => !value,
    }
}

fn binary(operator: Binary, left: i64, right: i64) -> Result<i64, DividedByZero> {
    let is_division = matches!(operator, Binary::Divide | Binary::Remainder);
    if is_division && right == 0 {
        return Err(DividedByZero);
    }
    Ok(match operator {
        Binary::Multiply => left.wrapping_mul(right),
        Binary::Divide => left.wrapping_div(right),
        Binary::Remainder => left.wrapping_rem(right),
        Binary::Add => left.wrapping_add(right),
        Binary::Subtract => left.wrapping_sub(right),
        Binary::ShiftLeft => left.wrapping_shl(right as u32),
        Binary::ShiftRight => left.wrapping_shr(right as u32),
        Binary::Less => i64::from(left < right),
        Binary::LessOrEqual => i64::from(left <= right),
        Binary::Greater => i64::from(left > right),
        Binary::GreaterOrEqual => i64::from(left >= right),
        Binary::Equal => i64::from(left == right),
        Binary::NotEqual => i64::from(left != right),
        Binary::BitAnd => left & right,
        Binary::BitXor => left ^ right,
        Binary::BitOr => left | right,
        Binary::And => i64::from(left != 0 && right != 0),
        Binary::Xor => i64::from((left != 0) != (right != 0)),
        Binary::Or => i64::from(left != 0 || right != 0),
    })
}
