//! The routes of bytes, by the kinds of their ends. A mover's declaration names those on which it
//! is tried.
//!
//! The order of movers on a route is derived from the kernel's work there, and the benches check
//! it. Ranks: 0 moves no byte, 10 may move none, 20 to 50 move them, the faster the lower, 90
//! serves every pair.
//!
//! No byte moves in a reflink, and copy_file_range may share or ask a server. All others copy once,
//! in the kernel, in rounds of a pipe's capacity: 1 MiB in splice's own, 64 KiB in that of sendfile
//! and of copy_file_range where it has to copy. Larger rounds make larger folios on file systems
//! that have them. For a large file two copies by two threads take less time than one: a write out
//! of the CPUs' caches is shorter, and the work per page is less. Two threads that both write
//! (`parallel`) take turns at the file's lock.

use std::thread::available_parallelism;

use crate::end::{End, Kind};
use crate::job::{Job, Reflink, Sparse};
use crate::sharing::may_share;

/// A route.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Route {
    /// Between files, with shared extents or not at all: a plain copy is not a reflink.
    OnlyShared,
    /// To a file that is to have a hole where the source has zeros.
    ZerosToHoles,
    /// From a file that is made up when it is read: its size means nothing, and offloads end at once.
    FromMadeUp,
    /// To a file opened with `O_APPEND`, which every offload refuses, and which is not ours to clear.
    Appending,
    /// From the zero device to a file.
    ZerosToFile,
    /// Between files, at most one round: creating a wide pipe costs more than it saves.
    SmallFile,
    /// Between files, enough for two threads, on a file system that may share.
    LargeFile,
    /// Between files, on a file system that may share.
    FileToFile,
    /// As [`Route::LargeFile`], where the file system shares nothing: copy_file_range is a splice in small rounds.
    LargeFileCopied,
    /// As [`Route::FileToFile`], where the file system shares nothing.
    FileToFileCopied,
    /// From a file or block device to a pipe.
    FileToPipe,
    /// From a file or block device to a socket.
    FileToSocket,
    /// From a file to a socket whose other end is on this machine. There is no wire: the reader
    /// copies in any case, out of the file's pages in rounds of 1 MiB, or out of large fresh
    /// buffers, into which they are copied first. On one machine the second takes about as long, or
    /// less by a fifth; on another 1.8 times as long (`results`, notes of copying).
    FileToLoopback,
    /// From a file or block device to the null device, which reads nothing. From a mapping it
    /// receives no page; splicing looks up each.
    FileToNull,
    /// From a pipe to a terminal or another device, which gains nothing from pages.
    PipeToDevice,
    /// From a pipe to all else.
    FromPipe,
    /// From a socket to a pipe, file or socket.
    FromSocket,
    /// From a device to a pipe. splice is a read into pages that the kernel allocates for it: no second copy.
    DeviceToPipe,
    /// Every other pair.
    Other,
}

