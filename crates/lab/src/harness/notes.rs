//! Notes of directories and devices that a run has made and that outlive it when it is killed.
//!
//! The invariant: only items that iotomy made and that no run uses any more are removed. A run
//! writes down what it makes in a note in the user's state directory, and holds a lock on the note.
//! A note whose lock is free belongs to a killed run; the next run removes what it names and
//! nothing else.

use std::ffi::OsStr;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use rustix::fs::{FlockOperation, flock};

use super::State;
use super::{own_folder, zram};

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

/// Removes the item that a note names, if it still exists and is ours.
type Remove = fn(&[u8]) -> Option<LeftBehind>;

/// Removes the items that killed runs left behind.
pub fn remove_left_behind(state: &State) -> Vec<LeftBehind> {
    let kinds: [(&str, Remove); 2] =
        [(own_folder::NOTE, own_folder::remove_noted), (zram::NOTE, zram::remove_noted)];
    let Ok(notes) = state.folder().and_then(fs::read_dir) else { return Vec::new() };
    let of = |name: &OsStr| {
        let name = name.as_bytes();
        kinds.iter().find(|(kind, _)| name.starts_with(kind.as_bytes())).map(|(_, remove)| *remove)
    };
    let notes = notes.flatten().filter_map(|entry| Some((entry.path(), of(&entry.file_name())?)));
    notes.filter_map(|(note, remove)| settle(&note, remove)).collect()
}

fn settle(note: &Path, remove: Remove) -> Option<LeftBehind> {
    let file = OpenOptions::new().read(true).write(true).open(note).ok()?;
    // A locked note belongs to a run in progress.
    flock(&file, FlockOperation::NonBlockingLockExclusive).ok()?;
    let found = remove(&fs::read(note).ok()?);
    // If the item cannot be removed now, the note stays and the next run tries again.
    if found.as_ref().is_none_or(|found| found.error.is_none()) {
        let _ = fs::remove_file(note);
    }
    found
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
