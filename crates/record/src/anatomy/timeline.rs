//! The events inside single calls.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// The slowest calls of a run that read, and those that write.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Default)]
pub struct SlowestCalls {
    /// The requested number of calls of each kind.
    pub asked: u32,
    /// Calls that were followed: reads, writes and syncs of files and block devices.
    pub followed: u64,
    /// Reads and writes of pipes, sockets, terminals and the like, which were not.
    pub not_followed: u64,
    /// Calls whose timeline found no room.
    pub lost: u64,
    /// Tracepoints that were listened to.
    pub tracepoints: u64,
    /// Tracepoints that this kernel does not have, or has otherwise.
    pub absent: Vec<String>,
    /// The calls, slowest first.
    pub calls: Vec<SlowCall>,
}

/// One call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Default)]
pub struct SlowCall {
    /// Process id.
    pub pid: u32,
    /// Program image.
    pub exec: String,
    /// Which of the process's images of this name it is, in the order they began; 0 where there is but one.
    #[serde(default, skip_serializing_if = "crate::absent::is_alone")]
    pub image: u32,
    /// Thread id.
    pub tid: u32,
    /// The call's name; of a request of io_uring, its operation behind `ring:`.
    pub syscall: String,
    /// The descriptor.
    pub fd: u32,
    /// Whether `fd` is the place of a file registered with the ring instead.
    #[serde(default, skip_serializing_if = "crate::absent::is_false")]
    pub registered_file: bool,
    /// The file behind it; `null` where its name was not met.
    pub path: Option<String>,
    /// Where in the file it began; `null` where that is not known.
    pub offset: Option<u64>,
    /// The requested bytes; `null` for a call without a length.
    pub asked_bytes: Option<u64>,
    /// The return value: bytes, or an error number below 0.
    pub returned: i64,
    /// That error's name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// From the watch's first moment to the call's entry.
    pub start_ns: u64,
    /// From its entry to its return, or from submission to completion.
    pub wall_ns: u64,
    /// Of that, on a CPU; 0 for a request, as is `blocked_ns`: no single thread carries it out.
    pub on_cpu_ns: u64,
    /// The blocked part of it.
    pub blocked_ns: u64,
    /// The events, in order.
    pub events: Vec<CallEvent>,
    /// Time inside the call that is not among the events.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hidden: Vec<Hidden>,
}

impl SlowCall {
    /// Whether it is a request of io_uring.
    pub fn is_request(&self) -> bool {
        self.syscall.starts_with("ring:")
    }
}

/// Something that happened inside a call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Default)]
pub struct CallEvent {
    /// From the call's entry.
    pub at_ns: u64,
    /// A tracepoint's name, or `off-cpu`, `on-cpu`, `woken`, `block-queue`, `block-insert`,
    /// `block-issue`, `block-complete`, `block-merge`, `worker-queue`.
    pub event: String,
    /// The CPU it happened on.
    pub cpu: u32,
    /// Details from the kernel, by name.
    #[serde(
        default,
        skip_serializing_if = "BTreeMap::is_empty",
        deserialize_with = "crate::store::unique_keys"
    )]
    pub values: BTreeMap<String, i64>,
    /// Details that are words and not numbers: the waker, the device, the operation, the state.
    #[serde(
        default,
        skip_serializing_if = "BTreeMap::is_empty",
        deserialize_with = "crate::store::unique_keys"
    )]
    pub words: BTreeMap<String, String>,
}

/// Events of a kind that are only counted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Default)]
pub struct Hidden {
    /// The event.
    pub event: String,
    /// How many of them are not shown.
    pub count: u64,
    /// When the last one happened before which they did; from the call's entry.
    pub before_ns: u64,
}
