//! The `bpf` observer: BPF programs on BTF-typed raw tracepoints count and time every call in the
//! kernel; user space sleeps until the command has ended and then reads the totals.
//!
//! The order matters: load, attach, calibrate, and only then is a command released, so that its
//! very first call is counted.
//!
//! # How calls are counted
//!
//! `trace.bpf.c` and its parts (`images`, `calls`, `untraced`, `sched`, `files`). Each watched thread has a
//! `struct thread` in task storage: the last boundary between user and kernel, time off the CPU so far, the
//! current call. `sys_enter` closes the user span, `sys_exit` the call's; `sched_switch` and `sched_wakeup` add
//! time off the CPU, split into blocked time and run queue delay.
//!
//! Rows are kept by (thread, call), not by process: a thread runs on one CPU at a time, so no counter is shared
//! and none needs an atomic. (Per-CPU maps would multiply memory by CPUs and rely on programs not being
//! preempted, which newer kernels no longer promise.) A call that stayed on its CPU, as most do, has one row with
//! two histograms, since its wall and on-CPU time are the same; only a call that left its CPU has a second row
//! with three more. A frequent call counts in the thread's own storage and moves to the table when the thread
//! ends or executes another program. Counters are 32 bits wide; one that overflows is carried into a table of its
//! own.
//!
//! User space sums rows by image. When many threads have ended, a ring buffer wakes it, and it
//! collects and frees their rows, so memory follows the living threads. A watch ends at one moment
//! (`ended_ns`): detaching takes milliseconds and goes program by program. After that moment a
//! thread's books only change when they are closed.
//!
//! An exec keeps the thread and gives it a new id and image; the exec's own call is counted in the
//! image that made it. An `execve` from iotomy's own child (the launcher, image 0) is counted in
//! the image it makes. A thread that ends is settled at its last switch, not at
//! `sched_process_exit`, so that its last work is in the ledger. File paths are walked in BPF on
//! first sight: a process may be gone before user space could read /proc. Process ids are those of
//! iotomy's own pid namespace, so a watch works inside a container.
//!
//! # How programs are loaded
//!
//! The verifier takes most of the time. It checks a non-static function once and alone, not once for each path
//! that leads to it, so functions that loop or branch much are not static. Pointers in structs that the verifier
//! trusts are read through `UNTRUSTED` (`fields.bpf.h`), which spares it a search of all types of the kernel. A
//! test bounds the sum of its steps. There is no generated skeleton, which would be unsafe code outside `sys`: the
//! object is opened by name, and the structs of `trace.h` are read field by field, their sizes asserted against
//! the loaded maps. Maps are read in batches by `sys::map_batch`: libbpf-rs takes a short batch for the last one,
//! and the kernel may return one in the middle.
//!
//! The overhead is measured before the command is released ([`calibrate`]): a call and a switch
//! each have a range (`price.rs`), from which the run's overhead follows by its exact counts.

pub(crate) mod block;
mod books;
mod btf;
mod calibrate;
mod call_numbers;
mod cgroups;
pub(crate) mod companion;
mod condition;
mod connection_rows;
mod connections;
pub mod d;
mod details;
mod embedded;
mod exchanges;
pub(crate) mod features;
mod file_numbers;
mod firing;
mod groups;
mod helper_calls;
mod kernel_types;
mod layout;
mod live;
mod loading;
mod names;
mod numbers;
mod object;
mod outcome;
mod parts;
mod perf_events;
mod refusal;
mod refuse;
mod ring_programs;
mod ring_rows;
mod rings;
mod running;
mod sample_object;
mod sample_price;
mod sample_rows;
pub(crate) mod sampler;
mod settings;
mod slowest;
mod snapshot;
mod sockets;
mod user_stack;
pub(crate) mod uses;
#[cfg(test)]
mod usual_lines;
mod wakeups;
mod watch_loop;
mod windows;
mod without;

use std::time::Instant;

use iotomy_host::privilege;
use iotomy_record::{Exit, ObserverUse, Running, Trace};
use iotomy_sys::launch::{self, Command};

