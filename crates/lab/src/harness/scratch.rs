//! Files of an experiment: without a name, so that nothing is left behind, and with operations on
//! the page cache.

use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::path::PathBuf;

use iotomy_host::Skip;
use iotomy_host::folder::{Folder, free_bytes};
use iotomy_host::room::check_file_size;
use iotomy_movers::{End, Job, Outcome, mover};
use iotomy_stats::order::Random;
use iotomy_sys::mapping::Window;
use rustix::fs::{Advice, SeekFrom, fadvise, fsync, ftruncate, seek};
use rustix::io::{pwrite, retry_on_intr};

/// Bytes per write when a file is filled.
const CHUNK: usize = 1 << 20;

/// The divisor for the file system's free bytes: at most this fraction of them is used.
const PART: u64 = 2;

/// A file without a name.
#[derive(Debug)]
pub(crate) struct Scratch {
    file: OwnedFd,
    bytes: u64,
}

impl Scratch {
    /// Creates an empty file, after checking that there is room for `bytes`.
    pub(crate) fn empty(folder: &Folder, bytes: u64) -> Result<Self, Skip> {
        let file = folder.unnamed().map_err(|(call, error)| Skip::refused(call, error))?;
        let free = free_bytes(&file)?;
        if free / PART < bytes {
            let folder = &folder.volume().path;
            return Err(Skip(format!(
                "{folder}: needs {} MiB; {} MiB are free, and half of them stay reserved; name \
                 another directory with --path",
                bytes.div_ceil(1 << 20),
                free >> 20
            )));
        }
        check_file_size(bytes)?;
        Ok(Self { file, bytes: 0 })
    }

    /// Creates a file of `bytes` in the page cache, of data that cannot be compressed or stored as
    /// holes.
    pub(crate) fn filled(folder: &Folder, bytes: u64) -> Result<Self, Skip> {
        let mut scratch = Self::empty(folder, bytes)?;
        let mut random = Random::new(bytes);
        let chunk: Vec<u8> = (0..CHUNK / 8).flat_map(|_| random.bits().to_ne_bytes()).collect();
        while scratch.bytes < bytes {
            let left = usize::try_from(bytes - scratch.bytes).unwrap_or(CHUNK).min(CHUNK);
            let put = retry_on_intr(|| pwrite(&scratch.file, &chunk[..left], scratch.bytes));
            scratch.bytes += put.map_err(|e| Skip::refused("pwrite", e))? as u64;
        }
        Ok(scratch)
    }

    pub(crate) fn fd(&self) -> &OwnedFd {
        &self.file
    }

    /// Returns a path by which another process of this user can open the file.
    pub(crate) fn path(&self) -> PathBuf {
        format!("/proc/{}/fd/{}", std::process::id(), self.file.as_raw_fd()).into()
    }

    /// Seeks to the start.
    pub(crate) fn rewind(&self) -> Result<(), Skip> {
        seek(&self.file, SeekFrom::Start(0)).map_err(|e| Skip::refused("lseek", e))?;
        Ok(())
    }

    /// Truncates the file to 0 bytes.
    pub(crate) fn clear(&self) -> Result<(), Skip> {
        ftruncate(&self.file, 0).map_err(|e| Skip::refused("ftruncate", e))?;
        self.rewind()
    }

    /// Drops the file from the page cache.
    pub(crate) fn drop_from_cache(&self) -> Result<(), Skip> {
        fsync(&self.file).map_err(|e| Skip::refused("fsync", e))?;
        fadvise(&self.file, 0, None, Advice::DontNeed).map_err(|e| Skip::refused("fadvise64", e))
    }

    /// Returns the share of the first `bytes` that is in the page cache, 0 to 1.
    pub(crate) fn resident(&self, bytes: u64) -> Result<f64, Skip> {
        let look = || -> io::Result<f64> {
            let length = usize::try_from(bytes).map_err(io::Error::other)?;
            let window = Window::map(self.file.as_fd(), 0, length, false)?;
            Ok(window.resident_pages()? as f64 / length.div_ceil(4096) as f64)
        };
        look().map_err(|e| Skip::refused("mincore", e))
    }
}

/// Moves `bytes` from the source's position to the target's with a mover. A partial move is an
/// error.
pub(crate) fn carry(
    name: &str,
    (source, target): (&OwnedFd, &OwnedFd),
    bytes: u64,
    job: Job<'_>,
) -> Result<(), Skip> {
    let mover = mover(name).ok_or_else(|| Skip(format!("unknown mover {name}")))?;
    let look = |fd| End::new(fd).map_err(|e| Skip::refused("fstat", e));
    let (from, to) = (look(source)?, look(target)?);
    let job = Job { count: Some(bytes), ..job };
    mover.serves(&from, &to, &job).map_err(Skip)?;
    match mover.run(&from, &to, &job) {
        Ok(Outcome::Done(moved)) if moved.bytes == bytes => Ok(()),
        Ok(Outcome::Done(moved)) => Err(Skip(format!("{name}: moved {} bytes only", moved.bytes))),
        Ok(Outcome::Refused { call, errno: Some(errno) }) => Err(Skip::refused(call, errno)),
        Ok(Outcome::Refused { call, errno: None }) => Err(Skip(format!("{call}: moved nothing"))),
        Err(error) => Err(Skip(error.to_string())),
    }
}
