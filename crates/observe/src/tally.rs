//! Program images and their counts, in the record's own terms, for every observer.
//!
//! An image is a (process, program): an `execve` or a fork begins a new one. This module does not
//! know how calls are observed, and makes no system call.
//!
//! The one invariant: a call is counted in one of two ways, never in both. Either it returned, and
//! is in `calls` and in every distribution, or it did not, and is only `in_flight`.

use std::collections::{BTreeMap, HashMap};

use iotomy_record::{Call, FileKind, FileUse, PathUse, Process, WholeCall};
use iotomy_sys::syscalls;

use crate::naming::{CallNumber, call_name, error_name, plain_name};
use crate::slowest::Slowest;
use crate::threads::{ThreadBook, Threads};
use crate::title::Known;

mod output;

pub(crate) use self::output::Rows;

/// An image's place in a [`Tally`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct ImageId(usize);

impl ImageId {
    /// Of the image that was the nth to begin.
    pub(crate) fn from_place(place: usize) -> Self {
        Self(place)
    }
}

/// The file behind a call's descriptor.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct FileRef {
    pub(crate) kind: FileKind,
    pub(crate) path: String,
}

/// The direction of a call's use of a file: bytes come from it or go to it, or it is mapped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Direction {
    Read,
    Write,
    Map,
}

/// The kernel's accounting of a thread. Differences of two readings are added to an image.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Usage {
    pub(crate) user_ns: u64,
    pub(crate) system_ns: u64,
    pub(crate) minor_faults: u64,
    pub(crate) major_faults: u64,
    pub(crate) voluntary_switches: u64,
    pub(crate) involuntary_switches: u64,
}

/// All counts of a watch. It has room for a bounded number of images; the calls of images without
/// room are counted as lost, and so are the images.
#[derive(Debug)]
pub(crate) struct Tally {
    images: Vec<Image>,
    /// How many images there is room for.
    most: usize,
    /// The sum of the images that found no room.
    nobody: Process,
    lost_events: u64,
    headless_calls: u64,
    /// How many rows of files there are, of all images, and uses of files without one.
    files: usize,
    lost_files: u64,
    /// How many paths there are, of all images.
    paths: usize,
    lost_paths: u64,
    slowest: Slowest,
    /// The state of regular files and of sockets when they were first met.
    met: BTreeMap<FileRef, FileUse>,
    /// The CPUs on which threads might run that left their images, a bit each.
    allowed_cpus: Vec<u64>,
    /// None where threads are not counted.
    threads: Option<Threads<ImageId, CallNumber>>,
}

#[derive(Debug)]
struct Image {
    process: Process,
    is_forked: bool,
    calls: HashMap<CallNumber, CountedRow>,
    files: BTreeMap<FileRef, FileUse>,
    paths: BTreeMap<PathPart, PathUse>,
}

/// A path that calls were given: which, whether it is their second, the error, and the path.
pub(crate) type PathPart = (CallNumber, bool, Option<u32>, Option<String>);

/// A call's row, with the properties of its name looked up once.
#[derive(Debug)]
struct CountedRow {
    row: Call,
    returns_bytes: bool,
    returns_ready: bool,
    never_returns: bool,
    /// Calls in flight whose end was not seen.
    unseen: u64,
}

/// Of an image that found no room.
const NOWHERE: ImageId = ImageId(usize::MAX);

impl Tally {
    /// With room for this many images, and for this many of the slowest calls.
    pub(crate) fn with_room(images: u32, slowest: u32) -> Self {
        Self {
            images: Vec::new(),
            most: images.try_into().unwrap_or(usize::MAX),
            nobody: Process { exec: "?".to_owned(), ..Process::default() },
            lost_events: 0,
            headless_calls: 0,
            files: 0,
            lost_files: 0,
            paths: 0,
            lost_paths: 0,
            slowest: Slowest::with_room(slowest),
            met: BTreeMap::new(),
            allowed_cpus: Vec::new(),
            threads: None,
        }
    }