impl Route {
    /// All of them.
    pub const ALL: &'static [Self] = &[
        Self::OnlyShared,
        Self::ZerosToHoles,
        Self::FromMadeUp,
        Self::Appending,
        Self::ZerosToFile,
        Self::SmallFile,
        Self::LargeFile,
        Self::FileToFile,
        Self::LargeFileCopied,
        Self::FileToFileCopied,
        Self::FileToPipe,
        Self::FileToSocket,
        Self::FileToLoopback,
        Self::FileToNull,
        Self::PipeToDevice,
        Self::FromPipe,
        Self::FromSocket,
        Self::DeviceToPipe,
        Self::Other,
    ];

    /// The route of a job between these ends.
    pub(crate) fn between(source: &End<'_>, target: &End<'_>, job: &Job<'_>) -> Self {
        if job.reflink == Reflink::Always {
            return Self::OnlyShared;
        }
        let takes_holes = target.kind() == Kind::Regular && !target.is_append();
        let seeks_zeros = match job.sparse {
            Sparse::Always => true,
            Sparse::Auto => takes_holes && source.hides_holes(),
            Sparse::Never => false,
        };
        if seeks_zeros {
            return Self::ZerosToHoles;
        }
        match (source.kind(), target.kind()) {
            (Kind::Regular, _) if !source.has_true_size() => Self::FromMadeUp,
            (_, Kind::Regular) if target.is_append() => Self::Appending,
            (Kind::Char, Kind::Regular) if source.is_zero_device() => Self::ZerosToFile,
            (Kind::Regular, Kind::Regular) if source.size() <= ONE_ROUND => Self::SmallFile,
            (Kind::Regular, Kind::Regular) => match (may_share(target), is_for_two(source, job)) {
                (true, true) => Self::LargeFile,
                (true, false) => Self::FileToFile,
                (false, true) => Self::LargeFileCopied,
                (false, false) => Self::FileToFileCopied,
            },
            (Kind::Regular | Kind::Block, Kind::Pipe) => Self::FileToPipe,
            (Kind::Regular, Kind::Socket) if target.is_loopback() => Self::FileToLoopback,
            (Kind::Regular | Kind::Block, Kind::Socket) => Self::FileToSocket,
            (Kind::Regular | Kind::Block, _) if target.is_null_device() => Self::FileToNull,
            (Kind::Pipe, Kind::Char) if !target.is_null_device() => Self::PipeToDevice,
            (Kind::Pipe, _) => Self::FromPipe,
            (Kind::Socket, Kind::Pipe | Kind::Regular | Kind::Socket) => Self::FromSocket,
            (Kind::Char, Kind::Pipe) => Self::DeviceToPipe,
            _ => Self::Other,
        }
    }
}

/// The capacity of a pipe of the default size, in bytes.
pub(crate) const ONE_ROUND: u64 = 64 * 1024;

/// The bytes from which on a second thread saves more than its start costs.
const LARGE: u64 = 64 << 20;

/// Whether there is enough to copy at once for two threads, and a CPU for each.
fn is_for_two(source: &End<'_>, job: &Job<'_>) -> bool {
    let bytes = job.count.map_or(source.size(), |count| count.min(source.size()));
    let has_two = || available_parallelism().is_ok_and(|cpus| cpus.get() > 1);
    // Each extent between holes is a run of its own, with threads of its own.
    bytes >= LARGE && !source.may_have_holes() && job.threads > 1 && has_two()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registry::MOVERS;

    /// The movers that are tried on a route, first to last, as the chooser takes them.
    fn names(route: Route) -> Vec<&'static str> {
        crate::chooser::in_order(route).iter().map(|(mover, _)| mover.declaration().name).collect()
    }

    #[test]
    fn every_route_has_movers_and_no_two_of_one_rank() {
        for route in Route::ALL {
            let ranks: Vec<u8> = MOVERS
                .iter()
                .flat_map(|mover| mover.declaration().chosen)
                .filter(|choice| choice.routes.contains(route))
                .map(|choice| choice.rank)
                .collect();
            let mut different = ranks.clone();
            different.sort_unstable();
            different.dedup();
            assert!(!ranks.is_empty() && different.len() == ranks.len(), "{route:?}: {ranks:?}");
            assert!(!names(*route).is_empty());
        }
    }

    #[test]
    fn the_order_is_that_of_the_ranks() {
        let large = ["reflink", "copy-file-range", "pipelined", "splice", "sendfile", "read-write"];
        assert_eq!(names(Route::LargeFile), large);
        let copied = ["pipelined", "splice", "copy-file-range", "sendfile", "read-write"];
        assert_eq!(names(Route::LargeFileCopied), copied);
        assert_eq!(names(Route::FileToNull), ["mmap-write", "sendfile", "splice", "read-write"]);
        assert_eq!(names(Route::OnlyShared), ["reflink"]);
    }
}
