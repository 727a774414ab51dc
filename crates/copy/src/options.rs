//! How to copy.

use std::sync::atomic::AtomicU64;

use iotomy_movers::{Job, Mover, Reflink, Sparse};

/// How to copy; by default as cp(1) does, by any mover.
#[derive(Clone)]
pub struct Options {
    /// The only mover to use; `None` leaves the choice to the chooser.
    pub mover: Option<&'static dyn Mover>,
    /// The bytes of all sources together, and the conditions for movers. Its counter gets no bytes: each copy has its
    /// own ([`crate::Progress`]).
    pub job: Job<'static>,
    /// Bytes of the sources that are left out at the beginning.
    pub skip: u64,
    /// What becomes of the old content of the target.
    pub placement: Placement,
    /// Whether the sources are written one behind the other into a target that is a file.
    pub concat: bool,
    /// Whether the target, and its directory if its name is new, are on the disk afterwards.
    pub fsync: bool,
    /// Whether the target gets mode, owner, times and extended attributes of the source.
    pub preserve: bool,
    /// Whether the target is read back and compared with the source.
    pub verify: bool,
    /// What the account has beyond sums and errors.
    pub detail: Detail,
}

/// What becomes of the old content of a regular target.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Placement {
    /// It is discarded when a mover is sure to serve.
    #[default]
    Truncate,
    /// It is replaced when the copy is complete; after a failure it is intact.
    Atomic,
    /// It stays, and the copy is written behind it.
    Append,
    /// It stays but for the bytes from this offset on that are written over.
    At(u64),
}

/// What an account has beyond sums and errors; each level includes those before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum Detail {
    /// Nothing: no clock is read.
    #[default]
    Sums,
    /// Each source with its target, movers, traffic and time.
    Parts,
    /// And of each mover that was not tried, why not.
    Reasons,
    /// And of each mover of the plan, whether it works on this machine.
    Probes,
}

impl Default for Options {
    fn default() -> Self {
        static UNCOUNTED: AtomicU64 = AtomicU64::new(0);
        Self {
            mover: None,
            job: Job::new(&UNCOUNTED),
            skip: 0,
            placement: Placement::default(),
            concat: false,
            fsync: false,
            preserve: false,
            verify: false,
            detail: Detail::default(),
        }
    }
}

impl Options {
    /// The guarantees about later writes, holes and extents.
    pub(crate) fn contract(&self) -> String {
        let shows = if self.job.by_value { "must not" } else { "may" };
        let holes = match self.job.sparse {
            Sparse::Auto => "holes of the source stay holes",
            Sparse::Never => "no holes",
            Sparse::Always => "blocks of zeros become holes",
        };
        let extents = match self.job.reflink {
            Reflink::Auto => "extents may be shared",
            Reflink::Never => "extents must not be shared",
            Reflink::Always => "extents must be shared",
        };
        format!("later writes {shows} show through; {holes}; {extents}")
    }

    /// The job for a mover, of at most so many bytes.
    pub(crate) fn job<'a>(&self, count: Option<u64>, progress: &'a AtomicU64) -> Job<'a> {
        Job { count, progress, ..self.job }
    }
}
