//! A directory on the file system to be measured, and the files created in it.

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use iotomy_record::{Volume, lossless, path_text};
use rustix::fs::{self, Mode, OFlags};
use rustix::io::Errno;

use crate::{Skip, file_systems};

const MODE: Mode = Mode::RUSR.union(Mode::WUSR);

/// A directory in which files can be created.
#[derive(Debug)]
pub struct Folder {
    path: PathBuf,
    volume: Volume,
}

/// Why a directory cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FolderError {
    /// There is something else by that name.
    #[error(
        "cannot measure the file system of {path}: it is not a directory; name one with --path"
    )]
    NotAFolder {
        /// As it was given.
        path: String,
    },
    /// It could not be examined, or no file could be created in it.
    #[error("cannot measure the file system of {path}: {call}: {source}; {remedy}")]
    Refused {
        /// As it was given.
        path: String,
        /// The call that failed.
        call: &'static str,
        /// The system's error.
        source: io::Error,
        /// The remedy.
        remedy: &'static str,
    },
}

impl Folder {
    /// The directory `path`, in which a file can be created.
    ///
    /// # Errors
    /// When it does not exist, is not a directory, or no file can be created in it.
    pub fn open(path: &Path) -> Result<Self, FolderError> {
        let name = path_text(path);
        let refused = |(call, source): (&'static str, io::Error)| FolderError::Refused {
            path: name.clone(),
            call,
            remedy: remedy(call, &source),
            source,
        };
        let found = std::fs::metadata(path).map_err(|e| refused(("stat", e)))?;
        if !found.is_dir() {
            return Err(FolderError::NotAFolder { path: name });
        }
        let file = unnamed_in(path).map_err(refused)?;
        let volume = volume_of(path, &file).map_err(|e| refused(("fstatfs", e)))?;
        Ok(Self { path: path.to_owned(), volume })
    }

    /// The file system it is on.
    pub fn volume(&self) -> &Volume {
        &self.volume
    }

    /// An empty file that no other process can open.
    ///
    /// # Errors
    /// The failed call, and the system's error.
    pub fn unnamed(&self) -> Result<OwnedFd, (&'static str, io::Error)> {
        unnamed_in(&self.path)
    }
}

fn remedy(call: &str, error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => "free some space there",
        _ if call == "stat" => "name an existing directory with --path",
        _ => "name a directory you can write to with --path",
    }
}

/// An empty file without a name. Where the file system cannot make one, it has a name until this
/// returns.
fn unnamed_in(folder: &Path) -> Result<OwnedFd, (&'static str, io::Error)> {
    let flags = OFlags::RDWR | OFlags::CLOEXEC;
    match fs::open(folder, flags | OFlags::TMPFILE, MODE) {
        Err(Errno::OPNOTSUPP | Errno::ISDIR | Errno::INVAL) => {}
        other => return other.map_err(|e| ("open O_TMPFILE", e.into())),
    }
    let path = unused_name(folder);
    let file = fs::open(&path, flags | OFlags::CREATE | OFlags::EXCL, MODE)
        .map_err(|e| ("open O_CREAT", e.into()))?;
    fs::unlink(&path).map_err(|e| ("unlink", e.into()))?;
    Ok(file)
}

fn unused_name(folder: &Path) -> PathBuf {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let (process, number) = (std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
    folder.join(format!(".iotomy-limits-{process}-{number}"))
}

/// The name of the file system and its identity: its own id if it has one, otherwise the device
/// number and its size.
fn volume_of(path: &Path, file: &OwnedFd) -> io::Result<Volume> {
    let (kind, room) = (fs::fstatfs(file)?, fs::fstatvfs(file)?);
    let file_system = file_systems::name(file_systems::magic(kind.f_type));
    let device = fs::fstat(file)?.st_dev;
    let id = format!("{file_system} {:x} {device:x} {}", room.f_fsid, room.f_blocks);
    let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let path = lossless(path.as_os_str().as_bytes());
    Ok(Volume { path, file_system, id })
}

/// Whether measurements on the one are comparable with those on the other. Unlike the whole id this
/// survives a restart, after which a file system may have another device or, in memory, another id
/// of its own, and also a change of its size.
pub fn is_alike(one: &Volume, other: &Volume) -> bool {
    let numbers = |volume: &Volume| -> Vec<String> {
        volume.id.split(' ').skip(1).take(2).map(str::to_owned).collect()
    };
    let (one_has, other_has) = (numbers(one), numbers(other));
    let mut pairs = one_has.iter().zip(&other_has);
    // Some have no id.
    one.file_system == other.file_system && pairs.any(|(a, b)| a == b && a != "0")
}

/// The bytes that are free on the file system of a file.
///
/// # Errors
/// When the file system reports none.
pub fn free_bytes(file: &OwnedFd) -> Result<u64, Skip> {
    let stderr = fs::fstatvfs(file).map_err(|e| Skip::refused("fstatvfs", e))?;
    Ok(match stderr.f_blocks {
        // A file system without a size of its own (ramfs) reports none.
        0 => u64::MAX,
        _ => stderr.f_bavail.saturating_mul(stderr.f_frsize),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_system_is_known_again_after_a_restart_and_no_other_is_taken_for_it() {
        let of = |file_system: &str, numbers: &str| Volume {
            path: "/x".to_owned(),
            file_system: file_system.to_owned(),
            id: format!("{file_system} {numbers}"),
        };
        let before = of("btrfs", "a1b2 2f 1000");
        for (now, is_same) in [
            (before.clone(), true),
            (of("btrfs", "a1b2 31 1000"), true),
            (of("btrfs", "c3d4 2f 2000"), true),
            (of("btrfs", "c3d4 31 1000"), false),
            (of("ext4", "a1b2 2f 1000"), false),
        ] {
            assert_eq!(is_alike(&before, &now), is_same, "{now:?}");
        }
        assert!(!is_alike(&of("9p", "0 2f 1"), &of("9p", "0 31 1")));
    }
}
