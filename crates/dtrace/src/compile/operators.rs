//! Operators between two values.

use super::{Compiled, Compiler, Operand, problem};
use crate::arithmetic::calculated;
use crate::ast::{Binary, Expression, Unary};
use crate::error::Span;
use crate::form::Step;
use crate::types::{Integer, Target, Type};

impl Compiler<'_> {
    pub(super) fn binary(
        &mut self,
        operator: Binary,
        left: &Expression,
        right: &Expression,
        span: &Span,
    ) -> Compiled<Operand> {
        if self.is_condition()
            && operator.compares()
            && let Some(matches) = self.matching(operator, [left, right])?
        {
            return Ok(matches);
        }
        let mark = self.mark();
        // A condition changes nothing, and its deeper side needs more registers.
        let (one, other) = match self.is_condition() && right.depth > left.depth {
            true => {
                let other = self.value(right);
                (self.value(left)?, other?)
            }
            false => (self.value(left)?, self.value(right)?),
        };
        let sides = [(one, &left.span), (other, &right.span)];
        self.operate(operator, sides, mark, span)
    }

    /// An operator between values whose steps begin at a mark.
    pub(super) fn operate(
        &mut self,
        operator: Binary,
        sides: [(Operand, &Span); 2],
        mark: usize,
        span: &Span,
    ) -> Compiled<Operand> {
        let [(left, left_at), (right, right_at)] = sides;
        if operator.compares() {
            return self.comparison(operator, sides, mark, span);
        }
        if operator == Binary::Xor {
            return self.exclusive(sides, mark, span);
        }
        let pointer = [left.of, right.of].into_iter().find(|of| matches!(of, Type::Pointer(..)));
        if let Some(pointer) = pointer {
            return self.pointers(operator, sides, pointer, span);
        }
        for (value, at) in sides {
            if value.of == Type::String {
                let advice = match operator {
                    Binary::Add => "strjoin() joins two",
                    _ => "strings are compared, and taken apart by functions",
                };
                return problem(at, format!("strings have no `{}`", operator.sign()), advice);
            }
        }
        let (one, other) = (self.integer(&left, left_at)?, self.integer(&right, right_at)?);
        let is_shift = matches!(operator, Binary::ShiftLeft | Binary::ShiftRight);
        let of = if is_shift { one.promoted() } else { one.common(other) };
        let is_division = matches!(operator, Binary::Divide | Binary::Remainder);
        if is_division && right.constant == Some(0) {
            return problem(right_at, "division by zero", "");
        }
        if let (Some(one), Some(other)) = (left.constant, right.constant) {
            // No fault but the one that was told above.
            let value = calculated(operator, of.signed, one, other).unwrap_or(0);
            self.take_back(mark);
            return self.constant(value, of, span);
        }
        let to = self.register(span)?;
        let (left, right) = (left.register, right.register);
        let step = Step::Binary { to, operator, signed: of.signed, left, right };
        self.push(step, span.clone())?;
        Ok(Operand::of(to, Type::Integer(of)))
    }

    fn comparison(
        &mut self,
        operator: Binary,
        sides: [(Operand, &Span); 2],
        mark: usize,
        span: &Span,
    ) -> Compiled<Operand> {
        let [(mut left, left_at), (mut right, right_at)] = sides;
        let is_string = |value: &Operand| value.of == Type::String;
        let is_null = |value: &Operand| value.constant == Some(0);
        // A string that was never assigned is NULL as well as "".
        if is_string(&left) && is_null(&right) {
            right = self.text(Vec::new(), right_at)?;
        } else if is_null(&left) && is_string(&right) {
            left = self.text(Vec::new(), left_at)?;
        }
        if is_string(&left) && is_string(&right) {
            let to = self.register(span)?;
            let (left, right) = (left.register, right.register);
            self.push(Step::Compare { to, operator, left, right }, span.clone())?;
            return Ok(Operand::of(to, Type::INT));
        }
        if is_string(&left) || is_string(&right) {
            let (other, at) = if is_string(&left) { (right, right_at) } else { (left, left_at) };
            let advice = match other.of {
                Type::Pointer(..) => "copyinstr() or stringof() reads the string there",
                _ => "numbers stand without quotes",
            };
            return problem(
                at,
                format!("a string is compared with {}", other.of.with_article()),
                advice,
            );
        }
        let (one, other) = (self.scalar(&left, left_at)?, self.scalar(&right, right_at)?);
        let signed = one.common(other).signed;
        if let (Some(one), Some(other)) = (left.constant, right.constant) {
            let value = calculated(operator, signed, one, other).unwrap_or(0);
            self.take_back(mark);
            return self.constant(value, Integer::INT, span);
        }
        let to = self.register(span)?;
        let (left, right) = (left.register, right.register);
        self.push(Step::Binary { to, operator, signed, left, right }, span.clone())?;
        Ok(Operand::of(to, Type::INT))
    }

    /// `^^`: whether the truths differ.
    fn exclusive(
        &mut self,
        sides: [(Operand, &Span); 2],
        mark: usize,
        span: &Span,
    ) -> Compiled<Operand> {
        if let [
            (Operand { constant: Some(one), .. }, _),
            (Operand { constant: Some(other), .. }, _),
        ] = sides
        {
            self.take_back(mark);
            return self.constant(u64::from((one != 0) != (other != 0)), Integer::INT, span);
        }
        let mut truths = [0; 2];
        for ((value, at), truth) in sides.into_iter().zip(&mut truths) {
            self.scalar(&value, at)?;
            *truth = self.register(span)?;
            let step = Step::Unary { to: *truth, operator: Unary::Not, from: value.register };
            self.push(step, span.clone())?;
        }
        let to = self.register(span)?;
        let [left, right] = truths;
        let step = Step::Binary { to, operator: Binary::NotEqual, signed: true, left, right };
        self.push(step, span.clone())?;
        Ok(Operand::of(to, Type::INT))
    }

    /// `+` and `-` of pointers, which count in what they lead to.
    fn pointers(
        &mut self,
        operator: Binary,
        sides: [(Operand, &Span); 2],
        pointer: Type,
        span: &Span,
    ) -> Compiled<Operand> {
        let [(left, _), (right, _)] = sides;
        let bytes = match pointer {
            Type::Pointer(Target::Integer(integer), 1) => u64::from(integer.bytes),
            Type::Pointer(Target::Void, 1) => 1,
            _ => 8,
        };
        let mut result = pointer;
        let (one, other) = match (operator, left.of, right.of) {
            (Binary::Add, Type::Pointer(..), Type::Integer(_))
            | (Binary::Subtract, Type::Pointer(..), Type::Integer(_)) => {
                (left.register, self.scaled(right.register, bytes, span)?)
            }
            (Binary::Add, Type::Integer(_), Type::Pointer(..)) => {
                (self.scaled(left.register, bytes, span)?, right.register)
            }
            (Binary::Subtract, Type::Pointer(..), Type::Pointer(..)) => {
                result = Type::Integer(Integer::I64);
                (left.register, right.register)
            }
            _ => {
                let message = format!("pointers have no `{}`", operator.sign());
                return problem(span, message, "cast them by (uint64_t)");
            }
        };
        let to = self.register(span)?;
        let step = Step::Binary { to, operator, signed: true, left: one, right: other };
        self.push(step, span.clone())?;
        if result == pointer || bytes == 1 {
            return Ok(Operand::of(to, result));
        }
        let by = self.constant(bytes, Integer::I64, span)?.register;
        let quotient = self.register(span)?;
        let step = Step::Binary {
            to: quotient,
            operator: Binary::Divide,
            signed: true,
            left: to,
            right: by,
        };
        self.push(step, span.clone())?;
        Ok(Operand::of(quotient, result))
    }

    fn scaled(&mut self, value: u16, bytes: u64, span: &Span) -> Compiled<u16> {
        if bytes == 1 {
            return Ok(value);
        }
        let by = self.constant(bytes, Integer::I64, span)?.register;
        let to = self.register(span)?;
        let step =
            Step::Binary { to, operator: Binary::Multiply, signed: true, left: value, right: by };
        self.push(step, span.clone())?;
        Ok(to)
    }
}
