//! What is fixed before the object is loaded: the settings, the sizes of its tables, and which of its programs
//! are wanted.

use std::hash::{BuildHasher, RandomState};

use libbpf_rs::{OpenMapMut, OpenObject};

use super::shows;
use crate::Selection;
use crate::bpf::{cgroups, condition, ring_programs};
use crate::filter::Filter;
use crate::variables::fact;

/// The settings that are fixed before loading.
#[derive(Debug, Clone)]
pub(in crate::bpf) struct Knobs {
    pub(in crate::bpf) by_file: bool,
    pub(in crate::bpf) by_path: bool,
    pub(in crate::bpf) by_peer: bool,
    pub(in crate::bpf) by_thread: bool,
    /// How many of the slowest calls to keep whole.
    pub(in crate::bpf) slowest: u32,
    pub(in crate::bpf) whole_machine: bool,
    /// A bit a call to count, of the 64-bit and of the 32-bit calls; `None` for all.
    pub(in crate::bpf) wanted: Option<[[u64; 8]; 2]>,
    /// A bit a call that is not counted and that is let pass at its entry; `None` for none.
    pub(in crate::bpf) passed: Option<[[u64; 8]; 2]>,
    /// What each operation of io_uring does with bytes, or that it is left out; `None` for none of them.
    pub(in crate::bpf) rings: Option<[u8; 256]>,
    /// How the arguments of a call name descriptors, by ABI and number.
    pub(in crate::bpf) transfers: [[u8; 512]; 2],
    /// How the arguments of a call name paths, by ABI and number.
    pub(in crate::bpf) paths: [[u16; 512]; 2],
    /// The argument of each call that is a descriptor, + 1, by ABI and number.
    pub(in crate::bpf) descriptors: [[u8; 512]; 2],
    /// Of the wanted calls, those to count.
    pub(in crate::bpf) filter: Filter,
    /// Whether just calls count that are entered in a window.
    pub(in crate::bpf) sampled: bool,
    /// Most rows a table keeps.
    pub(in crate::bpf) rows: u32,
    /// Whether snapshots of the running counts will be taken.
    pub(in crate::bpf) looked_at: bool,
    /// Whether companions ask what the filter makes of each call.
    pub(in crate::bpf) has_companions: bool,
    /// The running processes to watch.
    pub(in crate::bpf) selection: Selection,
}

/// Tables whose size the user may set.
const TABLES: [&str; 35] = [
    "calls",
    "frequent",
    "waits",
    "errors",
    "carries",
    "asked",
    "images",
    "programs",
    "titles",
    "attached_images",
    "attached",
    "files",
    "file_names",
    "paths",
    "directories",
    "thread_rows",
    "known_names",
    "known_peers",
    "by_rows",
    "executed_names",
    "texts",
    "tracked",
    "connections",
    "connection_errors",
    "handshakes",
    "ring_requests",
    "ring_facts",
    "ring_named",
    "ring_overflows",
    "ring_operations",
    "ring_errors",
    "ring_files",
    "ring_owners",
    "ring_threads",
    "ring_times",
];

/// Those of connections, and the programs that keep them.
const OF_CONNECTIONS: [&str; 8] = [
    "tracked",
    "connections",
    "connection_errors",
    "handshakes",
    "inet_sock_set_state",
    "tcp_destroy_sock",
    "measure_open",
    "snapshot_open",
];

/// The kernel takes a millisecond to make a table of the usual size, so those that few rows go into
/// are smaller: processes that were there before the watch, and calls that are frequent in a thread,
/// which are counted as the others where there is no room.
fn most_rows(table: &str, knobs: &Knobs) -> u32 {
    let most = match table {
        "frequent" => knobs.rows / 4,
        "asked" => knobs.rows / 8,
        "thread_rows" if !knobs.by_thread => 1,
        table if !knobs.by_peer && OF_CONNECTIONS.contains(&table) => 1,
        table if table.starts_with(ring_programs::PREFIX) && knobs.rings.is_none() => 1,
        "ring_owners" | "ring_threads" | "ring_times" => knobs.rows / 16,
        "ring_named" | "ring_files" | "ring_operations" | "ring_errors" | "ring_overflows" => {
            knobs.rows / 8
        }
        // Its rows are made at once.
        "handshakes" => 8_192,
        "known_peers" if !knobs.filter.uses(fact::PEER) => 1,
        "by_rows" | "texts" if knobs.filter.by.is_none() => 1,
        "executed_names" if !knobs.filter.uses(fact::IMAGE) => 1,
        "attached_images" | "attached" if !knobs.whole_machine && knobs.selects() == 0 => 64,
        _ => u32::MAX,
    };
    knobs.rows.min(most).max(1)
}

