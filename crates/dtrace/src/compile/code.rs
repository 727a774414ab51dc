//! The steps under way: registers, jumps and conversions.

use super::{Compiled, Compiler, MOST_STEPS, Operand, problem};
use crate::error::Span;
use crate::form::{Register, Step};
use crate::program::Holder;
use crate::types::{Integer, Object, Type};

/// How far back the same string, or kind of record, is looked for.
pub(super) const NEAR: usize = 64;

impl Compiler<'_> {
    /// Adds a step; its number.
    pub(super) fn push(&mut self, step: Step, at: Span) -> Compiled<usize> {
        self.steps += 1;
        if self.steps > MOST_STEPS {
            return problem(&at, "the program is too large", "at most 65,536 steps");
        }
        self.clause.steps.push(step);
        self.clause.places.push(at);
        Ok(self.clause.steps.len() - 1)
    }

    pub(super) fn register(&mut self, at: &Span) -> Compiled<Register> {
        let register = self.clause.registers;
        match register.checked_add(1) {
            Some(next) => self.clause.registers = next,
            None => return problem(at, "the clause is too large", "divide it into several"),
        }
        Ok(register)
    }

    /// The steps so far, to come back to.
    pub(super) fn mark(&self) -> usize {
        self.clause.steps.len()
    }

    /// Takes back the steps since a mark, which nothing needs.
    pub(super) fn take_back(&mut self, mark: usize) {
        self.clause.steps.truncate(mark);
        self.clause.places.truncate(mark);
    }

    /// Lets a jump go to the step that comes next.
    pub(super) fn land(&mut self, jump: usize) {
        self.landed = self.clause.steps.len();
        let next = self.landed as u32;
        if let Some(Step::Jump { to } | Step::JumpIf { to, .. }) = self.clause.steps.get_mut(jump) {
            *to = next;
        }
    }

    pub(super) fn land_all(&mut self, jumps: Vec<usize>) {
        jumps.into_iter().for_each(|jump| self.land(jump));
    }

    /// Lets the last step write another register in place of the one that it alone writes; whether it
    /// does. Where paths meet behind it, others write that register, too.
    pub(super) fn redirect(&mut self, from: Register, other: Register) -> bool {
        if self.landed == self.mark() {
            return false;
        }
        match self.clause.steps.last_mut() {
            Some(
                Step::Integer { to, .. }
                | Step::Text { to, .. }
                | Step::Fact { to, .. }
                | Step::Unary { to, .. }
                | Step::Binary { to, .. }
                | Step::Compare { to, .. }
                | Step::Convert { to, .. }
                | Step::Read { to, .. }
                | Step::ReadText { to, .. }
                | Step::Load { to, .. }
                | Step::Call { to, .. },
            ) if *to == from => *to = other,
            _ => return false,
        }
        true
    }

    pub(super) fn constant(
        &mut self,
        value: u64,
        integer: Integer,
        at: &Span,
    ) -> Compiled<Operand> {
        let to = self.register(at)?;
        self.push(Step::Integer { to, value }, at.clone())?;
        let of = Type::Integer(integer);
        Ok(Operand { constant: Some(value), ..Operand::of(to, of) })
    }

    pub(super) fn text(&mut self, bytes: Vec<u8>, at: &Span) -> Compiled<Operand> {
        let all = &self.form.texts;
        // A few back are enough: what is far from the same text gets another.
        let first = all.len().saturating_sub(NEAR);
        let known = all[first..].iter().position(|one| *one == bytes).map(|at| first + at);
        let text = known.unwrap_or(all.len()) as u32;
        if known.is_none() {
            self.form.texts.push(bytes);
        }
        let to = self.register(at)?;
        self.push(Step::Text { to, text }, at.clone())?;
        Ok(Operand::of(to, Type::String))
    }

    /// The value with an integer's size and sign.
    pub(super) fn converted(
        &mut self,
        value: Operand,
        to: Integer,
        at: &Span,
    ) -> Compiled<Operand> {
        if let Some(constant) = value.constant {
            let is_last =
                |step: &Step| matches!(step, Step::Integer { to, .. } if *to == value.register);
            if self.clause.steps.last().is_some_and(is_last) {
                self.take_back(self.mark() - 1);
            }
            return self.constant(to.held(constant), to, at);
        }
        let of = Type::Integer(to);
        let fits = value.of.as_integer().is_some_and(|from| {
            from == to || (from.bytes < to.bytes && (!from.signed || to.signed))
        });
        // Calculated values may be larger than their type.
        let is_whole = to.bytes == 8;
        if is_whole || (fits && value.is_exact) {
            return Ok(Operand { of, ..value });
        }
        let register = self.register(at)?;
        self.push(Step::Convert { to: register, from: value.register, integer: to }, at.clone())?;
        Ok(Operand::exact(register, of))
    }
}

impl Operand {
    pub(super) fn of(register: Register, of: Type) -> Self {
        Self { register, of, constant: None, is_exact: false, holder: None }
    }

    /// A value that is within its type as it is.
    pub(super) fn exact(register: Register, of: Type) -> Self {
        Self { is_exact: true, ..Self::of(register, of) }
    }

    /// A structure, by what holds its members.
    pub(super) fn structure(object: Object, by: Holder, index: Option<Register>) -> Self {
        Self { holder: Some((by, index)), ..Self::of(0, Type::Object(object)) }
    }
}