    /// A thread that leaves its image might run on these CPUs.
    pub(crate) fn allow_cpus(&mut self, cpus: impl IntoIterator<Item = usize>) {
        for cpu in cpus {
            let word = cpu / 64;
            self.allowed_cpus.resize(self.allowed_cpus.len().max(word + 1), 0);
            self.allowed_cpus[word] |= 1 << (cpu % 64);
        }
    }

    /// Counts threads as well, with room for this many entries.
    pub(crate) fn by_thread(self, rows: u32) -> Self {
        Self { threads: Some(Threads::with_room(rows)), ..self }
    }

    /// Whether it counts threads.
    pub(crate) fn has_threads(&self) -> bool {
        self.threads.is_some()
    }

    /// What a thread has done in an image that it has left, or in which the watch ended.
    pub(crate) fn add_left(&mut self, image: ImageId, thread: ThreadBook<CallNumber>, ended: bool) {
        let is_first = thread.tid == self.process(image).pid;
        let Some(threads) = &mut self.threads else { return };
        match image {
            NOWHERE => {}
            _ if ended && !is_first => threads.add_ended(image, thread),
            _ => threads.add(image, thread),
        }
    }

    fn image(&mut self, image: ImageId) -> Option<&mut Image> {
        self.images.get_mut(image.0)
    }

    /// The row of a call that is to be counted; where it has none, it is lost.
    fn counted(&mut self, image: ImageId, call: CallNumber) -> Option<&mut CountedRow> {
        if image == NOWHERE {
            self.lost_events += 1;
        }
        self.image(image).map(|image| image.row(call))
    }

    /// Begins an image, described as a record's process with nothing counted yet.
    pub(crate) fn begin(&mut self, process: Process) -> ImageId {
        if self.images.len() >= self.most {
            self.lost_events += 1;
            return NOWHERE;
        }
        let (calls, files, is_forked) = (HashMap::new(), BTreeMap::new(), false);
        self.images.push(Image { process, is_forked, calls, files, paths: BTreeMap::new() });
        ImageId(self.images.len() - 1)
    }

    /// Begins an image of a process that was forked.
    pub(crate) fn begin_forked(&mut self, process: Process) -> ImageId {
        let begun = self.begin(process);
        if let Some(image) = self.image(begun) {
            image.is_forked = true;
        }
        begun
    }

    /// Begins the image that the process of `before` has executed.
    pub(crate) fn begin_after(&mut self, before: ImageId, process: Process) -> ImageId {
        if let Some(before) = self.image(before) {
            before.process.before_exec = before.is_forked;
        }
        self.begin(Process { continued: 1, ..process })
    }

    /// The facts about an image so far.
    pub(crate) fn process(&self, image: ImageId) -> &Process {
        self.images.get(image.0).map_or(&self.nobody, |image| &image.process)
    }

    /// Sets the identity of an image: the facts read at its start were its successor's.
    pub(crate) fn name(&mut self, image: ImageId, found: Process) {
        let Some(Image { process, .. }) = self.image(image) else { return };
        process.exec = found.exec;
        process.called = found.called;
        process.argv = found.argv;
        process.title = found.title;
    }

    /// The first argument of the image's process is this one by now.
    pub(crate) fn titled(&mut self, image: ImageId, first: &[u8]) {
        let Some(Image { process, .. }) = self.image(image) else { return };
        let names = [&*process.exec, &process.called, &process.binary];
        let known = Known { names, argv: &process.argv, title: &process.title };
        process.title = known.title_by(first);
    }

    /// One more thread lives in the image.
    pub(crate) fn add_thread(&mut self, image: ImageId) {
        if let Some(image) = self.image(image) {
            image.process.threads += 1;
        }
    }

    /// A call returned a value, having moved so many bytes, or an error number, `wall_ns` after it was entered.
    pub(crate) fn returned(
        &mut self,
        image: ImageId,
        call: CallNumber,
        value: Result<(u64, u64), u32>,
        wall_ns: u64,
    ) {
        let Some(counted) = self.counted(image, call) else { return };
        let CountedRow { row, returns_bytes, returns_ready, .. } = counted;
        row.calls += 1;
        row.wall_ns = row.wall_ns.saturating_add(wall_ns);
        row.max_ns = row.max_ns.max(wall_ns);
        row.wall_log2.add(wall_ns);
        row.wall_times.add(wall_ns);
        match value {
            Ok((value, bytes)) => {
                row.return_log2.add(value);
                if *returns_bytes {
                    row.bytes = row.bytes.saturating_add(bytes);
                }
                if *returns_ready {
                    row.ready = Some(row.ready.unwrap_or(0).saturating_add(value));
                }
            }
            Err(number) => {
                row.errors += 1;
                *row.error_kinds.entry(error_name(number)).or_default() += 1;
            }
        }
    }