use self::block::Block;
use self::books::Books;
use self::calibrate::Calibration;
use self::companion::{Companion, Images};
use self::exchanges::Exchanges;
pub use self::features::{FEATURES, Feature};
use self::object::{Adoption, Knobs, Session};
pub(crate) use self::refusal::remedy;
pub use self::running::SwitchWatch;
use self::sampler::Sampler;
use self::settings::{knobs, trial};
pub use self::uses::uses;
pub use self::wakeups::Wakeups;
use self::watch_loop::{Subject, WatchLoop};
use self::windows::{Ended, Sampling};
use crate::anatomy::SampleSettings;
use crate::anatomy::side_band::MappedBefore;
use crate::cache;
use crate::capacity::Limits;
use crate::clock::{kernel_now, nanos};
use crate::interrupts::Interrupts;
use crate::price::Price;
use crate::request::{Request, Target};
use crate::{
    ObserveError, Observer, ObserverDeclaration, OptionalViewer, Probe, Selection, WatchStart,
};

/// Counts and times calls in the kernel.
pub(crate) struct Bpf;

static DECLARATION: ObserverDeclaration = ObserverDeclaration {
    name: "bpf",
    summary: "counts and times calls in the kernel, with BPF programs on tracepoints",
    description: "BTF-typed raw tracepoints on the entry and exit of system calls, on task \
        switches and wake-ups, and on fork, exec and exit keep exact counts, power-of-two \
        distributions and a time ledger for each thread in the kernel. No call sends an event, so \
        none is dropped under load. The overhead is some hundred ns a call; unwatched processes \
        pay for one failed lookup at the entry and exit of each call. Requests of io_uring \
        are counted from submission to completion.",
    privilege: "root, or CAP_BPF and CAP_PERFMON",
    times_inflated: false,
    splits_time: true,
    watches_machine: true,
};

/// What loads the programs.
const NEEDED: [&str; 2] = ["CAP_BPF", "CAP_PERFMON"];

/// The remedy where the programs could not be loaded.
pub(crate) fn usual_remedy(reason: &str) -> String {
    const BTF: &str = "a kernel with BTF (/sys/kernel/btf/vmlinux)";
    match reason.contains("EPERM") || reason.contains("EACCES") {
        _ if !privilege::has(&NEEDED) => format!("{}, on {BTF}", privilege::privilege(&NEEDED)),
        true => privilege::privilege(&NEEDED),
        false => format!("use {BTF}"),
    }
}

impl Observer for Bpf {
    fn declaration(&self) -> &'static ObserverDeclaration {
        &DECLARATION
    }

    fn probe(&self) -> Probe {
        match probe_with(&mut []) {
            Ok(()) => Probe::Ready,
            Err(reason) => {
                Probe::Unsupported { remedy: remedy(&reason, &usual_remedy(&reason)), reason }
            }
        }
    }

    fn watch_before(
        &self,
        request: &Request,
        viewer: OptionalViewer<'_>,
    ) -> Result<Trace, ObserveError> {
        if !request.requests {
            return watch(request, &mut [], viewer);
        }
        let mut exchanges = Exchanges::new(request.rows);
        let mut trace = watch(request, &mut [&mut exchanges], viewer)?;
        let found = exchanges.into_found();
        trace.requests = found.requests;
        trace.observer.lost_exchanges = found.lost;
        trace.observer.unclear_connections = found.unclear;
        Ok(trace)
    }
}

/// Watches as the observer does, with others beside it.
///
/// # Errors
/// As [`Observer::watch_before`], and when a companion cannot start.
pub(crate) fn watch(
    request: &Request,
    companions: &mut [&mut dyn Companion],
    viewer: OptionalViewer<'_>,
) -> Result<Trace, ObserveError> {
    let started = Instant::now();
    let selection = match &request.target {
        Target::Running(selection) => selection.resolved()?,
        _ => Selection::default(),
    };
    let calibration = Calibration::begin(request.peers).map_err(unsupported)?;
    let knobs = Knobs {
        selection: selection.clone(),
        has_companions: !companions.is_empty(),
        ..knobs(request, viewer.is_some())
    };
    let mut session = companion::load(&knobs, companions).map_err(unsupported)?;
    if knobs.sampled {
        // Until the overhead of a call outside windows is measured.
        session.shutter().and_then(|shutter| shutter.open(0, u64::MAX)).map_err(unsupported)?;
    }
    let lets_pass = knobs.lets_pass() || knobs.sampled;
    let price = calibration.price(&mut session, lets_pass, request.paths, |session| {
        companions.iter_mut().try_for_each(|companion| companion.begin(session))
    });
    let price = price.map_err(unsupported)?;
    for companion in companions.iter_mut() {
        companion.start(&session).map_err(unsupported)?;
    }
    let watch = Watch {
        request,
        session,
        companions,
        books: Books::with_room(request.rows, request.threads),
        startup: started,
        price,
        startup_ns: 0,
        limits: Limits::for_target(&request.target),
        unwatched: selection.left_out(),
        is_told: false,
        sampling: None,
        sampled: None,
    };
    match &request.target {
        Target::Command(command) => watch.command(command, viewer),
        Target::Running(_) => watch.running(Adoption::Selected, &selection, viewer),
        Target::Machine => watch.running(Adoption::Machine, &selection, viewer),
    }
}

