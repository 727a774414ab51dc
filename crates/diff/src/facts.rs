//! The figures of one trace, by the rows they are compared in.

use std::collections::btree_map::{BTreeMap, Entry};

use iotomy_record::{Call, LedgerRow, Process, Times, Trace, statistic};

use crate::details;
use crate::left_out::Compared as Tables;
use crate::measures::{self, Kind, count, extent, per_call, time};
use crate::names::Names;
use crate::programs::{Programs, Renamed};
use crate::row::{Key, RowFacts, scaled};
use crate::{requests, ring_operations};

/// The rows of a run.
#[derive(Debug, Default)]
pub(crate) struct RunFacts {
    pub(crate) totals: RowFacts,
    pub(crate) programs: BTreeMap<Key, RowFacts>,
    pub(crate) calls: BTreeMap<Key, RowFacts>,
    pub(crate) ring_operations: BTreeMap<Key, RowFacts>,
    pub(crate) files: BTreeMap<Key, RowFacts>,
    pub(crate) peers: BTreeMap<Key, RowFacts>,
    pub(crate) requests: BTreeMap<Key, RowFacts>,
    pub(crate) paths: BTreeMap<Key, RowFacts>,
    pub(crate) groups: BTreeMap<Key, RowFacts>,
    pub(crate) threads: BTreeMap<Key, RowFacts>,
    pub(crate) layers: BTreeMap<Key, RowFacts>,
    pub(crate) functions: BTreeMap<Key, RowFacts>,
    /// The error of a row of layers, or of functions, that no sample fell into.
    pub(crate) unseen: f64,
}

/// The facts of a call of a program, summed over its images.
fn of_call(sum: Call, scale: f64, cost: f64) -> RowFacts {
    let none = Times::default();
    let ended = sum.ended();
    let of_ended = |value: f64| (ended.calls > 0).then_some(value);
    let mut measures = measures::compared(Some(&sum), scale);
    let at = |times: &Times, share: f64| (!times.is_empty()).then(|| times.quantile(share) as f64);
    let max = |times: &Times| (!times.is_empty()).then_some(times.max_ns as f64);
    let (wall, blocked) = (&sum.wall_times, &sum.blocked_times);
    let on_cpu = sum.on_cpu_times().unwrap_or(&none);
    measures.extend([
        per_call("mean_ns", of_ended(ended.wall_ns as f64 / ended.calls.max(1) as f64)),
        per_call("wall_p50_ns", at(wall, 0.5)),
        per_call("wall_p99_ns", at(wall, 0.99)),
        per_call("wall_p999_ns", at(wall, 0.999)),
        per_call("wall_max_ns", of_ended(ended.max_ns as f64)),
        per_call("on_cpu_p50_ns", at(on_cpu, 0.5)),
        per_call("on_cpu_p99_ns", at(on_cpu, 0.99)),
        per_call("on_cpu_p999_ns", at(on_cpu, 0.999)),
        per_call("on_cpu_max_ns", max(on_cpu)),
        per_call("blocked_p50_ns", at(blocked, 0.5)),
        per_call("blocked_p99_ns", at(blocked, 0.99)),
        per_call("blocked_p999_ns", at(blocked, 0.999)),
        per_call("blocked_max_ns", max(blocked)),
    ]);
    RowFacts {
        measures,
        error_kinds: scaled(&sum.error_kinds, scale),
        overhead: sum.calls.saturating_add(sum.in_flight) as f64 * cost * scale,
        ..RowFacts::default()
    }
}

/// A program, summed over its images.
#[derive(Default)]
struct Program {
    instances: u64,
    processes: Process,
    ledger: Option<LedgerRow>,
    calls: u64,
}

