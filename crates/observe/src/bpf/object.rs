//! The loaded BPF object: its knobs, its links, its maps as typed rows.
//!
//! Programs, maps and links belong to descriptors of this process, pinned nowhere: they disappear
//! with the process, also after SIGKILL.

mod adoption;
mod firing;
mod knobs;
mod settling;
#[cfg(test)]
pub(super) mod verified;
mod windows;

use std::cell::RefCell;
use std::ffi::OsStr;
use std::io::Read;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicU64, Ordering};

use iotomy_record::MissingFeature;
use iotomy_sys::map_batch;
use libbpf_rs::{
    Iter, Link, Map, MapCore, MapFlags, MapHandle, Object, OpenObject, RingBuffer,
    RingBufferBuilder,
};

use super::call_numbers::{FrequentStats, RareStats, WaitStats};
use super::condition;
use super::connection_rows::{ConnectionErrorKey, ConnectionKey, ConnectionRow, Track};
use super::file_numbers::FileStats;
use super::layout::{
    Attached, CallKey, Counters, Death, EXEC_LEN, ErrorCount, Fields, FileKey, FileName,
    FirstArgument, Image, Program, ThreadRow, Wire,
};

pub(super) use self::adoption::Adoption;
pub(super) use self::knobs::Knobs;
pub(super) use self::knobs::possible_cpus;
use self::knobs::{prepare, set_sizes};
use self::windows::STRIPES;
pub(super) use self::windows::{SERIES, Seen, Shutter};
use super::details::{FiringRow, PathKey, PathRow, RingFiringRow, SlowRow, SlowRows};
use super::embedded::{Embedded, embedded};
use super::features::{Feature, feature};
use super::loading::{Purpose, load};
use super::refusal::{forget_messages, refusal};
use super::refuse::Refusing;
use super::ring_programs;
use super::ring_rows::{
    RingErrorKey, RingHotFile, RingHotRow, RingKey, RingName, RingRequest, RingRow, RingSlot,
};
use super::user_stack::UserStack;
use super::without::{Refused, Without};
use crate::Selection;
use crate::filter::Filter;
use crate::variables::fact;

static OBJECT: Embedded = embedded!("trace");
static OBJECT_WITH_DETAILS: Embedded = embedded!("trace_details");
static OBJECT_WITH_FILTER: Embedded = embedded!("trace_where");
static SHARED: Embedded = embedded!("shared");

/// The action for a row that was visited.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RowAction {
    /// It stays, and may change.
    Kept,
    /// It has been taken over: the kernel need not keep it.
    Freed,
}

