//! The work of the block layer for the watched threads, and the timelines of their slowest calls: a
//! BPF object of its own, loaded beside the trace's, with which it shares the map of threads.
//!
//! It goes on trace's books, so it is attached after trace's programs and before anything is
//! watched. It only adds: where it cannot be loaded, the trace is as it would be without it.
//!
//! `block.bpf.c` and its parts (`causes`, `readahead`, `requests`, `timeline`, `ring_timeline`). A bio is counted where
//! it enters the block layer, since only there the sender is known (`causes.bpf.h`); a request
//! belongs to its first bio. A timeline is written into the thread's buffer of a bounded pool; a call
//! among the slowest swaps buffers with the fastest of those kept, so nothing is copied or sent.
//! One program serves all tracepoints of a timeline: its cookie identifies the tracepoint, and a table
//! gives the offsets of the values, which user space reads from tracefs (`block/events.rs`,
//! `block/format.rs`), mounted or not.

mod events;
mod format;
mod layout;
mod outcome;
mod timelines;

use std::mem::ManuallyDrop;
use std::os::fd::AsRawFd;
use std::thread::{self, JoinHandle};

use iotomy_record::{BlockIo, SlowestCalls};
use iotomy_sys::perf_event;
use iotomy_sys::syscalls::{self, Abi};
use libbpf_rs::{Link, MapCore, MapFlags, Object, OpenObject, PerfEventOpts, ProgramMut};

use self::events::{TRACEPOINTS, may_happen};
use self::layout::{
    ASKED_COUNT, ASKED_VECTOR, AheadRow, Counters, KIND_AT, KIND_READ, KIND_SYNC, KIND_WRITE,
    RecordPlan, Row, RowKey, SlowCallRow,
};
use super::companion::{Companion, Images};
use super::embedded::{Embedded, embedded};
use super::features::feature;
use super::layout::{Fields, Wire};
use super::loading::{Purpose, load};
use super::object::{Session, Shared, is_loaded, map};
use super::perf_events::EventLinks;
use super::refusal::refusal;
use super::without::Refused;
use crate::ring_names;
use crate::tracefs::Tracefs;

static OBJECT: Embedded = embedded!("block");

/// The largest number of timelines of each kind.
pub const MOST_TIMELINES: u32 = layout::MOST_TIMELINES as u32;

/// Programs that nothing but timelines need, by the beginning of their names.
const OF_TIMELINES: [&str; 3] = ["timeline_switch", "timeline_waking", EVENT];

/// How the names of the programs of io_uring's requests begin, which nothing but their timelines needs. A kernel may lack
/// their tracepoints.
const OF_REQUESTS: &str = "timeline_ring_";

/// The program of all tracepoints of the table, and that of page cache insertions with its own.
const EVENT: &str = "timeline_event";
const PAGE_ADDED: &str = "page_added";
const PAGE_EVENT: (&str, &str) = ("filemap", "mm_filemap_add_to_page_cache");

/// Watches the block layer.
pub(crate) struct Block {
    timelines: u32,
    /// Of the requests of io_uring, too.
    of_requests: bool,
    /// Tracepoints that timelines have at most.
    points: u64,
    loaded: Option<Loaded>,
    found: Result<BlockCounts, String>,
}

/// Its counts.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct BlockCounts {
    pub(crate) block: BlockIo,
    /// The timelines, if requested.
    pub(crate) timelines: Option<SlowestCalls>,
}

impl Block {
    /// Will follow the `timelines` slowest calls of each kind; 0: none. If calls are `filtered`, requests of io_uring
    /// are left out.
    pub(crate) fn new(timelines: u32, filtered: bool) -> Self {
        let found = Err("the watch did not begin".to_owned());
        let timelines = timelines.min(MOST_TIMELINES);
        let of_requests = timelines > 0 && !filtered;
        Self { timelines, of_requests, points: u64::MAX, loaded: None, found }
    }

    /// Tries everything that it may use, a tracepoint for all: the kernel takes tens of milliseconds to detach each.
    pub(crate) fn trial() -> Self {
        Self { points: 1, ..Self::new(1, false) }
    }

    /// A watch is useful without this, too.
    fn refuse(&mut self, reason: String) {
        self.loaded = None;
        self.found = Err(reason);
    }

    /// Returns the counts.
    ///
    /// # Errors
    /// Why the block layer was not watched.
    pub(crate) fn into_found(self) -> Result<BlockCounts, String> {
        self.found
    }
}

