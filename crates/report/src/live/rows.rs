//! The rows of the tables: the changes between two snapshots, a second.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};

use iotomy_record::statistic::{self, Joins, Statistics, Unit};
use iotomy_record::{
    Call, ConnectionCounts, Exchange, FileUse, ImageCounts, LedgerRow, ProcessCounts,
    RingOperation, Snapshot, SortKey, Times,
};

use super::screen::{Opened, Screen};
use super::subject::Subject;
use super::tails::Tails;
use crate::numbers::{bytes, figure, thousands};
use crate::page::Page;
use crate::peers::PeerNames;
use crate::trace::CallSum;
use crate::trace::images::{cpus_used, label, on_cpu, titled_label};

/// A row: its cells, and their sort keys.
pub(super) struct Row {
    pub(super) subject: Subject,
    pub(super) cells: Vec<String>,
    pub(super) keys: Vec<f64>,
}

impl Row {
    pub(super) fn new(subject: Subject, name: String) -> Self {
        Self { subject, cells: vec![name], keys: vec![0.0] }
    }

    /// A cell that is empty if there is nothing to show.
    pub(super) fn cell(&mut self, key: f64, text: impl FnOnce(f64) -> String) {
        self.cells.push(if key > 0.0 { text(key) } else { String::new() });
        self.keys.push(key);
    }

    /// A cell for each of [`sums`](super::tabs::sums).
    pub(super) fn sums<R: Statistics>(&mut self, now: &R) {
        for (statistic, _) in R::shown().filter(|(_, column)| column.in_all.is_some()) {
            let text = if statistic.shape.unit == Unit::Bytes { size } else { count };
            self.cell((statistic.field.number)(now).unwrap_or(0) as f64, text);
        }
    }

    pub(super) fn text(&mut self, text: String) {
        self.cells.push(text);
        self.keys.push(0.0);
    }
}

/// A file's path, or the ends of a socket, where they are known.
pub(super) fn shown(file: &FileUse) -> Cow<'_, str> {
    match &file.socket {
        Some(socket) => socket.text().into(),
        None => file.path.as_str().into(),
    }
}

/// A rate: whole from 100 on.
pub(super) fn rate(x: f64) -> String {
    if x >= 99.5 { thousands(x.round() as u128) } else { figure(x) }
}

pub(super) fn size(x: f64) -> String {
    bytes(x.round() as u128)
}

fn per_cent(x: f64) -> String {
    format!("{x:.1}")
}

pub(super) fn count(x: f64) -> String {
    thousands(x as u128)
}

/// The difference between the two snapshots of a screen.
pub(super) struct SnapshotDelta<'a> {
    pub(super) before: &'a Snapshot,
    pub(super) now: &'a Snapshot,
    /// The calls, the connections, the ring operations, the requests and the ledger of all, or of the process that is open.
    pub(super) calls_before: &'a [Call],
    pub(super) calls_now: &'a [Call],
    pub(super) connections_before: &'a [ConnectionCounts],
    pub(super) connections_now: &'a [ConnectionCounts],
    pub(super) rings_before: &'a [RingOperation],
    pub(super) rings_now: &'a [RingOperation],
    pub(super) requests_before: &'a [Exchange],
    pub(super) requests_now: &'a [Exchange],
    pub(super) ledger_before: Option<&'a LedgerRow>,
    pub(super) ledger_now: Option<&'a LedgerRow>,
    pub(super) threads: u64,
    /// Whether that process has ended.
    pub(super) has_ended: bool,
    opened: Option<&'a Opened>,
    screen: &'a Screen,
    pub(super) peers: &'a PeerNames,
    seconds: f64,
}

