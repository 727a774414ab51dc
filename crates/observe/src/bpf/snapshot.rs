//! A snapshot of the running counts: the collected rows, those in the kernel's tables, and the
//! unfinished ones of threads, summed up.
//!
//! The overflows of counters are read before these, and the tables before the threads. A thread that ends in between, or a
//! counter that overflows, is missed once, and the next look has it all: the other way round it would be counted twice.

use std::collections::{BTreeMap, HashMap, HashSet};

use iotomy_host::title;
use iotomy_record::{
    Call, FileKind, FileUse, ImageCounts, LedgerRow, ProcessCounts, Snapshot, Socket,
};
use iotomy_sys::syscalls::{self, Abi};

use super::books::Books;
use super::call_numbers::{CallNumbers, FrequentStats, RareStats, WaitStats};
use super::exchanges::RequestBook;
use super::file_numbers::FileStats;
use super::firing;
use super::layout::{
    CALL_I386, CALL_NUMBER, CARRY_STEP, CallKey, ErrorCount, Fields, FileKey, FileName, Image,
    Program, Wire,
};
use super::live::{LiveCall, LiveSide, LiveThread};
use super::names;
use super::object::{RowAction, Session};
use super::rings::RingBook;
use crate::naming::{call_name, error_name, plain_name};
use crate::request::Request;
use crate::sockets::SocketName;

mod connections;
mod requests;
mod rings;
mod sums;

use self::connections::ConnectionSums;
use self::sums::{CallSum, FileSum};

/// The names that snapshots share, as names do not change.
#[derive(Default)]
pub(super) struct NameCache {
    calls: HashMap<u16, CallName>,
    files: HashMap<FileKey, NamedFile>,
    /// The ends of connections.
    sockets: HashMap<SocketName, Socket>,
    /// The first arguments of living processes by image, as they were last looked at.
    first_arguments: HashMap<u32, Vec<u8>>,
    /// How many snapshots there were.
    snapshots: u32,
    /// How many snapshots had calls that are kept whole.
    looks: u64,
    /// Images that had ended in the snapshot before, and had no rows in the kernel's tables.
    complete: HashSet<u32>,
}

#[derive(Clone)]
struct NamedFile {
    kind: FileKind,
    path: String,
    socket: Option<Socket>,
}

struct CallName {
    name: String,
    returns_bytes: bool,
    wanted: bool,
}

/// The title of a living process is looked at in one of so many snapshots.
const TITLES: u32 = 4;

/// After so many snapshots it is seen to it that the places of paths do not fill their table.
const LOOKS: u64 = 64;

impl NameCache {
    /// As [`NameCache::take`], with the slowest calls since the look before, of a watch that began at this time.
    ///
    /// # Errors
    /// The kernel's error.
    pub(super) fn look(
        &mut self,
        (session, books): (&Session, &mut Books),
        request: &Request,
        began_ns: u64,
        elapsed_ns: impl FnOnce() -> u64,
    ) -> Result<Snapshot, String> {
        let slowest = firing::slowest(session, books, request, began_ns)?;
        let snapshot = self.take(session, books, request, elapsed_ns)?;
        if !slowest.is_empty() {
            self.looks += 1;
            // The rows of --paths have their places there, too.
            if self.looks.is_multiple_of(LOOKS) && !request.paths {
                session.forget_places(request.rows / 2);
            }
        }
        Ok(Snapshot { slowest, ..snapshot })
    }

