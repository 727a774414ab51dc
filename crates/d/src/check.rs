//! A tree to a condition: what each name is, and whether types fit.

use std::fmt;

use crate::ast::{Binary, Expression, Shape, Unary};
use crate::error::{Problem, Span};
use crate::evaluate::{Known, Outcome};
use crate::names::nearest;
use crate::parser::parse;
use crate::pattern::Pattern;

/// What a variable holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A signed integer of 64 bits; its fact is the value.
    Integer,
    /// A string; it has no fact of its own, but a bit for each pattern it is compared with.
    String,
}

/// A variable of the caller's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Variable {
    /// The name in the text.
    pub name: &'static str,
    /// What it holds.
    pub kind: Kind,
    /// What it stands for, which several names may: the place of its fact, or any number that tells
    /// strings apart.
    pub fact: u16,
    /// Its meaning in a line.
    pub summary: &'static str,
}

/// A function that adds up what its caller has counted so far, such as `sum(bytes)`: an integer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Aggregation {
    /// The function's name in the text.
    pub function: &'static str,
    /// The variable it is of; none stands in its parentheses otherwise.
    pub of: Option<&'static str>,
    /// The place of its fact.
    pub fact: u16,
    /// Its meaning in a line.
    pub summary: &'static str,
}

impl fmt::Display for Aggregation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}({})", self.function, self.of.unwrap_or_default())
    }
}

/// The names that a text may use.
#[derive(Debug, Clone, Copy)]
pub struct Scope<'a> {
    /// The variables.
    pub variables: &'a [Variable],
    /// Names of numbers.
    pub constants: &'a [(&'a str, i64)],
    /// What may be added up.
    pub aggregations: &'a [Aggregation],
}

/// A string that the condition compares with a pattern: a bit of the word of matches.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StringTest {
    /// Of the string variable.
    pub fact: u16,
    /// What it is compared with.
    pub pattern: Pattern,
}

/// A checked expression.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Condition {
    pub(crate) node: Node,
    tests: Vec<StringTest>,
    /// Where the first string of each of its own tests stands.
    places: Vec<Span>,
    numbers: Vec<u16>,
}

/// A part of a condition: an integer, the truth of one being 0 or 1.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Node {
    Constant(i64),
    /// The fact of this number.
    Fact(u16),
    /// The bit of a [`StringTest`].
    Matches(u8),
    Unary(Unary, Box<Node>),
    Binary(Binary, Box<Node>, Box<Node>),
    Conditional(Box<Node>, Box<Node>, Box<Node>),
}

/// Bits of a word.
const MOST_TESTS: usize = 64;

/// Reads a text and checks it.
///
/// # Errors
/// The first thing that is wrong, and where.
pub fn compile(text: &str, scope: Scope<'_>) -> Result<Condition, Problem> {
    compile_beside(text, scope, &[])
}

/// The same beside a condition with these string tests: its own tests begin with them, so that both
/// conditions can be given one word of matches.
///
/// # Errors
/// As [`compile`]; and when the tests are too many together.
pub fn compile_beside(
    text: &str,
    scope: Scope<'_>,
    tests: &[StringTest],
) -> Result<Condition, Problem> {
    let expression = parse(text)?;
    let mut checker =
        Checker { scope, tests: tests.to_vec(), places: Vec::new(), numbers: Vec::new() };
    let node = checker.number(&expression)?;
    let Checker { tests, places, numbers, .. } = checker;
    Ok(Condition { node, tests, places, numbers })
}

impl Condition {
    /// The string tests, by their bit.
    pub fn tests(&self) -> &[StringTest] {
        &self.tests
    }

    /// Its own string tests, without those it stands beside, and where each of them is in the text.
    pub fn own_tests(&self) -> impl Iterator<Item = (&StringTest, &Span)> {
        self.tests[self.tests.len() - self.places.len()..].iter().zip(&self.places)
    }

    /// Whether it has a use for a fact, of an integer or a string.
    pub fn uses(&self, fact: u16) -> bool {
        self.numbers.contains(&fact) || self.tests.iter().any(|test| test.fact == fact)
    }
}

struct Checker<'a> {
    scope: Scope<'a>,
    tests: Vec<StringTest>,
    places: Vec<Span>,
    numbers: Vec<u16>,
}