impl<'a> SnapshotDelta<'a> {
    pub(super) fn from_screen(screen: &'a Screen) -> Self {
        let (before, now) = (&screen.before, &screen.now);
        let ns = now.elapsed_ns.saturating_sub(before.elapsed_ns);
        let opened = screen.opened();
        let mut between = Self {
            before,
            now,
            calls_before: &before.calls,
            calls_now: &now.calls,
            connections_before: &before.connections,
            connections_now: &now.connections,
            rings_before: &before.ring_operations,
            rings_now: &now.ring_operations,
            requests_before: &before.requests,
            requests_now: &now.requests,
            ledger_before: before.ledger.as_ref(),
            ledger_now: now.ledger.as_ref(),
            threads: now.threads,
            has_ended: false,
            opened,
            screen,
            peers: &screen.peers,
            // Before the first snapshot there is nothing to divide either.
            seconds: if ns == 0 { 1.0 } else { ns as f64 / 1e9 },
        };
        if let Some(Opened::Process { image, .. }) = opened {
            // One that has ended keeps its sums; before it began it had none.
            let found = screen.image(*image);
            let listed = |of: &'a Snapshot| of.images.iter().find(|one| one.id == *image);
            let earlier = if listed(now).is_some() { listed(before) } else { found };
            between.calls_before = earlier.map_or(&[], |one| &one.calls);
            between.calls_now = found.map_or(&[], |one| &one.calls);
            between.connections_before = earlier.map_or(&[], |one| &one.connections);
            between.connections_now = found.map_or(&[], |one| &one.connections);
            between.rings_before = earlier.map_or(&[], |one| &one.ring_operations);
            between.rings_now = found.map_or(&[], |one| &one.ring_operations);
            between.requests_before = earlier.map_or(&[], |one| &one.requests);
            between.requests_now = found.map_or(&[], |one| &one.requests);
            between.ledger_before = earlier.and_then(|one| one.ledger.as_ref());
            between.ledger_now = found.and_then(|one| one.ledger.as_ref());
            between.threads = listed(now).map_or(0, |one| one.threads.into());
            between.has_ended = between.threads == 0;
        }
        between
    }

