//! `s`: the counts so far as a record in a new file of the current directory.
//!
//! The one invariant: no file is ever replaced, and none is left that is not whole.

use std::collections::{BTreeMap, HashMap};
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::time::SystemTime;

use iotomy_host::rfc3339;
use iotomy_observe::WatchStart;
use iotomy_record::store::{RecordRef, remove_own};
use iotomy_record::{FileKind, FileUse, Intervals, LedgerRow, Running, Snapshot, Trace};
use iotomy_report::live::Screen;
use rustix::fs::{CWD, OFlags};

use super::super::recorder::mark;
use super::super::watching;

/// Names that are tried of one second.
const TRIES: u32 = 1_000;

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
        match write_new(&format!("iotomy-{}", mark(SystemTime::now())), &json) {
            Ok(name) if left_out > 0 => {
                format!("saved {name}; {left_out} ended processes are not in it")
            }
            Ok(name) => format!("saved {name}"),
            Err(error) => format!("cannot save in the current directory: {error}"),
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
            ledger: so_far.ledger,
            ..self.common.clone()
        };
        record.observer.lost_events = so_far.lost;
        record.observer.lost_connections = so_far.lost_connections;
        record.observer.lost_requests = so_far.lost_requests;
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
        let name = if image.called.is_empty() { &image.exec } else { &image.called };
        names.insert((image.pid, name), &image.exec);
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

/// Writes a file of that name, or of that name with a number, that was not there. Its name.
fn write_new(stem: &str, bytes: &[u8]) -> io::Result<String> {
    for number in 1..=TRIES {
        let name = match number {
            1 => format!("{stem}.json"),
            _ => format!("{stem}-{number}.json"),
        };
        let mut file = match create(&name) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => continue,
            made => made?,
        };
        if let Err(error) = file.write_all(bytes).and_then(|()| file.sync_all()) {
            // Nothing can be done about one that stays.
            let _ = file.metadata().and_then(|own| remove_own(CWD, name.as_ref(), &own));
            return Err(error);
        }
        return Ok(name);
    }
    Err(io::ErrorKind::AlreadyExists.into())
}

fn create(name: &str) -> io::Result<File> {
    let flags = OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mut options = OpenOptions::new();
    // Exclusive creation follows no link either.
    options.write(true).create_new(true).custom_flags(flags.bits().cast_signed());
    options.open(Path::new(name))
}