impl Companion for Block {
    fn load(&mut self, shared: &Shared) -> Result<(), Refused> {
        match Loaded::load(shared, self.timelines, self.of_requests) {
            Ok(loaded) => self.loaded = Some(loaded),
            // It is tried again without that.
            Err(refused) if refused.feature.is_some() => return Err(refused),
            Err(refused) => self.refuse(refused.text),
        }
        Ok(())
    }

    fn begin(&mut self, session: &Session) -> Result<(), String> {
        if let Some(loaded) = &mut self.loaded
            && let Err(reason) = loaded.attach(self.points)
        {
            self.refuse(reason);
        }
        if let (None, Err(reason)) = (&self.loaded, &self.found) {
            session.lack(feature("block layer"), reason.clone());
        }
        Ok(())
    }

    fn start(&mut self, _: &Session) -> Result<(), String> {
        if let Some(loaded) = &mut self.loaded {
            loaded.before = loaded.counted();
        }
        Ok(())
    }

    fn stop(&mut self) {
        if let Some(loaded) = &mut self.loaded {
            loaded.stop();
        }
    }

    fn finish(&mut self, _session: &Session, images: &Images) {
        if let Some(mut loaded) = self.loaded.take() {
            loaded.detaching.take().map(JoinHandle::join);
            self.found = Ok(loaded.counts(images));
        }
    }
}

/// The object, loaded and perhaps attached.
struct Loaded {
    object: Object,
    links: Vec<Link>,
    event_links: EventLinks,
    detaching: Option<JoinHandle<()>>,
    timelines: u32,
    tracepoints: u64,
    absent: Vec<String>,
    before: Counters,
}

impl Loaded {
    /// Loads the object.
    ///
    /// # Errors
    /// The refused call and the kernel's error, in a line.
    fn load(shared: &Shared, timelines: u32, of_requests: bool) -> Result<Self, Refused> {
        const PURPOSE: Purpose =
            Purpose { attempt: "load the BPF programs of the block layer", needs: &[] };
        let unpacked = OBJECT.unpack()?;
        let mut open = unpacked.open()?;
        prepare(&mut open, timelines, of_requests)
            .and_then(|()| shared.reuse_maps(&mut open))
            .map_err(|error| refusal("set up the BPF maps of the block layer", &error))?;
        let object = load(open, &PURPOSE, &shared.without)?;
        let loaded = Self {
            object,
            links: Vec::new(),
            event_links: EventLinks::default(),
            detaching: None,
            timelines,
            tracepoints: 0,
            absent: Vec::new(),
            before: Counters::default(),
        };
        loaded.assert_sizes();
        Ok(loaded)
    }

    fn assert_sizes(&self) {
        let check = |name, key, value| {
            let map = map(&self.object, name);
            let sizes = (map.key_size() as usize, map.value_size() as usize);
            assert_eq!(sizes, (key, value), "{name}");
        };
        check("rows", RowKey::SIZE, Row::SIZE);
        check("ahead_rows", 4, AheadRow::SIZE);
        check("pool", 4, SlowCallRow::SIZE);
        check("plans", 4, RecordPlan::default().wire().len());
        check(".bss", 4, Counters::SIZE);
    }

    fn attach(&mut self, points: u64) -> Result<(), String> {
        // Parts that need tracefs are absent where it is missing; the rest does not need it.
        let tracefs = Tracefs::open().ok();
        for program in self.object.progs_mut() {
            let name = program.name().to_string_lossy().into_owned();
            if name == EVENT || !program.autoload() {
                continue;
            }
            if name == PAGE_ADDED {
                let (category, event) = PAGE_EVENT;
                match listen(&program, tracefs.as_ref(), category, event, 0) {
                    Some(link) => self.event_links.push(link),
                    None => self.absent.push(name),
                }
                continue;
            }
            match program.attach() {
                Ok(link) => self.links.push(link),
                Err(error) => {
                    let refused = refusal(&format!("attach {name}"), &error);
                    if !name.starts_with(OF_REQUESTS) {
                        return Err(refused);
                    }
                }
            }
        }
        if self.timelines > 0 && is_loaded(&self.object, EVENT) {
            self.listen(tracefs.as_ref(), points);
        }
        Ok(())
    }

