//! The object of `anatomy.bpf.c`: its programs and maps, and what they hold at the end.

use std::collections::HashMap;
use std::os::fd::OwnedFd;

use iotomy_sys::perf_event::Ticker;
use libbpf_rs::{Link, MapCore, MapFlags, Object, OpenObject};

use super::companion::{Images, call_by_number};
use super::embedded::{Embedded, embedded};
use super::layout::{Fields, FileKey, FileName, Wire};
use super::loading::{Purpose, load};
use super::names;
use super::object::{RowAction, Shared, map, visit_rows, written};
use super::perf_events::{EventLinks, attach_event};
use super::refusal::refusal;
use super::sample_rows::{Inside, SampleCounts, SampleKey, SampleSum};
use super::without::Refused;
use crate::anatomy::kernel::KernelSymbols;
use crate::anatomy::samples::{
    Callers, Chain, Image, LeftOut, Location, Operation, Place, Raw, SampleGroup,
};
use crate::anatomy::side_band::Listener;
use crate::ring_names;

static OBJECT: Embedded = embedded!("anatomy");

/// Most rows of samples that are alike, of stacks and of mapped files: some 30 MiB in all, and 20 more with
/// the stacks of user space.
const ROWS: u32 = 65_536;
const STACKS: u32 = 16_384;
const MORE_STACKS: u32 = 4_096;
const PLACES: u32 = 2_048;
/// Threads with samples in a call that `--where` decides about when it returns, at a time: 8 MiB.
const UNDECIDED: u32 = 2_048;
/// The kernel's own usual bound on the depth of a stack.
const DEPTH: u32 = 127;

/// The program that books samples as the trace has counted their call.
const DECIDES: &str = "decide_call";

/// The programs that note which request of io_uring is issued, one for each tracepoint that kernels have for it.
const ISSUES: [&str; 2] = ["ring_issue_req", "ring_issue_sqe"];

pub(super) struct Loaded {
    pub(super) object: Object,
    /// Those of the sleeps, and of what decides about calls, or notes requests of io_uring: they
    /// last until the trace's books are closed.
    pub(super) links: Vec<Link>,
    pub(super) event_links: EventLinks,
    restricts: bool,
    pub(super) ticker: Ticker,
    pub(super) price_ns: f64,
    pub(super) before: SampleCounts,
    pub(super) listener: Option<Listener>,
}

impl Loaded {
    pub(super) fn load(
        shared: &Shared,
        user_stacks: bool,
        restricts: bool,
    ) -> Result<Self, Refused> {
        const PURPOSE: Purpose =
            Purpose { attempt: "load the BPF programs of the samples", needs: &["task iterators"] };
        let unpacked = OBJECT.unpack()?;
        let mut open = unpacked.open()?;
        prepare(&mut open, user_stacks, restricts)
            .and_then(|()| shared.reuse_maps(&mut open))
            .map_err(|error| refusal("set up the BPF maps of the samples", &error))?;
        let object = load(open, &PURPOSE, &shared.without)?;
        let loaded = Self {
            object,
            links: Vec::new(),
            event_links: EventLinks::default(),
            restricts,
            ticker: Ticker::CpuClock,
            price_ns: 0.0,
            before: SampleCounts::default(),
            listener: None,
        };
        loaded.assert_sizes();
        Ok(loaded)
    }

    /// Both sides must agree on the wire structs; a mismatch is a defect of this program.
    fn assert_sizes(&self) {
        let sizes = |name| {
            let map = map(&self.object, name);
            (map.key_size() as usize, map.value_size() as usize)
        };
        assert_eq!(sizes("samples"), (SampleKey::SIZE, SampleSum::SIZE));
        assert_eq!(sizes("places"), (FileKey::SIZE, FileName::SIZE));
        assert_eq!(sizes("addresses"), (4, size_of::<u64>()));
        assert_eq!(sizes(".bss"), (4, SampleCounts::SIZE));
    }