    /// The counts as they stand, at the moment that `elapsed_ns` tells once they are read: to read them takes
    /// long on a busy machine, and what is counted meanwhile is not to be later than its snapshot.
    ///
    /// # Errors
    /// The kernel's error.
    pub(super) fn take(
        &mut self,
        session: &Session,
        books: &mut Books,
        request: &Request,
        elapsed_ns: impl FnOnce() -> u64,
    ) -> Result<Snapshot, String> {
        books.take_programs(session);
        let changed = std::mem::take(&mut books.changed);
        self.complete.retain(|image| !changed.contains(image));
        let has_ended: HashSet<u32> = books.images.keys().copied().collect();
        let mut sight = SnapshotSums::new(session, books);
        self.add_rows(&mut sight, session, request);
        if request.peers {
            sight.add_connections(session)?;
        }
        if request.wants_rings() {
            sight.add_rings(session, request.files);
        }
        if request.requests {
            sight.add_requests(session);
        }
        if request.files {
            sight.add_files(session);
        }
        self.add_threads(&mut sight, session, request)?;
        let elapsed_ns = elapsed_ns();
        let in_kernel: HashSet<u32> = sight.by_image.keys().copied().collect();
        sight.choose_images(changed);
        self.look_at_titles(&mut sight);
        self.add_calls(&mut sight, books, request);
        let counters = session.counters();
        let files = self.files(&sight, session);
        let connections = self.connections(&sight);
        let requests = if request.requests { self.requests(&sight) } else { Vec::new() };
        let forgotten = if request.forgets { self.no_more_needed(&sight) } else { Vec::new() };
        let snapshot = Snapshot {
            elapsed_ns,
            uses: self.uses(&sight),
            files,
            connections,
            ring_operations: sight.ring_operations(request),
            requests,
            processes: self.processes(&sight),
            images: self.images(&mut sight, request),
            ledger: Some(sight.ledger()),
            threads: sight.images.values().map(|image| u64::from(image.doing.threads)).sum(),
            lost: counters.lost_events + counters.lost_files,
            lost_connections: counters.lost_connections + books.connections.lost,
            lost_requests: counters.lost_requests,
            lost_exchanges: match request.requests {
                true => books.requests.lost_so_far(session),
                false => 0,
            },
            calls: self.calls(sight.calls),
            slowest: Vec::new(),
            sampled: None,
            forgotten,
        };
        books.forget(&snapshot.forgotten);
        if request.forgets {
            self.complete = has_ended.difference(&in_kernel).copied().collect();
            self.complete.retain(|image| books.images.contains_key(image));
        }
        Ok(snapshot)
    }

    /// Looks at the titles of processes that are new, and again at those of some others.
    fn look_at_titles(&mut self, sight: &mut SnapshotSums<'_>) {
        self.snapshots = self.snapshots.wrapping_add(1);
        self.first_arguments.retain(|image, _| sight.is_alive(*image));
        let due: Vec<(u32, u32)> = sight
            .images
            .iter()
            .filter(|(id, image)| {
                let is_due = id.wrapping_add(self.snapshots).is_multiple_of(TITLES);
                image.doing.threads > 0 && (is_due || !self.first_arguments.contains_key(id))
            })
            .map(|(id, image)| (*id, image.doing.pid))
            .collect();
        let mut first_arguments = title::first_arguments(due.iter().map(|(_, pid)| *pid).collect());
        for (id, pid) in due {
            if let Some(first) = first_arguments.remove(&pid) {
                self.first_arguments.insert(id, first);
            }
        }
        for (id, first) in &self.first_arguments {
            let Some(program) = sight.program(*id) else { continue };
            let title = program.known().title_by(first);
            if !title.is_empty() {
                sight.titles.insert(*id, title);
            }
        }
    }

    /// The images that this snapshot has for the last time: those whose rows the one before had to
    /// the end. The name of one that was forked may be that of the image it was forked from.
    fn no_more_needed(&self, sight: &SnapshotSums<'_>) -> Vec<u32> {
        let origins: HashSet<u32> = sight.images.values().map(|image| image.origin).collect();
        let is_needed = |image: &u32| origins.contains(image) || sight.is_alive(*image);
        self.complete.iter().filter(|image| !is_needed(image)).copied().collect()
    }

    /// Adds the counts of threads that ended.
    fn add_calls(&mut self, sight: &mut SnapshotSums<'_>, books: &Books, request: &Request) {
        for (image, calls) in &books.calls {
            for (call, book) in calls {
                let row = LiveCall {
                    image: *image,
                    call: *call,
                    calls: book.wall.total(),
                    errors: book.errors.values().sum(),
                    numbers: book.numbers.clone(),
                    times: book.wall.buckets().to_vec(),
                    ..LiveCall::default()
                };
                self.add_call(sight, &row, request);
                sight.add_errors(&row, &book.errors);
            }
        }
        for (image, files) in &books.files {
            for (file, numbers) in files {
                sight.file(*image, *file, |sum| sum.numbers.add(numbers));
            }
        }
    }

