//! Puts identical program images together: a build has thousands, and each did the same.
//!
//! Two images are identical that were executed by the same name, are called the same, and run the same
//! file; their arguments may differ. The one invariant: no sum over a table changes, neither of times nor
//! of counts, images, processes or threads.

use std::cmp::Reverse;
use std::collections::btree_map::{BTreeMap, Entry};
use std::collections::{HashMap, HashSet, hash_map};

use crate::{
    Call, Connection, FileKind, FileUse, LedgerRow, PathUse, Process, Race, RingOperation, Role,
    Socket, Thread, Trace,
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
        let mut at: BTreeMap<(Key, R::Key), usize> = BTreeMap::new();
        let mut sums: Vec<(usize, R)> = Vec::new();
        for mut one in all {
            let part = one.key();
            let (pid, exec, image) = one.image();
            let own = (*pid, std::mem::take(exec), *image);
            let key = self.target.get(&own).cloned().unwrap_or(own);
            (*pid, *exec, *image) = key.clone();
            let place = self.place(&key);
            match at.entry((key, part)) {
                Entry::Occupied(row) => sums[*row.get()].1.add(one),
                Entry::Vacant(row) => {
                    row.insert(sums.len());
                    sums.push((place, one));
                }
            }
        }
        sums.sort_by_key(|(place, _)| *place);
        sums.into_iter().map(|(_, sum)| sum).collect()
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

impl Trace {
    /// Puts identical images together, where there are more than four: in each table the entries of
    /// the first stand for all. Those of the command's own process, and of processes that outlived
    /// the watch, stay separate: a run does not create many of them.
    pub fn roll_up(&mut self) {
        let firsts = self.firsts();
        if firsts.iter().enumerate().all(|(at, first)| at == *first) {
            return;
        }
        let mut target: HashMap<Key, Key> = HashMap::new();
        for (process, first) in self.processes.iter().zip(&firsts) {
            target.entry(key(process)).or_insert_with(|| key(&self.processes[*first]));
        }
        let mut order: HashMap<Key, usize> = HashMap::new();
        for (at, process) in self.processes.iter().enumerate() {
            order.entry(key(process)).or_insert(at);
        }
        let targets = Targets { target, order };
        self.calls = targets.roll_up(std::mem::take(&mut self.calls));
        // As the observers have them: of an image the longest first.
        self.calls.sort_by_cached_key(|call| {
            let image = (call.pid, call.exec.clone(), call.image);
            (targets.place(&image), Reverse(call.wall_ns), call.syscall.clone())
        });
        self.ring_operations = targets.roll_up(std::mem::take(&mut self.ring_operations));
        self.files = targets.roll_up(std::mem::take(&mut self.files));
        self.paths = targets.roll_up(std::mem::take(&mut self.paths));
        self.paths.sort_by_key(|one| Reverse(one.calls));
        self.connections = targets.roll_up(std::mem::take(&mut self.connections));
        self.ledger = targets.roll_up(std::mem::take(&mut self.ledger));
        self.threads = targets.roll_up_threads(std::mem::take(&mut self.threads));
        self.processes = processes(std::mem::take(&mut self.processes), &firsts);
    }

    /// The index of each entry's representative: its own, if it stays.
    fn firsts(&self) -> Vec<usize> {
        let root = self.processes.first().filter(|_| !self.command.is_empty()).map(|one| one.pid);
        let running: HashSet<u32> = self.still_running.iter().map(|one| one.pid).collect();
        let stays = |one: &Process| Some(one.pid) == root || running.contains(&one.pid);
        let kind = |one: &Process| {
            (one.exec.clone(), one.called.clone(), one.binary.clone(), one.before_exec)
        };
        let mut kinds: HashMap<_, Vec<usize>> = HashMap::new();
        for (at, one) in self.processes.iter().enumerate().filter(|(_, one)| !stays(one)) {
            kinds.entry(kind(one)).or_default().push(at);
        }
        let mut firsts: Vec<usize> = (0..self.processes.len()).collect();
        for alike in kinds.values().filter(|alike| alike.len() > FEW) {
            for at in alike {
                firsts[*at] = alike[0];
            }
        }
        firsts
    }
}

impl Race {
    /// Puts identical images of each traced run together; not where samples stand beside the trace, since these
    /// name every process.
    pub fn roll_up(&mut self) {
        for one in self.contenders.iter_mut().filter(|one| one.sampled.is_none()) {
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
        sum.continued = sum.continued.saturating_add(one.continued);
        sum.threads = sum.threads.saturating_add(one.threads);
        sum.max_rss_bytes = sum.max_rss_bytes.max(one.max_rss_bytes);
        let pairs = [
            (&mut sum.user_ns, one.user_ns),
            (&mut sum.system_ns, one.system_ns),
            (&mut sum.minor_faults, one.minor_faults),
            (&mut sum.major_faults, one.major_faults),
            (&mut sum.voluntary_switches, one.voluntary_switches),
            (&mut sum.involuntary_switches, one.involuntary_switches),
        ];
        add(pairs);
        add_known(&mut sum.storage_read_bytes, one.storage_read_bytes);
    }
    sums.into_values().collect()
}

fn add<const N: usize>(pairs: [(&mut u64, u64); N]) {
    for (sum, one) in pairs {
        *sum = sum.saturating_add(one);
    }
}

fn add_known(sum: &mut Option<u64>, one: Option<u64>) {
    if let Some(one) = one {
        *sum = Some(sum.unwrap_or(0).saturating_add(one));
    }
}

impl Row for Call {
    type Key = String;

    fn key(&self) -> String {
        self.syscall.clone()
    }

    fn image(&mut self) -> (&mut u32, &mut String, &mut u32) {
        (&mut self.pid, &mut self.exec, &mut self.image)
    }

    fn add(&mut self, one: Self) {
        for (kind, n) in one.error_kinds {
            let count = self.error_kinds.entry(kind).or_default();
            *count = count.saturating_add(n);
        }
        add([
            (&mut self.calls, one.calls),
            (&mut self.errors, one.errors),
            (&mut self.bytes, one.bytes),
            (&mut self.wall_ns, one.wall_ns),
            (&mut self.in_flight, one.in_flight),
            (&mut self.entered_before, one.entered_before),
        ]);
        add_known(&mut self.on_cpu_ns, one.on_cpu_ns);
        add_known(&mut self.blocked_ns, one.blocked_ns);
        add_known(&mut self.runnable_ns, one.runnable_ns);
        add_known(&mut self.open_ns, one.open_ns);
        add_known(&mut self.ended_ns, one.ended_ns);
        add_known(&mut self.asked, one.asked);
        add_known(&mut self.ready, one.ready);
        self.max_ns = self.max_ns.max(one.max_ns);
        if self.on_cpu_times.is_some() || one.on_cpu_times.is_some() {
            // Where it is absent, it equals wall time.
            let mut sum = self.on_cpu_times.take().unwrap_or_else(|| self.wall_times.clone());
            sum.merge(one.on_cpu_times.as_ref().unwrap_or(&one.wall_times));
            self.on_cpu_times = Some(sum);
        }
        self.wall_times.merge(&one.wall_times);
        self.blocked_times.merge(&one.blocked_times);
        self.return_log2.merge(&one.return_log2);
        self.wall_log2.merge(&one.wall_log2);
        for (sum, one) in
            [(&mut self.on_cpu_log2, one.on_cpu_log2), (&mut self.blocked_log2, one.blocked_log2)]
        {
            if let Some(one) = one {
                sum.get_or_insert_default().merge(&one);
            }
        }
    }
}

impl Row for FileUse {
    type Key = (FileKind, String);

    fn key(&self) -> (FileKind, String) {
        (self.kind, self.path.clone())
    }

    fn image(&mut self) -> (&mut u32, &mut String, &mut u32) {
        (&mut self.pid, &mut self.exec, &mut self.image)
    }

    /// The kind of the file and its allocated size are those of the first row. The dirty pages at
    /// the end are known for files that were written, and the first row may only have read.
    fn add(&mut self, one: Self) {
        self.dirty_bytes = self.dirty_bytes.or(one.dirty_bytes);
        add([
            (&mut self.read_calls, one.read_calls),
            (&mut self.read_bytes, one.read_bytes),
            (&mut self.write_calls, one.write_calls),
            (&mut self.write_bytes, one.write_bytes),
            (&mut self.map_calls, one.map_calls),
            (&mut self.mapped_bytes, one.mapped_bytes),
        ]);
    }
}

impl Row for PathUse {
    type Key = (String, bool, Option<String>, Option<String>);

    fn key(&self) -> Self::Key {
        (self.syscall.clone(), self.second, self.error.clone(), self.path.clone())
    }

    fn image(&mut self) -> (&mut u32, &mut String, &mut u32) {
        (&mut self.pid, &mut self.exec, &mut self.image)
    }

    fn add(&mut self, one: Self) {
        add([(&mut self.calls, one.calls), (&mut self.wall_ns, one.wall_ns)]);
    }
}

impl Row for Connection {
    /// Of a UNIX socket, the process at the other end may have had another name.
    type Key = (Option<Role>, String, Option<String>, Option<String>, Option<u32>);

    fn key(&self) -> Self::Key {
        let Socket { protocol, local, remote, peer_pid, role, .. } = self.ends.clone();
        (role, protocol, local, remote, peer_pid)
    }

    fn image(&mut self) -> (&mut u32, &mut String, &mut u32) {
        (&mut self.pid, &mut self.exec, &mut self.image)
    }

    fn add(&mut self, one: Self) {
        self.merge(&one);
    }
}

impl Row for RingOperation {
    type Key = String;

    fn key(&self) -> String {
        self.op.clone()
    }

    fn image(&mut self) -> (&mut u32, &mut String, &mut u32) {
        (&mut self.pid, &mut self.exec, &mut self.image)
    }

    fn add(&mut self, one: Self) {
        self.merge(&one);
    }
}

impl Row for LedgerRow {
    type Key = ();

    fn key(&self) {}

    fn image(&mut self) -> (&mut u32, &mut String, &mut u32) {
        (&mut self.pid, &mut self.exec, &mut self.image)
    }

    fn add(&mut self, one: Self) {
        add([
            (&mut self.thread_ns, one.thread_ns),
            (&mut self.user_ns, one.user_ns),
            (&mut self.calls_on_cpu_ns, one.calls_on_cpu_ns),
            (&mut self.blocked_ns, one.blocked_ns),
            (&mut self.stopped_ns, one.stopped_ns),
            (&mut self.worker_ns, one.worker_ns),
            (&mut self.runnable_ns, one.runnable_ns),
        ]);
        add_known(&mut self.fault_ns, one.fault_ns);
        self.residual_ns = self.residual_ns.saturating_add(one.residual_ns);
    }
}

#[cfg(test)]
#[path = "roll_up_tests.rs"]
mod tests;
