//! How much of a file is in the page cache, before and after.
//!
//! Files are opened for it, regular ones only and without waiting; one that cannot be opened, or is
//! another by now, has no figure, and never a wrong one.

use std::ffi::OsString;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

use iotomy_record::{FileKind, FileUse, bytes_of};
use iotomy_sys::probe::memory::{self, Cached};
use rustix::fs::{FileType, Mode, OFlags, fstat, open};

/// The bytes of a regular file in the page cache now, in whole pages.
pub(crate) fn cached_bytes(path: &Path) -> Option<u64> {
    let cached = memory::cachestat(opened(path, OFlags::empty())?.as_fd()).ok()?;
    Some(bytes(cached.pages))
}

/// Notes the state of the files at the end of the watch: their allocated size, whether they kept
/// their size, and how much of the written ones is still dirty.
pub(crate) fn note_end(files: &mut [FileUse]) {
    for file in files {
        if file.kind != FileKind::File || !file.path.starts_with('/') {
            continue;
        }
        let path = PathBuf::from(OsString::from_vec(bytes_of(&file.path)));
        let path = path.as_path();
        if let Ok(found) = rustix::fs::lstat(path)
            && u64::try_from(found.st_size).ok() == file.size_bytes
        {
            file.allocated_bytes =
                u64::try_from(found.st_blocks).ok().map(|n| n.saturating_mul(512));
        }
        if file.write_bytes > 0 {
            file.dirty_bytes = dirty_bytes(path);
        }
    }
}

fn dirty_bytes(path: &Path) -> Option<u64> {
    let Cached { dirty, writeback, .. } =
        memory::cachestat(opened(path, OFlags::NOFOLLOW)?.as_fd()).ok()?;
    Some(bytes(dirty.saturating_add(writeback)))
}

fn opened(path: &Path, how: OFlags) -> Option<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY | how;
    // Checked first: opening a device or a FIFO may have effects.
    let is_file = |mode| FileType::from_raw_mode(mode) == FileType::RegularFile;
    if !is_file(rustix::fs::stat(path).ok()?.st_mode) {
        return None;
    }
    let file = open(path, flags, Mode::empty()).ok()?;
    is_file(fstat(&file).ok()?.st_mode).then_some(file)
}

fn bytes(pages: u64) -> u64 {
    pages.saturating_mul(rustix::param::page_size() as u64)
}
