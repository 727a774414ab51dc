//! Which of the optional tables all runs have. A table that some runs lack is not compared: what is
//! missing there was not counted.

use iotomy_record::{FileKind, FileUse, LeftOut, Trace};

/// The optional tables that are compared.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Compared {
    pub(crate) ring_operations: bool,
    pub(crate) files: bool,
    pub(crate) peers: bool,
    pub(crate) connections: bool,
    pub(crate) requests: bool,
    pub(crate) paths: bool,
    pub(crate) groups: bool,
    pub(crate) threads: bool,
}

/// A table, whether a run has it, and what a run without it is.
struct Optional {
    table: &'static str,
    has: fn(&Trace) -> bool,
    lacks: &'static str,
}

const RING_OPERATIONS: Optional = Optional {
    table: "ring_operations",
    has: |trace| trace.observer.sees_rings == Some(true) || !trace.ring_operations.is_empty(),
    lacks: "was traced without watching what io_uring did",
};
const FILES: Optional =
    Optional { table: "files", has: has_files, lacks: "was traced without --files" };
const PEERS: Optional = Optional {
    table: "peers",
    has: has_peers,
    lacks: "was traced by an observer that does not know what sockets are connected to",
};
const CONNECTIONS: Optional =
    Optional { table: "connections", has: has_connections, lacks: "was traced without --peers" };
const REQUESTS: Optional = Optional {
    table: "requests",
    has: has_requests,
    lacks: "was traced without timing requests (--requests)",
};
const PATHS: Optional =
    Optional { table: "paths", has: has_paths, lacks: "was traced without --paths" };
const GROUPS: Optional =
    Optional { table: "groups", has: |trace| trace.by.is_some(), lacks: "was traced without --by" };
const THREADS: Optional =
    Optional { table: "threads", has: has_threads, lacks: "was traced without --threads" };

/// The tables to compare, and why not the others. Nothing is said of what no run has.
pub(crate) fn optional_tables(a: &[&Trace], b: &[&Trace]) -> (Compared, Vec<LeftOut>) {
    let mut left_out = Vec::new();
    let mut all_have = |optional: Optional| {
        let why = optional.missing(a, b);
        let is_in_all = why.is_none();
        left_out.extend(why.map(|why| LeftOut { table: optional.table, why }));
        is_in_all
    };
    let [ring_operations, files, peers, connections, requests, paths, groups, threads] =
        [RING_OPERATIONS, FILES, PEERS, CONNECTIONS, REQUESTS, PATHS, GROUPS, THREADS]
            .map(&mut all_have);
    if a.iter().chain(b).all(|trace| trace.ring_operations.is_empty()) {
        left_out.retain(|one| one.table != RING_OPERATIONS.table);
    }
    // Without files, a run has no peers either, nor connections without peers: that is said of the first.
    if !files {
        left_out.retain(|one| one.table != PEERS.table);
    }
    if !(files && peers) {
        left_out.retain(|one| one.table != CONNECTIONS.table);
    }
    let has_same_variables = same_variables(a, b);
    if let (true, Err(why)) = (groups, &has_same_variables) {
        left_out.push(LeftOut { table: GROUPS.table, why: why.clone() });
    }
    let groups = groups && has_same_variables.is_ok();
    // Tables that no run has are empty.
    left_out.retain(|one| !one.why.is_empty());
    let peers = files && peers;
    let connections = peers && connections;
    let has =
        Compared { ring_operations, files, peers, connections, requests, paths, groups, threads };
    (has, left_out)
}

impl Optional {
    /// Which runs lack the table; an empty text if all do.
    fn missing(&self, a: &[&Trace], b: &[&Trace]) -> Option<String> {
        let lacking = |side: &[&Trace]| side.iter().filter(|trace| !(self.has)(trace)).count();
        let (from_a, from_b) = (lacking(a), lacking(b));
        if from_a + from_b == 0 {
            return None;
        }
        if from_a == a.len() && from_b == b.len() {
            return Some(String::new());
        }
        let text = |count: usize, of: usize, side: &str| match count {
            0 => None,
            1 if of == 1 => Some(side.to_owned()),
            n if n == of => Some(format!("all runs of {side}")),
            n => Some(format!("{n} of {of} runs of {side}")),
        };
        let both = [text(from_a, a.len(), "A"), text(from_b, b.len(), "B")];
        let sides = both.into_iter().flatten().collect::<Vec<_>>().join(" and ");
        let lacks = match from_a + from_b {
            1 => self.lacks.to_owned(),
            _ => self.lacks.replacen("was", "were", 1),
        };
        Some(format!("{sides} {lacks}"))
    }
}

fn same_variables(a: &[&Trace], b: &[&Trace]) -> Result<(), String> {
    let by =
        |trace: &&Trace| trace.by.as_ref().map(|groups| groups.by.join(",")).unwrap_or_default();
    let first = a.first().map(by).unwrap_or_default();
    match a.iter().chain(b).map(by).find(|other| *other != first) {
        None => Ok(()),
        Some(other) => Err(format!("one run was grouped by {first}, another by {other}")),
    }
}

/// Of the whole machine, files are counted on request only.
fn has_files(trace: &Trace) -> bool {
    !trace.files.is_empty() || !trace.view.machine || trace.view.files
}

fn has_peers(trace: &Trace) -> bool {
    let is_socket = |kind: FileKind| kind == FileKind::Socket;
    let mut sockets = trace.files.iter().filter(|file| is_socket(file.kind)).peekable();
    sockets.peek().is_none() || sockets.any(|file| file.socket.is_some())
}

/// A view that shows peers does not say that connections were counted: a live one may without. Where they
/// were, those of TCP have rows.
fn has_connections(trace: &Trace) -> bool {
    let is_tcp = |file: &FileUse| file.socket.as_ref().is_some_and(|end| end.protocol == "tcp");
    !trace.connections.is_empty() || trace.view.peers && !trace.files.iter().any(is_tcp)
}

/// Where the kernel lacks what it takes to time requests, a view may have asked for them.
fn has_requests(trace: &Trace) -> bool {
    let is_missing = || trace.observer.missing.iter().any(|one| one.feature == "requests");
    !trace.requests.is_empty() || trace.view.requests && !is_missing()
}

fn has_paths(trace: &Trace) -> bool {
    trace.view.paths || !trace.paths.is_empty()
}

fn has_threads(trace: &Trace) -> bool {
    trace.view.threads || !trace.threads.is_empty()
}
