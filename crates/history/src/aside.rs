//! A damaged history is set aside, so that a new one can be begun.
//!
//! The tricky invariant: the write-ahead log (WAL) is renamed first, since SQLite discards it where
//! it finds no history beside it. A process killed in between leaves both, and the next one gives
//! the history the matching name.

use std::fs::{self, File};
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};

use crate::HistoryError;

/// Files with changes that have not reached the main file.
const FIRST: [&str; 2] = ["-wal", "-journal"];

/// Which file has a name at a moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Identity {
    device: u64,
    inode: u64,
}

impl Identity {
    /// That of `path`, if it exists.
    pub fn read(path: &Path) -> Option<Self> {
        let found = fs::metadata(path).ok()?;
        Some(Self { device: found.dev(), inode: found.ino() })
    }
}

/// Renames the history in `path`, which was found `damaged`, and its write-ahead log to free names,
/// `history.db.damaged-1` and so on; returns the first of them. None where another process has done
/// so meanwhile.
///
/// # Errors
/// When the file system refuses; both are then under one of their names.
pub fn set_aside(path: &Path, damaged: Option<Identity>) -> Result<Option<PathBuf>, HistoryError> {
    let failed = |error: std::io::Error| HistoryError::io("set aside", path, &error);
    let absent = |error: &std::io::Error| error.kind() == ErrorKind::NotFound;
    // SQLite's files are beside the target of a link.
    let real = match path.canonicalize() {
        Err(error) if absent(&error) => return Ok(None),
        found => found.map_err(failed)?,
    };
    let folder = File::open(real.parent().unwrap_or(Path::new("/"))).map_err(failed)?;
    flock(&folder, FlockOperation::LockExclusive).map_err(|error| failed(error.into()))?;
    if damaged.is_none() || Identity::read(&real) != damaged {
        return Ok(None);
    }
    let is_there = |path: &Path| fs::symlink_metadata(path).is_ok();
    let is_free = |name: &PathBuf| {
        let mut ends = FIRST.iter().chain(&[""]);
        ends.all(|end| !(is_there(&beside(&real, end)) && is_there(&beside(name, end))))
    };
    let mut names = (1u64..).map(|number| beside(&real, &format!(".damaged-{number}")));
    let aside = names.find(is_free).unwrap_or_else(|| beside(&real, ".damaged"));
    for end in FIRST {
        match fs::rename(beside(&real, end), beside(&aside, end)) {
            Err(error) if !absent(&error) => return Err(failed(error)),
            _ => {}
        }
    }
    fs::rename(&real, &aside).map_err(failed)?;
    // An index of the write-ahead log, which is created again at the next opening.
    match fs::remove_file(beside(&real, "-shm")) {
        Err(error) if !absent(&error) => return Err(failed(error)),
        _ => {}
    }
    // The names stay when the power goes, where the file system can.
    let _ = folder.sync_all();
    Ok(Some(aside))
}

fn beside(path: &Path, end: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(end);
    name.into()
}
