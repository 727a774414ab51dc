//! One run of one command at a time: its process group, its streams, its clock.
//!
//! The invariant: when a run is over, however it ended, nothing of it is left running. Runs join
//! the group of a keeper, who ends it when this process is gone; what leaves the group becomes this
//! process's child when its parent ends, and is found there.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc;
use std::time::{Duration, Instant};

use iotomy_record::{Exit, Run, path_text};
use iotomy_sys::keeper::Keeper;
use iotomy_sys::launch::{Command, Setup, find_program};
use iotomy_sys::orphans;
use iotomy_sys::seccomp::Filter;
use iotomy_sys::signals::Remembered;
use iotomy_sys::timed::{EndedChild, Started, Timed};
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::error::{RaceError, system};
use super::interrupts::Interrupts;
use super::outputs::{Output, Outputs};
use super::words::{Words, split};

/// A command ready to be run.
pub(super) struct Runnable {
    /// Its label, or the option it was given by.
    pub(super) who: String,
    /// As given.
    pub(super) text: String,
    pub(super) shell: bool,
    command: Command,
    timed: Timed,
}

/// The result of a run.
pub(super) struct Outcome {
    pub(super) run: Run,
    pub(super) stderr: Vec<u8>,
    /// Processes it left behind, which were ended.
    pub(super) strays: usize,
}

/// Runs commands one after the other.
pub(super) struct Runner {
    keeper: Keeper,
    outputs: Outputs,
    interrupts: Option<Interrupts>,
    /// Children this process had before the race, which are none of its.
    bystanders: Vec<u32>,
    /// When a run is killed.
    pub(super) deadline: Option<Instant>,
}

impl Runner {
    pub(super) fn new(output: &Output) -> Result<Self, RaceError> {
        let interrupts = Interrupts::hold().map_err(system("block signals"))?;
        let bystanders = orphans::children();
        orphans::become_subreaper().map_err(system("become the parent of orphans"))?;
        let keeper = Keeper::new().map_err(system("make a process group"))?;
        let what = match output {
            Output::Path(path) => format!("open {} for the commands' output", path_text(path)),
            _ => "make the commands' streams".to_owned(),
        };
        let outputs = Outputs::open(output).map_err(system(what))?;
        Ok(Self { keeper, outputs, interrupts: Some(interrupts), bystanders, deadline: None })
    }

    /// Makes a command of the race ready.
    pub(super) fn command(
        &self,
        label: &str,
        text: &str,
        filter: Option<Arc<Filter>>,
    ) -> Result<Runnable, RaceError> {
        let refused = |reason: String| RaceError::Command {
            label: label.to_owned(),
            command: text.to_owned(),
            reason,
        };
        let (words, shell) = match split(text).map_err(|reason| refused(reason.to_owned()))? {
            Words::Direct(words) => (words, false),
            Words::Shell => (["sh", "-c", text].map(str::to_owned).to_vec(), true),
        };
        let program = match shell {
            true => PathBuf::from(SHELL),
            false => program(&words[0]).map_err(|error| refused(error.to_string()))?,
        };
        self.runnable(label, text, shell, program, words, filter)
    }

    /// Prepares a line for the shell, whatever it contains.
    pub(super) fn script(&self, who: &str, text: &str) -> Result<Runnable, RaceError> {
        let words = ["sh", "-c", text].map(str::to_owned).to_vec();
        self.runnable(who, text, true, PathBuf::from(SHELL), words, None)
    }

    fn runnable(
        &self,
        who: &str,
        text: &str,
        shell: bool,
        program: PathBuf,
        words: Vec<String>,
        filter: Option<Arc<Filter>>,
    ) -> Result<Runnable, RaceError> {
        let command = Command {
            program,
            argv: words.into_iter().map(OsString::from).collect(),
            setup: Setup {
                streams: Some(self.outputs.streams()),
                group: Some(self.keeper.group()),
                filter,
            },
            ..Command::default()
        };
        let timed = Timed::new(command.clone()).map_err(|source| RaceError::Launch {
            label: who.to_owned(),
            command: text.to_owned(),
            source,
        })?;
        let (who, text) = (who.to_owned(), text.to_owned());
        Ok(Runnable { who, text, shell, command, timed })
    }

