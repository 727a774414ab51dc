//! A program to BPF instructions: the body of one function that runs a clause.
//!
//! `int f(struct machine *m, struct thread_row *row)` runs the clause whose number the machine has, and
//! returns how it ended (`layout::outcome`). Registers of the form are slots of the machine, shared by
//! those that are never needed at the same time; `r6` is the machine, `r7` the row of the thread or 0,
//! and `r0` to `r5` are scratch. What loops or
//! handles maps and strings is a function of the same section, which is called. Jumps go forward only,
//! and at each place where paths meet the verifier knows the same: its work is linear.

mod calls;
mod clause;
mod condition;
mod conversion;
mod files;
mod keys;
pub mod layout;
mod operators;
mod parts;
mod registers;
mod values;

use std::fmt;

use crate::assembler::{Code, Instruction, Label, MOST_INSTRUCTIONS, code};
use crate::error::Span;
use crate::form::{Form, VariableScope};
use crate::types::Type;
use clause::Emitter;
pub use condition::EmitError;
pub use keys::ROW_BYTES;
pub use parts::KeyPart;
use registers::Home;

/// Where the functions are that emitted instructions call: numbers of instructions in a section.
#[derive(Clone, Copy)]
pub struct Functions<'f> {
    /// Where a function begins, by its name.
    pub place: &'f dyn Fn(&str) -> Option<usize>,
    /// Where the emitted function is to begin.
    pub start: usize,
}

impl fmt::Debug for Functions<'_> {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.debug_struct("Functions").field("start", &self.start).finish_non_exhaustive()
    }
}

/// Where the variables of threads are that are integers without keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ThreadVariables {
    /// In a row of the thread, which clauses are passed, as far as it has room.
    InRows,
    /// Among those with keys.
    ByKey,
}

/// Why a program cannot be run in the kernel.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum KernelError {
    /// It has something that there is nothing for.
    #[error("{what} cannot be traced in the kernel")]
    Unsupported {
        /// What.
        what: String,
        /// Its place in the text.
        span: Span,
    },
    /// It takes more than there is room for.
    #[error("the program takes {has} {of}, of at most {most}")]
    TooLarge {
        /// Of what.
        of: &'static str,
        /// How many.
        has: usize,
        /// How many there may be.
        most: usize,
    },
    /// The object has no such function: a defect of this program.
    #[error("the BPF object has no function {0}")]
    Lacks(&'static str),
}

/// What the kernel is given.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Emitted {
    /// The function that runs a clause.
    pub instructions: Vec<Instruction>,
    /// How many of these each clause has.
    pub clauses: Vec<usize>,
    /// Strings as written, each with its end.
    pub literals: Vec<u8>,
    /// How many bytes the largest key of an aggregation takes.
    pub largest_row: usize,
    /// How many bytes a key of an aggregation counts as at least, of those that may have several.
    pub least_row: Option<u64>,
    /// How many bytes the largest key of a variable takes.
    pub largest_variable: usize,
    /// How the parts of the keys of aggregations are laid.
    pub parts: Vec<Vec<KeyPart>>,
    /// How many words of a firing's own variables there are.
    pub locals: usize,
    /// How many string variables all threads share.
    pub global_strings: u32,
    /// Whether it asks for `vtimestamp`.
    pub uses_vtimestamp: bool,
    /// How many variables are in the row of a thread.
    pub thread_words: usize,
}

