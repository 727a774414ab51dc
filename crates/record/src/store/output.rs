//! Outputs that are whole or not there.
//!
//! The invariant: after a failure the path leads to what it led to before. A regular file is
//! therefore never opened for its new content; that is written beside it and renamed over it.
//! What is not a regular file (a device, a FIFO, a socket) cannot be half-written in that sense
//! and must not be replaced, so it is opened and written through. Symbolic links are followed
//! first and the rule applies to what they lead to, so that a link stays a link.

use std::fs::{self, Metadata, OpenOptions};
use std::io::{self, BufWriter, ErrorKind, Write};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use rustix::fs::{Access, AtFlags, CWD, accessat};
use rustix::io::Errno;

use super::error::write_hint;
use super::place::folder_of;
use super::{Fresh, Place, StoreError, shown};

/// An output of a run: a record or a text.
#[derive(Debug)]
pub struct OutputFile;

impl OutputFile {
    /// Writes `bytes` as the whole content of `path`, which is relative to `base_dir`; `-` is
    /// standard output. A new file has mode 0666 less the umask, an old one keeps its mode and,
    /// where that is allowed, its owner. Opening a FIFO waits for its reader.
    ///
    /// # Errors
    /// When the output cannot be written whole. What was there before is then unchanged, unless
    /// it is a device, FIFO or the like. A reader that went away from standard output or a FIFO
    /// is not an error.
    pub fn write(path: &Path, base_dir: &Path, bytes: &[u8]) -> Result<(), StoreError> {
        Self::write_with(path, base_dir, |to| to.write_all(bytes))
    }

    /// As [`OutputFile::write`], of what `content` writes. An error of `content` is an error of
    /// the output.
    ///
    /// # Errors
    /// As [`OutputFile::write`].
    pub fn write_with(
        path: &Path,
        base_dir: &Path,
        content: impl FnOnce(&mut dyn Write) -> io::Result<()>,
    ) -> Result<(), StoreError> {
        if path == Path::new("-") {
            return through(StandardOutput, content)
                .map_err(|e| failed("write to", path, base_dir, e));
        }
        let failed = |operation| move |e| failed(operation, path, base_dir, e);
        match Place::of(&base_dir.join(path)).map_err(failed("write"))? {
            Place::Replace { path: real, old } => {
                replace(&real, old.as_ref(), content).map_err(failed("write"))
            }
            Place::Through { path: real, append } => {
                let file = OpenOptions::new()
                    .write(true)
                    .append(append)
                    .open(&real)
                    .map_err(failed("open"))?;
                through(file, content).map_err(failed("write to"))
            }
        }
    }

    /// Whether [`OutputFile::write`] can begin, as far as can be told without writing: to be asked
    /// before a run that would be made in vain. It leaves nothing and changes nothing; a FIFO is not
    /// opened.
    ///
    /// # Errors
    /// Those with which a write would begin now. That the disk is full shows only in a write.
    pub fn check(path: &Path, base_dir: &Path) -> Result<(), StoreError> {
        if path == Path::new("-") {
            return Ok(());
        }
        let failed = |operation| move |e| failed(operation, path, base_dir, e);
        match Place::of(&base_dir.join(path)).map_err(failed("write"))? {
            Place::Replace { path: real, old } => {
                fresh(&real, old.as_ref()).map(drop).map_err(failed("write"))
            }
            Place::Through { path: real, .. } => can_be_opened(&real).map_err(failed("open")),
        }
    }
}

/// Whether two outputs would end in one place: the same existing file by whatever names, or the
/// same name in the same folder.
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
        (Err(_), Err(_)) => match (future_name(&a), future_name(&b)) {
            (Some(a), Some(b)) => a == b,
            _ => false,
        },
        _ => false,
    }
}

/// The name an absent file would have once made, its folder resolved as far as it exists.
fn future_name(path: &Path) -> Option<PathBuf> {
    let Ok(Place::Replace { path, .. }) = Place::of(path) else { return None };
    let parent = folder_of(&path);
    Some(fs::canonicalize(parent).unwrap_or_else(|_| parent.to_path_buf()).join(path.file_name()?))
}

/// Writes a new file in the same folder and renames it over `path`.
fn replace(
    path: &Path,
    old: Option<&Metadata>,
    content: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> io::Result<()> {
    let fresh = fresh(path, old)?;
    let mut to = BufWriter::new(fresh.file());
    content(&mut to)?;
    to.flush()?;
    drop(to);
    if let Some(old) = old {
        fresh.take_owner_and_mode(old)?;
    }
    fresh.put_at(path)
}

/// The file that is to take the place of `path`.
fn fresh(path: &Path, old: Option<&Metadata>) -> io::Result<Fresh> {
    if old.is_some() {
        // A rename needs no right to the file it replaces, so ask for it: a file made read-only
        // was made so for a reason.
        OpenOptions::new().write(true).open(path)?;
    }
    Fresh::beside(path, if old.is_some() { 0o600 } else { 0o666 })
}

/// Whether a device, a FIFO or the like may be written to; to open one may wait, or do something.
fn can_be_opened(path: &Path) -> io::Result<()> {
    if fs::metadata(path)?.file_type().is_socket() {
        return Err(Errno::NXIO.into());
    }
    Ok(accessat(CWD, path, Access::WRITE_OK, AtFlags::EACCESS)?)
}

/// Standard output without the standard library, which takes a descriptor that cannot be written to for
/// one that took all.
struct StandardOutput;

impl Write for StandardOutput {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        Ok(rustix::io::write(io::stdout(), bytes)?)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn through(
    to: impl Write,
    content: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> io::Result<()> {
    let mut to = BufWriter::new(to);
    let written = content(&mut to).and_then(|()| to.flush());
    // What is left in the buffer has been refused once: dropping must not try it again.
    drop(to.into_parts());
    match written {
        Err(e) if e.kind() == ErrorKind::BrokenPipe => Ok(()),
        written => written,
    }
}

fn failed(operation: &'static str, path: &Path, base_dir: &Path, source: io::Error) -> StoreError {
    let hint = write_hint(&source);
    let path = if path == Path::new("-") { path.to_path_buf() } else { base_dir.join(path) };
    StoreError::Write { operation, path: shown(&path, "standard output"), hint, source }
}

#[cfg(test)]
#[path = "output_tests.rs"]
mod tests;
