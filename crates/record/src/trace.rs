//! `iotomy.trace/1`: the system calls of a command's process tree.

mod call;
mod file;
mod finding;
mod ledger;
mod observer;
mod process;
mod stretch;

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

pub use self::call::{Call, EndedCalls, is_bound};
pub use self::file::{FileKind, FileUse};
pub use self::finding::{Finding, Verdict};
pub use self::ledger::LedgerRow;
pub use self::observer::{MissingFeature, ObserverUse};
pub use self::process::Process;
pub use self::stretch::{Interval, OwnUse, Ring};
use crate::{
    Connection, CpuCapacity, EndedBy, Exchange, Groups, Machine, PathUse, RingOperation, Sample,
    Thread, View, WholeCall,
};

/// One watched run. An observer leaves its head blank: schema, beginning, command, machine, findings and view.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Trace {
    /// Always [`Trace::SCHEMA`].
    pub schema: String,
    /// When the watch began, RFC 3339.
    pub started: String,
    /// The command and its arguments; empty when a running process or the machine was watched.
    pub command: Vec<String>,
    /// From the command's `execve` to its end, or the length of the watch.
    pub wall_ns: u64,
    /// How the command ended; `null` when none was started or it was still running.
    pub exit: Option<Exit>,
    /// The interval of a watch that this is the record of; absent in that of a whole watch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interval: Option<Interval>,
    /// The stretch at the end of a watch that this is the record of; absent in that of a whole watch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ring: Option<Ring>,
    /// The part of the time in which calls were counted; absent where that is all of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sample: Option<Sample>,
    /// Where it ran.
    pub machine: Machine,
    /// The CPUs that the watched processes might use; absent where that is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_capacity: Option<CpuCapacity>,
    /// The observer, and its overhead.
    pub observer: ObserverUse,
    /// One entry a (process, program image).
    pub processes: Vec<Process>,
    /// One entry a (process, program image, system call).
    pub calls: Vec<Call>,
    /// One entry a (process, program image, operation) of io_uring.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ring_operations: Vec<RingOperation>,
    /// One entry a (process, program image, file); empty where files were not watched.
    pub files: Vec<FileUse>,
    /// One entry a (process, program image, call, outcome, path), most calls first; empty where paths
    /// were not counted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub paths: Vec<PathUse>,
    /// One entry a (process, program image, role, peer); empty where peers were not counted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub connections: Vec<Connection>,
    /// One entry a (process, program image, role, peer), most time first; empty where requests were not timed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub requests: Vec<Exchange>,
    /// The calls that took longest, the longest first; empty where none were to be kept.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub slowest: Vec<WholeCall>,
    /// The call that ended the watch; absent where none did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_by: Option<EndedBy>,
    /// One entry per (process, program image). Empty when the observer cannot separate the states.
    pub ledger: Vec<LedgerRow>,
    /// Calls by the values of some variables; absent where they were not to be grouped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<Groups>,
    /// One entry a thread of a (process, program image); empty where threads were not requested.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub threads: Vec<Thread>,
    /// The findings.
    pub findings: Vec<Finding>,
    /// Processes that outlived the watch.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub still_running: Vec<Running>,
    /// Processes that the watched one had made before the watch began, and theirs: not watched.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unwatched_children: Vec<Running>,
    /// The names of remote addresses, where they were requested and are known.
    #[serde(
        default,
        skip_serializing_if = "BTreeMap::is_empty",
        deserialize_with = "crate::store::unique_keys"
    )]
    pub host_names: BTreeMap<String, String>,
    /// The running processes that were to be watched, where no command was run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub targets: Vec<Watched>,
    /// The view that was requested, so that the saved record prints the same.
    #[serde(default)]
    pub view: View,
}

impl Trace {
    /// The schema this type reads and writes.
    pub const SCHEMA: &'static str = "iotomy.trace/1";

    /// How many processes there were: an exec begins an image, and no process.
    pub fn process_count(&self) -> u64 {
        let images: u64 = self.processes.iter().map(|entry| u64::from(entry.count())).sum();
        images.saturating_sub(self.continued())
    }

    /// How many threads there were: the one that executes a program goes on in the image it makes.
    pub fn thread_count(&self) -> u64 {
        let threads: u64 = self.processes.iter().map(|entry| u64::from(entry.threads)).sum();
        threads.saturating_sub(self.continued())
    }

    /// The number of images that continue another's process. In records without this mark there is
    /// an entry per image: there, all but the first of a process.
    fn continued(&self) -> u64 {
        let says = |entry: &Process| entry.continued > 0 || entry.instances > 0;
        if self.processes.iter().any(says) {
            return self.processes.iter().map(|entry| u64::from(entry.continued)).sum();
        }
        let pids: BTreeSet<u32> = self.processes.iter().map(|entry| entry.pid).collect();
        (self.processes.len() - pids.len()) as u64
    }
}

/// How a command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Exit {
    /// It exited with this status.
    Code(i32),
    /// A signal of this number ended it.
    Signal(i32),
}

impl Default for Exit {
    fn default() -> Self {
        Self::Code(0)
    }
}

impl Exit {
    /// The status a shell reports: the code, or 128 + the signal.
    pub fn status(self) -> i32 {
        match self {
            Self::Code(code) => code,
            Self::Signal(signal) => signal.saturating_add(128),
        }
    }
}

/// Running processes that were to be watched.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Watched {
    /// `process`, `name`, `cgroup`, `unit` or `container`.
    pub kind: String,
    /// The id, pattern, path or name, as the user wrote it.
    pub name: String,
}

/// A process that was alive when the watch ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Running {
    /// Process id.
    pub pid: u32,
    /// Program image.
    pub exec: String,
}