    /// The images of the snapshot, or the one that is open.
    pub(super) fn images(&self) -> Vec<&'a ImageCounts> {
        match self.opened {
            Some(Opened::Process { image, .. }) => self.screen.image(*image).into_iter().collect(),
            _ => self.now.images.iter().collect(),
        }
    }

    /// As a rate.
    pub(super) fn a_second(&self, n: u128) -> f64 {
        n as f64 / self.seconds
    }

    /// A cell for each of [`rates`](super::tabs::rates).
    pub(super) fn rates<R: Statistics>(&self, row: &mut Row, now: &R, before: &R) {
        for (statistic, _) in R::shown().filter(|(_, column)| column.live.is_some()) {
            let of = |row: &R| (statistic.field.number)(row).unwrap_or(0);
            match (statistic.shape.joins, statistic.shape.unit) {
                (Joins::Sum, Unit::Count) => row.cell(self.more(of(now), of(before)), rate),
                (Joins::Sum, Unit::Bytes) => row.cell(self.more(of(now), of(before)), size),
                (Joins::Sum, Unit::Time) => row.cell(self.more(of(now), of(before)) / 1e6, rate),
                _ => row.cell(of(now) as f64, count),
            }
        }
    }

    fn more(&self, now: u64, before: u64) -> f64 {
        self.a_second(now.saturating_sub(before).into())
    }

    /// The counts of each call, with the total.
    pub(super) fn calls(&self, key: SortKey) -> Vec<(CallSum<'a>, CallSum<'a>)> {
        let before = CallSum::by_name(self.calls_before, key);
        let before: HashMap<&str, &CallSum<'_>> =
            before.iter().map(|sum| (sum.name, sum)).collect();
        let now = CallSum::by_name(self.calls_now, key).into_iter();
        now.map(|sum| (sum.since(before.get(sum.name).copied()), sum)).collect()
    }

    /// How long the calls took that returned in between.
    fn times(&self) -> HashMap<&str, Times> {
        let by_name = |calls: &'a [Call]| {
            let mut times: HashMap<&str, Times> = HashMap::new();
            for call in calls {
                times.entry(&call.syscall).or_default().merge(&call.wall_times);
            }
            times
        };
        let before = by_name(self.calls_before);
        let mut now = by_name(self.calls_now);
        for (name, times) in &mut now {
            if let Some(before) = before.get(name) {
                *times = times.since(before);
            }
        }
        now
    }

    pub(super) fn call_rows(&self, page: &Page<'_>) -> Vec<Row> {
        let mut times = self.times();
        let row = |(new, all): (CallSum<'_>, CallSum<'_>)| {
            let mut row = Row::new(Subject::Call(new.name.into()), page.name(new.name, 28));
            self.rates(&mut row, &new.numbers, &Call::default());
            row.cell(new.numbers.in_flight as f64, count);
            row.cell(all.mean_us().unwrap_or(0.0), figure);
            let times = times.remove(all.name).unwrap_or_default();
            for share in [0.5, 0.9, 0.99, 0.999] {
                row.cell(times.quantile(share) as f64 / 1e3, figure);
            }
            row.cell(all.max as f64 / 1e3, figure);
            row.sums(&all.numbers);
            row
        };
        self.calls(SortKey::WALL).into_iter().map(row).collect()
    }

    /// The files of all, or those of the process or the peer that is open.
    pub(super) fn files(&self, of: &'a Snapshot) -> Vec<&'a FileUse> {
        match self.opened {
            Some(Opened::Process { pid, exec, .. }) => {
                of.uses.iter().filter(|one| (one.pid, &one.exec) == (*pid, exec)).collect()
            }
            Some(Opened::Peer { name, .. }) => {
                of.files.iter().filter(|one| self.leads_to(name, one)).collect()
            }
            _ => of.files.iter().collect(),
        }
    }

    pub(super) fn file_rows(&self, page: &Page<'_>) -> Vec<Row> {
        let none = FileUse::default();
        let before = self.files(self.before).into_iter();
        let before: BTreeMap<_, _> = before.map(|file| ((&file.path, file.kind), file)).collect();
        let row = |file: &FileUse| {
            let old = before.get(&(&file.path, file.kind)).copied().unwrap_or(&none);
            let subject = Subject::File(file.kind, file.path.clone());
            let mut row = Row::new(subject, page.name(&shown(file), page.width()));
            row.text(file.kind.name().to_owned());
            self.rates(&mut row, file, old);
            row.sums(file);
            row
        };
        self.files(self.now).into_iter().map(row).collect()
    }

    /// The processes that use the file, or the connections of the peer, that is open; by process.
    fn users(&self, of: &'a Snapshot) -> BTreeMap<(u32, &'a str), FileUse> {
        let is_its = |one: &&FileUse| match self.opened {
            Some(Opened::File { kind, path }) => (one.kind, &one.path) == (*kind, path),
            Some(Opened::Peer { name, .. }) => self.leads_to(name, one),
            _ => false,
        };
        let mut users: BTreeMap<(u32, &str), FileUse> = BTreeMap::new();
        for one in of.uses.iter().filter(is_its) {
            statistic::add(users.entry((one.pid, &one.exec)).or_default(), one);
        }
        users
    }

    pub(super) fn user_rows(&self, page: &Page<'_>) -> Vec<Row> {
        let none = FileUse::default();
        let before = self.users(self.before);
        let row = |((pid, exec), one): ((u32, &str), FileUse)| {
            let old = before.get(&(pid, exec)).unwrap_or(&none);
            let subject = Subject::Process(pid, exec.to_owned());
            let mut row = Row::new(subject, label(page, exec, pid));
            self.rates(&mut row, &one, old);
            row.sums(&one);
            row
        };
        self.users(self.now).into_iter().map(row).collect()
    }

    pub(super) fn process_rows(&self, page: &Page<'_>) -> Vec<Row> {
        let none = ProcessCounts::default();
        let nothing = LedgerRow::default();
        let before: HashMap<_, _> =
            self.before.processes.iter().map(|one| ((one.pid, &one.exec), one)).collect();
        let tails = Tails::from_screen(self.screen);
        let row = |one: &ProcessCounts| {
            let old = before.get(&(one.pid, &one.exec)).copied().unwrap_or(&none);
            let subject = Subject::Process(one.pid, one.exec.clone());
            let mut row = Row::new(subject, titled_label(page, &one.title, &one.exec, one.pid));
            let now = one.ledger.as_ref().unwrap_or(&nothing);
            let then = old.ledger.as_ref().unwrap_or(&nothing);
            row.cell(one.threads.into(), count);
            row.cell(self.more(one.calls, old.calls), rate);
            row.cell(self.more(one.errors, old.errors), rate);
            row.cell(self.more(one.bytes, old.bytes), size);
            let ledger = statistic::since(now, &mut then.clone());
            let ms = |ns: u128| self.a_second(ns) / 1e6;
            let threads = f64::from(one.threads.max(old.threads).max(1));
            let cpus = cpus_used(ms(on_cpu(&ledger)), ms(ledger.thread_ns.into()), 1e3, threads);
            row.cell(cpus * 100.0, per_cent);
            self.rates(&mut row, now, then);
            row.cell(tails.p99_us(one), figure);
            row.text(one.inside.as_ref().map_or_else(String::new, |call| page.name(call, 16)));
            row
        };
        self.now.processes.iter().map(row).collect()
    }
}
