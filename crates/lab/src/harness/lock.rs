//! One run of an experiment at a time: two runs would overwrite each other's saved state, and
//! disturb each other's measurements.
//!
//! The invariant: the holder of the lock holds the file that currently has the lock's name. It is a
//! lock of the kernel (flock), so a run that is killed releases it.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};

use super::State;

/// The lock of an experiment, held until it is dropped.
#[derive(Debug)]
pub struct Lock {
    path: PathBuf,
    _file: File,
}

/// The error that the experiment is already running.
#[derive(Debug, thiserror::Error)]
#[error(
    "{experiment} is already running{by}; wait for its end, or set XDG_STATE_HOME=DIR for this run"
)]
pub struct Locked {
    experiment: String,
    /// The process named in the lock file.
    by: String,
}

impl Lock {
    /// Acquires the lock of an experiment. Returns `None` if there can be none, because no file can
    /// be created or the file system has no locks: then either nothing can be saved, or the run
    /// proceeds without a lock.
    ///
    /// # Errors
    /// Fails if another run holds the lock.
    pub fn take(state: &State, experiment: &str) -> Result<Option<Self>, Locked> {
        let Ok(folder) = state.folder() else { return Ok(None) };
        let path = folder.join(format!("lab-{experiment}.lock"));
        let busy = |by: String| Locked { experiment: experiment.to_owned(), by };
        match taken(&path) {
            Ok(file) => Ok(Some(Self { path, _file: file })),
            Err(Refused::Busy(by)) => Err(busy(by)),
            Err(Refused::Impossible) => Ok(None),
        }
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        // Remove the file while it is still locked: a process that waits for this file then notices
        // that the name is gone.
        let _ = fs::remove_file(&self.path);
    }
}

enum Refused {
    Busy(String),
    Impossible,
}

impl From<io::Error> for Refused {
    fn from(_: io::Error) -> Self {
        Self::Impossible
    }
}

/// Opens and locks the file at a path, and writes the id of this process into it.
fn taken(path: &Path) -> Result<File, Refused> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    loop {
        let mut options = OpenOptions::new();
        let mut file = options.read(true).write(true).create(true).truncate(false).open(path)?;
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {}
            Err(rustix::io::Errno::WOULDBLOCK) => return Err(Refused::Busy(holder(&mut file))),
            Err(_) => return Err(Refused::Impossible),
        }
        let own = file.metadata()?;
        // Between open and lock the holder may have ended and removed the file.
        let is_there = fs::metadata(path)
            .is_ok_and(|there| (own.dev(), own.ino()) == (there.dev(), there.ino()));
        if is_there {
            file.set_len(0)?;
            file.write_all(std::process::id().to_string().as_bytes())?;
            return Ok(file);
        }
    }
}

/// Names the process in a locked file, as the end of a sentence.
fn holder(file: &mut File) -> String {
    let mut text = String::new();
    let is_read = file.read_to_string(&mut text).is_ok();
    match text.trim().parse::<u32>() {
        Ok(pid) if is_read => format!(", by process {pid}"),
        // The holder has just started.
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_experiment_is_run_once_at_a_time_and_nothing_is_left() {
        let folder = tempfile::tempdir().unwrap();
        let state = State::in_folder(folder.path().join("deep"));
        let first = Lock::take(&state, "copy").unwrap();
        let refused = Lock::take(&state, "copy").unwrap_err().to_string();
        let by = format!("copy is already running, by process {};", std::process::id());
        assert!(refused.starts_with(&by) && refused.contains("XDG_STATE_HOME"), "{refused}");
        assert!(Lock::take(&state, "herd").unwrap().is_some(), "another experiment");
        drop(first);
        assert!(Lock::take(&state, "copy").unwrap().is_some());
        assert_eq!(fs::read_dir(folder.path().join("deep")).unwrap().count(), 0);
    }

    #[test]
    fn what_a_killed_run_left_is_no_lock() {
        let folder = tempfile::tempdir().unwrap();
        let state = State::in_folder(folder.path());
        fs::write(folder.path().join("lab-copy.lock"), "12345678 and more").unwrap();
        let lock = Lock::take(&state, "copy").unwrap().unwrap();
        let text = fs::read_to_string(&lock.path).unwrap();
        assert_eq!(text, std::process::id().to_string());
    }

    #[test]
    fn where_no_file_can_be_made_a_run_goes_on_without() {
        assert!(Lock::take(&State::in_folder("/proc/nowhere"), "copy").unwrap().is_none());
    }
}
