//! Loads a program: its object with its instructions, the sizes of its maps, and what they hold.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;
use std::time::Duration;

use iotomy_dtrace::form::{Aggregating, Form, VariableScope};
use iotomy_dtrace::kernel::{Emitted, KernelError, ROW_BYTES, ThreadVariables, layout};
use iotomy_dtrace::machine::Aggregations;
use iotomy_dtrace::types::Type;
use iotomy_dtrace::{Probe, Problem};
use iotomy_host::Cgroup;
use libbpf_rs::{MapCore, MapFlags, Object, OpenMapMut, OpenObject, RingBuffer, RingBufferBuilder};

use super::super::cgroups;
use super::super::embedded::{Embedded, Unpacked, embedded};
use super::super::features::feature;
use super::super::loading::{FORGETS, Purpose, TASK_STORAGE, load};
use super::super::object::{map, possible_cpus};
use super::super::perf_events::EventLinks;
use super::super::refusal::refusal;
use super::super::without::{Refused, Without, load_without};
use super::super::{remedy, usual_remedy};
use super::calls::{Known, Machine, Unmatched};
use super::place::Text;
use super::points::POINTS;
use super::rows::{self, Texts};
use super::watch::MOST_AT_ONCE;
use super::{FIRE, Kernel, PROFILE};

static OBJECT: Embedded = embedded!("d");

/// The same with what few programs need.
static DETAILS: Embedded = embedded!("d_details");

const PURPOSE: Purpose = Purpose {
    attempt: "load the D program",
    needs: &["ring buffers", "bpf_loop", "programs run by a call", "perf events", "attach cookies"],
};

/// The program that gives back the room of the variables of ended threads. In the list of what is attached it stands before
/// [`FORGETS`], which takes the thread's row.
const GIVES_BACK: &str = "give_back";

/// Bytes of `struct set` of `d.h`, and how many clauses one may have.
const MOST_IN_SET: usize = 62;

/// Why a program is not in the kernel.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// It has something that the kernel's side has not.
    #[error(transparent)]
    Program(#[from] KernelError),
    /// A probe has more clauses than there is room for.
    #[error("{probe} has {has} clauses, of at most {MOST_IN_SET}")]
    Clauses {
        /// The probe.
        probe: String,
        /// How many.
        has: usize,
    },
    /// A description that no probe of this machine matches.
    #[error("no probe matches {}", .0.description)]
    NoProbe(Unmatched),
    /// The kernel refused it: the call and the kernel's error.
    #[error("cannot run a D program by BPF: {reason}; {remedy}; see `iotomy doctor`", reason = .0, remedy = remedy(.0, &usual_remedy(.0)))]
    Refused(String),
}

impl LoadError {
    /// The problem at its place in the program's text, where it has one.
    pub fn problem(&self) -> Option<Problem> {
        let (span, advice) = match self {
            Self::Program(KernelError::Unsupported { span, .. }) => (span.clone(), ""),
            Self::NoProbe(one) => (one.place.clone(), &*one.advice),
            _ => return None,
        };
        Some(Problem { span, message: self.to_string(), advice: advice.to_owned() })
    }
}

impl<'f> Kernel<'f> {
    /// Loads a program for these probes, and the three of the language, which user space fires.
    ///
    /// # Errors
    /// What the program has that the kernel's side has not, or the kernel's error.
    pub fn load(form: &'f Form, probes: &[Probe]) -> Result<Self, LoadError> {
        let probes = probes.iter().cloned().map(Known::plain).collect();
        Self::load_for(form, Machine { probes, ..Machine::default() }, &[])
    }

    /// Loads a program for the probes of this machine, which fire in processes of these control groups, or in
    /// all without one. Nothing fires yet.
    ///
    /// # Errors
    /// As [`Kernel::load`], or a description that no probe matches.
    pub fn for_machine(form: &'f Form, cgroups: &[Cgroup]) -> Result<Self, LoadError> {
        Self::load_for(form, Machine::of(form).map_err(LoadError::NoProbe)?, cgroups)
    }

    /// Whether a program could be loaded for this machine, as far as that can be said without privilege.
    ///
    /// # Errors
    /// As [`Kernel::load`], or a description that no probe matches.
    pub fn check(form: &Form) -> Result<(), LoadError> {
        Compiled::of(form, Machine::of(form).map_err(LoadError::NoProbe)?, &[]).map(drop)
    }

