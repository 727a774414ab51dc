//! Puts identical program images together: a build has thousands, and each did the same.
//!
//! Two images are identical that were executed by the same name, are called the same, and run the same
//! file; their arguments and the numbers in their titles may differ. The one invariant: no sum over a table changes, neither of times nor
//! of counts, images, processes or threads.

use std::cmp::Reverse;
use std::collections::btree_map::{BTreeMap, Entry};
use std::collections::{HashMap, HashSet, hash_map};

use crate::{
    Call, Connection, Exchange, FileKind, FileUse, LedgerRow, PathUse, Process, Race,
    RingOperation, Role, Running, Socket, Thread, Trace, statistic, without_numbers,
};

/// Up to this many identical images are listed separately.
const FEW: usize = 4;

/// An image as every table names it.
type Key = (u32, String, u32);

/// The representative of each image, and the index of each among the processes.
struct Targets {
    target: HashMap<Key, Key>,
    order: HashMap<Key, usize>,
}

/// A row of a table by image.
trait Row: Sized {
    /// The key that distinguishes it from the other rows of its image.
    type Key: Ord;

    fn key(&self) -> Self::Key;

    fn image(&mut self) -> (&mut u32, &mut String, &mut u32);

    fn add(&mut self, other: Self);
}

impl Targets {
    /// Rows of an image that is not a process of the record come last.
    fn place(&self, image: &Key) -> usize {
        self.order.get(image).copied().unwrap_or(usize::MAX)
    }

    /// The rows, merged under the representatives of their images, in the order of these.
    fn roll_up<R: Row>(&self, all: Vec<R>) -> Vec<R> {
        let mut sums = RowSums::default();
        all.into_iter().for_each(|one| sums.add(self, one));
        sums.into_rows()
    }

    /// Threads of images that are put together are so by name, and the first ones of processes by
    /// themselves; in others, threads of one name stay separate.
    fn roll_up_threads(&self, all: Vec<Thread>) -> Vec<Thread> {
        let mut images: HashMap<&Key, usize> = HashMap::new();
        self.target.values().for_each(|target| *images.entry(target).or_default() += 1);
        let mut at: HashMap<(Key, bool, String), usize> = HashMap::new();
        let mut sums: Vec<Thread> = Vec::new();
        for mut one in all {
            let own = (one.pid, one.exec.clone(), one.image);
            let Some(key) = self.target.get(&own).filter(|target| images[target] > 1) else {
                sums.push(one);
                continue;
            };
            let is_first = one.is_first();
            (one.pid, one.exec, one.image) = key.clone();
            match at.entry((key.clone(), is_first, one.name.clone())) {
                hash_map::Entry::Occupied(row) => sums[*row.get()].add(one),
                hash_map::Entry::Vacant(row) => {
                    row.insert(sums.len());
                    sums.push(one);
                }
            }
        }
        sums.sort_by_cached_key(|one| {
            let place = self.place(&(one.pid, one.exec.clone(), one.image));
            (place, Reverse(one.on_cpu_ns), one.tid)
        });
        sums
    }
}

/// Rows of a table, merged as they come.
struct RowSums<R: Row> {
    at: BTreeMap<(Key, R::Key), usize>,
    /// Each with the place of its image.
    sums: Vec<(usize, R)>,
}

impl<R: Row> Default for RowSums<R> {
    fn default() -> Self {
        Self { at: BTreeMap::new(), sums: Vec::new() }
    }
}

impl<R: Row> RowSums<R> {
    /// Adds a row to that of its image's representative.
    fn add(&mut self, targets: &Targets, mut one: R) {
        let part = one.key();
        let (pid, exec, image) = one.image();
        let own = (*pid, std::mem::take(exec), *image);
        let key = targets.target.get(&own).cloned().unwrap_or(own);
        (*pid, *exec, *image) = key.clone();
        let place = targets.place(&key);
        match self.at.entry((key, part)) {
            Entry::Occupied(row) => self.sums[*row.get()].1.add(one),
            Entry::Vacant(row) => {
                row.insert(self.sums.len());
                self.sums.push((place, one));
            }
        }
    }

    /// In the order of the images.
    fn into_rows(mut self) -> Vec<R> {
        self.sums.sort_by_key(|(place, _)| *place);
        self.sums.into_iter().map(|(_, sum)| sum).collect()
    }
}

