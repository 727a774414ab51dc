//! Books to record types: names for numbers, rows in order.

use std::collections::{BTreeMap, HashMap};

use iotomy_host::file_systems;
use iotomy_record::{
    Call, Connection, FileKind, FileUse, ImageRows, LedgerRow, PathUse, Process, RingOperation,
    RollUp, Running, Trace, statistic,
};
use iotomy_sys::syscalls::{self, Abi};

use super::books::{Books, CallBook, PathBook, PathPart, Paths};
use super::details::SlowRow;
use super::file_numbers::FileNumbers;
use super::layout::{CALL_NUMBER, FileKey, FileName, Image, Program, SECOND_PATH};
use super::names::{abi, exec, kind, name, path};
use super::slowest;
use crate::naming::{call_name, error_name, join, numbers, plain_name, sort_calls};
use crate::price::Work;
use crate::request::{Request, Target};
use crate::sockets::{SocketName, named};
use crate::threads::Threads;
use crate::variables::Sums;

/// What comes from the books.
#[derive(Default)]
pub(super) struct Outcome {
    /// Its tables are filled.
    pub(super) trace: Trace,
    pub(super) calls_left_out: u64,
    /// Of these, let pass at their entry.
    pub(super) calls_passed: u64,
}

impl Outcome {
    fn add(&mut self, rows: ImageRows) {
        self.trace.calls.extend(rows.calls);
        self.trace.ring_operations.extend(rows.ring_operations);
        self.trace.files.extend(rows.files);
        self.trace.paths.extend(rows.paths);
        self.trace.connections.extend(rows.connections);
    }

    /// The work of the observer for it.
    pub(super) fn work(&self) -> Work {
        let sum = |all: &mut dyn Iterator<Item = u64>| all.fold(0, u64::saturating_add);
        let switches =
            |one: &Process| one.voluntary_switches.saturating_add(one.involuntary_switches);
        let on_cpu = |row: &LedgerRow| row.user_ns.saturating_add(row.calls_on_cpu_ns);
        let mut counted =
            self.trace.calls.iter().map(|row| row.calls.saturating_add(row.in_flight));
        Work {
            calls: sum(&mut counted),
            left_out: self.calls_left_out,
            passed: self.calls_passed,
            switches: sum(&mut self.trace.processes.iter().map(switches)),
            paths: sum(&mut self.trace.paths.iter().map(|row| row.calls)),
            passed_ns: sum(&mut self.trace.ledger.iter().map(on_cpu)),
        }
    }
}

