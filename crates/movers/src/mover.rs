//! The contract of movers: the work between two descriptors.

use crate::declaration::MoverDeclaration;
use crate::end::End;
use crate::job::Job;
use crate::outcome::{MoveError, Outcome};

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
    fn declaration(&self) -> &'static MoverDeclaration;

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
    fn session<'a>(
        &'a self,
        source: &'a End<'a>,
        target: &'a End<'a>,
    ) -> Box<dyn MoverSession + 'a> {
        Box::new(PlainSession { mover: self, source, target })
    }
}

/// Runs of one mover between the same descriptors.
pub trait MoverSession {
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

impl<M: Mover + ?Sized> MoverSession for PlainSession<'_, M> {
    fn run(&mut self, job: &Job<'_>) -> Result<Outcome, MoveError> {
        self.mover.run(self.source, self.target, job)
    }
}
