//! The D language, as DTrace has it: conditions of one expression, and programs.
//!
//! [`compile_program`] reads a program, checks its types and makes a [`form::Form`], which
//! [`machine::Machine`] runs and [`output::Printer`] prints; [`script`] has both do so over scripted
//! firings. [`kernel`] makes BPF instructions of the same form; whoever loads them is another
//! [`engine::Engine`]. [`compile()`] makes a [`Condition`] in the same way: a form of one predicate, whose
//! names are the variables of its caller. That is evaluated here ([`Condition::evaluate`]), as far as its
//! facts are known, or by the kernel ([`Condition::emit`]). Nothing here attaches to a kernel. The crate
//! knows no observer and no call; the facts are its caller's.
//!
//! A condition differs from a program's predicate in three: a string is compared with a pattern, all
//! integers have the same type, and values are in registers of BPF in place of a machine's memory.
//!
//! # Conditions
//!
//! C's operators with C's precedence, and D's `^^`. All integers have 64 bits and a sign, and wrap
//! round; a shift goes by the low six bits of its right side. A division by zero is an error, by a
//! constant when the text is read, otherwise when it happens ([`Outcome::DividedByZero`]). Strings
//! are compared by `==` and `!=` only, a variable with a pattern ([`Pattern`]). Functions are those of
//! DTrace's aggregations that the caller has values of ([`Aggregation`]): to a condition they are facts.
//!
//! # Programs
//!
//! A program is a list of clauses, `PROBES /PREDICATE/ { STATEMENTS }`, and of declarations.
//!
//! - **Probes** are `provider:module:function:name`. Parts are left out from the left, an empty one is
//!   any, each is a pattern of a shell, and a comma divides several. `BEGIN`, `END` and `ERROR` fire by
//!   themselves; `profile-97hz` and `tick-1s` by time.
//! - **Variables** get the type of their first value, or a declared one: one for all threads (`x`), one by
//!   thread (`self->x`), one for the clauses of a firing (`this->x`). The first two may be arrays with any
//!   keys (`a[pid, "x"]`). 0, or NULL for a string, frees a variable with a thread or keys.
//! - **Integers** have C's sizes and signs on a machine of 64 bits. Calculations have 64 bits whatever
//!   the types; the type tells signed from unsigned operators, and cuts a value where it is stored, cast,
//!   recorded or a key. Strings have at most `strsize` bytes with their end: facts and literals are cut,
//!   and what a function makes too long is an error.
//! - **Declarations** are those of variables, `inline`, `enum` and `typedef`. `$1`, `$$1`, `$target` and the
//!   like come from the command ([`Macros`]), `#pragma D option` from [`Options`].
//! - **Aggregations** are `@name[keys] = count()`, `sum`, `avg`, `min`, `max`, `stddev`, `quantize`,
//!   `lquantize` or `llquantize`. What `printa()` did not print is printed at the end.
//! - **Actions** are `printf`, `printa`, `trace`, `tracemem`, `stack`, `ustack`, `exit`, `clear`, `trunc`,
//!   `normalize`, `denormalize`, `setopt` and, if `destructive`, `system`.
//! - **An error** (a division by zero, an address that cannot be read, a string too long) ends its clause
//!   without its records, is counted by its kind, and fires `ERROR`. What found no room is counted by its
//!   cause ([`form::DropCause`]).
//!
//! Speculation, translators, structures, the kernel's own names, destructive actions but `system` and the
//! providers `fbt`, `pid` and USDT are refused by name, with what there is instead. Unlike DTrace's own,
//! programs have the units of conditions (`5ms`, `4KiB`), `quantize()` shows its largest bin, and times are
//! printed in UTC.
//!
//! The one tricky invariant: whatever the text, no recursion is deeper than the parser's bound, for
//! every node of a tree knows how deep it is. The compiled form has no recursion, and jumps forward only.

mod arithmetic;
mod assembler;
mod ast;
mod compile;
mod condition;
pub mod engine;
mod error;
mod evaluate;
pub mod form;
pub mod format;
mod glob;
pub mod kernel;
mod lexer;
pub mod machine;
mod names;
pub mod output;
mod parser;
mod pattern;
mod program;
mod ranges;
mod scope;
pub mod script;
#[cfg(test)]
mod tests;
pub mod types;

pub use assembler::Instruction;
pub use compile::{compile_program, compile_with_options};
pub use condition::{Condition, compile, compile_beside};
pub use error::{Problem, Span};
pub use evaluate::Outcome;
pub use glob::{Glob, GlobError};
pub use kernel::EmitError;
pub use lexer::Macros;
pub use names::nearest;
pub use pattern::{Pattern, StringTest};
pub use program::{Holder, KnownVariable, Member, Options, Probe, ProbePattern};
pub use scope::{Aggregation, Kind, Scope, Variable};