/// The rows of an image in the tables that have most.
#[derive(Debug, Default)]
pub struct ImageRows {
    /// Its calls.
    pub calls: Vec<Call>,
    /// Its ring operations.
    pub ring_operations: Vec<RingOperation>,
    /// Its files.
    pub files: Vec<FileUse>,
    /// The paths of its calls.
    pub paths: Vec<PathUse>,
    /// Its connections.
    pub connections: Vec<Connection>,
    /// Its requests over these.
    pub requests: Vec<Exchange>,
}

/// Rows of images that are put together as they come: of thousands of identical images, only the sums are kept.
pub struct RollUp {
    targets: Targets,
    firsts: Vec<usize>,
    calls: RowSums<Call>,
    ring_operations: RowSums<RingOperation>,
    files: RowSums<FileUse>,
    paths: RowSums<PathUse>,
    connections: RowSums<Connection>,
    requests: RowSums<Exchange>,
}

impl RollUp {
    /// Of these images, of which the process of the first is the command's, if there is one, and some went on;
    /// `None` where none are put together.
    pub fn new(processes: &[Process], is_command: bool, running: &[Running]) -> Option<Self> {
        let firsts = firsts(processes, is_command, running);
        if firsts.iter().enumerate().all(|(at, first)| at == *first) {
            return None;
        }
        let mut target: HashMap<Key, Key> = HashMap::new();
        for (process, first) in processes.iter().zip(&firsts) {
            target.entry(key(process)).or_insert_with(|| key(&processes[*first]));
        }
        let mut order: HashMap<Key, usize> = HashMap::new();
        for (at, process) in processes.iter().enumerate() {
            order.entry(key(process)).or_insert(at);
        }
        Some(Self {
            targets: Targets { target, order },
            firsts,
            calls: RowSums::default(),
            ring_operations: RowSums::default(),
            files: RowSums::default(),
            paths: RowSums::default(),
            connections: RowSums::default(),
            requests: RowSums::default(),
        })
    }

    /// Adds the rows of an image, or of several.
    pub fn add(&mut self, rows: ImageRows) {
        let targets = &self.targets;
        rows.calls.into_iter().for_each(|one| self.calls.add(targets, one));
        rows.ring_operations.into_iter().for_each(|one| self.ring_operations.add(targets, one));
        rows.files.into_iter().for_each(|one| self.files.add(targets, one));
        rows.paths.into_iter().for_each(|one| self.paths.add(targets, one));
        rows.connections.into_iter().for_each(|one| self.connections.add(targets, one));
        rows.requests.into_iter().for_each(|one| self.requests.add(targets, one));
    }

    /// Gives a record the sums, and puts its processes, threads and ledger together as these.
    pub fn finish(self, record: &mut Trace) {
        let targets = &self.targets;
        record.ledger = targets.roll_up(std::mem::take(&mut record.ledger));
        record.threads = targets.roll_up_threads(std::mem::take(&mut record.threads));
        record.processes = processes(std::mem::take(&mut record.processes), &self.firsts);
        let mut calls = self.calls.into_rows();
        // As the observers have them: of an image the longest first.
        calls.sort_by_cached_key(|call| {
            let image = (call.pid, call.exec.clone(), call.image);
            (targets.place(&image), Reverse(call.wall_ns), call.syscall.clone())
        });
        let mut paths = self.paths.into_rows();
        paths.sort_by_key(|one| Reverse(one.calls));
        record.calls = calls;
        record.ring_operations = self.ring_operations.into_rows();
        record.files = self.files.into_rows();
        record.paths = paths;
        record.connections = self.connections.into_rows();
        let mut requests = self.requests.into_rows();
        requests.sort_by_key(|one| Reverse(one.wall_ns));
        record.requests = requests;
    }
}

impl Trace {
    /// Puts identical images together, where there are more than four: in each table the entries of
    /// the first stand for all. Those of the command's own process, and of processes that outlived
    /// the watch, stay separate: a run does not create many of them.
    pub fn roll_up(&mut self) {
        let is_command = !self.command.is_empty();
        let Some(mut sums) = RollUp::new(&self.processes, is_command, &self.still_running) else {
            return;
        };
        sums.add(ImageRows {
            calls: std::mem::take(&mut self.calls),
            ring_operations: std::mem::take(&mut self.ring_operations),
            files: std::mem::take(&mut self.files),
            paths: std::mem::take(&mut self.paths),
            connections: std::mem::take(&mut self.connections),
            requests: std::mem::take(&mut self.requests),
        });
        sums.finish(self);
    }
}