    fn load_for(form: &'f Form, machine: Machine, cgroups: &[Cgroup]) -> Result<Self, LoadError> {
        let compiled = Compiled::of(form, machine, cgroups)?;
        let load = |without: &Without| Self::load_compiled(form, &compiled, without);
        load_without(load).map(|(loaded, _)| loaded).map_err(LoadError::Refused)
    }

    fn load_compiled(
        form: &'f Form,
        compiled: &Compiled,
        without: &Without,
    ) -> Result<Self, Refused> {
        let Compiled { all, unpacked, emitted, sets, machine, cgroups } = compiled;
        let is_scripted = machine.calls.is_empty();
        let mut without = without.clone();
        if is_scripted {
            // Threads that are given by their numbers have no storage of the kernel's.
            without.add(feature(TASK_STORAGE), String::new());
        }
        let without = &without;
        // What machines count from one on.
        let first = OF_LANGUAGE.len() as u32;
        let moved = |number: u32| if number == 0 { 0 } else { number + first };
        let both = |word: &u32| moved(word & 0xffff) | moved(word >> 16) << 16;
        let calls: Vec<u32> = machine.calls.iter().map(both).collect();
        let mut attached = Vec::new();
        let any = |shift: u32| calls.iter().any(|word| word >> shift & 0xffff != 0);
        let points: Vec<u32> = machine.points.iter().map(|number| moved(*number)).collect();
        for (name, is_needed) in [
            (GIVES_BACK, emitted.thread_words > 0 && !is_scripted),
            ("sched_switch", emitted.uses_vtimestamp && !is_scripted),
            ("sys_exit", any(16)),
            ("sys_enter", any(0)),
        ] {
            attached.extend(is_needed.then_some(name));
        }
        for (point, _) in POINTS.iter().zip(&points).filter(|(_, number)| **number != 0) {
            for program in point.programs {
                if !attached.contains(program) {
                    attached.push(program);
                }
            }
        }
        let timers = |all: &[(usize, Duration)]| {
            all.iter().map(|(at, every)| (moved(*at as u32 + 1), *every)).collect::<Vec<_>>()
        };
        let (ticks, profiles) = (timers(&machine.ticks), timers(&machine.profiles));
        let refused = |attempt: &'static str| {
            move |error: libbpf_rs::Error| Refused::from(refusal(attempt, &error))
        };
        let probes: Vec<Probe> = all.iter().map(|one| one.probe.clone()).collect();
        let mut open = unpacked.open()?;
        let probes_of = probes.len();
        let sizes = Sizes { form, emitted, probes: probes_of, sets, points: &points, cgroups };
        if without.lacks(feature(TASK_STORAGE)) {
            attached.push(FORGETS);
        }
        if !cgroups.is_empty() && !without.lacks(feature("tracepoints of control groups")) {
            attached.push("cgroup_mkdir");
        }
        let mut loaded = attached.clone();
        loaded.extend((!profiles.is_empty()).then_some(PROFILE));
        let has_clauses = |number: u32| !sets.all[usize::from(sets.of[number as usize])].is_empty();
        let fires_here =
            is_scripted || !ticks.is_empty() || [BEGIN, END].into_iter().any(has_clauses);
        loaded.extend(fires_here.then_some(FIRE));
        prepare(&mut open, &sizes, &loaded).map_err(refused("set up the BPF maps"))?;
        let object = load(open, &PURPOSE, without)?;
        let mut texts = Texts::default();
        fill(&object, emitted, &probes, &mut texts, sets).map_err(refused("fill the BPF maps"))?;
        fill_calls(&object, &calls).map_err(refused("fill the BPF maps"))?;
        if !cgroups.is_empty() {
            let one = 1_u32.to_ne_bytes();
            cgroups::select(cgroups, |table, key| {
                let put = map(&object, table).update(key, &one, MapFlags::ANY);
                put.map_err(|error| refusal("select control groups", &error))
            })?;
        }
        let queue = Rc::new(RefCell::new(VecDeque::new()));
        let ring = ring_of(&object, &queue).map_err(refused("map the BPF ring buffer"))?;
        let kernel = Self {
            form,
            object,
            ring,
            queue,
            probes,
            aggregations: Aggregations::new(form, &form.options),
            rows: rows::Rows::new(emitted.parts.clone(), texts),
            exit: None,
            links: Vec::new(),
            event_links: EventLinks::default(),
            attached,
            ticks,
            profiles,
            fires_here,
            names: Rc::default(),
            clause_lengths: emitted.clauses.clone(),
            clauses_of: sets.of.iter().map(|set| sets.all[usize::from(*set)].clone()).collect(),
        };
        kernel.find_self().map_err(refused("find this process"))?;
        Ok(kernel)
    }
}

