//! The slowest single calls of a side. Single calls are not compared: they are shown beside the maxima.

use std::cmp::Reverse;

use iotomy_record::{Process, Trace, WholeCall};

/// How many of each side.
const KEPT: usize = 3;

/// Of all runs of a side, the longest first, with the names that users know the programs by.
pub(crate) fn of(traces: &[&Trace]) -> Vec<WholeCall> {
    let mut all: Vec<(&Trace, &WholeCall)> = Vec::new();
    for &trace in traces {
        all.extend(trace.slowest.iter().map(|call| (trace, call)));
    }
    all.sort_by_key(|(_, call)| Reverse(call.wall_ns));
    all.into_iter().take(KEPT).map(|(trace, call)| named(trace, call)).collect()
}

fn named(trace: &Trace, call: &WholeCall) -> WholeCall {
    let image = (call.pid, &call.exec, call.image);
    let process = trace.processes.iter().find(|one| (one.pid, &one.exec, one.image) == image);
    let exec = process.map_or(&*call.exec, Process::name).to_owned();
    WholeCall { exec, ..call.clone() }
}
