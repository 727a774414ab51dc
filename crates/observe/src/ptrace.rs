//! The observer for users without BPF: the kernel stops every thread of the tree at the entry and
//! the return of every call, and iotomy examines it.
//!
//! It owns the tracing of a tree and not the meaning of the numbers; counting is in
//! [`crate::tally`]. Its parts: [`tracer`] is the two threads of a watch, [`session`] the tracer's
//! loop, [`stops`] the meaning of each stop, [`tracees`] the traced tasks, [`procfs`] the facts
//! from `/proc`, [`sockets`] a look at a socket, [`peers`], [`connections`] and [`peer_texts`] what
//! sockets are connected to, [`calibrate`] the overhead.
//!
//! The one invariant: the command is a child of the thread that requested the watch and is traced
//! by another, which ends with the watch. So however the watch ends, the command goes on, and can
//! still be waited for.
//!
//! Nothing is detached explicitly: when the tracer's thread ends, the kernel releases every tracee,
//! by the same path as after SIGKILL. `nix` is not used for ptrace: its signals lack the real-time
//! ones, whose stops could not be delivered.

mod bytes;
mod calibrate;
mod connections;
mod entered;
mod exec_calls;
mod filtered;
mod peer_texts;
mod peers;
mod procfs;
mod session;
mod sockets;
mod stops;
mod tracees;
mod tracer;

use std::io;
use std::time::Instant;

use iotomy_record::{Exit, ObserverUse, Trace};
use iotomy_sys::launch::{self, Command, HeldChild, LaunchError};
use iotomy_sys::probe::ptrace::copy_descriptor;
use iotomy_sys::thread_wake::ThreadWake;

use crate::cache;
use crate::capacity::Limits;
use crate::clock::nanoseconds;
use crate::interrupts::Interrupts;
use crate::price::{Price, Range, Work};
use crate::variables::fact;
use crate::{
    ObserveError, Observer, ObserverDeclaration, OptionalViewer, Probe, Request, Selection, Target,
    WatchStart,
};
use session::{Flags, PtraceSession, SessionResult};
use tracer::Guide;

/// The observer by `ptrace(2)`.
#[derive(Debug)]
pub(crate) struct Ptrace;

static DECLARATION: ObserverDeclaration = ObserverDeclaration {
    name: "ptrace",
    summary: "stops every call at entry and exit; needs no privilege, with an overhead of \
        thousands of ns a call",
    description: "PTRACE_SEIZE attaches to every thread of the tree, and each stops at the entry and exit of every system call, where PTRACE_GET_SYSCALL_INFO identifies the call. Counts, errors, bytes and returned values are exact. Times are inflated by two stops a call; on-CPU time, blocked time and run queue delay cannot be separated, so there is no ledger. What sockets are connected to is read from copies of their descriptors (pidfd_getfd, Linux 5.6).\nA set-user-id program that a user other than root runs has no extra privilege, as under any debugger. Attaching fails for a process that is already traced or that forbids it (prctl PR_SET_DUMPABLE). Attaching interrupts the calls of the threads: most restart unnoticed, a few (epoll_wait, semop, reads from inotify) return EINTR. Tasks created with CLONE_UNTRACED are not followed.",
    privilege: "none for commands and processes of the same user, if kernel.yama.ptrace_scope and \
        seccomp allow it; CAP_SYS_PTRACE for those of others",
    times_inflated: true,
    splits_time: false,
    watches_machine: false,
};