    /// Runs a command once, timed.
    pub(super) fn run(&mut self, what: &mut Runnable) -> Result<Outcome, RaceError> {
        self.check_time_and_signals(what)?;
        self.outputs.clear().map_err(system("drain the commands' output"))?;
        what.timed.set_group(self.keeper.group());
        let Some(interrupts) = &self.interrupts else {
            return Err(system("run a command while another is traced")(io::Error::other("busy")));
        };
        let mask = interrupts.original_mask().as_ref();
        let started = what.timed.start(mask).map_err(|source| RaceError::Launch {
            label: what.who.clone(),
            command: what.text.clone(),
            source,
        })?;
        let stopped = self.attend(&started, what);
        if stopped.is_err() {
            self.end_all()?;
            started.kill();
        }
        let ended = started.wait().map_err(system(format!("wait for {}", what.who)))?;
        let strays = self.end_strays()?;
        stopped?;
        let (output_bytes, stderr) = self.outputs.take();
        Ok(Outcome { run: run_of(&ended, output_bytes), stderr, strays })
    }

    /// Sleeps until the command has ended.
    fn attend(&self, started: &Started, what: &Runnable) -> Result<(), RaceError> {
        loop {
            let mut waits = vec![PollFd::from_borrowed_fd(started.as_fd(), PollFlags::IN)];
            waits.extend(
                self.interrupts
                    .as_ref()
                    .map(|held| PollFd::from_borrowed_fd(held.as_fd(), PollFlags::IN)),
            );
            let left = self.deadline.map(|end| end.saturating_duration_since(Instant::now()));
            let left = left.and_then(|left| Timespec::try_from(left).ok());
            match poll(&mut waits, left.as_ref()) {
                Ok(_) if !waits[0].revents().is_empty() => return Ok(()),
                Ok(_) => self.check_time_and_signals(what)?,
                Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(system("wait for a command")(error)),
            }
        }
    }

    /// Whether the race is to end now.
    fn check_time_and_signals(&self, what: &Runnable) -> Result<(), RaceError> {
        if let Some(signal) = self.interrupts.as_ref().and_then(Interrupts::next) {
            return Err(RaceError::Interrupted(signal));
        }
        if self.deadline.is_some_and(|end| Instant::now() >= end) {
            return Err(RaceError::TooLong { who: what.who.clone(), command: what.text.clone() });
        }
        Ok(())
    }

    /// Runs a command to be watched by `tracer`, with the same streams, group and filter. Signals
    /// are the tracer's meanwhile.
    pub(super) fn traced<T>(
        &mut self,
        what: &Runnable,
        is_interrupted: fn() -> bool,
        tracer: impl FnOnce(&Command) -> T,
    ) -> Result<(T, bool), RaceError> {
        self.check_time_and_signals(what)?;
        self.outputs.clear().map_err(system("drain the commands' output"))?;
        let mut command = what.command.clone();
        command.setup.group = Some(self.keeper.group());
        let interrupts = self.interrupts.take();
        // Those that come before the tracer holds them back, or after, end nothing either.
        let remembered = Remembered::begin();
        let group = Pid::from_raw(self.keeper.group().cast_signed());
        let spared = self.spared();
        let kill = move || {
            let _ = killpg(group, Signal::SIGKILL);
            // It may have left the group.
            orphans::kill(&spared);
        };
        let is_interrupted = move || is_interrupted() || Remembered::has_come();
        let guarded = guarded(self.deadline, is_interrupted, kill, || {
            drop(interrupts);
            tracer(&command)
        });
        // Also where nothing was traced: --cleanup is still to run.
        self.interrupts = Some(Interrupts::hold().map_err(system("block signals"))?);
        let (watched, was_late) = guarded.map_err(system("start the timer thread"))?;
        let came = remembered.take();
        drop(remembered);
        if was_late {
            self.end_all()?;
        }
        self.end_strays()?;
        match came {
            Some(signal) => Err(RaceError::Interrupted(signal)),
            None => Ok((watched, was_late)),
        }
    }

    /// Ends the group, and makes a new one.
    fn end_all(&mut self) -> Result<(), RaceError> {
        self.keeper = Keeper::new().map_err(system("make a process group"))?;
        Ok(())
    }

