//! The rows of a record put together by program image.
//!
//! A record may name an image in one table and not in another, or twice in one; an image here is
//! every (pid, exec) of processes, calls and ledger, once. Forks that executed another program are
//! one image, unless each was requested: their work is the cost of a fork.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use iotomy_record::{Call, LedgerRow, Process, RingOperation, SortKey, Trace, statistic};

use super::call_sum::CallSum;
use crate::numbers::{counted, thousands};
use crate::page::{Page, columns};

/// One program image of one process.
#[derive(Debug, Default)]
pub(crate) struct Image<'r> {
    pub(crate) pid: u32,
    pub(crate) exec: &'r str,
    /// The first entry the record has for it.
    pub(crate) process: Option<&'r Process>,
    /// The number of forks that executed another program and that it represents; 0 for others.
    pub(super) forks: u64,
    pub(crate) threads: u64,
    pub(crate) calls: Vec<&'r Call>,
    pub(crate) ring_operations: Vec<&'r RingOperation>,
    pub(crate) ledger: Option<LedgerRow>,
}

impl<'r> Image<'r> {
    /// `dd (29838)`, or `cc1 × 210` for several images.
    pub(crate) fn label(&self, page: &Page<'_>) -> String {
        match (self.forks, self.process) {
            (0, Some(process)) => process_label(page, process, self.pid),
            (0, None) => label(page, self.exec, self.pid),
            (1, _) => format!("{} before exec ({})", page.name(self.name(), NAME), self.pid),
            (n, _) => times(page, "before exec", n),
        }
    }

    /// The name that users know it by.
    pub(crate) fn name(&self) -> &'r str {
        self.process.map_or(self.exec, |process| process.name())
    }

    /// The file it runs, where that has another name.
    pub(crate) fn binary(&self, page: &Page<'_>) -> Option<String> {
        let process = self.process.filter(|_| self.forks == 0)?;
        let file = if process.binary.is_empty() { &process.exec } else { &process.binary };
        (file != process.name()).then(|| page.name(file, 40))
    }

    /// All of its calls.
    pub(super) fn sum(&self) -> CallSum<'r> {
        CallSum::total("", self.calls.iter().copied())
    }

    /// The value it is sorted by.
    pub(super) fn value(&self, key: SortKey) -> u128 {
        let of_ledger = || {
            let (row, statistic) = (self.ledger.as_ref()?, key.statistic::<LedgerRow>()?);
            (statistic.field.number)(row).map(u128::from)
        };
        match (key, &self.ledger) {
            (SortKey::WALL, _) => self.time(),
            (SortKey::ON_CPU, Some(row)) => on_cpu(row),
            (SortKey::NAME, _) => 0,
            (key, _) => of_ledger().unwrap_or_else(|| self.sum().value(key)),
        }
    }

    /// Time of its threads, or of its calls where that is all that is known.
    pub(crate) fn time(&self) -> u128 {
        let of_calls = || self.calls.iter().map(|call| u128::from(call.wall_ns)).sum();
        self.ledger.as_ref().map_or_else(of_calls, |row| row.thread_ns.into())
    }
}

/// Columns of a name.
const NAME: usize = 24;

/// `dd (29838)`; names may be empty.
pub(crate) fn label(page: &Page<'_>, exec: &str, pid: u32) -> String {
    with_id(&or_nameless(page.name(exec, NAME)), pid)
}

/// `dd (29838)`, or `cc1 × 210` for several images.
pub(crate) fn process_label(page: &Page<'_>, process: &Process, pid: u32) -> String {
    match process.count() {
        1 => label_one(page, process, pid),
        n => {
            let name = shown_name(page, &process.title, process.program());
            with_count(page, &or_nameless(name), n)
        }
    }
}

/// `dd (29838)`, of several images, too.
fn label_one(page: &Page<'_>, process: &Process, pid: u32) -> String {
    titled_label(page, &process.title, process.program(), pid)
}

/// `postgres: walwriter (812)`, or `dd (29838)` of a process without a title.
pub(crate) fn titled_label(page: &Page<'_>, title: &str, program: &str, pid: u32) -> String {
    with_id(&or_nameless(shown_name(page, title, program)), pid)
}

/// The title or else the program, within the columns of a name: of a title the front.
fn shown_name(page: &Page<'_>, title: &str, program: &str) -> String {
    if title.is_empty() { page.name(program, NAME) } else { page.front(title, NAME) }
}

