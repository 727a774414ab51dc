//! The compiled form of a program: flat, typed steps by clause.
//!
//! A clause is a list of steps over registers. A register holds an integer of 64 bits, a string or a
//! stack; which, its writer says. Jumps go forward only, so a clause ends, and nothing recurses. What
//! a clause changes is a variable, an aggregation, or a record that goes to a buffer; each may find no
//! room, which is counted by its cause ([`DropCause`]). An error ([`Fault`]) ends the clause at its step,
//! of which [`Form::place`] knows the place in the text.

mod steps;

use crate::error::Span;
use crate::format::Format;
use crate::program::{Options, ProbePattern};
use crate::types::Type;

pub use crate::ast::Scope as VariableScope;
pub use crate::ast::{Binary as BinaryOperator, Unary as UnaryOperator};
pub use crate::program::functions::Function;
pub use steps::{Fact, Step};

/// A register's number.
pub type Register = u16;

/// A compiled program.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Form {
    /// What it is run with.
    pub options: Options,
    /// The clauses in their order.
    pub clauses: Vec<Clause>,
    /// Strings as written.
    pub texts: Vec<Vec<u8>>,
    /// The program's own variables.
    pub variables: Vec<OwnVariable>,
    /// Its aggregations.
    pub aggregations: Vec<Aggregation>,
    /// The kinds of records.
    pub records: Vec<Record>,
}

/// A clause.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Clause {
    /// The probes it is for.
    pub probes: Vec<ProbePattern>,
    /// What is done; a jump behind the last ends the clause.
    pub steps: Vec<Step>,
    /// Of each step, the place in the text.
    pub places: Vec<Span>,
    /// How many registers the steps use.
    pub registers: Register,
}

/// A variable of the program's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OwnVariable {
    /// The name in the text.
    pub name: String,
    /// By what it is told apart besides its keys.
    pub scope: VariableScope,
    /// What it holds.
    pub of: Type,
    /// The types of an associative array's keys.
    pub keys: Option<Vec<Type>>,
}

/// An aggregation of the program's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Aggregation {
    /// The name in the text, empty for `@`.
    pub name: String,
    /// What its values are.
    pub function: Aggregating,
    /// The types of its keys.
    pub keys: Vec<Type>,
}

/// What an aggregation does with values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Aggregating {
    /// How many.
    Count,
    /// Their sum.
    Sum,
    /// Their mean.
    Average,
    /// The smallest.
    Minimum,
    /// The largest.
    Maximum,
    /// Their standard deviation.
    StandardDeviation,
    /// A distribution by powers of two.
    Quantize,
    /// A distribution by equal steps.
    Linear {
        /// The lower bound.
        lower: i32,
        /// The bound that lies above all steps.
        upper: i32,
        /// The width of a step.
        step: u16,
    },
    /// A distribution by equal steps within powers of a factor.
    LogLinear {
        /// The factor.
        factor: u16,
        /// The lowest power.
        low: u16,
        /// The highest power.
        high: u16,
        /// The steps of a power.
        steps: u16,
    },
}

impl Aggregating {
    /// The name in the text.
    pub fn name(self) -> &'static str {
        match self {
            Self::Count => "count",
            Self::Sum => "sum",
            Self::Average => "avg",
            Self::Minimum => "min",
            Self::Maximum => "max",
            Self::StandardDeviation => "stddev",
            Self::Quantize => "quantize",
            Self::Linear { .. } => "lquantize",
            Self::LogLinear { .. } => "llquantize",
        }
    }

    /// Whether it is a distribution, printed as a picture.
    pub fn is_distribution(self) -> bool {
        matches!(self, Self::Quantize | Self::Linear { .. } | Self::LogLinear { .. })
    }
}

/// A kind of record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// What its reader does.
    pub action: Action,
    /// The types of its values.
    pub values: Vec<Type>,
}

impl Record {
    /// Its bytes in the buffer with strings of this size, its head included.
    pub fn bytes(&self, strsize: u32) -> u32 {
        self.values
            .iter()
            .fold(8, |sum, of| sum.saturating_add(of.bytes(strsize).next_multiple_of(8)))
    }
}

/// What the reader of a record does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// Nothing but the line of the event: a clause without statements.
    Event,
    /// `trace(value)`, `stack()`, `ustack()`
    Trace,
    /// `tracemem(address, bytes)`: a value that is memory.
    TraceMemory(u16),
    /// `printf(format, …)`
    Printf(Format),
    /// `system(format, …)`
    System(Format),
    /// `printa([format,] @…)`
    Printa(Option<Format>, Vec<u16>),
    /// `clear(@)`
    Clear(u16),
    /// `trunc(@[, count])`
    Truncate(u16),
    /// `normalize(@, by)`
    Normalize(u16),
    /// `denormalize(@)`
    Denormalize(u16),
    /// `setopt(name[, value])`, both as written.
    SetOption(String, Option<String>),
    /// `exit(status)`
    Exit,
}

/// An error when a clause runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, thiserror::Error)]
pub enum Fault {
    /// By `/` or `%`.
    #[error("division by zero")]
    DividedByZero,
    /// An address that cannot be read.
    #[error("invalid address ({0:#x})")]
    BadAddress(u64),
    /// A string that a function made is longer than strsize.
    #[error("string too long")]
    StringTooLong,
    /// More memory for copyin() and alloca() than a firing has.
    #[error("out of scratch space")]
    NoScratch,
    /// An argument that the function has no value for.
    #[error("illegal operation")]
    IllegalOperation,
}

impl Fault {
    /// The number that `arg4` is in the ERROR probe.
    pub fn number(self) -> u64 {
        match self {
            Self::BadAddress(_) => 1,
            Self::IllegalOperation => 3,
            Self::DividedByZero => 4,
            Self::NoScratch => 5,
            Self::StringTooLong => 10,
        }
    }
}

/// Why something was not kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum DropCause {
    /// The buffer had no room for a clause's records.
    Buffer,
    /// The aggregations had no room for another key.
    Aggregation,
    /// The associative arrays and thread-local variables had no room for another one.
    DynamicVariable,
    /// An error happened while the ERROR probe fired.
    ErrorInError,
}

impl Form {
    /// The place of a clause's step in the text.
    pub fn place(&self, clause: usize, step: usize) -> Span {
        let place = self.clauses.get(clause).and_then(|clause| clause.places.get(step));
        place.cloned().unwrap_or(0..0)
    }

    /// The same form of a text with its parts at other places.
    #[must_use]
    pub fn without_places(mut self) -> Self {
        for clause in &mut self.clauses {
            clause.places.clear();
            clause.probes.iter_mut().for_each(|probe| probe.place = 0..0);
        }
        self
    }
}
