//! Where an output goes once its name is looked up: to a file that can be replaced, or through what
//! cannot.
//!
//! The invariant: a name is looked up once. The result is held open, so that nobody who renames
//! directories or replaces them by links can redirect later steps.

use std::ffi::{OsStr, OsString};
use std::fs::{File, Metadata};
use std::io::{self, ErrorKind};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use rustix::fs::{AtFlags, CWD, Mode, OFlags, StatxAttributes, StatxFlags, fstatfs, openat, statx};
use rustix::io::Errno;

use super::source::PIPEFS;
use super::walk;

/// Where an output goes once every link is followed.
#[derive(Debug)]
pub enum Place {
    /// A regular file, or a name that is free: what is written beside it may be renamed over it.
    Replace(Slot),
    /// Anything else: a device, a FIFO, a socket, a mount point, or what a name in `/proc` leads to.
    Through(OpenPlace),
}

/// A name in a directory that is held open.
#[derive(Debug)]
pub struct Slot {
    folder: OwnedFd,
    name: OsString,
    old: Option<(File, Metadata)>,
}

/// A file to open and write to.
#[derive(Debug)]
pub struct OpenPlace {
    /// Open as a place only (`O_PATH`).
    node: File,
    metadata: Metadata,
    /// Its name, where there is no /proc to open it by.
    folder: OwnedFd,
    name: OsString,
    how: How,
}

/// How a file is written to that cannot be replaced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum How {
    /// It is no regular file.
    Through,
    /// Truncating or overwriting would hurt what others wrote.
    Behind,
    /// Its name is a mount point, which no rename replaces: it is emptied and written to.
    Anew,
}

impl Place {
    /// Looks a name up, from the current directory if it is relative.
    ///
    /// # Errors
    /// When it is a directory, its links or directories cannot be followed, or a link of another
    /// user leads to a file that is not that user's.
    pub fn resolve(path: &Path) -> io::Result<Self> {
        Self::from(CWD, path)
    }

    /// As [`Place::resolve`]; a relative name is looked up from an open directory.
    ///
    /// # Errors
    /// As [`Place::resolve`].
    pub fn from(folder: BorrowedFd<'_>, path: &Path) -> io::Result<Self> {
        let found = walk::find(folder, path)?;
        let (folder, name) = (found.folder, found.name);
        match found.there {
            Some((_, metadata)) if metadata.is_dir() => Err(ErrorKind::IsADirectory.into()),
            Some((node, metadata)) if !metadata.is_file() => {
                let how = How::Through;
                Ok(Self::Through(OpenPlace { node, metadata, folder, name, how }))
            }
            // The target of such a /proc name is open elsewhere, at its own position.
            Some((node, metadata)) if found.is_open_elsewhere => {
                let how = How::Behind;
                Ok(Self::Through(OpenPlace { node, metadata, folder, name, how }))
            }
            Some((node, metadata)) if is_mount_point(&node) => {
                let how = How::Anew;
                Ok(Self::Through(OpenPlace { node, metadata, folder, name, how }))
            }
            old => Ok(Self::Replace(Slot { folder, name, old })),
        }
    }

    /// Opens it for writing behind what is there; a file is made where there is none.
    ///
    /// # Errors
    /// The kernel's error.
    pub fn append(&self) -> io::Result<File> {
        match self {
            Self::Replace(slot) => slot.append(),
            Self::Through(passage) => passage.open_with(match passage.how {
                How::Through => OFlags::empty(),
                How::Behind | How::Anew => OFlags::APPEND,
            }),
        }
    }

    /// Opens what is there with these flags, and makes nothing.
    ///
    /// # Errors
    /// The kernel's error; `NOENT` where there is nothing.
    pub fn reopen(&self, flags: OFlags) -> io::Result<File> {
        match self {
            Self::Replace(Slot { folder, name, old: Some((node, _)) }) => {
                reopened(node, flags, (folder.as_fd(), name))
            }
            Self::Replace(_) => Err(Errno::NOENT.into()),
            Self::Through(passage) => {
                reopened(&passage.node, flags, (passage.folder.as_fd(), &passage.name))
            }
        }
    }

    /// Opens a directory with `O_PATH`, by the same rules.
    ///
    /// # Errors
    /// When there is none, or it cannot be reached.
    pub fn folder(path: &Path) -> io::Result<OwnedFd> {
        walk::folder(path)
    }
}

