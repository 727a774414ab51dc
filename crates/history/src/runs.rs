//! Runs found again, renamed and removed.

use std::fmt;

use iotomy_record::store::{Record, parse_record};
use iotomy_record::{KeptRun, Measure};
use rusqlite::{OptionalExtension, params};

use crate::packed::unpacked;
use crate::{HistoryError, KeptMachine, Store};

/// The longest name, in bytes.
const LONGEST_NAME: usize = 200;

/// The word for the run that was kept last.
const LAST: &str = "last";

/// The ways to name a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Pick {
    /// By its number.
    Number(u64),
    /// The one kept last of a name.
    Name(String),
    /// The one kept last of all.
    Last,
}

impl Pick {
    /// A number, `last`, or a name.
    pub fn from_text(text: &str) -> Self {
        match text.parse() {
            Ok(number) => Self::Number(number),
            Err(_) if text == LAST => Self::Last,
            Err(_) => Self::Name(text.to_owned()),
        }
    }
}

impl fmt::Display for Pick {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(number) => write!(to, "{number}"),
            Self::Name(name) => write!(to, "{name:?}"),
            Self::Last => to.write_str(LAST),
        }
    }
}

/// Which runs are listed.
#[derive(Debug, Clone, Default)]
pub struct Filter {
    /// Only of this kind.
    pub kind: Option<String>,
    /// Only of this name.
    pub name: Option<String>,
    /// Only runs whose subject contains this text.
    pub subject: Option<String>,
    /// Only of this machine.
    pub machine: Option<KeptMachine>,
    /// At most this many, the last ones.
    pub last: Option<u64>,
}

/// A run of a name.
#[derive(Debug)]
pub(crate) struct Named {
    pub(crate) kept: KeptRun,
    /// The subjects of its measures.
    pub(crate) subjects: Vec<String>,
}

const FROM: &str = "FROM runs LEFT JOIN measures ON measures.run = runs.id AND measures.place = 0";

fn kept(row: &rusqlite::Row<'_>) -> Result<KeptRun, rusqlite::Error> {
    let number = |at: usize| row.get::<_, i64>(at).map(i64::cast_unsigned);
    let subject: Option<String> = row.get(8)?;
    let measure = match subject {
        Some(subject) => Some(Measure {
            subject,
            name: row.get(9)?,
            unit: row.get(10)?,
            value: row.get(11)?,
            samples: Vec::new(),
            runs: number(12)?,
        }),
        None => None,
    };
    Ok(KeptRun {
        id: number(0)?,
        name: row.get(1)?,
        kind: row.get(2)?,
        started: row.get(3)?,
        subject: row.get(4)?,
        version: row.get(5)?,
        kernel: row.get(6)?,
        machine: row.get(13)?,
        hardware: row.get(14)?,
        bytes: number(7)?,
        measure,
    })
}

impl Store {
    /// Whether a run may have this name.
    ///
    /// # Errors
    /// Why not.
    pub fn check_name(name: &str) -> Result<(), HistoryError> {
        let why = match name {
            "" => "it is empty",
            LAST => "it is reserved for the run kept last",
            name if name.bytes().all(|byte| byte.is_ascii_digit()) => {
                "numbers are reserved for \
                runs"
            }
            name if name.starts_with('-') => "it looks like an option",
            name if name.len() > LONGEST_NAME => "it is longer than 200 bytes",
            _ => return Ok(()),
        };
        Err(HistoryError::Name { name: name.to_owned(), why })
    }

    /// The runs, in the order they were kept.
    ///
    /// # Errors
    /// When the history cannot be read.
    pub fn list(&self, filter: &Filter) -> Result<Vec<KeptRun>, HistoryError> {
        let failed = |error: rusqlite::Error| self.failed("read", &error);
        let text = format!(
            "SELECT {} {FROM} WHERE (?1 IS NULL OR runs.kind = ?1) \
             AND (?2 IS NULL OR runs.name = ?2) AND (?3 IS NULL OR instr(runs.subject, ?3) > 0) \
             AND {} ORDER BY runs.id DESC LIMIT ?4",
            self.columns(),
            self.on(filter.machine.as_ref())
        );
        let mut query = self.connection.prepare(&text).map_err(failed)?;
        let last = filter.last.map_or(-1, |last| i64::try_from(last).unwrap_or(i64::MAX));
        let rows = query
            .query_map(params![filter.kind, filter.name, filter.subject, last], kept)
            .map_err(failed)?;
        let mut found = rows.collect::<Result<Vec<KeptRun>, _>>().map_err(failed)?;
        found.reverse();
        Ok(found)
    }

    /// The requested run.
    ///
    /// # Errors
    /// When there is none, or the history cannot be read.
    pub fn find(&self, pick: &Pick) -> Result<KeptRun, HistoryError> {
        self.find_on(pick, None)
    }

    /// The requested run, of those of a machine.
    fn find_on(&self, pick: &Pick, machine: Option<&KeptMachine>) -> Result<KeptRun, HistoryError> {
        let (number, name) = match pick {
            Pick::Number(number) => (Some(i64::try_from(*number).unwrap_or(i64::MAX)), None),
            Pick::Name(name) => (None, Some(name)),
            Pick::Last => (None, None),
        };
        let text = format!(
            "SELECT {} {FROM} WHERE (?1 IS NULL OR runs.id = ?1) \
             AND (?2 IS NULL OR runs.name = ?2) AND {} ORDER BY runs.id DESC LIMIT 1",
            self.columns(),
            self.on(machine)
        );
        let found = self.connection.query_row(&text, params![number, name], kept).optional();
        found
            .map_err(|error| self.failed("read", &error))?
            .ok_or_else(|| HistoryError::NoRun { asked: pick.to_string(), path: self.path.clone() })
    }

