//! What a program became: instructions, attach points, maps, and what its runs took.

use std::os::fd::{AsFd, OwnedFd};

use iotomy_dtrace::Probe;
use iotomy_sys::bpf_stats::{self, ProgramStats};
use libbpf_rs::{MapCore, MapType};

use super::super::object::possible_cpus;
use super::points::POINTS;
use super::{FIRE, Kernel, PROFILE};

/// What a program became.
#[derive(Debug, Clone, Default)]
pub struct Explanation {
    /// Instructions of each clause, by its number.
    pub clauses: Vec<usize>,
    /// The probes that fire, with where each is attached and the clauses it has.
    pub probes: Vec<ProbeFacts>,
    /// The programs that are attached.
    pub programs: Vec<ProgramFacts>,
    /// The maps.
    pub maps: Vec<MapFacts>,
}

/// A probe.
#[derive(Debug, Clone)]
pub struct ProbeFacts {
    /// Which.
    pub probe: Probe,
    /// Where it is attached: a tracepoint, a timer, or iotomy itself.
    pub attached: String,
    /// The numbers of its clauses, from 1 on.
    pub clauses: Vec<usize>,
}

/// A program of the kernel.
#[derive(Debug, Clone)]
pub struct ProgramFacts {
    /// Its name.
    pub name: String,
    /// Its section: its type and where it is attached.
    pub section: String,
    /// Instructions, those of the clauses and functions included.
    pub instructions: usize,
    /// What the kernel says of it.
    pub stats: ProgramStats,
}

/// A map.
#[derive(Debug, Clone)]
pub struct MapFacts {
    /// Its name.
    pub name: String,
    /// Its type.
    pub kind: String,
    /// Entries at most.
    pub entries: u32,
    /// Bytes of a key.
    pub key_bytes: u32,
    /// Bytes of a value.
    pub value_bytes: u32,
    /// What all entries take at most, with their values of each CPU.
    pub most_bytes: u64,
}

impl Kernel<'_> {
    /// Has the runs of the programs counted, until what is returned is dropped.
    ///
    /// # Errors
    /// The kernel's refusal, in words.
    pub fn count_runs(&self) -> Result<OwnedFd, String> {
        bpf_stats::count_runs()
            .map_err(|error| format!("cannot count the runs of BPF programs: {error}"))
    }

    /// What the program became.
    pub fn explain(&self) -> Explanation {
        Explanation {
            clauses: self.clause_lengths.clone(),
            probes: self
                .probes
                .iter()
                .enumerate()
                .skip(1)
                .filter_map(|one| self.probe(one))
                .collect(),
            programs: self.programs(),
            maps: self.maps(),
        }
    }

    fn probe(&self, (number, probe): (usize, &Probe)) -> Option<ProbeFacts> {
        let clauses: Vec<usize> =
            self.clauses_of.get(number)?.iter().map(|clause| usize::from(*clause) + 1).collect();
        let point = POINTS.iter().find(|point| point.is(probe));
        let is_tick = probe.name.starts_with("tick-");
        let section = |name: &str| self.section_of(name).unwrap_or_else(|| name.to_owned());
        let attached = match (&*probe.provider, &*probe.name) {
            ("syscall", "entry") => section("sys_enter"),
            ("syscall", _) => section("sys_exit"),
            ("profile", _) if is_tick => "a timer of iotomy".to_owned(),
            ("profile", _) => "a perf event of each CPU".to_owned(),
            _ => match point.and_then(|point| point.programs.last()) {
                Some(program) => section(program),
                None => "iotomy itself".to_owned(),
            },
        };
        (!clauses.is_empty()).then(|| ProbeFacts { probe: probe.clone(), attached, clauses })
    }

    fn section_of(&self, name: &str) -> Option<String> {
        let program = self.object.progs().find(|one| one.name() == name)?;
        Some(program.section().to_string_lossy().into_owned())
    }

    fn programs(&self) -> Vec<ProgramFacts> {
        let is_attached = |name: &str| {
            self.attached.contains(&name) || (name == PROFILE && !self.profiles.is_empty())
        };
        let programs = self.object.progs().filter_map(|program| {
            let name = program.name().to_string_lossy().into_owned();
            let is_run = name == FIRE && self.fires_here;
            (is_attached(&name) || is_run).then(|| ProgramFacts {
                section: program.section().to_string_lossy().into_owned(),
                instructions: program.insn_cnt(),
                stats: bpf_stats::of_program(program.as_fd()).unwrap_or_default(),
                name,
            })
        });
        programs.collect()
    }

    fn maps(&self) -> Vec<MapFacts> {
        let maps = self.object.maps().map(|map| {
            let kind = map.map_type();
            let (entries, key, value) = (map.max_entries(), map.key_size(), map.value_size());
            let copies = match kind {
                MapType::PercpuArray | MapType::PercpuHash => u64::from(possible_cpus()),
                _ => 1,
            };
            let most_bytes = match kind {
                MapType::RingBuf => u64::from(entries),
                _ => u64::from(entries) * (u64::from(key) + copies * u64::from(value)),
            };
            MapFacts {
                name: map.name().to_string_lossy().into_owned(),
                kind: format!("{kind:?}"),
                entries,
                key_bytes: key,
                value_bytes: value,
                most_bytes,
            }
        });
        maps.collect()
    }
}
