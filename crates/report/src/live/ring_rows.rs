//! The rows of the table of ring operations.

use std::collections::BTreeMap;

use iotomy_record::RingOperation;

use super::rows::{Row, SnapshotDelta};
use super::screen::{Opened, Screen};
use super::subject::Subject;
use crate::numbers::figure;
use crate::page::Page;

impl Screen {
    /// Whether there are ring operations of what is open.
    pub(super) fn has_rings(&self) -> bool {
        match self.opened() {
            Some(Opened::Process { image, .. }) => {
                self.image(*image).is_some_and(|image| !image.ring_operations.is_empty())
            }
            _ => !self.now.ring_operations.is_empty(),
        }
    }
}

/// Requests that were submitted.
pub(super) fn submitted(of: &[RingOperation]) -> u64 {
    of.iter().map(|row| row.submitted).fold(0, u64::saturating_add)
}

impl SnapshotDelta<'_> {
    pub(super) fn ring_rows(&self, page: &Page<'_>) -> Vec<Row> {
        let none = RingOperation::default();
        let before: BTreeMap<&str, &RingOperation> =
            self.rings_before.iter().map(|one| (&*one.op, one)).collect();
        let row = |one: &RingOperation| {
            let old = before.get(&*one.op).copied().unwrap_or(&none);
            let times = one.wall_times.since(&old.wall_times);
            let mut row = Row::new(Subject::RingOperation(one.op.clone()), page.name(&one.op, 28));
            self.rates(&mut row, one, old);
            for share in [0.5, 0.99, 0.999] {
                row.cell(times.quantile(share) as f64 / 1e3, figure);
            }
            row.cell(one.max_ns as f64 / 1e3, figure);
            row.sums(one);
            row
        };
        self.rings_now.iter().map(row).collect()
    }
}
