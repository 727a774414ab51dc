//! Outputs that are whole or not there.
//!
//! The invariant: after a failure the path leads to what it led to before. A regular file is
//! therefore never opened for its new content; that is written beside it and renamed over it.
//! What is not a regular file (a device, a FIFO, a socket) cannot be half-written in that sense
//! and must not be replaced, so it is opened and written through. Symbolic links are followed
//! first and the rule applies to what they lead to, so that a link stays a link.

use std::fs::{self, File, Metadata, OpenOptions, Permissions};
use std::io::{self, BufWriter, ErrorKind, Write};
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt, fchown};
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, Mode, OFlags, linkat, open};

use super::error::write_hint;
use super::{StoreError, shown};

/// Links followed before they are called a circle; the kernel's own bound.
const MAX_LINKS: usize = 40;

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
            return through(io::stdout().lock(), content)
                .map_err(|e| failed("write to", path, base_dir, e));
        }
        let failed = |operation| move |e| failed(operation, path, base_dir, e);
        match Target::of(&base_dir.join(path)).map_err(failed("write"))? {
            Target::Replace { path: real, old } => {
                replace(&real, old.as_ref(), content).map_err(failed("write"))
            }
            Target::Through { path: real, append } => {
                let file = OpenOptions::new()
                    .write(true)
                    .append(append)
                    .open(&real)
                    .map_err(failed("open"))?;
                through(file, content).map_err(failed("write to"))
            }
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
    let Ok(Target::Replace { path, .. }) = Target::of(path) else { return None };
    let parent = folder_of(&path);
    Some(fs::canonicalize(parent).unwrap_or_else(|_| parent.to_path_buf()).join(path.file_name()?))
}

/// Where an output goes once every link is followed.
enum Target {
    /// A regular file, or a name that is free.
    Replace { path: PathBuf, old: Option<Metadata> },
    /// Anything else. `append` where truncating or overwriting would hurt what others wrote.
    Through { path: PathBuf, append: bool },
}

impl Target {
    fn of(path: &Path) -> io::Result<Self> {
        let mut path = path.to_path_buf();
        for _ in 0..MAX_LINKS {
            let metadata = match fs::symlink_metadata(&path) {
                Ok(metadata) => metadata,
                Err(e) if e.kind() == ErrorKind::NotFound && names_a_file(&path) => {
                    return Ok(Self::Replace { path, old: None });
                }
                Err(e) => return Err(e),
            };
            let kind = metadata.file_type();
            if kind.is_symlink() {
                // Following by hand goes round the kernel's own refusals, such as a stranger's link
                // in /tmp (protected_symlinks); a stat that follows does not.
                match fs::metadata(&path) {
                    Err(e) if e.kind() != ErrorKind::NotFound => return Err(e),
                    _ => {}
                }
                // /dev/stdout and /proc/PID/fd/N: what such a link says is no path, and what it
                // leads to is open elsewhere, at a position of its own.
                if fs::canonicalize(folder_of(&path))?.starts_with("/proc") {
                    let append = fs::metadata(&path).is_ok_and(|m| m.is_file());
                    return Ok(Self::Through { path, append });
                }
                path = folder_of(&path).join(fs::read_link(&path)?);
            } else if kind.is_dir() {
                return Err(ErrorKind::IsADirectory.into());
            } else if kind.is_file() {
                return Ok(Self::Replace { path, old: Some(metadata) });
            } else {
                return Ok(Self::Through { path, append: false });
            }
        }
        Err(io::Error::other("too many levels of symbolic links"))
    }
}

/// `x/` and `x/..` name folders, also where there is none.
fn names_a_file(path: &Path) -> bool {
    !path.as_os_str().as_bytes().ends_with(b"/") && path.file_name().is_some()
}

fn folder_of(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if parent.as_os_str().is_empty() => Path::new("."),
        Some(parent) => parent,
        None => path,
    }
}

/// Writes a new file in the same folder and renames it over `path`. The new file has no name until
/// it is whole, where the file system can do that, so that not even a kill leaves it behind; else
/// it has one from the start, and is removed on every way out.
fn replace(
    path: &Path,
    old: Option<&Metadata>,
    content: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> io::Result<()> {
    let folder = folder_of(path);
    let mut named = tempfile::Builder::new();
    named.prefix(".iotomy-");
    if old.is_some() {
        // A rename needs no right to the file it replaces, so ask for it: a file made read-only
        // was made so for a reason.
        OpenOptions::new().write(true).open(path)?;
    } else {
        named.permissions(Permissions::from_mode(0o666));
    }
    let fill = |file: &File| -> io::Result<()> {
        let mut to = BufWriter::new(file);
        content(&mut to)?;
        to.flush()?;
        drop(to);
        old.map_or(Ok(()), |old| keep_owner_and_mode(file, old))
    };
    let ready = match unnamed_in(folder) {
        Some(file) => {
            fill(&file)?;
            named.make_in(folder, |name| give_name(&file, name)).map_err(plain)?.into_temp_path()
        }
        None => {
            let file = named.tempfile_in(folder).map_err(plain)?;
            fill(file.as_file())?;
            file.into_temp_path()
        }
    };
    ready.persist(path).map_err(|e| e.error)
}

/// A file without a name in `folder`, where its file system has such and /proc can name it later.
fn unnamed_in(folder: &Path) -> Option<File> {
    let flags = OFlags::TMPFILE | OFlags::WRONLY | OFlags::CLOEXEC;
    let file = File::from(open(folder, flags, Mode::from_raw_mode(0o666)).ok()?);
    fs::symlink_metadata(proc_name(&file)).is_ok().then_some(file)
}

fn give_name(file: &File, name: &Path) -> io::Result<()> {
    Ok(linkat(CWD, proc_name(file), CWD, name, AtFlags::SYMLINK_FOLLOW)?)
}

fn proc_name(file: &File) -> String {
    format!("/proc/self/fd/{}", file.as_raw_fd())
}

/// What the kernel said, without the name of the file beside, which means nothing to the user.
fn plain(error: io::Error) -> io::Error {
    let text = error.to_string();
    match text.split_once(" at path ") {
        Some((said, _)) => io::Error::new(error.kind(), said),
        None => error,
    }
}

fn keep_owner_and_mode(new: &File, old: &Metadata) -> io::Result<()> {
    let now = new.metadata()?;
    if (now.uid(), now.gid()) != (old.uid(), old.gid()) {
        // Only root may give a file away; for others the content matters more than the owner.
        let _ = fchown(new, Some(old.uid()), Some(old.gid()));
    }
    new.set_permissions(old.permissions())
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