fn or_nameless(name: String) -> String {
    if name.is_empty() { NAMELESS.to_owned() } else { name }
}

fn with_id(name: &str, pid: u32) -> String {
    format!("{name} ({pid})")
}

/// In place of a name that is empty.
pub(crate) const NAMELESS: &str = "(no name)";

/// The arguments of an image as [`command_line`] has them. A process that sets a title writes over its arguments and
/// leaves empty ones behind the title, which are not shown.
pub(super) fn arguments(page: &Page<'_>, process: &Process, room: usize) -> String {
    let is_shown = |word: &&String| process.title.is_empty() || !word.is_empty();
    let words: Vec<String> = process.argv.iter().filter(is_shown).cloned().collect();
    command_line(page, &words, process.argv_words, room)
}

/// A command line within so many columns. An empty word has quotation marks, and of one that was cut
/// there is the number of `all` words.
pub(crate) fn command_line(page: &Page<'_>, words: &[String], all: u32, room: usize) -> String {
    // More words than columns cannot be seen.
    let words = words.iter().take(room).map(|word| match word.is_empty() {
        true => "''".to_owned(),
        false => page.name(word, room),
    });
    let text = words.collect::<Vec<_>>().join(" ");
    let all = if all > 0 { format!(" ({} words)", thousands(all.into())) } else { String::new() };
    // The number is of more use than the last words.
    match room.checked_sub(columns(&all)) {
        Some(left) if left > 0 => page.name(&text, left) + &all,
        _ => page.name(&text, room),
    }
}

/// `cc1 × 210`.
pub(super) fn times(page: &Page<'_>, name: &str, n: impl Into<u128>) -> String {
    with_count(page, &or_nameless(page.name(name, NAME)), n)
}

fn with_count(page: &Page<'_>, name: &str, n: impl Into<u128>) -> String {
    let times = if page.unicode() { "×" } else { "x" };
    format!("{name} {times} {}", thousands(n.into()))
}

/// The names that users know the images of a record by.
pub(crate) struct Names<'r>(HashMap<(u32, &'r str), &'r Process>);

impl<'r> Names<'r> {
    pub(crate) fn from_record(record: &'r Trace) -> Self {
        let mut names = HashMap::new();
        for process in &record.processes {
            let known = names.entry((process.pid, process.exec.as_str())).or_insert(process);
            if known.before_exec {
                *known = process;
            }
        }
        Self(names)
    }

    /// `dd (29838)`, or `cc1 × 210` for several images.
    pub(crate) fn label(&self, page: &Page<'_>, exec: &str, pid: u32) -> String {
        match self.0.get(&(pid, exec)) {
            Some(process) => process_label(page, process, pid),
            None => label(page, exec, pid),
        }
    }

    /// `nginx (812)` of the only one of these processes, or `3 processes`.
    pub(super) fn label_all(&self, page: &Page<'_>, all: &BTreeSet<(u32, &str)>) -> String {
        match all.first() {
            Some((pid, exec)) if all.len() == 1 => self.label(page, exec, *pid),
            _ => counted(all.len() as u128, "process", "processes"),
        }
    }

    /// The name of one of them, where it is not `exec`.
    pub(crate) fn other_name(&self, exec: &str, pid: u32) -> Option<String> {
        let process = self.0.get(&(pid, exec)).filter(|process| process.name() != exec);
        process.map(|process| process.name().to_owned())
    }

    /// The name of one of them, with its id.
    pub(crate) fn label_one(&self, page: &Page<'_>, exec: &str, pid: u32) -> String {
        match self.0.get(&(pid, exec)) {
            Some(process) => label_one(page, process, pid),
            None => label(page, exec, pid),
        }
    }

    /// How many identical ones the entry represents.
    pub(crate) fn count(&self, exec: &str, pid: u32) -> u32 {
        self.0.get(&(pid, exec)).map_or(1, |process| process.count())
    }

    /// Whether the entry represents several images.
    pub(crate) fn is_several(&self, exec: &str, pid: u32) -> bool {
        self.count(exec, pid) > 1
    }
}