impl Observer for Ptrace {
    fn declaration(&self) -> &'static ObserverDeclaration {
        &DECLARATION
    }

    fn probe(&self) -> Probe {
        match ThreadWake::set_up().and_then(|wake| calibrate::works(&wake)) {
            Ok(()) => Probe::Ready,
            Err(error) => {
                let (reason, remedy) = unsupported(&error);
                Probe::Unsupported { reason, remedy }
            }
        }
    }

    fn watch_before(
        &self,
        request: &Request,
        viewer: OptionalViewer<'_>,
    ) -> Result<Trace, ObserveError> {
        if request.filter.uses(fact::PEER)
            && let Err(refusal) = copy_descriptor()
        {
            return Err(ObserveError::Unsupported {
                observer: DECLARATION.name,
                reason: format!(
                    "it cannot find out what sockets are connected to (`peer`): {refusal}"
                ),
                remedy: "use the observer bpf, or leave out `peer`".to_owned(),
            });
        }
        if request.requests {
            return Err(ObserveError::Unsupported {
                observer: DECLARATION.name,
                reason: "it does not see when requests arrive, and would slow each of them \
                         (--requests)"
                    .to_owned(),
                remedy: "use the observer bpf, or leave out --requests".to_owned(),
            });
        }
        if request.sample.is_some() {
            return Err(ObserveError::Unsupported {
                observer: DECLARATION.name,
                reason: "it stops the threads at every call, also where it does not count them (--sample)"
                    .to_owned(),
                remedy: "use the observer bpf, or leave out --sample".to_owned(),
            });
        }
        match &request.target {
            Target::Command(command) => watch_command(request, command, viewer),
            Target::Running(selection) if selection.is_open_ended() => Err(ObserveError::Target {
                observer: DECLARATION.name,
                what: "processes by name or cgroup",
                remedy: "use --observer bpf as root, or name the processes with -p",
            }),
            Target::Running(selection) => watch_processes(request, selection, viewer),
            Target::Machine => Err(ObserveError::Target {
                observer: DECLARATION.name,
                what: "the whole machine",
                remedy: "use --observer bpf as root, or watch one process with -p",
            }),
        }
    }
}

fn unsupported(error: &io::Error) -> (String, String) {
    (
        format!("tracing a child of its own: {error}"),
        "in a container, allow ptrace (--cap-add SYS_PTRACE, or a seccomp profile that permits \
         ptrace); PTRACE_GET_SYSCALL_INFO needs Linux 5.3"
            .to_owned(),
    )
}

fn cost(wake: &ThreadWake) -> Result<Range, ObserveError> {
    calibrate::cost_of_a_call(wake).map_err(|error| {
        let (reason, remedy) = unsupported(&error);
        ObserveError::Unsupported { observer: DECLARATION.name, reason, remedy }
    })
}

/// A command that was started: dropped, it is waited for, so that none is left behind.
struct Launched {
    pid: u32,
    held: Option<HeldChild>,
    /// How it ended, once that is known: its id is not its own any more then.
    exit: Option<Exit>,
}

impl Drop for Launched {
    fn drop(&mut self) {
        // One that is still held leaves upon this.
        self.held = None;
        if self.exit.is_none() {
            iotomy_sys::ptrace::reap(self.pid);
        }
    }
}

/// The result of an attempt to trace a command.
enum Attempt {
    Seen { seen: Box<SessionResult>, began: Instant },
    Launch(LaunchError),
    Refused(io::Error),
}

fn watch_command(
    request: &Request,
    command: &Command,
    mut viewer: OptionalViewer<'_>,
) -> Result<Trace, ObserveError> {
    let called = Instant::now();
    let limits = Limits::for_target(&request.target);
    let interrupts = Interrupts::hold().map_err(ObserveError::system("block signals"))?;
    // Before signals are set up: the command shall have the dispositions iotomy was given.
    let held = launch::hold(command, interrupts.original_mask().as_ref())?;
    let mut command = Launched { pid: held.pid(), held: Some(held), exit: None };
    let wake = ThreadWake::set_up().map_err(ObserveError::system("set up signals"))?;
    let cost = cost(&wake)?;
    show(&mut viewer, cost, Some(command.pid));
    let guide = Guide {
        wake: &wake,
        interrupts: Some(&interrupts),
        command: Some(command.pid),
        duration: request.duration,
        viewer: viewer.as_deref_mut(),
    };
    let attempt = tracer::on_tracer_thread(guide, |flags| trace(&command, request, flags))
        .map_err(ObserveError::system("start a thread"))?;
    let (mut seen, began) = match attempt {
        Attempt::Seen { seen, began } => (*seen, began),
        Attempt::Launch(error) => return Err(error.into()),
        Attempt::Refused(error) => {
            let exit = refusal(&mut command, error, &interrupts)?;
            (SessionResult::nothing(exit), Instant::now())
        }
    };
    show_end(viewer.as_deref_mut(), &mut seen);
    command.exit = seen.exit;
    if command.exit.is_none() {
        command.exit = tracer::outlive(command.pid, &interrupts, viewer);
    }
    // Returns the reason if the program was not executed. A child that was killed before by a
    // signal that was passed on has no reason to report.
    if let Some(held) = command.held.take_if(|_| command.exit.is_some()) {
        held.outcome()?;
    }
    let startup_ns = nanoseconds(called, began);
    let watching = Watching { cost, startup_ns, limits };
    Ok(observation(request, seen, began, command.exit, watching))
}

