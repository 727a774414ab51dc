//! A program as it was written: declarations and clauses in their order.

use crate::ast::{Expression, Scope};
use crate::error::Span;
use crate::types::Type;

/// A program.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Tree {
    /// By `#pragma D option`.
    pub(crate) options: Vec<OptionSetting>,
    pub(crate) items: Vec<Item>,
}

/// `#pragma D option name=value`
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct OptionSetting {
    pub(crate) name: String,
    pub(crate) value: Option<String>,
    pub(crate) span: Span,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Item {
    Clause(Clause),
    Variable(VariableDeclaration),
    /// `inline type name = value;`
    Inline {
        of: Type,
        name: String,
        value: Expression,
        span: Span,
    },
    /// Names of integers, by `enum`.
    Constants(Vec<(String, Span, Option<Expression>)>),
    /// `typedef type name;`
    Alias {
        of: Type,
        name: String,
    },
}

/// `self int name[string];`
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct VariableDeclaration {
    pub(crate) scope: Scope,
    pub(crate) of: Type,
    pub(crate) name: String,
    /// Of an associative array.
    pub(crate) keys: Option<Vec<Type>>,
    pub(crate) span: Span,
}

/// `probes /predicate/ { statements }`
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Clause {
    pub(crate) probes: Vec<(String, Span)>,
    pub(crate) predicate: Option<Expression>,
    /// `None` without braces: the default action.
    pub(crate) statements: Option<Vec<Expression>>,
    pub(crate) span: Span,
}
