//! A history of an earlier version becomes one of this.
//!
//! It is done when the history is written to, in one transaction. One that is only read stays as it is.

use iotomy_record::label::{LONGEST, label};
use iotomy_record::store::parse_record;
use rusqlite::{OptionalExtension, Transaction, TransactionBehavior, params};

use crate::packed::unpacked;
use crate::store::{VERSION, WITH_MACHINES};
use crate::{HistoryError, Store};

/// The first version whose texts are labels.
const WITH_LABELS: i64 = 2;

/// The columns that hold labels.
const LABELS: [(&str, &str); 6] = [
    ("runs", "subject"),
    ("runs", "kernel"),
    ("runs", "hardware"),
    ("measures", "subject"),
    ("measures", "name"),
    ("measures", "unit"),
];

impl Store {
    /// Gives an index of version 1, whose texts could be as long as records, labels instead, and one of before version 3
    /// the names of machines.
    pub(crate) fn migrate(&mut self) -> Result<(), HistoryError> {
        let shortened = self.try_migrate().map_err(|error| self.failed("write to", &error))?;
        if shortened {
            // What is not given back to the file system is used again.
            let _ = self.shrink();
        }
        Ok(())
    }

    /// Whether any text was too long.
    fn try_migrate(&mut self) -> Result<bool, rusqlite::Error> {
        let transaction =
            self.connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        // Another may have done it while this one waited.
        let version: i64 =
            transaction.pragma_query_value(None, "user_version", |row| row.get(0))?;
        let mut shortened = false;
        if version < WITH_MACHINES {
            add_machines(&transaction)?;
        }
        for (table, column) in LABELS.iter().filter(|_| version < WITH_LABELS) {
            let find = format!(
                "SELECT {column} FROM {table} WHERE length(CAST({column} AS BLOB)) > ? LIMIT 1"
            );
            let shorten =
                format!("UPDATE OR REPLACE {table} SET {column} = ?1 WHERE {column} = ?2");
            // One after another: each may be as long as a record.
            while let Some(text) = transaction
                .query_row(&find, [LONGEST as i64], |row| row.get::<_, String>(0))
                .optional()?
            {
                transaction.execute(&shorten, params![label(&text), text])?;
                shortened = true;
            }
        }
        transaction.pragma_update(None, "user_version", VERSION)?;
        transaction.commit()?;
        Ok(shortened)
    }
}

/// Gives the runs of an earlier version the name of their machine, where their record has one: only those of experiments
/// had.
fn add_machines(transaction: &Transaction<'_>) -> Result<(), rusqlite::Error> {
    transaction.execute_batch(
        "ALTER TABLE runs ADD COLUMN machine TEXT NOT NULL DEFAULT '';
         CREATE INDEX runs_by_start ON runs (started);",
    )?;
    let mut sweeps = transaction.prepare("SELECT id FROM runs WHERE kind = 'sweep'")?;
    let ids = sweeps.query_map([], |row| row.get(0))?.collect::<Result<Vec<i64>, _>>()?;
    for id in ids {
        let find = "SELECT record FROM runs WHERE id = ?";
        let packed: Vec<u8> = transaction.query_row(find, [id], |row| row.get(0))?;
        // A damaged record has no name.
        let record = unpacked(&packed).ok().and_then(|json| parse_record(&json).ok());
        if let Some(record) = record {
            let name = label(&record.as_ref().machine().name);
            transaction.execute("UPDATE runs SET machine = ? WHERE id = ?", params![name, id])?;
        }
    }
    Ok(())
}
