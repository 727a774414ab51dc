//! The data of a run: the records that iotomy writes and reads, versioned, without any code that
//! measures.
//!
//! All times are nanoseconds, all sizes bytes, integers unless stated otherwise. Only [`store`]
//! does I/O; the crate knows no screen and no observer.

mod absent;
mod against;
mod anatomy;
#[cfg(any(test, feature = "test-support"))]
pub mod arbitrary;
pub mod calls;
mod capacity;
mod connections;
mod copied_stack;
mod copy;
mod d;
mod diff;
mod doctor;
mod exchanges;
mod factor;
mod groups;
mod growth;
mod histogram;
mod interval;
mod interval_connections;
mod interval_requests;
mod interval_rings;
mod interval_rows;
mod kept;
pub mod label;
mod limits;
mod machine;
pub mod measures;
mod natural;
pub mod numbers;
mod paths;
mod printable;
mod race;
mod race_verdict;
mod ring;
mod ring_operations;
mod roll_up;
mod sample;
mod scaled;
mod slow;
mod snapshot;
mod socket;
mod socket_names;
pub mod statistic;
pub mod store;
mod sweep;
mod thread;
mod times;
mod title;
mod trace;
mod view;

pub use against::{Against, Change, Difference};
pub use anatomy::{
    Anatomy, BlockIo, BlockPath, CallEvent, DissectedCall, Function, Hidden, Layer, ReadAhead,
    Requests, Sampled, Sampling, SlowCall, SlowestCalls, Stack, StackKind, UserStacks,
};
pub use capacity::{CpuCapacity, Throttled};
pub use connections::{Connection, TcpFigures};
pub use copied_stack::{CopiedStack, MappedCode};
pub use copy::{CopyPart, CopyPlan, CopyRun, MoverReason, MoverRefusal, TriedMover};
pub use d::{DBucket, DKey, DRow, DRun};
pub use diff::{
    Delta, Diff, DiffRow, DiffSide, DiffSideName, DiffVerdict, FindingRuns, LeftOut, SlowCalls,
};
pub use doctor::{DoctorRun, TriedCheck};
pub use exchanges::Exchange;
pub use factor::Factor;
pub use groups::{Group, Groups, Key};
pub use histogram::{BUCKETS, Buckets, Histogram};
pub use interval::{IntervalCounts, Intervals};
pub use iotomy_sys::lossless::{bytes_of, lossless, path_text};
pub use kept::{KeptRun, Measure, Point, Trend};
pub use limits::{Limit, Limits, Volume};
pub use machine::Machine;
pub use natural::natural;
pub use paths::PathUse;
pub use printable::{ascii_sign, lines, message, one_line, printable};
pub use race::{
    Attribution, Comparison, Harness, Metric, Race, RaceCommand, RacePlan, Round, Run, Spread,
    State, Term, TermKind,
};
pub use race_verdict::RaceVerdict;
pub use ring::LastStretch;
pub use ring_operations::RingOperation;
pub use roll_up::{ImageRows, RollUp};
pub use sample::{CallMargins, Margins, Sample};
pub use slow::{Caller, EndedBy, WakeContext, Waker, WholeCall};
pub use snapshot::{ConnectionCounts, ImageCounts, ProcessCounts, SampledTime, Snapshot};
pub use socket::{Role, Socket};
pub use socket_names::SocketNames;
pub use sweep::{
    AxisValue, Case, Claim, ClaimVerdict, ExperimentFacts, Extra, MergedShard, Shard, Sweep,
    SweepAxis, SweepMachine, SweepRun, Visit,
};
pub use thread::Thread;
pub use times::{QUANTILES, TIME_BUCKETS, Times};
pub use title::without_numbers;
pub use trace::{
    Call, EndedCalls, Exit, FileKind, FileUse, Finding, Interval, LedgerRow, MissingFeature,
    ObserverUse, OwnUse, Process, Ring, Running, Trace, Verdict, Watched, is_bound,
};
pub use view::{Quantity, SortKey, View};