    /// A call was entered and had not returned `wall_ns` later, when its thread or the watch ended.
    pub(crate) fn unfinished(&mut self, image: ImageId, call: CallNumber, wall_ns: u64) {
        let Some(CountedRow { row, .. }) = self.counted(image, call) else { return };
        row.in_flight += 1;
        row.open_ns = Some(row.open_ns.unwrap_or(0).saturating_add(wall_ns));
        row.wall_ns = row.wall_ns.saturating_add(wall_ns);
        row.max_ns = row.max_ns.max(wall_ns);
    }

    /// A call that was in progress when the watch began returned: it is in no distribution.
    pub(crate) fn entered_before(&mut self, image: ImageId, call: CallNumber, wall_ns: u64) {
        self.unfinished(image, call, wall_ns);
        if let Some(image) = self.image(image) {
            image.row(call).row.entered_before += 1;
        }
    }

    /// A call that was in progress when the watch began had not returned when it ended.
    pub(crate) fn unseen(&mut self, image: ImageId, call: CallNumber, wall_ns: u64) {
        self.unfinished(image, call, wall_ns);
        if let Some(image) = self.image(image) {
            image.row(call).unseen += 1;
        }
    }

    /// A call returned whose entry was not seen.
    pub(crate) fn headless(&mut self) {
        self.headless_calls += 1;
    }

    /// Whether this is a regular file that was not met before, and there is room for it.
    pub(crate) fn is_new(&self, file: &FileRef) -> bool {
        file.kind == FileKind::File && self.met.len() < self.most && !self.is_met(file)
    }

    /// Whether a file was noted.
    pub(crate) fn is_met(&self, file: &FileRef) -> bool {
        self.met.contains_key(file)
    }

    /// Notes the state of a regular file, or of a socket, at its first use, with nothing counted; where there is no
    /// room, its row is without it.
    pub(crate) fn note_file(&mut self, file: FileRef, as_it_is: FileUse) {
        if self.met.len() < self.most || self.is_met(&file) {
            self.met.insert(file, as_it_is);
        }
    }

    /// A call that returned had polled this many descriptors.
    pub(crate) fn asked(&mut self, image: ImageId, call: CallNumber, descriptors: u64) {
        let Some(image) = self.image(image) else { return };
        let asked = &mut image.row(call).row.asked;
        *asked = Some(asked.unwrap_or(0).saturating_add(descriptors));
    }

    /// A call that returned moved bytes from or to a file, or mapped them.
    pub(crate) fn moved(&mut self, image: ImageId, file: FileRef, way: Direction, bytes: u64) {
        let Some(Image { process, files, .. }) = self.images.get_mut(image.0) else { return };
        if !files.contains_key(&file) {
            if self.files >= self.most {
                self.lost_files += 1;
                return;
            }
            self.files += 1;
        }
        let met = &self.met;
        let row = files.entry(file).or_insert_with_key(|file| FileUse {
            pid: process.pid,
            exec: process.exec.clone(),
            kind: file.kind,
            path: file.path.clone(),
            ..met.get(file).cloned().unwrap_or_default()
        });
        let (calls, sum) = match way {
            Direction::Read => (&mut row.read_calls, &mut row.read_bytes),
            Direction::Write => (&mut row.write_calls, &mut row.write_bytes),
            Direction::Map => (&mut row.map_calls, &mut row.mapped_bytes),
        };
        *calls += 1;
        *sum = sum.saturating_add(bytes);
    }