/// Every image of the record, by its sort key: most time first unless another order was requested.
pub(crate) fn list(record: &Trace) -> Vec<Image<'_>> {
    // Entries for several images, or for a fork, are separate from others of the process and name.
    let mut apart: HashMap<(u32, &str, u32), u32> = HashMap::new();
    for process in &record.processes {
        if process.count() > 1 || process.before_exec {
            let key = (process.pid, process.exec.as_str(), process.image);
            apart.insert(key, process.image.saturating_add(1));
        }
    }
    let key = |pid: u32, exec: &'_ str, image: u32| {
        apart.get(&(pid, exec, image)).copied().unwrap_or_default()
    };
    let mut by_key: BTreeMap<(u32, &str, u32), Image<'_>> = BTreeMap::new();
    for process in &record.processes {
        let apart = key(process.pid, &process.exec, process.image);
        let image = by_key.entry((process.pid, &process.exec, apart)).or_default();
        image.process.get_or_insert(process);
        image.threads += u64::from(process.threads);
        if process.before_exec && !record.view.each {
            image.forks += u64::from(process.count());
        }
    }
    for call in &record.calls {
        let apart = key(call.pid, &call.exec, call.image);
        by_key.entry((call.pid, &call.exec, apart)).or_default().calls.push(call);
    }
    for row in &record.ring_operations {
        let apart = key(row.pid, &row.exec, row.image);
        by_key.entry((row.pid, &row.exec, apart)).or_default().ring_operations.push(row);
    }
    for row in &record.ledger {
        let apart = key(row.pid, &row.exec, row.image);
        let image = by_key.entry((row.pid, &row.exec, apart)).or_default();
        statistic::add(image.ledger.get_or_insert_default(), row);
    }
    let mut images: Vec<Image<'_>> = Vec::with_capacity(by_key.len());
    let mut forks: Option<usize> = None;
    for ((pid, exec, _), image) in by_key {
        match forks.filter(|_| image.forks > 0) {
            Some(at) => images[at].join(image),
            None => {
                if image.forks > 0 {
                    forks = Some(images.len());
                }
                images.push(Image { pid, exec, ..image });
            }
        }
    }
    match order(record) {
        SortKey::NAME => images.sort_by_key(|image| (image.name(), image.pid)),
        key => {
            images.sort_by_cached_key(|image| std::cmp::Reverse((image.value(key), image.time())))
        }
    }
    images
}

/// The key by which images are sorted. Processes that ran before the watch all took as long as it
/// did: the busiest come first.
pub(super) fn order(record: &Trace) -> SortKey {
    let key = match record.view.sort {
        key if key.statistic::<LedgerRow>().is_some() => key,
        key => key.of_calls(),
    };
    match key {
        SortKey::WALL if record.command.is_empty() && !record.ledger.is_empty() => SortKey::ON_CPU,
        key => key,
    }
}

impl<'r> Image<'r> {
    /// Adds another of the same kind.
    fn join(&mut self, other: Image<'r>) {
        self.forks += other.forks;
        self.threads += other.threads;
        self.calls.extend(other.calls);
        self.ring_operations.extend(other.ring_operations);
        if let Some(row) = &other.ledger {
            statistic::add(self.ledger.get_or_insert_default(), row);
        }
    }
}

/// The time of all threads of some images; nothing when none has a ledger.
pub(crate) fn ledger<'a, 'r: 'a>(
    images: impl IntoIterator<Item = &'a Image<'r>>,
) -> Option<LedgerRow> {
    let mut rows = images.into_iter().filter_map(|image| image.ledger.as_ref()).peekable();
    rows.peek().is_some().then(|| statistic::total(rows))
}

/// The whole less its parts; computed from the parts, so that the printed rows add up for any
/// record.
pub(crate) fn residual(row: &LedgerRow) -> i128 {
    let parts = [row.user_ns, row.calls_on_cpu_ns, row.blocked_ns, row.runnable_ns];
    i128::from(row.thread_ns) - parts.map(i128::from).iter().sum::<i128>()
}

/// On a CPU, in calls and outside.
pub(crate) fn on_cpu(row: &LedgerRow) -> u128 {
    u128::from(row.user_ns) + u128::from(row.calls_on_cpu_ns)
}

/// The CPUs that threads used in so much time, by their time on a CPU and in all. A thread uses no more than
/// one: above that, clocks or the moments at which the kernel was asked differ. Where threads came and went
/// meanwhile, their time tells of more of them than there are.
pub(crate) fn cpus_used(on_cpu: f64, thread: f64, elapsed: f64, threads: f64) -> f64 {
    /// How much longer than the elapsed time that of one thread may seem to be.
    const JITTER: f64 = 1.1;
    let most = if thread > threads * elapsed * JITTER { f64::INFINITY } else { threads };
    (on_cpu / elapsed).min(most)
}
