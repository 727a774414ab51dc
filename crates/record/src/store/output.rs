//! Outputs that are whole or not there.
//!
//! The invariant: after a failure the path leads to what it led to before. The new content is
//! therefore never written to the old regular file, but to a file beside it that is then renamed
//! over it. A device, a FIFO or a socket cannot be half-written in that sense and must not be
//! replaced, so it is opened and written to. So is a file on which something is mounted, which the
//! kernel does not let be replaced: it is emptied first, and a failure may leave it so. Symbolic links are followed first and the rule applies
//! to their target, so that a link stays a link.
//!
//! A place is looked up once, possibly long before it is written to: a command that runs in between
//! cannot redirect it.

use std::fs;
use std::io::{self, BufWriter, ErrorKind, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::Path;

use iotomy_sys::close::close_duplicate;
use rustix::fs::{Access, AtFlags, CWD, Mode, OFlags, accessat, fdatasync, openat};
use rustix::io::Errno;

use super::error::write_hint;
use super::place::{OpenPlace, Slot};
use super::{NewFile, Place, StoreError, shown};

/// An output of a run, a record or a text, whose place has been looked up and is held open.
#[derive(Debug)]
pub struct OutputFile {
    /// Its name in messages.
    pub(super) name: String,
    /// Whether it was named relative to a current directory that was removed.
    pub(super) is_nowhere: bool,
    /// Whether it is synced before it has its name, and its directory afterwards.
    pub(super) syncs: bool,
    pub(super) to: Destination,
}

#[derive(Debug)]
pub(super) enum Destination {
    Standard,
    Error,
    Place(Box<Place>),
}

impl OutputFile {
    /// Looks up `path`, relative to `base_dir`; `-` is standard output. It creates and changes
    /// nothing; a FIFO is not opened. With an empty `base_dir` a relative path is relative to the
    /// current directory, whatever its name.
    ///
    /// # Errors
    /// Those with which a write would begin now. That the disk is full shows only in a write.
    pub fn open(path: &Path, base_dir: &Path) -> Result<Self, StoreError> {
        if path == Path::new("-") {
            let name = shown(path, "standard output");
            return Ok(Self { name, is_nowhere: false, syncs: false, to: Destination::Standard });
        }
        let whole = base_dir.join(path);
        let name = shown(&whole, "");
        let is_nowhere = path.is_relative() && std::env::current_dir().is_err();
        // By its descriptor: the names on the way to it may lead elsewhere by now.
        let is_from_here = is_current(base_dir) && !path.as_os_str().is_empty();
        let found = Place::resolve(if is_from_here { path } else { &whole });
        let place = found.map_err(|e| Failed("write", e)).and_then(|place| match place {
            Place::Replace(slot) => {
                Ok(Place::Replace(tried(slot).map_err(|e| Failed("write", e))?))
            }
            Place::Through(passage) => {
                can_be_opened(&passage).map_err(|e| Failed("open", e))?;
                Ok(Place::Through(passage))
            }
        });
        match place {
            Ok(place) => {
                Ok(Self { name, is_nowhere, syncs: true, to: Destination::Place(Box::new(place)) })
            }
            Err(Failed(operation, error)) => Err(failed(operation, &name, is_nowhere, error)),
        }
    }

    /// Standard error, to which reports of runs go.
    pub fn standard_error() -> Self {
        let name = String::from("standard error");
        Self { name, is_nowhere: false, syncs: false, to: Destination::Error }
    }

    /// Writes `bytes` as the whole content. A new file has mode 0666 less the umask, an old one keeps
    /// its mode and, where that is allowed, its owner. Opening a FIFO waits for its reader.
    ///
    /// # Errors
    /// When the output cannot be written whole. The previous content is then unchanged, unless it
    /// is a device, FIFO or the like. A reader that closed standard output or a FIFO is not an
    /// error.
    pub fn put(self, bytes: &[u8]) -> Result<(), StoreError> {
        self.put_with(|to| to.write_all(bytes))
    }

    /// As [`OutputFile::put`], of what `content` writes. An error of `content` is an error of
    /// the output.
    ///
    /// # Errors
    /// As [`OutputFile::put`].
    pub fn put_with(
        self,
        content: impl FnOnce(&mut dyn Write) -> io::Result<()>,
    ) -> Result<(), StoreError> {
        let Self { name, is_nowhere, syncs, to } = self;
        let done = match to {
            Destination::Standard => through(io::stdout().as_fd(), content),
            Destination::Error => through(io::stderr().as_fd(), content),
            Destination::Place(place) => match *place {
                Place::Replace(slot) => replace(slot, syncs, content),
                Place::Through(passage) => match passage.open() {
                    Ok(file) => through(file.as_fd(), content),
                    Err(error) => Err(Failed("open", error)),
                },
            },
        };
        done.map_err(|Failed(operation, error)| failed(operation, &name, is_nowhere, error))
    }

    /// Does not sync: for files that are written repeatedly and can be
    /// made again. A power failure may leave neither the old content nor the new.
    #[must_use]
    pub fn unsynced(self) -> Self {
        Self { syncs: false, ..self }
    }

    /// Looks `path` up and writes `bytes` there.
    ///
    /// # Errors
    /// As [`OutputFile::open`] and [`OutputFile::put`].
    pub fn write(path: &Path, base_dir: &Path, bytes: &[u8]) -> Result<(), StoreError> {
        Self::open(path, base_dir)?.put(bytes)
    }

    /// As [`OutputFile::write`], of what `content` writes.
    ///
    /// # Errors
    /// As [`OutputFile::write`].
    pub fn write_with(
        path: &Path,
        base_dir: &Path,
        content: impl FnOnce(&mut dyn Write) -> io::Result<()>,
    ) -> Result<(), StoreError> {
        Self::open(path, base_dir)?.put_with(content)
    }

    /// Its name in messages.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Whether it is standard output, by the name `-`.
    pub fn is_standard(&self) -> bool {
        matches!(self.to, Destination::Standard)
    }
}

/// Whether two outputs would end in one place: the same existing file under any names, or the same
/// name in the same directory.
pub fn same_output(a: &Path, b: &Path, base_dir: &Path) -> bool {
    let absolute = |path: &Path| {
        // Standard output counts as what it leads to.
        if path == Path::new("-") { "/dev/stdout".into() } else { base_dir.join(path) }
    };
    let (a, b) = (absolute(a), absolute(b));
    if a == b {
        return true;
    }
    match (fs::metadata(&a), fs::metadata(&b)) {
        // Two names of a terminal or of the null device spoil nothing.
        (Ok(a), Ok(b)) => {
            !a.file_type().is_char_device() && (a.dev(), a.ino()) == (b.dev(), b.ino())
        }
        (Err(_), Err(_)) => match (Place::resolve(&a), Place::resolve(&b)) {
            (Ok(Place::Replace(a)), Ok(Place::Replace(b))) => {
                let folder = |slot: &Slot| rustix::fs::fstat(slot.folder()).ok();
                let same = folder(&a).zip(folder(&b));
                a.name() == b.name()
                    && same.is_some_and(|(a, b)| (a.st_dev, a.st_ino) == (b.st_dev, b.st_ino))
            }
            _ => false,
        },
        _ => false,
    }
}

/// The failed call, and its error.
pub(super) struct Failed(pub(super) &'static str, pub(super) io::Error);

/// Writes a new file in the same directory and renames it over the present one.
fn replace(
    slot: Slot,
    syncs: bool,
    content: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> Result<(), Failed> {
    let fresh = fresh(slot).map_err(|error| Failed("write", error))?;
    named(fresh, syncs, content, |fresh| fresh.put(true))
}

/// Writes a new file, then gives it its name.
pub(super) fn named<T>(
    fresh: NewFile,
    syncs: bool,
    content: impl FnOnce(&mut dyn Write) -> io::Result<()>,
    name: impl FnOnce(NewFile) -> io::Result<T>,
) -> Result<T, Failed> {
    let write = |error| Failed("write", error);
    let mut to = BufWriter::new(fresh.file());
    let written = content(&mut to).and_then(|()| to.flush());
    // The rest of the buffer has been refused once: dropping must not try it again.
    drop(to.into_parts());
    written.map_err(write)?;
    let fsync = |error| Failed("fsync", error);
    if syncs {
        // Else a power failure could leave neither the old content nor the new.
        synced(fresh.file().as_fd()).map_err(fsync)?;
    }
    close_duplicate(fresh.file().as_fd()).map_err(|error| Failed("close", error))?;
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    // A directory that this user may not read cannot be synced.
    let folder = openat(fresh.folder(), c".", flags, Mode::empty()).ok().filter(|_| syncs);
    let done = name(fresh).map_err(write)?;
    folder.map_or(Ok(()), |folder| synced(folder.as_fd()).map_err(fsync))?;
    Ok(done)
}

/// The file that is to take the place of another.
fn fresh(slot: Slot) -> io::Result<NewFile> {
    let mode = if slot.old().is_some() { 0o600 } else { 0o666 };
    NewFile::beside(slot, mode)
}

/// Whether an output can begin there.
fn tried(slot: Slot) -> io::Result<Slot> {
    // A rename needs no right to the file it replaces, so ask for it: a file made read-only was made so
    // for a reason.
    slot.try_old()?;
    NewFile::try_beside(&slot)?;
    Ok(slot)
}

/// Whether a device, a FIFO or the like may be written to; to open one may wait, or do something.
fn can_be_opened(passage: &OpenPlace) -> io::Result<()> {
    if passage.metadata().file_type().is_socket() {
        return Err(Errno::NXIO.into());
    }
    match accessat(CWD, passage.proc_name(), Access::WRITE_OK, AtFlags::EACCESS) {
        // Without /proc it is seen when it is opened.
        Err(Errno::NOENT) => Ok(()),
        answer => Ok(answer?),
    }
}

/// A descriptor without the standard library, which takes a standard output that cannot be written to
/// for one that took all.
struct Descriptor<'a>(BorrowedFd<'a>);

impl Write for Descriptor<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        Ok(rustix::io::write(self.0, bytes)?)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

pub(super) fn through(
    to: BorrowedFd<'_>,
    content: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> Result<(), Failed> {
    let mut writer = BufWriter::new(Descriptor(to));
    let written = content(&mut writer).and_then(|()| writer.flush());
    // The rest of the buffer has been refused once: dropping must not try it again.
    drop(writer.into_parts());
    match written {
        Err(e) if e.kind() == ErrorKind::BrokenPipe => Ok(()),
        Err(e) => Err(Failed("write to", e)),
        Ok(()) => close_duplicate(to).map_err(|e| Failed("close", e)),
    }
}

fn synced(file: BorrowedFd<'_>) -> io::Result<()> {
    match fdatasync(file) {
        // A file system that has nothing to sync to.
        Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => Ok(()),
        done => Ok(done?),
    }
}

/// Whether a directory is the current one, by its name.
fn is_current(folder: &Path) -> bool {
    folder.as_os_str().is_empty() || std::env::current_dir().is_ok_and(|here| here == folder)
}

pub(super) fn failed(
    operation: &'static str,
    name: &str,
    is_nowhere: bool,
    source: io::Error,
) -> StoreError {
    let hint = match is_nowhere && source.kind() == ErrorKind::NotFound {
        true => "; the current directory has been removed: give a path that begins with /",
        false => write_hint(&source),
    };
    StoreError::Write { operation, path: name.to_owned(), hint, source }
}

#[cfg(test)]
#[path = "output_tests.rs"]
mod tests;

#[cfg(test)]
#[path = "attack_tests.rs"]
mod attack_tests;
