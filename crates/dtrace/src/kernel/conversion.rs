//! Conversions of integers as instructions.

use crate::assembler::{Code, code};
use crate::types::Integer;

/// Cuts a register to an integer's size, and extends it by its sign.
pub(super) fn convert(code: &mut Code, register: u8, integer: Integer) {
    let unused = 64 - 8 * i32::from(integer.bytes.clamp(1, 8));
    if unused == 0 {
        return;
    }
    code.operate_on(code::LSH, register, unused);
    code.operate_on(if integer.signed { code::ARSH } else { code::RSH }, register, unused);
}
