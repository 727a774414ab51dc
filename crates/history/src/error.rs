//! Errors between a run and the history, each with the advice to print.

use std::path::{Path, PathBuf};

use iotomy_record::path_text;
use iotomy_record::store::RecordError;
use rusqlite::ErrorCode;

/// Why something could not be kept or found.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum HistoryError {
    /// There is no directory for it.
    #[error(
        "no location for the history: neither XDG_DATA_HOME nor HOME names a directory; set one"
    )]
    NoPlace,
    /// SQLite or the system refused.
    #[error("cannot {attempt} the history {path}: {said}{hint}", path = path_text(.path))]
    Refused {
        /// `open`, `read`, `write to`.
        attempt: &'static str,
        /// The store.
        path: PathBuf,
        /// SQLite's message.
        said: String,
        /// The advice, with its separator; may be empty.
        hint: &'static str,
    },
    /// A later iotomy has written it.
    #[error(
        "the history {path} has version {found}, and this iotomy supports {known}; use a newer \
         iotomy, or another XDG_DATA_HOME", path = path_text(.path))]
    Newer {
        /// The store.
        path: PathBuf,
        /// Its version.
        found: i64,
        /// The version this iotomy writes.
        known: i64,
    },
    /// There is nothing in it, and nothing to be saved.
    #[error("there is no history {path} yet; keep a run with --save", path = path_text(.path))]
    Nothing {
        /// The store.
        path: PathBuf,
    },
    /// It is a database of something else.
    #[error("{path} is not a history of iotomy; move it away", path = path_text(.path))]
    Foreign {
        /// The file.
        path: PathBuf,
    },
    /// The content of the file is impossible.
    #[error(
        "the history {path} is damaged: {said}; `sqlite3 {path} .recover` prints what can be read of it", path = path_text(.path))]
    Damaged {
        /// The store.
        path: PathBuf,
        /// SQLite's message.
        said: String,
    },
    /// One run's record cannot be read.
    #[error("the record of run {id} in the history {path} cannot be read: {what}", path = path_text(.path))]
    Record {
        /// The run.
        id: u64,
        /// The store.
        path: PathBuf,
        /// The mistake.
        what: String,
    },
    /// A record that no reader would accept is not kept.
    #[error("cannot keep the record: {0}")]
    Unfit(#[from] RecordError),
    /// There is no such run.
    #[error(
        "there is no run {asked} in the history {path}; list the runs with `iotomy history \
        list`", path = path_text(.path))]
    NoRun {
        /// The requested run.
        asked: String,
        /// The store.
        path: PathBuf,
    },
    /// No run has the name of a baseline, or none has it any more.
    #[error(
        "there is no baseline {asked:?} in the history {path}: no run has this name, or it was \
         removed; keep one with --save={name}", path = path_text(.path), name = to_save(.asked))]
    NoBaseline {
        /// The requested run.
        asked: String,
        /// The store.
        path: PathBuf,
    },
    /// A baseline of runs that were all cut short.
    #[error(
        "cannot compare with {asked:?}: every run of this name was interrupted; keep a complete \
         one with --save={name}, or name a run by its number", name = to_save(.asked))]
    CutShort {
        /// The requested run.
        asked: String,
    },
    /// A run that was to be its own baseline.
    #[error(
        "cannot compare a run with itself: {asked} is the same run; name another run to \
         compare it with"
    )]
    Itself {
        /// The requested run.
        asked: String,
    },
    /// A baseline of another machine.
    #[error(
        "cannot compare with {asked}: it is from another machine ({there}; this is {here}); keep \
         a baseline on this one, or compare both with `iotomy history diff`{hint}"
    )]
    Elsewhere {
        /// The requested run.
        asked: String,
        /// The machine of the baseline.
        there: String,
        /// The machine of the compared run.
        here: String,
        /// The advice for one machine with two names, with its separator; may be empty.
        hint: String,
    },
    /// A name that could be taken for something else.
    #[error("cannot name a run {name:?}: {why}")]
    Name {
        /// The name.
        name: String,
        /// Why not.
        why: &'static str,
    },
    /// Two records that have nothing in common.
    #[error("cannot compare {first} and {second}: {why}")]
    Unlike {
        /// The earlier one.
        first: String,
        /// The later one.
        second: String,
        /// Why not.
        why: String,
    },
    /// No run is of such a machine.
    #[error("no run of the machine {asked:?} is kept; known: {known}")]
    NoMachine {
        /// The requested machine.
        asked: String,
        /// The machines there are.
        known: String,
    },
    /// Several machines are called so.
    #[error("several machines are called {asked:?}: {known}; give more of the one that is meant")]
    Machines {
        /// The requested machine.
        asked: String,
        /// These machines.
        known: String,
    },
    /// Nothing was kept of it.
    #[error("no run of {asked:?} is kept{alike}")]
    NoTrend {
        /// The requested run.
        asked: String,
        /// The similar names, with their separator.
        alike: String,
    },
}

impl HistoryError {
    /// SQLite's error during `attempt`.
    pub(crate) fn from_sqlite(attempt: &'static str, path: &Path, error: &rusqlite::Error) -> Self {
        let said = message(error);
        let path = path.to_owned();
        let code = error.sqlite_error_code();
        if matches!(code, Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase)) {
            return Self::Damaged { path, said };
        }
        let hint = match code {
            Some(ErrorCode::DiskFull) => {
                "; free some space, or set XDG_DATA_HOME to another \
                directory"
            }
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => {
                "; another program has locked it for too long"
            }
            Some(ErrorCode::ReadOnly | ErrorCode::PermissionDenied | ErrorCode::CannotOpen) => {
                "; check that you may write to it, or set XDG_DATA_HOME to another directory"
            }
            Some(ErrorCode::SystemIoFailure) => "; check whether the disk is full or failing",
            _ => "",
        };
        Self::Refused { attempt, path, said, hint }
    }

    /// The system's error during `attempt`.
    pub(crate) fn io(attempt: &'static str, path: &Path, error: &std::io::Error) -> Self {
        let hint = "; set XDG_DATA_HOME to another directory";
        Self::Refused { attempt, path: path.to_owned(), said: error.to_string(), hint }
    }
}

/// What a run can be kept as to become a baseline that was asked for by this name: a number is no name.
fn to_save(asked: &str) -> &str {
    if asked.bytes().all(|byte| byte.is_ascii_digit()) { "NAME" } else { asked }
}

/// In a line.
fn message(error: &rusqlite::Error) -> String {
    let text = match error {
        rusqlite::Error::SqliteFailure(_, Some(text)) => text.clone(),
        other => other.to_string(),
    };
    text.replace('\n', " ")
}