/// Puts the books into the record's terms. The calibration's own image is left out.
pub(super) fn outcome(
    mut books: Books,
    slow: Vec<SlowRow>,
    firing: Option<(SlowRow, Sums)>,
    request: &Request,
) -> Outcome {
    let own = std::process::id();
    let mut images: Vec<(u32, Image)> =
        books.images.iter().filter(|(_, i)| i.pid != own).map(|(id, i)| (*id, i.clone())).collect();
    images.sort_by_key(|(id, image)| (image.start_ns, *id));
    let left_out = images.iter().map(|(_, image)| image.calls_left_out);
    let calls_left_out = left_out.fold(0, u64::saturating_add);
    let passed = images.iter().map(|(_, image)| image.calls_passed);
    let calls_passed = passed.fold(0, u64::saturating_add);
    let mut outcome = Outcome { calls_left_out, calls_passed, ..Outcome::default() };
    let names: Vec<String> = images.iter().map(|(id, _)| exec(&books, *id)).collect();
    let keys = images.iter().zip(&names).map(|((_, image), exec)| (image.pid, exec.as_str()));
    let numbers = numbers(&keys.collect::<Vec<_>>());
    let places = places(&images);
    let pids: HashMap<u32, String> =
        images.iter().zip(&names).map(|((_, image), exec)| (image.pid, exec.clone())).collect();
    let mut threads = books.threads.take().map(Threads::into_images).unwrap_or_default();
    let began_ns = images.first().map_or(0, |(_, image)| image.start_ns);
    let number = |id: u32| {
        images.iter().zip(&numbers).find(|((image, _), _)| *image == id).map_or(0, |(_, n)| *n)
    };
    outcome.trace.slowest = slowest::calls(&books, slow, began_ns, &number);
    outcome.trace.ended_by = firing.map(|(row, sums)| {
        request.filter.ended_by(slowest::one(&books, row, began_ns, &number), sums)
    });
    for ((((id, image), exec), number), place) in
        images.iter().zip(&names).zip(&numbers).zip(places)
    {
        let process = process(&books, *id, image, exec);
        let continued = u32::from(place.continued);
        let before_exec = place.before_exec;
        let process = Process { image: *number, continued, before_exec, ..process };
        let name = |call| Some(name(call)).filter(|name| request.wants(name));
        let of_image = threads.remove(id).unwrap_or_default().into_iter();
        outcome.trace.threads.extend(of_image.map(|thread| thread.into_row(&process, &name)));
        outcome.trace.processes.push(process);
        let worker_ns = books.rings.threads_ns(*id);
        outcome.trace.ledger.push(LedgerRow { image: *number, worker_ns, ..ledger(image, exec) });
        if image.live > 0 {
            outcome.trace.still_running.push(Running { pid: image.pid, exec: exec.clone() });
        }
    }
    let is_command = matches!(request.target, Target::Command(_));
    let mut sums = (images.len() > request.images_apart)
        .then(|| RollUp::new(&outcome.trace.processes, is_command, &outcome.trace.still_running))
        .flatten();
    for (((id, image), exec), number) in images.iter().zip(&names).zip(&numbers) {
        let rows = rows(&mut books, (*id, image.pid, exec, *number), &pids, request);
        match &mut sums {
            Some(sums) => sums.add(rows),
            None => outcome.add(rows),
        }
    }
    if let Some(sums) = sums {
        sums.finish(&mut outcome.trace);
    }
    outcome
}

/// The rows of an image: by its number in the watch, process id, name and number in its process.
fn rows(
    books: &mut Books,
    (id, pid, exec, number): (u32, u32, &str, u32),
    pids: &HashMap<u32, String>,
    request: &Request,
) -> ImageRows {
    let of_image = books.calls.remove(&id).unwrap_or_default();
    let calls = calls(of_image, pid, exec, request).into_iter();
    let is_wanted = |operation: &str| request.wants_ring_operation(operation);
    let ring_operations = books.rings.rows(id, (pid, exec), is_wanted).into_iter();
    let of_image = books.files.remove(&id).unwrap_or_default();
    let of_files = files(books, &of_image, pid, exec);
    let connections = books.connections.rows(&id, (pid, exec), &of_files).into_iter();
    let connections =
        connections.map(|row| Connection { image: number, ends: named(row.ends, pids), ..row });
    let files = of_files
        .into_iter()
        .map(|row| FileUse { socket: row.socket.map(|socket| named(socket, pids)), ..row });
    let of_image = books.paths.images.remove(&id).unwrap_or_default();
    let paths = paths(&books.paths, of_image, pid, exec).into_iter();
    ImageRows {
        calls: calls.map(|row| Call { image: number, ..row }).collect(),
        ring_operations: ring_operations
            .map(|row| RingOperation { image: number, ..row })
            .collect(),
        files: files.map(|row| FileUse { image: number, ..row }).collect(),
        paths: paths.map(|row| PathUse { image: number, ..row }).collect(),
        connections: connections.collect(),
        requests: Vec::new(), // another object has them
    }
}

/// An image's place in its process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Place {
    /// It began by an exec in a process that an image before it began.
    continued: bool,
    /// It was forked, and executed another program.
    before_exec: bool,
}

/// Of images in the order they began. One that was forked has an origin, and begins a process, also
/// where another had its id before.
fn places(images: &[(u32, Image)]) -> Vec<Place> {
    let mut places = vec![Place::default(); images.len()];
    let mut last: HashMap<u32, usize> = HashMap::new();
    for (at, (_, image)) in images.iter().enumerate() {
        let before = last.insert(image.pid, at).filter(|_| image.origin == 0);
        if let Some(before) = before {
            places[at].continued = true;
            places[before].before_exec = images[before].1.origin != 0;
        }
    }
    places
}

