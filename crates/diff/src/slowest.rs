//! The slowest single calls of a side. Single calls are not compared: they are shown beside the maxima.

use std::cmp::Reverse;

use iotomy_record::{Trace, WholeCall};

/// How many of each side.
const KEPT: usize = 3;

/// Of all runs of a side, the longest first.
pub(crate) fn of(traces: &[&Trace]) -> Vec<WholeCall> {
    let mut all: Vec<&WholeCall> = traces.iter().flat_map(|trace| &trace.slowest).collect();
    all.sort_by_key(|call| Reverse(call.wall_ns));
    all.into_iter().take(KEPT).cloned().collect()
}
