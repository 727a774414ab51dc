//! The files of a [`Trace`](crate::Trace).

use serde::{Deserialize, Serialize};

use crate::absent::is_alone;
use crate::{Socket, statistics};

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

statistics! {
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
        pub read_calls: u64 => sum(Count).column("reads", 6).live(6, 7).blank(),
        /// Bytes they returned.
        pub read_bytes: u64 => sum(Bytes).column("read", 8).live(10, 8).in_all(8, 8).blank(),
        /// Calls that wrote to it.
        pub write_calls: u64 => sum(Count).column("writes", 5).live(5, 7).blank(),
        /// Bytes they returned.
        pub write_bytes: u64 => sum(Bytes).column("written", 7).live(9, 8).in_all(7, 8).blank(),
        /// Calls that mapped it into memory.
        #[serde(default)]
        pub map_calls: u64 => sum(Count).column("maps", 0).in_all(1, 7).blank(),
        /// The length of these mappings.
        #[serde(default)]
        pub mapped_bytes: u64 => sum(Bytes).column("mapped", 3).in_all(2, 8).blank(),
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
}