fn process(books: &Books, id: u32, image: &Image, exec: &str) -> Process {
    let (user_ns, system_ns) = split_runtime(image);
    let program = books.program(id);
    let of_program = |name: fn(&Program) -> &String| program.map(name).cloned().unwrap_or_default();
    Process {
        pid: image.pid,
        ppid: image.ppid,
        exec: exec.to_owned(),
        called: of_program(|program| &program.called),
        binary: of_program(|program| &program.binary),
        title: books.title(id),
        argv: program.map(|program| program.argv.clone()).unwrap_or_default(),
        argv_words: program.map_or(0, |program| program.argv_words),
        threads: image.threads,
        user_ns,
        system_ns,
        minor_faults: image.minor_faults,
        major_faults: image.major_faults,
        voluntary_switches: image.voluntary_switches,
        involuntary_switches: image.involuntary_switches,
        max_rss_bytes: image.max_rss_pages.saturating_mul(rustix::param::page_size() as u64),
        storage_read_bytes: (image.storage_read_bytes != u64::MAX)
            .then_some(image.storage_read_bytes),
        ..Process::default()
    }
}

/// The kernel counts user and system time in ticks and the run time exactly; like the kernel's own
/// accounting, the exact sum is split in the ticks' proportion.
fn split_runtime(image: &Image) -> (u64, u64) {
    let ticks = u128::from(image.utime_ns) + u128::from(image.stime_ns);
    let run = u128::from(image.runtime_ns);
    let system = (run * u128::from(image.stime_ns)).checked_div(ticks).unwrap_or(0) as u64;
    (image.runtime_ns - system, system)
}

fn calls(
    of_image: BTreeMap<u16, Box<CallBook>>,
    pid: u32,
    exec: &str,
    request: &Request,
) -> Vec<Call> {
    let mut rows: Vec<Call> = of_image
        .into_iter()
        .map(|(call, book)| call_row(pid, exec, call, *book, request))
        .filter(|row| request.wants(&row.syscall) && (row.calls > 0 || row.in_flight > 0))
        .collect();
    sort_calls(&mut rows);
    rows
}

fn call_row(pid: u32, exec: &str, call: u16, book: CallBook, request: &Request) -> Call {
    let (abi, syscall) = (abi(call), name(call));
    let errors = book.errors.iter();
    let error_kinds: BTreeMap<String, u64> =
        errors.map(|(number, count)| (error_name(u32::from(*number)), *count)).collect();
    let returns_bytes = syscalls::returns_bytes(plain_name(&syscall));
    let asks = abi == Abi::X86_64 && request.files && syscalls::polls(&syscall).is_some();
    let ready = syscalls::returns_ready(plain_name(&syscall)).then_some(book.numbers.bytes);
    let mut row = Call {
        pid,
        exec: exec.to_owned(),
        calls: book.wall.total(),
        errors: error_kinds.values().sum(),
        error_kinds,
        asked: asks.then_some(book.asked),
        ready,
        return_log2: book.returns,
        wall_log2: book.wall.log2(),
        on_cpu_log2: Some(book.on_cpu.log2()),
        blocked_log2: Some(book.blocked.log2()),
        on_cpu_times: (book.on_cpu != book.wall).then_some(book.on_cpu),
        wall_times: book.wall,
        blocked_times: book.blocked,
        syscall,
        ..Call::default()
    };
    book.numbers.put(&mut row);
    row.open_ns = row.open_ns.filter(|_| row.in_flight > 0);
    if !returns_bytes {
        row.bytes = 0;
    }
    row
}

