//! The kernel's rows, added up by program image.
//!
//! Rows in the kernel are a thread's; here they are an image's. Rows of threads that ended can be
//! taken and freed while the watch goes on; the invariant is that a row is added exactly once: it
//! is freed when it is taken, or taken at the end, when nothing changes any more.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use iotomy_host::title;
use iotomy_record::{Histogram, Times};

use super::call_numbers::{CallNumbers, CallStats, FrequentStats, RareStats, WaitStats};
use super::connections;
use super::details::{PathKey, PathRow};
use super::exchanges::RequestBook;
use super::file_numbers::{FileNumbers, FileStats};
use super::layout::{
    Attached, CARRY_STEP, CallKey, ErrorCount, FileKey, FileName, FirstArgument, Image, Program,
    ThreadRow,
};
use super::object::{RowAction, Session};
use super::rings::RingBook;
use crate::attach;
use crate::connections::ConnectionBook;
use crate::threads::{CallCounts, CallsOfThread, ThreadBook, Threads};

/// A call of an image, all threads together.
#[derive(Debug, Default)]
pub(super) struct CallBook {
    pub(super) numbers: CallNumbers,
    pub(super) asked: u64,
    pub(super) errors: BTreeMap<u16, u64>,
    pub(super) returns: Histogram,
    pub(super) wall: Times,
    pub(super) on_cpu: Times,
    pub(super) blocked: Times,
}

/// The calls with a path: which, their error, and the path, behind the directory at which it begins.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct PathPart {
    /// With [`SECOND_PATH`](super::layout::SECOND_PATH).
    pub(super) call: u16,
    pub(super) error: u16,
    pub(super) directory: Option<FileKey>,
    pub(super) text: Option<Arc<str>>,
}

/// Calls of one image with a path.
#[derive(Debug, Default)]
pub(super) struct PathBook {
    pub(super) calls: u64,
    pub(super) wall_ns: u64,
}

/// The paths of all images. There is room for a bounded number.
#[derive(Debug, Default)]
pub(super) struct Paths {
    /// By image, then by what they are.
    pub(super) images: HashMap<u32, HashMap<PathPart, PathBook>>,
    pub(super) directories: HashMap<FileKey, FileName>,
    texts: HashSet<Arc<str>>,
    most: usize,
    count: usize,
    /// Calls whose paths found no room.
    pub(super) lost: u64,
}

/// Everything counted so far.
#[derive(Debug, Default)]
pub(super) struct Books {
    pub(super) images: BTreeMap<u32, Image>,
    pub(super) programs: HashMap<u32, Program>,
    /// The first arguments of processes by the time they ended, or the watch did, where these may be titles.
    first_arguments: HashMap<u32, Vec<u8>>,
    /// By image, then by call. In boxes: half of the places of a tree are empty.
    pub(super) calls: HashMap<u32, BTreeMap<u16, Box<CallBook>>>,
    /// By image, then by file.
    pub(super) files: HashMap<u32, HashMap<FileKey, FileNumbers>>,
    pub(super) file_names: HashMap<FileKey, FileName>,
    /// Images whose rows have been added to since the last snapshot.
    pub(super) changed: HashSet<u32>,
    pub(super) paths: Paths,
    pub(super) connections: ConnectionBook<u32>,
    pub(super) rings: RingBook,
    pub(super) requests: RequestBook,
    /// By image; none where threads are not counted.
    pub(super) threads: Option<Threads<u32, u16>>,
}

/// Rows of paths, of connections, and of requests over these, in memory, for each that there is room for in the kernel.
const ROWS_OF_ENDED: usize = 4;

impl Books {
    /// With room for the paths of as many images as rows of the kernel's table, several times over.
    pub(super) fn with_room(rows: u32, by_thread: bool) -> Self {
        let paths = Paths { most: ROWS_OF_ENDED * rows as usize, ..Paths::default() };
        let threads = by_thread.then(|| Threads::with_room(rows));
        let connections = ConnectionBook::with_room(ROWS_OF_ENDED * rows as usize);
        let requests = RequestBook::with_room(ROWS_OF_ENDED * rows as usize);
        Self { paths, threads, connections, requests, ..Self::default() }
    }

