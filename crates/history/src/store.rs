//! The database: made, opened, written to.
//!
//! The one invariant: a run is stored whole or not at all. It is one transaction, written ahead
//! (WAL) and synced, so that a kill at any moment leaves the earlier state; readers and writers do
//! not wait for one another, and two writers queue.

use std::fs::{DirBuilder, OpenOptions};
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use iotomy_record::store::{Place, RecordRef, check_trusted, trusted_folder};
use iotomy_sys::close::close_duplicate;
use rusqlite::{Connection, ErrorCode, OpenFlags, TransactionBehavior, params};

use crate::import::{ImportedRun, same_record};
use crate::{HistoryError, PackedRun};

/// The version of the tables below, which the file has as its `user_version`. Since 2, the texts of the index are
/// [labels](iotomy_record::label); since 3, runs have the name of their machine.
pub(crate) const VERSION: i64 = 3;

/// The first version whose runs have the name of their machine.
pub(crate) const WITH_MACHINES: i64 = 3;

/// `iotm`: the `application_id` that distinguishes the file from other databases.
const APPLICATION: i64 = 0x696f_746d;

/// How long another writer is waited for: a record of 1 GiB takes less to be written to a slow disk.
const PATIENCE: Duration = Duration::from_secs(60);

const TABLES: &str = "
CREATE TABLE runs (
    id       INTEGER PRIMARY KEY AUTOINCREMENT,
    name     TEXT,
    schema   TEXT NOT NULL,
    kind     TEXT NOT NULL,
    started  TEXT NOT NULL,
    subject  TEXT NOT NULL,
    version  TEXT NOT NULL,
    kernel   TEXT NOT NULL,
    hardware TEXT NOT NULL,
    machine  TEXT NOT NULL DEFAULT '',
    bytes    INTEGER NOT NULL,
    record   BLOB NOT NULL
);
CREATE INDEX runs_by_name ON runs (name, id) WHERE name IS NOT NULL;
CREATE INDEX runs_by_start ON runs (started);
CREATE TABLE measures (
    run     INTEGER NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
    place   INTEGER NOT NULL,
    subject TEXT NOT NULL,
    name    TEXT NOT NULL,
    unit    TEXT NOT NULL,
    value   REAL NOT NULL,
    runs    INTEGER NOT NULL,
    PRIMARY KEY (run, place),
    UNIQUE (run, subject, name)
) WITHOUT ROWID;
CREATE INDEX measures_by_subject ON measures (subject, name);
";

/// The history.
#[derive(Debug)]
pub struct Store {
    pub(crate) connection: Connection,
    pub(crate) path: PathBuf,
    /// Whether its runs have the name of their machine: one that is only read is as an earlier iotomy made it.
    has_machines: bool,
}

impl Store {
    /// Opens the existing store; `None` when nothing was ever kept.
    ///
    /// # Errors
    /// When it cannot be read, is damaged, or is of a later version.
    pub fn open(path: &Path) -> Result<Option<Self>, HistoryError> {
        let path = &trusted(path)?;
        match path.metadata() {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(HistoryError::io("open", path, &error)),
            Ok(_) => {}
        }
        let store = match Self::connect(path) {
            // No room for the file through which processes share what is written ahead: without others it is not
            // needed.
            Err(error) if is_without_room(&error) => {
                Self::connect_alone(path).or_else(|_| Self::connect_unchanging(path))
            }
            // Where nothing can be written, not even the files SQLite has beside it.
            Err(error) if is_in_the_way(&error) => Self::connect_unchanging(path),
            opened => opened,
        };
        let store = store.map_err(|error| HistoryError::from_sqlite("open", path, &error))?;
        let version = store.version()?;
        Ok(version.map(|version| Self { has_machines: version >= WITH_MACHINES, ..store }))
    }

    /// Opens the store, or creates it, for its owner alone: command lines may contain secrets.
    ///
    /// # Errors
    /// When it can be neither opened nor created, is damaged, or is of a later version.
    pub fn make(path: &Path) -> Result<Self, HistoryError> {
        // No link of another user leads it elsewhere.
        if let Err(error) = Place::resolve(path)
            && error.kind() == std::io::ErrorKind::PermissionDenied
        {
            return Err(HistoryError::io("make", path, &error));
        }
        let path = &trusted(path)?;
        let folder = path.parent().unwrap_or(Path::new("."));
        let made = DirBuilder::new().recursive(true).mode(0o700).create(folder);
        made.map_err(|error| HistoryError::io("make the directory of", path, &error))?;
        let mut file = OpenOptions::new();
        match file.write(true).create_new(true).mode(0o600).open(path) {
            Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => {
                return Err(HistoryError::io("make", path, &error));
            }
            _ => {}
        }
        let failed = |error: rusqlite::Error| HistoryError::from_sqlite("open", path, &error);
        let mut store = Self::connect(path).map_err(failed)?;
        // A database of others is left as it is.
        store.version()?;
        store.write_ahead().map_err(failed)?;
        match store.version()? {
            None => store.make_tables()?,
            Some(VERSION) => {}
            Some(_) => store.migrate()?,
        }
        store.has_machines = true;
        Ok(store)
    }

