//! The `null` mover.
//!
//! ```text
//! source        nothing        target
//! ```
//!
//! Walks over the source's size in blocks and touches nothing: a measurement with it is the
//! overhead of the harness. It makes no call that moves bytes, and is never chosen.

use crate::refusal::only;
use crate::{End, Holes, Job, Kind, MoveError, Moved, Mover, MoverDeclaration, Outcome};

pub(crate) struct Null;

static DECLARATION: MoverDeclaration = MoverDeclaration {
    name: "null",
    summary: "no bytes, in blocks: the overhead of the harness",
    description: "Iterates over the source's size without a call and moves nothing. For measuring \
        the harness; never chosen.",
    man: &[],
    calls: &[],
    by_reference: false,
    positioned: true,
    holes: Holes::Filled,
    chosen: &[],
    tunings: &[],
};

impl Mover for Null {
    fn declaration(&self) -> &'static MoverDeclaration {
        &DECLARATION
    }

    fn serves(&self, source: &End<'_>, _: &End<'_>, job: &Job<'_>) -> Result<(), String> {
        if job.count.is_none() {
            only(source, "source", &[Kind::Regular])?;
        }
        Ok(())
    }

    fn run(&self, source: &End<'_>, _: &End<'_>, job: &Job<'_>) -> Result<Outcome, MoveError> {
        let end = job.count.unwrap_or(source.size());
        let mut at = 0;
        while at < end {
            let block = job.want(at, job.block().max(1)) as u64;
            at = std::hint::black_box(at + block.min(end - at));
        }
        Ok(Outcome::Done(Moved::default()))
    }
}
