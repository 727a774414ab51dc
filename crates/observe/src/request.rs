//! The target of a watch, and its result.

use std::collections::BTreeSet;
use std::time::Duration;

use iotomy_record::{
    Call, CpuCapacity, Exit, FileUse, Groups, LedgerRow, ObserverUse, PathUse, Process, Running,
    Thread, WholeCall,
};
use iotomy_sys::launch::Command;

use crate::filter::{Filter, Verdict};
use crate::naming::plain_name;
use crate::selection::Selection;

/// The target of a watch.
#[derive(Debug, Clone)]
pub enum Target {
    /// A command, from its `execve` on, with every process and thread it makes.
    Command(Command),
    /// Running processes with all their threads.
    Running(Selection),
    /// Every process of the machine but this one.
    Machine,
}

impl Target {
    /// A running process, and its descendants.
    pub fn process(pid: u32) -> Self {
        Self::Running(Selection::process(pid))
    }
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
    /// Whether to count by path, where calls are given one.
    pub paths: bool,
    /// Whether to count by thread.
    pub threads: bool,
    /// How many of the slowest calls to keep whole, at most [`Request::MOST_SLOW`].
    pub slowest: u32,
    /// The calls to report; `None` for all. The ledger covers all calls in any case.
    pub calls: Option<BTreeSet<String>>,
    /// Of these, the ones to count, one by one.
    pub filter: Filter,
    /// The largest number of rows of a bounded table; rows that find no room are counted as lost.
    pub rows: u32,
}

impl Request {
    /// The usual bound on rows of a table, which take 0.5 to 1 KiB each: a row a call and thread.
    pub const ROWS: u32 = 65_536;

    /// The most of the slowest calls that are kept: as many as `trace.h` has room for.
    pub const MOST_SLOW: u32 = 100;

    /// Whether the call `name` is to be reported.
    pub fn wants(&self, name: &str) -> bool {
        self.calls.as_ref().is_none_or(|calls| calls.contains(plain_name(name)))
            && self.filter.of_call(name) != Verdict::None
    }
}

/// The result of a watch, in the record's own terms.
#[derive(Debug, Clone, PartialEq)]
pub struct Observation {
    /// From the command's `execve` to its end, or the length of the watch.
    pub wall_ns: u64,
    /// How the command ended; `None` when none was started.
    pub exit: Option<Exit>,
    /// The CPUs that the watched processes might use, if that is known.
    pub cpu_capacity: Option<CpuCapacity>,
    /// The observer.
    pub observer: ObserverUse,
    /// One entry a program image, in the order they began.
    pub processes: Vec<Process>,
    /// One entry a program image and call.
    pub calls: Vec<Call>,
    /// One entry a program image and file.
    pub files: Vec<FileUse>,
    /// One entry a program image, call, outcome and path.
    pub paths: Vec<PathUse>,
    /// The calls that took longest, the longest first.
    pub slowest: Vec<WholeCall>,
    /// Calls by the values of some variables, where they were to be grouped.
    pub by: Option<Groups>,
    /// One entry a program image, or none.
    pub ledger: Vec<LedgerRow>,
    /// One entry a thread of a program image, or none.
    pub threads: Vec<Thread>,
    /// Processes alive at the end of the watch.
    pub still_running: Vec<Running>,
    /// Where just the selected processes are watched: those that they had made before, and theirs.
    pub unwatched_children: Vec<Running>,
}

impl Observation {
    /// Of a watch that has not begun.
    pub fn nothing() -> Self {
        Self {
            wall_ns: 0,
            exit: None,
            cpu_capacity: None,
            observer: ObserverUse {
                name: String::new(),
                cost_ns_per_call: 0.0,
                cost_ns_low: 0.0,
                cost_ns_high: 0.0,
                lost_events: 0,
                incomplete_calls: 0,
                lost_files: 0,
                lost_paths: 0,
                divided_by_zero: 0,
                times_inflated: false,
                startup_ns: 0,
            },
            processes: Vec::new(),
            calls: Vec::new(),
            files: Vec::new(),
            paths: Vec::new(),
            slowest: Vec::new(),
            by: None,
            ledger: Vec::new(),
            threads: Vec::new(),
            still_running: Vec::new(),
            unwatched_children: Vec::new(),
        }
    }
}