/// The tracer thread of a command.
fn trace(command: &Launched, request: &Request, flags: &Flags) -> Attempt {
    let mut session = match PtraceSession::launcher(command.pid, request) {
        Ok(session) => session,
        Err(error) => return Attempt::Refused(error),
    };
    let began = Instant::now();
    session.began = began;
    if let Some(Err(error)) = command.held.as_ref().map(HeldChild::start_command) {
        return Attempt::Launch(error);
    }
    let seen = Box::new(session.run(flags));
    Attempt::Seen { seen, began }
}

/// Why a held child could not be seized: because a signal had ended it, which is how the command
/// ended then; because it had left already, for a reason of its own; or because it may not be traced.
fn refusal(
    command: &mut Launched,
    source: io::Error,
    interrupts: &Interrupts,
) -> Result<Exit, ObserveError> {
    let pid = command.pid;
    // One that lives leaves upon this, by itself.
    if let Some(held) = command.held.take() {
        held.outcome()?;
    }
    command.exit = tracer::outlive(pid, interrupts, None);
    match command.exit {
        Some(exit @ Exit::Signal(_)) => Ok(exit),
        _ => Err(ObserveError::Attach { pid, source }),
    }
}

fn watch_processes(
    request: &Request,
    selection: &Selection,
    mut viewer: OptionalViewer<'_>,
) -> Result<Trace, ObserveError> {
    let called = Instant::now();
    let selection = selection.resolved()?;
    let limits = Limits::for_target(&request.target);
    let unwatched_children = selection.left_out();
    let interrupts = Interrupts::hold().map_err(ObserveError::system("block signals"))?;
    let wake = ThreadWake::set_up().map_err(ObserveError::system("set up signals"))?;
    let cost = cost(&wake)?;
    let pid = match *selection.processes {
        [one] => Some(one),
        _ => None,
    };
    show(&mut viewer, cost, pid);
    let guide = Guide {
        wake: &wake,
        interrupts: Some(&interrupts),
        command: None,
        duration: request.duration,
        viewer: viewer.as_deref_mut(),
    };
    let attempt = tracer::on_tracer_thread(guide, |flags| {
        let mut session = PtraceSession::running(&selection, request)?;
        session.began = Instant::now();
        let began = session.began;
        Ok((session.run(flags), began))
    });
    let (mut seen, began) = attempt
        .map_err(ObserveError::system("start a thread"))?
        .map_err(|(pid, source)| ObserveError::Attach { pid, source })?;
    show_end(viewer, &mut seen);
    let startup_ns = nanoseconds(called, began);
    let watching = Watching { cost, startup_ns, limits };
    Ok(Trace { unwatched_children, ..observation(request, seen, began, None, watching) })
}

/// Notifies the viewer that the watch begins.
fn show(viewer: &mut OptionalViewer<'_>, cost: Range, pid: Option<u32>) {
    if let Some(viewer) = viewer {
        viewer.begin(&WatchStart {
            observer: DECLARATION.name,
            times_inflated: DECLARATION.times_inflated,
            cost_range_ns: cost.ends(),
            unwatched_range_ns: [0.0; 2],
            price: None,
            sees_rings: false,
            missing: Vec::new(),
            pid,
        });
    }
}

/// Shows the viewer the counts for the last time.
fn show_end(viewer: OptionalViewer<'_>, seen: &mut SessionResult) {
    if let (Some(viewer), Some(last)) = (viewer, seen.last.take()) {
        let mut last = Some(last);
        viewer.end(&mut || Ok(last.take()));
    }
}

/// The overhead of watching, and the limits of the watched.
struct Watching {
    cost: Range,
    startup_ns: u64,
    limits: Limits,
}