/// One side of an operator.
enum Side<'e> {
    Number(Node),
    /// A string variable.
    String(&'e Variable),
    /// A string as written.
    Text(Vec<u8>, Span),
}

impl<'s> Checker<'s> {
    fn side(&mut self, expression: &Expression) -> Result<Side<'s>, Problem> {
        let span = || expression.span.clone();
        let node = match &expression.shape {
            Shape::Integer(number) => Node::Constant(number.value.cast_signed()),
            Shape::Text(text) => return Ok(Side::Text(text.pattern(), span())),
            Shape::Name(name) => return self.name(name, span()),
            Shape::Call(function, of) => self.aggregation(function, of, span())?,
            Shape::Unary(operator, of) => Node::Unary(*operator, self.number(of)?.into()),
            Shape::Binary(operator, left, right) => self.binary(*operator, left, right)?,
            Shape::Conditional(condition, first, second) => {
                let [condition, first, second] =
                    [self.number(condition)?, self.number(first)?, self.number(second)?];
                Node::Conditional(condition.into(), first.into(), second.into())
            }
            // The parser makes none of a condition's text.
            Shape::Program(_) => {
                return Err(Problem::new(span(), "a condition changes nothing", "compare by =="));
            }
        };
        Ok(Side::Number(node))
    }

    fn name(&mut self, name: &str, span: Span) -> Result<Side<'s>, Problem> {
        if let Some(variable) = self.scope.variables.iter().find(|one| one.name == name) {
            if variable.kind == Kind::String {
                return Ok(Side::String(variable));
            }
            return Ok(Side::Number(self.fact(variable.fact)));
        }
        if let Some((_, value)) = self.scope.constants.iter().find(|(one, _)| *one == name) {
            return Ok(Side::Number(Node::Constant(*value)));
        }
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
        Err(Problem::new(span, format!("unknown variable `{}`", shortened(name)), advice))
    }

    fn fact(&mut self, fact: u16) -> Node {
        if !self.numbers.contains(&fact) {
            self.numbers.push(fact);
        }
        Node::Fact(fact)
    }

    fn aggregation(
        &mut self,
        function: &str,
        of: &[Expression],
        span: Span,
    ) -> Result<Node, Problem> {
        let known = self.scope.aggregations;
        let is_it = |one: &&Aggregation| match (one.of, of) {
            (None, []) => true,
            (Some(name), [of]) => matches!(&of.shape, Shape::Name(own) if own == name),
            _ => false,
        };
        let mut of_name = known.iter().filter(|one| one.function == function).peekable();
        if of_name.peek().is_some() {
            if let Some(fact) = of_name.clone().find(is_it).map(|one| one.fact) {
                return Ok(self.fact(fact));
            }
            let listed = |all: Vec<String>| all.join(" or ");
            let advice = format!("write {}", listed(of_name.map(ToString::to_string).collect()));
            // Between the parentheses.
            let within = match of {
                [first, .., last] => first.span.start..last.span.end,
                [one] => one.span.clone(),
                [] => span,
            };
            return Err(Problem::new(within, "this cannot be added up", advice));
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
        Err(Problem::new(at, format!("unknown function `{}`", shortened(function)), advice))
    }

    /// What has to be a number.
    fn number(&mut self, expression: &Expression) -> Result<Node, Problem> {
        let span = expression.span.clone();
        match self.side(expression)? {
            Side::Number(node) => Ok(node),
            Side::String(variable) => Err(Problem::new(
                span,
                format!("`{}` is a string", variable.name),
                format!("compare it, as in {} == \"…\"", variable.name),
            )),
            Side::Text(..) => Err(Problem::new(
                span,
                "a string is not a number",
                "compare a variable with it by ==",
            )),
        }
    }

    fn binary(
        &mut self,
        operator: Binary,
        left: &Expression,
        right: &Expression,
    ) -> Result<Node, Problem> {
        if operator.compares() {
            return self.comparison(operator, left, right);
        }
        let (left_node, right_node) = (self.number(left)?, self.number(right)?);
        let is_division = matches!(operator, Binary::Divide | Binary::Remainder);
        if is_division && right_node.evaluated(&Known::default()) == Ok(Some(0)) {
            return Err(Problem::new(right.span.clone(), "division by zero", ""));
        }
        Ok(Node::Binary(operator, left_node.into(), right_node.into()))
    }

    fn comparison(
        &mut self,
        operator: Binary,
        left: &Expression,
        right: &Expression,
    ) -> Result<Node, Problem> {
        let both = left.span.start..right.span.end;
        let first = self.side(left)?;
        let second = self.side(right).map_err(|problem| match (&first, &right.shape) {
            (Side::String(_), Shape::Name(name)) => {
                Problem { advice: format!("write \"{}\"", shortened(name)), ..problem }
            }
            _ => problem,
        })?;
        let (variable, (pattern, at)) = match (first, second) {
            (Side::Number(left_node), Side::Number(right_node)) => {
                return Ok(Node::Binary(operator, left_node.into(), right_node.into()));
            }
            (Side::String(variable), Side::Text(pattern, at))
            | (Side::Text(pattern, at), Side::String(variable)) => (variable, (pattern, at)),
            (Side::String(_), Side::String(_)) => {
                let advice = "one side has to be a text in quotes";
                return Err(Problem::new(both, "two variables that are strings", advice));
            }
            (Side::Text(..), Side::Text(..)) => {
                let advice = "one side has to be a variable";
                return Err(Problem::new(both, "two texts", advice));
            }
            (Side::Number(_), Side::String(variable))
            | (Side::String(variable), Side::Number(_)) => {
                let advice = format!("`{}` is a string; its text stands in \"", variable.name);
                return Err(Problem::new(both, "a string and a number", advice));
            }
            (Side::Number(_), Side::Text(_, at)) | (Side::Text(_, at), Side::Number(_)) => {
                let advice = "numbers and their names stand without quotes";
                return Err(Problem::new(at, "a number and a string", advice));
            }
        };
        let is_equal = match operator {
            Binary::Equal => true,
            Binary::NotEqual => false,
            _ => {
                let message = format!("strings have no `{}`", operator.sign());
                return Err(Problem::new(both, message, "they are compared by == and !="));
            }
        };
        let matches = self.test(variable.fact, &pattern, at)?;
        Ok(match is_equal {
            true => matches,
            false => Node::Unary(Unary::Not, matches.into()),
        })
    }

    fn test(&mut self, fact: u16, pattern: &[u8], at: Span) -> Result<Node, Problem> {
        let pattern = Pattern::read(pattern)
            .map_err(|error| Problem::new(at.clone(), error.to_string(), ""))?;
        let test = StringTest { fact, pattern };
        let bit = self.tests.iter().position(|one| *one == test).unwrap_or(self.tests.len());
        if bit == MOST_TESTS {
            let advice = "patterns such as \"a*\" or \"[ab]\" stand for several";
            return Err(Problem::new(at, "more than 64 strings to compare with", advice));
        }
        if bit == self.tests.len() {
            self.tests.push(test);
            self.places.push(at);
        }
        Ok(Node::Matches(bit as u8))
    }
}

