//! The work of the block layer for a run.

use serde::{Deserialize, Serialize};

use crate::Histogram;

/// Requests to devices by cause, and the benefit of read-ahead.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Default)]
pub struct BlockIo {
    /// One entry a (process, program image, cause, device, operation).
    pub requests: Vec<Requests>,
    /// One entry a (process, program image) that read files through the page cache.
    pub read_ahead: Vec<ReadAhead>,
    /// Requests of the same time that nothing of the run caused.
    pub others_requests: u64,
    /// Their bytes.
    pub others_bytes: u64,
    /// Requests, bios and inodes that found no room in a bounded table.
    #[serde(default)]
    pub lost: u64,
    /// Pages read ahead that found no room there.
    #[serde(default)]
    pub lost_pages: u64,
}

/// The path by which a request reached the block layer.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, Default,
)]
#[serde(rename_all = "kebab-case")]
pub enum BlockPath {
    /// A thread of the run, in the call.
    #[default]
    Call,
    /// A thread of the run, in no call: it touched a page of a mapping.
    Fault,
    /// A thread of the kernel wrote pages that the run had changed.
    WriteBack,
    /// A kernel thread wrote metadata of a file system that the run had changed: its journal,
    /// mostly. Other processes' changes to it are written with it and cannot be separated.
    Journal,
    /// Another process wrote pages that the run had changed, as `sync` does.
    OtherProcess,
    /// A worker of `io_uring` in a process of the run.
    IoUring,
}

/// Requests of one cause to one device.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Default)]
pub struct Requests {
    /// Process id.
    pub pid: u32,
    /// Program image.
    pub exec: String,
    /// Which of the process's images of this name it is, in the order they began; 0 where there is but one.
    #[serde(default, skip_serializing_if = "crate::absent::is_alone")]
    pub image: u32,
    /// The path by which they came.
    pub via: BlockPath,
    /// The call they were sent in, or that waits for them; `null` where there is none.
    pub syscall: Option<String>,
    /// The device's name, or its number where it has none.
    pub device: String,
    /// `read`, `write`, `flush`, `discard`, or the operation's number.
    pub operation: String,
    /// Pieces of work handed to the block layer. Devices without requests have these alone.
    pub bios: u64,
    /// Their bytes.
    pub bio_bytes: u64,
    /// Of the bios, those that became part of another's request.
    pub merged_bios: u64,
    /// Requests that became part of another.
    pub merged_requests: u64,
    /// Requests handed to the device's driver.
    pub requests: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Of the requests, those that were done before the watch ended.
    pub finished: u64,
    /// Of those, the ones that failed.
    pub errors: u64,
    /// How often a driver gave a request back to be tried again.
    pub requeued: u64,
    /// Requests that a process waits for.
    pub sync: u64,
    /// Requests of metadata.
    pub meta: u64,
    /// Requests of read-ahead, including the pages that were requested themselves.
    pub ahead: u64,
    /// Requests that are to be on the medium when they are done.
    pub fua: u64,
    /// Requests behind a flush of the device's cache.
    pub preflush: u64,
    /// From a request's first bio to the driver, all together.
    pub queue_ns: u64,
    /// From the driver to the end, all together.
    pub device_ns: u64,
    /// Bytes of a request.
    pub size_log2: Histogram,
    /// From a request's first bio to the driver.
    pub queue_log2: Histogram,
    /// Of that, in the device's scheduler; empty where a device has none.
    pub scheduler_log2: Histogram,
    /// From the driver to the end.
    pub device_log2: Histogram,
}

/// Pages that calls read through the page cache: `read`, `readv`, `pread64`, `preadv`, `preadv2`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Default)]
pub struct ReadAhead {
    /// Process id.
    pub pid: u32,
    /// Program image.
    pub exec: String,
    /// Which of the process's images of this name it is, in the order they began; 0 where there is but one.
    #[serde(default, skip_serializing_if = "crate::absent::is_alone")]
    pub image: u32,
    /// Pages that calls returned bytes of, counted once per call.
    pub asked_pages: u64,
    /// Pages that a call requested and had to read into the cache.
    pub missed_pages: u64,
    /// Pages that a call read into the cache beyond its request.
    pub ahead_pages: u64,
    /// The number of those that a later call requested.
    pub hit_pages: u64,
    /// Pages put into the cache in other calls, and by touching mappings.
    pub other_pages: u64,
}
