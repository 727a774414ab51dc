//! Expressions, by their shape.

use super::{Compiled, Compiler, Operand, problem};
use crate::arithmetic::unary;
use crate::ast::{Binary, Expression, ProgramShape, Shape, Unary};
use crate::error::Span;
use crate::form::Step;
use crate::types::{Integer, Type};

impl Compiler<'_> {
    /// The value of an expression.
    pub(super) fn value(&mut self, expression: &Expression) -> Compiled<Operand> {
        let span = &expression.span;
        if self.is_condition()
            && let Some(leaf) = self.leaf(expression)?
        {
            return Ok(leaf);
        }
        match &expression.shape {
            Shape::Integer(number) => self.constant(number.value, number.integer, span),
            Shape::Text(text) => self.text(text.bytes(), span),
            Shape::Name(name) => self.name(name, span),
            Shape::Call(name, arguments) => self.call(name, arguments, span),
            Shape::Program(shape) => self.program_value(shape, span),
            Shape::Unary(Unary::Not, _)
            | Shape::Binary(Binary::And | Binary::Or, ..)
            | Shape::Conditional(..) => {
                let to = self.register(span)?;
                self.decided(expression, to)
            }
            Shape::Unary(operator, of) => self.unary(*operator, of, span),
            Shape::Binary(operator, left, right) => self.binary(*operator, left, right, span),
        }
    }

    fn program_value(&mut self, shape: &ProgramShape, span: &Span) -> Compiled<Operand> {
        match shape {
            ProgramShape::Scoped(scope, name) => self.scoped(*scope, name, span),
            ProgramShape::Aggregation(..) => {
                let advice = "it is printed by printa(), and updated as in @ = count()";
                problem(span, "an aggregation has no value in an expression", advice)
            }
            ProgramShape::Index(of, keys) => self.index(of, keys, span),
            ProgramShape::Member(of, name) => self.member(of, name, span),
            ProgramShape::Assign(operator, target, value) => {
                self.assign(*operator, target, value, span)
            }
            ProgramShape::Step { down, before, target } => self.step(*down, *before, target, span),
            ProgramShape::Cast(to, value) => self.cast(*to, value, span),
            ProgramShape::SizeOfType(of) => self.size_of(*of, span),
            ProgramShape::SizeOf(value) => {
                let (mark, registers) = (self.mark(), self.clause.registers);
                let of = self.value(value)?.of;
                self.take_back(mark);
                self.clause.registers = registers;
                self.size_of(of, span)
            }
            ProgramShape::Dereference(pointer) => {
                let address = self.value(pointer)?;
                self.read(address, &pointer.span)
            }
            ProgramShape::Comma(first, second) => {
                self.value(first)?;
                // No constant: the steps of the first are not taken back.
                Ok(Operand { constant: None, ..self.value(second)? })
            }
        }
    }

    fn unary(&mut self, operator: Unary, of: &Expression, span: &Span) -> Compiled<Operand> {
        let mark = self.mark();
        let value = self.value(of)?;
        let integer = self.integer(&value, &of.span)?.promoted();
        if let Some(constant) = value.constant {
            self.take_back(mark);
            return self.constant(unary(operator, constant), integer, span);
        }
        if operator == Unary::Positive {
            return Ok(Operand { of: Type::Integer(integer), ..value });
        }
        let to = self.register(span)?;
        self.push(Step::Unary { to, operator, from: value.register }, span.clone())?;
        Ok(Operand::of(to, Type::Integer(integer)))
    }

    fn cast(&mut self, to: Type, of: &Expression, span: &Span) -> Compiled<Operand> {
        let value = self.value(of)?;
        match (to, value.of) {
            (Type::Integer(to), from) if from.as_integer().is_some() => {
                self.converted(value, to, span)
            }
            (Type::Pointer(..), from) if from.as_integer().is_some() => {
                Ok(Operand { of: to, ..value })
            }
            (Type::String, _) => self.string_of(value, &of.span),
            (to, from) if to == from && value.holder.is_some() => Ok(value),
            (Type::Integer(_), Type::String) => {
                problem(span, "a string is not an integer", "strtoll() reads one")
            }
            (to, from) => problem(span, format!("{} is not cast to {to}", from.with_article()), ""),
        }
    }

    /// `stringof(value)`
    pub(super) fn string_of(&mut self, value: Operand, at: &Span) -> Compiled<Operand> {
        match value.of {
            Type::String => Ok(value),
            _ if value.of.as_integer().is_some() => {
                let to = self.register(at)?;
                self.push(Step::ReadText { to, address: value.register }, at.clone())?;
                Ok(Operand::of(to, Type::String))
            }
            other => problem(at, format!("{} is not a string", other.with_article()), ""),
        }
    }

    fn size_of(&mut self, of: Type, span: &Span) -> Compiled<Operand> {
        let bytes = of.bytes(self.form.options.strsize);
        match of {
            Type::Object(_) | Type::Void | Type::Stack { .. } | Type::Symbol => {
                problem(span, format!("{} has no size here", of.with_article()), "")
            }
            _ => self.constant(u64::from(bytes), Integer::U64, span),
        }
    }

    /// What a pointer leads to.
    pub(super) fn read(&mut self, address: Operand, at: &Span) -> Compiled<Operand> {
        let Some(of) = address.of.dereferenced() else {
            return match address.of {
                Type::Pointer(..) => {
                    let advice = "cast it first, as in *(int *)copyin(arg0, 4)";
                    problem(at, "a void pointer leads to nothing", advice)
                }
                other => problem(
                    at,
                    format!("{} is not a pointer", other.with_article()),
                    "copyin() has one",
                ),
            };
        };
        let integer = of.as_integer().unwrap_or(Integer::U64);
        let to = self.register(at)?;
        self.push(Step::Read { to, address: address.register, integer }, at.clone())?;
        Ok(Operand::exact(to, of))
    }

    /// What has to be an integer.
    pub(super) fn integer(&self, value: &Operand, at: &Span) -> Compiled<Integer> {
        match (value.of, value.holder) {
            (Type::Integer(integer), _) => Ok(integer),
            (of, _) => {
                let advice = advice_for_integer(of);
                problem(at, format!("expected an integer, found {}", of.with_article()), advice)
            }
        }
    }

    /// What can be true or false: an integer or a pointer.
    pub(super) fn scalar(&self, value: &Operand, at: &Span) -> Compiled<Integer> {
        match value.of.as_integer() {
            Some(integer) => Ok(integer),
            None => {
                let of = value.of;
                let advice = match of {
                    Type::String => "compare it, as in execname == \"cat\"",
                    _ => advice_for_integer(of),
                };
                problem(at, format!("{} is neither true nor false", of.with_article()), advice)
            }
        }
    }
}

fn advice_for_integer(of: Type) -> &'static str {
    match of {
        Type::String => "strlen() has its length, strtoll() reads a number",
        Type::Object(_) => "take a member by ->",
        Type::Pointer(..) => "cast it by (uint64_t), or read it by *",
        Type::Void => "this has no value",
        _ => "it can be a key of an aggregation",
    }
}

/// Whether a variable or either side of `?:` may be of this type.
pub(super) fn is_plain(of: Type) -> bool {
    matches!(of, Type::Integer(_) | Type::String | Type::Pointer(..))
}
