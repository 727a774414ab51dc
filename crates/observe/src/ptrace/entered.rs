//! A call that a thread is in, and what is known of it before it returns.

use std::time::Instant;

use crate::naming::CallNumber;
use crate::tally::{Direction, FileRef, ImageId};

/// A call a thread is in.
#[derive(Debug)]
pub(super) struct Entered {
    pub(super) call: CallNumber,
    /// The image of its parent; `None` for the launcher's, whose `execve` is the first call of the
    /// image it makes.
    pub(super) image: Option<ImageId>,
    /// When the thread was let into it.
    pub(super) at: Instant,
    /// Its descriptors and the files behind them.
    pub(super) files: Vec<(i32, FileRef, Direction)>,
    /// The length that it maps of a file, or the number of descriptors that it polls.
    pub(super) argument: u64,
    /// Its arguments.
    pub(super) args: [u64; 6],
    /// The paths that it is given, where these are counted.
    pub(super) paths: Vec<Option<String>>,
    /// The path it executes, if it is an `execve`.
    pub(super) path: Option<String>,
    /// What the filter needs of it; `None` where its number decides.
    pub(super) facts: Option<EntryFacts>,
    /// Whether it was in progress when the watch began.
    pub(super) before: bool,
}

/// What is known of a call when it is entered: its descriptor may be another file's later.
#[derive(Debug, Clone, Default)]
pub(super) struct EntryFacts {
    /// Whether the condition needs more than the call's number.
    pub(super) is_doubtful: bool,
    pub(super) fd: i64,
    pub(super) paths: Vec<String>,
    pub(super) peer: String,
}

impl Entered {
    /// Whether nothing is known of it before it returns.
    pub(super) fn is_doubtful(&self) -> bool {
        self.facts.as_ref().is_some_and(|facts| facts.is_doubtful)
    }
}
