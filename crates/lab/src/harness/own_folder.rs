//! Named directories that a run has made, and their removal however the run ends.
//!
//! The invariant: only directories that iotomy made and that no run uses any more are removed. A
//! directory is written down in a [`Note`] before it is made. Nothing outside such a directory is
//! ever removed.

use std::ffi::OsStr;
use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

use iotomy_host::Skip;
use iotomy_record::path_text;

use super::State;
use super::notes::{LeftBehind, Note, unique};

/// Prefix of the names of all such directories.
const PREFIX: &str = ".iotomy-lab-";

/// Prefix of the names of notes.
pub(crate) const NOTE: &str = "made-";

/// A directory of this run. Dropping it removes it with its contents.
#[derive(Debug)]
pub(crate) struct OwnFolder {
    path: PathBuf,
    note: Option<Note>,
}

impl OwnFolder {
    /// Creates a new directory in `parent` that only this user can access.
    pub(crate) fn in_folder(parent: &Path) -> Result<Self, Skip> {
        Self::noted(parent, State::of_user().and_then(|state| state.folder().ok()).as_deref())
    }

    fn noted(parent: &Path, notes: Option<&Path>) -> Result<Self, Skip> {
        let unique = unique();
        let refused = |call: &str, path: &Path, error: io::Error| {
            let Skip(text) = Skip::refused(call, error);
            Skip(format!("{}: {text}", path_text(path)))
        };
        let path = std::path::absolute(parent.join(format!("{PREFIX}{unique}")))
            .map_err(|e| refused("getcwd", parent, e))?;
        // Without a note, a killed run leaves its directory behind, under a recognisable name.
        let note = notes.and_then(|folder| {
            Note::write(folder, NOTE, &unique, path.as_os_str().as_bytes()).ok()
        });
        let made = DirBuilder::new().mode(0o700).create(&path);
        made.map_err(|e| refused("mkdir", parent, e))?;
        Ok(Self { path, note })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for OwnFolder {
    fn drop(&mut self) {
        // If the directory cannot be removed now, the note stays and the next run tries again.
        if fs::remove_dir_all(&self.path).is_ok()
            && let Some(note) = &self.note
        {
            note.forget();
        }
    }
}

/// Removes the directory that a note names, if it exists and is ours.
pub(crate) fn remove_noted(content: &[u8]) -> Option<LeftBehind> {
    let path = PathBuf::from(OsStr::from_bytes(content));
    is_ours(&path).then(|| {
        let error = fs::remove_dir_all(&path).err();
        LeftBehind { path, error }
    })
}

/// Whether the path has one of our names and is a directory, not a symbolic link, owned by this
/// user.
fn is_ours(path: &Path) -> bool {
    let named = |name: &OsStr| name.as_bytes().starts_with(PREFIX.as_bytes());
    let is_named = path.is_absolute() && path.file_name().is_some_and(named);
    let user = rustix::process::geteuid().as_raw();
    is_named && fs::symlink_metadata(path).is_ok_and(|found| found.is_dir() && found.uid() == user)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::harness::left_behind::remove_left_behind;

    #[test]
    fn a_folder_goes_with_its_run_and_nothing_else_does() {
        let (parent, notes) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        fs::write(parent.path().join("foreign"), "x").unwrap();
        let made = OwnFolder::noted(parent.path(), Some(notes.path())).unwrap();
        fs::create_dir(made.path().join("deep")).unwrap();
        fs::write(made.path().join("deep/file"), "x").unwrap();
        assert_eq!(fs::metadata(made.path()).unwrap().mode() & 0o777, 0o700);
        // Another run that starts meanwhile leaves the directory alone.
        let state = State::in_folder(notes.path());
        assert!(remove_left_behind(&state).is_empty());
        assert!(made.path().exists());
        drop(made);
        let left: Vec<_> = fs::read_dir(parent.path()).unwrap().flatten().collect();
        assert_eq!(left.len(), 1, "{left:?}");
        assert_eq!(fs::read_dir(notes.path()).unwrap().count(), 0);
    }

    #[test]
    fn what_a_killed_run_left_is_removed_by_its_note() {
        let (parent, notes) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let left = parent.path().join(format!("{PREFIX}1-1"));
        fs::create_dir(&left).unwrap();
        fs::write(left.join("file"), "x").unwrap();
        fs::write(notes.path().join("made-1-1"), left.as_os_str().as_bytes()).unwrap();
        // Notes of items that no longer exist, or were never ours.
        fs::write(notes.path().join("made-2-1"), "/nowhere/.iotomy-lab-2-1").unwrap();
        let foreign = parent.path().join("mine");
        fs::create_dir(&foreign).unwrap();
        fs::write(notes.path().join("made-3-1"), foreign.as_os_str().as_bytes()).unwrap();
        let link = parent.path().join(format!("{PREFIX}4-1"));
        std::os::unix::fs::symlink(&foreign, &link).unwrap();
        fs::write(notes.path().join("made-4-1"), link.as_os_str().as_bytes()).unwrap();
        let removed = remove_left_behind(&State::in_folder(notes.path()));
        let paths: Vec<_> = removed.iter().map(|one| one.path.clone()).collect();
        assert_eq!(paths, std::slice::from_ref(&left));
        assert!(!left.exists() && foreign.exists() && link.is_symlink());
        assert_eq!(fs::read_dir(notes.path()).unwrap().count(), 0);
    }

    #[test]
    fn a_folder_that_cannot_be_made_says_where_and_why() {
        let Skip(reason) = OwnFolder::noted(Path::new("/proc"), None).unwrap_err();
        assert!(reason.starts_with("/proc: mkdir: "), "{reason}");
    }
}
