//! The cost of small files.

use crate::summary::raw::Raw;
use crate::summary::{Row, of_target, targets};

/// The targets: a bare loop and fio are the peers.
pub(crate) fn rows(raw: &Raw) -> Vec<Row> {
    targets(&raw.sweep).map(|claim| of_target(claim, 3, raw)).collect()
}