    pub(super) fn attach_lasting(&mut self) -> Result<(), String> {
        self.links.push(self.attach("doze")?);
        if self.restricts {
            self.links.push(self.attach(DECIDES)?);
        } else {
            // A kernel has one of the tracepoints, or none.
            let attached: Vec<_> =
                ISSUES.iter().filter_map(|name| self.attach(name).ok()).collect();
            self.links.extend(attached);
        }
        Ok(())
    }

    fn attach(&self, name: &str) -> Result<Link, String> {
        let mut programs = self.object.progs_mut();
        let program = programs.find(|p| p.name() == name).expect("the object has its programs");
        program.attach().map_err(|error| refusal(&format!("attach {name}"), &error))
    }

    /// Lets an event run the program until the last link is gone.
    pub(super) fn attach_event(&mut self, event: OwnedFd) -> Result<(), String> {
        let mut programs = self.object.progs_mut();
        let sample = programs.find(|p| p.name() == "sample").expect("the object has its programs");
        self.event_links.push(attach_event(&sample, event, 0)?);
        Ok(())
    }

    /// Takes the event attached last away.
    pub(super) fn detach_last(&mut self) {
        self.event_links.pop();
    }

    pub(super) fn ticker(&self) -> Ticker {
        self.ticker
    }

    pub(super) fn counted(&self) -> SampleCounts {
        let bytes = map(&self.object, ".bss").lookup(&0u32.to_ne_bytes(), MapFlags::ANY);
        SampleCounts::read(&mut Fields(&bytes.ok().flatten().unwrap_or_default()))
    }

    pub(super) fn collect(&mut self, hz: u32, images: &Images) -> Raw {
        let mappings = self.listener.take().map(Listener::finish);
        let counted = self.counted();
        let mut names: HashMap<FileKey, String> = HashMap::new();
        visit_rows(&self.object, "places", |key: FileKey, name: FileName| {
            names.insert(key, names::path(&name, key.inode));
            RowAction::Kept
        });
        let mut seen = Vec::new();
        let mut left_out: HashMap<Image, LeftOut> = HashMap::new();
        let mut stacks: HashMap<i32, Vec<u64>> = HashMap::new();
        let mut user_stacks: HashMap<i32, Vec<u64>> = HashMap::new();
        visit_rows(&self.object, "samples", |key: SampleKey, sum: SampleSum| {
            let named = images.name(key.image);
            if let (Some((pid, exec)), Inside::LeftOut) = (named, key.inside) {
                let image = (pid, exec.to_owned(), images.number(key.image));
                left_out.entry(image).or_default().add(key.blocked, sum.times, sum.ns);
            } else if let Some((pid, exec)) = named {
                if key.stack >= 0 {
                    let read = || self.stack(key.stack, ["stacks", "more_stacks"]);
                    stacks.entry(key.stack).or_insert_with(read);
                }
                let chain = chain(&key, images);
                if let Chain::Stack { id, .. } = chain {
                    let read = || self.stack(id, ["user_stacks", "more_user_stacks"]);
                    user_stacks.entry(id).or_insert_with(read);
                }
                seen.push(SampleGroup {
                    pid,
                    exec: exec.to_owned(),
                    image: images.number(key.image),
                    call: call(&key),
                    operation: operation(&key),
                    blocked: key.blocked,
                    found: location(&key, &names),
                    chain,
                    times: sum.times,
                    ns: sum.ns,
                });
            }
            RowAction::Kept
        });
        Raw {
            event: match self.ticker {
                Ticker::Cycles => "cycles",
                Ticker::CpuClock if self.price_ns.is_nan() => "no event",
                Ticker::CpuClock => "cpu-clock",
            },
            hz,
            price_ns: if self.price_ns.is_nan() { 0.0 } else { self.price_ns },
            others: counted.others - self.before.others,
            lost: counted.lost - self.before.lost,
            lost_sleeps: counted.lost_sleeps - self.before.lost_sleeps,
            lost_names: counted.lost_names - self.before.lost_names,
            seen,
            left_out,
            stacks,
            // Without the mappings the addresses say nothing.
            callers: mappings.flatten().map(|mappings| Callers { stacks: user_stacks, mappings }),
        }
    }

