//! The measurements of an interrupted run, saved so that it can be resumed: the record so far.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use iotomy_record::Sweep;
use iotomy_record::store::{self, OutputFile, RecordRef, StoreError};

/// Where interrupted runs are kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct State {
    folder: PathBuf,
}

impl State {
    /// The user's: `iotomy` in `XDG_STATE_HOME` or in `~/.local/state`. `None` when neither is known.
    pub fn of_user() -> Option<Self> {
        let states = store::user_folder("XDG_STATE_HOME", ".local/state")?;
        Some(Self::in_folder(states.join("iotomy")))
    }

    /// One in a folder of its own.
    pub fn in_folder(folder: impl Into<PathBuf>) -> Self {
        Self { folder: folder.into() }
    }

    /// The folder itself.
    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// The file of an experiment.
    pub fn file(&self, experiment: &str) -> PathBuf {
        self.folder.join(format!("lab-{experiment}.json"))
    }

    /// The measurements of an interrupted run of it, if there is one.
    ///
    /// # Errors
    /// When there is a file that is no such record.
    pub fn load(&self, experiment: &str) -> Result<Option<Sweep>, StoreError> {
        match store::load_sweep(self.file(experiment)) {
            Ok(sweep) => Ok(Some(sweep)),
            Err(StoreError::Read { source, .. }) if source.kind() == io::ErrorKind::NotFound => {
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    /// Keeps what a run has measured so far.
    ///
    /// # Errors
    /// When it cannot be written whole; what was kept before is as it was.
    pub fn save(&self, sweep: &Sweep) -> Result<(), StoreError> {
        // The write reports a directory that cannot be created.
        let _ = fs::create_dir_all(&self.folder);
        let to = OutputFile::open(&self.file(&sweep.experiment), Path::new("/"))?;
        // Made after every visit: a disk that is synced is not the disk that is measured.
        RecordRef::Sweep(sweep).save(to.unsynced())
    }

    /// Forgets what was kept: the run has come to its end.
    pub fn forget(&self, experiment: &str) {
        // That there is none is as good.
        let _ = fs::remove_file(self.file(experiment));
    }
}