/// Tries the steps of [`watch`] before anything is watched.
///
/// # Errors
/// The refused call and the kernel's error.
pub(crate) fn probe_with(companions: &mut [&mut dyn Companion]) -> Result<(), String> {
    let mut session = companion::load(&trial(!companions.is_empty()), companions)?;
    session.attach()?;
    companions.iter_mut().try_for_each(|companion| companion.begin(&session))?;
    companions.iter_mut().try_for_each(|companion| companion.start(&session))
}

/// Tries everything that a watch may use of the kernel; returns what was refused, with the kernel's answers, and can be
/// left out.
///
/// # Errors
/// What was refused and cannot be left out.
pub fn refused_features() -> Result<Vec<(&'static Feature, String)>, String> {
    let asked = SampleSettings { hz: 997, timelines: 1, ..SampleSettings::default() };
    let mut sampler = Sampler::new(asked, false, MappedBefore::Nothing);
    let mut block = Block::trial();
    let mut exchanges = Exchanges::new(64);
    let mut companions: [&mut dyn Companion; 3] = [&mut sampler, &mut block, &mut exchanges];
    let knobs = Knobs { by_path: true, by_peer: true, slowest: 1, looked_at: true, ..trial(true) };
    let mut session = companion::load(&knobs, &mut companions)?;
    session.attach()?;
    for companion in &mut companions {
        companion.begin(&session)?;
        companion.start(&session)?;
    }
    Ok(session.refused())
}

/// Tries whether a watch sees the requests of io_uring.
pub fn probe_rings() -> Probe {
    let trial = companion::load(&trial(false), &mut [])
        .and_then(|mut session| session.attach().map(|()| session.unseen_end()));
    match trial {
        Ok(None) => Probe::Ready,
        Ok(Some(end)) => Probe::Unsupported {
            reason: format!("the kernel's tracepoint of {end} is missing, or has an unknown form"),
            remedy: "boot a kernel of 6.1 or later with CONFIG_IO_URING=y".to_owned(),
        },
        Err(reason) => {
            Probe::Unsupported { remedy: remedy(&reason, &usual_remedy(&reason)), reason }
        }
    }
}

fn unsupported(reason: String) -> ObserveError {
    ObserveError::Unsupported {
        observer: DECLARATION.name,
        remedy: remedy(&reason, &usual_remedy(&reason)),
        reason,
    }
}

/// A watch in progress.
struct Watch<'a, 'c> {
    request: &'a Request,
    session: Session,
    companions: &'a mut [&'c mut dyn Companion],
    books: Books,
    startup: Instant,
    price: Price,
    startup_ns: u64,
    limits: Limits,
    /// What the selected processes had made before, where just those are watched.
    unwatched: Vec<Running>,
    /// Whether the viewer knows of the call that fulfilled the condition of a watch that goes on.
    is_told: bool,
    /// The thread that opens the windows of a sampled watch; what these saw, once it has ended; and when it began.
    sampling: Option<(Sampling, u64)>,
    sampled: Option<(Ended, u64)>,
}

