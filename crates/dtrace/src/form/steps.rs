//! The steps of a clause, and the facts that they read.

use super::Register;
use crate::ast::{Binary, Unary};
use crate::program::functions::Function;
use crate::program::{Holder, Member, Variable};
use crate::types::{Integer, Type};

/// A fact about the firing, which the probe's side supplies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fact {
    /// A variable that every program knows.
    Variable(&'static Variable),
    /// `arg0` to `arg9`
    Argument(u8),
    /// `args[n]` that is not a structure.
    Typed(u8, Type),
    /// A member of a structure; of a file's, a register has the descriptor.
    Member(Holder, &'static Member),
    /// A word of the caller's ([`crate::Variable::fact`]).
    Word(u16, &'static str, Type),
    /// Whether a bit of the word of matches is set, or is not: of a condition, which compares a string
    /// of the caller's.
    Matches(u8, bool),
}

/// A step of a clause.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// An integer as written.
    Integer {
        /// Written.
        to: Register,
        /// The integer.
        value: u64,
    },
    /// A string as written ([`super::Form::texts`]).
    Text {
        /// Written.
        to: Register,
        /// The string's number.
        text: u32,
    },
    /// A fact.
    Fact {
        /// Written.
        to: Register,
        /// Which.
        fact: Fact,
        /// The descriptor of `fds[]`.
        index: Option<Register>,
    },
    /// A frame list, for records and keys.
    Stack {
        /// Written.
        to: Register,
        /// Whether it is the user's.
        user: bool,
        /// The most frames.
        frames: u16,
    },
    /// An operator before a value.
    Unary {
        /// Written.
        to: Register,
        /// Which.
        operator: Unary,
        /// Its value.
        from: Register,
    },
    /// An operator between integers.
    Binary {
        /// Written.
        to: Register,
        /// Which.
        operator: Binary,
        /// Whether it is one of signed integers.
        signed: bool,
        /// Its left side.
        left: Register,
        /// Its right side.
        right: Register,
    },
    /// A comparison of strings.
    Compare {
        /// Written.
        to: Register,
        /// Which.
        operator: Binary,
        /// Its left side.
        left: Register,
        /// Its right side.
        right: Register,
    },
    /// Cut to a type's size, and extended by its sign.
    Convert {
        /// Written.
        to: Register,
        /// The value.
        from: Register,
        /// The type.
        integer: Integer,
    },
    /// The same value in another register.
    Move {
        /// Written.
        to: Register,
        /// The value.
        from: Register,
    },
    /// An integer in memory: what copyin() read, or the kernel's.
    Read {
        /// Written.
        to: Register,
        /// The address.
        address: Register,
        /// The type there.
        integer: Integer,
    },
    /// A string in memory.
    ReadText {
        /// Written.
        to: Register,
        /// The address.
        address: Register,
    },
    /// Goes on at a later step.
    Jump {
        /// Its number.
        to: u32,
    },
    /// Goes on at a later step if a value is, or is not, 0.
    JumpIf {
        /// The value.
        value: Register,
        /// Whether it has to be other than 0.
        is: bool,
        /// The step's number.
        to: u32,
    },
    /// A variable's value.
    Load {
        /// Written.
        to: Register,
        /// Its number.
        variable: u16,
        /// Its keys.
        keys: Vec<Register>,
    },
    /// A variable's new value; 0 frees it.
    Store {
        /// Its number.
        variable: u16,
        /// Its keys.
        keys: Vec<Register>,
        /// The value.
        from: Register,
    },
    /// Frees a string variable.
    Free {
        /// Its number.
        variable: u16,
        /// Its keys.
        keys: Vec<Register>,
    },
    /// A function's value.
    Call {
        /// Written.
        to: Register,
        /// Which.
        function: Function,
        /// Its arguments.
        arguments: Vec<Register>,
    },
    /// A value to an aggregation.
    Aggregate {
        /// Its number.
        aggregation: u16,
        /// Its keys.
        keys: Vec<Register>,
        /// The value; `count()` has none.
        value: Option<Register>,
        /// How many times a distribution counts it, if not once.
        times: Option<Register>,
    },
    /// A record to the buffer.
    Record {
        /// Its number.
        record: u16,
        /// Its values.
        values: Vec<Register>,
    },
}
