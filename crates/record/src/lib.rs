//! The data of a run: the records that iotomy writes and reads, versioned, without any code that
//! measures.
//!
//! All times are nanoseconds, all sizes bytes, integers unless stated otherwise. Only [`store`]
//! does I/O; the crate knows no screen and no observer.

mod against;
mod anatomy;
#[cfg(any(test, feature = "test-support"))]
pub mod arbitrary;
pub mod calls;
mod copy;
mod histogram;
mod kept;
mod limits;
mod lossless;
mod machine;
pub mod numbers;
mod printable;
mod race;
mod roll_up;
mod snapshot;
pub mod store;
mod sweep;
mod trace;
mod view;

pub use against::{Against, Change, Difference};
pub use anatomy::{
    Anatomy, BlockIo, BlockPath, CallEvent, DissectedCall, Function, Hidden, Layer, ReadAhead,
    Requests, Sampled, Sampling, SlowCall, SlowestCalls, Stack, StackKind, UserStacks,
};
pub use copy::{CopyPart, CopyPlan, CopyRun, MoverReason, MoverRefusal, TriedMover};
pub use histogram::{BUCKETS, Buckets, Histogram};
pub use kept::{KeptRun, Measure, Point, Trend};
pub use limits::{Limit, Limits, Volume};
pub use lossless::{bytes_of, lossless};
pub use machine::Machine;
pub use printable::{ascii_sign, lines, message, printable};
pub use race::{
    Attribution, Block, Comparison, Contender, Harness, Metric, Plan, Race, RaceVerdict, Run,
    Spread, State, Term, TermKind,
};
pub use snapshot::{ProcessCounts, Snapshot};
pub use sweep::{
    AxisValue, Case, Claim, ClaimVerdict, ExperimentFacts, Extra, Sweep, SweepAxis, SweepRun, Visit,
};
pub use trace::{
    Call, Exit, FileKind, FileUse, Finding, LedgerRow, ObserverUse, Process, Running, Trace,
    Verdict,
};
pub use view::{Quantity, SortKey, View};