impl Watch<'_, '_> {
    fn command(
        mut self,
        command: &Command,
        mut viewer: OptionalViewer<'_>,
    ) -> Result<Trace, ObserveError> {
        let interrupts = Interrupts::hold().map_err(ObserveError::system("block signals"))?;
        let held = launch::hold(command, interrupts.original_mask().as_ref())?;
        let pid = held.pid();
        if let Err(reason) = self.session.adopt(Adoption::Launcher(pid)) {
            drop(held);
            watch_loop::reap(pid);
            return Err(unsupported(reason));
        }
        self.startup_ns = nanos(self.startup.elapsed());
        if let Err(error) = self.begin_sampling() {
            drop(held);
            watch_loop::reap(pid);
            return Err(error);
        }
        let (released, released_ns) = (Instant::now(), kernel_now());
        if let Err(error) = held.release() {
            watch_loop::reap(pid);
            return Err(error.into());
        }
        self.show(&mut viewer, Some(pid));
        let mut watch_loop =
            WatchLoop::begin(Subject::Child(pid), &interrupts, self.request, viewer)?;
        watch_loop.began = (released, released_ns);
        let sampling = self.sampling.as_ref().map(|(sampling, _)| sampling);
        let mut exit = watch_loop.keep(&self.session, &mut self.books, sampling)?;
        self.end_sampling()?;
        if exit.is_some() {
            watch_loop.let_the_dead_settle(&self.session);
        }
        watch_loop.show_end(&self.session, &mut self.books);
        self.is_told = watch_loop.is_told();
        let watched = nanos(released.elapsed());
        self.close()?;
        if exit.is_none() {
            exit = Some(watch_loop.wait_unwatched(pid)?);
        }
        let wall_ns = self.wall_of(pid).unwrap_or(watched).min(watched);
        Ok(self.observation(wall_ns, exit))
    }

    fn running(
        mut self,
        whom: Adoption,
        selection: &Selection,
        mut viewer: OptionalViewer<'_>,
    ) -> Result<Trace, ObserveError> {
        let interrupts = Interrupts::hold().map_err(ObserveError::system("block signals"))?;
        let subject = match &*selection.processes {
            [] => Subject::Nobody,
            _ if selection.is_open_ended() => Subject::Nobody,
            pids => Subject::Others(pids),
        };
        let pid = match *selection.processes {
            [one] if !selection.is_open_ended() => Some(one),
            _ => None,
        };
        self.show(&mut viewer, pid);
        let mut watch_loop = WatchLoop::begin(subject, &interrupts, self.request, viewer)?;
        self.session.adopt(whom).map_err(unsupported)?;
        if let Some(pid) = self.session.hidden_process() {
            return Err(ObserveError::Hidden { pid });
        }
        self.startup_ns = nanos(self.startup.elapsed());
        self.begin_sampling()?;
        let (began, began_ns) = (Instant::now(), kernel_now());
        watch_loop.began = (began, began_ns);
        self.books.name_attached(&self.session);
        let sampling = self.sampling.as_ref().map(|(sampling, _)| sampling);
        watch_loop.keep(&self.session, &mut self.books, sampling)?;
        self.end_sampling()?;
        watch_loop.show_end(&self.session, &mut self.books);
        self.is_told = watch_loop.is_told();
        let mut wall_ns = nanos(began.elapsed());
        self.close()?;
        let end = self.session.firing().filter(|_| self.request.filter.pause().is_none());
        if let Some((call, _)) = end {
            wall_ns = wall_ns.min(call.end_ns.saturating_sub(began_ns));
        }
        Ok(self.observation(wall_ns, None))
    }

    /// Notifies the viewer that the watch begins.
    fn show(&self, viewer: &mut OptionalViewer<'_>, pid: Option<u32>) {
        if let Some(viewer) = viewer {
            viewer.begin(&WatchStart {
                observer: DECLARATION.name,
                times_inflated: DECLARATION.times_inflated,
                cost_range_ns: self.price.call.ends(),
                unwatched_range_ns: self.price.unwatched.ends(),
                price: Some(self.price),
                sees_rings: self.session.sees_rings(),
                missing: self.session.missing(),
                pid,
            });
        }
    }

    /// Opens windows from now on, where not all of the time is counted.
    fn begin_sampling(&mut self) -> Result<(), ObserveError> {
        if let Some(n) = self.request.sample {
            let sampling = Sampling::begin(&self.session, n, self.request).map_err(unsupported)?;
            self.sampling = Some((sampling, kernel_now()));
        }
        Ok(())
    }

    /// Opens no more of them.
    fn end_sampling(&mut self) -> Result<(), ObserveError> {
        if let Some((sampling, began_ns)) = self.sampling.take() {
            self.sampled = Some((sampling.end()?, began_ns));
        }
        Ok(())
    }

