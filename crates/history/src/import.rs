//! Records that others made: each is kept once, however often it is imported.

use rusqlite::{Transaction, params};

use crate::PackedRun;
use crate::packed::unpacked;

/// A record that was to be kept unless it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ImportedRun {
    /// Its number.
    pub id: u64,
    /// Whether it was kept before.
    pub is_again: bool,
}

/// The run that has the same record.
pub(crate) fn same_record(
    transaction: &Transaction<'_>,
    run: &PackedRun,
) -> Result<Option<u64>, rusqlite::Error> {
    let PackedRun { index, bytes, packed } = run;
    let mut alike = transaction.prepare(
        "SELECT id, record FROM runs WHERE started = ? AND schema = ? AND bytes = ? ORDER BY id",
    )?;
    let rows = alike
        .query_map(params![index.started, index.schema, bytes.cast_signed()], |row| {
            Ok((row.get::<_, i64>(0)?, row.get::<_, Vec<u8>>(1)?))
        })?;
    for row in rows {
        let (id, kept) = row?;
        // Another version may have packed the same text otherwise.
        let is_same = kept == *packed
            || unpacked(&kept).is_ok_and(|kept| unpacked(packed).is_ok_and(|new| new == kept));
        if is_same {
            return Ok(Some(id.cast_unsigned()));
        }
    }
    Ok(None)
}
