//! The result of a run, and how the bytes were moved.

use std::io;

use rustix::io::Errno;

use crate::MoverDeclaration;

/// How the bytes were moved. A byte can be in more than one figure, or in none but `moved`: a hole
/// that was kept was neither copied nor touched, and is referenced only in a file that was cloned
/// whole. A hole that was written as zeros is copied and touched as zeros are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Traffic {
    /// Bytes whose pages or extents the target received references to.
    pub referenced: u64,
    /// Bytes copied from memory to memory by the kernel, each time counted.
    pub copied: u64,
    /// Bytes that passed through memory of this process.
    pub touched: u64,
}

impl std::ops::AddAssign for Traffic {
    fn add_assign(&mut self, more: Self) {
        *self = *self + more;
    }
}

impl std::ops::Add for Traffic {
    type Output = Self;

    fn add(self, more: Self) -> Self {
        Self {
            referenced: self.referenced + more.referenced,
            copied: self.copied + more.copied,
            touched: self.touched + more.touched,
        }
    }
}

/// The result of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Moved {
    /// Bytes that reached the target, including those of holes.
    pub bytes: u64,
    /// How they were moved.
    pub traffic: Traffic,
}

impl std::ops::Add for Moved {
    type Output = Self;

    fn add(self, more: Self) -> Self {
        Self { bytes: self.bytes + more.bytes, traffic: self.traffic + more.traffic }
    }
}

/// How a run ended that was no failure.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// The source ended, or the count was reached.
    Done(Moved),
    /// The kernel refused before a byte had moved: another mover may try.
    Refused {
        /// The call that was refused.
        call: &'static str,
        /// The kernel's error; `None` where it moved nothing without an error.
        errno: Option<Errno>,
    },
}

/// The end that an error belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// The source.
    Source,
    /// The target.
    Target,
    /// It is unknown.
    Either,
}

impl Side {
    /// The end that an error of a call with two ends belongs to, where the error determines it.
    pub(crate) fn from_errno(errno: Errno) -> Self {
        match errno {
            Errno::PIPE | Errno::NOSPC | Errno::DQUOT | Errno::FBIG | Errno::ROFS => Self::Target,
            _ => Self::Either,
        }
    }
}

/// A run that failed.
#[derive(Debug, thiserror::Error)]
#[error("{call}: {source} after {} bytes{}", moved.bytes, lost_text(*lost))]
pub struct MoveError {
    /// The mover.
    pub mover: &'static str,
    /// The call that failed.
    pub call: &'static str,
    /// The end it failed on.
    pub side: Side,
    /// The bytes that had reached the target.
    pub moved: Moved,
    /// How many more were taken from the source, did not reach the target, and could not be given
    /// back: of a source with a position there are none.
    pub lost: u64,
    /// The kernel's error.
    pub source: io::Error,
}

fn lost_text(lost: u64) -> String {
    match lost {
        0 => String::new(),
        lost => format!(", {lost} more read from the source and lost"),
    }
}

impl MoveError {
    /// A failure of `call`.
    pub(crate) fn new(
        of: &MoverDeclaration,
        call: &'static str,
        side: Side,
        moved: Moved,
        errno: Errno,
    ) -> Self {
        Self { mover: of.name, call, side, moved, lost: 0, source: errno.into() }
    }

    /// The same, with bytes lost in between.
    pub(crate) fn losing(self, lost: u64) -> Self {
        Self { lost, ..self }
    }
}
