//! The loaded BPF object: its knobs, its links, its maps as typed rows.
//!
//! Programs, maps and links belong to descriptors of this process, pinned nowhere: they disappear
//! with the process, also after SIGKILL.

mod settling;
#[cfg(test)]
pub(super) mod verified;

use std::cell::RefCell;
use std::ffi::OsStr;
use std::io::Read;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicU64, Ordering};

use iotomy_sys::map_batch;
use libbpf_rs::{
    ErrorKind, Iter, Link, Map, MapCore, MapFlags, Object, ObjectBuilder, OpenObject, PrintLevel,
    RingBuffer, RingBufferBuilder,
};

use super::layout::{
    CallKey, CallStats, Counters, Death, ErrorCount, Fields, FileKey, FileName, FileStats, Image,
    Program, WaitStats, Wire,
};

/// Eight-byte aligned, as an ELF reader wants it.
#[repr(C, align(8))]
pub(super) struct Aligned<Bytes: ?Sized>(pub(super) Bytes);

static OBJECT: &Aligned<[u8]> = &Aligned(*include_bytes!(concat!(env!("OUT_DIR"), "/trace.bpf.o")));
static SHARED: &Aligned<[u8]> =
    &Aligned(*include_bytes!(concat!(env!("OUT_DIR"), "/shared.bpf.o")));

/// The settings that are fixed before loading.
#[derive(Debug, Clone)]
pub(super) struct Knobs {
    pub(super) by_file: bool,
    pub(super) whole_machine: bool,
    /// A bit a call to count, of the 64-bit and of the 32-bit calls; `None` for all.
    pub(super) wanted: Option<[[u64; 8]; 2]>,
    /// How the arguments of a call name descriptors, by ABI and number.
    pub(super) transfers: [[u8; 512]; 2],
    /// Most rows a table keeps.
    pub(super) rows: u32,
    /// Whether snapshots of the running counts will be taken.
    pub(super) looked_at: bool,
}

/// Which tasks the next run of `adopt` begins to watch.
#[derive(Debug, Clone, Copy)]
pub(super) enum Adoption {
    /// A child held in front of its exec.
    Launcher(u32),
    /// All threads of a process.
    Process(u32),
    /// One thread.
    Thread(u32),
    /// Every process but this one.
    Machine,
}

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
        let mut open = open(&OBJECT.0)?;
        prepare(&mut open, knobs)
            .and_then(|()| shared.map_or(Ok(()), |shared| shared.reuse_maps(&mut open)))
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
        let session = Self { object, links: Vec::new(), ring, doorbell };
        session.assert_sizes();
        Ok(session)
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
        check("calls", CallKey::SIZE, CallStats::SIZE);
        check("waits", CallKey::SIZE, WaitStats::SIZE);
        check("errors", CallKey::SIZE, ErrorCount::SIZE);
        check("carries", CallKey::SIZE, ErrorCount::SIZE);
        check("asked", CallKey::SIZE, ErrorCount::SIZE);
        check("images", 4, Image::SIZE);
        check("programs", 4, Program::SIZE);
        check("files", FileKey::SIZE, FileStats::SIZE);
        check("file_names", FileKey::SIZE, FileName::SIZE);
        check(".bss", 4, Counters::SIZE);
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
                if is_iterator(&name) || (name == LAST_HEARD) != is_first {
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
        let (tgid, tid, launcher) = match whom {
            Adoption::Launcher(pid) => (pid, 0, 1),
            Adoption::Process(pid) => (pid, 0, 0),
            Adoption::Thread(tid) => (0, tid, 0),
            Adoption::Machine => (0, 0, 0u32),
        };
        let request = [tgid, tid, launcher].map(u32::to_ne_bytes).concat();
        map(&self.object, ".data.adoption")
            .update(&0u32.to_ne_bytes(), &request, MapFlags::ANY)
            .map_err(|error| refusal("ask for tasks to watch", &error))?;
        iterate(&self.object, "adopt")
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

    /// The counters of the kernel side, now.
    pub(super) fn counters(&self) -> Counters {
        let bytes = map(&self.object, ".bss").lookup(&0u32.to_ne_bytes(), MapFlags::ANY);
        Counters::read(&mut Fields(&bytes.ok().flatten().unwrap_or_default()))
    }

    /// Events for which programs did not run, since they were running already on that CPU, and
    /// tables that could not be read. Wake-ups are not among them: an interrupt in the middle of
    /// one makes another, of any task; where that was a watched one, its run queue delay is counted
    /// as sleep.
    pub(super) fn missed_events(&self) -> u64 {
        let counting = |name: &OsStr| {
            let name = name.to_string_lossy();
            !name.starts_with("sched_wakeup") && !is_iterator(&name)
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

/// Tables whose size the user may set.
const TABLES: [&str; 10] = [
    "calls",
    "waits",
    "errors",
    "carries",
    "asked",
    "images",
    "programs",
    "attached_images",
    "files",
    "file_names",
];

/// The kernel takes a millisecond to make a table of the usual size, so those that few rows go into
/// are smaller: counters of more than 32 bits, and processes that were there before the watch.
fn most_rows(table: &str, knobs: &Knobs) -> u32 {
    let most = match table {
        "carries" => 1024,
        "attached_images" if !knobs.whole_machine => 64,
        _ => u32::MAX,
    };
    knobs.rows.clamp(1, most)
}

fn prepare(open: &mut OpenObject, knobs: &Knobs) -> Result<(), libbpf_rs::Error> {
    let cpus = std::fs::read_to_string("/sys/devices/system/cpu/possible");
    for mut program in open.progs_mut() {
        if shows(&program.name().to_string_lossy()) {
            program.set_autoload(knobs.looked_at);
        }
    }
    let cpus = cpus.ok().and_then(|range| range.trim().rsplit(['-', ',']).next()?.parse().ok());
    for mut map in open.maps_mut() {
        let name = map.name().to_string_lossy().into_owned();
        if TABLES.contains(&name.as_str()) {
            map.set_max_entries(most_rows(&name, knobs))?;
        } else if name == "scratches" {
            map.set_max_entries(cpus.map_or(4096, |last: u32| last + 1))?;
        } else if name == ".rodata.knobs" {
            let wire = knobs.wire();
            let initial = map.initial_value_mut().expect("a data section has a value");
            assert_eq!(initial.len(), wire.len(), "struct knobs");
            initial.copy_from_slice(&wire);
        }
    }
    Ok(())
}

impl Knobs {
    /// As `struct knobs` of `trace.h`.
    fn wire(&self) -> Vec<u8> {
        let mut wire = std::process::id().to_ne_bytes().to_vec();
        let filtered = u8::from(self.wanted.is_some());
        wire.extend([u8::from(self.by_file), filtered, u8::from(self.whole_machine), 0]);
        for word in self.wanted.unwrap_or_default().into_iter().flatten() {
            wire.extend(word.to_ne_bytes());
        }
        wire.extend(self.transfers.iter().flatten());
        wire
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
