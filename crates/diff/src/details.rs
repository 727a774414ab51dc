//! The tables beside those of calls: files, peers, paths, groups and threads.

use std::collections::{BTreeMap, BTreeSet};

use iotomy_record::{Connection, FileKind, FileUse, Group, PathUse, Thread, Trace, statistic};

use crate::measures::{self, count, extent, per_call};
use crate::names::{self, Names, Several};
use crate::programs::Programs;
use crate::row::{Key, RowFacts, scaled};

/// The sums of a table by row, and what each stands for.
pub(crate) struct Rows<S> {
    sums: BTreeMap<Key, S>,
    several: Several,
}

impl<S: Default> Rows<S> {
    pub(crate) fn new() -> Self {
        Self { sums: BTreeMap::new(), several: Several::default() }
    }

    /// The row of a name: `…` stands for what others have in its place.
    pub(crate) fn row(&mut self, names: &Names, program: String, name: &str, of: String) -> &mut S {
        let (shared, is_several) = names.row(name);
        self.entry((program, shared, of), is_several.then_some(name))
    }

    fn entry(&mut self, key: Key, one_of_several: Option<&str>) -> &mut S {
        if let Some(name) = one_of_several {
            self.several.add(&key, name);
        }
        self.sums.entry(key).or_default()
    }

    pub(crate) fn done(self, facts: impl Fn(S) -> RowFacts) -> BTreeMap<Key, RowFacts> {
        let rows = self.sums.into_iter().map(|(key, sum)| {
            let names = self.several.count(&key);
            (key, RowFacts { names, ..facts(sum) })
        });
        rows.collect()
    }
}

pub(crate) fn files(trace: &Trace, scale: f64, names: &Names) -> BTreeMap<Key, RowFacts> {
    let mut rows = Rows::<FileUse>::new();
    for file in &trace.files {
        let name = names::path(&file.path);
        let row = rows.row(names, String::new(), &name, file.kind.name().to_owned());
        statistic::add(row, file);
    }
    rows.done(|sum| {
        let measures = measures::compared(Some(&sum), scale);
        RowFacts { measures, ..RowFacts::default() }
    })
}

/// The traffic with a peer, and what came of the connections with it.
#[derive(Default)]
struct Peer {
    /// Those that were there at all: most of a service's outlast the watch.
    connections: u64,
    files: FileUse,
    made: Connection,
}

impl Peer {
    /// What came of connections only where they were counted. One that refuses has no traffic.
    fn into_row(self, scale: f64, with_connections: bool) -> RowFacts {
        let mut measures = vec![extent("connections", self.connections as f64)];
        let files = measures::compared(Some(&self.files), scale).into_iter();
        // Sockets and pipes are never mapped.
        measures.extend(files.filter(|measure| !measure.name.starts_with("map")));
        if !with_connections {
            return RowFacts { measures, ..RowFacts::default() };
        }
        let made = measures::compared(Some(&self.made), scale).into_iter();
        // Not every observer and record knows what listeners dropped.
        measures.extend(made.filter(|measure| measure.name != "dropped"));
        measures.extend([
            count("retransmits", self.made.retransmits() as f64 * scale),
            per_call("connect_mean_ns", self.made.mean_ns()),
            per_call("rtt_mean_ns", self.made.mean_rtt_us().map(|us| us * 1e3)),
        ]);
        let error_kinds = scaled(&self.made.errors, scale);
        RowFacts { measures, error_kinds, ..RowFacts::default() }
    }
}

pub(crate) fn peers(
    trace: &Trace,
    scale: f64,
    with_connections: bool,
    programs: &Programs<'_>,
    names: &Names,
) -> BTreeMap<Key, RowFacts> {
    let program = |file: &FileUse| programs.name(file.pid, &file.exec, file.image);
    let mut ends: BTreeMap<&str, [BTreeSet<String>; 2]> = BTreeMap::new();
    for pipe in trace.files.iter().filter(|file| file.kind == FileKind::Pipe) {
        let [writers, readers] = ends.entry(&pipe.path).or_default();
        if pipe.write_calls > 0 {
            writers.insert(program(pipe));
        }
        if pipe.read_calls > 0 {
            readers.insert(program(pipe));
        }
    }
    let mut rows = Rows::<Peer>::new();
    let mut seen = BTreeSet::new();
    for file in &trace.files {
        let name = match (names.peer(file), file.kind) {
            (Some(name), _) => name,
            (None, FileKind::Pipe) => between(&ends[file.path.as_str()]),
            _ => continue,
        };
        let row = rows.row(names, String::new(), &name, String::new());
        row.connections += u64::from(seen.insert(&file.path));
        statistic::add(&mut row.files, file);
    }
    for one in trace.connections.iter().filter(|_| with_connections) {
        let name = names.peer_of(&one.ends);
        rows.row(names, String::new(), &name, String::new()).made.merge(one);
    }
    rows.done(|peer| peer.into_row(scale, with_connections))
}

