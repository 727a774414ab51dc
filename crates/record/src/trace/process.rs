//! The program images of a [`Trace`](crate::Trace).

use serde::{Deserialize, Serialize};

use crate::absent::{is_alone, is_false};
use crate::statistics;

statistics! {
    /// One program image of one process. Times and counts are those of the image, not of the whole
    /// process.
    #[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Default)]
    pub struct Process {
        /// Process (thread group) id.
        pub pid: u32,
        /// Parent's process id when the image began.
        pub ppid: u32,
        /// The program's file name without its directories, as it was executed; for a process that ran
        /// before the watch, the name of the file it runs where the other cannot be told.
        pub exec: String,
        /// The name that users know it by, from the kernel's name of the process and its first
        /// argument; empty where it equals `exec`.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        pub called: String,
        /// The name of the file whose code it runs, with links and interpreters resolved; empty where
        /// it equals `exec`, or is unknown.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        pub binary: String,
        /// The title that the process has set in place of its first argument, as it was last seen; in an entry of
        /// several images without its numbers. Empty where it has set none.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        pub title: String,
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
        pub continued: u32 => sum(Count),
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
        pub threads: u32 => sum(Count),
        /// User time as the kernel accounts it.
        pub user_ns: u64 => sum(Time),
        /// System time as the kernel accounts it.
        pub system_ns: u64 => sum(Time),
        /// Page faults served without I/O.
        pub minor_faults: u64 => sum(Count).compared(),
        /// Page faults that waited for I/O.
        pub major_faults: u64 => sum(Count).compared(),
        /// Times a thread gave up the CPU to wait.
        pub voluntary_switches: u64 => sum(Count),
        /// Times a thread was made to give up the CPU.
        pub involuntary_switches: u64 => sum(Count),
        /// Largest resident set of the process until the image ended.
        pub max_rss_bytes: u64 => most(Bytes),
        /// Bytes that the kernel fetched from storage for its threads (`read_bytes` of /proc/PID/io),
        /// including read-ahead and paging. Absent when the observer or the kernel does not count them.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub storage_read_bytes: Option<u64> => sum(Bytes).compared(),
    }
}

impl Process {
    /// The number of images it stands for.
    pub fn count(&self) -> u32 {
        self.instances.max(1)
    }

    /// The name that users know its program by.
    pub fn program(&self) -> &str {
        if self.called.is_empty() { &self.exec } else { &self.called }
    }

    /// The name that users know it by: its title, if it has set one, or else its program's.
    pub fn name(&self) -> &str {
        if self.title.is_empty() { self.program() } else { &self.title }
    }
}
