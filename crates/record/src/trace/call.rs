//! The system calls of a [`Trace`](crate::Trace), and which of them ended.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::absent::{is_alone, is_false, is_zero};
use crate::{Histogram, Times};

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
    /// The longest single call, those that never returned included; in the record of an interval, of those that
    /// returned in it, if any did.
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
    /// In the record of a part of a watch: the whole time of the calls that returned in it, of which `wall_ns` has
    /// what is in the part. Absent in that of a whole watch, and in older ones.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_ns: Option<u64>,
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

    /// The calls that ended, of which there are a mean and a longest one; `exit` and `exit_group` end with their thread.
    /// Where the record does not tell the time of those in flight apart, these are among them.
    pub fn ended(&self) -> EndedCalls {
        let never_returns = self.syscall.starts_with("exit");
        let of_open = || Some(self.wall_ns.saturating_sub(self.open_ns?));
        match self.ended_ns.or_else(of_open) {
            Some(wall_ns) if !never_returns => {
                EndedCalls { calls: self.calls, wall_ns, max_ns: self.wall_times.max_ns }
            }
            _ => EndedCalls {
                calls: self.calls.saturating_add(self.in_flight),
                wall_ns: self.wall_ns,
                max_ns: self.max_ns,
            },
        }
    }
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