    /// When the watched time ended, once the watch is settled: with the command and all that it made, or with the watch.
    fn watched_until(&self) -> u64 {
        let own = std::process::id();
        let images = || self.books.images.values().filter(|image| image.pid != own);
        let is_over = matches!(self.request.target, Target::Command(_))
            && images().all(|image| image.live == 0);
        let last = images().map(|image| image.end_ns).max().filter(|_| is_over);
        last.unwrap_or_else(|| self.session.ended_ns())
    }

    /// Stops counting and brings everything counted into the books.
    fn close(&mut self) -> Result<(), ObserveError> {
        for companion in self.companions.iter_mut().rev() {
            companion.stop();
        }
        self.session.settle().map_err(unsupported)?;
        self.books.name_attached(&self.session);
        self.books.take_all(&self.session);
        self.books.note_titles();
        if !self.companions.is_empty() {
            let images = Images::from_books(&self.books);
            for companion in self.companions.iter_mut() {
                companion.finish(&self.session, &images);
            }
        }
        Ok(())
    }

    /// From the first image's beginning to the last one's end, on the kernel's clock.
    fn wall_of(&self, pid: u32) -> Option<u64> {
        let images = || self.books.images.values().filter(|image| image.pid == pid);
        let start = images().map(|image| image.start_ns).min()?;
        images().map(|image| image.end_ns).max()?.checked_sub(start)
    }

    fn observation(mut self, wall_ns: u64, exit: Option<Exit>) -> Trace {
        let sample = self.sampled.take().map(|(windows, began_ns)| {
            windows.sample(&self.session, began_ns, self.watched_until())
        });
        let counters = self.session.counters();
        let unbooked = u64::from(counters.open_books);
        let lost_events = counters.lost_events + unbooked + self.session.missed_events();
        let lost_paths = counters.lost_paths + self.books.paths.lost;
        let lost_connections = counters.lost_connections + self.books.connections.lost;
        let sees_rings = self.session.sees_rings();
        let missing = self.session.missing();
        let lost_requests = counters.lost_requests + self.books.rings.undecided;
        let groups = groups::read(&self.session, &self.books, self.request);
        let (slow, firing) = (self.session.slowest(), self.session.firing());
        let firing = firing.filter(|_| !self.is_told);
        let mut parts = outcome::outcome(self.books, slow, firing, self.request);
        cache::note_end(&mut parts.trace.files);
        // Of those outside windows it is not known.
        let knows_others = self.request.is_restricted() && sample.is_none();
        let calls_left_out = knows_others.then_some(parts.calls_left_out);
        let calls_passed = parts.calls_passed;
        let mut work = parts.work();
        if let Some(sample) = &sample {
            work.left_out = sample.factor().of(work.calls) - work.calls;
            work.passed = work.left_out;
        }
        let overhead = self.price.of_run(work);
        let (cost, of_left_out) = (overhead.call, overhead.left_out);
        let [left_out_low, left_out_high] = match calls_left_out.is_some() || sample.is_some() {
            true => of_left_out.ends(),
            false => [0.0; 2],
        };
        let [unwatched_low, unwatched_high] = self.price.unwatched.ends();
        Trace {
            wall_ns,
            exit,
            cpu_capacity: self.limits.capacity(&self.session.allowed_cpus()),
            observer: ObserverUse {
                name: DECLARATION.name.to_owned(),
                cost_ns_per_call: cost.middle(),
                cost_ns_low: cost.low,
                cost_ns_high: cost.high,
                lost_events,
                incomplete_calls: counters.incomplete_calls,
                lost_files: counters.lost_files,
                lost_paths,
                lost_connections,
                sees_rings: Some(sees_rings),
                lost_requests,
                divided_by_zero: self.session.divided_by_zero(),
                end_divided_by_zero: self.session.end_divided_by_zero(),
                calls_left_out,
                cost_left_out_ns_low: left_out_low,
                cost_left_out_ns_high: left_out_high,
                calls_passed,
                unwatched_ns_low: unwatched_low,
                unwatched_ns_high: unwatched_high,
                times_inflated: DECLARATION.times_inflated,
                startup_ns: self.startup_ns,
                missing,
                ..ObserverUse::default()
            },
            sample,
            by: groups.into_groups(&self.request.filter.by),
            unwatched_children: self.unwatched,
            ..parts.trace
        }
    }
}