fn observation(
    request: &Request,
    seen: SessionResult,
    began: Instant,
    exit: Option<Exit>,
    watching: Watching,
) -> Trace {
    let mut ended_by = seen.ended_by;
    let mut rows = seen.tally.into_rows(request, ended_by.as_mut().map(|end| &mut end.call));
    cache::note_end(&mut rows.files);
    let lost_connections = seen.connections.as_ref().map_or(0, |book| book.lost);
    let connections = connections::rows(seen.connections, &mut rows);
    let wall_ns = nanoseconds(began, seen.ended);
    // One thread serves all stops, one after another: they take no longer than the watch.
    let calls = rows.calls.iter().map(|row| row.calls.saturating_add(row.in_flight));
    let calls_left_out = rows.calls_left_out.saturating_add(seen.left_out);
    let calls = calls.fold(0, u64::saturating_add);
    let left_out = calls_left_out;
    let work = Work { calls, left_out, passed: 0, switches: 0, paths: 0, passed_ns: wall_ns };
    let price = Price { call: watching.cost, ..Price::default() };
    let overhead = price.of_run(work);
    let (cost, of_left_out) = (overhead.call, overhead.left_out);
    let [left_out_low, left_out_high] = match request.is_restricted() {
        true => of_left_out.ends(),
        false => [0.0; 2],
    };
    Trace {
        wall_ns,
        exit,
        cpu_capacity: watching.limits.capacity(&rows.allowed_cpus),
        observer: ObserverUse {
            name: DECLARATION.name.to_owned(),
            cost_ns_per_call: cost.middle(),
            cost_ns_low: cost.low,
            cost_ns_high: cost.high,
            lost_events: rows.lost_events,
            incomplete_calls: rows.incomplete_calls,
            lost_files: rows.lost_files,
            lost_paths: rows.lost_paths,
            lost_connections,
            sees_rings: Some(false),
            divided_by_zero: seen.divided_by_zero,
            end_divided_by_zero: seen.end_divided_by_zero,
            calls_left_out: request.is_restricted().then_some(calls_left_out),
            cost_left_out_ns_low: left_out_low,
            cost_left_out_ns_high: left_out_high,
            times_inflated: DECLARATION.times_inflated,
            untraced_tasks: seen.untraced_tasks,
            startup_ns: watching.startup_ns,
            ..ObserverUse::default()
        },
        processes: rows.processes,
        calls: rows.calls,
        files: rows.files,
        paths: rows.paths,
        connections,
        slowest: rows.slowest,
        ended_by,
        by: seen.groups,
        threads: rows.threads,
        still_running: seen.still_running,
        ..Trace::default()
    }
}

#[cfg(test)]
mod tests {
    use std::os::fd::BorrowedFd;

    use nix::sys::signal::{Signal, kill};
    use nix::unistd::Pid;

    use super::*;
    use crate::{TakeSnapshot, Viewer, ViewerRequest};

    /// Ends the command after it was made and before it can be seized.
    struct Hasty;

    impl Viewer for Hasty {
        fn begin(&mut self, outset: &WatchStart) {
            let pid = outset.pid.unwrap().cast_signed();
            kill(Pid::from_raw(pid), Signal::SIGTERM).unwrap();
            let ended = || {
                let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
                stat.rsplit_once(") ").unwrap().1.starts_with('Z')
            };
            iotomy_test_requirements::wait::until("it has ended", ended);
        }

        fn wakers(&self) -> Vec<BorrowedFd<'_>> {
            Vec::new()
        }

        fn deadline(&self) -> Option<Instant> {
            None
        }

        fn update(&mut self, _: Option<&mut TakeSnapshot<'_>>) -> ViewerRequest {
            ViewerRequest::GoOn
        }

        fn takes_signal(&mut self, _: i32) -> bool {
            false
        }
    }

    #[test]
    fn a_command_that_a_signal_ends_before_it_is_seized_ended_by_that_signal() {
        let command = Command {
            program: "/bin/true".into(),
            argv: vec!["true".into()],
            ..Command::default()
        };
        let request = Request { files: true, ..Request::new(Target::Command(command)) };
        let seen = Ptrace.watch_before(&request, Some(&mut Hasty)).unwrap();
        assert_eq!(seen.exit, Some(Exit::Signal(15)));
        assert_eq!(seen.calls, []);
    }
}