impl Condition {
    /// The outcome for these facts, and this word of matches.
    pub fn evaluate(&self, facts: &dyn Fn(u16) -> i64, matches: u64) -> Outcome {
        let known = Known {
            fact: &|fact| Some(facts(fact)),
            matches: &|bit| Some(matches >> bit & 1 == 1),
        };
        match self.node.evaluated(&known) {
            Ok(value) => Outcome::from_integer(value.unwrap_or(0)),
            Err(_) => Outcome::DividedByZero,
        }
    }

    /// The outcome as far as it is settled by what is known; `None` where it depends on the rest.
    pub fn settled(
        &self,
        fact: &dyn Fn(u16) -> Option<i64>,
        matches: &dyn Fn(&StringTest) -> Option<bool>,
    ) -> Option<Outcome> {
        let matches = |bit: u8| self.tests.get(usize::from(bit)).and_then(matches);
        match self.node.evaluated(&Known { fact, matches: &matches }) {
            Ok(value) => value.map(Outcome::from_integer),
            Err(_) => Some(Outcome::DividedByZero),
        }
    }
}

/// A name that fits into a line.
fn shortened(name: &str) -> String {
    match name.char_indices().nth(40) {
        Some((end, _)) => format!("{}…", &name[..end]),
        None => name.to_owned(),
    }
}