    /// The kernel's names of the functions at these addresses.
    pub(super) fn names(&self, addresses: &[u64]) -> Result<KernelSymbols, String> {
        let table = map(&self.object, "addresses");
        let rows = table.max_entries();
        let keys: Vec<u8> = (0..rows).flat_map(u32::to_ne_bytes).collect();
        let mut text = Vec::new();
        for some in addresses.chunks(rows as usize) {
            let mut values: Vec<u8> = some.iter().flat_map(|one| one.to_ne_bytes()).collect();
            values.resize(rows as usize * size_of::<u64>(), 0);
            for (key, value) in keys.chunks_exact(4).zip(values.chunks_exact(size_of::<u64>())) {
                table
                    .update(key, value, MapFlags::ANY)
                    .map_err(|error| refusal("ask for names of the kernel", &error))?;
            }
            text.extend(written(&self.object, "name_address")?);
        }
        Ok(KernelSymbols::parse(&String::from_utf8_lossy(&text)))
    }

    /// Addresses, the innermost first.
    fn stack(&self, id: i32, tables: [&str; 2]) -> Vec<u64> {
        const IN_MORE: i32 = 0x4000_0000;
        let table = tables[usize::from(id & IN_MORE != 0)];
        let at = (id & !IN_MORE).to_ne_bytes();
        let bytes = map(&self.object, table).lookup(&at, MapFlags::ANY);
        let bytes = bytes.ok().flatten().unwrap_or_default();
        let words = bytes.chunks_exact(8).map(|word| Fields(word).u64());
        words.take_while(|address| *address != 0).collect()
    }
}

const COLLIDED: i32 = -2;

/// The call, or what stands in its place.
fn call(key: &SampleKey) -> Option<String> {
    match key.inside {
        Inside::Counted => Some(call_by_number(key.call)),
        Inside::Worker | Inside::SubmissionThread => Some(ring_names::NO_REQUEST.to_owned()),
        Inside::Nothing | Inside::LeftOut => None,
    }
}

/// The operation of io_uring.
fn operation(key: &SampleKey) -> Operation {
    const UNKNOWN: u32 = 0xffff;
    match (key.inside, key.operation) {
        (_, 0) => Operation::Nothing,
        (_, UNKNOWN) => Operation::Certain(ring_names::call(None)),
        (Inside::Worker, op) => Operation::Certain(ring_names::call(Some(op - 1))),
        (_, op) => Operation::IfIssued(ring_names::call(Some(op - 1))),
    }
}

fn chain(key: &SampleKey, images: &Images) -> Chain {
    match (key.user_stack, images.began_ns(key.image)) {
        (COLLIDED, _) => Chain::Collided,
        (id, Some(began_ns)) if id >= 0 => {
            let returns_to = if key.stack >= 0 { key.offset } else { 0 };
            Chain::Stack { id, began_ns, returns_to }
        }
        _ => Chain::Nothing,
    }
}

fn location(key: &SampleKey, names: &HashMap<FileKey, String>) -> Location {
    const IN_FILE: u32 = 1;
    const IN_VDSO: u32 = 2;
    const IN_MEMORY: u32 = 3;
    match key.place {
        _ if key.stack >= 0 => Location::Kernel(key.stack),
        IN_FILE => Location::User(Place::File {
            path: names.get(&key.file).cloned(),
            inode: key.file.inode,
            offset: key.offset,
        }),
        IN_VDSO => Location::User(Place::Vdso),
        IN_MEMORY => Location::User(Place::Memory),
        _ if key.stack == COLLIDED => Location::Collided,
        _ => Location::Nothing,
    }
}

