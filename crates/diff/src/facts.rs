//! The figures of one trace, by the rows they are compared in.

use std::collections::HashMap;
use std::collections::btree_map::{BTreeMap, Entry};

use iotomy_record::statistic::Statistics;
use iotomy_record::{Call, Process, Times, Trace};

use crate::details;
use crate::left_out::Compared as Tables;
use crate::names::Names;
use crate::ring_operations;

/// A row: program, name, what it is part of.
pub(crate) type Key = (String, String, String);

/// The figures of a row, in the order of its measures.
#[derive(Debug, Clone, Default)]
pub(crate) struct RowFacts {
    pub(crate) values: Vec<Option<f64>>,
    pub(crate) error_kinds: BTreeMap<String, f64>,
    /// How many names it stands for, where it stands for several.
    pub(crate) names: Option<u64>,
    /// What watching may have added to its times, at most.
    pub(crate) overhead: f64,
    /// Within how much the sampled time lies; 0 where nothing is sampled.
    pub(crate) sampling_error: f64,
}

/// The rows of a run.
#[derive(Debug, Default)]
pub(crate) struct RunFacts {
    pub(crate) totals: RowFacts,
    pub(crate) programs: BTreeMap<Key, RowFacts>,
    pub(crate) calls: BTreeMap<Key, RowFacts>,
    pub(crate) ring_operations: BTreeMap<Key, RowFacts>,
    pub(crate) files: BTreeMap<Key, RowFacts>,
    pub(crate) peers: BTreeMap<Key, RowFacts>,
    pub(crate) paths: BTreeMap<Key, RowFacts>,
    pub(crate) groups: BTreeMap<Key, RowFacts>,
    pub(crate) threads: BTreeMap<Key, RowFacts>,
    pub(crate) layers: BTreeMap<Key, RowFacts>,
    pub(crate) functions: BTreeMap<Key, RowFacts>,
    /// The error of a row of layers, or of functions, that no sample fell into.
    pub(crate) unseen: f64,
}

/// The program of forks that execute another.
const BEFORE_EXEC: &str = "before exec";

/// The commands' own programs, where these are called differently on the two sides: two builds of
/// one program, or a program and what replaces it.
#[derive(Debug, Default)]
pub(crate) struct Renamed(Option<[String; 2]>);

impl Renamed {
    pub(crate) fn between(a: &[&Trace], b: &[&Trace]) -> Self {
        let root = |side: &[&Trace]| {
            let trace = side.iter().find(|trace| !trace.command.is_empty())?;
            Some(trace.processes.first()?.name().to_owned())
        };
        let has = |side: &[&Trace], name: &str| {
            side.iter().flat_map(|trace| &trace.processes).any(|process| process.name() == name)
        };
        match (root(a), root(b)) {
            (Some(old), Some(new)) if !has(b, &old) && !has(a, &new) => Self(Some([old, new])),
            _ => Self(None),
        }
    }

    fn name(&self, program: &str) -> String {
        match &self.0 {
            Some([old, new]) if program == old || program == new => format!("{old} → {new}"),
            _ => program.to_owned(),
        }
    }
}

/// The programs of a trace by image.
pub(crate) struct Programs<'t> {
    by_image: HashMap<(u32, &'t str, u32), &'t Process>,
    renamed: &'t Renamed,
}

impl<'t> Programs<'t> {
    pub(crate) fn new(trace: &'t Trace, renamed: &'t Renamed) -> Self {
        let mut by_image = HashMap::new();
        for process in &trace.processes {
            by_image.entry((process.pid, process.exec.as_str(), process.image)).or_insert(process);
        }
        Self { by_image, renamed }
    }

    pub(crate) fn name(&self, pid: u32, exec: &str, image: u32) -> String {
        match self.by_image.get(&(pid, exec, image)) {
            Some(process) => self.name_of(process),
            None => self.renamed.name(exec),
        }
    }

    fn name_of(&self, process: &Process) -> String {
        match process.before_exec {
            true => BEFORE_EXEC.to_owned(),
            false => self.renamed.name(process.name()),
        }
    }
}

