//! The removal of what killed runs left behind, by their notes.

use std::ffi::OsStr;
use std::fs::{self, OpenOptions};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use rustix::fs::{FlockOperation, flock};

use super::notes::LeftBehind;
use super::{State, own_folder, zram};

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