const OF_LANGUAGE: [&str; 3] = ["BEGIN", "END", "ERROR"];

/// A program as instructions in its object, for the probes of a machine.
struct Compiled {
    /// By number; the first is none.
    all: Vec<Known>,
    unpacked: Unpacked,
    emitted: Emitted,
    sets: Sets,
    machine: Machine,
    cgroups: Vec<Cgroup>,
}

impl Compiled {
    fn of(form: &Form, mut machine: Machine, cgroups: &[Cgroup]) -> Result<Self, LoadError> {
        let mut all = vec![Known::plain(Probe::default())];
        all.extend(OF_LANGUAGE.map(Probe::of_language).map(Known::plain));
        all.append(&mut machine.probes);
        let mut points = POINTS.iter().zip(&machine.points);
        let is_detail =
            !cgroups.is_empty() || points.any(|(point, number)| point.is_detail && *number != 0);
        let is_locked =
            |one: &Known| POINTS.iter().any(|point| point.is(&one.probe) && point.is_locked());
        let of_threads = match all.iter().any(is_locked) {
            true => ThreadVariables::ByKey,
            false => ThreadVariables::InRows,
        };
        let emitted_into = |object| emitted_into(object, form, of_threads);
        let (unpacked, emitted) = match is_detail {
            true => emitted_into(&DETAILS)?,
            false => match emitted_into(&OBJECT) {
                // A function that few programs call.
                Err(LoadError::Program(KernelError::Lacks(_))) => emitted_into(&DETAILS)?,
                emitted => emitted?,
            },
        };
        let sets = Sets::of(form, &all)?;
        Ok(Self { all, unpacked, emitted, sets, machine, cgroups: cgroups.to_vec() })
    }
}

/// An object with the program as instructions in it.
fn emitted_into(
    object: &Embedded,
    form: &Form,
    of_threads: ThreadVariables,
) -> Result<(Unpacked, Emitted), LoadError> {
    let mut unpacked = object.unpack().map_err(LoadError::Refused)?;
    let text = Text::of(&unpacked.bytes);
    let text = text.ok_or(LoadError::Refused("the BPF object has no place for it".to_owned()))?;
    let emitted = text.with_functions(|functions| form.emit(functions, of_threads))?;
    unpacked.bytes = text.with(&emitted.instructions);
    Ok((unpacked, emitted))
}

/// The ring of events, which puts what it has into a queue.
fn ring_of(
    object: &Object,
    queue: &Rc<RefCell<VecDeque<Vec<u8>>>>,
) -> Result<RingBuffer<'static>, libbpf_rs::Error> {
    let to = queue.clone();
    let events = map(object, "events");
    let mut builder = RingBufferBuilder::new();
    builder.add(&events, move |bytes| {
        let mut queue = to.borrow_mut();
        queue.push_back(bytes.to_vec());
        // An error leaves the rest for later.
        if queue.len() < MOST_AT_ONCE { 0 } else { -1 }
    })?;
    builder.build()
}

/// Which clauses probes have: those with the same share a set.
struct Sets {
    all: Vec<Vec<u16>>,
    of: Vec<u16>,
}

impl Sets {
    fn of(form: &Form, probes: &[Known]) -> Result<Self, LoadError> {
        let mut sets = Self { all: vec![Vec::new()], of: Vec::new() };
        for (number, probe) in probes.iter().enumerate() {
            let clauses = 0..form.clauses.len();
            let clauses = clauses.filter(|clause| number > 0 && probe.is_of(form, *clause));
            let clauses: Vec<u16> = clauses.map(|at| at as u16).collect();
            if clauses.len() > MOST_IN_SET {
                let (probe, has) = (probe.probe.to_string(), clauses.len());
                return Err(LoadError::Clauses { probe, has });
            }
            let known = sets.all.iter().position(|one| *one == clauses);
            sets.of.push(known.unwrap_or(sets.all.len()) as u16);
            if known.is_none() {
                sets.all.push(clauses);
            }
        }
        Ok(sets)
    }
}

/// The numbers of the language's probes: behind none.
const BEGIN: u32 = 1;
const END: u32 = 2;
const ERROR: u32 = 3;

/// What the sizes of maps depend on.
struct Sizes<'s> {
    form: &'s Form,
    emitted: &'s Emitted,
    probes: usize,
    sets: &'s Sets,
    points: &'s [u32],
    cgroups: &'s [Cgroup],
}