impl Slot {
    /// The directory.
    pub fn folder(&self) -> BorrowedFd<'_> {
        self.folder.as_fd()
    }

    /// The name in it.
    pub fn name(&self) -> &OsStr {
        &self.name
    }

    /// The same directory, and no name in it yet.
    ///
    /// # Errors
    /// When there is no descriptor left.
    pub(super) fn beside(&self) -> io::Result<Self> {
        Ok(Self::without_a_name(self.folder.try_clone()?))
    }

    /// A directory, and no name in it yet.
    pub(super) fn without_a_name(folder: OwnedFd) -> Self {
        Self { folder, name: OsString::new(), old: None }
    }

    /// The metadata of the file that had the name when it was looked up.
    pub fn old(&self) -> Option<&Metadata> {
        self.old.as_ref().map(|(_, metadata)| metadata)
    }

    /// The file that had the name when it was looked up, open as a place only.
    pub(super) fn old_file(&self) -> Option<&File> {
        self.old.as_ref().map(|(node, _)| node)
    }

    /// Opens what had the name for writing behind what it holds, or makes a file where none had it.
    fn append(&self) -> io::Result<File> {
        let flags = OFlags::WRONLY | OFlags::APPEND | OFlags::NOCTTY;
        if let Some((node, _)) = &self.old {
            return reopened(node, flags, (self.folder(), &self.name));
        }
        let flags = flags | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        Ok(openat(self.folder(), &self.name, flags, Mode::from_raw_mode(0o666))?.into())
    }

    /// Opens what had the name for writing, which changes nothing.
    ///
    /// # Errors
    /// When it may not be written to.
    pub(super) fn try_old(&self) -> io::Result<()> {
        let Some((node, _)) = &self.old else { return Ok(()) };
        reopened(node, OFlags::WRONLY, (self.folder(), &self.name)).map(drop)
    }

    /// Whether what has the name now is what had it when it was looked up, which is held, so that no
    /// other file can have its number.
    pub(super) fn is_as_it_was(&self) -> bool {
        self.is_old(&self.name)
    }

    /// Whether this name of the directory leads to the file that had the slot's name.
    pub(super) fn is_old(&self, name: &OsStr) -> bool {
        let now = rustix::fs::statat(&self.folder, name, rustix::fs::AtFlags::SYMLINK_NOFOLLOW);
        match (self.old(), now) {
            (Some(old), Ok(now)) => (old.dev(), old.ino()) == (now.st_dev, now.st_ino),
            (None, Err(Errno::NOENT)) => true,
            _ => false,
        }
    }
}

impl OpenPlace {
    /// The metadata.
    pub fn metadata(&self) -> &Metadata {
        &self.metadata
    }

    /// Opens it for writing. A FIFO waits for its reader.
    ///
    /// # Errors
    /// The kernel's error.
    pub(super) fn open(&self) -> io::Result<File> {
        self.open_with(match self.how {
            How::Through => OFlags::empty(),
            How::Behind => OFlags::APPEND,
            How::Anew => OFlags::TRUNC,
        })
    }

    fn open_with(&self, more: OFlags) -> io::Result<File> {
        let flags = OFlags::WRONLY | OFlags::NOCTTY | more;
        reopened(&self.node, flags, (self.folder.as_fd(), &self.name))
    }

    /// Whether it is a regular file that a file system is mounted on, or a part of one.
    pub fn is_mount_point(&self) -> bool {
        self.how == How::Anew
    }

    /// Whether it is a pipe, which has a name in no directory.
    pub(super) fn is_pipe(&self) -> bool {
        fstatfs(&self.node).is_ok_and(|system| system.f_type == PIPEFS)
    }

    /// A name of /proc by which it can be asked about.
    pub(super) fn proc_name(&self) -> String {
        proc_name(self.node.as_fd())
    }
}

/// Opens what is open as a place only. Without /proc by its name, if that still leads there.
pub(super) fn reopened(
    node: &File,
    flags: OFlags,
    (folder, name): (BorrowedFd<'_>, &OsStr),
) -> io::Result<File> {
    let flags = flags | OFlags::CLOEXEC;
    let by_proc = || openat(CWD, proc_name(node.as_fd()), flags, Mode::empty());
    match rustix::io::retry_on_intr(by_proc) {
        Err(Errno::NOENT) if rustix::fs::stat("/proc/self/fd").is_err() => {}
        opened => return Ok(opened?.into()),
    }
    let opened = rustix::io::retry_on_intr(|| {
        openat(folder, name, flags | OFlags::NOFOLLOW, Mode::empty())
    })?;
    let file = File::from(opened);
    let (is, was) = (file.metadata()?, node.metadata()?);
    match (is.dev(), is.ino()) == (was.dev(), was.ino()) {
        true => Ok(file),
        false => Err(Errno::STALE.into()),
    }
}

/// Whether something is mounted on the name that a file was opened by. Before Linux 5.8 the kernel does not say.
fn is_mount_point(node: &File) -> bool {
    let flags = AtFlags::EMPTY_PATH | AtFlags::STATX_DONT_SYNC;
    let stat = statx(node, c"", flags, StatxFlags::empty());
    stat.is_ok_and(|stat| stat.stx_attributes.contains(StatxAttributes::MOUNT_ROOT))
}

/// The name that /proc has for a descriptor of this process.
pub(super) fn proc_name(fd: BorrowedFd<'_>) -> String {
    format!("/proc/self/fd/{}", fd.as_raw_fd())
}
