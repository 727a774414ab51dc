//! Runs a D program in the kernel (`d.bpf.c`).
//!
//! The clauses become instructions ([`iotomy_dtrace::kernel`]) that take the place of the last function of
//! the object before it is opened (`place`). [`Kernel`] is the loaded program: it fires probes, reads
//! the ring of events and the rows of aggregations, and hands both on as the reference evaluator does
//! ([`iotomy_dtrace::engine::Engine`]).

mod calls;
mod events;
mod explain;
mod given;
mod load;
mod names;
mod place;
mod points;
mod rows;
mod watch;

use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::rc::Rc;
use std::time::Duration;

use iotomy_dtrace::Probe;
use iotomy_dtrace::engine::Engine;
use iotomy_dtrace::form::{Action, DropCause, Form};
use iotomy_dtrace::machine::{Aggregations, Firing, Output, Value, World};
use iotomy_sys::perf_event::{Scope, open_clock};
use libbpf_rs::{Link, MapCore, MapFlags, Object, ProgramInput, RingBuffer};

use super::object::map;
use super::perf_events::{EventLinks, attach_event, online};
use super::refusal::refusal;
pub use calls::probes;
pub use explain::{Explanation, MapFacts, ProbeFacts, ProgramFacts};
pub use load::LoadError;
pub use watch::{Console, Finished, Watch};

/// A program in the kernel.
pub struct Kernel<'f> {
    form: &'f Form,
    object: Object,
    ring: RingBuffer<'static>,
    queue: Rc<RefCell<VecDeque<Vec<u8>>>>,
    /// By number; the first is none.
    probes: Vec<Probe>,
    aggregations: Aggregations,
    rows: rows::Rows,
    exit: Option<i32>,
    links: Vec<Link>,
    event_links: EventLinks,
    /// The programs that are attached, in their order.
    attached: Vec<&'static str>,
    /// Timers: numbers of probes, and their intervals.
    ticks: Vec<(u32, Duration)>,
    /// Timers of each CPU.
    profiles: Vec<(u32, Duration)>,
    /// The program that user space runs is loaded.
    fires_here: bool,
    names: Rc<names::MachineNames>,
    /// Instructions of each clause.
    clause_lengths: Vec<usize>,
    /// The clauses of each probe.
    clauses_of: Vec<Vec<u16>>,
}

/// The program that they run.
const PROFILE: &str = "profile";
/// The one that user space runs.
const FIRE: &str = "fire_probe";

impl fmt::Debug for Kernel<'_> {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.debug_struct("Kernel").field("probes", &self.probes.len()).finish_non_exhaustive()
    }
}

impl Kernel<'_> {
    /// The number of a probe that was named when the program was loaded.
    fn number(&self, probe: &Probe) -> Option<u32> {
        let same = |one: &Probe| {
            let names = |probe: &Probe| {
                [&probe.provider, &probe.module, &probe.function, &probe.name].map(String::clone)
            };
            names(one) == names(probe)
        };
        self.probes.iter().position(same).map(|at| at as u32)
    }

    /// Attaches its programs.
    fn attach(&mut self) -> Result<(), String> {
        for name in &self.attached {
            let mut programs = self.object.progs_mut();
            let program = programs.find(|one| one.name() == *name).expect("the object has it");
            let link = program.attach();
            self.links.push(link.map_err(|error| refusal(&format!("attach {name}"), &error))?);
        }
        for (number, every) in &self.profiles {
            for cpu in online() {
                let event = open_clock(Scope::Cpu(cpu), *every)
                    .map_err(|error| format!("cannot open a timer of CPU {cpu}: {error}"))?;
                let mut programs = self.object.progs_mut();
                let program =
                    programs.find(|one| one.name() == PROFILE).expect("the object has it");
                self.event_links.push(attach_event(&program, event, (*number).into())?);
            }
        }
        Ok(())
    }

    /// Runs the clauses of a probe in this thread, whose facts are its own or what was given.
    fn fire_probe(&self, number: u32, is_given: bool) -> Result<(), String> {
        if self.clauses_of.get(number as usize).is_some_and(Vec::is_empty) {
            return Ok(());
        }
        let mut context = [number, u32::from(is_given)].map(u32::to_ne_bytes).concat();
        let input = ProgramInput { context_in: Some(&mut context), ..ProgramInput::default() };
        match self.run(FIRE, input).map_err(|error| refusal("fire a probe", &error))? {
            0 => Ok(()),
            error => Err(format!("cannot fire a probe: {error}")),
        }
    }

    /// Tells the programs which process this is, and which numbers it has for others.
    fn find_self(&self) -> Result<(), libbpf_rs::Error> {
        self.run("find_self", ProgramInput::default()).map(drop)
    }

    /// Runs a program of the object in this thread; returns its result.
    fn run(&self, name: &str, input: ProgramInput<'_>) -> Result<u32, libbpf_rs::Error> {
        let mut programs = self.object.progs_mut();
        let program = programs.find(|one| one.name() == name).expect("the object has it");
        program.test_run(input).map(|output| output.return_value)
    }

    /// Whether `exit()` was called.
    fn has_exited(&self) -> bool {
        self.section(".bss.exited").iter().any(|byte| *byte != 0)
    }

    fn section(&self, name: &str) -> Vec<u8> {
        let value = map(&self.object, name).lookup(&0_u32.to_ne_bytes(), MapFlags::ANY);
        value.ok().flatten().unwrap_or_default()
    }

    /// `struct d_counters` of `d.h`, in words.
    fn counters(&self) -> Vec<u64> {
        let bytes = self.section(".bss.counters");
        let word = |bytes: &[u8]| u64::from_ne_bytes(bytes.try_into().unwrap_or_default());
        bytes.chunks_exact(8).map(word).collect()
    }
}

