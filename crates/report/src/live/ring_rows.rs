//! The rows of the table of ring operations.

use std::collections::BTreeMap;

use iotomy_record::RingOperation;

use super::rows::{Column, Row, SnapshotDelta, Subject, count, rate, size};
use super::screen::{Opened, Screen};
use crate::numbers::figure;
use crate::page::Page;

/// Requests of io_uring by operation, and how those that ended were carried out.
pub(super) const RINGS: [Column; 16] = [
    ("ring operation", "", 16, 14),
    ("requests", "/s", 15, 9),
    ("failed", "/s", 10, 6),
    ("bytes", "/s", 14, 8),
    ("results", "/s", 5, 7),
    ("in flight", "now", 13, 9),
    ("inline", "/s", 9, 7),
    ("polled", "/s", 7, 7),
    ("worker", "/s", 8, 7),
    ("sqpoll", "/s", 6, 7),
    ("p50", "µs", 11, 6),
    ("p99", "µs", 12, 7),
    ("p99.9", "µs", 3, 7),
    ("max", "µs", 4, 7),
    ("requests", "in all", 2, 9),
    ("bytes", "in all", 1, 8),
];

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
            let more = |part: fn(&RingOperation) -> u64| {
                self.a_second(part(one).saturating_sub(part(old)).into())
            };
            let times = one.wall_times.since(&old.wall_times);
            let mut row = Row::new(Subject::RingOperation(one.op.clone()), page.name(&one.op, 28));
            row.cell(more(|row| row.submitted), rate);
            row.cell(more(|row| row.errors), rate);
            row.cell(more(|row| row.bytes), size);
            row.cell(more(|row| row.multishot_completions), rate);
            row.cell(one.in_flight as f64, count);
            row.cell(more(|row| row.inline), rate);
            row.cell(more(|row| row.polled), rate);
            row.cell(more(|row| row.worker), rate);
            row.cell(more(|row| row.sqpoll), rate);
            for share in [0.5, 0.99, 0.999] {
                row.cell(times.quantile(share) as f64 / 1e3, figure);
            }
            row.cell(one.max_ns as f64 / 1e3, figure);
            row.cell(one.submitted as f64, count);
            row.cell(one.bytes as f64, size);
            row
        };
        self.rings_now.iter().map(row).collect()
    }
}