    /// Attaches the program of timelines to the tracepoints of the table that this kernel has, to so many at most.
    fn listen(&mut self, tracefs: Option<&Tracefs>, most: u64) {
        let mounts = iotomy_host::kernel_text("/proc/self/mounts").unwrap_or_default();
        let mut programs = self.object.progs_mut();
        let program =
            programs.find(|program| program.name() == EVENT).expect("it is in block.bpf.c");
        let numbered = TRACEPOINTS.iter().enumerate();
        for (number, tracepoint) in numbered.filter(|(_, one)| may_happen(one, &mounts)) {
            if self.tracepoints == most {
                break;
            }
            let plan = tracefs.and_then(|tracefs| format::plan(tracefs, tracepoint));
            let number = number as u32;
            let link = plan.and_then(|plan| {
                let plans = map(&self.object, "plans");
                plans.update(&number.to_ne_bytes(), &plan.wire(), MapFlags::ANY).ok()?;
                listen(&program, tracefs, tracepoint.category, tracepoint.name, number)
            });
            match link {
                Some(link) => {
                    self.event_links.push(link);
                    self.tracepoints += 1;
                }
                None => self.absent.push(tracepoint.name.to_owned()),
            }
        }
    }

    /// Stops counting at once, and detaches. If the kernel refuses, a few events after the watch
    /// are counted, too.
    fn stop(&mut self) {
        let over = map(&self.object, ".data.over");
        let _ = over.update(&0u32.to_ne_bytes(), &1u32.to_ne_bytes(), MapFlags::ANY);
        // When the first program of a tracepoint goes while a second stays, the kernel waits for
        // every CPU: so these go before the trace's.
        self.links.clear();
        // For these it waits longest; the watch ends meanwhile. Without a thread they are dropped here.
        let links = std::mem::take(&mut self.event_links);
        let detach = thread::Builder::new().name("detach".to_owned());
        self.detaching = detach.spawn(move || drop(links)).ok();
    }

    fn counted(&self) -> Counters {
        let bytes = map(&self.object, ".bss").lookup(&0u32.to_ne_bytes(), MapFlags::ANY);
        Counters::read(&mut Fields(&bytes.ok().flatten().unwrap_or_default()))
    }

    /// The counts, in the record's terms.
    fn counts(&self, images: &Images) -> BlockCounts {
        let counters = self.counted().since(&self.before);
        let block = outcome::block(&self.object, &counters, images);
        let timelines = (self.timelines > 0).then(|| SlowestCalls {
            asked: self.timelines,
            followed: counters.followed,
            not_followed: counters.not_followed,
            lost: counters.lost_timelines,
            tracepoints: self.tracepoints,
            absent: self.absent.clone(),
            calls: timelines::timelines(&self.object, &counters, images),
        });
        BlockCounts { block, timelines }
    }
}

/// Has a program run at a tracepoint, which gives it `cookie`. By its number and not by libbpf, which knows
/// only the places where tracefs is mounted by custom.
fn listen(
    program: &ProgramMut<'_>,
    tracefs: Option<&Tracefs>,
    category: &str,
    name: &str,
    cookie: u32,
) -> Option<Link> {
    let event = perf_event::open_tracepoint(tracefs?.number(category, name)?).ok()?;
    // The link closes the descriptor.
    let event = ManuallyDrop::new(event);
    let options = PerfEventOpts { cookie: u64::from(cookie), ..PerfEventOpts::default() };
    match program.attach_perf_event_with_opts(event.as_raw_fd(), options) {
        Ok(link) => Some(link),
        Err(_) => {
            drop(ManuallyDrop::into_inner(event));
            None
        }
    }
}

fn prepare(
    open: &mut OpenObject,
    timelines: u32,
    of_requests: bool,
) -> Result<(), libbpf_rs::Error> {
    for mut map in open.maps_mut() {
        let name = map.name().to_string_lossy().into_owned();
        match name.as_str() {
            // A timeline takes 6 KiB: there is room for them only if they were requested.
            "pool" | "given_back" if timelines == 0 => map.set_max_entries(1)?,
            "request_timelines" if !of_requests => map.set_max_entries(1)?,
            ".rodata.knobs" => {
                let wire = knobs(timelines);
                let initial = map.initial_value_mut().expect("a data section has a value");
                assert_eq!(initial.len(), wire.len(), "struct block_knobs");
                initial.copy_from_slice(&wire);
            }
            _ => {}
        }
    }
    for mut program in open.progs_mut() {
        if !is_wanted(&program.name().to_string_lossy(), timelines, of_requests) {
            program.set_autoload(false);
        }
    }
    Ok(())
}

