//! Operators as instructions, of programs and of conditions.

use super::clause::Emitter;
use super::registers::Home;
use super::{KernelError, layout};
use crate::assembler::{Code, Label, SCRATCH, code};
use crate::ast::{Binary, Unary};
use crate::form::{Fact, Register, Step};
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
        let target = self.target(to);
        self.value(code, target, from);
        match operator {
            Unary::Negative => code.operate_on(code::NEG, target, 0),
            Unary::Complement => code.operate_on(code::XOR, target, -1),
            // A truth is a jump, and this changes nothing.
            Unary::Not | Unary::Positive => {}
        }
        self.keep(code, target, to);
    }

    pub(super) fn binary(
        &self,
        code: &mut Code,
        to: Register,
        (operator, signed): (Binary, bool),
        [left, right]: [Register; 2],
    ) {
        let target = self.target(to);
        let [_, other] = self.slots.home.sides();
        self.value(code, target, left);
        let short = self.slots.short(right);
        let is_shift = matches!(operator, Binary::ShiftLeft | Binary::ShiftRight);
        if matches!(operator, Binary::Divide | Binary::Remainder) {
            self.divide(code, (operator, signed), target, right);
        } else if let (Some(operation), Some(number)) = (calculation(operator, signed), short) {
            code.operate_on(operation, target, if is_shift { number & 63 } else { number });
        } else if let Some(operation) = calculation(operator, signed) {
            let right = self.read(code, other, right);
            if is_shift {
                code.operate_on(code::AND, right, 63);
            }
            code.operate(operation, target, right);
        }
        self.keep(code, target, to);
    }

    /// The kernel's division knows no sign: of the values without theirs, and then the sign. What
    /// reads the right side in place may change it, for nothing else reads it.
    fn divide(
        &self,
        code: &mut Code,
        (operator, signed): (Binary, bool),
        left: u8,
        right: Register,
    ) {
        let operation = if operator == Binary::Divide { code::DIV } else { code::MOD };
        let number = self.slots.short(right).filter(|number| *number > 0);
        let [_, other] = self.slots.home.sides();
        let right = if number.is_some() { None } else { Some(self.read(code, other, right)) };
        if let Some(right) = right {
            if self.slots.home == Home::Machine {
                let (fault, which) = (layout::FAULT, layout::DIVIDED_BY_ZERO);
                self.note_step(code);
                code.push(code::STORE_NUMBER_32, layout::MACHINE, 0, fault, which);
            }
            code.jump(code::JEQ, right, 0, self.failed);
        }
        if signed {
            code.operate(code::MOV, SCRATCH, left);
            negate_unless_positive(code, left, left);
        }
        if let (true, Some(right)) = (signed, right) {
            if operator == Binary::Divide {
                code.operate(code::XOR, SCRATCH, right);
            }
            negate_unless_positive(code, right, right);
        }
        match (right, number) {
            (Some(right), _) => code.operate(operation, left, right),
            (None, number) => code.operate_on(operation, left, number.unwrap_or(1)),
        }
        if signed {
            negate_unless_positive(code, SCRATCH, left);
        }
    }

    /// The value of a step that is true or false.
    pub(super) fn truth(
        &self,
        code: &mut Code,
        to: Register,
        step: &Step,
    ) -> Result<(), KernelError> {
        let (target, [yes, end]) = (self.target(to), [code.label(), code.label()]);
        self.branch(code, step, true, yes)?;
        code.number(target, 0);
        code.jump(code::JA, 0, 0, end);
        code.place(yes);
        code.number(target, 1);
        code.place(end);
        self.keep(code, target, to);
        Ok(())
    }

    /// Jumps where the truth of a step is `is`; whether it is one that is true or false.
    pub(super) fn branch(
        &self,
        code: &mut Code,
        step: &Step,
        is: bool,
        to: Label,
    ) -> Result<bool, KernelError> {
        let [one, other] = self.slots.home.sides();
        match step {
            // The bit becomes that of the sign.
            Step::Fact { to: at, fact: Fact::Matches(bit, holds), .. } => {
                let word = self.target(*at);
                self.matches(code, word);
                code.operate_on(code::LSH, word, 63 - i32::from(*bit));
                code.jump(if is == *holds { code::JSLT } else { code::JSGE }, word, 0, to);
            }
            Step::Unary { operator: Unary::Not, from, .. } => {
                let from = self.read(code, one, *from);
                code.jump(if is { code::JEQ } else { code::JNE }, from, 0, to);
            }
            Step::Binary { operator, signed, left, right, .. } if operator.compares() => {
                let (mut operator, mut left, mut right) = (*operator, *left, *right);
                if self.slots.short(left).is_some() && self.slots.short(right).is_none() {
                    (operator, left, right) = (mirrored(operator), right, left);
                }
                let jump = comparison(if is { operator } else { contrary(operator) }, *signed);
                let left = self.read(code, one, left);
                match self.slots.short(right) {
                    Some(number) => code.jump(jump, left, number, to),
                    None => {
                        let right = self.read(code, other, right);
                        code.jump_by(jump, left, right, to);
                    }
                }
            }
            Step::Compare { operator, left, right, .. } => {
                code.number(2, self.slots.slot(*left) as i64);
                code.number(3, self.slots.slot(*right) as i64);
                let is_order = !matches!(operator, Binary::Equal | Binary::NotEqual);
                self.call(code, if is_order { "d_compare" } else { "d_same" })?;
                // 0, 1 and 2 are less, equal and greater; 0 and 1 different and the same.
                let same = if is_order { *operator } else { contrary(*operator) };
                let jump = comparison(if is { same } else { contrary(same) }, false);
                code.jump(jump, SCRATCH, i32::from(is_order), to);
            }
            _ => return Ok(false),
        }
        Ok(true)
    }
}

