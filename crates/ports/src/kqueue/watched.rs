//! What a note keeps of the process or the file that it watches.

use std::os::fd::RawFd;

use iotomy_sys::measure::{self, FileStatus};
use iotomy_sys::private_fd::PrivateFd;

/// A process that is watched.
#[derive(Debug, Default)]
pub(super) struct WatchedProcess {
    /// None of one that had been waited for when its parent's fork was told.
    pub(super) pidfd: Option<PrivateFd>,
    /// What happened and was not told yet, but for its end.
    pub(super) came: u32,
    /// The parent of a child that is watched because its parent is.
    pub(super) parent: i32,
    /// The status with which it ended, if that has been told.
    pub(super) status: Option<i32>,
    /// Whether the kernel may have told of it without having been heard.
    pub(super) is_untold: bool,
}

impl WatchedProcess {
    pub(super) fn has_come(&self) -> bool {
        self.came != 0
    }

    pub(super) fn pidfd(&self) -> Option<&PrivateFd> {
        self.pidfd.as_ref()
    }
}

/// What is known of a file that is watched.
#[derive(Debug)]
pub(super) struct WatchedFile {
    pub(super) watch: i32,
    pub(super) last: FileStatus,
    /// What happened and was not told yet.
    pub(super) came: u32,
}

impl WatchedFile {
    pub(super) fn has_come(&self) -> bool {
        self.came != 0
    }

    /// Whether a descriptor is this file.
    pub(super) fn is(&self, fd: RawFd) -> bool {
        measure::status(fd).is_ok_and(|now| now.identity == self.last.identity)
    }
}
