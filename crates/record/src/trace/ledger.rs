//! Where the time of threads went in a [`Trace`](crate::Trace).

use serde::{Deserialize, Serialize};

use crate::absent::{is_alone, is_zero};
use crate::statistics;

statistics! {
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
        pub thread_ns: u64 => sum(Time).column("time", 8),
        /// On a CPU outside system calls; page faults and interrupts taken there are part of it.
        pub user_ns: u64 => sum(Time).column("user", 6).live(4, 6),
        /// On a CPU inside system calls.
        pub calls_on_cpu_ns: u64 => sum(Time).column("in calls", 7).key("in-calls"),
        /// Blocked, inside calls or in a page fault.
        pub blocked_ns: u64 => sum(Time).column("blocked", 6).live(5, 7),
        /// The part of it in page faults outside calls. Absent where the observer did not report it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub fault_ns: Option<u64> => sum(Time),
        /// Of `blocked_ns`, stopped by a signal, or by a debugger.
        #[serde(default, skip_serializing_if = "is_zero")]
        pub stopped_ns: u64 => sum(Time),
        /// Ready to run and waiting for a CPU.
        pub runnable_ns: u64 => sum(Time).column("runq", 4).live(8, 7),
        /// `thread_ns` less the five above; negative when they overlap.
        pub residual_ns: i64 => sum(Time),
        /// CPU time of the threads that io_uring made in the process, which are not part of `thread_ns`.
        #[serde(default, skip_serializing_if = "is_zero")]
        pub worker_ns: u64 => sum(Time),
    }
}
