//! Notes of directories and devices that a run has made and that outlive it when it is killed.
//!
//! The invariant: only items that iotomy made and that no run uses any more are removed. A run
//! writes down what it makes in a note in the user's state directory, and holds a lock on the note.
//! A note whose lock is free belongs to a killed run; the next run removes what it names and
//! nothing else.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use rustix::fs::{FlockOperation, flock};

/// A note, locked until the run ends.
#[derive(Debug)]
pub(crate) struct Note {
    path: PathBuf,
    _file: File,
}

impl Note {
    /// Writes a note durably. `kind` is the prefix of its name.
    pub(crate) fn write(
        folder: &Path,
        kind: &str,
        unique: &str,
        content: &[u8],
    ) -> io::Result<Self> {
        fs::create_dir_all(folder)?;
        let mut older = 0u32;
        let (at, mut file) = loop {
            let more = if older == 0 { String::new() } else { format!("-{older}") };
            let at = folder.join(format!("{kind}{unique}{more}"));
            if let Some(file) = held(&at)? {
                break (at, file);
            }
            older += 1;
        };
        file.write_all(content)?;
        file.sync_all()?;
        Ok(Self { path: at, _file: file })
    }

    /// Removes the note: the item it names is gone.
    pub(crate) fn forget(&self) {
        let _ = fs::remove_file(&self.path);
    }
}

/// Creates and locks an empty file at this path. Returns `None` if there is already a note by that
/// name, of a process that had the same id, for an item that could not be removed yet.
fn held(at: &Path) -> io::Result<Option<File>> {
    loop {
        let file =
            OpenOptions::new().read(true).write(true).create(true).truncate(false).open(at)?;
        flock(&file, FlockOperation::LockExclusive)?;
        let own = file.metadata()?;
        // Between open and lock another run may have taken the file for one left behind, and
        // removed it.
        let is_there = fs::metadata(at)
            .is_ok_and(|there| (own.dev(), own.ino()) == (there.dev(), there.ino()));
        if is_there {
            return Ok((own.len() == 0).then_some(file));
        }
    }
}

/// Returns a word that no other note of this machine's processes has.
pub(crate) fn unique() -> String {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    format!("{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed))
}

/// The result of removing an item that a killed run had left.
#[derive(Debug)]
pub struct LeftBehind {
    /// Its path.
    pub path: PathBuf,
    /// Why it could not be removed.
    pub error: Option<io::Error>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_note_of_something_that_is_still_there_is_not_written_over() {
        let folder = tempfile::tempdir().unwrap();
        let older = folder.path().join("kind-1");
        fs::write(&older, "still there").unwrap();
        let note = Note::write(folder.path(), "kind-", "1", b"mine").unwrap();
        assert_eq!(fs::read(&older).unwrap(), b"still there");
        assert_eq!(fs::read(&note.path).unwrap(), b"mine");
        note.forget();
        assert!(older.exists() && !note.path.exists());
    }

    #[test]
    fn an_empty_note_is_taken_over() {
        let folder = tempfile::tempdir().unwrap();
        let left = folder.path().join("kind-1");
        fs::write(&left, "").unwrap();
        let note = Note::write(folder.path(), "kind-", "1", b"mine").unwrap();
        assert_eq!(note.path, left);
    }
}
