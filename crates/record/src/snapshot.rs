//! The counts of a watch so far, summed up for a snapshot. It is never saved: a record describes a
//! watch that has ended.

use crate::{Call, Connection, Exchange, FileUse, LedgerRow, RingOperation, TcpFigures, WholeCall};

/// The counts of a running watch at one moment.
///
/// Counts only grow from one snapshot to the next, except for the unfinished call of a thread,
/// whose time is read while it changes: callers that subtract treat a negative difference as 0.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Snapshot {
    /// Since the watch began.
    pub elapsed_ns: u64,
    /// One row a call, over all processes, without distributions and kinds of errors. Calls that
    /// have not returned yet are `in_flight`, and their time until now is in the row.
    pub calls: Vec<Call>,
    /// One row a file; `pid` and `exec` are its only user's, or 0 and empty where there are several.
    pub files: Vec<FileUse>,
    /// One row a program image with a thread alive.
    pub processes: Vec<ProcessCounts>,
    /// The ledger of all threads there are and were, until now; `None` when the observer has none.
    pub ledger: Option<LedgerRow>,
    /// Threads alive.
    pub threads: u64,
    /// The images that may have changed since the snapshot before.
    pub images: Vec<ImageCounts>,
    /// The same by program image, of images with a thread alive where the observer knows that: at
    /// most [`Snapshot::MOST_USES`] rows. `exec` is the name that [`ProcessCounts::exec`] has.
    pub uses: Vec<FileUse>,
    /// One row for the connections with a peer, over all processes, without what their calls moved;
    /// `pid` and `exec` are as in [`Snapshot::files`]. Empty where connections are not counted.
    pub connections: Vec<ConnectionCounts>,
    /// One row an operation of io_uring, over all processes. Empty where rings are not watched.
    pub ring_operations: Vec<RingOperation>,
    /// One row for the requests over connections with a peer, of all processes, without whose they are. `in_flight` are
    /// those that have no answer yet. Empty where requests are not timed.
    pub requests: Vec<Exchange>,
    /// Of a watch whose snapshots take them: the slowest calls since the snapshot before, each whole.
    pub slowest: Vec<WholeCall>,
    /// Images that have ended and will be in no later snapshot.
    pub forgotten: Vec<u32>,
    /// Calls and files that found no room in a table.
    pub lost: u64,
    /// Connections, and outcomes of such, that found no room.
    pub lost_connections: u64,
    /// Requests of rings that found no room, or whose end was not seen.
    pub lost_requests: u64,
    /// Requests of connections that found no room, and calls on connections that found none.
    pub lost_exchanges: u64,
    /// Where a part of the time is counted: which. Counts are what was seen in it.
    pub sampled: Option<SampledTime>,
}

/// The part of the time that is counted, and estimates of the whole. What they estimate is since the watch began, and only
/// grows.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct SampledTime {
    /// Of what came since the snapshot before, each stands for so many.
    pub factor: u32,
    /// Calls that returned, by the factors of their time.
    pub calls: u64,
    /// Of these, the ones that left their CPU.
    pub waits: u64,
    /// The variance of the estimated number of a call, by its name; empty for those that have none of their own. Calls
    /// without any are left out.
    pub variances: Vec<(String, f64)>,
}

impl Snapshot {
    /// The most rows of [`Snapshot::uses`].
    pub const MOST_USES: usize = 50_000;
}

/// The counts of a process so far in its current program.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ProcessCounts {
    /// Its id.
    pub pid: u32,
    /// The program it runs.
    pub exec: String,
    /// The title that it has set, which may be another one in the next snapshot; empty for none.
    pub title: String,
    /// Threads alive.
    pub threads: u32,
    /// Calls that returned.
    pub calls: u64,
    /// Of those, the ones that returned an error.
    pub errors: u64,
    /// Bytes that calls returned.
    pub bytes: u64,
    /// Wall time of its calls.
    pub calls_ns: u64,
    /// The time of its threads by state; `None` when the observer cannot separate them.
    pub ledger: Option<LedgerRow>,
    /// The call most of its threads are in.
    pub inside: Option<String>,
}

impl ProcessCounts {
    /// What it is called now.
    pub fn name(&self) -> &str {
        if self.title.is_empty() { &self.exec } else { &self.title }
    }
}

/// The counts of a program image so far.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ImageCounts {
    /// Its number in this watch.
    pub id: u32,
    /// Process id.
    pub pid: u32,
    /// Its name as [`crate::Process::exec`] has it.
    pub exec: String,
    /// Its name as [`crate::Process::called`] has it.
    pub called: String,
    /// Its title, as [`crate::Process::title`] has it.
    pub title: String,
    /// Threads alive.
    pub threads: u32,
    /// The time of its threads by state; `None` when the observer cannot separate them.
    pub ledger: Option<LedgerRow>,
    /// One row a call, as in [`Snapshot::calls`], with kinds of errors.
    pub calls: Vec<Call>,
    /// One row for its connections with a peer.
    pub connections: Vec<ConnectionCounts>,
    /// One row an operation of io_uring.
    pub ring_operations: Vec<RingOperation>,
    /// One row for its requests over connections with a peer: those that another one has followed, or the end of their
    /// connection. `in_flight` are those that have no answer yet.
    pub requests: Vec<Exchange>,
}

impl ImageCounts {
    /// The name that users know its program by, as [`crate::Process::program`] has it.
    pub fn program(&self) -> &str {
        if self.called.is_empty() { &self.exec } else { &self.called }
    }
}

/// The connections with a peer so far. A connect that has no outcome yet is not among them.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ConnectionCounts {
    /// The counts; TCP's figures are of those that have ended.
    pub counts: Connection,
    /// TCP's figures of those that are open.
    pub open: Option<TcpFigures>,
}
