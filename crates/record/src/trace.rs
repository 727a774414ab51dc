//! `iotomy.trace/1`: the system calls of a command's process tree.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::{
    Connection, CpuCapacity, EndedBy, Groups, Histogram, Interval, Machine, PathUse, Ring,
    RingOperation, Socket, Thread, Times, View, WholeCall,
};

/// One watched run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
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

impl Process {
    /// The number of images it stands for.
    pub fn count(&self) -> u32 {
        self.instances.max(1)
    }

    /// The name that users know it by.
    pub fn name(&self) -> &str {
        if self.called.is_empty() { &self.exec } else { &self.called }
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

/// The observer of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ObserverUse {
    /// Its registered name.
    pub name: String,
    /// The overhead that watching added to one system call of this run: the middle of the range
    /// below.
    pub cost_ns_per_call: f64,
    /// The least it added, from prices measured on this machine at start and the run's own counts of calls and of
    /// switches between threads. In records from before there was a range, both ends are 0.
    #[serde(default)]
    pub cost_ns_low: f64,
    /// The most.
    #[serde(default)]
    pub cost_ns_high: f64,
    /// Events that could not be counted because a bounded map was full or an update failed.
    pub lost_events: u64,
    /// Calls of which only one end was seen: entered before the watch, or never returned because
    /// the thread died in them or the watch ended. `exit` and `exit_group`, which never return, are
    /// not among them.
    pub incomplete_calls: u64,
    /// Files for which a bounded table had no room for the row or the name.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub lost_files: u64,
    /// Calls that are in no row of `paths`, for which a bounded table had no room.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub lost_paths: u64,
    /// Connections, or failures of such, that are in no row of `connections`, or in it without what came
    /// of them, for which a bounded table had no room.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub lost_connections: u64,
    /// Whether what io_uring did is in `ring_operations`. `None` in records from before there were any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sees_rings: Option<bool>,
    /// Requests of rings that are in no row of `ring_operations`, or in it without what came of them, for which a
    /// bounded table had no room.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub lost_requests: u64,
    /// Calls that were left out because the condition of the filter divided by zero for them.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub divided_by_zero: u64,
    /// Calls for which the condition that ends the watch divided by zero.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub end_divided_by_zero: u64,
    /// Calls that a restriction did not count: of watched threads, and slowed by watching as others are. `None`
    /// without a restriction, and where it is not known: in records of a part of a watch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub calls_left_out: Option<u64>,
    /// The least that watching added to each of these, from prices measured at start. Both ends are 0 without a
    /// restriction, and in older records.
    #[serde(default, skip_serializing_if = "is_no_time")]
    pub cost_left_out_ns_low: f64,
    /// The most.
    #[serde(default, skip_serializing_if = "is_no_time")]
    pub cost_left_out_ns_high: f64,
    /// Of the calls left out, those that were let pass at their entry: their time on a CPU is in `user_ns` of the
    /// ledger, not in `calls_on_cpu_ns`.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub calls_passed: u64,
    /// The least that the watch added to each call of every process that it did not watch, measured at start. Both
    /// ends are 0 where it adds nothing to them, and in older records.
    #[serde(default, skip_serializing_if = "is_no_time")]
    pub unwatched_ns_low: f64,
    /// The most.
    #[serde(default, skip_serializing_if = "is_no_time")]
    pub unwatched_ns_high: f64,
    /// Whether watching slowed the calls so much that times cannot be taken at face value.
    #[serde(default)]
    pub times_inflated: bool,
    /// Why a preferred observer could not watch, so that this one did; absent where it was the first choice.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fallback: Option<String>,
    /// Tasks that a watched one made in such a way that this observer could not follow them (CLONE_UNTRACED).
    #[serde(default, skip_serializing_if = "is_zero")]
    pub untraced_tasks: u64,
    /// The time of attaching and calibrating, before the command was released.
    #[serde(default)]
    pub startup_ns: u64,
    /// What the kernel refused, and what this record lacks because of that.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub missing: Vec<MissingFeature>,
}

/// A feature of the kernel that was refused.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MissingFeature {
    /// Its name, as in docs/kernels.md.
    pub feature: String,
    /// The kernel's answer: the name of an error, or the reason.
    pub reason: String,
    /// What is not in the record.
    pub lost: String,
}

