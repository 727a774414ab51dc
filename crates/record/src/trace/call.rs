//! The system calls of a [`Trace`](crate::Trace), and which of them ended.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::absent::{is_alone, is_false, is_zero};
use crate::{Histogram, Times, statistic, statistics};

statistics! {
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
        pub calls: u64 => sum(Count).column("calls", 10).live(15, 9).in_all(2, 9),
        /// Of `calls`, those that returned an error.
        pub errors: u64 => sum(Count).column("errors", 5).live(9, 6).blank(),
        /// `errors` by name, as `ENOENT`.
        #[serde(deserialize_with = "crate::store::unique_keys")]
        pub error_kinds: BTreeMap<String, u64> => sum(Count),
        /// The bytes that the calls moved: the sum of the non-negative returns, when the call returns a count of bytes, and
        /// of the messages of sendmmsg and recvmmsg; without what was only looked at or cut off; else 0.
        pub bytes: u64 => sum(Bytes).column("bytes", 6).live(13, 8).in_all(1, 8).blank(),
        /// Time from entry to return; of calls that did not return, until the thread or the watch ended.
        pub wall_ns: u64 => sum(Time).column("wall", 9).live(14, 6),
        /// Of `wall_ns`, on a CPU. Absent if the observer cannot know.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub on_cpu_ns: Option<u64> => sum(Time).column("on-CPU", 8).key("on-cpu").live(7, 6),
        /// Of `wall_ns`, blocked.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub blocked_ns: Option<u64> => sum(Time).column("blocked", 7).live(10, 7),
        /// Of `wall_ns`, ready to run and waiting for a CPU: run queue delay.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub runnable_ns: Option<u64> => sum(Time).column("runq", 1).live(0, 6),
        /// The longest call, those that did not return included; in records of intervals, of those that returned there, if
        /// any did.
        #[serde(default)]
        pub max_ns: u64 => most(Time),
        /// In the record of an interval: whether no call took longer, because a longer one was before.
        #[serde(default, skip_serializing_if = "is_false")]
        pub max_is_bound: bool,
        /// Calls that were entered and did not return, or were in progress when the watch began.
        pub in_flight: u64 => gauge(Count),
        /// Of `wall_ns`, that of the calls in `in_flight`. Left out if there are none, in older records and in those of
        /// intervals.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub open_ns: Option<u64> => sum(Time),
        /// In records of intervals and of the last stretch: the whole time of the calls that returned there, of which
        /// `wall_ns` has what is in that part of the watch. Left out otherwise.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub ended_ns: Option<u64> => sum(Time),
        /// Of `in_flight`, calls that were in progress when the watch began, and returned. Left out if 0.
        #[serde(default, skip_serializing_if = "is_zero")]
        pub entered_before: u64 => sum(Count),
        /// Descriptors passed to poll, select and similar calls that returned, if files were watched.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub asked: Option<u64> => sum(Count),
        /// Descriptors, or events, that these calls, epoll_wait and similar calls returned.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub ready: Option<u64> => sum(Count),
        /// The distribution of results that are not negative, by power of two.
        pub return_log2: Histogram => sum(Count),
        /// The distribution of the times from entry to return, of the calls that returned.
        pub wall_log2: Histogram => sum(Count),
        /// That of their on-CPU times.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub on_cpu_log2: Option<Histogram> => sum(Count),
        /// That of the blocked times of those that blocked.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub blocked_log2: Option<Histogram> => sum(Count),
        /// `wall_log2` in finer buckets, with quantiles. Left out if empty, as in older records.
        #[serde(default, skip_serializing_if = "Times::is_empty")]
        pub wall_times: Times => sum(Count),
        /// `on_cpu_log2` in the same. Left out if it equals `wall_times`, as no call left its CPU, and if the observer
        /// cannot know.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub on_cpu_times: Option<Times> => sum(Count),
        /// `blocked_log2` in the same. Left out if empty.
        #[serde(default, skip_serializing_if = "Times::is_empty")]
        pub blocked_times: Times => sum(Count),
    }
}

impl Call {
    /// Adds the same call of another image.
    pub fn merge(&mut self, one: &Self) {
        if self.on_cpu_times.is_some() || one.on_cpu_times.is_some() {
            // Where it is absent, it equals wall time.
            let mut sum = self.on_cpu_times.take().unwrap_or_else(|| self.wall_times.clone());
            sum.merge(one.on_cpu_times.as_ref().unwrap_or(&one.wall_times));
            self.on_cpu_times = Some(sum);
        }
        self.max_is_bound =
            is_bound((self.max_ns, self.max_is_bound), (one.max_ns, one.max_is_bound));
        statistic::add(self, one);
    }

    /// On-CPU times, where the observer knew them.
    pub fn on_cpu_times(&self) -> Option<&Times> {
        self.on_cpu_times.as_ref().or(self.on_cpu_ns.is_some().then_some(&self.wall_times))
    }

    /// The calls that ended, of which there are a mean and a longest one; `exit` and `exit_group` never do.
    /// Where the record does not tell the time of those in flight apart, these are among them.
    pub fn ended(&self) -> EndedCalls {
        if matches!(&*self.syscall, "exit" | "exit_group") {
            return EndedCalls { calls: 0, wall_ns: 0, max_ns: 0 };
        }
        let of_open = || Some(self.wall_ns.saturating_sub(self.open_ns?));
        match self.ended_ns.or_else(of_open) {
            Some(wall_ns) => {
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

/// Whether the larger of two maxima is one that no call exceeded, without being that of a call.
pub fn is_bound(a: (u64, bool), b: (u64, bool)) -> bool {
    match a.0.cmp(&b.0) {
        Ordering::Less => b.1,
        Ordering::Equal => a.1 && b.1,
        Ordering::Greater => a.1,
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
