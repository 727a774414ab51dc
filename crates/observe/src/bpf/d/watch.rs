//! A run of a program: BEGIN, what fires until its processes have ended or it exits, and END.
//!
//! A command is held until all probes are attached, so that its first instruction is traced. It outlives
//! a program that calls `exit()`, and is waited for.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use iotomy_dtrace::engine::{Engine, deliver};
use iotomy_dtrace::form::{DropCause, Step};
use iotomy_dtrace::output::{Printer, Row};
use iotomy_record::Exit;
use iotomy_sys::launch::{self, Command, HeldChild};
use libbpf_rs::{MapCore, MapFlags};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::super::object::map;
use super::super::perf_events::online;
use super::super::refusal::refusal;
use super::super::unsupported;
use super::super::watch_loop::{open, reap};
use super::Kernel;
use crate::anatomy::side_band::{Listener, MappedBefore};
use crate::interrupts::Interrupts;
use crate::{ObserveError, attach};

/// The events that are printed before signals and times are looked at.
pub(super) const MOST_AT_ONCE: usize = 10_000;

/// Firings of a timer that are made up for at once, if it was kept waiting.
const MOST_TICKS: u128 = 1000;

/// The places of counters in `struct d_counters`.
const NESTED: usize = 4;
const LOST_CGROUPS: usize = 22;
const LOST_REQUESTS: usize = 23;

/// Takes what a program prints and tells while it runs.
pub trait Console {
    /// Output of the program.
    ///
    /// # Errors
    /// It cannot be written: the run ends.
    fn print(&mut self, text: &[u8]) -> io::Result<()>;

    /// An error in a clause: its place, the error and the probe.
    fn error(&mut self, line: &str);

    /// The program has ended: what is printed from now on are the aggregations that it did not print.
    fn ended(&mut self) {}

    /// Where output goes, if whoever reads it may have it wait, or go away.
    fn reader(&self) -> Option<BorrowedFd<'_>> {
        None
    }

    /// Whoever read the output has gone: the run ends.
    fn reader_is_gone(&mut self) {}

    /// A command of `system()`, behind the output before it.
    fn system(&mut self, command: &OsStr);
}

/// What a run left besides its output.
#[derive(Debug, Default)]
pub struct Finished {
    /// What was not kept, by cause.
    pub drops: BTreeMap<DropCause, u64>,
    /// Clauses that ended by an error, by its kind.
    pub faults: BTreeMap<&'static str, u64>,
    /// Firings that found no place to run, in interrupts of interrupts.
    pub nested: u64,
    /// Firings of timers that came too late to be made up for.
    pub missed: u64,
    /// Control groups that were made anew, and could not be followed.
    pub lost_cgroups: u64,
    /// Block requests that found no room: their ends fired nothing.
    pub lost_requests: u64,
    /// Tables of aggregations and events that could not be read.
    pub unread: u64,
    /// The status of `exit()`.
    pub status: Option<i32>,
    /// The aggregations as they were at the end.
    pub rows: Vec<Row>,
    /// How long the probes were attached.
    pub attached: Duration,
}

/// The processes that a program is run for. Signals that would end this process end the run, as long as
/// this lives.
pub struct Watch {
    interrupts: Interrupts,
    child: Child,
    /// Of those whose ends end the run.
    pidfds: Vec<OwnedFd>,
    target: Option<u32>,
    /// A signal came that ends the run while output waited for its reader: the rest of it is left out.
    is_given_up: Cell<bool>,
}

/// The command.
enum Child {
    None,
    Held(HeldChild),
    Running(u32),
    Ended(Exit),
}

impl Watch {
    /// Of a command, which is held until the program's probes are attached.
    ///
    /// # Errors
    /// Its process cannot be made.
    pub fn of_command(command: &Command) -> Result<Self, ObserveError> {
        let mut watch = Self::of_processes(&[])?;
        let held = launch::hold(command, watch.interrupts.original_mask().as_ref())?;
        let target = held.pid();
        watch.child = Child::Held(held);
        watch.target = Some(target);
        watch.pidfds = vec![open(target)?];
        Ok(watch)
    }

