//! The table of what io_uring did, by program and operation.

use std::collections::BTreeMap;

use iotomy_record::{RingOperation, Trace};

use crate::facts::{Key, Programs, RowFacts};

/// In the order of [`crate::measures::RING_OPERATION`].
pub(crate) fn ring_operations(
    trace: &Trace,
    scale: f64,
    programs: &Programs<'_>,
) -> BTreeMap<Key, RowFacts> {
    let mut sums: BTreeMap<Key, RingOperation> = BTreeMap::new();
    for row in &trace.ring_operations {
        let program = programs.name(row.pid, &row.exec, row.image);
        sums.entry((program, row.op.clone(), String::new())).or_default().merge(row);
    }
    sums.into_iter().map(|(key, sum)| (key, facts(sum, scale))).collect()
}

fn facts(sum: RingOperation, scale: f64) -> RowFacts {
    let times = &sum.wall_times;
    let timed = times.total();
    let of_timed = |ns: f64| (timed > 0).then_some(ns);
    let quantile = |share: f64| of_timed(times.quantile(share) as f64);
    let sums = [
        sum.submitted,
        sum.completed,
        sum.errors,
        sum.bytes,
        sum.inline,
        sum.polled,
        sum.worker,
        sum.sqpoll,
        sum.multishot_completions,
        sum.overflows,
        sum.wall_ns,
    ];
    let sums = sums.into_iter().map(|value| Some(value as f64 * scale));
    let of_each = [
        of_timed(sum.wall_ns as f64 / timed.max(1) as f64),
        quantile(0.5),
        quantile(0.99),
        quantile(0.999),
        of_timed(sum.max_ns as f64),
    ];
    let kinds = sum.error_kinds.into_iter();
    RowFacts {
        values: sums.chain(of_each).collect(),
        error_kinds: kinds.map(|(kind, count)| (kind, count as f64 * scale)).collect(),
        ..RowFacts::default()
    }
}
