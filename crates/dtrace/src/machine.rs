//! The reference evaluator: runs a compiled program over firings that its caller scripts.
//!
//! It defines what a program does. Whatever else runs programs has to leave the same variables,
//! aggregations, records, errors and counts. It is written to be read and checked, not to be fast; it
//! never recurses, and all that it keeps has a bound ([`Options`]) with a count of what found no room.

pub(crate) mod aggregate;
mod clause;
mod functions;
mod memory;
mod paths;
mod variables;

use std::collections::{BTreeMap, VecDeque};

use crate::form::{DropCause, Fault, Form};
use crate::program::{Options, Probe};

pub use aggregate::{Aggregations, Data, Entry};
pub use memory::{Firing, World};

/// A value.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Value {
    /// An integer, extended to 64 bits by the sign of its type.
    Integer(u64),
    /// A string without its end.
    Text(Vec<u8>),
    /// Addresses of frames.
    Stack(Vec<u64>),
    /// Memory, of `tracemem()`.
    Memory(Vec<u8>),
}

impl Value {
    /// The integer, 0 for what is none.
    pub fn integer(&self) -> u64 {
        match self {
            Self::Integer(value) => *value,
            _ => 0,
        }
    }

    /// The string, empty for what is none.
    pub fn text(&self) -> &[u8] {
        match self {
            Self::Text(text) => text,
            _ => &[],
        }
    }
}

/// What a clause left in the buffer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    /// What fired.
    pub probe: Probe,
    /// On which CPU.
    pub cpu: u64,
    /// Its records: number and values.
    pub records: Vec<(u16, Vec<Value>)>,
}

/// An error that ended a clause.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ErrorEvent {
    /// What fired.
    pub probe: Probe,
    /// What was wrong.
    pub fault: Fault,
    /// The clause's number.
    pub clause: usize,
    /// The step's number.
    pub step: usize,
}

/// What comes out of the buffer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Output {
    /// Records.
    Event(Event),
    /// An error.
    Error(ErrorEvent),
}

/// Runs a program.
#[derive(Debug)]
pub struct Machine<'f> {
    form: &'f Form,
    options: Options,
    variables: variables::Variables,
    /// What the aggregations hold.
    pub aggregations: Aggregations,
    buffer: VecDeque<(u64, Output)>,
    buffered: u64,
    drops: BTreeMap<DropCause, u64>,
    errors: BTreeMap<&'static str, u64>,
    exit: Option<i32>,
    random: u64,
}

impl<'f> Machine<'f> {
    /// With nothing in its variables.
    pub fn new(form: &'f Form) -> Self {
        let options = form.options.clone();
        Self {
            form,
            variables: variables::Variables::new(form, &options),
            aggregations: Aggregations::new(form, &options),
            options,
            buffer: VecDeque::new(),
            buffered: 0,
            drops: BTreeMap::new(),
            errors: BTreeMap::new(),
            exit: None,
            random: 0x2545_f491_4f6c_dd1d,
        }
    }

    /// Runs the clauses of a probe that fires. Once the program has exited, only END's run.
    pub fn fire(&mut self, world: &World, firing: &Firing) {
        let is_end = firing.probe.provider == "dtrace" && firing.probe.name == "END";
        if self.exit.is_some() && !is_end {
            return;
        }
        self.variables.begin_firing();
        self.clauses(world, firing, false);
    }

    fn clauses(&mut self, world: &World, firing: &Firing, is_error: bool) {
        let exits_before = self.exit.is_some();
        for (number, clause) in self.form.clauses.iter().enumerate() {
            if !clause.probes.iter().any(|probe| probe.matches(&firing.probe)) {
                continue;
            }
            let ended = self.clause(number, clause, world, firing);
            if let Err((fault, step)) = ended {
                if is_error {
                    self.count(DropCause::ErrorInError);
                } else {
                    self.error(fault, number, step, world, firing);
                }
            }
            // An exit() lets no further clause of the firing run.
            if self.exit.is_some() && !exits_before {
                return;
            }
        }
    }

    /// The ERROR probe, for an error at a step of a clause.
    fn error(&mut self, fault: Fault, clause: usize, step: usize, world: &World, firing: &Firing) {
        let kind = match fault {
            Fault::DividedByZero => "division by zero",
            Fault::BadAddress(_) => "invalid address",
            Fault::StringTooLong => "string too long",
            Fault::NoScratch => "out of scratch space",
            Fault::IllegalOperation => "illegal operation",
        };
        *self.errors.entry(kind).or_default() += 1;
        let probe = firing.probe.clone();
        self.keep(16, Output::Error(ErrorEvent { probe, fault, clause, step }));
        let address = match fault {
            Fault::BadAddress(address) => address,
            _ => 0,
        };
        let mut facts = firing.facts.clone();
        let numbers = [0, clause as u64 + 1, step as u64, step as u64, fault.number(), address];
        for (number, value) in numbers.into_iter().enumerate() {
            facts.insert(format!("arg{number}"), Value::Integer(value));
        }
        let error = Firing {
            probe: Probe::of_language("ERROR"),
            facts,
            stack: Vec::new(),
            ustack: Vec::new(),
        };
        self.clauses(world, &error, true);
    }

    /// Puts something into the buffer, if there is room.
    fn keep(&mut self, bytes: u64, output: Output) -> bool {
        if self.buffered.saturating_add(bytes) > self.options.bufsize {
            self.count(DropCause::Buffer);
            return false;
        }
        self.buffered += bytes;
        self.buffer.push_back((bytes, output));
        true
    }

    fn count(&mut self, cause: DropCause) {
        *self.drops.entry(cause).or_default() += 1;
    }

    /// Takes what is first in the buffer.
    pub fn take(&mut self) -> Option<Output> {
        let (bytes, output) = self.buffer.pop_front()?;
        self.buffered -= bytes;
        Some(output)
    }

    /// What was not kept, by cause.
    pub fn drops(&self) -> &BTreeMap<DropCause, u64> {
        &self.drops
    }

    /// How often clauses ended by an error, by its kind.
    pub fn errors(&self) -> &BTreeMap<&'static str, u64> {
        &self.errors
    }

    /// The status of `exit()`, once it was called.
    pub fn exit(&self) -> Option<i32> {
        self.exit
    }
}