impl Form {
    /// The program as instructions of BPF.
    ///
    /// # Errors
    /// It is too large, or has something that the kernel's side has not.
    pub fn emit(
        &self,
        functions: Functions<'_>,
        of_threads: ThreadVariables,
    ) -> Result<Emitted, KernelError> {
        let strsize = self.options.strsize as usize;
        bounded("bytes for each string", strsize, layout::STRING_MOST)?;
        bounded("aggregations", self.aggregations.len(), layout::AGGREGATIONS)?;
        let mut emitted = Emitted { parts: parts::of(self), ..Emitted::default() };
        let mut starts = Vec::new();
        for text in &self.texts {
            starts.push(emitted.literals.len());
            emitted.literals.extend(&text[..text.len().min(strsize - 1)]);
            emitted.literals.push(0);
        }
        bounded("bytes of strings", emitted.literals.len(), layout::LITERALS_MOST)?;
        let places = Places::of(self, of_threads, &mut emitted)?;
        let mut code = Code::default();
        let labels: Vec<Label> = self.clauses.iter().map(|_| code.label()).collect();
        let none = code.label();
        // The verifier has a pointer that is passed to a function be checked.
        code.jump(code::JEQ, 1, 0, none);
        code.operate(code::MOV, layout::MACHINE, 1);
        code.operate(code::MOV, layout::THREAD, 2);
        code.push(code::LOAD_32, 2, layout::MACHINE, layout::CLAUSE, 0);
        dispatch(&mut code, &labels, 0, none);
        for (number, label) in labels.iter().enumerate() {
            code.place(*label);
            let before = code.length();
            let parts = &emitted.parts;
            let emitter =
                Emitter::new(self, number, Home::Machine, &places, &starts, functions, parts)?;
            emitter.emit(&mut code, &mut emitted)?;
            emitted.clauses.push(code.length() - before);
        }
        code.place(none);
        code.number(0, layout::outcome::DONE);
        code.push(code::EXIT, 0, 0, 0, 0);
        let most = MOST_INSTRUCTIONS;
        let instructions = code.finished(functions.start, most);
        emitted.instructions =
            instructions.map_err(|has| KernelError::TooLarge { of: "instructions", has, most })?;
        Ok(emitted)
    }
}

fn bounded(of: &'static str, has: usize, most: usize) -> Result<(), KernelError> {
    if has <= most { Ok(()) } else { Err(KernelError::TooLarge { of, has, most }) }
}

/// Goes to the clause of `r2`, by halves.
fn dispatch(code: &mut Code, labels: &[Label], first: usize, none: Label) {
    match labels {
        [] => code.jump(code::JA, 0, 0, none),
        [one] => code.jump(code::JA, 0, 0, *one),
        _ => {
            let half = labels.len() / 2;
            let right = code.label();
            code.jump(code::JGE, 2, (first + half) as i32, right);
            dispatch(code, &labels[..half], first, none);
            code.place(right);
            dispatch(code, &labels[half..], first + half, none);
        }
    }
}

/// Where a variable is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    /// A word of the firing, or two of a string.
    Local(usize),
    /// An integer that all threads share, or such a string.
    Global(usize),
    /// A word in the row of its thread.
    Thread(usize),
    /// It has a key.
    Keyed,
}

/// Where the variables are.
#[derive(Debug, Default)]
struct Places {
    all: Vec<Place>,
    /// A string is kept from clause to clause.
    keeps_strings: bool,
}

impl Places {
    fn of(
        form: &Form,
        of_threads: ThreadVariables,
        emitted: &mut Emitted,
    ) -> Result<Self, KernelError> {
        let mut places = Self::default();
        let (mut locals, mut globals, mut strings, mut of_thread) = (0, 0, 0, 0);
        let words = match of_threads {
            ThreadVariables::InRows => layout::THREAD_WORDS,
            ThreadVariables::ByKey => 0,
        };
        for variable in &form.variables {
            let is_string = variable.of == Type::String;
            let place = match variable.scope {
                _ if variable.keys.is_some() => Place::Keyed,
                VariableScope::Thread if !is_string && of_thread < words => {
                    of_thread += 1;
                    Place::Thread(of_thread - 1)
                }
                VariableScope::Thread => Place::Keyed,
                VariableScope::Clause => {
                    locals += if is_string { 2 } else { 1 };
                    places.keeps_strings |= is_string;
                    Place::Local(locals - if is_string { 2 } else { 1 })
                }
                VariableScope::Global if is_string => {
                    strings += 1;
                    Place::Global(strings - 1)
                }
                VariableScope::Global => {
                    globals += 1;
                    Place::Global(globals - 1)
                }
            };
            places.all.push(place);
        }
        bounded("words of this-> variables", locals, layout::LOCALS)?;
        bounded("global variables", globals, layout::GLOBALS)?;
        bounded("global strings", strings, layout::GLOBALS)?;
        emitted.global_strings = strings as u32;
        emitted.locals = locals;
        emitted.thread_words = of_thread;
        Ok(places)
    }
}