fn prepare(
    open: &mut OpenObject,
    sizes: &Sizes<'_>,
    loaded: &[&str],
) -> Result<(), libbpf_rs::Error> {
    let Sizes { form, emitted, probes, sets, points, cgroups } = sizes;
    for mut program in open.progs_mut() {
        let name = program.name().to_string_lossy().into_owned();
        program.set_autoload(name == "find_self" || loaded.contains(&&*name));
    }
    let largest = emitted.largest_row.max(emitted.largest_variable);
    let large = largest.max(layout::SMALL_KEY).next_multiple_of(8) as u32;
    let is_large = largest > layout::SMALL_KEY;
    let small = |largest: usize| largest.clamp(8, layout::SMALL_KEY).next_multiple_of(8) as u32;
    let [row, variable] = [emitted.largest_row, emitted.largest_variable].map(small);
    let string = 8 + form.options.strsize.next_multiple_of(8);
    let keyed = |is_string: bool| {
        form.variables.iter().any(|one| {
            let is_keyed = one.keys.is_some() || one.scope == VariableScope::Thread;
            is_keyed && (one.of == Type::String) == is_string
        })
    };
    let rows = most_rows(form, emitted).saturating_mul(u64::from(possible_cpus()));
    let variables = form.options.dynvarsize / 64;
    let count = |is_there: bool, most: u64| match is_there {
        true => most.clamp(1, 1 << 20) as u32,
        false => 1,
    };
    let aggregates = !form.aggregations.is_empty();
    let row_words = form.aggregations.iter().map(|one| words(one.function)).max().unwrap_or(1);
    for mut map in open.maps_mut() {
        let name = map.name().to_string_lossy().into_owned();
        match &*name {
            "literals" => map.set_value_size(emitted.literals.len().max(8) as u32)?,
            "probes" => map.set_max_entries(*probes as u32)?,
            "sets" => map.set_max_entries(sets.all.len() as u32)?,
            "rows" => {
                map.set_key_size(row)?;
                map.set_value_size(8 * row_words as u32)?;
                map.set_max_entries(count(aggregates, rows))?;
            }
            "numbers" => {
                map.set_key_size(variable)?;
                map.set_max_entries(count(keyed(false), variables))?;
            }
            "strings" => {
                map.set_key_size(variable)?;
                map.set_value_size(string)?;
                map.set_max_entries(count(keyed(true), variables))?;
            }
            "large_rows" => {
                map.set_key_size(large)?;
                map.set_value_size(8 * row_words as u32)?;
                map.set_max_entries(count(aggregates && is_large, rows))?;
            }
            "large_numbers" => {
                map.set_key_size(large)?;
                map.set_max_entries(count(keyed(false) && is_large, variables))?;
            }
            "large_strings" => {
                map.set_key_size(large)?;
                map.set_value_size(string)?;
                map.set_max_entries(count(keyed(true) && is_large, variables))?;
            }
            "global_strings" => {
                map.set_value_size(string)?;
                map.set_max_entries(emitted.global_strings.max(1))?;
            }
            "events" => {
                let bytes = form.options.bufsize.clamp(4096, 1 << 30).next_power_of_two();
                map.set_max_entries(bytes as u32)?;
            }
            ".rodata.knobs" => {
                let words = [
                    u32::from(!cgroups.is_empty()),
                    form.options.strsize,
                    ERROR,
                    large,
                    row / 8,
                    variable / 8,
                    emitted.locals as u32,
                    sets.all.iter().map(Vec::len).max().unwrap_or(0) as u32,
                    u32::from(emitted.uses_vtimestamp || emitted.thread_words > 0),
                    row_words as u32,
                ];
                set_knobs(&mut map, form, words, points);
            }
            table => {
                if let Some(rows) = cgroups::rows(table, cgroups) {
                    map.set_max_entries(rows.max(1) as u32)?;
                }
            }
        }
    }
    Ok(())
}

/// Words of the value of an aggregation, as `d_aggregations.bpf.h` has them.
fn words(function: Aggregating) -> usize {
    match function {
        Aggregating::Average | Aggregating::StandardDeviation => 4,
        Aggregating::Minimum | Aggregating::Maximum => 2,
        _ => 1,
    }
}

/// Rows of an aggregation that was cleared stay until they are read once more: beside those of now there are those of the
/// interval before, and what a firing that was under way adds to the one before that. Those without keys are few, and have
/// the room for it; keyed ones share what `aggsize` gives, and what finds no place is counted.
const EPOCHS: u64 = 3;