    /// Of running processes, whose ends end it. Of none, signals and the program itself do.
    ///
    /// # Errors
    /// One of them does not exist, or makes no calls.
    pub fn of_processes(ids: &[u32]) -> Result<Self, ObserveError> {
        let ids = ids.iter().map(|id| attach::process(*id)).collect::<Result<Vec<_>, _>>()?;
        let pidfds = ids.iter().map(|id| open(*id)).collect::<Result<_, _>>()?;
        let interrupts = Interrupts::hold().map_err(ObserveError::system("block signals"))?;
        let target = ids.first().copied();
        let is_given_up = Cell::new(false);
        Ok(Self { interrupts, child: Child::None, pidfds, target, is_given_up })
    }

    /// The process that is `$target` to a program.
    pub fn target(&self) -> Option<u32> {
        self.target
    }

    /// Runs a program that was loaded for this machine, for `most` at the longest.
    ///
    /// # Errors
    /// The command could not be started, the kernel's error, or that of the output.
    pub fn run(
        &mut self,
        kernel: &mut Kernel<'_>,
        source: &str,
        most: Option<Duration>,
        console: &mut dyn Console,
    ) -> Result<Finished, ObserveError> {
        let mut printer = Printer::new(kernel.form).with_names(kernel.names.clone());
        let listener = kernel.listener();
        kernel.fire_language("BEGIN")?;
        // What BEGIN prints is there before what the command does; nothing else fires yet.
        while !kernel.print(self, &mut printer, source, console)? {}
        if let Child::Held(held) = &self.child {
            kernel.leave_out(held.pid()).map_err(unsupported)?;
        }
        kernel.attach().map_err(unsupported)?;
        self.start()?;
        let began = Instant::now();
        let deadline = most.and_then(|most| began.checked_add(most));
        let mut ticks: Vec<_> =
            kernel.ticks.iter().map(|(number, every)| (*number, *every, began + *every)).collect();
        let is_of_processes = !self.pidfds.is_empty();
        let mut missed = 0;
        loop {
            let is_all = kernel.print(self, &mut printer, source, console)?;
            let is_over = deadline.is_some_and(|at| Instant::now() >= at);
            if kernel.has_exited() || is_over || (is_of_processes && self.pidfds.is_empty()) {
                break;
            }
            let now = (!is_all).then(Instant::now);
            let next = ticks.iter().map(|(_, _, at)| *at).chain(deadline).chain(now).min();
            if self.sleep(Some(kernel), next, console.reader())? {
                console.reader_is_gone();
                let gone = io::Error::from(io::ErrorKind::BrokenPipe);
                return Err(ObserveError::system("write the output")(gone));
            }
            if self.is_interrupted() || self.is_given_up.get() {
                break;
            }
            for (number, every, at) in &mut ticks {
                let late = Instant::now().checked_duration_since(*at);
                let due = late.map_or(0, |late| 1 + late.as_nanos() / every.as_nanos().max(1));
                for _ in 0..due.min(MOST_TICKS) {
                    if !kernel.has_exited() {
                        kernel.fire_here(*number)?;
                    }
                }
                missed += due.saturating_sub(MOST_TICKS) as u64;
                *at += every.saturating_mul(u32::try_from(due).unwrap_or(u32::MAX));
            }
        }
        let attached = began.elapsed();
        kernel.stop()?;
        kernel.names.complete(listener.and_then(Listener::finish));
        // END finds room for what it prints.
        while !kernel.print(self, &mut printer, source, console)? {}
        kernel.fire_language("END")?;
        while !kernel.print(self, &mut printer, source, console)? {}
        kernel.refresh();
        console.ended();
        let rows = printer.rows(kernel.aggregations());
        printer.unprinted(kernel.aggregations());
        self.flush(&mut printer, console)?;
        let counters = kernel.counters();
        let counter = |at: usize| counters.get(at).copied().unwrap_or(0);
        Ok(Finished {
            drops: kernel.drops(),
            faults: kernel.faults(),
            nested: counter(NESTED),
            lost_cgroups: counter(LOST_CGROUPS),
            lost_requests: counter(LOST_REQUESTS),
            missed,
            unread: kernel.rows.unread,
            status: kernel.exit(),
            rows,
            attached,
        })
    }

