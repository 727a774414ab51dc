//! Operators as instructions, of programs and of conditions.

use super::clause::Emitter;
use super::registers::Home;
use super::{KernelError, layout};
use crate::assembler::{Code, Label, SCRATCH, code};
use crate::ast::{Binary, Unary};
use crate::form::{Fact, Register, Step};

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
        let is_shift = matches!(operator, Binary::ShiftLeft | Binary::ShiftRight);
        match (calculation(operator, signed), self.slots.short(right)) {
            (None, _) => self.divide(code, (operator, signed), target, right),
            (Some(operation), Some(number)) => {
                code.operate_on(operation, target, if is_shift { number & 63 } else { number });
            }
            (Some(operation), None) => {
                let right = self.read(code, other, right);
                if is_shift {
                    code.operate_on(code::AND, right, 63);
                }
                code.operate(operation, target, right);
            }
        }
        self.keep(code, target, to);
    }

    /// The kernel's division knows no sign: of the values without theirs, and then the sign. A right
    /// side in a register of its own is changed, which nothing reads any more.
    fn divide(
        &self,
        code: &mut Code,
        (operator, signed): (Binary, bool),
        left: u8,
        right: Register,
    ) {
        let operation = if operator == Binary::Divide { code::DIV } else { code::MOD };
        let [_, other] = self.slots.home.sides();
        let number = self.slots.short(right).filter(|number| *number > 0);
        if signed {
            code.operate(code::MOV, SCRATCH, left);
        }
        if let Some(number) = number {
            negate_unless_positive(code, signed, left, left);
            code.operate_on(operation, left, number);
        } else {
            let right = self.read(code, other, right);
            if self.slots.home == Home::Machine {
                let (fault, which) = (layout::FAULT, layout::DIVIDED_BY_ZERO);
                self.note_step(code);
                code.push(code::STORE_NUMBER_32, layout::MACHINE, 0, fault, which);
            }
            code.jump(code::JEQ, right, 0, self.failed);
            if signed && operator == Binary::Divide {
                code.operate(code::XOR, SCRATCH, right);
            }
            for side in [left, right] {
                negate_unless_positive(code, signed, side, side);
            }
            code.operate(operation, left, right);
        }
        negate_unless_positive(code, signed, SCRATCH, left);
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
            Step::Fact { to: at, fact: fact @ Fact::Matches(bit, holds), .. } => {
                self.word(code, *at, fact);
                let word = self.target(*at);
                code.operate_on(code::LSH, word, 63 - i32::from(*bit));
                code.jump(if is == *holds { code::JSLT } else { code::JSGE }, word, 0, to);
            }
            Step::Unary { operator: Unary::Not, from, .. } => {
                let from = self.read(code, one, *from);
                code.jump(if is { code::JEQ } else { code::JNE }, from, 0, to);
            }
            Step::Binary { operator, signed, left, right, .. } if operator.compares() => {
                let jump = comparison(*operator, *signed)[usize::from(!is)];
                let left = self.read(code, one, *left);
                if let Some(number) = self.slots.short(*right) {
                    code.jump(jump, left, number, to);
                } else {
                    let right = self.read(code, other, *right);
                    code.jump_by(jump, left, right, to);
                }
            }
            Step::Compare { operator, left, right, .. } => {
                code.number(2, self.slots.slot(*left) as i64);
                code.number(3, self.slots.slot(*right) as i64);
                let is_order = !matches!(operator, Binary::Equal | Binary::NotEqual);
                self.call(code, if is_order { "d_compare" } else { "d_same" })?;
                // 0, 1 and 2 are less, equal and greater; 0 and 1 different and the same.
                code.jump(comparison(*operator, false)[usize::from(!is)], SCRATCH, 1, to);
            }
            _ => return Ok(false),
        }
        Ok(true)
    }
}

fn negate_unless_positive(code: &mut Code, signed: bool, sign: u8, value: u8) {
    if !signed {
        return;
    }
    let end = code.label();
    code.jump(code::JSGE, sign, 0, end);
    code.operate_on(code::NEG, value, 0);
    code.place(end);
}

/// What calculates a value of two, but for divisions; of others the compiler makes jumps.
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

/// The jumps where a comparison holds, and where it does not.
fn comparison(operator: Binary, signed: bool) -> [u8; 2] {
    match (operator, signed) {
        (Binary::Less, true) => [code::JSLT, code::JSGE],
        (Binary::LessOrEqual, true) => [code::JSLE, code::JSGT],
        (Binary::Greater, true) => [code::JSGT, code::JSLE],
        (Binary::GreaterOrEqual, true) => [code::JSGE, code::JSLT],
        (Binary::Less, false) => [code::JLT, code::JGE],
        (Binary::LessOrEqual, false) => [code::JLE, code::JGT],
        (Binary::Greater, false) => [code::JGT, code::JLE],
        (Binary::GreaterOrEqual, false) => [code::JGE, code::JLT],
        (Binary::Equal, _) => [code::JEQ, code::JNE],
        _ => [code::JNE, code::JEQ],
    }
}