    /// Takes the rows of threads that ended out of the kernel, and of images without any left.
    pub(super) fn take_dead(&mut self, session: &Session, dead: &HashSet<u32>) {
        self.take(session, &|thread| dead.contains(&thread));
        session.visit("images", |id, image: Image| {
            if image.live > 0 {
                return RowAction::Kept;
            }
            self.changed.insert(id);
            self.images.insert(id, image);
            RowAction::Freed
        });
        let Self { rings, images, files, .. } = self;
        rings.take_ended(session, &|image| images.contains_key(&image), &mut add_to(files));
        if session.has_beside() {
            let Self { images, requests, changed, .. } = self;
            changed.extend(requests.take_ended(session, &|image| images.contains_key(&image)));
        }
        if session.has_details() {
            let Self { connections: of_peers, images, changed, .. } = self;
            changed
                .extend(connections::take(of_peers, session, &|image| images.contains_key(&image)));
        }
    }

    /// Takes all there is, once nothing counts any more.
    pub(super) fn take_all(&mut self, session: &Session) {
        self.take(session, &|_| true);
        session.visit("images", |id, image| {
            self.images.insert(id, image);
            RowAction::Freed
        });
        self.rings.take_all(session, &mut add_to(&mut self.files));
        session.visit("file_names", |key, name| {
            self.file_names.insert(key, name);
            RowAction::Freed
        });
        if session.has_details() {
            session.visit("directories", |key, name| {
                self.paths.directories.insert(key, name);
                RowAction::Freed
            });
            connections::take(&mut self.connections, session, &|_| true);
        }
    }

    /// Drops what is known of images that have ended.
    pub(super) fn forget(&mut self, images: &[u32]) {
        for image in images {
            self.images.remove(image);
            self.programs.remove(image);
            self.first_arguments.remove(image);
            self.calls.remove(image);
            self.files.remove(image);
            self.rings.forget(*image);
            self.requests.forget(*image);
        }
    }

    fn take(&mut self, session: &Session, taken: &dyn Fn(u32) -> bool) {
        let wanted = self.threads.is_some();
        let mut of_threads = OfThreads { wanted, calls: HashMap::new() };
        session.visit("calls", |key: CallKey, row: RareStats| {
            fate(taken(key.thread), || {
                of_threads.add(key, row.plain_calls(), row.numbers.wall_ns);
                self.call(row.image, key).add(&row);
            })
        });
        session.visit("frequent", |key: CallKey, row: FrequentStats| {
            // Still empty, it was made for a thread that goes on.
            fate(taken(key.thread) && row.image > 0, || {
                of_threads.add(key, row.plain_calls(), row.numbers.wall_ns);
                self.call(row.image, key).add(&row);
            })
        });
        session.visit("waits", |key: CallKey, row: WaitStats| {
            fate(taken(key.thread), || {
                of_threads.add(key, row.calls(), row.numbers.wall_ns);
                self.call(row.image, key).add_waits(&row);
            })
        });
        session.visit("carries", |key: CallKey, row: ErrorCount| {
            fate(taken(key.thread), || {
                if carries_calls(key.error) {
                    of_threads.add(key, row.count, 0);
                }
                self.call(row.image, key).carry(key.error, row.count);
            })
        });
        session.visit("asked", |key: CallKey, row: ErrorCount| {
            fate(taken(key.thread), || self.call(row.image, key).asked += row.count)
        });
        session.visit("errors", |key: CallKey, row: ErrorCount| {
            fate(taken(key.thread), || {
                of_threads.add_errors(key, row.count);
                *self.call(row.image, key).errors.entry(key.error).or_default() += row.count;
            })
        });
        session.visit("files", |key: FileKey, row: FileStats| {
            fate(taken(key.thread), || {
                let file = FileKey { thread: 0, ..key };
                self.files.entry(row.image).or_default().entry(file).or_default().add(&row.numbers);
            })
        });
        if session.has_details() {
            session.visit("paths", |key: PathKey, row: PathRow| {
                fate(taken(key.thread), || self.paths.add(key, row))
            });
        }
        self.take_threads(session, taken, of_threads);
        self.take_programs(session);
    }

    fn take_threads(
        &mut self,
        session: &Session,
        taken: &dyn Fn(u32) -> bool,
        mut of_threads: OfThreads,
    ) {
        let Some(threads) = &mut self.threads else { return };
        session.visit("thread_rows", |id: u32, row: ThreadRow| {
            fate(taken(id), || {
                let (image, is_one_of_many) = (row.image, row.has_ended && !row.is_first);
                let book = row.into_book(of_threads.calls.remove(&id).unwrap_or_default());
                match is_one_of_many {
                    true => threads.add_ended(image, book),
                    false => threads.add(image, book),
                }
            })
        });
    }