    /// The kernel's tables.
    fn add_rows(&mut self, sight: &mut SnapshotSums<'_>, session: &Session, request: &Request) {
        // First of all: a counter that overflows after this is missed once. The other way round, what it had counted and
        // its overflow would both count, for good if its image ends then.
        // Counters that overflowed are few; among them are those of the distributions of wall time.
        session.visit("carries", |key: CallKey, row: ErrorCount| {
            let calls = if matches!(key.error / CARRY_STEP, 1..=3) { row.count } else { 0 };
            let times = vec![(key.error % CARRY_STEP, calls)];
            let (image, call) = (row.image, key.call);
            let row = LiveCall { image, call, calls, times, ..LiveCall::default() };
            self.add_call(sight, &row, request);
            RowAction::Kept
        });
        session.visit("calls", |key: CallKey, row: RareStats| {
            self.add_call(sight, &LiveCall::of_row(key, &row), request);
            RowAction::Kept
        });
        // Those that went into their table when their thread left its image.
        session.visit("frequent", |key: CallKey, row: FrequentStats| {
            self.add_call(sight, &LiveCall::of_row(key, &row), request);
            RowAction::Kept
        });
        session.visit("waits", |key: CallKey, row: WaitStats| {
            self.add_call(sight, &LiveCall::of_waits(key, row), request);
            RowAction::Kept
        });
        session.visit("errors", |key: CallKey, ErrorCount { count: errors, image }| {
            let row =
                LiveCall { image, call: key.call, error: key.error, errors, ..LiveCall::default() };
            self.add_call(sight, &row, request);
            RowAction::Kept
        });
    }

    fn add_threads(
        &mut self,
        sight: &mut SnapshotSums<'_>,
        session: &Session,
        request: &Request,
    ) -> Result<(), String> {
        let written = session.written("snapshot_threads")?;
        let mut left = Fields(&written);
        while !left.0.is_empty() {
            let thread = LiveThread::read(&mut left);
            let sides = [LiveSide::read(&mut left), LiveSide::read(&mut left)];
            sight.add_thread(&thread);
            for (side, reads) in sides.iter().zip([true, false]) {
                if side.key.inode != 0 && side.calls > 0 {
                    sight.file(thread.image, side.key, |sum| sum.add_side(side, reads));
                }
            }
            for _ in 0..thread.hot {
                self.add_call(sight, &LiveCall::read(&mut left), request);
            }
            let (Some(open), true) = (thread.open(), self.name(thread.call, request).wanted) else {
                continue;
            };
            let row = LiveCall {
                image: thread.image,
                call: thread.call,
                numbers: CallNumbers {
                    wall_ns: open.wall_ns,
                    blocked_ns: open.blocked_ns,
                    runnable_ns: open.runnable_ns,
                    open_max_ns: open.wall_ns,
                    open_ns: open.wall_ns,
                    ..CallNumbers::default()
                },
                ..LiveCall::default()
            };
            self.add_call(sight, &row, request);
            sight.enter(&thread);
        }
        Ok(())
    }

    fn add_call(&mut self, sight: &mut SnapshotSums<'_>, row: &LiveCall, request: &Request) {
        let name = self.name(row.call, request);
        if name.wanted {
            sight.add_call(row, name.returns_bytes);
        }
    }

    fn name(&mut self, call: u16, request: &Request) -> &CallName {
        self.calls.entry(call).or_insert_with(|| {
            let abi = if call & CALL_I386 == 0 { Abi::X86_64 } else { Abi::I386 };
            let name = call_name(abi, u32::from(call & CALL_NUMBER));
            CallName {
                returns_bytes: syscalls::returns_bytes(plain_name(&name)),
                wanted: request.wants(&name),
                name,
            }
        })
    }

    fn calls(&self, sums: HashMap<u16, CallSum>) -> Vec<Call> {
        let used = sums.into_iter().filter(|(_, sum)| sum.calls > 0 || sum.in_flight > 0);
        used.filter_map(|(call, sum)| Some(sum.into_row(self.calls.get(&call)?))).collect()
    }