/// The calls of a row that ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EndedCalls {
    /// Their number.
    pub calls: u64,
    /// Their time.
    pub wall_ns: u64,
    /// The longest.
    pub max_ns: u64,
}

impl Call {
    /// The calls that ended, of which there are a mean and a longest one; `exit` and `exit_group` end with their thread.
    /// Where the record does not tell the time of those in flight apart, these are among them.
    pub fn ended(&self) -> EndedCalls {
        let never_returns = self.syscall.starts_with("exit");
        match self.open_ns {
            Some(open_ns) if !never_returns => EndedCalls {
                calls: self.calls,
                wall_ns: self.wall_ns.saturating_sub(open_ns),
                max_ns: self.wall_times.max_ns,
            },
            _ => EndedCalls {
                calls: self.calls.saturating_add(self.in_flight),
                wall_ns: self.wall_ns,
                max_ns: self.max_ns,
            },
        }
    }
}

impl ObserverUse {
    /// The least and the most that watching added to a call, in ns. A record without a range has one price.
    pub fn cost_range_ns(&self) -> [f64; 2] {
        match self.cost_ns_high > 0.0 {
            true => [self.cost_ns_low, self.cost_ns_high],
            false => [self.cost_ns_per_call; 2],
        }
    }

    /// The least and the most that watching added to a call that was left out, in ns. A record without this range has
    /// that of the others.
    pub fn left_out_range_ns(&self) -> [f64; 2] {
        match self.cost_left_out_ns_high > 0.0 {
            true => [self.cost_left_out_ns_low, self.cost_left_out_ns_high],
            false => self.cost_range_ns(),
        }
    }