    /// A call that was given a path returned.
    pub(crate) fn named(&mut self, image: ImageId, part: PathPart, wall_ns: u64) {
        let Some(Image { process, paths, .. }) = self.images.get_mut(image.0) else { return };
        if !paths.contains_key(&part) {
            if self.paths >= self.most {
                self.lost_paths += 1;
                return;
            }
            self.paths += 1;
        }
        let row =
            paths.entry(part).or_insert_with_key(|((abi, number), second, error, path)| PathUse {
                pid: process.pid,
                exec: process.exec.clone(),
                syscall: call_name(*abi, *number),
                second: *second,
                error: error.map(error_name),
                path: path.clone(),
                ..PathUse::default()
            });
        row.calls += 1;
        row.wall_ns = row.wall_ns.saturating_add(wall_ns);
    }

    /// Whether the calls of an image are counted.
    pub(crate) fn has_room_for(&self, image: ImageId) -> bool {
        image != NOWHERE
    }

    /// Whether a call that took so long is to be kept whole.
    pub(crate) fn is_slow(&self, image: ImageId, wall_ns: u64) -> bool {
        self.has_room_for(image) && self.slowest.admits(wall_ns)
    }

    /// Keeps a call whole, which is one of `image`.
    pub(crate) fn keep_slow(&mut self, image: ImageId, call: WholeCall) {
        let call = self.of_image(image, call);
        self.slowest.keep(call);
    }

    /// The slowest calls since they were taken before, without the numbers of their images.
    pub(crate) fn take_slowest(&mut self) -> Vec<WholeCall> {
        self.slowest.take().into_iter().map(|call| WholeCall { image: 0, ..call }).collect()
    }

    /// A call with the process that made it. Until the end, an image's place stands for its number.
    pub(crate) fn of_image(&self, image: ImageId, call: WholeCall) -> WholeCall {
        let Process { pid, exec, .. } = self.process(image);
        WholeCall { pid: *pid, exec: exec.clone(), image: image.0 as u32, ..call }
    }

    /// A thread of the image used this much.
    pub(crate) fn used(&mut self, image: ImageId, usage: Usage) {
        let Some(Image { process, .. }) = self.image(image) else { return };
        process.user_ns += usage.user_ns;
        process.system_ns += usage.system_ns;
        process.minor_faults += usage.minor_faults;
        process.major_faults += usage.major_faults;
        process.voluntary_switches += usage.voluntary_switches;
        process.involuntary_switches += usage.involuntary_switches;
    }

    /// The image's resident set has been this large.
    pub(crate) fn resident(&mut self, image: ImageId, bytes: u64) {
        let Some(Image { process, .. }) = self.image(image) else { return };
        process.max_rss_bytes = process.max_rss_bytes.max(bytes);
    }

    /// An image's index among those of a snapshot.
    pub(crate) fn place(&self, image: ImageId) -> usize {
        image.0
    }
}

impl Image {
    fn row(&mut self, call: CallNumber) -> &mut CountedRow {
        let process = &self.process;
        self.calls.entry(call).or_insert_with(|| {
            let (abi, number) = call;
            let syscall = call_name(abi, number);
            let returns_bytes = syscalls::returns_bytes(plain_name(&syscall));
            let returns_ready = syscalls::returns_ready(plain_name(&syscall));
            let never_returns = syscalls::never_returns(plain_name(&syscall));
            let (pid, exec) = (process.pid, process.exec.clone());
            let ready = returns_ready.then_some(0);
            let row = Call { pid, exec, syscall, ready, ..Call::default() };
            CountedRow { row, returns_bytes, returns_ready, never_returns, unseen: 0 }
        })
    }
}

impl Usage {
    /// The usage between the reading `earlier` and this one.
    pub(crate) fn since(self, earlier: Self) -> Self {
        Self {
            user_ns: self.user_ns.saturating_sub(earlier.user_ns),
            system_ns: self.system_ns.saturating_sub(earlier.system_ns),
            minor_faults: self.minor_faults.saturating_sub(earlier.minor_faults),
            major_faults: self.major_faults.saturating_sub(earlier.major_faults),
            voluntary_switches: self.voluntary_switches.saturating_sub(earlier.voluntary_switches),
            involuntary_switches: self
                .involuntary_switches
                .saturating_sub(earlier.involuntary_switches),
        }
    }
}

#[cfg(test)]
#[path = "tally_tests.rs"]
mod tests;