    /// All runs of a name, in the order they were kept.
    ///
    /// # Errors
    /// When the history cannot be read.
    pub(crate) fn named(&self, name: &str) -> Result<Vec<Named>, HistoryError> {
        self.try_named(name).map_err(|error| self.failed("read", &error))
    }

    fn try_named(&self, name: &str) -> Result<Vec<Named>, rusqlite::Error> {
        let text = format!("SELECT {} {FROM} WHERE runs.name = ? ORDER BY runs.id", self.columns());
        let mut query = self.connection.prepare(&text)?;
        let mut subjects =
            self.connection.prepare("SELECT DISTINCT subject FROM measures WHERE run = ?")?;
        let mut named = |row: &rusqlite::Row<'_>| {
            let kept = kept(row)?;
            let found = subjects.query_map([kept.id.cast_signed()], |row| row.get(0))?;
            let subjects = found.collect::<Result<Vec<String>, _>>()?;
            Ok(Named { kept, subjects })
        };
        query.query_map([name], |row| named(row))?.collect()
    }

    /// What is read of a run.
    fn columns(&self) -> String {
        let columns = "runs.id, runs.name, runs.kind, runs.started, runs.subject, runs.version, runs.kernel, \
                       runs.bytes, measures.subject, measures.name, measures.unit, measures.value, \
                       measures.runs";
        format!("{columns}, {}, runs.hardware", self.machine_column())
    }

    /// The condition that runs of a machine fulfil, if one is wanted.
    fn on(&self, machine: Option<&KeptMachine>) -> String {
        machine.map_or_else(|| "1".to_owned(), |one| one.condition(self.machine_column()))
    }

    /// The last kept run that did the same as the last of a baseline, was made or kept after it,
    /// and is not part of the baseline; if a machine is given, both on that.
    ///
    /// # Errors
    /// When there is no such run or no baseline, or the history cannot be read.
    pub fn newest_after(
        &self,
        baseline: &Pick,
        machine: Option<&KeptMachine>,
    ) -> Result<KeptRun, HistoryError> {
        let like = self.find_on(baseline, machine).map_err(|error| match (baseline, error) {
            (Pick::Name(name), HistoryError::NoRun { path, .. }) => {
                HistoryError::NoBaseline { asked: name.clone(), path }
            }
            (_, error) => error,
        })?;
        let name = match baseline {
            Pick::Name(name) => Some(name),
            _ => None,
        };
        let text = format!(
            "SELECT {} {FROM} WHERE runs.kind = ?1 AND runs.subject = ?2 AND runs.id <> ?3 \
             AND (runs.id > ?3 OR runs.started > ?4) AND (?5 IS NULL OR runs.name IS NOT ?5) \
             AND {} ORDER BY runs.id DESC LIMIT 1",
            self.columns(),
            self.on(machine)
        );
        let wanted = params![like.kind, like.subject, like.id.cast_signed(), like.started, name];
        let found = self.connection.query_row(&text, wanted, kept).optional();
        found.map_err(|error| self.failed("read", &error))?.ok_or_else(|| HistoryError::NoRun {
            asked: match machine {
                Some(machine) => {
                    format!("after {} of {:?} on {}", like.id, like.subject, machine.title())
                }
                None => format!("after {} of {:?}", like.id, like.subject),
            },
            path: self.path.clone(),
        })
    }

    /// The bytes of a run's record.
    ///
    /// # Errors
    /// When they cannot be read, or are not those that were kept.
    pub fn json(&self, id: u64) -> Result<Vec<u8>, HistoryError> {
        let packed: Vec<u8> = self
            .connection
            .query_row("SELECT record FROM runs WHERE id = ?", [id.cast_signed()], |row| row.get(0))
            .map_err(|error| self.failed("read", &error))?;
        unpacked(&packed).map_err(|what| self.unreadable(id, what))
    }

    /// A run's record.
    ///
    /// # Errors
    /// When it cannot be read, or is none that this iotomy knows.
    pub fn record(&self, id: u64) -> Result<Record, HistoryError> {
        let json = self.json(id)?;
        parse_record(&json).map_err(|error| self.unreadable(id, error.to_string()))
    }

    /// Forgets a run.
    ///
    /// # Errors
    /// When the history cannot be written to.
    pub fn remove(&mut self, id: u64) -> Result<(), HistoryError> {
        let done = self.connection.execute("DELETE FROM runs WHERE id = ?", [id.cast_signed()]);
        done.map(drop).map_err(|error| self.failed("write to", &error))
    }

    /// Gives the room of forgotten runs back to the file system.
    ///
    /// # Errors
    /// When the history cannot be written to.
    pub fn shrink(&mut self) -> Result<(), HistoryError> {
        self.connection.execute_batch("VACUUM").map_err(|error| self.failed("write to", &error))
    }

    /// Gives a run another name, or none.
    ///
    /// # Errors
    /// When it cannot have that name, or the history cannot be written to.
    pub fn rename(&mut self, id: u64, name: Option<&str>) -> Result<(), HistoryError> {
        name.map_or(Ok(()), Self::check_name)?;
        let text = "UPDATE runs SET name = ? WHERE id = ?";
        let done = self.connection.execute(text, params![name, id.cast_signed()]);
        done.map(drop).map_err(|error| self.failed("write to", &error))
    }

    fn unreadable(&self, id: u64, what: String) -> HistoryError {
        HistoryError::Record { id, path: self.path.clone(), what }
    }
}