/// The index of each entry's representative: its own, if it stays.
fn firsts(processes: &[Process], is_command: bool, running: &[Running]) -> Vec<usize> {
    let root = processes.first().filter(|_| is_command).map(|one| one.pid);
    let running: HashSet<u32> = running.iter().map(|one| one.pid).collect();
    let stays = |one: &Process| Some(one.pid) == root || running.contains(&one.pid);
    let kind = |one: &Process| {
        let names = [&one.exec, &one.called, &one.binary].map(String::clone);
        (names, without_numbers(&one.title), one.before_exec)
    };
    let mut kinds: HashMap<_, Vec<usize>> = HashMap::new();
    for (at, one) in processes.iter().enumerate().filter(|(_, one)| !stays(one)) {
        kinds.entry(kind(one)).or_default().push(at);
    }
    let mut firsts: Vec<usize> = (0..processes.len()).collect();
    for alike in kinds.values().filter(|alike| alike.len() > FEW) {
        for at in alike {
            firsts[*at] = alike[0];
        }
    }
    firsts
}

impl Race {
    /// Puts identical images of each traced run together; not where samples stand beside the trace, since these
    /// name every process.
    pub fn roll_up(&mut self) {
        for one in self.commands.iter_mut().filter(|one| one.sampled.is_none()) {
            one.trace.iter_mut().for_each(Trace::roll_up);
        }
    }
}

fn key(one: &Process) -> Key {
    (one.pid, one.exec.clone(), one.image)
}

fn processes(all: Vec<Process>, firsts: &[usize]) -> Vec<Process> {
    let mut sums: BTreeMap<usize, Process> = BTreeMap::new();
    for (one, first) in all.into_iter().zip(firsts) {
        let Some(sum) = sums.get_mut(first) else {
            sums.insert(*first, one);
            continue;
        };
        sum.instances = sum.count().saturating_add(one.count());
        sum.title = without_numbers(&sum.title);
        statistic::add(sum, &one);
    }
    sums.into_values().collect()
}

/// The fields that name a row's image.
macro_rules! in_image {
    () => {
        fn image(&mut self) -> (&mut u32, &mut String, &mut u32) {
            (&mut self.pid, &mut self.exec, &mut self.image)
        }
    };
}

impl Row for Call {
    type Key = String;

    fn key(&self) -> String {
        self.syscall.clone()
    }

    in_image!();

    fn add(&mut self, one: Self) {
        self.merge(&one);
    }
}

impl Row for FileUse {
    type Key = (FileKind, String);

    fn key(&self) -> (FileKind, String) {
        (self.kind, self.path.clone())
    }

    in_image!();

    /// The kind of the file and its allocated size are those of the first row. The dirty pages at
    /// the end are known for files that were written, and the first row may only have read.
    fn add(&mut self, one: Self) {
        self.dirty_bytes = self.dirty_bytes.or(one.dirty_bytes);
        statistic::add(self, &one);
    }
}

impl Row for PathUse {
    type Key = (String, bool, Option<String>, Option<String>);

    fn key(&self) -> Self::Key {
        (self.syscall.clone(), self.second, self.error.clone(), self.path.clone())
    }

    in_image!();

    fn add(&mut self, one: Self) {
        statistic::add(self, &one);
    }
}

/// What tells connections apart. Of a UNIX socket, the process at the other end may have had another name.
type Ends = (Option<Role>, String, Option<String>, Option<String>, Option<u32>);

fn ends(socket: &Socket) -> Ends {
    let Socket { protocol, local, remote, peer_pid, role, .. } = socket.clone();
    (role, protocol, local, remote, peer_pid)
}

impl Row for Connection {
    type Key = Ends;

    fn key(&self) -> Ends {
        ends(&self.ends)
    }

    in_image!();

    fn add(&mut self, one: Self) {
        self.merge(&one);
    }
}

impl Row for Exchange {
    type Key = Ends;

    fn key(&self) -> Ends {
        ends(&self.ends)
    }

    in_image!();

    fn add(&mut self, one: Self) {
        self.merge(&one);
    }
}

impl Row for RingOperation {
    type Key = String;

    fn key(&self) -> String {
        self.op.clone()
    }

    in_image!();

    fn add(&mut self, one: Self) {
        self.merge(&one);
    }
}

impl Row for LedgerRow {
    type Key = ();

    fn key(&self) {}

    in_image!();

    fn add(&mut self, one: Self) {
        statistic::add(self, &one);
    }
}

#[cfg(test)]
#[path = "roll_up_tests.rs"]
mod tests;
