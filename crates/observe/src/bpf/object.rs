//! The loaded BPF object: its knobs, its links, its maps as typed rows.
//!
//! Programs, maps and links belong to descriptors of this process, pinned nowhere: they disappear
//! with the process, also after SIGKILL.

mod settling;
#[cfg(test)]
pub(super) mod verified;

use std::cell::RefCell;
use std::ffi::OsStr;
use std::hash::{BuildHasher, RandomState};
use std::io::Read;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicU64, Ordering};

use iotomy_host::Cgroup;
use iotomy_sys::map_batch;
use libbpf_rs::{
    ErrorKind, Iter, Link, Map, MapCore, MapFlags, Object, ObjectBuilder, OpenMapMut, OpenObject,
    PrintLevel, RingBuffer, RingBufferBuilder,
};

use super::condition;
use super::layout::{
    Attached, CallKey, Counters, Death, ErrorCount, Fields, FileKey, FileName, FileStats,
    FrequentStats, Image, Program, RareStats, ThreadRow, WaitStats, Wire,
};

use super::details::{PathKey, PathRow, SlowRow, SlowRows};
use crate::Selection;
use crate::filter::Filter;

/// Eight-byte aligned, as an ELF reader wants it.
#[repr(C, align(8))]
pub(super) struct Aligned<Bytes: ?Sized>(pub(super) Bytes);

static OBJECT: &Aligned<[u8]> = &Aligned(*include_bytes!(concat!(env!("OUT_DIR"), "/trace.bpf.o")));
static OBJECT_WITH_CGROUPS: &Aligned<[u8]> =
    &Aligned(*include_bytes!(concat!(env!("OUT_DIR"), "/trace_cgroups.bpf.o")));
static OBJECT_WITH_DETAILS: &Aligned<[u8]> =
    &Aligned(*include_bytes!(concat!(env!("OUT_DIR"), "/trace_details.bpf.o")));
static OBJECT_WITH_FILTER: &Aligned<[u8]> =
    &Aligned(*include_bytes!(concat!(env!("OUT_DIR"), "/trace_where.bpf.o")));
static SHARED: &Aligned<[u8]> =
    &Aligned(*include_bytes!(concat!(env!("OUT_DIR"), "/shared.bpf.o")));

/// The settings that are fixed before loading.
#[derive(Debug, Clone)]
pub(super) struct Knobs {
    pub(super) by_file: bool,
    pub(super) by_path: bool,
    pub(super) by_thread: bool,
    /// How many of the slowest calls to keep whole.
    pub(super) slowest: u32,
    pub(super) whole_machine: bool,
    /// A bit a call to count, of the 64-bit and of the 32-bit calls; `None` for all.
    pub(super) wanted: Option<[[u64; 8]; 2]>,
    /// How the arguments of a call name descriptors, by ABI and number.
    pub(super) transfers: [[u8; 512]; 2],
    /// How the arguments of a call name paths, by ABI and number.
    pub(super) paths: [[u16; 512]; 2],
    /// The argument of each call that is a descriptor, + 1, by ABI and number.
    pub(super) descriptors: [[u8; 512]; 2],
    /// Of the wanted calls, those to count.
    pub(super) filter: Filter,
    /// Most rows a table keeps.
    pub(super) rows: u32,
    /// Whether snapshots of the running counts will be taken.
    pub(super) looked_at: bool,
    /// The running processes to watch.
    pub(super) selection: Selection,
}

/// Which tasks the next run of `adopt` begins to watch.
#[derive(Debug, Clone, Copy)]
pub(super) enum Adoption {
    /// A child held in front of its exec.
    Launcher(u32),
    /// One thread.
    Thread(u32),
    /// Every process but this one.
    Machine,
    /// The selected processes.
    Selected,
}

/// The numbers of `trace.h` for how far `adopt` has come with the selected processes.
const GATHERING: u32 = 1;
const FOLLOWING: u32 = 2;

/// Most runs of `adopt` in a row: each finds what those made that the one before has found, where
/// ids do not go up.
const MOST_PASSES: usize = 16;

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
    ring: RingBuffer<'static>,
    doorbell: OwnedFd,
    selection: Selection,
    /// Programs that are not loaded.
    left_out: Vec<String>,
}