fn ledger(image: &Image, exec: &str) -> LedgerRow {
    let booked = [image.user_ns, image.calls_on_cpu_ns, image.blocked_ns, image.runnable_ns];
    let booked: i128 = booked.into_iter().map(i128::from).sum();
    let residual = i128::from(image.thread_ns) - booked;
    LedgerRow {
        pid: image.pid,
        exec: exec.to_owned(),
        image: 0,
        thread_ns: image.thread_ns,
        user_ns: image.user_ns,
        calls_on_cpu_ns: image.calls_on_cpu_ns,
        blocked_ns: image.blocked_ns,
        fault_ns: Some(image.fault_ns),
        stopped_ns: image.stopped_ns,
        runnable_ns: image.runnable_ns,
        worker_ns: 0,
        residual_ns: i64::try_from(residual).unwrap_or(if residual < 0 {
            i64::MIN
        } else {
            i64::MAX
        }),
    }
}

fn files(
    books: &Books,
    of_image: &HashMap<FileKey, FileNumbers>,
    pid: u32,
    exec: &str,
) -> Vec<FileUse> {
    let mut merged: BTreeMap<(String, FileKind), FileUse> = BTreeMap::new();
    for (file, numbers) in of_image {
        let name = books.file_names.get(file);
        let (kind, path) = name.map_or((FileKind::Other, String::from("?")), |name| {
            (kind(name), path(name, file.inode))
        });
        // One inode can have had two directory entries in the kernel's cache: one path, one row.
        let row = merged.entry((path.clone(), kind)).or_insert_with(|| {
            let file = FileUse { pid, exec: exec.to_owned(), kind, path, ..FileUse::default() };
            let socket = name.and_then(|name| name.socket.as_ref()).map(SocketName::socket);
            let file = FileUse { socket, ..file };
            name.filter(|_| kind == FileKind::File)
                .map_or(file.clone(), |name| as_first_met(file, name))
        });
        statistic::add(row, &numbers.row());
    }
    let used = merged.into_values().filter(statistic::is_used);
    let mut rows: Vec<FileUse> = used.collect();
    rows.sort_by_key(|row| std::cmp::Reverse(row.read_bytes.saturating_add(row.write_bytes)));
    rows
}

/// The rows of an image's paths, most calls first. A directory can have had several entries in the
/// kernel's cache, and a path may be relative here and whole there: one path, one row.
fn paths(
    paths: &Paths,
    of_image: HashMap<PathPart, PathBook>,
    pid: u32,
    exec: &str,
) -> Vec<PathUse> {
    let mut merged: BTreeMap<(u16, u16, Option<String>), PathBook> = BTreeMap::new();
    for (PathPart { call, error, directory, text }, book) in of_image {
        let begins = directory.map(|key| {
            let name = paths.directories.get(&key);
            name.map_or_else(|| String::from("…"), |name| path(name, key.inode))
        });
        let path = text.map(|text| join(begins.as_deref(), &text));
        let sum = merged.entry((call, error, path)).or_default();
        sum.calls += book.calls;
        sum.wall_ns += book.wall_ns;
    }
    let rows = merged.into_iter().map(|((call, error, path), book)| PathUse {
        pid,
        exec: exec.to_owned(),
        image: 0,
        syscall: call_name(abi(call), u32::from(call & CALL_NUMBER)),
        second: call & SECOND_PATH != 0,
        error: (error > 0).then(|| error_name(u32::from(error))),
        path,
        calls: book.calls,
        wall_ns: book.wall_ns,
    });
    let mut rows: Vec<PathUse> = rows.collect();
    rows.sort_by_key(|row| std::cmp::Reverse(row.calls));
    rows
}

/// The state of a regular file when it was first met.
fn as_first_met(file: FileUse, name: &FileName) -> FileUse {
    let page = rustix::param::page_size() as u64;
    FileUse {
        file_system: Some(file_systems::name(name.magic)),
        size_bytes: Some(name.size_bytes),
        // The pages of a file of an overlay are its lower or upper file's.
        cached_bytes: (name.magic != file_systems::OVERLAY && name.cached_pages != u64::MAX)
            .then(|| name.cached_pages.saturating_mul(page)),
        ..file
    }
}