    /// Waits for the end of the command, if there is one: signals are passed on to it.
    ///
    /// # Errors
    /// When waiting itself fails.
    pub fn wait(mut self) -> Result<Option<Exit>, ObserveError> {
        while matches!(self.child, Child::Running(_)) {
            self.sleep(None, None, None)?;
            self.is_interrupted();
        }
        match self.child {
            Child::Ended(exit) => Ok(Some(exit)),
            _ => Ok(None),
        }
    }

    /// Lets the command go.
    fn start(&mut self) -> Result<(), ObserveError> {
        let Child::Held(held) = std::mem::replace(&mut self.child, Child::None) else {
            return Ok(());
        };
        let target = held.pid();
        if let Err(error) = held.release() {
            reap(target);
            return Err(error.into());
        }
        self.child = Child::Running(target);
        Ok(())
    }

    /// Takes the signals that have come; whether one ends the run. A command gets them instead.
    fn is_interrupted(&self) -> bool {
        let mut is_ended = false;
        while let Some(interrupt) = self.interrupts.next() {
            match self.child {
                Child::Running(command) => _ = interrupt.pass_on(command),
                _ => is_ended |= interrupt.ends_a_watch(),
            }
        }
        is_ended
    }

    /// Waits for events of the program, the end of a process, a signal or a time; whether the reader of the output
    /// has gone.
    fn sleep(
        &mut self,
        kernel: Option<&Kernel<'_>>,
        next: Option<Instant>,
        reader: Option<BorrowedFd<'_>>,
    ) -> Result<bool, ObserveError> {
        let events = kernel.map(|kernel| map(&kernel.object, "events"));
        let doorbell = events.as_ref().map(|events| events.as_fd());
        let mut waited = vec![PollFd::new(&self.interrupts, PollFlags::IN)];
        waited.extend(doorbell.iter().map(|doorbell| PollFd::new(doorbell, PollFlags::IN)));
        let place = waited.len();
        waited.extend(reader.iter().map(|reader| PollFd::new(reader, PollFlags::empty())));
        let before = waited.len();
        waited.extend(self.pidfds.iter().map(|pidfd| PollFd::new(pidfd, PollFlags::IN)));
        let left = next.map(|at| at.saturating_duration_since(Instant::now()));
        let timeout = left.map(|left| Timespec {
            tv_sec: i64::try_from(left.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: left.subsec_nanos().into(),
        });
        match poll(&mut waited, timeout.as_ref()) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(ObserveError::system("wait for events")(error)),
        }
        let is_gone = waited[place..before].iter().any(|one| !one.revents().is_empty());
        let ended: Vec<bool> =
            waited[before..].iter().map(|one| !one.revents().is_empty()).collect();
        let mut is_ended = ended.iter().copied();
        self.pidfds.retain(|_| !is_ended.next().unwrap_or(false));
        if let (Child::Running(command), true) = (&self.child, self.pidfds.is_empty()) {
            self.child = Child::Ended(reap(*command));
        }
        Ok(is_gone)
    }

    /// Prints what there is, and runs the commands in it.
    fn flush(
        &self,
        printer: &mut Printer<'_>,
        console: &mut dyn Console,
    ) -> Result<(), ObserveError> {
        let text = std::mem::take(&mut printer.text);
        let mut printed = 0;
        for (before, command) in printer.commands.drain(..) {
            self.write(&text[printed..before], console)?;
            printed = before;
            console.system(&command);
        }
        self.write(&text[printed..], console)?;
        printer.errors.drain(..).for_each(|line| console.error(&line));
        Ok(())
    }