    /// Names the programs that ran before the watch: their exec was not observed, `/proc` knows
    /// them.
    pub(super) fn name_attached(&mut self, session: &Session) {
        // Those that were observed meanwhile have their own.
        self.take_programs(session);
        let programs = &mut self.programs;
        session.visit("attached", |image: u32, Attached { pid, comm }: Attached| {
            programs.entry(image).or_insert_with(|| {
                let names = attach::names(pid);
                // It may have executed another program meanwhile, or have ended.
                let is_it = session.row("attached_images", &pid.to_ne_bytes()) == Some(image);
                let attach::Names { exec, called, binary, argv, title } =
                    match is_it && !names.exec.is_empty() {
                        true => names,
                        false => attach::Names { exec: comm, ..attach::Names::default() },
                    };
                Program { exec, called, binary, argv, argv_words: 0, title }
            });
            RowAction::Freed
        });
    }

    /// Reads the programs of images, which do not change, and the first arguments of processes that ended.
    pub(super) fn take_programs(&mut self, session: &Session) {
        session.visit("programs", |image, program| {
            self.programs.entry(image).or_insert(program);
            RowAction::Freed
        });
        session.visit("titles", |image, FirstArgument(first)| {
            let of_program = self.programs.get(&image).map(Program::known);
            // Of most there is none.
            if of_program.is_none_or(|known| !known.title_by(&first).is_empty()) {
                self.first_arguments.insert(image, first);
            }
            RowAction::Freed
        });
    }

    /// Notes the titles that processes have at the end of the watch.
    pub(super) fn note_titles(&mut self) {
        let own = std::process::id();
        let alive: Vec<(u32, u32)> = self
            .images
            .iter()
            .filter(|(_, one)| one.live > 0 && one.pid != own)
            .map(|(id, one)| (*id, one.pid))
            .collect();
        let first_arguments = title::first_arguments(alive.iter().map(|(_, pid)| *pid).collect());
        for (id, pid) in alive {
            // Of one that ended meanwhile the programs have told.
            if let Some(first) = first_arguments.get(&pid).filter(|first| !first.is_empty()) {
                self.first_arguments.insert(id, first.clone());
            }
        }
    }

    /// The last title of an image that was seen; empty where it has set none.
    pub(super) fn title(&self, image: u32) -> String {
        let first = self.first_arguments.get(&image).map(Vec::as_slice).unwrap_or_default();
        self.program(image).map(|program| program.known().title_by(first)).unwrap_or_default()
    }

    fn call(&mut self, image: u32, key: CallKey) -> &mut CallBook {
        self.changed.insert(image);
        self.calls.entry(image).or_default().entry(key.call).or_default()
    }

    /// The program of an image: its own, or that of the image it was forked from.
    pub(super) fn program(&self, image: u32) -> Option<&Program> {
        let mut at = image;
        // An origin is always older, so the walk ends.
        loop {
            if let Some(program) = self.programs.get(&at) {
                return Some(program);
            }
            let origin = self.images.get(&at)?.origin;
            if origin == 0 || origin >= at {
                return None;
            }
            at = origin;
        }
    }
}

impl Paths {
    fn add(&mut self, key: PathKey, row: PathRow) {
        let text = row.text.map(|text| self.intern(text));
        let PathKey { call, error, .. } = key;
        let part = PathPart { call, error, directory: row.directory, text };
        let of_image = self.images.entry(row.image).or_default();
        if self.count >= self.most && !of_image.contains_key(&part) {
            self.lost += row.calls;
            return;
        }
        let book = of_image.entry(part).or_insert_with(|| {
            self.count += 1;
            PathBook::default()
        });
        book.calls += row.calls;
        book.wall_ns += row.wall_ns;
    }

    /// The same text, once for all images.
    fn intern(&mut self, text: String) -> Arc<str> {
        if let Some(known) = self.texts.get(&*text) {
            return Arc::clone(known);
        }
        let text: Arc<str> = text.into();
        self.texts.insert(Arc::clone(&text));
        text
    }
}

impl CallBook {
    fn add<const WIDTH: usize>(&mut self, row: &CallStats<WIDTH>) {
        self.numbers.add(&row.numbers);
        for (slot, count) in row.returns.iter().enumerate() {
            self.returns.add_slot(slot, u64::from(*count));
        }
        add(&mut self.wall, &row.plain, row.numbers.max_ns);
        add(&mut self.on_cpu, &row.plain, row.numbers.max_ns);
    }

    fn add_waits(&mut self, row: &WaitStats) {
        self.numbers.add(&row.numbers);
        add(&mut self.wall, &row.wall, row.numbers.max_ns);
        add(&mut self.on_cpu, &row.on_cpu, row.max_on_cpu_ns);
        // A preempted call was off its CPU without having slept: not a blocked one.
        let is_zero = |(bucket, _): &(u16, u64)| *bucket == 0;
        let zero = usize::from(row.blocked.first().is_some_and(is_zero));
        add(&mut self.blocked, &row.blocked[zero..], row.max_blocked_ns);
    }

