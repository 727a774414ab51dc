//! The threads of a trace.

use serde::{Deserialize, Serialize};

use crate::absent::is_alone;
use crate::{statistic, statistics};

statistics! {
    /// One thread of one program image, or several of one name that are put together. Times and counts
    /// are those in the image.
    #[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
    pub struct Thread {
        /// Process id.
        pub pid: u32,
        /// Program image.
        pub exec: String,
        /// Which of the process's images of this name it is, in the order they began; 0 where there is but one.
        #[serde(default, skip_serializing_if = "is_alone")]
        pub image: u32,
        /// Thread id; the lowest of several.
        pub tid: u32,
        /// The name it had when it was last seen in the image; empty where threads of several names are
        /// put together.
        pub name: String,
        /// The number of threads that the entry sums up; 0 for a single one.
        #[serde(default, skip_serializing_if = "is_alone")]
        pub instances: u32,
        /// Calls that returned.
        pub calls: u64 => sum(Count).column("calls", 6),
        /// Of those, the ones that returned an error.
        pub errors: u64 => sum(Count).column("errors", 2).blank(),
        /// From its beginning in the image, or that of the watch, to its end. Absent when the observer
        /// cannot know.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub thread_ns: Option<u64> => sum(Time),
        /// On a CPU, inside calls and outside.
        pub on_cpu_ns: u64 => sum(Time).column("on-CPU", 9).key("on-cpu"),
        /// Of that, outside calls.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub user_ns: Option<u64> => sum(Time).compared(),
        /// Blocked.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub blocked_ns: Option<u64> => sum(Time).column("blocked", 5),
        /// Run queue delay.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub runnable_ns: Option<u64> => sum(Time).column("runq", 3),
        /// Times it gave up the CPU to wait.
        pub voluntary_switches: u64 => sum(Count).column("switches", 1).under("vol.").key("voluntary").blank(),
        /// Times it was made to give up the CPU.
        pub involuntary_switches: u64 => sum(Count).column("", 1).under("invol.").key("involuntary").blank(),
        /// The call in which it spent most time; empty where it made none.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        pub longest_call: String,
        /// The wall time of its calls of this name.
        pub longest_ns: u64,
    }
}

impl Thread {
    /// The number of threads it stands for.
    pub fn count(&self) -> u32 {
        self.instances.max(1)
    }

    /// Whether it is the first of its process.
    pub fn is_first(&self) -> bool {
        self.tid == self.pid
    }

    /// Adds another. The longest call is that of the sum, as far as the two tell: the entries no
    /// longer have the others.
    pub(crate) fn add(&mut self, one: Self) {
        self.instances = self.count().saturating_add(one.count());
        statistic::add(self, &one);
        if self.longest_call == one.longest_call {
            self.longest_ns = self.longest_ns.saturating_add(one.longest_ns);
        } else if one.longest_ns > self.longest_ns {
            (self.longest_call, self.longest_ns) = (one.longest_call, one.longest_ns);
        }
    }
}