    /// Ends what a run left behind; returns how many processes that were.
    fn end_strays(&mut self) -> Result<usize, RaceError> {
        let spared = self.spared();
        if orphans::children().iter().all(|pid| spared.contains(pid)) {
            return Ok(0);
        }
        // Members of the group end at once and cannot start more processes.
        self.end_all()?;
        Ok(orphans::end(&self.spared()))
    }

    /// The children that are none of a run's.
    fn spared(&self) -> Vec<u32> {
        self.bystanders.iter().copied().chain([self.keeper.group()]).collect()
    }

    /// Forgets what signals came: who asks for the end twice at once, as `timeout` does, does not
    /// ask for less than the whole of it.
    pub(super) fn forget_signals(&self) {
        while self.interrupts.as_ref().and_then(Interrupts::next).is_some() {}
    }
}

/// How often the guard of a traced run looks for an interrupt, and how long it leaves a command that
/// was passed one to end by itself.
const LOOK: Duration = Duration::from_millis(50);

/// Calls `work`. If the deadline passes meanwhile, or some time after an interrupt, calls `kill`
/// repeatedly until the work is done; returns whether the deadline passed. The process to be killed
/// may not have started yet. The guard's thread is created while signals are blocked, so that it
/// never receives one.
///
/// # Errors
/// When no thread can be created; `work` has not been called.
fn guarded<T>(
    deadline: Option<Instant>,
    is_interrupted: impl Fn() -> bool + Send,
    kill: impl Fn() + Send,
    work: impl FnOnce() -> T,
) -> io::Result<(T, bool)> {
    std::thread::scope(|scope| {
        let (done, is_done) = mpsc::channel::<()>();
        let guard = std::thread::Builder::new().spawn_scoped(scope, move || {
            let (mut was_late, mut was_interrupted) = (false, false);
            loop {
                let left = deadline.map(|end| end.saturating_duration_since(Instant::now()));
                let wait = left.filter(|_| !was_late).map_or(LOOK, |left| left.min(LOOK));
                if is_done.recv_timeout(wait) != Err(mpsc::RecvTimeoutError::Timeout) {
                    return was_late;
                }
                was_late |= left.is_some_and(|left| left <= wait);
                if was_late || was_interrupted {
                    kill();
                }
                was_interrupted |= is_interrupted();
            }
        })?;
        let result = work();
        drop(done);
        Ok((result, guard.join().unwrap_or(false)))
    })
}

/// The shell, as for system(3), independent of `PATH`.
const SHELL: &str = "/bin/sh";

fn program(name: &str) -> io::Result<PathBuf> {
    find_program(OsStr::new(name), std::env::var_os("PATH").as_deref()).map_err(|error| {
        let what = match error.kind() {
            io::ErrorKind::NotFound if name.contains('/') => format!("there is no {name}"),
            io::ErrorKind::NotFound => format!("no directory in $PATH contains {name}"),
            io::ErrorKind::PermissionDenied => {
                format!("{name}: {error}; check with `ls -l` that it is executable")
            }
            io::ErrorKind::IsADirectory => format!("{name}: {error}; name a program in it"),
            _ => format!("{name}: {error}"),
        };
        io::Error::new(error.kind(), what)
    })
}

fn run_of(ended: &EndedChild, output_bytes: Option<u64>) -> Run {
    Run {
        wall_ns: ended.wall_ns,
        user_ns: ended.usage.user_ns,
        system_ns: ended.usage.system_ns,
        max_rss_bytes: ended.usage.max_rss_bytes,
        exit: exit_of(ended.status),
        startup_ns: ended.startup_ns,
        minor_faults: ended.usage.minor_faults,
        major_faults: ended.usage.major_faults,
        involuntary_switches: ended.usage.involuntary_switches,
        output_bytes,
        round: 0,
    }
}

/// A wait status: the low seven bits are the signal, the second byte the exit status.
fn exit_of(status: i32) -> Exit {
    match status & 0x7f {
        0 => Exit::Code(status >> 8 & 0xff),
        signal => Exit::Signal(signal),
    }
}

impl Runnable {
    /// The program's file.
    pub(super) fn program(&self) -> &std::path::Path {
        &self.command.program
    }
}