    /// Adds the overflow of a short counter of the kernel's rows.
    fn carry(&mut self, counter: u16, count: u64) {
        let bucket = counter % CARRY_STEP;
        match counter / CARRY_STEP {
            0 => self.returns.add_slot(usize::from(bucket), count),
            1 | 2 => {
                self.wall.add_bucket(bucket, count);
                self.on_cpu.add_bucket(bucket, count);
            }
            3 => self.wall.add_bucket(bucket, count),
            4 => self.on_cpu.add_bucket(bucket, count),
            _ if bucket > 0 => self.blocked.add_bucket(bucket, count),
            _ => {}
        }
    }
}

/// The calls of the threads whose rows are taken, by thread.
struct OfThreads {
    wanted: bool,
    calls: HashMap<u32, CallsOfThread<u16>>,
}

impl OfThreads {
    fn add(&mut self, key: CallKey, calls: u64, wall_ns: u64) {
        self.count(key, CallCounts { calls, errors: 0, wall_ns });
    }

    fn add_errors(&mut self, key: CallKey, errors: u64) {
        self.count(key, CallCounts { errors, ..CallCounts::default() });
    }

    fn count(&mut self, key: CallKey, more: CallCounts) {
        if self.wanted {
            self.calls.entry(key.thread).or_default().add(key.call, more);
        }
    }
}

/// Whether a counter that overflowed counts calls: those of wall times, each call once.
fn carries_calls(counter: u16) -> bool {
    matches!(counter / CARRY_STEP, 1..=3)
}

impl<const WIDTH: usize> CallStats<WIDTH> {
    pub(super) fn plain_calls(&self) -> u64 {
        self.plain.iter().map(|(_, count)| count).sum()
    }
}

impl WaitStats {
    pub(super) fn calls(&self) -> u64 {
        self.wall.iter().map(|(_, count)| count).sum()
    }
}

impl ThreadRow {
    fn into_book(self, calls: CallsOfThread<u16>) -> ThreadBook<u16> {
        ThreadBook {
            thread_ns: Some(self.thread_ns),
            user_ns: Some(self.user_ns),
            on_cpu_ns: self.user_ns + self.calls_on_cpu_ns,
            blocked_ns: Some(self.blocked_ns),
            runnable_ns: Some(self.runnable_ns),
            voluntary_switches: self.voluntary_switches,
            involuntary_switches: self.involuntary_switches,
            calls,
            ..ThreadBook::new(self.tid, self.comm)
        }
    }
}

/// Adds what rings moved through files.
fn add_to(
    files: &mut HashMap<u32, HashMap<FileKey, FileNumbers>>,
) -> impl FnMut(u32, FileKey, &FileStats) {
    |image, file, row| files.entry(image).or_default().entry(file).or_default().add(&row.numbers)
}

/// Takes a row over, if it is to be taken.
fn fate(taken: bool, take: impl FnOnce()) -> RowAction {
    if !taken {
        return RowAction::Kept;
    }
    take();
    RowAction::Freed
}

fn add(to: &mut Times, from: &[(u16, u64)], max_ns: u64) {
    to.max_ns = to.max_ns.max(max_ns);
    from.iter().for_each(|(bucket, count)| to.add_bucket(*bucket, *count));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_counter_that_overflowed_is_made_whole() {
        let mut call = CallBook::default();
        call.wall.add_bucket(8, 5);
        call.carry(CARRY_STEP + 8, 1 << 8);
        call.carry(2 * CARRY_STEP + 8, 1 << 16);
        let both = (1 << 16) + (1 << 8);
        assert_eq!(call.wall.buckets(), [(8, both + 5)]);
        assert_eq!(call.on_cpu.buckets(), [(8, both)]);
        call.carry(0, 1 << 32);
        assert_eq!(call.returns.zero, 1 << 32);
        call.carry(3 * CARRY_STEP + 300, 7);
        call.carry(4 * CARRY_STEP + 300, 8);
        call.carry(5 * CARRY_STEP + 300, 9);
        call.carry(5 * CARRY_STEP, 9);
        let last = [&call.wall, &call.on_cpu, &call.blocked].map(|times| times.buckets().last());
        assert_eq!(last, [Some(&(300, 7)), Some(&(300, 8)), Some(&(300, 9))]);
        assert_eq!(call.blocked.buckets().len(), 1);
    }
}
