//! What can be assigned to: variables, and the values of arrays.

use super::expressions::is_plain;
use super::names::prefix;
use super::{Compiled, Compiler, Operand, problem, shortened};
use crate::ast::{Binary, Expression, ProgramShape, Scope, Shape};
use crate::error::Span;
use crate::form::{OwnVariable, Register, Step};
use crate::types::{Integer, Type};

/// A variable, and its keys.
struct Place {
    variable: u16,
    keys: Vec<Register>,
    of: Type,
}

/// The most variables of a program.
const MOST_VARIABLES: usize = 4096;

impl Compiler<'_> {
    pub(super) fn assign(
        &mut self,
        operator: Option<Binary>,
        target: &Expression,
        value: &Expression,
        span: &Span,
    ) -> Compiled<Operand> {
        if let Shape::Program(ProgramShape::Aggregation(name, keys)) = &target.shape {
            if operator.is_some() {
                let advice = "as in @ = sum(arg1)";
                return problem(span, "an aggregation is assigned to by =", advice);
            }
            return self.aggregate(name, keys, value, &target.span);
        }
        let new = self.value(value)?;
        let place = self.place(target, new.of, &value.span)?;
        let new = match operator {
            None => new,
            Some(operator) => {
                let old = self.load(place.variable, place.keys.clone(), &target.span)?;
                let mark = self.mark();
                let sides = [(old, &target.span), (new, &value.span)];
                self.operate(operator, sides, mark, span)?
            }
        };
        let (variable, keys) = (place.variable, place.keys);
        // NULL frees a string.
        if place.of == Type::String && new.constant == Some(0) {
            self.push(Step::Free { variable, keys }, span.clone())?;
            return self.text(Vec::new(), span);
        }
        let new = self.fitted(new, place.of, &value.span)?;
        self.push(Step::Store { variable, keys, from: new.register }, span.clone())?;
        // No constant: the steps are not taken back.
        Ok(Operand { constant: None, ..new })
    }

    /// `++` and `--`
    pub(super) fn step(
        &mut self,
        down: bool,
        before: bool,
        target: &Expression,
        span: &Span,
    ) -> Compiled<Operand> {
        let counted = Type::Integer(Integer::I64);
        let place = self.place(target, counted, &target.span)?;
        let old = self.load(place.variable, place.keys.clone(), &target.span)?;
        if old.of.as_integer().is_none() {
            let sign = if down { "--" } else { "++" };
            return problem(&target.span, format!("{} has no `{sign}`", old.of.with_article()), "");
        }
        let one = self.constant(1, Integer::INT, span)?;
        let operator = if down { Binary::Subtract } else { Binary::Add };
        let sides = [(old, &target.span), (one, span)];
        let mark = self.mark();
        let new = self.operate(operator, sides, mark, span)?;
        let new = self.fitted(new, place.of, span)?;
        let (variable, keys) = (place.variable, place.keys);
        self.push(Step::Store { variable, keys, from: new.register }, span.clone())?;
        Ok(if before { new } else { old })
    }

    /// What is assigned to; a new variable gets the type of its first value.
    fn place(&mut self, target: &Expression, first: Type, at: &Span) -> Compiled<Place> {
        let (scope, name, keys) = match &target.shape {
            Shape::Program(ProgramShape::Index(of, keys)) => {
                let (scope, name) = self.variable_name(of)?;
                (scope, name, Some(keys))
            }
            _ => {
                let (scope, name) = self.variable_name(target)?;
                (scope, name, None)
            }
        };
        let span = &target.span;
        if scope == Scope::Clause && keys.is_some() {
            let advice = "self-> and global variables may be arrays";
            return problem(span, "this-> has no associative arrays", advice);
        }
        if let Some(variable) = self.own(scope, name) {
            let own = &self.form.variables[usize::from(variable)];
            let (of, is_array) = (own.of, own.keys.is_some());
            let keys = match (keys, is_array) {
                (Some(keys), true) => self.keys(variable, keys, span)?,
                (None, false) => Vec::new(),
                (None, true) => {
                    let advice = "assign to one of its values, as in a[key]";
                    return problem(span, format!("`{name}` is an array"), advice);
                }
                (Some(_), false) => {
                    let message = format!("`{}{name}` is not an array", prefix(scope));
                    return problem(span, message, format!("it is {}", of.with_article()));
                }
            };
            return Ok(Place { variable, keys, of });
        }
        if !is_plain(first) {
            let advice = "a variable holds an integer, a string or a pointer";
            return problem(at, format!("{} cannot be assigned", first.with_article()), advice);
        }
        let mut operands = Vec::new();
        for key in keys.into_iter().flatten() {
            let value = self.value(key)?;
            if !is_plain(value.of) {
                return problem(
                    &key.span,
                    format!("{} cannot be a key", value.of.with_article()),
                    "",
                );
            }
            operands.push(value);
        }
        let types = operands.iter().map(|one| one.of).collect();
        let keys = operands.iter().map(|one| one.register).collect();
        let own = OwnVariable {
            name: name.to_owned(),
            scope,
            of: first,
            keys: (!operands.is_empty()).then_some(types),
        };
        Ok(Place { variable: self.add(own, span)?, keys, of: first })
    }

    pub(super) fn add(&mut self, own: OwnVariable, at: &Span) -> Compiled<u16> {
        if self.form.variables.len() >= MOST_VARIABLES {
            return problem(at, "more than 4,096 variables", "");
        }
        self.form.variables.push(own);
        Ok((self.form.variables.len() - 1) as u16)
    }

    fn variable_name<'e>(&self, target: &'e Expression) -> Compiled<(Scope, &'e str)> {
        let span = &target.span;
        match &target.shape {
            Shape::Program(ProgramShape::Scoped(scope, name)) => Ok((*scope, name)),
            Shape::Name(name) if self.own(Scope::Global, name).is_some() => {
                Ok((Scope::Global, name))
            }
            Shape::Name(name) => {
                let is_named = self.inlines.iter().any(|one| one.name == *name)
                    || self.constants.iter().any(|(one, _)| one == name)
                    || self.scope.constants.iter().any(|(one, _)| one == name);
                if is_named {
                    let message = format!("`{}` is a constant", shortened(name));
                    return problem(span, message, "take another name");
                }
                if Self::is_reserved(name) {
                    let message = format!("`{name}` is D's own and cannot be assigned to");
                    return problem(span, message, "take another name");
                }
                Ok((Scope::Global, name))
            }
            Shape::Program(ProgramShape::Dereference(_)) => {
                problem(span, "memory is only read", "assign to a variable")
            }
            Shape::Program(ProgramShape::Member(..)) => {
                problem(span, "members of structures are only read", "assign to a variable")
            }
            _ => problem(span, "this cannot be assigned to", "a variable can"),
        }
    }

    /// The keys of an array's value, each with its type.
    pub(super) fn keys(
        &mut self,
        variable: u16,
        keys: &[Expression],
        span: &Span,
    ) -> Compiled<Vec<Register>> {
        let own = &self.form.variables[usize::from(variable)];
        let types = own.keys.clone().unwrap_or_default();
        let name = format!("{}{}", prefix(own.scope), own.name);
        self.typed_keys(&name, &types, keys, span)
    }

    /// Keys that have to be of these types.
    pub(super) fn typed_keys(
        &mut self,
        name: &str,
        types: &[Type],
        keys: &[Expression],
        span: &Span,
    ) -> Compiled<Vec<Register>> {
        if types.len() != keys.len() {
            let message = match types.len() {
                0 => format!("`{name}` has no keys"),
                1 => format!("`{name}` has one key, not {}", keys.len()),
                count => format!("`{name}` has {count} keys, not {}", keys.len()),
            };
            return problem(span, message, "the first use of it said so");
        }
        let mut registers = Vec::new();
        for (key, of) in keys.iter().zip(types) {
            let value = self.recordable(key)?;
            let is_same_kind = match (value.of, *of) {
                (one, other) if one == other => true,
                (Type::Stack { user, .. }, Type::Stack { user: other, .. }) => user == other,
                (one, other) => one.as_integer().is_some() && other.as_integer().is_some(),
            };
            if !is_same_kind {
                let message = format!(
                    "this key of `{name}` is {}, not {}",
                    value.of.with_article(),
                    of.with_article()
                );
                return problem(&key.span, message, "the first use of it said so");
            }
            let value = match of {
                Type::Integer(integer) => self.converted(value, *integer, &key.span)?,
                _ => value,
            };
            registers.push(value.register);
        }
        Ok(registers)
    }

    /// A value as a variable's type holds it.
    pub(super) fn fitted(&mut self, value: Operand, of: Type, at: &Span) -> Compiled<Operand> {
        match (of, value.of) {
            (Type::Integer(integer), from) if from.as_integer().is_some() => {
                self.converted(value, integer, at)
            }
            (Type::Pointer(..), from) if from.as_integer().is_some() => Ok(Operand { of, ..value }),
            (of, from) if of == from && value.holder.is_none() => Ok(value),
            (Type::String, Type::Pointer(..)) => {
                problem(at, "a pointer is not a string", "copyinstr() or stringof() reads one")
            }
            (of, from) => {
                let advice = match from {
                    Type::String => "it was declared, or first assigned, as another type",
                    Type::Object(_) => "take a member by ->",
                    _ => "",
                };
                problem(
                    at,
                    format!("expected {}, found {}", of.with_article(), from.with_article()),
                    advice,
                )
            }
        }
    }
}
