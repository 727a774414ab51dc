//! Single calls, whole: the slowest, and the one that ended the watch.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::copied_stack::CopiedStack;

/// How a call ended the watch, by fulfilling the condition on it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct EndedBy {
    /// The first call that fulfilled it.
    pub call: WholeCall,
    /// The calls counted until then, this one included, where the condition asks for them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub count: Option<u64>,
    /// The bytes they moved.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sum_bytes: Option<u64>,
    /// The time from their entries to their returns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sum_duration_ns: Option<u64>,
}

/// A call that returned, kept whole.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct WholeCall {
    /// Process id.
    pub pid: u32,
    /// Program image.
    pub exec: String,
    /// Which of the process's images of this name it is, in the order they began; 0 where there is but one.
    #[serde(default, skip_serializing_if = "crate::absent::is_alone")]
    pub image: u32,
    /// The thread that made it.
    pub tid: u32,
    /// That thread's name.
    pub thread: String,
    /// The call.
    pub syscall: String,
    /// Its arguments, as the kernel got them: numbers and addresses. Six, where it is not known how many
    /// the call has; none of an exec that succeeded.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub arguments: Vec<u64>,
    /// The path it was given, or that of the file behind its descriptor, if either could be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// The value it returned; 0 where it failed.
    pub returned: i64,
    /// The error, as `ENOENT`, where it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// The bytes it moved, for calls that return such a count.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
    /// When it was entered, from the beginning of the watch.
    pub start_ns: u64,
    /// From entry to return.
    pub wall_ns: u64,
    /// Of that, on a CPU; `null` where the observer cannot separate the states.
    pub on_cpu_ns: Option<u64>,
    /// Of that, asleep.
    pub blocked_ns: Option<u64>,
    /// Of that, ready to run without a CPU.
    pub runnable_ns: Option<u64>,
    /// Who ended its last sleep, where it slept and the observer knows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub woken_by: Option<Waker>,
    /// The functions of user space that it was made in, the innermost first, as far as their frames tell.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub callers: Vec<Caller>,
    /// Where the innermost of them returns to, if it has no frame of its own; until they have their names.
    #[serde(skip)]
    pub on_top: Option<Caller>,
    /// The stack that it was made on, by which the others are found; until they have their names.
    #[serde(skip)]
    pub stack: Option<Arc<CopiedStack>>,
}

/// A function of user space that a call was made in. One of which nothing is known stands for those that keep no frame.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Caller {
    /// Its name, where the file has it, or the map that a JIT compiler has written (`perf-PID.map`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub function: Option<String>,
    /// The file that it is in; absent for memory of no file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// Where it goes on after the call: in the file, or the address.
    pub offset: u64,
    /// Of the file.
    #[serde(skip)]
    pub inode: u64,
}

/// Who woke a thread.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Waker {
    /// Whose work it was.
    pub context: WakeContext,
    /// The thread that ran on that CPU; 0 for the idle one.
    pub tid: u32,
    /// Its name.
    pub thread: String,
    /// The call it was in; absent where it was in none, or is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub syscall: Option<String>,
}

/// Whose work woke a thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum WakeContext {
    /// That of the thread that ran.
    Thread,
    /// A softirq, while that thread ran: of the network, of timers; perhaps of what it had just done.
    Softirq,
    /// An interrupt, which the thread that ran need not have to do with.
    Interrupt,
    /// The kernel does not show it.
    #[default]
    Unknown,
}