/// Sets what is fixed before loading, and which programs will not be loaded.
pub(super) fn prepare(
    open: &mut OpenObject,
    knobs: &Knobs,
    contexts: bool,
) -> Result<(), libbpf_rs::Error> {
    for mut program in open.progs_mut() {
        let name = program.name().to_string_lossy().into_owned();
        let is_wanted = match &*name {
            "sys_enter" | "sys_exit" => !knobs.sampled,
            "sampled_enter" | "sampled_exit" => knobs.sampled,
            "sched_waking" => knobs.keeps_calls() && contexts,
            "sched_waking_unknown" => knobs.keeps_calls() && !contexts,
            name if name.starts_with(ring_programs::PREFIX) => knobs.rings.is_some(),
            name if OF_CONNECTIONS.contains(&name) && !knobs.by_peer => false,
            name => knobs.looked_at || !shows(name),
        };
        if !is_wanted {
            program.set_autoload(false);
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
        } else if name == "user_stacks" {
            // Of the slowest in either turn, and of the one that ends the watch.
            map.set_max_entries(2 * knobs.slowest + 1)?;
        } else if name == "patterns" {
            map.set_max_entries((knobs.filter.tests().len() as u32).max(1))?;
        } else if name == ".bss.series" {
            map.set_autocreate(knobs.sampled)?;
        } else if name == ".rodata.knobs" {
            set(&mut map, &knobs.wire());
        } else if let (".rodata.rings", Some(rings)) = (&*name, &knobs.rings) {
            set(&mut map, rings);
        } else if name == ".rodata.where" {
            set(&mut map, &condition::knobs(&knobs.filter, knobs.has_companions));
        }
    }
    Ok(())
}

/// Sets the sizes of the tables in an object of maps alone, as those of the trace have them.
pub(super) fn set_sizes(open: &mut OpenObject, knobs: &Knobs) -> Result<(), libbpf_rs::Error> {
    for mut map in open.maps_mut() {
        let name = map.name().to_string_lossy().into_owned();
        if TABLES.contains(&name.as_str()) {
            map.set_max_entries(most_rows(&name, knobs))?;
        }
    }
    Ok(())
}

/// The number of CPUs that may ever be there; more than any machine has where that is not known.
pub(in crate::bpf) fn possible_cpus() -> u32 {
    let range = iotomy_host::kernel_text("/sys/devices/system/cpu/possible");
    let last = range.ok().and_then(|range| range.trim().rsplit(['-', ',']).next()?.parse().ok());
    last.map_or(4096, |last: u32| last.saturating_add(1))
}

/// Sets constants of the programs.
fn set(map: &mut OpenMapMut<'_>, wire: &[u8]) {
    let initial = map.initial_value_mut().expect("a data section has a value");
    assert_eq!(initial.len(), wire.len(), "{:?}", map.name());
    initial.copy_from_slice(wire);
}

/// The random start of the hashes of paths: without it, a program could choose two paths of one hash.
fn seed() -> u64 {
    RandomState::new().hash_one(std::process::id())
}

/// How long a jiffy of the kernel's lasts: that is the resolution of its coarse clocks.
fn tick_ns() -> u32 {
    let tick = rustix::time::clock_getres(rustix::time::ClockId::MonotonicCoarse);
    u32::try_from(tick.tv_nsec).unwrap_or(0)
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
        let has_rings = self.rings.is_some();
        wire.extend([self.by_peer, has_rings].map(|is| u32::from(is).to_ne_bytes()).concat());
        wire.extend([u32::from(self.lets_pass()), tick_ns()].map(u32::to_ne_bytes).concat());
        for word in self.passed.unwrap_or_default().into_iter().flatten() {
            wire.extend(word.to_ne_bytes());
        }
        wire.extend([u32::from(self.sampled), 0].map(u32::to_ne_bytes).concat());
        wire
    }

    /// Whether calls that are not counted are let pass at their entry: where nothing but their number is asked for.
    pub(in crate::bpf) fn lets_pass(&self) -> bool {
        let asks = self.by_path || self.by_peer || self.has_companions;
        self.passed.is_some() && !asks && !self.keeps_calls()
    }

    /// Whether single calls are kept whole.
    pub(super) fn keeps_calls(&self) -> bool {
        self.slowest > 0 || self.filter.has_until()
    }

    /// The size of a table of what is selected.
    fn most_selected(&self, table: &str) -> Option<usize> {
        match table {
            "selected_pids" => Some(self.selection.processes.len()),
            "selected_names" => Some(self.selection.names.len()),
            table => cgroups::rows(table, &self.selection.cgroups),
        }
    }

    /// The bits `BY_…` and `ONLY` of `trace.h`.
    fn selects(&self) -> u8 {
        let Selection { processes, names, cgroups, only } = &self.selection;
        let bits = [!processes.is_empty(), !names.is_empty(), !cgroups.is_empty(), *only];
        bits.into_iter().enumerate().map(|(at, is_set)| u8::from(is_set) << at).sum()
    }
}
