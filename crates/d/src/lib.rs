//! The D language, as DTrace has it: for now its expressions.
//!
//! [`compile`] reads a text, checks its types against the variables that the caller has, and makes
//! a [`Condition`]. That is evaluated here ([`Condition::evaluate`]) or by the kernel
//! ([`Condition::emit`]): both read the same array of facts, and do the same with it. The crate
//! knows no observer and no call; the facts are its caller's.
//!
//! # The language
//!
//! C's operators with C's precedence, and D's `^^`. All integers have 64 bits and a sign, and wrap
//! round; a shift goes by the low six bits of its right side. A division by zero is an error, by a
//! constant when the text is read, otherwise when it happens ([`Outcome::DividedByZero`]). Strings
//! are compared by `==` and `!=` only, a variable with a pattern ([`Pattern`]).
//!
//! The one tricky invariant: whatever the text, no recursion is deeper than the parser's bound, for
//! every node of a tree knows how deep it is.

mod ast;
mod check;
mod emit;
mod error;
mod evaluate;
mod glob;
mod lexer;
mod names;
mod parser;
mod pattern;
#[cfg(test)]
mod tests;

pub use check::{Condition, Kind, Scope, StringTest, Variable, compile};
pub use emit::{EmitError, Instruction};
pub use error::{Problem, Span};
pub use evaluate::Outcome;
pub use glob::{Glob, GlobError};
pub use pattern::Pattern;
