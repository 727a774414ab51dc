//! Identical program images put together: a build has thousands, and what each did is what they all did.
//!
//! Two images are identical that were executed by the same name, are called the same, and run the same
//! file; their arguments may differ. The one invariant: no sum over a table changes, neither of times nor
//! of counts, images, processes or threads.

use std::collections::{BTreeMap, HashMap, HashSet};

use crate::{Call, FileKind, FileUse, LedgerRow, Process, Trace};

/// So many identical images are still told apart.
const FEW: usize = 4;

/// An image as every table names it.
type Key = (u32, String, u32);

impl Trace {
    /// Puts identical images together, where there are more than four: in each table the entries of the
    /// first stand for all. Those of the command's own process, and those of processes that outlived the
    /// watch, stay by themselves: they are not what a run makes many of.
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
        let target = |pid: u32, exec: &str, image: u32| {
            let own = (pid, exec.to_owned(), image);
            target.get(&own).cloned().unwrap_or(own)
        };
        let place = |key: &Key| order.get(key).copied().unwrap_or(usize::MAX);
        self.calls = calls(std::mem::take(&mut self.calls), &target, &place);
        self.files = files(std::mem::take(&mut self.files), &target, &place);
        self.ledger = ledger(std::mem::take(&mut self.ledger), &target, &place);
        self.processes = processes(std::mem::take(&mut self.processes), &firsts);
    }

    /// Of each entry, the place of the one that is to stand for it: its own, if it stays.
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

fn calls(
    all: Vec<Call>,
    target: &dyn Fn(u32, &str, u32) -> Key,
    place: &dyn Fn(&Key) -> usize,
) -> Vec<Call> {
    let mut at: HashMap<(Key, String), usize> = HashMap::new();
    let mut sums: Vec<(usize, Call)> = Vec::new();
    for one in all {
        let key = target(one.pid, &one.exec, one.image);
        let row = *at.entry((key.clone(), one.syscall.clone())).or_insert(sums.len());
        let Some((_, sum)) = sums.get_mut(row) else {
            let place = place(&key);
            let (pid, exec, image) = key;
            sums.push((place, Call { pid, exec, image, ..one }));
            continue;
        };
        for (kind, n) in one.error_kinds {
            let count = sum.error_kinds.entry(kind).or_default();
            *count = count.saturating_add(n);
        }
        add([
            (&mut sum.calls, one.calls),
            (&mut sum.errors, one.errors),
            (&mut sum.bytes, one.bytes),
            (&mut sum.wall_ns, one.wall_ns),
            (&mut sum.in_flight, one.in_flight),
            (&mut sum.entered_before, one.entered_before),
        ]);
        add_known(&mut sum.on_cpu_ns, one.on_cpu_ns);
        add_known(&mut sum.blocked_ns, one.blocked_ns);
        add_known(&mut sum.runnable_ns, one.runnable_ns);
        add_known(&mut sum.asked, one.asked);
        add_known(&mut sum.ready, one.ready);
        sum.max_ns = sum.max_ns.max(one.max_ns);
        sum.return_log2.merge(&one.return_log2);
        sum.wall_log2.merge(&one.wall_log2);
        for (sum, one) in
            [(&mut sum.on_cpu_log2, one.on_cpu_log2), (&mut sum.blocked_log2, one.blocked_log2)]
        {
            if let Some(one) = one {
                sum.get_or_insert_default().merge(&one);
            }
        }
    }
    // As the observers have them: by image, and of an image the longest first.
    sums.sort_by(|(a, x), (b, y)| {
        a.cmp(b).then(y.wall_ns.cmp(&x.wall_ns)).then_with(|| x.syscall.cmp(&y.syscall))
    });
    sums.into_iter().map(|(_, sum)| sum).collect()
}

fn files(
    all: Vec<FileUse>,
    target: &dyn Fn(u32, &str, u32) -> Key,
    place: &dyn Fn(&Key) -> usize,
) -> Vec<FileUse> {
    let mut at: BTreeMap<(Key, FileKind, String), usize> = BTreeMap::new();
    let mut sums: Vec<(usize, FileUse)> = Vec::new();
    for one in all {
        let key = target(one.pid, &one.exec, one.image);
        let row = *at.entry((key.clone(), one.kind, one.path.clone())).or_insert(sums.len());
        let Some((_, sum)) = sums.get_mut(row) else {
            let place = place(&key);
            let (pid, exec, image) = key;
            sums.push((place, FileUse { pid, exec, image, ..one }));
            continue;
        };
        // What the file was when it was first met, and in the end, is the first's to say.
        add([
            (&mut sum.read_calls, one.read_calls),
            (&mut sum.read_bytes, one.read_bytes),
            (&mut sum.write_calls, one.write_calls),
            (&mut sum.write_bytes, one.write_bytes),
            (&mut sum.map_calls, one.map_calls),
            (&mut sum.mapped_bytes, one.mapped_bytes),
        ]);
    }
    sums.sort_by_key(|(place, _)| *place);
    sums.into_iter().map(|(_, sum)| sum).collect()
}

fn ledger(
    all: Vec<LedgerRow>,
    target: &dyn Fn(u32, &str, u32) -> Key,
    place: &dyn Fn(&Key) -> usize,
) -> Vec<LedgerRow> {
    let mut at: HashMap<Key, usize> = HashMap::new();
    let mut sums: Vec<(usize, LedgerRow)> = Vec::new();
    for one in all {
        let key = target(one.pid, &one.exec, one.image);
        let row = *at.entry(key.clone()).or_insert(sums.len());
        let Some((_, sum)) = sums.get_mut(row) else {
            let place = place(&key);
            let (pid, exec, image) = key;
            sums.push((place, LedgerRow { pid, exec, image, ..one }));
            continue;
        };
        add([
            (&mut sum.thread_ns, one.thread_ns),
            (&mut sum.user_ns, one.user_ns),
            (&mut sum.calls_on_cpu_ns, one.calls_on_cpu_ns),
            (&mut sum.blocked_ns, one.blocked_ns),
            (&mut sum.stopped_ns, one.stopped_ns),
            (&mut sum.runnable_ns, one.runnable_ns),
        ]);
        add_known(&mut sum.fault_ns, one.fault_ns);
        sum.residual_ns = sum.residual_ns.saturating_add(one.residual_ns);
    }
    sums.sort_by_key(|(place, _)| *place);
    sums.into_iter().map(|(_, sum)| sum).collect()
}

#[cfg(test)]
#[path = "roll_up_tests.rs"]
mod tests;
