//! The saved state of an interrupted run, from which it can continue: the record so far.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use iotomy_record::store::{self, OutputFile, RecordRef, StoreError};
use iotomy_record::{Shard, Sweep, path_text};

/// The directory where the state of interrupted runs is saved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct State {
    folder: PathBuf,
}

impl State {
    /// Returns the user's state: `iotomy` in `XDG_STATE_HOME` or in `~/.local/state`. `None` when
    /// neither is known.
    pub fn of_user() -> Option<Self> {
        let states = store::user_folder("XDG_STATE_HOME", ".local/state")?;
        Some(Self::in_folder(states.join("iotomy")))
    }

    /// Uses a given directory.
    pub fn in_folder(folder: impl Into<PathBuf>) -> Self {
        Self { folder: folder.into() }
    }

    /// Returns the directory, without links.
    ///
    /// # Errors
    /// Fails if another user can change what is in it.
    pub(crate) fn folder(&self) -> io::Result<PathBuf> {
        store::trusted_folder(&self.folder)
    }

    /// Returns the name by which the state of a run is saved: its experiment, and for a shard also
    /// which one of what plan. Several shards may be run from one directory.
    pub fn name_of(sweep: &Sweep) -> String {
        let experiment = &sweep.experiment;
        match &sweep.run.shard {
            Some(Shard { index, of, plan, .. }) => format!("{experiment}-{index}-of-{of}-{plan}"),
            None => experiment.clone(),
        }
    }

    /// Returns the file of an experiment, or of a shard by its name.
    pub fn file(&self, experiment: &str) -> PathBuf {
        self.folder.join(format!("lab-{experiment}.json"))
    }

    /// Loads the saved record of an interrupted run of the experiment, if there is one.
    ///
    /// # Errors
    /// Fails if the file exists but is not such a record.
    pub fn load(&self, experiment: &str) -> Result<Option<Sweep>, StoreError> {
        let file = self.file(experiment);
        let refused = |source| StoreError::Read {
            path: path_text(&file),
            hint: "; set XDG_STATE_HOME to another directory",
            source,
        };
        self.folder().map_err(refused)?;
        match store::load_trusted_sweep(&file) {
            Ok(sweep) => Ok(Some(sweep)),
            Err(StoreError::Read { source, .. }) if source.kind() == io::ErrorKind::NotFound => {
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    /// Saves the results of a run so far.
    ///
    /// # Errors
    /// Fails if the record cannot be written completely; the previously saved one stays as it was.
    pub fn save(&self, sweep: &Sweep) -> Result<(), StoreError> {
        let file = self.file(&Self::name_of(sweep));
        let failed = |source| StoreError::Write {
            operation: "write",
            path: path_text(&file),
            hint: "; set XDG_STATE_HOME to another directory",
            source,
        };
        self.folder().and_then(fs::create_dir_all).map_err(failed)?;
        let to = OutputFile::open(&file, Path::new("/"))?;
        // Not synced, because it is written after every visit and a sync would disturb the disk
        // being measured.
        RecordRef::Sweep(sweep).save(to.unsynced())
    }

    /// Removes the saved state: the run has finished.
    pub fn forget(&self, experiment: &str) {
        // A missing file is fine.
        let _ = fs::remove_file(self.file(experiment));
    }
}