/// A firing may interrupt another one on its CPU, twice; each has rows of its own.
const DEPTHS: u64 = 3;

/// How many rows of aggregations a CPU has room for. The kernel's table has a place for each from the start, of which
/// there are the next power of two.
fn most_rows(form: &Form, emitted: &Emitted) -> u64 {
    let aggsize = form.options.aggsize;
    if form.aggregations.iter().any(|one| one.function.is_distribution()) {
        // Each bin has a row.
        return aggsize / 16;
    }
    let single = form.aggregations.iter().filter(|one| one.keys.is_empty()).count() as u64;
    let left = aggsize.saturating_sub(single * ROW_BYTES);
    EPOCHS * DEPTHS * single + emitted.least_row.map_or(0, |bytes| left / bytes)
}

/// `struct d_knobs` of `d.h`.
fn set_knobs(map: &mut OpenMapMut<'_>, form: &Form, words: [u32; 10], points: &[u32]) {
    let options = &form.options;
    let mut wire = words.map(u32::to_ne_bytes).concat();
    let sizes = [options.aggsize, options.dynvarsize, options.bufsize, wall_offset()];
    wire.extend(sizes.iter().flat_map(|size| size.to_ne_bytes()));
    let points = POINTS.iter().enumerate().map(|(at, _)| points.get(at).copied().unwrap_or(0));
    wire.extend(points.flat_map(u32::to_ne_bytes));
    // As long as a struct with words in it.
    wire.resize(wire.len().next_multiple_of(8), 0);
    let initial = map.initial_value_mut().expect("a data section has a value");
    assert_eq!(initial.len(), wire.len(), "knobs");
    initial.copy_from_slice(&wire);
}

/// What is added to the time of the kernel's clock for that of the day.
fn wall_offset() -> u64 {
    let clock = |id| {
        let time = rustix::time::clock_gettime(id);
        (time.tv_sec * 1_000_000_000).wrapping_add(time.tv_nsec)
    };
    let of_day = clock(rustix::time::ClockId::Realtime);
    of_day.wrapping_sub(clock(rustix::time::ClockId::Monotonic)).cast_unsigned()
}

fn fill(
    object: &Object,
    emitted: &Emitted,
    probes: &[Probe],
    texts: &mut Texts,
    sets: &Sets,
) -> Result<(), libbpf_rs::Error> {
    let mut literals = emitted.literals.clone();
    literals.resize(literals.len().max(8), 0);
    map(object, "literals").update(&0_u32.to_ne_bytes(), &literals, MapFlags::ANY)?;
    for (at, (probe, set)) in probes.iter().zip(&sets.of).enumerate() {
        let wire = probe_wire(probe, *set, texts);
        map(object, "probes").update(&(at as u32).to_ne_bytes(), &wire, MapFlags::ANY)?;
    }
    for (at, set) in sets.all.iter().enumerate() {
        let mut words = vec![set.len() as u16];
        words.extend(set);
        words.resize(MOST_IN_SET + 2, 0);
        let wire: Vec<u8> = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
        map(object, "sets").update(&(at as u32).to_ne_bytes(), &wire, MapFlags::ANY)?;
    }
    Ok(())
}

fn fill_calls(object: &Object, calls: &[u32]) -> Result<(), libbpf_rs::Error> {
    let table = map(object, "calls");
    for (number, probes) in (0_u32..).zip(calls).filter(|(_, probes)| **probes != 0) {
        table.update(&number.to_ne_bytes(), &probes.to_ne_bytes(), MapFlags::ANY)?;
    }
    Ok(())
}

/// `struct probe` of `d.h`.
fn probe_wire(probe: &Probe, set: u16, numbers: &mut Texts) -> Vec<u8> {
    let texts =
        [(&probe.provider, 16), (&probe.module, 16), (&probe.function, 64), (&probe.name, 32)];
    let mut wire = set.to_ne_bytes().to_vec();
    for (text, room) in texts {
        wire.extend((text.len().min(room - 1) as u16).to_ne_bytes());
    }
    wire.extend([0; 2]);
    wire.extend(probe.id.to_ne_bytes());
    for (text, room) in texts {
        wire.extend(numbers.number(&text.as_bytes()[..text.len().min(room - 1)]).to_ne_bytes());
    }
    for (text, room) in texts {
        let mut bytes = text.as_bytes()[..text.len().min(room - 1)].to_vec();
        bytes.resize(room, 0);
        wire.extend(bytes);
    }
    wire
}