/// Whether a program is loaded.
fn is_wanted(program: &str, timelines: u32, of_requests: bool) -> bool {
    match program {
        name if OF_TIMELINES.contains(&name) => timelines > 0,
        name if name.starts_with(OF_REQUESTS) => of_requests,
        _ => true,
    }
}

/// As `struct block_knobs` of `block.h`.
fn knobs(timelines: u32) -> Vec<u8> {
    let mut wire = timelines.to_ne_bytes().to_vec();
    wire.extend((rustix::param::page_size().ilog2()).to_ne_bytes());
    for abi in [Abi::X86_64, Abi::I386] {
        wire.extend((0..512).map(|number| kind(abi, &syscalls::name(abi, number))));
    }
    wire.extend((0..=u8::MAX).map(|op| ring_kind(&ring_names::name(op.into()))));
    wire
}

/// The same of an operation of io_uring. Those with many results are none.
fn ring_kind(name: &str) -> u8 {
    match name {
        "read" | "read_fixed" => KIND_READ | ASKED_COUNT,
        "readv" | "readv_fixed" => KIND_READ,
        "write" | "write_fixed" => KIND_WRITE | ASKED_COUNT,
        "writev" | "writev_fixed" => KIND_WRITE,
        "fsync" | "sync_file_range" => KIND_SYNC,
        _ => 0,
    }
}

/// The kind of a call and the argument to follow, as `block.h` defines them; 0 for a call that is
/// not followed.
fn kind(abi: Abi, name: &str) -> u8 {
    let fd = |argument: Option<u8>| argument.unwrap_or(0) << 2;
    match name {
        "fsync" | "fdatasync" | "sync_file_range" | "syncfs" => return KIND_SYNC,
        "recvfrom" | "recvmsg" | "recv" | "sendto" | "sendmsg" | "send" | "vmsplice" | "tee" => {
            return 0;
        }
        _ => {}
    }
    let Some(transfer) = syscalls::transfer(name) else { return 0 };
    let asked = match name {
        "read" | "write" => ASKED_COUNT,
        "pread64" | "pwrite64" => ASKED_COUNT | KIND_AT,
        "readv" | "writev" => ASKED_VECTOR,
        "preadv" | "preadv2" | "pwritev" | "pwritev2" => ASKED_VECTOR | KIND_AT,
        _ => 0,
    };
    // Arguments of 32-bit calls are elsewhere: only their descriptor is used.
    let asked = if abi == Abi::X86_64 { asked } else { 0 };
    match (transfer.to, transfer.from) {
        (Some(to), _) => KIND_WRITE | fd(Some(to)) | asked,
        (None, from) => KIND_READ | fd(from) | asked,
    }
}

#[cfg(test)]
mod tests {
    use super::super::object::verified;
    use super::*;
    use iotomy_test_requirements::{Need, skip};

    /// They were once 38,000: the parts of a folio were checked one by one.
    #[test]
    fn the_verifier_passes_the_programs_in_few_steps() {
        check_steps(0, 1_000..12_000);
        check_steps(3, 3_000..20_000);
    }

    fn check_steps(timelines: u32, due: std::ops::Range<u64>) {
        let loaded = verified::shared().and_then(|shared| {
            let mut session = verified::session(Some(&shared))?;
            session.attach()?;
            let mut loaded =
                Loaded::load(&shared, timelines, timelines > 0).map_err(String::from)?;
            loaded.attach(u64::MAX)?;
            Ok(loaded)
        });
        match loaded {
            Ok(loaded) => {
                let stack = verified::deepest_stack(&loaded.object);
                assert!((32..=512).contains(&stack), "{stack} bytes of stack");
                let steps = verified::steps(&loaded.object);
                assert!(due.contains(&steps), "{steps}");
            }
            Err(reason) => skip(Need::Bpf, &reason),
        }
    }

    #[test]
    fn calls_are_followed_by_what_they_do() {
        assert_eq!(kind(Abi::X86_64, "read"), KIND_READ | ASKED_COUNT);
        assert_eq!(kind(Abi::X86_64, "copy_file_range"), KIND_WRITE | 2 << 2);
        assert_eq!(kind(Abi::X86_64, "sendfile"), KIND_WRITE);
        assert_eq!(kind(Abi::X86_64, "fsync"), KIND_SYNC);
        assert_eq!(kind(Abi::X86_64, "recvfrom"), 0);
        assert_eq!(kind(Abi::X86_64, "openat"), 0);
        assert_eq!(kind(Abi::I386, "pwrite64"), KIND_WRITE);
    }
}
