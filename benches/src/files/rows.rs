//! The rows for the cost of small files.

use crate::summary::raw::Raw;
use crate::summary::{Row, of_target, targets};

/// Returns the targets; the peers are a bare loop and fio.
pub(crate) fn rows(raw: &Raw) -> Vec<Row> {
    targets(&raw.sweep).map(|claim| of_target(claim, 3, raw)).collect()
}
