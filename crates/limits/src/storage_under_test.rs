//! A file system under test, and the file for direct I/O on it that its limits share.

use std::cell::OnceCell;
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::time::{Duration, Instant};

use iotomy_host::folder::{Folder, free_bytes};
use iotomy_host::{Skip, room};
use iotomy_sys::buffer::Aligned;
use iotomy_sys::probe::memory;
use rustix::fs::{self, Mode, OFlags};
use rustix::io::{pwrite, retry_on_intr};

/// A large request, which a device splits and serves in parallel.
pub(crate) const LARGE: usize = 4 << 20;
/// Maximum size of the file for direct I/O.
const MOST_BYTES: u64 = 64 << 20;
/// The divisor for the file system's free bytes: at most this fraction of them is used.
const PART: u64 = 4;
/// How long the file for direct I/O is written; a slow device gets a smaller one.
const PATIENCE: Duration = Duration::from_secs(1);

/// A file system under test.
#[derive(Debug)]
pub(crate) struct Storage<'a> {
    pub(crate) folder: &'a Folder,
    /// Created for the first limit that needs it and shared by all.
    direct: OnceCell<Result<DirectFile, Skip>>,
}

/// A file opened for direct I/O, all of whose bytes have been written.
#[derive(Debug)]
pub(crate) struct DirectFile {
    pub(crate) direct: OwnedFd,
    pub(crate) bytes: u64,
    /// Keeps the file alive: it has no name.
    _file: OwnedFd,
}

impl<'a> Storage<'a> {
    pub(crate) fn new(folder: &'a Folder) -> Self {
        Self { folder, direct: OnceCell::new() }
    }

    /// Returns the file for direct I/O.
    pub(crate) fn direct(&self) -> Result<&DirectFile, Skip> {
        self.direct.get_or_init(|| self.make_direct()).as_ref().map_err(Clone::clone)
    }

    fn make_direct(&self) -> Result<DirectFile, Skip> {
        let kind = &self.folder.volume().file_system;
        let file = self.folder.unnamed().map_err(|(call, e)| Skip::refused(call, e))?;
        // The same file is opened again: setting the flag on an open file bypasses the file system.
        let again = format!("/proc/self/fd/{}", file.as_raw_fd());
        let direct =
            fs::open(again, OFlags::RDWR | OFlags::DIRECT | OFlags::CLOEXEC, Mode::empty())
                .map_err(|e| Skip::refused(&format!("open O_DIRECT on {kind}"), e))?;
        let most = room_for(&file, MOST_BYTES)?;
        let mut buffer = Aligned::new(LARGE);
        buffer.fill(0x5a);
        let (begun, mut at) = (Instant::now(), 0);
        while at < most && (at == 0 || begun.elapsed() < PATIENCE) {
            let moved = retry_on_intr(|| pwrite(&direct, &buffer, at));
            whole(&format!("pwrite O_DIRECT on {kind}"), moved, LARGE)?;
            // A kernel without cachestat cannot report this; then the name of the file system
            // decides.
            let cached = memory::cachestat(file.as_fd()).is_ok_and(|cached| cached.pages > 0);
            if cached || ["tmpfs", "ramfs"].contains(&kind.as_str()) {
                return Err(Skip(format!("{kind} accepts O_DIRECT, but caches the bytes")));
            }
            at += LARGE as u64;
        }
        fs::fsync(&file).map_err(|e| Skip::refused("fsync", e))?;
        Ok(DirectFile { direct, bytes: at, _file: file })
    }
}

/// Returns how many bytes, up to `most`, a file may have so that the file system keeps most of its
/// free space: a multiple of [`LARGE`].
pub(crate) fn room_for(file: &OwnedFd, most: u64) -> Result<u64, Skip> {
    let free = free_bytes(file)?;
    let bytes = most.min(free / PART) / LARGE as u64 * LARGE as u64;
    if bytes == 0 {
        let (needed, free) = ((LARGE as u64 * PART) >> 20, free >> 10);
        return Err(Skip(format!("no space: needs {needed} MiB; {free} KiB are free")));
    }
    room::check_file_size(bytes)?;
    Ok(bytes)
}

/// Checks that a transfer moved all the requested bytes.
pub(crate) fn whole(
    call: &str,
    moved: rustix::io::Result<usize>,
    bytes: usize,
) -> Result<(), Skip> {
    match moved {
        Ok(moved) if moved == bytes => Ok(()),
        Ok(moved) => Err(Skip(format!("{call}: {moved} of {bytes} bytes"))),
        Err(error) => Err(Skip::refused(call, io::Error::from(error))),
    }
}
