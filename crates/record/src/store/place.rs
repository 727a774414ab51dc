//! Where an output goes once its name is looked up: to a file that can be replaced, or through what
//! cannot.

use std::fs::{self, Metadata};
use std::io::{self, ErrorKind};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// Links followed before they are called a circle; the kernel's own bound.
const MAX_LINKS: usize = 40;

/// Where an output goes once every link is followed.
#[derive(Debug)]
pub enum Place {
    /// A regular file, or a name that is free: what is written beside it may be renamed over it.
    Replace {
        /// The name, of which no part is a link but those of its folder.
        path: PathBuf,
        /// What is there now.
        old: Option<Metadata>,
    },
    /// Anything else: a device, a FIFO, a socket, or what a name in `/proc` leads to.
    Through {
        /// The name to open.
        path: PathBuf,
        /// Whether truncating or overwriting would hurt what others wrote.
        append: bool,
    },
}

impl Place {
    /// Looks a name up.
    ///
    /// # Errors
    /// When it is a folder, or its links or folders cannot be followed.
    pub fn of(path: &Path) -> io::Result<Self> {
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

/// The folder a name is in.
pub(super) fn folder_of(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if parent.as_os_str().is_empty() => Path::new("."),
        Some(parent) => parent,
        None => path,
    }
}