/// The object, loaded and perhaps attached.
pub(crate) struct Session {
    object: Object,
    links: Vec<(String, Link)>,
    /// Tells of threads that ended, if this kernel has such.
    ring: Option<(RingBuffer<'static>, OwnedFd)>,
    selection: Selection,
    /// Whether the filter asks for the names of programs.
    asks_for_images: bool,
    /// The end of io_uring's requests that is not observed, once the programs are attached.
    unseen_end: Option<&'static str>,
    /// Whether a call can fulfil a condition that ends the watch, or that the viewer is told of.
    can_fire: bool,
    /// The second.
    goes_on: bool,
    /// How many of the slowest calls are kept.
    most_slowest: u32,
    /// Whether just calls count that are entered in a window.
    samples: bool,
    /// What this kernel has refused.
    without: RefCell<Without>,
    /// Tables of objects beside this one that are read while the watch goes on, by name.
    beside: RefCell<Vec<(&'static str, MapHandle)>>,
}

thread_local! {
    /// Threads that ended since the last query.
    static DEAD: RefCell<Vec<u32>> = const { RefCell::new(Vec::new()) };
}

/// The program that closes the books of a thread that ends: the first to be attached, the last to go.
const LAST_HEARD: &str = "sched_switch";

/// In place of a thread's number: a process is to be adopted.
pub(super) const NEWCOMER: u32 = 0;

/// Tables that could not be read to their end.
static UNREAD_TABLES: AtomicU64 = AtomicU64::new(0);

/// The maps that the programs of all objects go on, made before any of these is loaded.
pub(crate) struct Shared {
    object: Object,
    /// What is left out of all objects.
    pub(super) without: Without,
}

/// Without these no call is counted.
const NEEDED: [&str; 1] = ["task iterators"];

impl Shared {
    /// Makes them.
    ///
    /// # Errors
    /// The refused call and the kernel's error, in a line.
    pub(super) fn load(knobs: &Knobs, without: &Without) -> Result<Self, Refused> {
        const PURPOSE: Purpose = Purpose { attempt: "make the shared BPF maps", needs: &[] };
        let unpacked = SHARED.unpack()?;
        let mut open = unpacked.open()?;
        set_sizes(&mut open, knobs).map_err(|error| refusal(PURPOSE.attempt, &error))?;
        let object = load(open, &PURPOSE, without)?;
        Ok(Self { object, without: without.clone() })
    }

    /// Gives an object that is not loaded yet the maps instead of its own.
    ///
    /// # Errors
    /// As libbpf has them.
    pub(super) fn reuse_maps(&self, open: &mut OpenObject) -> Result<(), libbpf_rs::Error> {
        // Constants are each object's own.
        let is_constant = |name: &OsStr| name.to_string_lossy().starts_with(".rodata");
        let is_shared =
            |name: &OsStr| !is_constant(name) && self.object.maps().any(|map| map.name() == name);
        for mut to in open.maps_mut().filter(|to| is_shared(to.name())) {
            let own = map(&self.object, &to.name().to_string_lossy());
            to.reuse_fd(own.as_fd())?;
        }
        Ok(())
    }
}

impl Session {
    /// Loads the object, with maps of its own or `shared` ones; nothing is watched yet.
    ///
    /// # Errors
    /// The refused call and the kernel's error, in a line.
    pub(super) fn load(
        knobs: &Knobs,
        shared: Option<&Shared>,
        without: &Without,
    ) -> Result<Self, Refused> {
        match Self::load_with(knobs, shared, without, true) {
            // It has no address for what tells a task's work from an interrupt's.
            Err(refused) if knobs.keeps_calls() && refused.text.contains("kernel symbol") => {
                Self::load_with(knobs, shared, without, false)
            }
            loaded => loaded,
        }
    }

    /// The same; `contexts`: whether it is told in which context a thread is woken.
    fn load_with(
        knobs: &Knobs,
        shared: Option<&Shared>,
        without: &Without,
        contexts: bool,
    ) -> Result<Self, Refused> {
        const PURPOSE: Purpose = Purpose { attempt: "load the BPF programs", needs: &NEEDED };
        let details = knobs.by_path || knobs.by_peer || knobs.slowest > 0;
        // Control groups are only in the objects that have more of everything.
        let unpacked = match details || !knobs.selection.cgroups.is_empty() {
            _ if !knobs.filter.is_none() => {
                let mut unpacked = OBJECT_WITH_FILTER.unpack()?;
                unpacked.bytes = condition::with_conditions(&unpacked.bytes, &knobs.filter)?;
                unpacked
            }
            true => OBJECT_WITH_DETAILS.unpack()?,
            false => OBJECT.unpack()?,
        };
        let mut open = unpacked.open()?;
        prepare(&mut open, knobs, contexts)
            .and_then(|()| shared.map_or(Ok(()), |shared| shared.reuse_maps(&mut open)))
            .map_err(|error| refusal("set up the BPF maps", &error))?;
        let object = load(open, &PURPOSE, without)?;
        let ring = match without.lacks(feature("ring buffers")) {
            true => None,
            false => Some(ring_of(&object)?),
        };
        let selection = knobs.selection.clone();
        let session = Self {
            object,
            links: Vec::new(),
            ring,
            selection,
            asks_for_images: knobs.filter.uses(fact::IMAGE),
            unseen_end: None,
            can_fire: knobs.filter.has_until(),
            goes_on: knobs.filter.pause().is_some(),
            most_slowest: knobs.slowest,
            samples: knobs.sampled,
            without: RefCell::new(without.clone()),
            beside: RefCell::default(),
        };
        session.assert_sizes();
        session.fill_selection()?;
        session.fill_patterns(&knobs.filter)?;
        Ok(session)
    }

    /// Whether it is the object that keeps what is asked for of single calls.
    pub(super) fn has_details(&self) -> bool {
        self.object.maps().any(|map| map.name() == "paths")
    }

    /// Whether it is the object that can ask conditions.
    fn has_filter(&self) -> bool {
        self.object.maps().any(|map| map.name() == "firings")
    }

    /// Both sides must agree on the wire structs; a mismatch is a defect of this program.
    fn assert_sizes(&self) {
        let check = |name, key, value| {
            let map = map(&self.object, name);
            assert_eq!(
                (map.key_size() as usize, map.value_size() as usize),
                (key, value),
                "{name}"
            );
        };
        check("calls", CallKey::SIZE, RareStats::SIZE);
        check("frequent", CallKey::SIZE, FrequentStats::SIZE);
        check("waits", CallKey::SIZE, WaitStats::SIZE);
        check("errors", CallKey::SIZE, ErrorCount::SIZE);
        check("carries", CallKey::SIZE, ErrorCount::SIZE);
        check("asked", CallKey::SIZE, ErrorCount::SIZE);
        check("images", 4, Image::SIZE);
        check("attached", 4, Attached::SIZE);
        check("programs", 4, Program::SIZE);
        check("titles", 4, FirstArgument::SIZE);
        check("files", FileKey::SIZE, FileStats::SIZE);
        check("file_names", FileKey::SIZE, FileName::SIZE);
        check("thread_rows", 4, ThreadRow::SIZE);
        check("ring_requests", 8, RingRequest::SIZE);
        check("ring_named", RingName::SIZE, 8);
        check("ring_overflows", RingName::SIZE, 8);
        check("ring_operations", RingKey::SIZE, RingRow::SIZE);
        check("ring_errors", RingErrorKey::SIZE, 8);
        check("ring_files", FileKey::SIZE, FileStats::SIZE);
        check(".bss.ring_slots", 4, (1 << 11) * RingSlot::SIZE);
        check(".bss.ring_rows", 4, 64 * RingHotRow::SIZE);
        check(".bss.ring_files", 4, 64 * RingHotFile::SIZE);
        check(".bss", 4, Counters::SIZE);
        if self.samples {
            check(".data.window", 4, 3 * 8);
            check(".bss.series", 4, STRIPES * SERIES * Seen::SIZE);
        }
        if self.has_details() {
            check("paths", PathKey::SIZE, PathRow::SIZE);
            check("connections", ConnectionKey::SIZE, ConnectionRow::SIZE);
            check("tracked", 8, Track::SIZE);
            check("connection_errors", ConnectionErrorKey::SIZE, 8);
            check("directories", FileKey::SIZE, FileName::SIZE);
            check("slowest", 4, SlowRows::SIZE);
            check("user_stacks", 4, UserStack::SIZE);
        }
        if self.has_filter() {
            check("executed_names", 4, EXEC_LEN);
            check("firings", 4, FiringRow::SIZE);
            check("ring_firings", 4, RingFiringRow::SIZE);
        }
    }

    /// Attaches every tracepoint program; nothing is watched until something is adopted.
    ///
    /// # Errors
    /// The program that could not be attached and the kernel's error.
    pub(super) fn attach(&mut self) -> Result<(), String> {
        // A thread whose books were begun before its last switch is observed would keep them open
        // for ever.
        for is_first in [true, false] {
            for program in self.object.progs_mut() {
                let name = program.name().to_string_lossy().into_owned();
                let is_ready = !is_iterator(&name) && program.autoload();
                if !is_ready || (name == LAST_HEARD) != is_first {
                    continue;
                }
                match program.attach() {
                    Ok(link) => self.links.push((name, link)),
                    // This kernel does not have the tracepoint, or has it with other arguments.
                    Err(_) if name.starts_with(ring_programs::PREFIX) => forget_messages(),
                    Err(error) => return Err(refusal(&format!("attach {name}"), &error)),
                }
            }
        }
        self.unseen_end = ring_programs::unseen_end(self.links.iter().map(|(name, _)| &**name));
        if self.unseen_end.is_some() {
            self.links.retain(|(name, _)| !ring_programs::needs_both_ends(name));
        }
        Ok(())
    }

    /// Whether the submission and the completion of the requests of io_uring are observed.
    pub(super) fn sees_rings(&self) -> bool {
        self.unseen_end.is_none()
    }

    /// The one of them that is not.
    pub(super) fn unseen_end(&self) -> Option<&'static str> {
        self.unseen_end
    }

    /// Tells the programs which strings the filter asks for.
    fn fill_patterns(&self, filter: &Filter) -> Result<(), String> {
        for (at, test) in (0u32..).zip(filter.tests()) {
            map(&self.object, "patterns")
                .update(&at.to_ne_bytes(), &condition::wire(&test.pattern), MapFlags::ANY)
                .map_err(|error| refusal("set the filter", &error))?;
        }
        Ok(())
    }

    /// Runs an iterator over the tasks, and returns what it wrote.
    ///
    /// # Errors
    /// The kernel's error.
    pub(super) fn written(&self, name: &'static str) -> Result<Vec<u8>, String> {
        written(&self.object, name)
    }

    /// One row of a table, if it is there.
    pub(super) fn row<Row: Wire>(&self, table: &str, key: &[u8]) -> Option<Row> {
        let value = map(&self.object, table).lookup(key, MapFlags::ANY).ok()??;
        Some(Row::read(&mut Fields(&value)))
    }

    /// The calls that took longest, since they were taken before if they were.
    pub(super) fn slowest(&self) -> Vec<SlowRow> {
        if !self.has_details() {
            return Vec::new();
        }
        let turn = self.row::<u32>(firing::TURN, &0u32.to_ne_bytes()).unwrap_or(0).min(1);
        self.slowest_of(turn)
    }

    /// The counters of the kernel side, now.
    pub(super) fn counters(&self) -> Counters {
        let bytes = map(&self.object, ".bss").lookup(&0u32.to_ne_bytes(), MapFlags::ANY);
        Counters::read(&mut Fields(&bytes.ok().flatten().unwrap_or_default()))
    }

    /// The CPUs on which the threads that left their images might run, a bit each; none where there
    /// are more than it has bits.
    pub(super) fn allowed_cpus(&self) -> Vec<u64> {
        const BITS: u32 = 64 * 16;
        let words = map(&self.object, ".data.cpus").lookup(&0u32.to_ne_bytes(), MapFlags::ANY);
        let words = words.ok().flatten().filter(|_| possible_cpus() <= BITS).unwrap_or_default();
        let mut left = Fields(&words);
        std::iter::from_fn(|| (!left.0.is_empty()).then(|| left.u64())).collect()
    }

    /// Calls for which the condition of the filter divided by zero.
    pub(super) fn divided_by_zero(&self) -> u64 {
        self.where_counters()[0]
    }

    /// Calls for which the condition that ends the watch divided by zero.
    pub(super) fn end_divided_by_zero(&self) -> u64 {
        self.where_counters()[2]
    }

    /// Calls for whose group there was no room.
    pub(super) fn lost_groups(&self) -> u64 {
        self.where_counters()[1]
    }

    /// `struct where_counters` of `where.h`.
    fn where_counters(&self) -> [u64; 3] {
        let counters = self.object.maps().find(|map| map.name() == ".data.where");
        let bytes = counters.and_then(|map| map.lookup(&0u32.to_ne_bytes(), MapFlags::ANY).ok()?);
        let bytes = bytes.unwrap_or_default();
        let mut fields = Fields(&bytes);
        std::array::from_fn(|_| fields.u64())
    }

    /// Events for which programs did not run, since they were running already on that CPU, and
    /// tables that could not be read. Wake-ups are not among them: an interrupt in the middle of
    /// one makes another, of any task; where that was a watched one, its run queue delay is counted
    /// as sleep.
    pub(super) fn missed_events(&self) -> u64 {
        let counting = |name: &OsStr| {
            let name = name.to_string_lossy();
            !name.starts_with("sched_wak") && !is_iterator(&name)
        };
        let programs = self.object.progs_mut().filter(|program| program.autoload());
        let programs = programs.filter(|program| counting(program.name()));
        let missed = programs.filter_map(|program| {
            let name = format!("/proc/self/fdinfo/{}", program.as_fd().as_raw_fd());
            let info = iotomy_host::kernel_text(name).ok()?;
            let line = info.lines().find_map(|line| line.strip_prefix("recursion_misses:"))?;
            line.trim().parse::<u64>().ok()
        });
        missed.sum::<u64>() + UNREAD_TABLES.load(Ordering::Relaxed)
    }

    /// The entries of a section of data that is an array.
    pub(super) fn entries<Row: Wire>(&self, section: &str) -> Vec<Row> {
        let bytes = map(&self.object, section).lookup(&0u32.to_ne_bytes(), MapFlags::ANY);
        let bytes = bytes.ok().flatten().unwrap_or_else(|| {
            UNREAD_TABLES.fetch_add(1, Ordering::Relaxed);
            Vec::new()
        });
        bytes.chunks_exact(Row::SIZE).map(|bytes| Row::read(&mut Fields(bytes))).collect()
    }

    /// Shows every row of a table to `visit`, one at a time, and frees those it has taken.
    pub(super) fn visit<Key: Wire, Row: Wire>(
        &self,
        table: &str,
        visit: impl FnMut(Key, Row) -> RowAction,
    ) {
        visit_rows(&self.object, table, visit);
    }

    /// Makes a table of an object beside this one known.
    ///
    /// # Errors
    /// There is no descriptor for it.
    pub(super) fn add_beside(&self, name: &'static str, table: &Map<'_>) -> Result<(), String> {
        let handle = MapHandle::try_from(table)
            .map_err(|error| refusal(&format!("share the BPF map {name}"), &error))?;
        self.beside.borrow_mut().push((name, handle));
        Ok(())
    }

    /// Whether there are such tables.
    pub(super) fn has_beside(&self) -> bool {
        !self.beside.borrow().is_empty()
    }

    /// As [`Session::visit`], of such a table; nothing where there is none.
    pub(super) fn visit_beside<Key: Wire, Row: Wire>(
        &self,
        name: &str,
        visit: impl FnMut(Key, Row) -> RowAction,
    ) {
        if let Some((_, table)) = self.beside.borrow().iter().find(|(own, _)| *own == name) {
            visit_table(table.as_fd(), visit);
        }
    }

    /// The entry of such a table that is a section of data.
    pub(super) fn section_beside<Row: Wire>(&self, name: &str) -> Option<Row> {
        let beside = self.beside.borrow();
        let (_, section) = beside.iter().find(|(own, _)| *own == name)?;
        let bytes = section.lookup(&0u32.to_ne_bytes(), MapFlags::ANY).ok()??;
        Some(Row::read(&mut Fields(&bytes)))
    }

    /// A descriptor that is readable when many threads have ended, or the last one has. Without it, that has to be
    /// looked after.
    pub(super) fn doorbell(&self) -> Option<BorrowedFd<'_>> {
        self.ring.as_ref().map(|(_, doorbell)| doorbell.as_fd())
    }

