//! The tables beside those of calls: files, peers, paths, groups and threads.

use std::collections::{BTreeMap, BTreeSet};

use iotomy_record::{Connection, FileKind, Trace};

use crate::facts::{Key, Programs, RowFacts};
use crate::names::{self, Names, Several};

/// The rows of a table, and what each stands for.
#[derive(Default)]
struct Rows {
    rows: BTreeMap<Key, RowFacts>,
    several: Several,
}

impl Rows {
    /// The row of a name: `…` stands for what others have in its place.
    fn row(&mut self, names: &Names, program: String, name: &str, of: String) -> &mut RowFacts {
        let (shared, is_several) = names.row(name);
        self.entry((program, shared, of), is_several.then_some(name))
    }

    fn entry(&mut self, key: Key, one_of_several: Option<&str>) -> &mut RowFacts {
        if let Some(name) = one_of_several {
            self.several.add(&key, name);
        }
        self.rows.entry(key).or_default()
    }

    fn done(mut self) -> BTreeMap<Key, RowFacts> {
        for (key, row) in &mut self.rows {
            row.names = self.several.count(key);
        }
        self.rows
    }
}

/// Adds sums, each times `scale`.
fn add<const N: usize>(row: &mut RowFacts, parts: [u64; N], scale: f64) {
    row.values.resize(N, Some(0.0));
    for (value, part) in row.values.iter_mut().zip(parts) {
        *value = Some(value.unwrap_or(0.0) + part as f64 * scale);
    }
}

/// In the order of [`crate::measures::FILE`].
pub(crate) fn files(trace: &Trace, scale: f64, names: &Names) -> BTreeMap<Key, RowFacts> {
    let mut rows = Rows::default();
    for file in &trace.files {
        let name = names::path(&file.path);
        let row = rows.row(names, String::new(), &name, file.kind.name().to_owned());
        let parts = [
            file.read_calls,
            file.read_bytes,
            file.write_calls,
            file.write_bytes,
            file.map_calls,
            file.mapped_bytes,
        ];
        add(row, parts, scale);
    }
    rows.done()
}

/// What came of the connections with a peer.
#[derive(Default)]
struct Made {
    opened: u64,
    closed: Option<u64>,
    unfinished: u64,
    retransmits: u64,
    timed: u64,
    connect_ns: u64,
    rtts: u64,
    rtt_us: u64,
    errors: BTreeMap<String, u64>,
}

impl Made {
    fn add(&mut self, one: &Connection) {
        if let Some(closed) = one.closed {
            let sum = self.closed.get_or_insert_default();
            *sum = sum.saturating_add(closed);
        }
        let tcp = one.tcp.clone().unwrap_or_default();
        for (sum, more) in [
            (&mut self.opened, one.opened),
            (&mut self.unfinished, one.unfinished),
            (&mut self.timed, one.timed),
            (&mut self.connect_ns, one.connect_ns),
            (&mut self.retransmits, tcp.retransmits),
            (&mut self.rtts, tcp.rtts),
            (&mut self.rtt_us, tcp.rtt_us),
        ] {
            *sum = sum.saturating_add(more);
        }
        for (name, count) in &one.errors {
            let sum = self.errors.entry(name.clone()).or_default();
            *sum = sum.saturating_add(*count);
        }
    }

    /// The measures that [`crate::measures::CONNECTED_PEER`] has beyond [`crate::measures::PEER`].
    fn add_to(self, row: &mut RowFacts, scale: f64) {
        let sum = |count: u64| Some(count as f64 * scale);
        let mean = |sum: f64, of: u64| (of > 0).then(|| sum / of as f64);
        // One that refuses has no traffic.
        row.values.resize(crate::measures::PEER.len(), Some(0.0));
        row.values.extend([
            sum(self.opened),
            self.closed.and_then(sum),
            sum(self.errors.values().fold(0, |sum, count| sum.saturating_add(*count))),
            sum(self.unfinished),
            sum(self.retransmits),
            mean(self.connect_ns as f64, self.timed),
            mean(self.rtt_us as f64 * 1e3, self.rtts),
        ]);
        let errors = self.errors.into_iter();
        row.error_kinds = errors.map(|(name, count)| (name, count as f64 * scale)).collect();
    }
}

