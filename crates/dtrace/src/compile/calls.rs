//! Calls of functions in expressions, and values that only records and keys may have.

use super::{Compiled, Compiler, Operand, problem, shortened};
use crate::ast::{Expression, Scope, Shape};
use crate::error::Span;
use crate::form::Step;
use crate::names::nearest;
use crate::program::functions::{FUNCTIONS, Function, Parameter};
use crate::types::{Integer, Type};

/// The actions, which are statements.
pub(super) const ACTIONS: [&str; 13] = [
    "clear",
    "denormalize",
    "exit",
    "normalize",
    "printa",
    "printf",
    "setopt",
    "stack",
    "system",
    "trace",
    "tracemem",
    "trunc",
    "ustack",
];

/// The aggregating functions.
pub(super) const AGGREGATING: [&str; 9] =
    ["count", "sum", "avg", "min", "max", "stddev", "quantize", "lquantize", "llquantize"];

impl Compiler<'_> {
    pub(super) fn call(
        &mut self,
        name: &str,
        arguments: &[Expression],
        span: &Span,
    ) -> Compiled<Operand> {
        let named = span.start..span.start + name.len();
        if name == "stringof" {
            let [argument] = arguments else {
                return problem(span, "`stringof` has one argument", "as in stringof(this->p)");
            };
            let value = self.value(argument)?;
            return self.string_of(value, &argument.span);
        }
        let Some(signature) = FUNCTIONS.iter().find(|one| one.name == name) else {
            return self.no_function(name, &named, span);
        };
        let (least, most) =
            (signature.needs.len(), signature.needs.len() + signature.may_have.len());
        if !(least..=most).contains(&arguments.len()) {
            let message = match (least, most) {
                (0, 0) => format!("`{name}` has no arguments"),
                (1, 1) => format!("`{name}` has one argument, not {}", arguments.len()),
                _ if least == most => {
                    format!("`{name}` has {least} arguments, not {}", arguments.len())
                }
                _ => format!("`{name}` has {least} to {most} arguments, not {}", arguments.len()),
            };
            return problem(span, message, format!("as in {}", signature.shown()));
        }
        let mut registers = Vec::new();
        let parameters = signature.needs.iter().chain(signature.may_have);
        for (argument, parameter) in arguments.iter().zip(parameters) {
            let value = self.value(argument)?;
            match (parameter, value.of) {
                (Parameter::String, Type::String) => {}
                // It goes on with the string of the call before.
                (Parameter::String, Type::Pointer(..))
                    if signature.function == Function::Strtok && value.constant == Some(0) => {}
                (Parameter::Integer, of) if of.as_integer().is_some() => {}
                (Parameter::String, of) => {
                    let advice = match of {
                        Type::Pointer(..) | Type::Integer(Integer { bytes: 8, .. }) => {
                            "copyinstr() reads the string at an address"
                        }
                        _ => "",
                    };
                    let message = format!("`{name}` needs a string, not {}", of.with_article());
                    return problem(&argument.span, message, advice);
                }
                (Parameter::Integer, of) => {
                    let message = format!("`{name}` needs an integer, not {}", of.with_article());
                    return problem(&argument.span, message, "");
                }
            }
            registers.push(value.register);
        }
        let to = self.register(span)?;
        let function = signature.function;
        self.push(Step::Call { to, function, arguments: registers }, span.clone())?;
        Ok(Operand::of(to, signature.of))
    }

    fn no_function(&self, name: &str, named: &Span, span: &Span) -> Compiled<Operand> {
        if AGGREGATING.contains(&name) {
            let advice = format!("as in @ = {name}(…)");
            return problem(span, format!("`{name}` belongs to an aggregation"), advice);
        }
        if ACTIONS.contains(&name) {
            let advice = match name {
                "stack" | "ustack" => {
                    "it is a statement, a key of an aggregation, or printed by %k"
                }
                _ => "it is a statement of its own",
            };
            return problem(span, format!("`{name}` has no value"), advice);
        }
        if matches!(name, "sym" | "func" | "usym" | "ufunc" | "mod" | "umod" | "uaddr") {
            let advice = "it is a key of an aggregation, or printed by %a";
            return problem(span, format!("`{name}` has no value in an expression"), advice);
        }
        if let Some(instead) = Self::missing_function(name) {
            return problem(named, format!("`{name}()` is not supported"), instead);
        }
        let known = FUNCTIONS.iter().map(|one| one.name);
        let all = known.chain(ACTIONS).chain(AGGREGATING).chain(["stringof"]);
        let advice = match nearest(name, all) {
            Some(near) => format!("did you mean `{near}`?"),
            None if self.own(Scope::Global, name).is_some() => {
                "it is a variable; keys stand between [ and ]".to_owned()
            }
            None => "functions are such as copyinstr(), strlen(), printf() and trace()".to_owned(),
        };
        problem(named, format!("unknown function `{}`", shortened(name)), advice)
    }

    /// A value that goes to a record or is a key: besides the others a stack, or an address by name.
    pub(super) fn recordable(&mut self, expression: &Expression) -> Compiled<Operand> {
        let span = &expression.span;
        let value = match &expression.shape {
            Shape::Call(name, arguments) if matches!(&**name, "stack" | "ustack") => {
                return self.stack(name == "ustack", arguments, span);
            }
            Shape::Call(name, arguments)
                if matches!(
                    &**name,
                    "sym" | "func" | "usym" | "ufunc" | "mod" | "umod" | "uaddr"
                ) =>
            {
                let [address] = arguments.as_slice() else {
                    return problem(span, format!("`{name}` has one argument"), "");
                };
                let value = self.value(address)?;
                self.scalar(&value, &address.span)?;
                return Ok(Operand { of: Type::Symbol, constant: None, ..value });
            }
            _ => self.value(expression)?,
        };
        match value.of {
            Type::Object(_) => {
                let advice = "take a member by ->";
                problem(span, format!("{} is a structure", value.of.with_article()), advice)
            }
            Type::Void => problem(span, "this has no value", ""),
            _ => Ok(value),
        }
    }

    /// `stack([frames])` and `ustack([frames[, bytes]])`
    pub(super) fn stack(
        &mut self,
        user: bool,
        arguments: &[Expression],
        span: &Span,
    ) -> Compiled<Operand> {
        let options = &self.form.options;
        let mut frames = if user { options.ustackframes } else { options.stackframes };
        let most = if user { 2 } else { 1 };
        if arguments.len() > most {
            return problem(span, "too many arguments", "as in stack(10)");
        }
        if let Some(count) = arguments.first() {
            match self.constant_of(count)? {
                Some(count @ 1..=127) => frames = count as u16,
                _ => return problem(&count.span, "expected a constant from 1 to 127", ""),
            }
        }
        if let Some(bytes) = arguments.get(1) {
            self.constant_of(bytes)?;
        }
        let to = self.register(span)?;
        self.push(Step::Stack { to, user, frames }, span.clone())?;
        Ok(Operand::of(to, Type::Stack { user, frames }))
    }

    /// The value of an expression that has to be constant; `None` where it is not.
    pub(super) fn constant_of(&mut self, expression: &Expression) -> Compiled<Option<u64>> {
        let mark = self.mark();
        let value = self.value(expression)?;
        self.take_back(mark);
        Ok(value.constant)
    }
}