fn negate_unless_positive(code: &mut Code, sign: u8, value: u8) {
    let end = code.label();
    code.jump(code::JSGE, sign, 0, end);
    code.operate_on(code::NEG, value, 0);
    code.place(end);
}

/// What calculates a value of two; of others the compiler makes jumps.
fn calculation(operator: Binary, signed: bool) -> Option<u8> {
    Some(match operator {
        Binary::Multiply => code::MUL,
        Binary::Add => code::ADD,
        Binary::Subtract => code::SUB,
        Binary::ShiftLeft => code::LSH,
        Binary::ShiftRight if signed => code::ARSH,
        Binary::ShiftRight => code::RSH,
        Binary::BitAnd => code::AND,
        Binary::BitXor => code::XOR,
        Binary::BitOr => code::OR,
        _ => return None,
    })
}

/// The jump for a comparison.
fn comparison(operator: Binary, signed: bool) -> u8 {
    match (operator, signed) {
        (Binary::Less, true) => code::JSLT,
        (Binary::LessOrEqual, true) => code::JSLE,
        (Binary::Greater, true) => code::JSGT,
        (Binary::GreaterOrEqual, true) => code::JSGE,
        (Binary::Less, false) => code::JLT,
        (Binary::LessOrEqual, false) => code::JLE,
        (Binary::Greater, false) => code::JGT,
        (Binary::GreaterOrEqual, false) => code::JGE,
        (Binary::Equal, _) => code::JEQ,
        _ => code::JNE,
    }
}

/// The comparison that holds where this one does not.
fn contrary(operator: Binary) -> Binary {
    match operator {
        Binary::Less => Binary::GreaterOrEqual,
        Binary::LessOrEqual => Binary::Greater,
        Binary::Greater => Binary::LessOrEqual,
        Binary::GreaterOrEqual => Binary::Less,
        Binary::Equal => Binary::NotEqual,
        _ => Binary::Equal,
    }
}

/// The same comparison with its sides exchanged.
fn mirrored(operator: Binary) -> Binary {
    match operator {
        Binary::Less => Binary::Greater,
        Binary::LessOrEqual => Binary::GreaterOrEqual,
        Binary::Greater => Binary::Less,
        Binary::GreaterOrEqual => Binary::LessOrEqual,
        other => other,
    }
}
