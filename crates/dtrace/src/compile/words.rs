//! What names and strings are in a condition: facts of the caller's, and patterns.
//!
//! All integers have 64 bits and a sign. A string is a variable of the caller's that is compared with
//! a pattern, and what comes of it a bit of the word of matches.

use super::{Compiled, Compiler, Operand, problem, shortened};
use crate::ast::{Binary, Expression, Shape, Text};
use crate::error::{Problem, Span};
use crate::form::Fact;
use crate::names::nearest;
use crate::pattern::{Pattern, StringTest};
use crate::scope::{Aggregation, Kind, Variable};
use crate::types::{Integer, Type};

const I64: Type = Type::Integer(Integer::I64);

/// Bits of a word.
const MOST_TESTS: usize = 64;

/// One side of a comparison.
enum Side<'e> {
    Number,
    /// A string variable: its name, and what it stands for.
    String(&'static str, u16),
    /// A string as written.
    Text(&'e Text),
}

impl<'a> Compiler<'a> {
    /// Whether it is a condition's text.
    pub(super) fn is_condition(&self) -> bool {
        self.tests.is_some()
    }

    fn variable(&self, name: &str) -> Option<&'a Variable> {
        self.scope.variables.iter().find(|one| one.name == name)
    }

    /// A number or a name of the caller's.
    pub(super) fn word(&mut self, name: &str, span: &Span) -> Compiled<Option<Operand>> {
        if let Some(variable) = self.variable(name) {
            let of = match variable.kind {
                Kind::Integer => I64,
                Kind::String => Type::String,
            };
            let fact = Fact::Word(variable.fact, variable.name, of);
            return self.fact(fact, of, None, span).map(Some);
        }
        let Some((_, value)) = self.scope.constants.iter().find(|(one, _)| *one == name) else {
            return Ok(None);
        };
        let integer = match i32::try_from(*value) {
            Ok(_) => Integer::INT,
            Err(_) => Integer::I64,
        };
        self.constant(value.cast_unsigned(), integer, span).map(Some)
    }

    /// What stands alone in a condition; `None` of operators.
    pub(super) fn leaf(&mut self, expression: &Expression) -> Compiled<Option<Operand>> {
        let span = &expression.span;
        match (&expression.shape, self.side(expression)) {
            (_, Side::String(name, _)) => {
                let advice = format!("compare it, as in {name} == \"…\"");
                problem(span, format!("`{name}` is a string"), advice)
            }
            (_, Side::Text(_)) => {
                problem(span, "a string is not a number", "compare a variable with it by ==")
            }
            (Shape::Integer(number), _) => {
                self.constant(number.value, Integer::I64, span).map(Some)
            }
            (Shape::Name(name), _) => match self.word(name, span)? {
                Some(value) => Ok(Some(value)),
                None => self.unknown_word(name, span),
            },
            (Shape::Call(function, of), _) => self.sum(function, of, span).map(Some),
            _ => Ok(None),
        }
    }

    fn side<'e>(&self, expression: &'e Expression) -> Side<'e> {
        match &expression.shape {
            Shape::Text(text) => Side::Text(text),
            Shape::Name(name) => match self.variable(name) {
                Some(Variable { name, kind: Kind::String, fact, .. }) => Side::String(name, *fact),
                _ => Side::Number,
            },
            _ => Side::Number,
        }
    }

    fn unknown_word<T>(&self, name: &str, span: &Span) -> Compiled<T> {
        let variables = self.scope.variables.iter().map(|one| one.name);
        let constants = self.scope.constants.iter().map(|(name, _)| *name);
        let function = self.scope.aggregations.iter().find(|one| one.function == name);
        let near = nearest(name, variables.clone().chain(constants));
        let advice = match (function, near) {
            (Some(function), _) => format!("write {function}"),
            (None, Some(near)) => format!("did you mean `{near}`?"),
            (None, None) => {
                let all: Vec<&str> = variables.collect();
                format!("the variables are {}; strings stand in \"", all.join(", "))
            }
        };
        problem(span, format!("unknown variable `{}`", shortened(name)), advice)
    }

    /// What was added up so far.
    fn sum(&mut self, function: &str, of: &[Expression], span: &Span) -> Compiled<Operand> {
        let known = self.scope.aggregations;
        let is_it = |one: &&Aggregation| match (one.of, of) {
            (None, []) => true,
            (Some(name), [of]) => matches!(&of.shape, Shape::Name(own) if own == name),
            _ => false,
        };
        let mut of_name = known.iter().filter(|one| one.function == function).peekable();
        if of_name.peek().is_some() {
            if let Some(sum) = of_name.clone().find(is_it) {
                return self.fact(Fact::Word(sum.fact, sum.function, I64), I64, None, span);
            }
            let all: Vec<String> = of_name.map(ToString::to_string).collect();
            let advice = format!("write {}", all.join(" or "));
            // Between the parentheses.
            let within = match of {
                [first, .., last] => first.span.start..last.span.end,
                [one] => one.span.clone(),
                [] => span.clone(),
            };
            return problem(&within, "this cannot be added up", advice);
        }
        let at = span.start..span.start + function.len();
        let advice = match nearest(function, known.iter().map(|one| one.function)) {
            _ if known.is_empty() => "there are none here".to_owned(),
            Some(near) => format!("did you mean `{near}`?"),
            None => {
                let all: Vec<String> = known.iter().map(ToString::to_string).collect();
                format!("the functions are {}", all.join(", "))
            }
        };
        problem(&at, format!("unknown function `{}`", shortened(function)), advice)
    }

    /// Whether a string matches a pattern; `None` where numbers are compared.
    pub(super) fn matching(
        &mut self,
        operator: Binary,
        [left, right]: [&Expression; 2],
    ) -> Compiled<Option<Operand>> {
        let both = left.span.start..right.span.end;
        let (fact, text, at) = match (self.side(left), self.side(right)) {
            (Side::Number, Side::Number) => return Ok(None),
            (Side::String(_, fact), Side::Text(text)) => (fact, text, &right.span),
            (Side::Text(text), Side::String(_, fact)) => (fact, text, &left.span),
            (Side::String(..), Side::String(..)) => {
                let advice = "one side has to be a text in quotes";
                return problem(&both, "two variables that are strings", advice);
            }
            (Side::Text(_), Side::Text(_)) => {
                return problem(&both, "two texts", "one side has to be a variable");
            }
            (Side::Number, side) => {
                self.value(left)?;
                return of_two_kinds(side, &both, &right.span);
            }
            (side, Side::Number) => {
                self.value(right).map_err(|problem| match (&side, &right.shape) {
                    (Side::String(..), Shape::Name(name)) => {
                        Problem { advice: format!("write \"{}\"", shortened(name)), ..problem }
                    }
                    _ => problem,
                })?;
                return of_two_kinds(side, &both, &left.span);
            }
        };
        if !matches!(operator, Binary::Equal | Binary::NotEqual) {
            let message = format!("strings have no `{}`", operator.sign());
            return problem(&both, message, "they are compared by == and !=");
        }
        let bit = self.test(fact, &text.pattern(), at)?;
        let fact = Fact::Matches(bit, operator == Binary::Equal);
        self.fact(fact, Type::INT, None, &both).map(Some)
    }

    /// The bit of a test, of which there may be the same already.
    fn test(&mut self, fact: u16, pattern: &[u8], at: &Span) -> Compiled<u8> {
        let pattern = Pattern::read(pattern)
            .map_err(|error| Problem::new(at.clone(), error.to_string(), ""))?;
        let test = StringTest { fact, pattern };
        let tests = self.tests.get_or_insert_default();
        let bit = tests.all.iter().position(|one| *one == test).unwrap_or(tests.all.len());
        if bit == MOST_TESTS {
            let advice = "patterns such as \"a*\" or \"[ab]\" stand for several";
            return problem(at, "more than 64 strings to compare with", advice);
        }
        if bit == tests.all.len() {
            tests.all.push(test);
            tests.places.push(at.clone());
        }
        Ok(bit as u8)
    }
}

/// A string, at its place, beside a number.
fn of_two_kinds<T>(string: Side<'_>, both: &Span, at: &Span) -> Compiled<T> {
    match string {
        Side::String(name, _) => {
            let advice = format!("`{name}` is a string; its text stands in \"");
            problem(both, "a string and a number", advice)
        }
        _ => {
            let advice = "numbers and their names stand without quotes";
            problem(at, "a number and a string", advice)
        }
    }
}