    fn processes(&self, sight: &SnapshotSums<'_>) -> Vec<ProcessCounts> {
        let alive = sight.images.iter().filter(|(_, image)| image.doing.threads > 0);
        let named = alive.map(|(id, image)| {
            let most = image.inside.iter().max_by_key(|(_, threads)| **threads);
            let inside = most.and_then(|(call, _)| self.calls.get(call));
            let ledger = Some(image.ledger.clone());
            let inside = inside.map(|call| call.name.clone());
            let (exec, title) = (sight.exec(*id), sight.title(*id));
            ProcessCounts { exec, title, ledger, inside, ..image.doing.clone() }
        });
        named.collect()
    }

    fn images(&mut self, sight: &mut SnapshotSums<'_>, request: &Request) -> Vec<ImageCounts> {
        let mut images = Vec::new();
        let mut connections = self.connections_by_image(sight);
        let mut requests = self.requests_by_image(sight);
        for (id, calls) in std::mem::take(&mut sight.by_image) {
            let Some(image) = sight.images.get(&id) else { continue };
            let program = sight.program(id);
            let of_program = |name: fn(&Program) -> &String| program.map(name).cloned();
            images.push(ImageCounts {
                id,
                pid: image.doing.pid,
                exec: of_program(|program| &program.exec).unwrap_or_else(|| "?".to_owned()),
                called: of_program(|program| &program.called).unwrap_or_default(),
                title: sight.title(id),
                threads: image.doing.threads,
                ledger: Some(image.ledger.clone()),
                calls: self.calls(calls),
                connections: connections.remove(&id).unwrap_or_default(),
                ring_operations: sight.rings_of(id, request),
                requests: requests.remove(&id).unwrap_or_default(),
            });
        }
        images.sort_by_key(|image| image.id);
        images
    }

    /// Files by path: one inode can have had two directory entries in the kernel's cache.
    fn files(&mut self, sight: &SnapshotSums<'_>, session: &Session) -> Vec<FileUse> {
        let mut by_path: BTreeMap<(String, FileKind), (FileSum, Option<Socket>)> = BTreeMap::new();
        for (key, sum) in &sight.files {
            let NamedFile { kind, path, socket } = self.named_file(*key, session);
            let (of_path, known) = by_path.entry((path, kind)).or_default();
            of_path.join(sum);
            *known = known.take().or(socket);
        }
        let used = by_path.into_iter().map(|((path, kind), (sum, socket))| {
            let user = sum.user.and_then(|id| Some((sight.images.get(&id)?.doing.pid, id)));
            let (pid, exec) = user.map_or((0, String::new()), |(pid, id)| (pid, sight.exec(id)));
            FileUse { pid, exec, kind, path, socket, ..sum.row() }
        });
        used.collect()
    }

    /// The name of a file. A socket that is not connected yet is looked up again.
    fn named_file(&mut self, key: FileKey, session: &Session) -> NamedFile {
        let is_final = |file: &&NamedFile| {
            file.kind != FileKind::Socket
                || file.socket.as_ref().is_some_and(|socket| socket.remote.is_some())
        };
        if let Some(known) = self.files.get(&key).filter(is_final) {
            return known.clone();
        }
        let Some(name) = session.row::<FileName>("file_names", &key.wire()) else {
            let unknown = || NamedFile { kind: FileKind::Other, path: "?".into(), socket: None };
            return self.files.get(&key).cloned().unwrap_or_else(unknown);
        };
        let found = NamedFile {
            kind: names::kind(&name),
            path: names::path(&name, key.inode),
            socket: name.socket.as_ref().map(SocketName::socket),
        };
        self.files.insert(key, found.clone());
        found
    }

