//! `printf`, `system` and `printa`: whether values fit their formats.

use super::{Compiled, Compiler, problem};
use crate::ast::{Expression, ProgramShape, Shape};
use crate::error::Span;
use crate::form::{Action, Aggregating};
use crate::format::{Conversion, Format};
use crate::types::{Integer, Type};

impl Compiler<'_> {
    /// `printf(format, values…)`, or `system` by the same rules.
    pub(super) fn printf(
        &mut self,
        arguments: &[Expression],
        span: &Span,
        is_command: bool,
    ) -> Compiled<()> {
        let name = if is_command { "system" } else { "printf" };
        let Some((first, values)) = arguments.split_first() else {
            let advice = "as in printf(\"%s\\n\", execname)";
            return problem(span, format!("`{name}` has no format"), advice);
        };
        let format = format_of(first, name)?;
        let mut values = values.iter().enumerate();
        let mut types = Vec::new();
        let mut registers = Vec::new();
        for conversion in format.conversions() {
            if conversion.aggregation {
                let advice = "%@ prints an aggregation by printa()";
                return problem(&first.span, format!("`{name}` has no aggregation"), advice);
            }
            let widths =
                usize::from(conversion.width_argument) + usize::from(conversion.precision_argument);
            for place in 0..=widths {
                let is_width = place < widths;
                let shown = shown(conversion);
                let Some((_, value)) = values.next() else {
                    let what = if is_width { "a width for" } else { "a value for" };
                    let at = span.end.saturating_sub(1)..span.end;
                    return problem(&at, format!("{what} `{shown}` is missing"), "");
                };
                let operand = self.recordable(value)?;
                let refused = match is_width {
                    true => operand.of.as_integer().is_none().then_some("an integer as its width"),
                    false => conversion.refuses(operand.of),
                };
                if let Some(expected) = refused {
                    let message = format!("`{shown}` prints no {}", operand.of);
                    return problem(&value.span, message, format!("it needs {expected}"));
                }
                let operand = match operand.of {
                    Type::Integer(integer) => self.converted(operand, integer, &value.span)?,
                    _ => operand,
                };
                types.push(operand.of);
                registers.push(operand.register);
            }
        }
        if let Some((number, value)) = values.next() {
            let message = format!("the format has {} conversions", count(number));
            return problem(&value.span, message, "this value is not printed");
        }
        let action = if is_command { Action::System(format) } else { Action::Printf(format) };
        self.record(action, types, registers, span)
    }

    /// `printa([format,] @…)`
    pub(super) fn printa(&mut self, arguments: &[Expression], span: &Span) -> Compiled<()> {
        let (format, aggregations) = match arguments.split_first() {
            Some((first, rest)) if matches!(first.shape, Shape::Text(_)) => {
                (Some((format_of(first, "printa")?, &first.span)), rest)
            }
            _ => (None, arguments),
        };
        if aggregations.is_empty() {
            let advice = "as in printa(@) or printa(\"%s %@d\\n\", @)";
            return problem(span, "`printa` has no aggregation", advice);
        }
        let mut numbers = Vec::new();
        for one in aggregations {
            numbers.push(self.named_aggregation(one)?);
        }
        let first = &self.form.aggregations[usize::from(numbers[0])];
        for (number, expression) in numbers.iter().zip(aggregations).skip(1) {
            let other = &self.form.aggregations[usize::from(*number)];
            let is_same = first.keys.len() == other.keys.len()
                && first.keys.iter().zip(&other.keys).all(|(one, other)| {
                    one == other || (one.as_integer().is_some() && other.as_integer().is_some())
                });
            if !is_same {
                let message = format!(
                    "`@{}` has other keys than `@{}`: {} beside {}",
                    other.name,
                    first.name,
                    keys(&other.keys),
                    keys(&first.keys)
                );
                return problem(&expression.span, message, "print them one by one");
            }
        }
        if let Some((format, at)) = &format {
            let functions: Vec<Aggregating> = numbers
                .iter()
                .map(|number| self.form.aggregations[usize::from(*number)].function)
                .collect();
            check_printa(format, at, &first.keys, &functions)?;
        }
        let action = Action::Printa(format.map(|(format, _)| format), numbers);
        self.record(action, Vec::new(), Vec::new(), span)
    }
}

/// Whether the conversions of keys fit the keys.
fn check_printa(
    format: &Format,
    at: &Span,
    keys_of: &[Type],
    functions: &[Aggregating],
) -> Compiled<()> {
    let mut next = 0;
    let mut values = 0;
    for conversion in format.conversions() {
        let shown = shown(conversion);
        if conversion.width_argument || conversion.precision_argument {
            return problem(
                at,
                format!("`{shown}` takes its width from no argument here"),
                "write it out",
            );
        }
        if conversion.aggregation {
            let function = functions[values.min(functions.len() - 1)];
            values += 1;
            let of = match function {
                Aggregating::Count => Type::Integer(Integer::U64),
                _ => Type::Integer(Integer::I64),
            };
            if let Some(expected) = conversion.refuses(of).filter(|_| !function.is_distribution()) {
                let message = format!("`{shown}` does not print {}()", function.name());
                return problem(at, message, format!("it needs {expected}"));
            }
            continue;
        }
        let Some(key) = keys_of.get(next) else {
            let message = match keys_of.len() {
                0 => format!("there is no key for `{shown}`"),
                count => format!("there is no key for `{shown}`: the aggregation has {count}"),
            };
            return problem(at, message, "an aggregation's value is printed by %@d");
        };
        next += 1;
        if let Some(expected) = conversion.refuses(*key) {
            let message = format!("`{shown}` does not print key {next}, {}", key.with_article());
            return problem(at, message, format!("it needs {expected}"));
        }
    }
    Ok(())
}

fn format_of(expression: &Expression, name: &str) -> Compiled<Format> {
    let Shape::Text(text) = &expression.shape else {
        let advice = match &expression.shape {
            Shape::Program(ProgramShape::Aggregation(..)) => {
                "an aggregation is printed by printa()"
            }
            _ => "as in printf(\"%s\\n\", execname)",
        };
        let message = format!("`{name}` begins with a format in quotes");
        return problem(&expression.span, message, advice);
    };
    let bytes = text.bytes();
    Format::read(&bytes).or_else(|wrong| {
        let span = &expression.span;
        // Without escapes, the text is in the source as it is.
        let at = match span.len() == bytes.len() + 2 {
            true => span.start + 1 + wrong.at.start..span.start + 1 + wrong.at.end,
            false => span.clone(),
        };
        problem(&at, wrong.message, wrong.advice)
    })
}

fn shown(conversion: &Conversion) -> String {
    let mark = if conversion.aggregation { "@" } else { "" };
    format!("%{mark}{}", char::from(conversion.letter))
}

fn keys(types: &[Type]) -> String {
    match types.is_empty() {
        true => "none".to_owned(),
        false => types.iter().map(ToString::to_string).collect::<Vec<_>>().join(", "),
    }
}

fn count(number: usize) -> String {
    if number == 0 { "no".to_owned() } else { format!("only {number}") }
}
