//! The parts of a mover: its declaration, and its work between two descriptors.

use crate::end::End;
use crate::job::{Job, MoveError, Outcome};
use crate::route::Route;

/// The declaration of a mover; help, docs and the contract tests are made from it.
#[derive(Debug, Clone, Copy)]
pub struct Declaration {
    /// Its name, as `--mover` and the record have it.
    pub name: &'static str,
    /// A one-line summary.
    pub summary: &'static str,
    /// The path of the bytes: copies, blocking calls, crossings.
    pub description: &'static str,
    /// Manual pages that describe the calls.
    pub man: &'static [&'static str],
    /// The calls it makes to move bytes, and no others; after `ring:`, the operations of io_uring
    /// that it submits for it.
    pub calls: &'static [&'static str],
    /// Whether later writes to the source can show through in the target, because the target was
    /// given references to the source's pages.
    pub by_reference: bool,
    /// Whether it moves from and to offsets of its own, and so leaves the descriptors' positions
    /// alone until the end.
    pub positioned: bool,
    /// Its own treatment of holes of a regular source; [`crate::chooser::run`] keeps the holes for
    /// a mover that does not.
    pub holes: Holes,
    /// The routes on which it is tried unasked, and its place there.
    pub chosen: &'static [Choice],
    /// Options of `iotomy copy`, without the dashes, that its speed depends on, with values worth comparing: a text a
    /// run.
    pub tunings: &'static [&'static str],
}

/// A place in the order of movers on some routes.
#[derive(Debug, Clone, Copy)]
pub struct Choice {
    /// The routes.
    pub routes: &'static [Route],
    /// Movers of lower ranks are tried first. See [`crate::route`] for those given.
    pub rank: u8,
    /// Why it has this rank.
    pub reason: &'static str,
}

/// A mover's own treatment of holes of a regular source.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Holes {
    /// They are holes of the target.
    Kept,
    /// They are holes of the target or zeros, as the file system likes.
    AsItComes,
    /// They are read as zeros, and these are written.
    Filled,
    /// As [`Holes::Filled`]; but as the bytes pass through its buffer, zeros can be found among
    /// them and left out: the only method to get holes where the source has none.
    Found,
}

impl Holes {
    /// The text for lists and plans.
    pub fn summary(self) -> &'static str {
        match self {
            Self::Kept => "kept",
            Self::AsItComes => "kept or written as zeros, as the file system chooses",
            Self::Filled => "written as zeros",
            Self::Found => "written as zeros, or found among the bytes",
        }
    }
}

/// Whether a mover can work on this machine, found by trying.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Probe {
    /// It works.
    Ready,
    /// It does not, for this reason.
    Unsupported(String),
}

/// A mechanism to move bytes.
pub trait Mover: Sync {
    /// Its declaration.
    fn declaration(&self) -> &'static Declaration;

    /// Tries whether it works here, without side effects that last. Features that every kernel has,
    /// and those that depend on the file system, count as working.
    fn probe(&self) -> Probe {
        Probe::Ready
    }

    /// Whether it can serve this pair of descriptors, from the known facts, without trying.
    ///
    /// # Errors
    /// Why it cannot, in a few words.
    fn serves(&self, source: &End<'_>, target: &End<'_>, job: &Job<'_>) -> Result<(), String>;

    /// The total size of a run's buffers, as far as the job determines it.
    fn buffers(&self, _source: &End<'_>, _target: &End<'_>, _job: &Job<'_>) -> u64 {
        0
    }

    /// Moves bytes until the source ends or the job's count is reached, from and to the
    /// descriptors' positions, which are behind the moved bytes afterwards.
    ///
    /// # Errors
    /// A failure that is not a refusal: of the source, of the target, or of any kind after bytes
    /// had moved. It has the number of bytes moved.
    fn run(&self, source: &End<'_>, target: &End<'_>, job: &Job<'_>) -> Result<Outcome, MoveError>;

    /// Several runs between the same descriptors, one after the other: the set-up of the first is
    /// kept if it serves the next. A mover without such a set-up keeps this default.
    fn session<'a>(&'a self, source: &'a End<'a>, target: &'a End<'a>) -> Box<dyn Session + 'a> {
        Box::new(PlainSession { mover: self, source, target })
    }
}

/// Runs of one mover between the same descriptors.
pub trait Session {
    /// As [`Mover::run`]. Only the count of the job may differ from that of the previous run.
    ///
    /// # Errors
    /// As [`Mover::run`].
    fn run(&mut self, job: &Job<'_>) -> Result<Outcome, MoveError>;
}

/// Runs that keep nothing in between.
struct PlainSession<'a, M: ?Sized> {
    mover: &'a M,
    source: &'a End<'a>,
    target: &'a End<'a>,
}

impl<M: Mover + ?Sized> Session for PlainSession<'_, M> {
    fn run(&mut self, job: &Job<'_>) -> Result<Outcome, MoveError> {
        self.mover.run(self.source, self.target, job)
    }
}
