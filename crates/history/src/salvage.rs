//! A new history of what can be read of a damaged one.
//!
//! The damaged one is set aside first and never changed after that: whatever goes wrong, all there was is
//! still there.

use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};

use iotomy_record::store::parse_record;
use rusqlite::OptionalExtension;

use crate::runs::unpacked;
use crate::store::Row;
use crate::{HistoryError, Store};

/// Numbers that are tried where the damaged history does not tell its last.
const NUMBERS: i64 = 100_000;

/// What came of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Salvaged {
    /// Runs that are in the new history.
    pub saved: u64,
    /// Numbers of runs that could not be read, as far as they are known.
    pub lost: Vec<u64>,
    /// Numbers that could not be read, and of which nothing else tells that there was a run: it may
    /// have been removed before.
    pub unclear: Vec<u64>,
    /// Where the damaged one is now.
    pub aside: PathBuf,
}

/// Sets the history in `path` aside and makes a new one of the runs in it whose records are whole.
///
/// # Errors
/// When it cannot be set aside, or the new one not be written.
pub fn salvage(path: &Path) -> Result<Salvaged, HistoryError> {
    let aside = set_aside(path)?;
    let failed = |error: rusqlite::Error| HistoryError::of("write to", path, &error);
    let fresh = beside(path, ".salvaged");
    forget(&fresh);
    let mut store = Store::make(&fresh)?;
    let (lost, unclear) = (Vec::new(), Vec::new());
    let mut found = Salvaged { saved: 0, lost, unclear, aside: aside.clone() };
    if let Ok(old) = rusqlite::Connection::open(&aside) {
        let told = told(&old);
        for id in 1..=last(&old) {
            match read(&old, id) {
                Ok(None) => {}
                Ok(Some(run)) => {
                    let row = Row {
                        id: Some(id.cast_unsigned()),
                        name: run.name.as_deref(),
                        version: &run.version,
                        packed: &run.packed,
                        bytes: run.json.len() as u64,
                    };
                    // It has been read before, so it is a record.
                    let Ok(record) = parse_record(&run.json) else { continue };
                    store.insert(record.as_ref(), &row).map_err(failed)?;
                    found.saved += 1;
                }
                Err(()) if told.contains(&id) => found.lost.push(id.cast_unsigned()),
                Err(()) => found.unclear.push(id.cast_unsigned()),
            }
        }
    }
    // Closed, it is one file: what was written ahead is in it.
    drop(store);
    fs::rename(&fresh, path).map_err(|error| HistoryError::io("make", path, &error))?;
    Ok(found)
}

/// Gives the file, and what SQLite has beside it, names that were free.
fn set_aside(path: &Path) -> Result<PathBuf, HistoryError> {
    let names = (1..).map(|number: u64| beside(path, &format!(".damaged-{number}")));
    let mut free = names.filter(|name| fs::symlink_metadata(name).is_err());
    let aside = free.next().unwrap_or_else(|| beside(path, ".damaged"));
    fs::rename(path, &aside).map_err(|error| HistoryError::io("set aside", path, &error))?;
    // What was written ahead belongs to the file by its name.
    let ahead = fs::rename(beside(path, "-wal"), beside(&aside, "-wal"));
    if let Err(error) = ahead
        && error.kind() != std::io::ErrorKind::NotFound
    {
        return Err(HistoryError::io("set aside", path, &error));
    }
    // Made anew by who opens it.
    let _ = fs::remove_file(beside(path, "-shm"));
    Ok(aside)
}

/// Removes what a salvage that was killed has left.
fn forget(fresh: &Path) {
    for end in ["", "-wal", "-shm"] {
        let _ = fs::remove_file(beside(fresh, end));
    }
}

fn beside(path: &Path, end: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(end);
    name.into()
}

struct Run {
    name: Option<String>,
    version: String,
    packed: Vec<u8>,
    json: Vec<u8>,
}

/// The last number that was given, or else what may be above it.
fn last(old: &rusqlite::Connection) -> i64 {
    let told = ["SELECT seq FROM sqlite_sequence WHERE name = 'runs'", "SELECT max(id) FROM runs"];
    let found = told.iter().find_map(|text| {
        old.query_row(text, [], |row| row.get::<_, Option<i64>>(0)).ok().flatten()
    });
    // A file that is no database at all has nothing to be tried.
    let has_table = old.prepare("SELECT 1 FROM runs WHERE id = 1").is_ok();
    match found {
        // What is read from a damaged file may be any number.
        Some(last) => last.min(100 * NUMBERS),
        None if has_table => NUMBERS,
        None => 0,
    }
}

/// The numbers of which something besides the runs themselves tells that there is a run: they stand in
/// other pages of the file, and go with the run when it is removed.
fn told(old: &rusqlite::Connection) -> HashSet<i64> {
    let places = [
        "SELECT run FROM measures",
        "SELECT id FROM runs INDEXED BY runs_by_name WHERE name IS NOT NULL",
    ];
    let mut told = HashSet::new();
    for place in places {
        let Ok(mut asked) = old.prepare(place) else { continue };
        let Ok(ids) = asked.query_map([], |row| row.get::<_, i64>(0)) else { continue };
        // Up to the first damage.
        told.extend(ids.map_while(Result::ok));
    }
    told
}

/// A run with a whole record; `None` where there is none of this number.
fn read(old: &rusqlite::Connection, id: i64) -> Result<Option<Run>, ()> {
    // By its number: the way to it leads past what is damaged elsewhere.
    let text = "SELECT name, version, record FROM runs WHERE id = ?";
    let row = old.query_row(text, [id], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)));
    let Some((name, version, packed)) = row.optional().map_err(drop)? else { return Ok(None) };
    let packed: Vec<u8> = packed;
    let json = unpacked(&packed).map_err(drop)?;
    parse_record(&json).map_err(drop)?;
    Ok(Some(Run { name, version, packed, json }))
}