    /// Notes that a feature of the kernel was refused after the programs were loaded.
    pub(super) fn lack(&self, feature: &'static Feature, answer: String) {
        self.without.borrow_mut().add(feature, answer);
    }

    pub(super) fn lacks(&self, feature: &Feature) -> bool {
        self.without.borrow().lacks(feature)
    }

    /// All that was refused, with the kernel's answers.
    pub(super) fn refused(&self) -> Vec<(&'static Feature, String)> {
        self.without.borrow().refused()
    }

    /// What the record lacks because of that.
    pub(super) fn missing(&self) -> Vec<MissingFeature> {
        self.without.borrow().missing()
    }

    /// The threads that ended since last asked; not what else user space is woken for.
    pub(super) fn dead_threads(&self) -> Vec<u32> {
        match &self.ring {
            Some((ring, _)) => _ = ring.consume_raw(),
            None if self.selection.is_open_ended() => return vec![NEWCOMER],
            None => {}
        }
        DEAD.take()
    }
}

/// The ring that tells of threads that ended, and its descriptor.
fn ring_of(object: &Object) -> Result<(RingBuffer<'static>, OwnedFd), String> {
    let mut builder = RingBufferBuilder::new();
    let deaths = map(object, "deaths");
    let ring = builder
        .add(&deaths, |bytes| {
            let death = Death::read(&mut Fields(bytes));
            DEAD.with_borrow_mut(|dead| dead.push(death.thread));
            0
        })
        .map(|_| ())
        .and_then(|()| builder.build())
        .map_err(|error| refusal("map the BPF ring buffer", &error))?;
    let doorbell = deaths.as_fd().try_clone_to_owned();
    let doorbell = doorbell.map_err(|e| format!("cannot keep the BPF ring buffer: {e}"))?;
    Ok((ring, doorbell))
}

