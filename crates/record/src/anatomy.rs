//! `iotomy.anatomy/1`: where in the kernel, and where in user space, a run's calls spent their time.
//!
//! A run with its trace. Samples are scaled to the trace's exact times when the record is made, so
//! that the parts of a call add up to the call for every reader of the record.

mod block;
mod timeline;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::Trace;

pub use block::{BlockIo, BlockPath, ReadAhead, Requests};
pub use timeline::{CallEvent, Hidden, SlowCall, SlowestCalls};

/// One run, dissected.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Anatomy {
    /// Always [`Anatomy::SCHEMA`].
    pub schema: String,
    /// When the watch began, RFC 3339.
    pub started: String,
    /// The run's trace.
    pub trace: Trace,
    /// The settings of sampling, and its overhead.
    pub sampling: Sampling,
    /// One entry per (process, program image, system call), and one per (process, program image)
    /// for the time outside calls.
    pub calls: Vec<DissectedCall>,
    /// The samples, stack by stack: the parts above are computed from these.
    pub stacks: Vec<Stack>,
    /// The work of the block layer; `null` where it could not be watched.
    #[serde(default)]
    pub block: Option<BlockIo>,
    /// The slowest calls with their timelines; `null` if none were requested.
    #[serde(default)]
    #[serde(rename = "stories")]
    pub timelines: Option<SlowestCalls>,
}

impl Anatomy {
    /// The schema this type reads and writes.
    pub const SCHEMA: &'static str = "iotomy.anatomy/1";
}

/// The sampled parts of an [`Anatomy`], for a run whose trace is stored beside them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Sampled {
    /// The settings of sampling, and its overhead.
    pub sampling: Sampling,
    /// As [`Anatomy::calls`].
    pub calls: Vec<DissectedCall>,
    /// As [`Anatomy::stacks`].
    pub stacks: Vec<Stack>,
}

/// How the time on CPUs was sampled.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
pub struct Sampling {
    /// The event that interrupts: `cycles` or `cpu-clock`.
    pub event: String,
    /// How often a second it does so on each CPU.
    pub hz: u32,
    /// Samples of the watched threads.
    pub samples: u64,
    /// Samples of other threads, which are not kept.
    pub others: u64,
    /// Samples of watched threads in calls that `--where` leaves out, which are not in `samples`.
    #[serde(default, skip_serializing_if = "crate::absent::is_zero")]
    pub left_out: u64,
    /// Samples of watched threads that found no room in a bounded table.
    pub lost: u64,
    /// Samples and sleeps without a kernel stack: it collided with another's.
    pub lost_stacks: u64,
    /// Sleeps that found no room in a bounded table.
    pub lost_sleeps: u64,
    /// Mapped files whose name found no room in a bounded table.
    #[serde(default)]
    pub lost_names: u64,
    /// The overhead of a sample for the thread that it interrupts, measured on this machine at the
    /// start.
    pub price_ns_per_sample: f64,
    /// The reach of the user stacks; `None` if they were not requested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user_stacks: Option<UserStacks>,
}

/// How far stacks of user space reach, which is as far as programs keep frame pointers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Default)]
pub struct UserStacks {
    /// Samples with one.
    pub samples: u64,
    /// The number of these whose stack ends after the innermost function, or its caller: frame
    /// pointers lead no further.
    pub cut_short: u64,
    /// Samples and sleeps without a stack: it collided with another's.
    pub lost: u64,
    /// Mappings, and other news of processes, that found no room.
    pub lost_mappings: u64,
}

/// A call of one program image, or the time outside its calls, in layers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
pub struct DissectedCall {
    /// Process id.
    pub pid: u32,
    /// Program image.
    pub exec: String,
    /// Which of the process's images of this name it is, in the order they began; 0 where there is but one.
    #[serde(default, skip_serializing_if = "crate::absent::is_alone")]
    pub image: u32,
    /// The call's name as in the trace; `null` for the time outside calls. Operations of io_uring are
    /// `ring:read` and so on, also in stacks; the time of its own threads in which they were at none is
    /// `ring:no request`, or, if it is not known at which, `ring:unknown operation`.
    pub syscall: Option<String>,
    /// On a CPU, as the trace has it. The layers add up to it.
    pub on_cpu_ns: u64,
    /// Of an operation of io_uring, and of a call that issued some: within how much of `on_cpu_ns` the truth
    /// lies, 95 times in 100. 0 where the time is the trace's.
    #[serde(default, skip_serializing_if = "crate::absent::is_zero")]
    pub error_ns: u64,
    /// Blocked time, as in the trace. The layers add up to it.
    pub blocked_ns: u64,
    /// Samples the split of the time on a CPU rests on.
    pub samples: u64,
    /// Its layers, most time first.
    pub layers: Vec<Layer>,
}

/// A layer of the kernel or of user space in a call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
pub struct Layer {
    /// Its name, as `page cache and copying` or `file system (ext4)`.
    pub layer: String,
    /// On a CPU: the call's, in the proportion of the samples.
    pub on_cpu_ns: u64,
    /// Within how much of `on_cpu_ns` the truth lies, 95 times in 100.
    pub error_ns: u64,
    /// Samples.
    pub samples: u64,
    /// Blocked time. Not sampled: every sleep is recorded.
    pub blocked_ns: u64,
    /// What it waited for, as `device`, and how long.
    #[serde(
        default,
        skip_serializing_if = "BTreeMap::is_empty",
        deserialize_with = "crate::store::unique_keys"
    )]
    pub waits: BTreeMap<String, u64>,
    /// The innermost functions, most samples first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub functions: Vec<Function>,
}

/// A function of a layer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
pub struct Function {
    /// Its name.
    pub name: String,
    /// Samples with it innermost.
    pub samples: u64,
    /// Of the layer's time on a CPU.
    pub on_cpu_ns: u64,
}

/// The event at which a stack was sampled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum StackKind {
    /// Samples of a thread on a CPU.
    #[default]
    OnCpu,
    /// Sleeps.
    Blocked,
}

/// A stack, and how often it was found.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
pub struct Stack {
    /// Process id.
    pub pid: u32,
    /// Program image.
    pub exec: String,
    /// Which of the process's images of this name it is, in the order they began; 0 where there is but one.
    #[serde(default, skip_serializing_if = "crate::absent::is_alone")]
    pub image: u32,
    /// The call's name; `null` outside calls.
    pub syscall: Option<String>,
    /// The event at which it was sampled.
    pub kind: StackKind,
    /// The layer it counts for.
    pub layer: String,
    /// The reason for the wait; `null` on a CPU.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Samples, or sleeps.
    pub samples: u64,
    /// Its part of the call's time.
    pub ns: u64,
    /// Functions in user space, outermost first, down to the one that made the call or was running;
    /// files where they have no names. Empty where this was not requested, or is unknown.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub user: Vec<String>,
    /// Functions of the kernel, outermost first; of a sample in user space the innermost function
    /// there, behind its file.
    pub frames: Vec<String>,
}