thread_local! {
    /// Threads that ended since the last query.
    static DEAD: RefCell<Vec<u32>> = const { RefCell::new(Vec::new()) };
}

/// The program that closes the books of a thread that ends: the first to be attached, the last to go.
const LAST_HEARD: &str = "sched_switch";

/// Tables that could not be read to their end.
static UNREAD_TABLES: AtomicU64 = AtomicU64::new(0);

thread_local! {
    /// The last message of libbpf: the reason of a refusal, which its error codes lack. It logs in
    /// the calling thread, and objects are loaded concurrently.
    static LOG: RefCell<Vec<String>> = const { RefCell::new(Vec::new()) };
}

/// The maps that the programs of all objects go on, made before any of these is loaded.
pub(crate) struct Shared(Object);

impl Shared {
    /// Makes them.
    ///
    /// # Errors
    /// The refused call and the kernel's error, in a line.
    pub(super) fn load() -> Result<Self, String> {
        let object = open(&SHARED.0)?.load();
        object.map(Self).map_err(|error| refusal("make the shared BPF maps", &error))
    }

    /// Gives an object that is not loaded yet the maps instead of its own.
    ///
    /// # Errors
    /// As libbpf has them.
    pub(super) fn reuse_maps(&self, open: &mut OpenObject) -> Result<(), libbpf_rs::Error> {
        let is_shared = |name: &OsStr| self.0.maps().any(|map| map.name() == name);
        for mut to in open.maps_mut().filter(|to| is_shared(to.name())) {
            let own = map(&self.0, &to.name().to_string_lossy());
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
    pub(super) fn load(knobs: &Knobs, shared: Option<&Shared>) -> Result<Self, String> {
        match Self::load_with(knobs, shared, true) {
            // It has no address for what tells a task's work from an interrupt's.
            Err(reason) if knobs.slowest > 0 && reason.contains("kernel symbol") => {
                Self::load_with(knobs, shared, false)
            }
            loaded => loaded,
        }
    }

    /// The same; `contexts`: whether it is told in which context a thread is woken.
    fn load_with(knobs: &Knobs, shared: Option<&Shared>, contexts: bool) -> Result<Self, String> {
        let filtered;
        let details = knobs.by_path || knobs.slowest > 0;
        let bytes = match (details, knobs.selection.cgroups.is_empty()) {
            _ if !knobs.filter.is_none() => {
                filtered = condition::with_condition(&OBJECT_WITH_FILTER.0, &knobs.filter.code)?;
                &filtered
            }
            (true, _) => &OBJECT_WITH_DETAILS.0,
            (false, true) => &OBJECT.0,
            (false, false) => &OBJECT_WITH_CGROUPS.0,
        };
        let mut open = open(bytes)?;
        let left_out = prepare(&mut open, knobs, contexts)
            .and_then(|left_out| {
                shared.map_or(Ok(()), |shared| shared.reuse_maps(&mut open)).map(|()| left_out)
            })
            .map_err(|error| refusal("set up the BPF maps", &error))?;
        let object = open.load().map_err(|error| refusal("load the BPF programs", &error))?;
        let mut builder = RingBufferBuilder::new();
        let deaths = map(&object, "deaths");
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
        let selection = knobs.selection.clone();
        let session = Self { object, links: Vec::new(), ring, doorbell, selection, left_out };
        session.assert_sizes();
        session.fill_selection()?;
        session.fill_patterns(&knobs.filter)?;
        Ok(session)
    }

    /// Whether it is the object that keeps what is asked for of single calls.
    pub(super) fn has_details(&self) -> bool {
        self.object.maps().any(|map| map.name() == "paths")
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
        check("files", FileKey::SIZE, FileStats::SIZE);
        check("file_names", FileKey::SIZE, FileName::SIZE);
        check("thread_rows", 4, ThreadRow::SIZE);
        check(".bss", 4, Counters::SIZE);
        if self.has_details() {
            check("paths", PathKey::SIZE, PathRow::SIZE);
            check("directories", FileKey::SIZE, FileName::SIZE);
            check("slowest", 4, SlowRows::SIZE);
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
                let is_ready = !is_iterator(&name) && !self.left_out.contains(&name);
                if !is_ready || (name == LAST_HEARD) != is_first {
                    continue;
                }
                let link = program.attach();
                let link = link.map_err(|error| refusal(&format!("attach {name}"), &error))?;
                self.links.push((name, link));
            }
        }
        Ok(())
    }

    /// Begins to watch what `whom` names; threads made from now on by watched ones follow.
    ///
    /// # Errors
    /// The kernel's error.
    pub(super) fn adopt(&self, whom: Adoption) -> Result<(), String> {
        if !matches!(whom, Adoption::Thread(_)) && self.has_details() {
            map(&self.object, ".data.slow_floor")
                .update(&0u32.to_ne_bytes(), &0u64.to_ne_bytes(), MapFlags::ANY)
                .map_err(|error| refusal("keep the slowest calls", &error))?;
        }
        match whom {
            Adoption::Launcher(pid) => self.ask_for([0, 0, pid])?,
            Adoption::Thread(tid) => self.ask_for([0, tid, 0])?,
            Adoption::Machine => self.ask_for([GATHERING, 0, 0])?,
            Adoption::Selected => {
                self.ask_for([GATHERING, 0, 0])?;
                self.adopt_newcomers()?;
                return self.ask_for([FOLLOWING, 0, 0]);
            }
        }
        iterate(&self.object, "adopt")
    }

    /// Watches the selected processes that are not yet.
    ///
    /// # Errors
    /// The kernel's error.
    pub(super) fn adopt_newcomers(&self) -> Result<(), String> {
        for _ in 0..MOST_PASSES {
            let before = self.counters().adopted;
            iterate(&self.object, "adopt")?;
            if self.counters().adopted == before {
                break;
            }
        }
        Ok(())
    }

    /// `struct adoption` of `trace.h`.
    fn ask_for(&self, adoption: [u32; 3]) -> Result<(), String> {
        map(&self.object, ".data.adoption")
            .update(&0u32.to_ne_bytes(), &adoption.map(u32::to_ne_bytes).concat(), MapFlags::ANY)
            .map_err(|error| refusal("ask for tasks to watch", &error))
    }

    /// Tells the programs what is selected.
    fn fill_selection(&self) -> Result<(), String> {
        let put = |table: &str, key: &[u8], row: &[u8]| {
            map(&self.object, table)
                .update(key, row, MapFlags::ANY)
                .map_err(|error| refusal("select processes to watch", &error))
        };
        let one = 1u32.to_ne_bytes();
        for pid in &self.selection.processes {
            put("selected_pids", &pid.to_ne_bytes(), &one)?;
        }
        for (at, name) in self.selection.names.iter().enumerate() {
            let table: Vec<u8> = name.table().into_iter().flat_map(u64::to_ne_bytes).collect();
            put("selected_names", &(at as u32).to_ne_bytes(), &table)?;
        }
        for Cgroup { path, hierarchy, id, .. } in &self.selection.cgroups {
            let key = [id.to_ne_bytes(), u64::from(*hierarchy).to_ne_bytes()].concat();
            put("selected_cgroups", &key, &one)?;
            let mut place = [0; PLACE_BYTES];
            place[..4].copy_from_slice(&hierarchy.to_ne_bytes());
            // One of a longer path is not known again when it is made anew; with its end's zero.
            if path.len() < PLACE_BYTES - 4 {
                place[4..][..path.len()].copy_from_slice(path.as_bytes());
                put("selected_places", &place, &one)?;
            }
        }
        Ok(())
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

    /// Runs an iterator over the tasks, or over the rows of a table, and returns what it wrote.
    ///
    /// # Errors
    /// The kernel's error.
    pub(super) fn written(
        &self,
        name: &'static str,
        table: Option<&str>,
    ) -> Result<Vec<u8>, String> {
        written(&self.object, name, table)
    }

    /// One row of a table, if it is there.
    pub(super) fn row<Row: Wire>(&self, table: &str, key: &[u8]) -> Option<Row> {
        let value = map(&self.object, table).lookup(key, MapFlags::ANY).ok()??;
        Some(Row::read(&mut Fields(&value)))
    }

    /// The calls that took longest.
    pub(super) fn slowest(&self) -> Vec<SlowRow> {
        if !self.has_details() {
            return Vec::new();
        }
        let rows = self.row::<SlowRows>("slowest", &0u32.to_ne_bytes());
        rows.map_or_else(Vec::new, |rows| rows.0)
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

    /// Calls for whose group there was no room.
    pub(super) fn lost_groups(&self) -> u64 {
        self.where_counters()[1]
    }

    /// `struct where_counters` of `where.h`.
    fn where_counters(&self) -> [u64; 2] {
        let counters = self.object.maps().find(|map| map.name() == ".data.where");
        let bytes = counters.and_then(|map| map.lookup(&0u32.to_ne_bytes(), MapFlags::ANY).ok()?);
        let bytes = bytes.unwrap_or_default();
        let mut fields = Fields(&bytes);
        [fields.u64(), fields.u64()]
    }

    /// Events for which programs did not run, since they were running already on that CPU, and
    /// tables that could not be read. Wake-ups are not among them: an interrupt in the middle of
    /// one makes another, of any task; where that was a watched one, its run queue delay is counted
    /// as sleep.
    pub(super) fn missed_events(&self) -> u64 {
        let counting = |name: &OsStr| {
            let name = name.to_string_lossy();
            let is_loaded = !self.left_out.iter().any(|one| *one == name);
            is_loaded && !name.starts_with("sched_wak") && !is_iterator(&name)
        };
        let programs = self.object.progs_mut().filter(|program| counting(program.name()));
        let missed = programs.filter_map(|program| {
            let name = format!("/proc/self/fdinfo/{}", program.as_fd().as_raw_fd());
            let info = std::fs::read_to_string(name).ok()?;
            let line = info.lines().find_map(|line| line.strip_prefix("recursion_misses:"))?;
            line.trim().parse::<u64>().ok()
        });
        missed.sum::<u64>() + UNREAD_TABLES.load(Ordering::Relaxed)
    }

    /// Shows every row of a table to `visit`, one at a time, and frees those it has taken.
    pub(super) fn visit<Key: Wire, Row: Wire>(
        &self,
        table: &str,
        visit: impl FnMut(Key, Row) -> RowAction,
    ) {
        visit_rows(&self.object, table, visit);
    }

    /// A descriptor that is readable when many threads have ended, or the last one has.
    pub(super) fn doorbell(&self) -> BorrowedFd<'_> {
        self.doorbell.as_fd()
    }

    /// The threads that ended since last asked.
    pub(super) fn dead_threads(&self) -> Vec<u32> {
        self.ring.consume_raw();
        DEAD.take()
    }
}

/// Shows every row of a table to `visit`, one at a time, and frees those it has taken.
pub(super) fn visit_rows<Key: Wire, Row: Wire>(
    object: &Object,
    table: &str,
    mut visit: impl FnMut(Key, Row) -> RowAction,
) {
    let table = map(object, table);
    let visited = map_batch::visit_entries(table.as_fd(), |key, value| {
        visit(Key::read(&mut Fields(key)), Row::read(&mut Fields(value))) == RowAction::Freed
    });
    // Rows that could not be read are lost, how many is unknown: one at least.
    if visited.is_err() {
        UNREAD_TABLES.fetch_add(1, Ordering::Relaxed);
    }
}

/// Opens an object that is part of this program, and collects libbpf's messages about it.
pub(super) fn open(bytes: &[u8]) -> Result<OpenObject, String> {
    libbpf_rs::set_print(Some((PrintLevel::Warn, |_, text| {
        let _ = LOG.try_with(|log| log.borrow_mut().push(text.trim_end().to_owned()));
    })));
    ObjectBuilder::default()
        .name("iotomy")
        .and_then(|builder| builder.open_memory(bytes))
        .map_err(|error| refusal("open the BPF object", &error))
}

/// Runs an iterator over all tasks.
pub(super) fn iterate(object: &Object, name: &'static str) -> Result<(), String> {
    // These write nothing: reading to the end is what runs them.
    written(object, name, None).map(drop)
}

/// Runs an iterator over the tasks, or over the rows of a table, and returns what it wrote.
pub(super) fn written(
    object: &Object,
    name: &'static str,
    table: Option<&str>,
) -> Result<Vec<u8>, String> {
    let mut programs = object.progs_mut();
    let program = programs.find(|p| p.name() == name).expect("the object has its iterators");
    let run = || -> Result<Vec<u8>, libbpf_rs::Error> {
        let link = match table {
            Some(table) => program.attach_iter(map(object, table).as_fd())?,
            None => program.attach()?,
        };
        let mut bytes = Vec::new();
        Iter::new(&link)?.read_to_end(&mut bytes)?;
        Ok(bytes)
    };
    run().map_err(|error| refusal(&format!("run {name}"), &error))
}

/// Programs that user space runs, over tasks or over the rows of a table.
fn is_iterator(name: &str) -> bool {
    ["adopt", "settle"].contains(&name) || shows(name)
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

/// `struct cgroup_place` of `selection.bpf.h`.
const PLACE_BYTES: usize = 256;

/// Tables whose size the user may set.
const TABLES: [&str; 18] = [
    "calls",
    "frequent",
    "waits",
    "errors",
    "carries",
    "asked",
    "images",
    "programs",
    "attached_images",
    "attached",
    "files",
    "file_names",
    "paths",
    "directories",
    "thread_rows",
    "known_names",
    "by_rows",
    "texts",
];

/// The kernel takes a millisecond to make a table of the usual size, so those that few rows go into
/// are smaller: processes that were there before the watch, and calls that are frequent in a thread,
/// which are counted as the others where there is no room.
fn most_rows(table: &str, knobs: &Knobs) -> u32 {
    let most = match table {
        "frequent" => knobs.rows / 4,
        "asked" => knobs.rows / 8,
        "thread_rows" if !knobs.by_thread => 1,
        "by_rows" | "texts" if knobs.filter.by.is_none() => 1,
        "attached_images" | "attached" if !knobs.whole_machine && knobs.selects() == 0 => 64,
        _ => u32::MAX,
    };
    knobs.rows.min(most).max(1)
}

/// Sets what is fixed before loading; returns the programs that will not be loaded.
fn prepare(
    open: &mut OpenObject,
    knobs: &Knobs,
    contexts: bool,
) -> Result<Vec<String>, libbpf_rs::Error> {
    let mut left_out = Vec::new();
    for mut program in open.progs_mut() {
        let name = program.name().to_string_lossy().into_owned();
        let is_wanted = match &*name {
            "sched_waking" => knobs.slowest > 0 && contexts,
            "sched_waking_unknown" => knobs.slowest > 0 && !contexts,
            name => knobs.looked_at || !shows(name),
        };
        if !is_wanted {
            program.set_autoload(false);
            left_out.push(name);
        }
    }
    for mut map in open.maps_mut() {
        let name = map.name().to_string_lossy().into_owned();
        if TABLES.contains(&name.as_str()) {
            map.set_max_entries(most_rows(&name, knobs))?;
        } else if let Some(most) = knobs.most_selected(&name) {
            map.set_max_entries((most as u32).max(1))?;
        } else if name == "scratches" {
            map.set_max_entries(possible_cpus())?;
        } else if name == "patterns" {
            map.set_max_entries((knobs.filter.tests().len() as u32).max(1))?;
        } else if name == ".rodata.knobs" {
            set(&mut map, &knobs.wire());
        } else if name == ".rodata.where" {
            set(&mut map, &condition::knobs(&knobs.filter));
        }
    }
    Ok(left_out)
}

/// The number of CPUs that may ever be there; more than any machine has where that is not known.
fn possible_cpus() -> u32 {
    let range = std::fs::read_to_string("/sys/devices/system/cpu/possible");
    let last = range.ok().and_then(|range| range.trim().rsplit(['-', ',']).next()?.parse().ok());
    last.map_or(4096, |last: u32| last.saturating_add(1))
}

/// Sets constants of the programs.
fn set(map: &mut OpenMapMut<'_>, wire: &[u8]) {
    let initial = map.initial_value_mut().expect("a data section has a value");
    assert_eq!(initial.len(), wire.len(), "{:?}", map.name());
    initial.copy_from_slice(wire);
}

/// What hashes of paths begin with: nobody is to find two of the same.
fn seed() -> u64 {
    RandomState::new().hash_one(std::process::id())
}

impl Knobs {
    /// As `struct knobs` of `trace.h`.
    fn wire(&self) -> Vec<u8> {
        let mut wire = std::process::id().to_ne_bytes().to_vec();
        let filtered = u8::from(self.wanted.is_some());
        let selects = self.selects();
        wire.extend([u8::from(self.by_file), filtered, u8::from(self.whole_machine), selects]);
        for word in self.wanted.unwrap_or_default().into_iter().flatten() {
            wire.extend(word.to_ne_bytes());
        }
        wire.extend(self.transfers.iter().flatten());
        wire.extend(u32::from(self.by_path).to_ne_bytes());
        wire.extend(self.slowest.to_ne_bytes());
        wire.extend(seed().to_ne_bytes());
        for how in self.paths.iter().flatten() {
            wire.extend(how.to_ne_bytes());
        }
        wire.extend([u32::from(self.by_thread), possible_cpus()].map(u32::to_ne_bytes).concat());
        wire.extend(self.descriptors.iter().flatten());
        wire
    }

    /// The size of a table of what is selected.
    fn most_selected(&self, table: &str) -> Option<usize> {
        /// For those that are made anew.
        const TIMES: usize = 64;
        match table {
            "selected_pids" => Some(self.selection.processes.len()),
            "selected_names" => Some(self.selection.names.len()),
            "selected_cgroups" => Some(TIMES * self.selection.cgroups.len()),
            "selected_places" => Some(self.selection.cgroups.len()),
            _ => None,
        }
    }

    /// The bits `BY_…` and `ONLY` of `trace.h`.
    fn selects(&self) -> u8 {
        let Selection { processes, names, cgroups, only } = &self.selection;
        let bits = [!processes.is_empty(), !names.is_empty(), !cgroups.is_empty(), *only];
        bits.into_iter().enumerate().map(|(at, is_set)| u8::from(is_set) << at).sum()
    }
}

/// One line: the operation, the kernel's error, and, where a program was refused, the verifier's
/// last message: an error number alone would not name the cause.
pub(super) fn refusal(attempt: &str, error: &libbpf_rs::Error) -> String {
    let log = LOG.take();
    // Before the verifier's last word, which may be of a program that it let pass.
    if lacks_descriptors(&format!("{error:#}"), &log) {
        return format!("cannot {attempt}: {NO_DESCRIPTORS}");
    }
    let lines = || log.iter().flat_map(|text| text.lines());
    let verdict = lines()
        .zip(lines().skip(1))
        .find(|(_, next)| next.starts_with("processed ") || next.starts_with("-- END"))
        .map(|(line, _)| line.trim());
    match verdict {
        Some(verdict) => format!("cannot {attempt}: {verdict}"),
        None if error.kind() == ErrorKind::PermissionDenied => format!("cannot {attempt}: EPERM"),
        None => match lines().last().map(|said| said.trim_start_matches("libbpf: ")) {
            Some(said) => format!("cannot {attempt}: {error} ({said})"),
            None => format!("cannot {attempt}: {error:#}"),
        },
    }
}

/// The text for EMFILE: libbpf has it only in the text of the error or of its log.
pub(super) const NO_DESCRIPTORS: &str = "too many open files (EMFILE)";

fn lacks_descriptors(error: &str, log: &[String]) -> bool {
    let number = format!("os error {}", rustix::io::Errno::MFILE.raw_os_error());
    let texts = log.iter().map(String::as_str).chain([error]);
    texts.into_iter().any(|text| text.contains(&number) || text.contains("EMFILE"))
}

/// The remedy for that reason; `usual` otherwise.
pub(crate) fn remedy(reason: &str, usual: &str) -> String {
    match reason.ends_with(NO_DESCRIPTORS) {
        true => "raise it with `ulimit -n`".to_owned(),
        false => usual.to_owned(),
    }
}
