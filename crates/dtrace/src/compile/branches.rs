//! Expressions that decide what comes next: `&&`, `||`, `!`, `?:` and predicates are jumps.

use super::expressions::is_plain;
use super::{Compiled, Compiler, Operand, problem};
use crate::ast::{Binary, Expression, Shape, Unary};
use crate::error::Span;
use crate::form::{Register, Step};
use crate::types::{Integer, Target, Type};

impl Compiler<'_> {
    /// Jumps where the truth of an expression is `is`, and goes on where it is not. The jumps, which
    /// have to [`land`](Self::land_all), are added; the truth is known where the expression is constant.
    pub(super) fn branch(
        &mut self,
        expression: &Expression,
        is: bool,
        jumps: &mut Vec<usize>,
    ) -> Compiled<Option<bool>> {
        let span = &expression.span;
        match &expression.shape {
            Shape::Unary(Unary::Not, of) => Ok(self.branch(of, !is, jumps)?.map(|truth| !truth)),
            Shape::Binary(operator @ (Binary::And | Binary::Or), left, right) => {
                let settled_by = *operator == Binary::Or;
                // The left side alone leads there, or past the right one.
                let mut past = Vec::new();
                let from_left = if settled_by == is { &mut *jumps } else { &mut past };
                let one = self.branch(left, settled_by, from_left)?;
                let other = self.branch(right, is, jumps)?;
                self.land_all(past);
                Ok(if one == Some(settled_by) { one } else { one.and(other) })
            }
            _ => {
                let mark = self.mark();
                let value = self.value(expression)?;
                self.scalar(&value, span)?;
                let truth = value.constant.map(|constant| constant != 0);
                let step = match truth {
                    None => Step::JumpIf { value: value.register, is, to: 0 },
                    Some(_) => {
                        self.take_back(mark);
                        Step::Jump { to: 0 }
                    }
                };
                if truth != Some(!is) {
                    jumps.push(self.push(step, span.clone())?);
                }
                Ok(truth)
            }
        }
    }

    /// The value of an expression in a register, which other paths write, too.
    fn into(&mut self, expression: &Expression, to: Register) -> Compiled<Operand> {
        if let Shape::Unary(Unary::Not, _)
        | Shape::Binary(Binary::And | Binary::Or, ..)
        | Shape::Conditional(..) = expression.shape
        {
            return self.decided(expression, to);
        }
        let value = self.value(expression)?;
        if !self.redirect(value.register, to) {
            self.push(Step::Move { to, from: value.register }, expression.span.clone())?;
        }
        Ok(value)
    }

    /// The value of `?:`, `&&`, `||` or `!` in a register that nothing else has written.
    pub(super) fn decided(&mut self, expression: &Expression, to: Register) -> Compiled<Operand> {
        let span = &expression.span;
        let mark = self.mark();
        let mut otherwise = Vec::new();
        let (of, constant) = match &expression.shape {
            Shape::Conditional(condition, first, second) => {
                let truth = self.branch(condition, false, &mut otherwise)?;
                let one = self.into(first, to)?;
                let done = self.push(Step::Jump { to: 0 }, span.clone())?;
                self.land_all(otherwise);
                let other = self.into(second, to)?;
                self.land(done);
                let both = first.span.start..second.span.end;
                let of = of_either(&one, &other, &both)?;
                (of, truth.and_then(|truth| if truth { one.constant } else { other.constant }))
            }
            _ => {
                let truth = self.branch(expression, false, &mut otherwise)?;
                self.push(Step::Integer { to, value: 1 }, span.clone())?;
                let done = self.push(Step::Jump { to: 0 }, span.clone())?;
                self.land_all(otherwise);
                self.push(Step::Integer { to, value: 0 }, span.clone())?;
                self.land(done);
                (Type::INT, truth.map(u64::from))
            }
        };
        if let Some(value) = constant {
            self.take_back(mark);
            self.push(Step::Integer { to, value }, span.clone())?;
        }
        Ok(Operand { constant, ..Operand::of(to, of) })
    }
}

/// The type of what is one of two values.
fn of_either(one: &Operand, other: &Operand, both: &Span) -> Compiled<Type> {
    Ok(match (one.of, other.of) {
        (Type::Integer(one), Type::Integer(other)) => Type::Integer(Integer::common(one, other)),
        (one, other) if one == other && is_plain(one) => one,
        (Type::Pointer(..), Type::Pointer(..)) => Type::Pointer(Target::Void, 1),
        // NULL beside a pointer.
        (pointer @ Type::Pointer(..), Type::Integer(_)) if other.constant == Some(0) => pointer,
        (Type::Integer(_), pointer @ Type::Pointer(..)) if one.constant == Some(0) => pointer,
        (one, other) => {
            let message = format!("`?:` has a value of type {one} and one of type {other}");
            return problem(both, message, "both have to be integers, or strings");
        }
    })
}