    /// The files of images that are alive, after [`NameCache::files`] has named them.
    fn uses(&self, sight: &SnapshotSums<'_>) -> Vec<FileUse> {
        let mut by_path: BTreeMap<(u32, &str, FileKind), (FileSum, Option<&Socket>)> =
            BTreeMap::new();
        for ((image, key), sum) in &sight.uses {
            let Some(file) = self.files.get(key).filter(|_| sight.is_alive(*image)) else {
                continue;
            };
            let (of_path, socket) = by_path.entry((*image, &file.path, file.kind)).or_default();
            of_path.join(sum);
            *socket = socket.or(file.socket.as_ref());
        }
        let used = by_path.into_iter().filter_map(|((image, path, kind), (sum, socket))| {
            let pid = sight.images.get(&image)?.doing.pid;
            let exec = sight.exec(image);
            let (path, socket) = (path.to_owned(), socket.cloned());
            Some(FileUse { pid, exec, kind, path, socket, ..sum.row() })
        });
        used.collect()
    }
}

/// The sums of one snapshot.
struct SnapshotSums<'a> {
    books: &'a Books,
    images: HashMap<u32, ImageName>,
    /// Of those that are alive and have one.
    titles: HashMap<u32, String>,
    calls: HashMap<u16, CallSum>,
    /// The same by image, of those that may have changed.
    by_image: HashMap<u32, HashMap<u16, CallSum>>,
    /// These, once they are known.
    chosen: Option<HashSet<u32>>,
    files: HashMap<FileKey, FileSum>,
    /// The same by image, up to [`Snapshot::MOST_USES`].
    uses: HashMap<(u32, FileKey), FileSum>,
    connections: ConnectionSums,
    /// In the kernel's tables.
    rings: RingBook,
    requests: RequestBook,
}

/// An image as it is seen.
struct ImageName {
    origin: u32,
    doing: ProcessCounts,
    ledger: LedgerRow,
    /// Threads by the call they are in.
    inside: BTreeMap<u16, u32>,
}

impl<'a> SnapshotSums<'a> {
    /// The images there are and were; the calibration's own is left out.
    fn new(session: &Session, books: &'a Books) -> Self {
        let own = std::process::id();
        let mut images: HashMap<u32, ImageName> =
            books.images.iter().map(|(id, image)| (*id, ImageName::from_image(image))).collect();
        session.visit("images", |id: u32, image: Image| {
            images.insert(id, ImageName::from_image(&image));
            RowAction::Kept
        });
        images.retain(|_, image| image.doing.pid != own);
        let titles = HashMap::new();
        let (calls, by_image) = (HashMap::new(), HashMap::new());
        let (files, uses) = (HashMap::new(), HashMap::new());
        Self {
            books,
            images,
            titles,
            calls,
            by_image,
            chosen: None,
            files,
            uses,
            connections: ConnectionSums::default(),
            rings: RingBook::default(),
            requests: RequestBook::default(),
        }
    }

    fn add_call(&mut self, row: &LiveCall, returns_bytes: bool) {
        let Some(image) = self.images.get_mut(&row.image) else { return };
        let bytes = if returns_bytes { row.numbers.bytes } else { 0 };
        image.doing.calls += row.calls;
        image.doing.errors += row.errors;
        image.doing.bytes = image.doing.bytes.saturating_add(bytes);
        image.doing.calls_ns += row.numbers.wall_ns;
        self.calls.entry(row.call).or_default().add(row);
        if self.chosen.as_ref().is_none_or(|chosen| chosen.contains(&row.image)) {
            let of_image = self.by_image.entry(row.image).or_default();
            let sum = of_image.entry(row.call).or_default();
            sum.add(row);
            if row.error > 0 {
                *sum.error_kinds.entry(error_name(row.error.into())).or_default() += row.errors;
            }
        }
    }

    /// From here on rows count for images only if these have changed: by what was read so far, or by
    /// what was collected since the snapshot before.
    fn choose_images(&mut self, changed: HashSet<u32>) {
        let mut chosen = changed;
        chosen.extend(self.by_image.keys());
        let alive = self.images.iter().filter(|(_, image)| image.doing.threads > 0);
        chosen.extend(alive.map(|(id, _)| *id));
        chosen.retain(|id| self.images.contains_key(id));
        for id in &chosen {
            self.by_image.entry(*id).or_default();
        }
        self.chosen = Some(chosen);
    }