/// What a pipe is between, by programs: the processes have other ids in every run.
fn between([writers, readers]: &[BTreeSet<String>; 2]) -> String {
    let text = |programs: &BTreeSet<String>| match programs.len() {
        0 => "nobody watched".to_owned(),
        _ => programs.iter().map(String::as_str).collect::<Vec<_>>().join(" and "),
    };
    format!("pipe from {} to {}", text(writers), text(readers))
}

pub(crate) fn paths(
    trace: &Trace,
    scale: f64,
    cost: f64,
    names: &Names,
) -> BTreeMap<Key, RowFacts> {
    let mut rows = Rows::<PathUse>::new();
    for one in &trace.paths {
        let outcome = one.error.as_deref().unwrap_or("ok");
        let second = if one.second { " (second path)" } else { "" };
        let of = format!("{}{second} {outcome}", one.syscall);
        let name = names::path(one.path.as_deref().unwrap_or("(unreadable)"));
        statistic::add(rows.row(names, String::new(), &name, of), one);
    }
    rows.done(|sum| {
        let overhead = sum.calls as f64 * cost * scale;
        let measures = measures::compared(Some(&sum), scale);
        RowFacts { measures, overhead, ..RowFacts::default() }
    })
}

pub(crate) fn groups(
    trace: &Trace,
    scale: f64,
    cost: f64,
    names: &Names,
) -> BTreeMap<Key, RowFacts> {
    let Some(groups) = &trace.by else { return BTreeMap::new() };
    let mut rows = Rows::<Group>::new();
    for group in &groups.rows {
        let values: Vec<(String, bool)> =
            groups.by.iter().zip(&group.key).map(|(by, key)| names.value(by, key)).collect();
        let text = values.iter().map(|(text, _)| text.as_str()).collect::<Vec<_>>().join(", ");
        let key = (String::new(), text, String::new());
        let is_several = values.iter().any(|(_, is_several)| *is_several);
        let own = format!("{:?}", group.key);
        statistic::add(rows.entry(key, is_several.then_some(&own)), group);
    }
    rows.done(|sum| {
        let mut measures = measures::compared(Some(&sum), scale);
        let mean = (sum.calls > 0).then(|| sum.wall_ns as f64 / sum.calls as f64);
        measures.push(per_call("mean_ns", mean));
        measures.push(per_call("wall_max_ns", sum.max_ns as f64));
        let overhead = sum.calls as f64 * cost * scale;
        RowFacts { measures, overhead, ..RowFacts::default() }
    })
}

pub(crate) fn threads(
    trace: &Trace,
    scale: f64,
    cost: f64,
    programs: &Programs<'_>,
    names: &Names,
) -> BTreeMap<Key, RowFacts> {
    let mut rows = Rows::<(u64, Thread)>::new();
    for thread in &trace.threads {
        let program = programs.name(thread.pid, &thread.exec, thread.image);
        let name = match (thread.name.as_str(), thread.count()) {
            ("", 1) => "(no name)",
            // For the names of several there was no room.
            ("", _) => "(other names)",
            (name, _) => name,
        };
        let (threads, sum) = rows.row(names, program, name, String::new());
        *threads += u64::from(thread.count());
        statistic::add(sum, thread);
    }
    rows.done(|(threads, sum)| {
        let mut measures = vec![extent("threads", threads as f64)];
        measures.extend(measures::compared(Some(&sum), scale));
        let overhead = sum.calls as f64 * cost * scale;
        RowFacts { measures, overhead, ..RowFacts::default() }
    })
}
