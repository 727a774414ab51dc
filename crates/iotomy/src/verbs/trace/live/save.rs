//! `s`: the counts so far as a record in a new file of the current directory.
//!
//! The one invariant: no file is ever replaced, and none is left that is not whole.

use std::collections::{BTreeMap, HashMap};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::SystemTime;

use iotomy_host::rfc3339;
use iotomy_observe::WatchStart;
use iotomy_record::store::{RecordRef, put_new};
use iotomy_record::{FileKind, FileUse, Intervals, LedgerRow, Running, Snapshot, Trace, lossless};
use iotomy_report::live::Screen;

use super::super::recorder::mark;
use super::super::watching;

/// Makes records of a watch that goes on.
pub(super) struct Saver {
    /// What they have in common.
    common: Trace,
    each: bool,
}

impl Saver {
    pub(super) fn new(common: Trace, each: bool) -> Self {
        Self { common, each }
    }

    pub(super) fn fall_back(&mut self, reason: &str) {
        self.common.observer.fallback = Some(reason.to_owned());
    }

    pub(super) fn begin(&mut self, outset: &WatchStart) {
        watching::note_start(&mut self.common, outset);
        self.common.started = rfc3339(SystemTime::now());
    }

    /// Saves the counts that the screen shows. A line that says where, or why not.
    pub(super) fn save(&self, screen: &Screen) -> String {
        let Some((counts, left_out)) = screen.counts() else {
            return String::from("nothing to save yet");
        };
        let json = match RecordRef::Trace(&self.record(&counts, screen.shows_peers())).json() {
            Ok(json) => json,
            Err(error) => return format!("cannot save: {error}"),
        };
        let name = match put_new(Path::new("."), "iotomy.json", &mark(SystemTime::now()), &json) {
            Ok(name) => lossless(name.as_bytes()),
            Err(error) => return format!("cannot save in the current directory: {error}"),
        };
        match left_out {
            0 => format!("saved {name}"),
            _ => format!("saved {name}; {left_out} ended processes are not in it"),
        }
    }

    fn record(&self, counts: &Snapshot, shows_peers: bool) -> Trace {
        let so_far = Intervals::default().advance(counts);
        let alive = counts.images.iter().filter(|image| image.threads > 0);
        let mut record = Trace {
            wall_ns: so_far.wall_ns,
            still_running: alive
                .map(|image| Running { pid: image.pid, exec: image.exec.clone() })
                .collect(),
            processes: so_far.processes,
            calls: so_far.calls,
            files: files_by_process(so_far.files, counts),
            connections: so_far.connections,
            ring_operations: so_far.ring_operations,
            requests: so_far.requests,
            ledger: so_far.ledger,
            ..self.common.clone()
        };
        record.observer.lost_events = so_far.lost;
        record.observer.lost_connections = so_far.lost_connections;
        record.observer.lost_requests = so_far.lost_requests;
        record.observer.lost_exchanges = so_far.lost_exchanges;
        record.view.peers |= shows_peers;
        // Both are in the order of the images. The sum is the CPU time; the kernel's own accounting
        // of a process that goes on begins before the watch.
        let mut ledger = record.ledger.iter().peekable();
        for process in &mut record.processes {
            let is_its = |row: &&LedgerRow| (row.pid, &row.exec) == (process.pid, &process.exec);
            if let Some(row) = ledger.next_if(is_its) {
                (process.user_ns, process.system_ns) = (row.user_ns, row.calls_on_cpu_ns);
            }
        }
        if !self.each {
            record.roll_up();
        }
        record
    }
}

/// The files of a watch by the living processes that use them. The use by other processes is in rows without a process.
fn files_by_process(files: Vec<FileUse>, counts: &Snapshot) -> Vec<FileUse> {
    let mut uses: BTreeMap<(FileKind, &str), Vec<&FileUse>> = BTreeMap::new();
    for one in &counts.uses {
        uses.entry((one.kind, &one.path)).or_default().push(one);
    }
    // By the name that records have.
    let mut names: HashMap<(u32, &str), &str> = HashMap::new();
    for image in &counts.images {
        names.insert((image.pid, image.program()), &image.exec);
    }
    let mut rows = Vec::new();
    for mut file in files {
        for one in uses.get(&(file.kind, &*file.path)).into_iter().flatten() {
            let exec = names.get(&(one.pid, &*one.exec)).copied().unwrap_or(&one.exec).to_owned();
            rows.push(FileUse { exec, socket: file.socket.clone(), ..(*one).clone() });
            for (rest, part) in [
                (&mut file.read_calls, one.read_calls),
                (&mut file.read_bytes, one.read_bytes),
                (&mut file.write_calls, one.write_calls),
                (&mut file.write_bytes, one.write_bytes),
                (&mut file.map_calls, one.map_calls),
                (&mut file.mapped_bytes, one.mapped_bytes),
            ] {
                *rest = rest.saturating_sub(part);
            }
        }
        if file.read_calls + file.write_calls + file.map_calls > 0 {
            rows.push(file);
        }
    }
    rows
}