    /// Prints a text. A signal is heard meanwhile, whether or not anyone reads.
    fn write(&self, text: &[u8], console: &mut dyn Console) -> Result<(), ObserveError> {
        // What a pipe that may be written to takes at once.
        let most = if console.reader().is_some() { 4096 } else { text.len().max(1) };
        for part in text.chunks(most) {
            if !self.may_write(console)? {
                break;
            }
            console.print(part).map_err(ObserveError::system("write the output"))?;
        }
        Ok(())
    }

    /// Waits until the output takes some; `false`: a signal came first.
    fn may_write(&self, console: &dyn Console) -> Result<bool, ObserveError> {
        while let Some(reader) = console.reader() {
            if self.is_given_up.get() {
                return Ok(false);
            }
            let mut waited = [
                PollFd::new(&reader, PollFlags::OUT),
                PollFd::new(&self.interrupts, PollFlags::IN),
            ];
            match poll(&mut waited, None) {
                Ok(_) | Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(ObserveError::system("wait for the output")(error)),
            }
            if !waited[0].revents().is_empty() {
                return Ok(true);
            }
            let has_come = !waited[1].revents().is_empty();
            if has_come && (self.is_interrupted() || matches!(self.child, Child::Running(_))) {
                self.is_given_up.set(true);
            }
        }
        Ok(true)
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        // A command that was not let go leaves when its barrier is closed.
        if let Child::Held(held) = std::mem::replace(&mut self.child, Child::None) {
            let target = held.pid();
            drop(held);
            reap(target);
        }
    }
}

impl Kernel<'_> {
    fn fire_language(&self, name: &str) -> Result<(), ObserveError> {
        let number = self.number(&iotomy_dtrace::Probe::of_language(name));
        number.map_or(Ok(()), |number| self.fire_here(number))
    }

    fn fire_here(&self, number: u32) -> Result<(), ObserveError> {
        self.fire_probe(number, false).map_err(unsupported)
    }

    /// Hears what processes map, if stacks of theirs are asked for. Without, those that have ended have no names.
    fn listener(&self) -> Option<Listener> {
        let is_asked = |step: &Step| matches!(step, Step::Stack { user: true, .. });
        let mut steps = self.form.clauses.iter().flat_map(|clause| &clause.steps);
        steps.any(is_asked).then(|| Listener::begin(&online(), &MappedBefore::ByAll).ok()).flatten()
    }

    /// Lets no probe fire for calls of a process until it runs a program.
    fn leave_out(&self, process: u32) -> Result<(), String> {
        map(&self.object, ".bss.held")
            .update(&0_u32.to_ne_bytes(), &process.to_ne_bytes(), MapFlags::ANY)
            .map_err(|error| refusal("tell the program of the command's process", &error))
    }

    /// Prints what is in the ring; whether that is all there was. Probes may fire faster than it prints.
    fn print(
        &mut self,
        watch: &Watch,
        printer: &mut Printer<'_>,
        source: &str,
        console: &mut dyn Console,
    ) -> Result<bool, ObserveError> {
        let form = self.form;
        let mut is_all = false;
        for _ in 0..MOST_AT_ONCE {
            let Some(one) = self.take() else {
                is_all = true;
                break;
            };
            deliver(self, form, printer, &one, source);
        }
        watch.flush(printer, console)?;
        Ok(is_all)
    }

    /// Lets no probe fire any more, but those that user space fires.
    fn stop(&mut self) -> Result<(), ObserveError> {
        let told = map(&self.object, ".bss.exited").update(
            &0_u32.to_ne_bytes(),
            &1_u32.to_ne_bytes(),
            MapFlags::ANY,
        );
        self.links.clear();
        self.event_links.clear();
        told.map_err(|error| unsupported(format!("cannot end the program: {error}")))
    }
}
