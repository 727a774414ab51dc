//! A file that takes its name when it is whole.
//!
//! It has no name at all until then, where the file system can do that, so that not even a kill
//! leaves it behind; else it has one of its own from the start, and is removed on every way out.

use std::fs::{self, File, Metadata, Permissions};
use std::io::{self, ErrorKind};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{MetadataExt, PermissionsExt, fchown};
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, Mode, OFlags, linkat, open};
use tempfile::TempPath;

use super::place::folder_of;

/// A new file, open for reading and writing, that is nowhere yet.
#[derive(Debug)]
pub struct Fresh {
    file: File,
    folder: PathBuf,
    /// The name it has meanwhile, where it must have one.
    named: Option<TempPath>,
}

impl Fresh {
    /// Makes a file in the folder of `path`, with `mode` less the umask.
    ///
    /// # Errors
    /// When no file can be made there.
    pub fn beside(path: &Path, mode: u32) -> io::Result<Self> {
        let folder = folder_of(path).to_path_buf();
        if let Some(file) = unnamed_in(&folder, mode) {
            return Ok(Self { file, folder, named: None });
        }
        let mut name = names();
        name.permissions(Permissions::from_mode(mode));
        let (file, named) = name.tempfile_in(&folder).map_err(plain)?.into_parts();
        Ok(Self { file, folder, named: Some(named) })
    }

    /// The file.
    pub fn file(&self) -> &File {
        &self.file
    }

    /// Makes it like the file it will replace: its mode and, where that is allowed, its owner.
    ///
    /// # Errors
    /// When the mode cannot be set.
    pub fn take_owner_and_mode(&self, old: &Metadata) -> io::Result<()> {
        let now = self.file.metadata()?;
        if (now.uid(), now.gid()) != (old.uid(), old.gid()) {
            // Only root may give a file away; for others the content matters more than the owner.
            let _ = fchown(&self.file, Some(old.uid()), Some(old.gid()));
        }
        self.file.set_permissions(old.permissions())
    }

    /// Gives it the name `path`, which is in its folder; what had that name is gone then.
    ///
    /// # Errors
    /// When it cannot have the name. What had it before still has.
    pub fn put_at(self, path: &Path) -> io::Result<()> {
        let named = match self.named {
            Some(named) => named,
            None => {
                match give_name(&self.file, path) {
                    Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
                    done => return done,
                }
                let file = &self.file;
                let named = names().make_in(&self.folder, |name| give_name(file, name));
                named.map_err(plain)?.into_temp_path()
            }
        };
        named.persist(path).map_err(|e| e.error)
    }
}

fn names() -> tempfile::Builder<'static, 'static> {
    let mut names = tempfile::Builder::new();
    names.prefix(".iotomy-");
    names
}

/// A file without a name in `folder`, where its file system has such and /proc can name it later.
fn unnamed_in(folder: &Path, mode: u32) -> Option<File> {
    let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
    let file = File::from(open(folder, flags, Mode::from_raw_mode(mode)).ok()?);
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