    fn add_errors(&mut self, row: &LiveCall, errors: &BTreeMap<u16, u64>) {
        let of_image = self.by_image.get_mut(&row.image);
        let Some(sum) = of_image.and_then(|calls| calls.get_mut(&row.call)) else { return };
        for (number, count) in errors {
            *sum.error_kinds.entry(error_name((*number).into())).or_default() += count;
        }
    }

    fn add_thread(&mut self, thread: &LiveThread) {
        let Some(image) = self.images.get_mut(&thread.image) else { return };
        image.doing.threads += 1;
        add(&mut image.ledger, &thread.ledger());
    }

    fn enter(&mut self, thread: &LiveThread) {
        let Some(image) = self.images.get_mut(&thread.image) else { return };
        *image.inside.entry(thread.call).or_default() += 1;
        self.calls.entry(thread.call).or_default().in_flight += 1;
        let of_image = self.by_image.entry(thread.image).or_default();
        of_image.entry(thread.call).or_default().in_flight += 1;
    }

    fn add_files(&mut self, session: &Session) {
        session.visit("files", |key: FileKey, stats: FileStats| {
            self.file(stats.image, key, |sum| sum.numbers.add(&stats.numbers));
            RowAction::Kept
        });
    }

    fn file(&mut self, image: u32, key: FileKey, count: impl Fn(&mut FileSum)) {
        if !self.images.contains_key(&image) {
            return;
        }
        let key = FileKey { thread: 0, ..key };
        let sum = self.files.entry(key).or_default();
        sum.used_by(Some(image));
        count(sum);
        if self.has_connections(image) {
            count(self.connections.traffic.entry((image, key)).or_default());
        }
        // Until the threads are read, any image may be alive.
        let may_be_alive = self.chosen.is_none() || self.is_alive(image);
        let use_key = (image, key);
        let has_room = self.uses.len() < Snapshot::MOST_USES || self.uses.contains_key(&use_key);
        if may_be_alive && has_room {
            count(self.uses.entry(use_key).or_default());
        }
    }

    fn is_alive(&self, image: u32) -> bool {
        self.images.get(&image).is_some_and(|image| image.doing.threads > 0)
    }

    fn ledger(&self) -> LedgerRow {
        let mut sum = LedgerRow::default();
        self.images.values().for_each(|image| add(&mut sum, &image.ledger));
        sum
    }

    /// The program of an image: its own, or that of the image it was forked from.
    fn program(&self, image: u32) -> Option<&'a Program> {
        let mut at = image;
        // An origin is always older, so the walk ends.
        loop {
            if let Some(program) = self.books.programs.get(&at) {
                return Some(program);
            }
            match self.images.get(&at) {
                Some(image) if image.origin != 0 && image.origin < at => at = image.origin,
                _ => return None,
            }
        }
    }

    /// The name that users know an image by.
    fn exec(&self, image: u32) -> String {
        let name = |program: &Program| match program.called.is_empty() {
            true => program.exec.clone(),
            false => program.called.clone(),
        };
        self.program(image).map_or_else(|| String::from("?"), name)
    }

    /// The title that it has set, if it has.
    fn title(&self, image: u32) -> String {
        self.titles.get(&image).cloned().unwrap_or_else(|| self.books.title(image))
    }
}

impl ImageName {
    fn from_image(image: &Image) -> Self {
        let ledger = LedgerRow {
            thread_ns: image.thread_ns,
            user_ns: image.user_ns,
            calls_on_cpu_ns: image.calls_on_cpu_ns,
            blocked_ns: image.blocked_ns,
            runnable_ns: image.runnable_ns,
            ..LedgerRow::default()
        };
        let doing = ProcessCounts { pid: image.pid, ..ProcessCounts::default() };
        Self { origin: image.origin, doing, ledger, inside: BTreeMap::new() }
    }
}

fn add(to: &mut LedgerRow, from: &LedgerRow) {
    to.thread_ns += from.thread_ns;
    to.user_ns += from.user_ns;
    to.calls_on_cpu_ns += from.calls_on_cpu_ns;
    to.blocked_ns += from.blocked_ns;
    to.runnable_ns += from.runnable_ns;
}
