//! The machines that kept runs are of, so that those of many are never taken for one another.
//!
//! A machine is its name and its hardware; its kernel is a condition of a run. Runs without a name, of records that were made
//! before machines had one or in a container, belong to the machine of their hardware as long as the history knows only one
//! of that; where it knows several, they are a machine of their own.

use iotomy_record::label::label;
use iotomy_record::{KeptRun, Machine, natural};
use rusqlite::params;

use crate::{HistoryError, Store};

/// A machine by what the history has of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeptMachine {
    /// Its name; empty where its records have none.
    pub name: String,
    /// Processors, model and hypervisor, in a line.
    pub hardware: String,
    /// Whether runs of this hardware without a name are among its runs.
    has_unnamed: bool,
}

impl KeptMachine {
    /// Whether a run is of it.
    pub(crate) fn has(&self, run: &KeptRun) -> bool {
        let is_unnamed = self.has_unnamed && run.machine.is_empty();
        run.hardware == self.hardware && (run.machine == self.name || is_unnamed)
    }

    /// The condition that its runs fulfil; `machine` is where their names are.
    pub(crate) fn condition(&self, machine: &str) -> String {
        let (name, hardware) = (quoted(&self.name), quoted(&self.hardware));
        let unnamed = if self.has_unnamed { format!(" OR {machine} = ''") } else { String::new() };
        format!("runs.hardware = {hardware} AND ({machine} = {name}{unnamed})")
    }

    /// What it is called: its name, or else its hardware.
    pub fn title(&self) -> String {
        if self.name.is_empty() { self.hardware.clone() } else { self.name.clone() }
    }

    /// The same where its name alone might be that of another.
    pub fn long_title(&self) -> String {
        match self.name.as_str() {
            "" => self.hardware.clone(),
            name => format!("{name}, {}", self.hardware),
        }
    }
}

/// A text as SQL has it.
fn quoted(text: &str) -> String {
    // A text with a NUL would end there.
    format!("'{}'", text.replace('\'', "''").replace('\0', ""))
}

impl Store {
    /// The machines of the kept runs, by their names.
    ///
    /// # Errors
    /// When the history cannot be read.
    pub fn machines(&self) -> Result<Vec<KeptMachine>, HistoryError> {
        self.machines_of("1", params![])
    }

    /// The machines of the runs for which an SQL condition holds.
    pub(crate) fn machines_of(
        &self,
        condition: &str,
        wanted: impl rusqlite::Params,
    ) -> Result<Vec<KeptMachine>, HistoryError> {
        let failed = |error: rusqlite::Error| self.failed("read", &error);
        let text = format!(
            "SELECT DISTINCT {}, runs.hardware FROM runs WHERE {condition}",
            self.machine_column()
        );
        let mut query = self.connection.prepare(&text).map_err(failed)?;
        let rows = query
            .query_map(wanted, |row| Ok((row.get::<_, String>(0)?, row.get::<_, String>(1)?)))
            .map_err(failed)?;
        let found = rows.collect::<Result<Vec<_>, _>>().map_err(failed)?;
        let mut machines: Vec<KeptMachine> = found
            .into_iter()
            .map(|(name, hardware)| self.resolved(name, hardware))
            .collect::<Result<_, _>>()?;
        machines.sort_by_key(|one| (natural(&one.name), one.hardware.clone()));
        machines.dedup();
        Ok(machines)
    }

    /// The machine with this name and hardware, of all that the history has.
    pub(crate) fn machine_of(&self, machine: &Machine) -> Result<KeptMachine, HistoryError> {
        self.resolved(label(&machine.name), label(&machine.hardware()))
    }

    /// The machine of a kept run.
    pub(crate) fn machine_of_run(&self, run: &KeptRun) -> Result<KeptMachine, HistoryError> {
        self.resolved(run.machine.clone(), run.hardware.clone())
    }

    fn resolved(&self, name: String, hardware: String) -> Result<KeptMachine, HistoryError> {
        let mut names = self.names_of(&hardware)?;
        if !name.is_empty() && !names.contains(&name) {
            names.push(name.clone());
        }
        Ok(match names.as_slice() {
            [only] => KeptMachine { name: only.clone(), hardware, has_unnamed: true },
            _ => KeptMachine { has_unnamed: name.is_empty(), name, hardware },
        })
    }

    /// The names of the machines of this hardware.
    fn names_of(&self, hardware: &str) -> Result<Vec<String>, HistoryError> {
        let machine = self.machine_column();
        let text = format!(
            "SELECT DISTINCT {machine} FROM runs WHERE runs.hardware = ?1 AND {machine} <> ''"
        );
        self.texts(&text, [hardware])
    }

    /// The machine that the user calls so: by its name, its hardware, or a part of these that only it has.
    ///
    /// # Errors
    /// When there is none or several, or the history cannot be read.
    pub fn machine(&self, asked: &str) -> Result<KeptMachine, HistoryError> {
        let all = self.machines()?;
        let by = |is: &dyn Fn(&KeptMachine) -> bool| -> Vec<&KeptMachine> {
            all.iter().filter(|one| is(one)).collect()
        };
        let named =
            by(&|one| one.name == asked || one.hardware == asked || one.long_title() == asked);
        let alike = match named.is_empty() {
            true => by(&|one| one.long_title().contains(asked)),
            false => named,
        };
        match alike.as_slice() {
            [only] => Ok((*only).clone()),
            [] => Err(HistoryError::NoMachine {
                asked: asked.to_owned(),
                known: known(&all.iter().collect::<Vec<_>>()),
            }),
            several => {
                Err(HistoryError::Machines { asked: asked.to_owned(), known: known(several) })
            }
        }
    }
}

/// Machines that a message names, at most.
const NAMED: usize = 8;

fn known(machines: &[&KeptMachine]) -> String {
    let more = if machines.len() > NAMED { ", …" } else { "" };
    let title =
        |one: &&KeptMachine| match machines.iter().filter(|other| other.name == one.name).count() {
            1 => format!("{:?}", one.title()),
            _ => format!("{:?}", one.long_title()),
        };
    let titles: Vec<String> = machines.iter().take(NAMED).map(title).collect();
    titles.join(", ") + more
}