    /// The least and the most that the watch added to each call of the processes it did not watch, in ns, where that
    /// is known.
    pub fn unwatched_range_ns(&self) -> Option<[f64; 2]> {
        (self.unwatched_ns_high > 0.0).then_some([self.unwatched_ns_low, self.unwatched_ns_high])
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
pub(crate) fn is_zero(number: &u64) -> bool {
    *number == 0
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
fn is_no_time(ns: &f64) -> bool {
    *ns == 0.0
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
pub(crate) fn is_alone(image: &u32) -> bool {
    *image == 0
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
pub(crate) fn is_false(flag: &bool) -> bool {
    !*flag
}

/// One program image of one process. Times and counts are those of the image, not of the whole
/// process.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Default)]
pub struct Process {
    /// Process (thread group) id.
    pub pid: u32,
    /// Parent's process id when the image began.
    pub ppid: u32,
    /// The program's file name without its directories, as it was executed; for a process that ran
    /// before the watch, the name of the file it runs.
    pub exec: String,
    /// The name that users know it by, from the kernel's name of the process and its first
    /// argument; empty where it equals `exec`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub called: String,
    /// The name of the file whose code it runs, with links and interpreters resolved; empty where
    /// it equals `exec`, or is unknown.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub binary: String,
    /// Which of the process's images of this name it is, in the order they began; 0 where there is but one.
    #[serde(default, skip_serializing_if = "is_alone")]
    pub image: u32,
    /// The number of identical images of several processes that the entry sums up; 0 for a single
    /// one.
    #[serde(default, skip_serializing_if = "is_alone")]
    pub instances: u32,
    /// How many of these began by an `execve` in a process that another entry, or instance, has begun:
    /// no new process, and no new thread.
    #[serde(default, skip_serializing_if = "is_alone")]
    pub continued: u32,
    /// Whether it was forked and then executed another program: all it did was to get there.
    #[serde(default, skip_serializing_if = "is_false")]
    pub before_exec: bool,
    /// The arguments the image was started with; a forked child has its parent's.
    pub argv: Vec<String>,
    /// The number of arguments where `argv` has only the first of them, and ends with `…`; 0 where it
    /// has all.
    #[serde(default, skip_serializing_if = "is_alone")]
    pub argv_words: u32,
    /// Threads that lived in the image, the first included.
    pub threads: u32,
    /// User time as the kernel accounts it.
    pub user_ns: u64,
    /// System time as the kernel accounts it.
    pub system_ns: u64,
    /// Page faults served without I/O.
    pub minor_faults: u64,
    /// Page faults that waited for I/O.
    pub major_faults: u64,
    /// Times a thread gave up the CPU to wait.
    pub voluntary_switches: u64,
    /// Times a thread was made to give up the CPU.
    pub involuntary_switches: u64,
    /// Largest resident set of the process until the image ended.
    pub max_rss_bytes: u64,
    /// Bytes that the kernel fetched from storage for its threads (`read_bytes` of /proc/PID/io),
    /// including read-ahead and paging. Absent when the observer or the kernel does not count them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub storage_read_bytes: Option<u64>,
}

/// One system call of one program image.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Default)]
pub struct Call {
    /// Process id.
    pub pid: u32,
    /// Program image.
    pub exec: String,
    /// Which of the process's images of this name it is, in the order they began; 0 where there is but one.
    #[serde(default, skip_serializing_if = "is_alone")]
    pub image: u32,
    /// The call's name. A call by the 32-bit entry has `(i386)` behind its name.
    pub syscall: String,
    /// Calls that returned.
    pub calls: u64,
    /// Of those, the ones that returned an error.
    pub errors: u64,
    /// Errors by name.
    #[serde(deserialize_with = "crate::store::unique_keys")]
    pub error_kinds: BTreeMap<String, u64>,
    /// The bytes that the calls moved: the sum of the non-negative returns, when the call returns a count of bytes, and
    /// of the messages of sendmmsg and recvmmsg; without what was only looked at or cut off; else 0.
    pub bytes: u64,
    /// From entry to return, summed over calls (those that never returned included, until the
    /// thread or the watch ended).
    pub wall_ns: u64,
    /// Of that, on a CPU. Absent when the observer cannot know.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_cpu_ns: Option<u64>,
    /// The blocked part of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub blocked_ns: Option<u64>,
    /// Of that, ready to run and waiting for a CPU.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub runnable_ns: Option<u64>,
    /// The longest single call, those that never returned included.
    #[serde(default)]
    pub max_ns: u64,
    /// In the record of an interval: whether no call took longer, because a longer one was before.
    #[serde(default, skip_serializing_if = "is_false")]
    pub max_is_bound: bool,
    /// Calls that were entered and did not return during the watch, or were in progress when the
    /// watch began.
    pub in_flight: u64,
    /// Their part of `wall_ns`; absent where there are none, in older records and in those of intervals.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub open_ns: Option<u64>,
    /// The number of these that were in progress when the watch began, and returned.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub entered_before: u64,
    /// Polled descriptors, summed over the calls that returned: for poll and select and their kin,
    /// when files were watched.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asked: Option<u64>,
    /// Descriptors, or events of them, that were ready: of these calls and of epoll_wait and its kin.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ready: Option<u64>,
    /// Non-negative returns.
    pub return_log2: Histogram,
    /// Time from entry to return, of the calls that returned.
    pub wall_log2: Histogram,
    /// On-CPU time, of the calls that returned.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_cpu_log2: Option<Histogram>,
    /// Blocked time, of the calls that returned and did block.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub blocked_log2: Option<Histogram>,
    /// `wall_log2` in finer buckets, with quantiles. Empty in older records.
    #[serde(default, skip_serializing_if = "Times::is_empty")]
    pub wall_times: Times,
    /// The same of on-CPU time. Absent where that equals wall time, since no call left its CPU, and
    /// where the observer cannot know; see [`Call::on_cpu_times`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_cpu_times: Option<Times>,
    /// The same of blocked time.
    #[serde(default, skip_serializing_if = "Times::is_empty")]
    pub blocked_times: Times,
}

impl Call {
    /// On-CPU times, where the observer knew them.
    pub fn on_cpu_times(&self) -> Option<&Times> {
        self.on_cpu_times.as_ref().or(self.on_cpu_ns.is_some().then_some(&self.wall_times))
    }
}

/// The kind of file behind a descriptor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FileKind {
    /// A regular file.
    File,
    /// A directory.
    Directory,
    /// A pipe or FIFO.
    Pipe,
    /// A socket.
    Socket,
    /// A character device.
    Char,
    /// A block device.
    Block,
    /// An eventfd.
    Eventfd,
    /// Another anonymous inode: epoll, timerfd, signalfd, pidfd…
    Anon,
    /// Anything else.
    #[default]
    Other,
}

impl FileKind {
    /// The word the record and the reports use.
    pub fn name(self) -> &'static str {
        match self {
            Self::File => "file",
            Self::Directory => "directory",
            Self::Pipe => "pipe",
            Self::Socket => "socket",
            Self::Char => "char",
            Self::Block => "block",
            Self::Eventfd => "eventfd",
            Self::Anon => "anon",
            Self::Other => "other",
        }
    }
}

/// One file of one program image. "Reads" are all calls that take bytes from a descriptor, "writes"
/// all calls that give bytes to one; a call that does both counts for both files. Fields that are
/// known for regular files only are absent otherwise.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct FileUse {
    /// Process id.
    pub pid: u32,
    /// Program image.
    pub exec: String,
    /// Which of the process's images of this name it is, in the order they began; 0 where there is but one.
    #[serde(default, skip_serializing_if = "is_alone")]
    pub image: u32,
    /// The kind.
    pub kind: FileKind,
    /// Its path, or `pipe:[inode]`, `socket:[inode]`, `anon_inode:[eventfd]`….
    pub path: String,
    /// Calls that read from it.
    pub read_calls: u64,
    /// Bytes they returned.
    pub read_bytes: u64,
    /// Calls that wrote to it.
    pub write_calls: u64,
    /// Bytes they returned.
    pub write_bytes: u64,
    /// Calls that mapped it into memory.
    #[serde(default)]
    pub map_calls: u64,
    /// The length of these mappings.
    #[serde(default)]
    pub mapped_bytes: u64,
    /// The kind of file system it is on, as `ext4`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file_system: Option<String>,
    /// Its size when it was first met.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size_bytes: Option<u64>,
    /// The room it took on its file system in the end, where it was still as large: less than its size
    /// where it has holes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub allocated_bytes: Option<u64>,
    /// How much of it was in the page cache then, in whole pages.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cached_bytes: Option<u64>,
    /// How much of it was in memory only, still to be written, when the watch had ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dirty_bytes: Option<u64>,
    /// What it is connected to, where it is a socket and the observer knows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub socket: Option<Socket>,
}

/// Where the threads of one program image spent their time:
/// thread = user + calls on CPU + blocked + runnable + residual.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Default)]
pub struct LedgerRow {
    /// Process id.
    pub pid: u32,
    /// Program image.
    pub exec: String,
    /// Which of the process's images of this name it is, in the order they began; 0 where there is but one.
    #[serde(default, skip_serializing_if = "is_alone")]
    pub image: u32,
    /// Lifetimes of the image's threads while watched, summed.
    pub thread_ns: u64,
    /// On a CPU outside system calls; page faults and interrupts taken there are part of it.
    pub user_ns: u64,
    /// On a CPU inside system calls.
    pub calls_on_cpu_ns: u64,
    /// Blocked, inside calls or in a page fault.
    pub blocked_ns: u64,
    /// The part of it in page faults outside calls. Absent where the observer did not report it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fault_ns: Option<u64>,
    /// Of `blocked_ns`, stopped by a signal, or by a debugger.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub stopped_ns: u64,
    /// Ready to run and waiting for a CPU.
    pub runnable_ns: u64,
    /// `thread_ns` less the five above; negative when they overlap.
    pub residual_ns: i64,
    /// CPU time of the threads that io_uring made in the process, which are not part of `thread_ns`.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub worker_ns: u64,
}

/// A judgement on the numbers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Finding {
    /// Registered id.
    pub id: String,
    /// How it is meant.
    pub verdict: Verdict,
    /// The finding in one sentence.
    pub text: String,
    /// The numbers it rests on.
    #[serde(deserialize_with = "crate::store::unique_keys")]
    pub evidence: BTreeMap<String, serde_json::Value>,
    /// The advice, where there is any.
    #[serde(rename = "try")]
    pub advice: Option<String>,
}

/// How a [`Finding`] is meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// The number cannot be true.
    Impossible,
    /// The number deserves doubt.
    Suspect,
    /// There is a better method.
    Advice,
    /// Worth knowing.
    Note,
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
