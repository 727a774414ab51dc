//! Temporary directories for the duration of a bench.
//!
//! The invariant: a directory is locked while its bench lives, and the kernel releases the lock however the bench ends.
//! An unlocked directory was therefore left by a killed bench, and the next bench that creates a directory in the same
//! place removes it.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use anyhow::{Context, Result};
use rustix::fs::{FlockOperation, flock};
use tempfile::TempDir;

const PREFIX: &str = "iotomy-bench-";

/// A directory that is removed when this value is dropped.
#[derive(Debug)]
pub struct Scratch {
    folder: TempDir,
    /// Unlocked once the directory is removed.
    _lock: File,
}

impl Scratch {
    /// Creates a directory in the system's directory for temporary files.
    ///
    /// # Errors
    /// When the directory cannot be created.
    pub fn new() -> Result<Self> {
        Self::below(&std::env::temp_dir())
    }

    /// Creates a directory in `place`, and removes those that killed benches left there.
    ///
    /// # Errors
    /// When the directory cannot be created.
    pub fn below(place: &Path) -> Result<Self> {
        clear(place);
        loop {
            let folder = tempfile::Builder::new().prefix(PREFIX).tempdir_in(place);
            let folder = folder.with_context(|| {
                format!("cannot make a temporary folder in {}", place.display())
            })?;
            if let Some(lock) = locked(folder.path()).context("cannot lock a temporary folder")? {
                return Ok(Self { folder, _lock: lock });
            }
        }
    }

    /// Returns the path of the directory.
    pub fn path(&self) -> &Path {
        self.folder.path()
    }
}

/// Locks a newly created directory; returns `None` if another bench has removed it as abandoned.
fn locked(folder: &Path) -> io::Result<Option<File>> {
    let lock = match File::open(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        opened => opened?,
    };
    flock(&lock, FlockOperation::LockExclusive)?;
    Ok(is_at(&lock, folder).then_some(lock))
}

fn is_at(file: &File, path: &Path) -> bool {
    let number = |metadata: io::Result<fs::Metadata>| metadata.map(|m| (m.dev(), m.ino())).ok();
    let there = number(fs::symlink_metadata(path));
    there.is_some() && there == number(file.metadata())
}

/// Removes files that killed benches left in a directory. A file that cannot be removed is another
/// user's.
fn clear(place: &Path) {
    for entry in fs::read_dir(place).into_iter().flatten().flatten() {
        let is_ours = entry.file_name().as_encoded_bytes().starts_with(PREFIX.as_bytes())
            && entry.file_type().is_ok_and(|kind| kind.is_dir());
        let Some(lock) = is_ours.then(|| File::open(entry.path()).ok()).flatten() else { continue };
        if flock(&lock, FlockOperation::NonBlockingLockExclusive).is_ok() {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_killed_bench_left_is_removed_and_what_a_live_one_has_is_not() {
        let place = tempfile::tempdir().unwrap();
        let live = Scratch::below(place.path()).unwrap();
        let left = place.path().join(format!("{PREFIX}left"));
        let other = place.path().join("other");
        for folder in [&left, &other] {
            fs::create_dir(folder).unwrap();
            fs::write(folder.join("file"), "").unwrap();
        }
        let next = Scratch::below(place.path()).unwrap();
        assert!(!left.exists());
        assert!(other.exists() && live.path().is_dir() && next.path().is_dir());
        drop((live, next));
        assert_eq!(fs::read_dir(place.path()).unwrap().count(), 1);
    }
}
