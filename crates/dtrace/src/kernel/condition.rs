//! A condition to BPF instructions: the body of a function that is passed the facts.
//!
//! `int f(const u64 *facts)`: 0 where the condition does not hold, 1 where it does, 2 where it
//! divided by zero. A fact is the word of its number, the word of matches is the last. There is no
//! loop, no call and no stack: `r1` is the facts, values are in `r2` to `r8`, and `r0` and `r9` are
//! scratch. Of the two sides of an operator the deeper one comes first, so seven are enough for every
//! tree but a contrived one.

use super::clause::Emitter;
use super::registers::Home;
use super::{Emitted, Functions, KernelError, Places};
use crate::assembler::{Code, Instruction};
use crate::condition::Condition;

/// Why a condition cannot be made into instructions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum EmitError {
    /// More than there is room for.
    #[error(
        "the condition takes {0} instructions, of at most {1}; divide it among several runs, or use \
         patterns in place of lists"
    )]
    TooLong(usize, usize),
    /// More values under way than registers.
    #[error("the condition has too many values at a time; calculate fewer of them in parentheses")]
    TooDeep,
}

impl Condition {
    /// The instructions of the function; its facts are `words` words, the last of them that of
    /// matches.
    ///
    /// # Errors
    /// There are more than `most`, or the tree is too contrived.
    pub fn emit(&self, words: u16, most: usize) -> Result<Vec<Instruction>, EmitError> {
        let home = Home::Registers { matches: words.saturating_sub(1) };
        let (places, functions) = (Places::default(), Functions { place: &|_| None, start: 0 });
        let mut code = Code::default();
        let emitted: Result<(), KernelError> =
            Emitter::new(&self.form, 0, home, &places, &[], functions, &[])
                .and_then(|emitter| emitter.emit(&mut code, &mut Emitted::default()));
        // A condition has nothing that is not supported.
        emitted.map_err(|_| EmitError::TooDeep)?;
        code.finished(0, most).map_err(|length| EmitError::TooLong(length, most))
    }
}
