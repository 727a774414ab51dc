//! A job: the bytes to move, the conditions, and the result.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use rustix::io::Errno;

use crate::Declaration;
use crate::refusal::is_refusal;

/// The default block size of movers that pass bytes through a buffer of their own, in bytes: larger
/// blocks gain nothing and leave the CPU's cache.
pub const BLOCK_SIZE: usize = 256 * 1024;

/// How long requests in flight may take without any completion before they are cancelled and
/// repeated: longer than a healthy disk takes. Nothing is lost when it was too short.
const PATIENCE: Duration = Duration::from_secs(5);

/// Whether a target may share its source's extents until one of them is written to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Reflink {
    /// Where the file system can.
    #[default]
    Auto,
    /// Not at all: the bytes are to exist twice.
    Never,
    /// Only so: better no copy than one that takes room.
    Always,
}

/// The treatment of holes of a regular source, and of zeros, in a regular target that does not
/// append. [`crate::chooser::run`] handles it; a mover that is run by itself obeys only
/// [`Sparse::Never`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Sparse {
    /// Holes of the source are holes of the target. Without effect on other pairs.
    #[default]
    Auto,
    /// The target has no holes: a hole in the source is written as zeros. Without effect on other
    /// pairs.
    Never,
    /// Holes of the source, and blocks that hold only zeros, are holes of the target, whatever the
    /// source is; [`crate::chooser::possible`] tells where that is impossible.
    Always,
}

/// The bytes to move, and the conditions.
#[derive(Debug, Clone, Copy)]
pub struct Job<'a> {
    /// How many bytes at most; `None` until the source ends.
    pub count: Option<u64>,
    /// Bytes a request, for movers that have a choice; `None` leaves it to the plan, and to movers
    /// that are run without one.
    pub block_size: Option<usize>,
    /// Requests in flight, for movers that can have several.
    pub depth: u32,
    /// Threads, for movers that can use several.
    pub threads: u32,
    /// Whether later writes to the source must not show through in the target.
    pub by_value: bool,
    /// Whether the target may share the source's extents on the disk.
    pub reflink: Reflink,
    /// The treatment of holes between two regular files.
    pub sparse: Sparse,
    /// Whether mapped windows are filled when they are mapped, and not at each first touch.
    pub populate: bool,
    /// Whether mapped windows are to be of huge pages where the file system has them.
    pub huge_pages: bool,
    /// How long requests in flight may take without any completion before they are cancelled and
    /// repeated, for movers that can.
    pub patience: Duration,
    /// Bytes moved so far, for progress displays.
    pub progress: &'a AtomicU64,
}

impl<'a> Job<'a> {
    /// Everything there is, as movers like it best.
    pub fn new(progress: &'a AtomicU64) -> Self {
        Self {
            count: None,
            block_size: None,
            depth: 8,
            threads: 2,
            by_value: false,
            reflink: Reflink::Auto,
            sparse: Sparse::Auto,
            populate: false,
            huge_pages: false,
            patience: PATIENCE,
            progress,
        }
    }

    /// Bytes a request.
    pub fn block(&self) -> usize {
        self.block_size.unwrap_or(BLOCK_SIZE)
    }

    /// How many more bytes are wanted after `moved`, at most `most`.
    pub fn want(&self, moved: u64, most: usize) -> usize {
        let left = self.count.map_or(u64::MAX, |count| count.saturating_sub(moved));
        usize::try_from(left).map_or(most, |left| left.min(most))
    }

    /// Reports that `bytes` more have reached the target.
    pub fn advance(&self, bytes: u64) {
        self.progress.fetch_add(bytes, Ordering::Relaxed);
    }
}

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
        of: &Declaration,
        call: &'static str,
        side: Side,
        moved: Moved,
        errno: Errno,
    ) -> Self {
        Self { mover: of.name, call, side, moved, lost: 0, source: errno.into() }
    }

    /// Whether the kernel has refused, too late for another mover, a call that is not of the plainest.
    pub fn is_late_refusal(&self) -> bool {
        let errno = Errno::from_io_error(&self.source);
        !matches!(self.call, "read" | "write") && errno.is_some_and(is_refusal)
    }

    /// The same, with bytes lost in between.
    pub(crate) fn losing(self, lost: u64) -> Self {
        Self { lost, ..self }
    }
}