/// In the order of [`crate::measures::PEER`], or of [`crate::measures::CONNECTED_PEER`] with connections.
pub(crate) fn peers(
    trace: &Trace,
    scale: f64,
    with_connections: bool,
    programs: &Programs<'_>,
    names: &Names,
) -> BTreeMap<Key, RowFacts> {
    let program = |file: &iotomy_record::FileUse| programs.name(file.pid, &file.exec, file.image);
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
    let mut rows = Rows::default();
    let mut seen = BTreeSet::new();
    for file in &trace.files {
        let name = match (names.peer(file), file.kind) {
            (Some(name), _) => name,
            (None, FileKind::Pipe) => between(&ends[file.path.as_str()]),
            _ => continue,
        };
        let row = rows.row(names, String::new(), &name, String::new());
        let connections = u64::from(seen.insert(&file.path));
        let traffic = [file.read_calls, file.read_bytes, file.write_calls, file.write_bytes];
        let [reads, read, writes, written] = traffic;
        add(row, [0, reads, read, writes, written], scale);
        // Those that were there at all: most of a service's outlast the watch.
        if let Some(Some(all)) = row.values.first_mut() {
            *all += connections as f64;
        }
    }
    let mut made: BTreeMap<Key, Made> = BTreeMap::new();
    for one in trace.connections.iter().filter(|_| with_connections) {
        let name = names.peer_of(&one.ends);
        rows.row(names, String::new(), &name, String::new());
        let (shared, _) = names.row(&name);
        made.entry((String::new(), shared, String::new())).or_default().add(one);
    }
    let mut rows = rows.done();
    if with_connections {
        for (key, row) in &mut rows {
            made.remove(key).unwrap_or_default().add_to(row, scale);
        }
    }
    rows
}

/// What a pipe is between, by programs: the processes have other ids in every run.
fn between([writers, readers]: &[BTreeSet<String>; 2]) -> String {
    let text = |programs: &BTreeSet<String>| match programs.len() {
        0 => "nobody watched".to_owned(),
        _ => programs.iter().map(String::as_str).collect::<Vec<_>>().join(" and "),
    };
    format!("pipe from {} to {}", text(writers), text(readers))
}

/// In the order of [`crate::measures::PATH`].
pub(crate) fn paths(
    trace: &Trace,
    scale: f64,
    cost: f64,
    names: &Names,
) -> BTreeMap<Key, RowFacts> {
    let mut rows = Rows::default();
    for one in &trace.paths {
        let outcome = one.error.as_deref().unwrap_or("ok");
        let second = if one.second { " (second path)" } else { "" };
        let of = format!("{}{second} {outcome}", one.syscall);
        let name = names::path(one.path.as_deref().unwrap_or("(unreadable)"));
        let row = rows.row(names, String::new(), &name, of);
        add(row, [one.calls, one.wall_ns], scale);
        row.overhead += one.calls as f64 * cost * scale;
    }
    rows.done()
}

/// In the order of [`crate::measures::GROUP`].
pub(crate) fn groups(
    trace: &Trace,
    scale: f64,
    cost: f64,
    names: &Names,
) -> BTreeMap<Key, RowFacts> {
    let Some(groups) = &trace.by else { return BTreeMap::new() };
    let mut rows = Rows::default();
    let mut longest: BTreeMap<Key, u64> = BTreeMap::new();
    for group in &groups.rows {
        let values: Vec<(String, bool)> =
            groups.by.iter().zip(&group.key).map(|(by, key)| names.value(by, key)).collect();
        let text = values.iter().map(|(text, _)| text.as_str()).collect::<Vec<_>>().join(", ");
        let key = (String::new(), text, String::new());
        let is_several = values.iter().any(|(_, is_several)| *is_several);
        let own = format!("{:?}", group.key);
        let row = rows.entry(key.clone(), is_several.then_some(&own));
        add(row, [group.calls, group.errors, group.bytes, group.wall_ns], scale);
        row.overhead += group.calls as f64 * cost * scale;
        let longest = longest.entry(key).or_default();
        *longest = (*longest).max(group.max_ns);
    }
    let mut rows = rows.done();
    for (key, row) in &mut rows {
        let of = |at: usize| row.values.get(at).copied().flatten().unwrap_or(0.0);
        let (calls, wall) = (of(0), of(3));
        row.values.push((calls > 0.0).then(|| wall / calls));
        row.values.push(longest.get(key).map(|max| *max as f64));
    }
    rows
}

/// In the order of [`crate::measures::THREAD`].
pub(crate) fn threads(
    trace: &Trace,
    scale: f64,
    cost: f64,
    programs: &Programs<'_>,
    names: &Names,
) -> BTreeMap<Key, RowFacts> {
    let mut rows = Rows::default();
    for thread in &trace.threads {
        let program = programs.name(thread.pid, &thread.exec, thread.image);
        let name = match (thread.name.as_str(), thread.count()) {
            ("", 1) => "(no name)",
            // For the names of several there was no room.
            ("", _) => "(other names)",
            (name, _) => name,
        };
        let row = rows.row(names, program, name, String::new());
        let sums = [
            (Some(thread.count().into()), 1.0),
            (Some(thread.calls), scale),
            (Some(thread.errors), scale),
            (Some(thread.on_cpu_ns), scale),
            (thread.user_ns, scale),
            (thread.blocked_ns, scale),
            (thread.runnable_ns, scale),
            (Some(thread.voluntary_switches), scale),
            (Some(thread.involuntary_switches), scale),
        ];
        row.values.resize(sums.len(), Some(0.0));
        for (value, (part, scale)) in row.values.iter_mut().zip(sums) {
            *value = value.zip(part).map(|(value, part): (f64, u64)| value + part as f64 * scale);
        }
        row.overhead += thread.calls as f64 * cost * scale;
    }
    rows.done()
}
