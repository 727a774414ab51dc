//! A job: the bytes to move, and the conditions.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

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