/// The facts of a call of a program, summed over its images, in the order of [`crate::measures::CALL`].
fn of_call(sum: Call, scale: f64, cost: f64) -> RowFacts {
    let at = |times: &Times, share: f64| (!times.is_empty()).then(|| times.quantile(share) as f64);
    let max = |times: &Times| (!times.is_empty()).then_some(times.max_ns as f64);
    let none = Times::default();
    let ended = sum.ended();
    let of_ended = |value: f64| (ended.calls > 0).then_some(value);
    let (wall, blocked) = (&sum.wall_times, &sum.blocked_times);
    let on_cpu = sum.on_cpu_times().unwrap_or(&none);
    let mut values: Vec<Option<f64>> = Call::shown()
        .map(|(statistic, _)| (statistic.field.number)(&sum).map(|number| number as f64 * scale))
        .collect();
    values.extend([
        of_ended(ended.wall_ns as f64 / ended.calls.max(1) as f64),
        at(wall, 0.5),
        at(wall, 0.99),
        at(wall, 0.999),
        of_ended(ended.max_ns as f64),
        at(on_cpu, 0.5),
        at(on_cpu, 0.99),
        at(on_cpu, 0.999),
        max(on_cpu),
        at(blocked, 0.5),
        at(blocked, 0.99),
        at(blocked, 0.999),
        max(blocked),
    ]);
    let kinds = sum.error_kinds.iter();
    RowFacts {
        values,
        error_kinds: kinds.map(|(kind, n)| (kind.clone(), *n as f64 * scale)).collect(),
        overhead: sum.calls.saturating_add(sum.in_flight) as f64 * cost * scale,
        ..RowFacts::default()
    }
}

/// A program, summed over its images.
#[derive(Default)]
struct ProgramFacts {
    processes: u64,
    ledger: Option<[u64; 5]>,
    calls: u64,
    minor_faults: u64,
    major_faults: u64,
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
        let mut by_program: BTreeMap<Key, ProgramFacts> = BTreeMap::new();
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
            sum.processes += u64::from(process.count());
            sum.minor_faults = sum.minor_faults.saturating_add(process.minor_faults);
            sum.major_faults = sum.major_faults.saturating_add(process.major_faults);
        }
        for row in &trace.ledger {
            let sum =
                by_program.entry(key(programs.name(row.pid, &row.exec, row.image))).or_default();
            let parts =
                [row.thread_ns, row.user_ns, row.calls_on_cpu_ns, row.blocked_ns, row.runnable_ns];
            let all = sum.ledger.get_or_insert_default();
            all.iter_mut().zip(parts).for_each(|(sum, part)| *sum = sum.saturating_add(part));
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

impl ProgramFacts {
    /// In the order of [`crate::measures::PROGRAM`].
    fn into_row(self, scale: f64, cost: f64) -> RowFacts {
        let time = |at: usize| self.ledger.map(|parts| parts[at] as f64 * scale);
        let sum = |value: u64| Some(value as f64 * scale);
        RowFacts {
            values: vec![
                Some(self.processes as f64),
                time(0),
                time(1),
                time(2),
                time(3),
                time(4),
                sum(self.calls),
                sum(self.minor_faults),
                sum(self.major_faults),
            ],
            overhead: self.calls as f64 * cost * scale,
            ..RowFacts::default()
        }
    }
}

/// In the order of [`crate::measures::TOTALS`].
fn totals(trace: &Trace, per_second: bool, scale: f64, cost: f64) -> RowFacts {
    let calls = |of: fn(&Call) -> u64| trace.calls.iter().map(|call| of(call) as f64).sum::<f64>();
    let processes = |of: fn(&Process) -> u64| {
        trace.processes.iter().map(|process| of(process) as f64).sum::<f64>()
    };
    let ledger = |of: fn(&iotomy_record::LedgerRow) -> u64| {
        let sum = trace.ledger.iter().map(|row| of(row) as f64).sum::<f64>();
        (!trace.ledger.is_empty()).then_some(sum * scale)
    };
    let storage = trace.processes.iter().any(|process| process.storage_read_bytes.is_some());
    let entered = calls(|call| call.calls.saturating_add(call.in_flight));
    let max_rss = trace.processes.iter().map(|process| process.max_rss_bytes).max();
    RowFacts {
        values: vec![
            (!per_second).then_some(trace.wall_ns as f64),
            Some(processes(|process| process.user_ns.saturating_add(process.system_ns)) * scale),
            ledger(|row| row.user_ns),
            ledger(|row| row.calls_on_cpu_ns),
            ledger(|row| row.blocked_ns),
            ledger(|row| row.runnable_ns),
            Some(calls(|call| call.calls) * scale),
            Some(calls(|call| call.errors) * scale),
            Some(calls(|call| call.bytes) * scale),
            Some(processes(|process| process.minor_faults) * scale),
            Some(processes(|process| process.major_faults) * scale),
            storage.then(|| processes(|one| one.storage_read_bytes.unwrap_or(0)) * scale),
            max_rss.map(|bytes| bytes as f64),
            Some(trace.process_count() as f64),
            Some(trace.thread_count() as f64),
        ],
        overhead: entered * cost * scale,
        ..RowFacts::default()
    }
}