impl Engine for Kernel<'_> {
    fn fire(&mut self, _world: &World, firing: &Firing) -> Result<(), String> {
        let is_end = firing.probe.provider == "dtrace" && firing.probe.name == "END";
        if !is_end && self.has_exited() {
            return Ok(());
        }
        let number = self.number(&firing.probe);
        let number =
            number.ok_or_else(|| format!("the program was loaded without {}", firing.probe))?;
        let given = given::wire(firing)?;
        map(&self.object, "given")
            .update(&0_u32.to_ne_bytes(), &given, MapFlags::ANY)
            .map_err(|error| refusal("give a probe its facts", &error))?;
        self.fire_probe(number, true)
    }

    fn take(&mut self) -> Option<Output> {
        if self.queue.borrow().is_empty() {
            self.ring.consume_raw();
        }
        let output = loop {
            let bytes = self.queue.borrow_mut().pop_front()?;
            match events::output(self.form, &self.probes, &bytes) {
                Some(output) => break output,
                None => self.rows.unread += 1,
            }
        };
        if let Output::Event(event) = &output {
            let mut records = event.records.iter().rev();
            let exits = records
                .find(|(number, _)| self.form.records[usize::from(*number)].action == Action::Exit);
            let status = exits.map(|(_, values)| values.first().map_or(0, Value::integer));
            // Of several, the last counts.
            self.exit = status.map(|status| status as i32).or(self.exit);
        }
        Some(output)
    }

    fn refresh(&mut self) {
        self.rows.read(&self.object, self.form, &mut self.aggregations);
    }

    fn aggregations(&mut self) -> &mut Aggregations {
        &mut self.aggregations
    }

    fn clearing(&mut self, aggregation: u16) {
        self.rows.begin_epoch(&self.object, aggregation);
    }

    fn cleared(&mut self, aggregation: u16) {
        self.rows.end_epoch(aggregation, &self.aggregations);
    }

    fn drops(&mut self) -> BTreeMap<DropCause, u64> {
        let counters = self.counters();
        let causes = [
            DropCause::Buffer,
            DropCause::Aggregation,
            DropCause::DynamicVariable,
            DropCause::ErrorInError,
        ];
        causes.into_iter().zip(counters).filter(|(_, count)| *count > 0).collect()
    }

    fn faults(&mut self) -> BTreeMap<&'static str, u64> {
        const FIRST: usize = 5;
        let counters = self.counters();
        let kinds = [
            ("invalid address", 1),
            ("illegal operation", 3),
            ("division by zero", 4),
            ("out of scratch space", 5),
            ("string too long", 10),
        ];
        let count = |at: usize| counters.get(FIRST + at).copied().unwrap_or(0);
        kinds
            .into_iter()
            .map(|(name, at)| (name, count(at)))
            .filter(|(_, many)| *many > 0)
            .collect()
    }

    fn exit(&self) -> Option<i32> {
        self.exit
    }
}
