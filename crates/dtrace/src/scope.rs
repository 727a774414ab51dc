//! The names of the caller's that a text may use.

use std::fmt;

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
#[derive(Debug, Clone, Copy, Default)]
pub struct Scope<'a> {
    /// The variables.
    pub variables: &'a [Variable],
    /// Names of numbers.
    pub constants: &'a [(&'a str, i64)],
    /// What may be added up, in a condition.
    pub aggregations: &'a [Aggregation],
}
