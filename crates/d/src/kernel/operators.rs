//! Operators as instructions.

use super::clause::Emitter;
use super::{KernelError, layout};
use crate::assembler::{Code, code};
use crate::ast::{Binary, Unary};
use crate::form::Register;
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

impl Emitter<'_> {
    pub(super) fn unary(&self, code: &mut Code, to: Register, operator: Unary, from: Register) {
        self.value(code, 2, from);
        match operator {
            Unary::Positive => {}
            Unary::Negative => code.operate_on(code::NEG, 2, 0),
            Unary::Complement => code.operate_on(code::XOR, 2, -1),
            Unary::Not => {
                code.operate(code::MOV, 3, 2);
                self.truth(code, |code, end| code.jump(code::JEQ, 3, 0, end));
            }
        }
        self.keep(code, 2, to);
    }

    /// Has in `r2` whether a jump is taken.
    fn truth(&self, code: &mut Code, jump: impl FnOnce(&mut Code, crate::assembler::Label)) {
        let end = code.label();
        code.number(2, 1);
        jump(code, end);
        code.number(2, 0);
        code.place(end);
    }

    pub(super) fn binary(
        &self,
        code: &mut Code,
        to: Register,
        operator: Binary,
        signed: bool,
        [left, right]: [Register; 2],
    ) {
        if let Some(jump) = comparison(operator, signed) {
            self.value(code, 3, left);
            match self.slots.constant(right).map(|one| i32::try_from(one.cast_signed())) {
                Some(Ok(number)) => self.truth(code, |code, end| code.jump(jump, 3, number, end)),
                _ => {
                    self.value(code, 4, right);
                    self.truth(code, |code, end| code.jump_by(jump, 3, 4, end));
                }
            }
            return self.keep(code, 2, to);
        }
        self.value(code, 2, left);
        self.value(code, 3, right);
        match operator {
            Binary::Divide | Binary::Remainder => {
                self.note_step(code);
                code.push(
                    code::STORE_NUMBER_32,
                    layout::MACHINE,
                    0,
                    layout::FAULT,
                    layout::DIVIDED_BY_ZERO,
                );
                code.jump(code::JEQ, 3, 0, self.failed);
                divide(code, operator, signed);
            }
            Binary::ShiftLeft | Binary::ShiftRight => {
                code.operate_on(code::AND, 3, 63);
                let right = if signed { code::ARSH } else { code::RSH };
                code.operate(if operator == Binary::ShiftLeft { code::LSH } else { right }, 2, 3);
            }
            Binary::Multiply => code.operate(code::MUL, 2, 3),
            Binary::Add => code.operate(code::ADD, 2, 3),
            Binary::Subtract => code.operate(code::SUB, 2, 3),
            Binary::BitAnd => code.operate(code::AND, 2, 3),
            Binary::BitXor => code.operate(code::XOR, 2, 3),
            Binary::BitOr => code.operate(code::OR, 2, 3),
            // The compiler makes jumps of these, and comparisons were above.
            _ => {
                for register in [2, 3] {
                    let end = code.label();
                    code.jump(code::JEQ, register, 0, end);
                    code.number(register, 1);
                    code.place(end);
                }
                let operation = match operator {
                    Binary::And => code::AND,
                    Binary::Or => code::OR,
                    _ => code::XOR,
                };
                code.operate(operation, 2, 3);
            }
        }
        self.keep(code, 2, to);
    }

    pub(super) fn compare(
        &self,
        code: &mut Code,
        to: Register,
        operator: Binary,
        [left, right]: [Register; 2],
    ) -> Result<(), KernelError> {
        code.number(2, self.slots.slot(left) as i64);
        code.number(3, self.slots.slot(right) as i64);
        let is_order = !matches!(operator, Binary::Equal | Binary::NotEqual);
        self.call(code, if is_order { "d_compare" } else { "d_same" })?;
        // 0, 1 and 2 are less, equal and greater; 0 and 1 different and the same.
        let (jump, number) = match operator {
            Binary::Less => (code::JEQ, 0),
            Binary::LessOrEqual => (code::JNE, 2),
            Binary::Greater => (code::JEQ, 2),
            Binary::GreaterOrEqual => (code::JNE, 0),
            Binary::NotEqual => (code::JEQ, 0),
            _ => (code::JNE, 0),
        };
        self.truth(code, |code, end| code.jump(jump, 0, number, end));
        self.keep(code, 2, to);
        Ok(())
    }
}

/// `r2` by `r3`. The kernel's division knows no sign: of the values without theirs, and then the sign.
fn divide(code: &mut Code, operator: Binary, signed: bool) {
    let operation = if operator == Binary::Divide { code::DIV } else { code::MOD };
    if !signed {
        return code.operate(operation, 2, 3);
    }
    let negate_unless_positive = |code: &mut Code, sign: u8, value: u8| {
        let end = code.label();
        code.jump(code::JSGE, sign, 0, end);
        code.operate_on(code::NEG, value, 0);
        code.place(end);
    };
    code.operate(code::MOV, 4, 2);
    if operator == Binary::Divide {
        code.operate(code::XOR, 4, 3);
    }
    negate_unless_positive(code, 2, 2);
    negate_unless_positive(code, 3, 3);
    code.operate(operation, 2, 3);
    negate_unless_positive(code, 4, 2);
}

/// The jump for a comparison.
fn comparison(operator: Binary, signed: bool) -> Option<u8> {
    Some(match (operator, signed) {
        (Binary::Less, true) => code::JSLT,
        (Binary::LessOrEqual, true) => code::JSLE,
        (Binary::Greater, true) => code::JSGT,
        (Binary::GreaterOrEqual, true) => code::JSGE,
        (Binary::Less, false) => code::JLT,
        (Binary::LessOrEqual, false) => code::JLE,
        (Binary::Greater, false) => code::JGT,
        (Binary::GreaterOrEqual, false) => code::JGE,
        (Binary::Equal, _) => code::JEQ,
        (Binary::NotEqual, _) => code::JNE,
        _ => return None,
    })
}