impl RunFacts {
    /// With `per_second`, sums are per second of the watch; connections where they are in `has`.
    pub(crate) fn from_trace(
        trace: &Trace,
        per_second: bool,
        has: Tables,
        renamed: &Renamed,
        names: &Names,
    ) -> Self {
        let scale = scale(trace, per_second);
        let [_, cost] = trace.observer.cost_range_ns();
        let programs = Programs::new(trace, renamed);
        let mut calls: BTreeMap<Key, Call> = BTreeMap::new();
        let mut by_program: BTreeMap<Key, Program> = BTreeMap::new();
        let key = |program: String| (program, String::new(), String::new());
        for call in &trace.calls {
            let program = programs.name(call.pid, &call.exec, call.image);
            let sum = by_program.entry(key(program.clone())).or_default();
            sum.calls = sum.calls.saturating_add(call.calls);
            match calls.entry((program, call.syscall.clone(), String::new())) {
                Entry::Occupied(sum) => sum.into_mut().merge(call),
                Entry::Vacant(place) => _ = place.insert(call.clone()),
            }
        }
        for process in &trace.processes {
            let sum = by_program.entry(key(programs.name_of(process))).or_default();
            sum.instances += u64::from(process.count());
            statistic::add(&mut sum.processes, process);
        }
        for row in &trace.ledger {
            let sum =
                by_program.entry(key(programs.name(row.pid, &row.exec, row.image))).or_default();
            statistic::add(sum.ledger.get_or_insert_default(), row);
        }
        Self {
            totals: totals(trace, per_second, scale, cost),
            programs: by_program
                .into_iter()
                .map(|(key, sum)| (key, sum.into_row(scale, cost)))
                .collect(),
            calls: calls.into_iter().map(|(key, sum)| (key, of_call(sum, scale, cost))).collect(),
            ring_operations: ring_operations::ring_operations(trace, scale, &programs),
            files: details::files(trace, scale, names),
            peers: details::peers(trace, scale, has.connections, &programs, names),
            requests: requests::requests(trace, scale, &programs, names),
            paths: details::paths(trace, scale, cost, names),
            groups: details::groups(trace, scale, cost, names),
            threads: details::threads(trace, scale, cost, &programs, names),
            ..Self::default()
        }
    }
}

/// By what sums are multiplied.
pub(crate) fn scale(trace: &Trace, per_second: bool) -> f64 {
    if per_second { 1e9 / trace.wall_ns.max(1) as f64 } else { 1.0 }
}

impl Program {
    fn into_row(self, scale: f64, cost: f64) -> RowFacts {
        let mut measures = vec![extent("processes", self.instances as f64)];
        measures.extend(measures::compared(self.ledger.as_ref(), scale));
        measures.push(count("calls", self.calls as f64 * scale));
        measures.extend(measures::compared(Some(&self.processes), scale));
        let overhead = self.calls as f64 * cost * scale;
        RowFacts { measures, overhead, ..RowFacts::default() }
    }
}

/// Of whole runs of a command. Of a watch, the wall time is the watch's length.
fn totals(trace: &Trace, per_second: bool, scale: f64, cost: f64) -> RowFacts {
    let processes: Process = statistic::total(&trace.processes);
    let ledger: Option<LedgerRow> =
        (!trace.ledger.is_empty()).then(|| statistic::total(&trace.ledger));
    let mut calls = Call::default();
    trace.calls.iter().for_each(|call| statistic::add_numbers(&mut calls, call));
    let cpu = processes.user_ns.saturating_add(processes.system_ns) as f64 * scale;
    let max_rss = (!trace.processes.is_empty()).then_some(processes.max_rss_bytes as f64);
    let mut measures =
        vec![time("wall_ns", (!per_second).then_some(trace.wall_ns as f64)), time("cpu_ns", cpu)];
    measures.extend(measures::compared(ledger.as_ref(), scale));
    // Of threads side by side, and of calls, whose times are in the ledger.
    measures.retain(|measure| measure.name != "thread_ns");
    let of_calls = measures::compared(Some(&calls), scale);
    measures.extend(of_calls.into_iter().filter(|measure| measure.kind == Kind::Count));
    measures.extend(measures::compared(Some(&processes), scale));
    measures.extend([
        extent("max_rss_bytes", max_rss),
        extent("processes", trace.process_count() as f64),
        extent("threads", trace.thread_count() as f64),
    ]);
    let entered = calls.calls.saturating_add(calls.in_flight);
    RowFacts { measures, overhead: entered as f64 * cost * scale, ..RowFacts::default() }
}
