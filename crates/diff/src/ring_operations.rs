//! The table of what io_uring did, by program and operation.

use std::collections::BTreeMap;

use iotomy_record::{RingOperation, Trace};

use crate::measures::{self, per_call};
use crate::programs::Programs;
use crate::row::{Key, RowFacts, scaled};

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
    sums.into_iter().map(|(key, sum)| (key, facts(&sum, scale))).collect()
}

/// The sum of the times in which requests were in flight, side by side, is not a part of any thread's time.
fn facts(sum: &RingOperation, scale: f64) -> RowFacts {
    let times = &sum.wall_times;
    let timed = times.total();
    let of_timed = |ns: f64| (timed > 0).then_some(ns);
    let quantile = |share: f64| of_timed(times.quantile(share) as f64);
    let mut measures = measures::compared(Some(sum), scale);
    measures.extend([
        per_call("mean_ns", of_timed(sum.wall_ns as f64 / timed.max(1) as f64)),
        per_call("wall_p50_ns", quantile(0.5)),
        per_call("wall_p99_ns", quantile(0.99)),
        per_call("wall_p999_ns", quantile(0.999)),
        per_call("wall_max_ns", of_timed(sum.max_ns as f64)),
    ]);
    RowFacts { measures, error_kinds: scaled(&sum.error_kinds, scale), ..RowFacts::default() }
}
