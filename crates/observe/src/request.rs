//! The target of a watch, and its result.

use std::collections::BTreeSet;
use std::time::Duration;

use iotomy_record::{Call, Exit, FileUse, LedgerRow, ObserverUse, Process, Running};
use iotomy_sys::launch::Command;

use crate::naming::plain_name;

/// The target of a watch.
#[derive(Debug, Clone)]
pub enum Target {
    /// A command, from its `execve` on, with every process and thread it makes.
    Command(Command),
    /// A running process with all its threads, and the processes it creates from now on.
    Process(u32),
    /// Every process of the machine but this one.
    Machine,
}

/// A watch to be made.
#[derive(Debug, Clone)]
pub struct Request {
    /// The target.
    pub target: Target,
    /// Whether to go on, after the command's end, until every process it made has ended.
    pub wait: bool,
    /// How long to watch at most. A command is not ended by it: it is waited for, unwatched.
    pub duration: Option<Duration>,
    /// Whether to count by file.
    pub files: bool,
    /// The calls to report; `None` for all. The ledger covers all calls in any case.
    pub calls: Option<BTreeSet<String>>,
    /// The largest number of rows of a bounded table; rows that find no room are counted as lost.
    pub rows: u32,
}

impl Request {
    /// The usual bound on rows of a table, which take 0.5 to 1 KiB each: a row a call and thread.
    pub const ROWS: u32 = 65_536;

    /// Whether the call `name` is to be reported.
    pub fn wants(&self, name: &str) -> bool {
        self.calls.as_ref().is_none_or(|calls| calls.contains(plain_name(name)))
    }
}

/// The result of a watch, in the record's own terms.
#[derive(Debug, Clone, PartialEq)]
pub struct Observation {
    /// From the command's `execve` to its end, or the length of the watch.
    pub wall_ns: u64,
    /// How the command ended; `None` when none was started.
    pub exit: Option<Exit>,
    /// The observer.
    pub observer: ObserverUse,
    /// One entry a program image, in the order they began.
    pub processes: Vec<Process>,
    /// One entry a program image and call.
    pub calls: Vec<Call>,
    /// One entry a program image and file.
    pub files: Vec<FileUse>,
    /// One entry a program image, or none.
    pub ledger: Vec<LedgerRow>,
    /// Processes alive at the end of the watch.
    pub still_running: Vec<Running>,
    /// Processes that the watched one had made before, and theirs: not watched.
    pub unwatched_children: Vec<Running>,
}
