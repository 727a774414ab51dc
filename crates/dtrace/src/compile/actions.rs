//! Statements that are actions: each becomes a record.

use super::code::NEAR;
use super::{Compiled, Compiler, consequence, problem, shortened};
use crate::ast::{Expression, ProgramShape, Shape};
use crate::error::Span;
use crate::form::{Action, Record, Register, Step};
use crate::names::nearest;
use crate::types::{Integer, Type};

impl Compiler<'_> {
    /// Compiles an action; whether the name is one.
    pub(super) fn action(
        &mut self,
        name: &str,
        arguments: &[Expression],
        span: &Span,
    ) -> Compiled<bool> {
        match name {
            "trace" => self.trace(arguments, span)?,
            "tracemem" => self.trace_memory(arguments, span)?,
            "stack" | "ustack" => {
                let value = self.stack(name == "ustack", arguments, span)?;
                self.record(Action::Trace, vec![value.of], vec![value.register], span)?;
            }
            "sym" | "func" | "usym" | "ufunc" | "mod" | "umod" | "uaddr" => {
                let call = Expression {
                    shape: Shape::Call(name.to_owned(), arguments.to_vec()),
                    span: span.clone(),
                    depth: 1,
                };
                let value = self.recordable(&call)?;
                self.record(Action::Trace, vec![value.of], vec![value.register], span)?;
            }
            "printf" => self.printf(arguments, span, false)?,
            "system" => {
                if !self.form.options.destructive {
                    let named = span.start..span.start + name.len();
                    let advice = "write #pragma D option destructive";
                    return problem(&named, "`system` changes the machine", advice);
                }
                self.printf(arguments, span, true)?;
            }
            "printa" => self.printa(arguments, span)?,
            "clear" | "denormalize" => {
                let [of] = arguments else {
                    let message = format!("`{name}` has one argument");
                    return problem(span, message, format!("as in {name}(@a)"));
                };
                let aggregation = self.named_aggregation(of)?;
                let action = match name {
                    "clear" => Action::Clear(aggregation),
                    _ => Action::Denormalize(aggregation),
                };
                self.record(action, Vec::new(), Vec::new(), span)?;
            }
            "trunc" | "normalize" => self.sized(name, arguments, span)?,
            "exit" => {
                let [status] = arguments else {
                    return problem(span, "`exit` has one argument", "as in exit(0)");
                };
                let value = self.value(status)?;
                self.integer(&value, &status.span)?;
                let value = self.converted(value, Integer::INT, &status.span)?;
                self.record(Action::Exit, vec![Type::INT], vec![value.register], span)?;
            }
            "setopt" => self.set_option(arguments, span)?,
            _ => return Ok(false),
        }
        Ok(true)
    }

    pub(super) fn record(
        &mut self,
        action: Action,
        values: Vec<Type>,
        registers: Vec<Register>,
        span: &Span,
    ) -> Compiled<()> {
        let record = Record { action, values };
        let all = &self.form.records;
        let first = all.len().saturating_sub(NEAR);
        let known = all[first..].iter().position(|one| *one == record).map(|at| first + at);
        let number = known.unwrap_or(all.len());
        let Ok(number) = u16::try_from(number) else {
            return problem(span, "too many kinds of records", "divide the program");
        };
        if known.is_none() {
            self.form.records.push(record);
        }
        self.push(Step::Record { record: number, values: registers }, span.clone()).map(|_| ())
    }

    fn trace(&mut self, arguments: &[Expression], span: &Span) -> Compiled<()> {
        let [argument] = arguments else {
            return problem(span, "`trace` has one argument", "as in trace(execname)");
        };
        if let Shape::Program(ProgramShape::Aggregation(name, _)) = &argument.shape {
            let advice = format!("write printa(@{name})");
            return problem(&argument.span, "an aggregation cannot be traced", advice);
        }
        let value = self.recordable(argument)?;
        self.record(Action::Trace, vec![value.of], vec![value.register], span)
    }

    /// `tracemem(address, bytes)`
    fn trace_memory(&mut self, arguments: &[Expression], span: &Span) -> Compiled<()> {
        let [address, bytes] = arguments else {
            let advice = "as in tracemem(copyin(arg1, 64), 64)";
            return problem(span, "`tracemem` has two arguments", advice);
        };
        let value = self.value(address)?;
        self.scalar(&value, &address.span)?;
        match self.constant_of(bytes)? {
            Some(count @ 1..=4096) => {
                let of = vec![Type::Integer(Integer::U64)];
                self.record(Action::TraceMemory(count as u16), of, vec![value.register], span)
            }
            _ => problem(&bytes.span, "expected a constant from 1 to 4096", ""),
        }
    }

    /// `trunc(@[, count])` and `normalize(@, by)`
    fn sized(&mut self, name: &str, arguments: &[Expression], span: &Span) -> Compiled<()> {
        let (of, number) = match (name, arguments) {
            ("trunc", [of]) => (of, None),
            (_, [of, number]) => (of, Some(number)),
            _ => {
                let advice = match name {
                    "trunc" => "as in trunc(@) or trunc(@, 10)",
                    _ => "as in normalize(@, 1000)",
                };
                return problem(span, format!("`{name}` has the wrong arguments"), advice);
            }
        };
        let aggregation = self.named_aggregation(of)?;
        let value = match number {
            Some(number) => {
                let value = self.value(number)?;
                self.integer(&value, &number.span)?;
                if name == "normalize" && value.constant == Some(0) {
                    return problem(&number.span, "division by zero", "");
                }
                value.register
            }
            None => self.constant(0, Integer::I64, span)?.register,
        };
        let action = match name {
            "trunc" => Action::Truncate(aggregation),
            _ => Action::Normalize(aggregation),
        };
        self.record(action, vec![Type::Integer(Integer::I64)], vec![value], span)
    }

    fn set_option(&mut self, arguments: &[Expression], span: &Span) -> Compiled<()> {
        let mut texts = Vec::new();
        for argument in arguments {
            let Shape::Text(text) = &argument.shape else {
                let advice = "as in setopt(\"quiet\")";
                return problem(&argument.span, "expected a string in quotes", advice);
            };
            texts.push(String::from_utf8_lossy(&text.bytes()).into_owned());
        }
        let (name, value) = match &texts[..] {
            [name] => (name, None),
            [name, value] => (name, Some(value)),
            _ => {
                let advice = "as in setopt(\"aggsortkey\")";
                return problem(span, "`setopt` has one or two arguments", advice);
            }
        };
        let mut trial = self.form.options.clone();
        if let Err((message, advice)) = trial.set_by_name(name, value.map(String::as_str)) {
            return problem(&arguments[0].span, message, advice);
        }
        let action = Action::SetOption(name.clone(), value.cloned());
        self.record(action, Vec::new(), Vec::new(), span)
    }

    /// The aggregation that an action is of, which has no keys there.
    pub(super) fn named_aggregation(&self, expression: &Expression) -> Compiled<u16> {
        let span = &expression.span;
        let Shape::Program(ProgramShape::Aggregation(name, keys)) = &expression.shape else {
            return problem(span, "expected an aggregation", "as in @ or @counts");
        };
        if !keys.is_empty() {
            let advice = format!("write @{name} without keys");
            return problem(span, "this is of a whole aggregation", advice);
        }
        match self.aggregation(name) {
            Some(known) => Ok(known),
            // It may have been assigned to where the text is wrong.
            None if self.is_incomplete || !self.problems.is_empty() => consequence(span),
            None => {
                let all = self.form.aggregations.iter().map(|one| one.name.as_str());
                let advice = match nearest(name, all.filter(|one| !one.is_empty())) {
                    Some(near) => format!("did you mean `@{near}`?"),
                    None => "assign to it further up, as in @ = count()".to_owned(),
                };
                let message = format!("unknown aggregation `@{}`", shortened(name));
                problem(span, message, advice)
            }
        }
    }
}