fn prepare(
    open: &mut OpenObject,
    user_stacks: bool,
    restricts: bool,
) -> Result<(), libbpf_rs::Error> {
    for mut program in open.progs_mut() {
        let name = program.name().to_string_lossy().into_owned();
        let is_left_out = match restricts {
            true => ISSUES.contains(&name.as_str()),
            false => name == DECIDES,
        };
        if is_left_out {
            program.set_autoload(false);
        }
    }
    let deepest = iotomy_host::kernel_text("/proc/sys/kernel/perf_event_max_stack");
    let deepest = deepest.ok().and_then(|text| text.trim().parse().ok()).unwrap_or(DEPTH);
    for mut map in open.maps_mut() {
        match map.name().to_string_lossy().as_ref() {
            "samples" => map.set_max_entries(ROWS)?,
            "places" => map.set_max_entries(PLACES)?,
            "undecided" if restricts => map.set_max_entries(UNDECIDED)?,
            ".rodata.knobs" => {
                let initial = map.initial_value_mut().expect("a data section has a value");
                let knobs = [user_stacks, restricts, !restricts]
                    .map(|is_wanted| u32::from(is_wanted).to_ne_bytes());
                initial.copy_from_slice(knobs.as_flattened());
            }
            "user_stacks" | "more_user_stacks" if !user_stacks => map.set_autocreate(false)?,
            name @ ("stacks" | "more_stacks" | "user_stacks" | "more_user_stacks") => {
                let rows = if name.starts_with("more") { MORE_STACKS } else { STACKS };
                map.set_value_size(8 * DEPTH.min(deepest).max(1))?;
                map.set_max_entries(rows)?;
            }
            _ => {}
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;
    use std::fs;

    use super::super::object::verified;
    use super::*;
    use crate::anatomy::kernel;
    use iotomy_test_requirements::{Need, skip};

    /// They were once 61,000: the loop over a path was verified iteration by iteration.
    #[test]
    fn the_verifier_passes_the_programs_in_few_steps() {
        match verified::shared()
            .and_then(|shared| Loaded::load(&shared, false, false).map_err(String::from))
        {
            Ok(loaded) => {
                let stack = verified::deepest_stack(&loaded.object);
                assert!((32..=512).contains(&stack), "{stack} bytes of stack");
                let steps = verified::steps(&loaded.object);
                assert!((500..6_000).contains(&steps), "{steps}");
            }
            Err(reason) => skip(Need::Bpf, &reason),
        }
    }

    /// Functions throughout the kernel, more than are resolved at a time, and a program of the
    /// watch.
    #[test]
    fn functions_are_named_as_in_the_table_of_the_kernels_symbols() {
        let loaded = verified::shared()
            .and_then(|shared| Loaded::load(&shared, false, false).map_err(String::from));
        let loaded = match kernel::probe().and(loaded) {
            Ok(loaded) => loaded,
            Err(reason) => return skip(Need::Bpf, &reason),
        };
        let table = fs::read_to_string("/proc/kallsyms").unwrap();
        // An address of the table may have several names. Programs come and go; one is ours.
        let mut functions: HashMap<u64, HashSet<&str>> = HashMap::new();
        let mut programs: Vec<u64> = Vec::new();
        for line in table.lines() {
            let words: Vec<&str> = line.split_ascii_whitespace().collect();
            let at = u64::from_str_radix(words[0], 16).unwrap();
            match (words[1], words.get(3)) {
                (_, Some(&"[bpf]")) if words[2].ends_with("_name_address") => programs.push(at),
                (_, Some(&"[bpf]")) => {}
                ("t" | "T" | "w" | "W", _) if at.is_multiple_of(48) => {
                    let name = words[2].split('.').next().unwrap();
                    functions.entry(at).or_default().insert(name);
                }
                _ => {}
            }
        }
        let addresses: Vec<u64> = functions.keys().chain(&programs).copied().collect();
        assert!(functions.len() > 1024, "{}", functions.len());
        let mut symbols = loaded.names(&addresses).unwrap();
        let named = functions.keys().filter(|at| symbols.name(**at).is_some()).count();
        assert!(named > functions.len() / 2, "{named} of {}", functions.len());
        symbols.complete(&addresses);
        for (at, names) in &functions {
            let name = symbols.name(*at).unwrap_or_default();
            assert!(names.contains(name), "{at:#x} {name} {names:?}");
        }
        let mut programs = programs.iter();
        assert!(programs.any(|at| symbols.name(*at) == Some("bpf_prog_name_address")));
    }
}