/// Shows every row of a table to `visit`, one at a time, and frees those it has taken.
pub(super) fn visit_rows<Key: Wire, Row: Wire>(
    object: &Object,
    table: &str,
    visit: impl FnMut(Key, Row) -> RowAction,
) {
    visit_table(map(object, table).as_fd(), visit);
}

fn visit_table<Key: Wire, Row: Wire>(
    table: BorrowedFd<'_>,
    mut visit: impl FnMut(Key, Row) -> RowAction,
) {
    let visit = |key: &[u8], value: &[u8]| {
        visit(Key::read(&mut Fields(key)), Row::read(&mut Fields(value))) == RowAction::Freed
    };
    let visited = match Refusing::from_environment().operation("command", "batch") {
        None => map_batch::visit_entries(table, visit),
        Some(_) => map_batch::visit_singly(table, visit),
    };
    // Rows that could not be read are lost, how many is unknown: one at least.
    if visited.is_err() {
        UNREAD_TABLES.fetch_add(1, Ordering::Relaxed);
    }
}

/// Runs an iterator over all tasks.
pub(super) fn iterate(object: &Object, name: &'static str) -> Result<(), String> {
    // These write nothing: reading to the end is what runs them.
    written(object, name).map(drop)
}

/// Runs an iterator over all tasks, and returns what it wrote.
pub(super) fn written(object: &Object, name: &'static str) -> Result<Vec<u8>, String> {
    let mut programs = object.progs_mut();
    let program = programs.find(|p| p.name() == name).expect("the object has its iterators");
    let run = || -> Result<Vec<u8>, libbpf_rs::Error> {
        let link = program.attach()?;
        let mut bytes = Vec::new();
        Iter::new(&link)?.read_to_end(&mut bytes)?;
        Ok(bytes)
    };
    run().map_err(|error| refusal(&format!("run {name}"), &error))
}

/// Whether the object has a program of this name, loaded.
pub(super) fn is_loaded(object: &Object, name: &str) -> bool {
    object.progs_mut().any(|program| program.name() == name && program.autoload())
}

/// Programs that user space runs, over all tasks.
fn is_iterator(name: &str) -> bool {
    ["adopt", "settle", "measure_open"].contains(&name) || shows(name)
}

/// Those that only show what has been counted.
fn shows(name: &str) -> bool {
    name.starts_with("snapshot_")
}

pub(super) fn map<'a>(object: &'a Object, name: &str) -> Map<'a> {
    object.maps().find(|map| is_called(map.name(), name)).expect("the object has its maps")
}

/// libbpf puts the object's name in front of `.bss`.
fn is_called(name: &OsStr, wanted: &str) -> bool {
    let name = name.to_string_lossy();
    name == wanted || (wanted == ".bss" && name.ends_with(".bss"))
}