    /// Keeps a record, made by `version` of iotomy, and gives its number.
    ///
    /// # Errors
    /// When it cannot be written whole; the history is then as it was.
    pub fn keep(
        &mut self,
        record: RecordRef<'_>,
        name: Option<&str>,
        version: &str,
    ) -> Result<u64, HistoryError> {
        self.keep_packed(&PackedRun::from_record(record)?, name, version)
    }

    /// As [`Store::keep`], of a run that was packed before.
    ///
    /// # Errors
    /// When it cannot be written whole; the history is then as it was.
    pub fn keep_packed(
        &mut self,
        run: &PackedRun,
        name: Option<&str>,
        version: &str,
    ) -> Result<u64, HistoryError> {
        let kept = self.insert(run, name, version, false);
        kept.map(|kept| kept.id).map_err(|error| self.failed("write to", &error))
    }

    /// As [`Store::keep_packed`], unless the same record is kept already.
    ///
    /// # Errors
    /// When it cannot be written whole; the history is then as it was.
    pub fn import(
        &mut self,
        run: &PackedRun,
        name: Option<&str>,
        version: &str,
    ) -> Result<ImportedRun, HistoryError> {
        self.insert(run, name, version, true).map_err(|error| self.failed("write to", &error))
    }

    fn insert(
        &mut self,
        run: &PackedRun,
        name: Option<&str>,
        version: &str,
        only_once: bool,
    ) -> Result<ImportedRun, rusqlite::Error> {
        let PackedRun { index, bytes, packed } = run;
        let transaction =
            self.connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        if only_once && let Some(id) = same_record(&transaction, run)? {
            return Ok(ImportedRun { id, is_again: true });
        }
        transaction.execute(
            "INSERT INTO runs (name, schema, kind, started, subject, version, kernel, hardware, \
             machine, bytes, record) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            params![
                name,
                index.schema,
                kind(index.schema),
                index.started,
                index.subject,
                version,
                index.kernel,
                index.hardware,
                index.machine,
                bytes.cast_signed(),
                packed,
            ],
        )?;
        let id = transaction.last_insert_rowid();
        {
            // A command that runs against itself is one subject.
            let mut insert = transaction.prepare(
                "INSERT OR IGNORE INTO measures (run, place, subject, name, unit, value, runs) \
                 VALUES (?, ?, ?, ?, ?, ?, ?)",
            )?;
            for (place, one) in index.measures.iter().enumerate() {
                let runs = one.runs.cast_signed();
                let place = place as i64;
                insert.execute(params![
                    id,
                    place,
                    one.subject,
                    one.name,
                    one.unit,
                    one.value,
                    runs
                ])?;
            }
        }
        transaction.commit()?;
        Ok(ImportedRun { id: id.cast_unsigned(), is_again: false })
    }

    fn connect(path: &Path) -> Result<Self, rusqlite::Error> {
        Self::connect_as(path, false)
    }

    /// While no other process has it open. What is written ahead is indexed in memory then.
    fn connect_alone(path: &Path) -> Result<Self, rusqlite::Error> {
        Self::connect_as(path, true)
    }

    fn connect_as(path: &Path, is_alone: bool) -> Result<Self, rusqlite::Error> {
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection = Connection::open_with_flags(path, flags)?;
        let store = Self { connection, path: path.to_owned(), has_machines: false };
        store.connection.busy_timeout(PATIENCE)?;
        if is_alone {
            store.connection.pragma_update(None, "locking_mode", "EXCLUSIVE")?;
        }
        store.connection.pragma_update(None, "foreign_keys", true)?;
        // Nothing is lost when the power goes, either.
        store.connection.pragma_update(None, "synchronous", "FULL")?;
        // Shows whether anything can be read at all.
        store.pragma("user_version")?;
        Ok(store)
    }

    fn connect_unchanging(path: &Path) -> Result<Self, rusqlite::Error> {
        let mut name = String::from("file:");
        for byte in path.as_os_str().as_bytes() {
            match byte {
                b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'/' | b'.' | b'_' => {
                    name.push(char::from(*byte));
                }
                other => name += &format!("%{other:02x}"),
            }
        }
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY
            | OpenFlags::SQLITE_OPEN_URI
            | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection = Connection::open_with_flags(name + "?immutable=1", flags)?;
        let store = Self { connection, path: path.to_owned(), has_machines: false };
        store.pragma("user_version")?;
        Ok(store)
    }

    /// Turns on the write-ahead log, a persistent setting of the file. A concurrent process that
    /// does the same is waited for: SQLite itself does not wait here.
    fn write_ahead(&self) -> Result<(), rusqlite::Error> {
        let began = Instant::now();
        loop {
            let set = self.connection.pragma_update_and_check(None, "journal_mode", "WAL", |row| {
                row.get::<_, String>(0)
            });
            match set.map(drop) {
                Err(error) if is_busy(&error) && began.elapsed() < PATIENCE => {
                    std::thread::sleep(Duration::from_millis(5));
                }
                set => return set,
            }
        }
    }

    fn make_tables(&mut self) -> Result<(), HistoryError> {
        let path = self.path.clone();
        let failed = |error: rusqlite::Error| HistoryError::from_sqlite("make", &path, &error);
        let transaction = self
            .connection
            .transaction_with_behavior(TransactionBehavior::Immediate)
            .map_err(failed)?;
        // Another may have made them while this one waited.
        let version: i64 = transaction
            .pragma_query_value(None, "user_version", |row| row.get(0))
            .map_err(failed)?;
        if version == 0 {
            transaction.execute_batch(TABLES).map_err(failed)?;
            transaction.pragma_update(None, "application_id", APPLICATION).map_err(failed)?;
            transaction.pragma_update(None, "user_version", VERSION).map_err(failed)?;
        }
        transaction.commit().map_err(failed)
    }

    /// The version of the tables; `None` where there are none yet.
    fn version(&self) -> Result<Option<i64>, HistoryError> {
        let failed = |error: rusqlite::Error| HistoryError::from_sqlite("read", &self.path, &error);
        let (application, found, tables) = self.marks().map_err(failed)?;
        if (application, found, tables) == (0, 0, 0) {
            return Ok(None);
        }
        if application != APPLICATION {
            return Err(HistoryError::Foreign { path: self.path.clone() });
        }
        if found > VERSION {
            return Err(HistoryError::Newer { path: self.path.clone(), found, known: VERSION });
        }
        Ok(Some(found))
    }

    /// The owner of the file, its version, and the number of its tables and indexes, all of one
    /// moment: another process may be creating them.
    fn marks(&self) -> Result<(i64, i64, i64), rusqlite::Error> {
        let transaction = self.connection.unchecked_transaction()?;
        let found = self.pragma("user_version")?;
        let application = self.pragma("application_id")?;
        let count = "SELECT count(*) FROM sqlite_schema";
        let tables = transaction.query_row(count, [], |row| row.get(0))?;
        transaction.finish()?;
        Ok((application, found, tables))
    }

    /// Where the name of a run's machine is.
    pub(crate) fn machine_column(&self) -> &'static str {
        if self.has_machines { "runs.machine" } else { "''" }
    }

    fn pragma(&self, name: &str) -> Result<i64, rusqlite::Error> {
        self.connection.pragma_query_value(None, name, |row| row.get(0))
    }

    pub(crate) fn failed(&self, attempt: &'static str, error: &rusqlite::Error) -> HistoryError {
        HistoryError::from_sqlite(attempt, &self.path, error)
    }

    /// Closes it. SQLite ignores errors of close(2), which some file systems return for earlier
    /// writes: so remaining writes are synced here.
    ///
    /// # Errors
    /// When a kept run may not be stored.
    pub fn close(self) -> Result<(), HistoryError> {
        let Self { connection, path, .. } = self;
        connection
            .close()
            .map_err(|(_, error)| HistoryError::from_sqlite("close", &path, &error))?;
        let file = OpenOptions::new().write(true).open(&path);
        file.and_then(|file| close_duplicate(file.as_fd()))
            .map_err(|error| HistoryError::io("close", &path, &error))
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

/// The history's name, if no other user can have made it or the files that SQLite has beside it: a
/// journal names files that SQLite removes. Links to the directory are followed.
fn trusted(path: &Path) -> Result<PathBuf, HistoryError> {
    let refused = |error: std::io::Error| HistoryError::io("open", path, &error);
    let name = path.file_name().unwrap_or_default();
    let folder = trusted_folder(path.parent().unwrap_or(Path::new("."))).map_err(refused)?;
    let mut real = folder.join(name);
    // SQLite's files are beside the target of a link.
    if let Ok(target) = real.canonicalize() {
        trusted_folder(target.parent().unwrap_or(Path::new("/"))).map_err(refused)?;
        real = target;
    }
    for end in ["", "-journal", "-wal", "-shm"] {
        let mut file = real.as_os_str().to_owned();
        file.push(end);
        check_trusted(Path::new(&file))
            .map_err(|error| HistoryError::io("open", Path::new(&file), &error))?;
    }
    Ok(real)
}

/// `trace` of `iotomy.trace/1`.
fn kind(schema: &str) -> &str {
    schema.trim_start_matches("iotomy.").split('/').next().unwrap_or_default()
}

fn is_busy(error: &rusqlite::Error) -> bool {
    let busy = [ErrorCode::DatabaseBusy, ErrorCode::DatabaseLocked];
    error.sqlite_error_code().is_some_and(|code| busy.contains(&code))
}

fn is_without_room(error: &rusqlite::Error) -> bool {
    let full = [ErrorCode::DiskFull, ErrorCode::SystemIoFailure];
    error.sqlite_error_code().is_some_and(|code| full.contains(&code))
}

fn is_in_the_way(error: &rusqlite::Error) -> bool {
    let refused = [ErrorCode::CannotOpen, ErrorCode::ReadOnly, ErrorCode::PermissionDenied];
    error.sqlite_error_code().is_some_and(|code| refused.contains(&code))
}
