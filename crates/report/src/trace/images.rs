//! The rows of a record put together by program image, and summed by call.
//!
//! A record may name an image in one table and not in another, or twice in one; an image here is
//! every (pid, exec) that any of processes, calls and ledger names, once.

use std::collections::BTreeMap;

use iotomy_record::{Call, LedgerRow, Process, SortKey, Trace};

use crate::page::Page;

/// One program image of one process.
#[derive(Debug, Default)]
pub(super) struct Image<'r> {
    pub(super) pid: u32,
    pub(super) exec: &'r str,
    /// The first entry the record has for it.
    pub(super) process: Option<&'r Process>,
    pub(super) calls: Vec<&'r Call>,
    pub(super) ledger: Option<Ledger>,
}

impl Image<'_> {
    /// `dd (29838)`.
    pub(super) fn label(&self, page: &Page<'_>) -> String {
        label(page, self.exec, self.pid)
    }

    /// Time of its threads, or of its calls where that is all that is known.
    pub(super) fn time(&self) -> u128 {
        self.ledger.map_or_else(
            || self.calls.iter().map(|c| u128::from(c.wall_ns)).sum(),
            |ledger| ledger.thread.max(0).unsigned_abs(),
        )
    }
}

/// `dd (29838)`.
pub(super) fn label(page: &Page<'_>, exec: &str, pid: u32) -> String {
    format!("{} ({pid})", page.name(exec, 24))
}

/// Every image of the record, most time first.
pub(super) fn of(record: &Trace) -> Vec<Image<'_>> {
    let mut by_key: BTreeMap<(u32, &str), Image<'_>> = BTreeMap::new();
    for process in &record.processes {
        let image = by_key.entry((process.pid, &process.exec)).or_default();
        image.process.get_or_insert(process);
    }
    for call in &record.calls {
        by_key.entry((call.pid, &call.exec)).or_default().calls.push(call);
    }
    for row in &record.ledger {
        let image = by_key.entry((row.pid, &row.exec)).or_default();
        image.ledger.get_or_insert_default().add(row);
    }
    let mut images: Vec<_> =
        by_key.into_iter().map(|((pid, exec), image)| Image { pid, exec, ..image }).collect();
    images.sort_by_key(|image| std::cmp::Reverse(image.time()));
    images
}

/// A ledger row, or the sum of several, wide enough for any.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct Ledger {
    pub(super) thread: i128,
    pub(super) user: i128,
    pub(super) calls: i128,
    pub(super) blocked: i128,
    pub(super) runnable: i128,
}

impl Ledger {
    fn add(&mut self, row: &LedgerRow) {
        self.thread += i128::from(row.thread_ns);
        self.user += i128::from(row.user_ns);
        self.calls += i128::from(row.calls_on_cpu_ns);
        self.blocked += i128::from(row.blocked_ns);
        self.runnable += i128::from(row.runnable_ns);
    }

    /// The sum over images; nothing when none has one.
    pub(super) fn sum<'a, 'r: 'a>(images: impl IntoIterator<Item = &'a Image<'r>>) -> Option<Self> {
        images.into_iter().filter_map(|image| image.ledger).reduce(|a, b| Self {
            thread: a.thread + b.thread,
            user: a.user + b.user,
            calls: a.calls + b.calls,
            blocked: a.blocked + b.blocked,
            runnable: a.runnable + b.runnable,
        })
    }

    /// What the parts leave of the whole; taken from the parts, so that what is printed adds up
    /// whatever the record says.
    pub(super) fn residual(&self) -> i128 {
        self.thread - self.user - self.calls - self.blocked - self.runnable
    }
}

/// The same call summed, of one image or of several.
#[derive(Debug, Default, Clone)]
pub(crate) struct CallSum<'r> {
    pub(crate) name: &'r str,
    pub(crate) calls: u128,
    pub(crate) errors: u128,
    pub(crate) error_kinds: BTreeMap<&'r str, u128>,
    pub(crate) bytes: u128,
    pub(crate) wall: u128,
    /// The three parts of `wall`; nothing when the observer could not tell.
    pub(crate) on_cpu: Option<u128>,
    pub(crate) blocked: Option<u128>,
    pub(crate) runnable: Option<u128>,
    pub(crate) max: u64,
    pub(crate) in_flight: u128,
}

impl<'r> CallSum<'r> {
    fn add(&mut self, call: &'r Call) {
        self.calls += u128::from(call.calls);
        self.errors += u128::from(call.errors);
        for (kind, n) in &call.error_kinds {
            *self.error_kinds.entry(kind).or_default() += u128::from(*n);
        }
        self.bytes += u128::from(call.bytes);
        self.wall += u128::from(call.wall_ns);
        add_known(&mut self.on_cpu, call.on_cpu_ns);
        add_known(&mut self.blocked, call.blocked_ns);
        add_known(&mut self.runnable, call.runnable_ns);
        self.max = self.max.max(call.max_ns);
        self.in_flight += u128::from(call.in_flight);
    }

    /// The sum over every call of `calls`, under one name.
    pub(crate) fn total(name: &'r str, calls: impl IntoIterator<Item = &'r Call>) -> Self {
        let mut total = Self { name, ..Self::default() };
        calls.into_iter().for_each(|call| total.add(call));
        total
    }

    /// Sums by name, sorted by `key`, the largest first; equals by name.
    pub(crate) fn by_name(calls: impl IntoIterator<Item = &'r Call>, key: SortKey) -> Vec<Self> {
        let mut by_name: BTreeMap<&str, Self> = BTreeMap::new();
        for call in calls {
            by_name.entry(&call.syscall).or_default().add(call);
        }
        let mut sums: Vec<_> =
            by_name.into_iter().map(|(name, sum)| Self { name, ..sum }).collect();
        // The sort is stable and the rows come by name.
        sums.sort_by_key(|sum| std::cmp::Reverse(sum.value(key)));
        sums
    }

    fn value(&self, key: SortKey) -> u128 {
        match key {
            SortKey::Wall => self.wall,
            SortKey::OnCpu => self.on_cpu.unwrap_or(0),
            SortKey::Blocked => self.blocked.unwrap_or(0),
            SortKey::Calls => self.calls,
            SortKey::Errors => self.errors,
            SortKey::Bytes => self.bytes,
            SortKey::Name => 0,
        }
    }
}

fn add_known(sum: &mut Option<u128>, part: Option<u64>) {
    if let Some(part) = part {
        *sum = Some(sum.unwrap_or(0) + u128::from(part));
    }
}
