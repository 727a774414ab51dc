//! The names of a history and of what is set aside of it.
//!
//! No two names change at once, so what was written ahead (WAL) leaves the history one moment before the new
//! one comes. A salvage that is killed in this moment is undone by the next, which knows it by the second
//! name of the history that it finds.

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};

use crate::HistoryError;

/// What is copied at once: SQLite's usual page.
const PIECE: usize = 4096;

/// The newest that was set aside of the history in `path`.
pub(crate) fn newest(path: &Path) -> Option<PathBuf> {
    numbered(path).into_iter().next_back()
}

/// All that were set aside, by their numbers.
fn numbered(path: &Path) -> Vec<PathBuf> {
    let (Some(folder), Some(name)) = (path.parent(), path.file_name()) else { return Vec::new() };
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    let start = format!("{}.damaged-", name.to_string_lossy());
    let number = |entry: &fs::DirEntry| -> Option<u64> {
        entry.file_name().to_str()?.strip_prefix(&start)?.parse().ok()
    };
    let mut found: Vec<u64> = entries.flatten().filter_map(|entry| number(&entry)).collect();
    found.sort_unstable();
    found.into_iter().map(|number| beside(path, &format!(".damaged-{number}"))).collect()
}

/// Keeps another salvage from doing the same; `None` where that cannot be had.
pub(crate) fn alone(path: &Path) -> Result<Option<File>, HistoryError> {
    let folder = path.parent().unwrap_or(Path::new("."));
    let Ok(folder) = File::open(folder) else { return Ok(None) };
    match flock(&folder, FlockOperation::NonBlockingLockExclusive) {
        Err(rustix::io::Errno::WOULDBLOCK) => Err(HistoryError::Refused {
            attempt: "salvage",
            path: path.to_owned(),
            said: "another salvage is at work".to_owned(),
            hint: "",
        }),
        other => Ok(other.is_ok().then_some(folder)),
    }
}

/// Undoes what a salvage has done that was killed before the new history was there.
pub(crate) fn take_back(path: &Path) -> Result<(), HistoryError> {
    let failed = |error| HistoryError::io("open", path, &error);
    let file = |path: &Path| fs::metadata(path).ok().map(|found| (found.dev(), found.ino()));
    let ahead = beside(path, "-wal");
    for aside in numbered(path).iter().filter(|aside| file(aside) == file(path)) {
        let its = beside(aside, "-wal");
        match (length(&its), length(&ahead)) {
            (None, _) => {}
            (Some(_), None | Some(0)) => {
                let _ = fs::remove_file(&ahead);
                fs::hard_link(&its, &ahead).map_err(failed)?;
            }
            (Some(_), Some(_)) if file(&its) == file(&ahead) => {}
            // Somebody has written to it since.
            (Some(_), Some(_)) => continue,
        }
        let _ = fs::remove_file(&its);
        fs::remove_file(aside).map_err(failed)?;
    }
    Ok(())
}

/// Gives the file, and what was written ahead, second names that were free, and takes what was written
/// ahead away from the first one.
pub(crate) fn set_aside(path: &Path) -> Result<PathBuf, HistoryError> {
    let is_free = |name: &PathBuf| {
        ["", "-wal"].iter().all(|end| fs::symlink_metadata(beside(name, end)).is_err())
    };
    let mut names = (1u64..).map(|number| beside(path, &format!(".damaged-{number}")));
    let aside = names.find(is_free).unwrap_or_else(|| beside(path, ".damaged"));
    let ahead = beside(path, "-wal");
    second_name(path, &aside)?;
    if length(&ahead).is_some_and(|length| length > 0) {
        second_name(&ahead, &beside(&aside, "-wal"))?;
    }
    sync_folder(path);
    for end in ["-wal", "-shm", "-journal"] {
        // It is of the damaged one, by its name.
        match fs::remove_file(beside(path, end)) {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                return Err(HistoryError::io("set aside", path, &error));
            }
            _ => {}
        }
    }
    Ok(aside)
}

/// A link, or else a copy, which is there whole or not at all.
fn second_name(path: &Path, name: &Path) -> Result<(), HistoryError> {
    if fs::hard_link(path, name).is_ok() {
        return Ok(());
    }
    let part = beside(name, ".part");
    copy(path, &part, true)?;
    fs::rename(&part, name).map_err(|error| HistoryError::io("set aside", path, &error))
}

/// Copies a file for its owner alone; of what a failing disk does not give, zeros. One that is not there is
/// an error if it `must` be.
pub(crate) fn copy(path: &Path, to: &Path, must: bool) -> Result<(), HistoryError> {
    let failed = |error| HistoryError::io("copy", path, &error);
    let from = match File::open(path) {
        Err(error) if error.kind() == ErrorKind::NotFound && !must => return Ok(()),
        opened => opened.map_err(failed)?,
    };
    let made = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(to);
    let mut made = made.map_err(failed)?;
    let read = |piece: &mut [u8], at| from.read_at(piece, at);
    pieces(read, length(path).unwrap_or(0), &mut made)
        .and_then(|()| made.sync_all())
        .map_err(failed)
}

fn pieces(
    mut read: impl FnMut(&mut [u8], u64) -> io::Result<usize>,
    length: u64,
    to: &mut impl Write,
) -> io::Result<()> {
    let mut at = 0;
    while at < length {
        let mut piece = [0; PIECE];
        let wanted = PIECE.min(usize::try_from(length - at).unwrap_or(PIECE));
        let got = match read(&mut piece[..wanted], at) {
            Ok(0) => return Ok(()),
            Ok(got) => got,
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            // A page that cannot be read: EIO.
            Err(error) if error.raw_os_error() == Some(rustix::io::Errno::IO.raw_os_error()) => {
                wanted
            }
            Err(error) => return Err(error),
        };
        to.write_all(&piece[..got])?;
        at += got as u64;
    }
    Ok(())
}

pub(crate) fn length(path: &Path) -> Option<u64> {
    fs::metadata(path).ok().map(|file| file.len())
}

/// Has the names stay when the power goes, where the file system can.
pub(crate) fn sync_folder(path: &Path) {
    let folder = path.parent().and_then(|folder| File::open(folder).ok());
    let _ = folder.map(|folder| folder.sync_all());
}

/// Removes what is no history: made for a salvage, or left by one that was killed.
pub(crate) fn forget(file: &Path) {
    for end in ["", "-wal", "-shm", "-journal"] {
        let _ = fs::remove_file(beside(file, end));
    }
}

pub(crate) fn beside(path: &Path, end: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(end);
    name.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_what_a_failing_disk_does_not_give_a_copy_has_zeros() {
        let read = |piece: &mut [u8], at: u64| match at {
            4096 => Err(rustix::io::Errno::IO.into()),
            _ => {
                piece.fill(b'x');
                Ok(piece.len())
            }
        };
        let mut copied = Vec::new();
        pieces(read, 2 * 4096 + 7, &mut copied).unwrap();
        assert_eq!(copied.len(), 2 * 4096 + 7);
        let zeros = copied.iter().enumerate().filter(|(_, byte)| **byte == 0);
        assert!(zeros.map(|(at, _)| at).eq(4096..2 * 4096));
        let other = |_: &mut [u8], _| Err(rustix::io::Errno::ACCESS.into());
        assert!(pieces(other, 1, &mut copied).is_err());
    }
}
