//! What operators make of integers: the one definition for conditions, for the constants of programs
//! and for the reference evaluator.

use crate::ast::{Binary, Unary};

/// By `/` or `%`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct DividedByZero;

/// What an operator makes of one integer.
pub(crate) fn unary(operator: Unary, value: u64) -> u64 {
    match operator {
        Unary::Negative => value.wrapping_neg(),
        Unary::Positive => value,
        Unary::Not => u64::from(value == 0),
        Unary::Complement => !value,
    }
}

/// What an operator makes of two integers, in 64 bits: a shift goes by the low six bits of its right
/// side.
pub(crate) fn calculated(
    operator: Binary,
    signed: bool,
    left: u64,
    right: u64,
) -> Result<u64, DividedByZero> {
    let (one, other) = (left.cast_signed(), right.cast_signed());
    let less = |is: bool| u64::from(is);
    if matches!(operator, Binary::Divide | Binary::Remainder) && right == 0 {
        return Err(DividedByZero);
    }
    Ok(match operator {
        Binary::Multiply => left.wrapping_mul(right),
        Binary::Divide if signed => one.wrapping_div(other).cast_unsigned(),
        Binary::Divide => left / right,
        Binary::Remainder if signed => one.wrapping_rem(other).cast_unsigned(),
        Binary::Remainder => left % right,
        Binary::Add => left.wrapping_add(right),
        Binary::Subtract => left.wrapping_sub(right),
        Binary::ShiftLeft => left.wrapping_shl(right as u32),
        Binary::ShiftRight if signed => one.wrapping_shr(right as u32).cast_unsigned(),
        Binary::ShiftRight => left.wrapping_shr(right as u32),
        Binary::Less => less(if signed { one < other } else { left < right }),
        Binary::LessOrEqual => less(if signed { one <= other } else { left <= right }),
        Binary::Greater => less(if signed { one > other } else { left > right }),
        Binary::GreaterOrEqual => less(if signed { one >= other } else { left >= right }),
        Binary::Equal => less(left == right),
        Binary::NotEqual => less(left != right),
        Binary::BitAnd => left & right,
        Binary::BitXor => left ^ right,
        Binary::BitOr => left | right,
        Binary::And => less(left != 0 && right != 0),
        Binary::Xor => less((left != 0) != (right != 0)),
        Binary::Or => less(left != 0 || right != 0),
    })
}
