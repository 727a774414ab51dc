//! A new history of what can be read of a damaged one.
//!
//! The damaged one is never changed: it is read from a copy, and gets a second name before its own one
//! leads to the new history. Whatever goes wrong, all there was is still there, and under the name of the
//! history there is the one or the other at every moment.

use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};

use iotomy_record::store::parse_record;
use rusqlite::OptionalExtension;
use rusqlite::config::DbConfig;

use crate::aside::{self, beside, forget};
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
    /// Whether it was there before, and no history.
    pub was_aside: bool,
}

/// Makes a new history of the runs in `path` whose records are whole, and sets the damaged one aside;
/// `None` when it is sound. Where there is none, one that has been set aside is taken.
///
/// # Errors
/// When it is not iotomy's, or of a later version, or cannot be read, or the new one not be written; the
/// history is then as it was.
pub fn salvage(path: &Path) -> Result<Option<Salvaged>, HistoryError> {
    // SQLite's files are beside what a link leads to.
    let real = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let path = real.as_path();
    let _alone = aside::alone(path)?;
    let (copy, fresh) = (beside(path, ".salvaging"), beside(path, ".salvaged"));
    forget(&copy);
    forget(&fresh);
    let was_aside = aside::newest(path).filter(|_| !path.exists());
    if was_aside.is_none() && !path.exists() {
        return Err(HistoryError::none(path));
    }
    if was_aside.is_none() {
        aside::take_back(path)?;
        if is_sound(path)? {
            return Ok(None);
        }
    }
    let made = made(was_aside.as_deref().unwrap_or(path), &copy, &fresh).and_then(|mut found| {
        found.was_aside = was_aside.is_some();
        found.aside = was_aside.map_or_else(|| aside::set_aside(path), Ok)?;
        fs::rename(&fresh, path).map_err(|error| HistoryError::io("make", path, &error))?;
        aside::sync_folder(path);
        Ok(found)
    });
    forget(&copy);
    forget(&fresh);
    made.map(Some)
}

/// Whether all of it can be read; where not all can, its files are as they were.
fn is_sound(path: &Path) -> Result<bool, HistoryError> {
    let store = match Store::open_unwritten(path) {
        Ok(store) => store.ok_or_else(|| HistoryError::Nothing { path: path.to_owned() })?,
        Err(HistoryError::Damaged { .. }) => return Ok(false),
        Err(error) => return Err(error),
    };
    let is_sound = store.is_sound()?;
    if is_sound {
        store.may_write_back();
    }
    Ok(is_sound)
}

/// A new history in `fresh` of what `copy`, to be made of `source`, has.
fn made(source: &Path, copy: &Path, fresh: &Path) -> Result<Salvaged, HistoryError> {
    for end in ["", "-wal", "-journal"] {
        aside::copy(&beside(source, end), &beside(copy, end), end.is_empty())?;
    }
    if let Err(HistoryError::Newer { found, known, .. }) = Store::open(copy) {
        return Err(HistoryError::Newer { path: source.to_owned(), found, known });
    }
    let failed = |error: rusqlite::Error| HistoryError::of("write to", fresh, &error);
    let mut store = Store::make(fresh)?;
    let mut found = Salvaged {
        saved: 0,
        lost: Vec::new(),
        unclear: Vec::new(),
        aside: PathBuf::new(),
        was_aside: false,
    };
    if let Ok(old) = rusqlite::Connection::open(copy) {
        // Else a file that was cut short is not read at all.
        let _ = old.set_db_config(DbConfig::SQLITE_DBCONFIG_WRITABLE_SCHEMA, true);
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
    Ok(found)
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
