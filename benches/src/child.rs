//! Child processes that end with this program, and waiting for them while signals are still
//! handled.
//!
//! The invariant: whatever ends this program, SIGKILL included, also ends its children. Each child
//! is started through `guard`, which requests a SIGKILL at its parent's death before it executes
//! the actual program. Subjects request the same at the death of their observer. SIGINT, SIGTERM
//! and SIGHUP are blocked and checked between and during runs, so that they lead to ordinary
//! returns that remove every temporary file.

use std::ffi::OsString;
use std::fmt;
use std::fs::File;
use std::os::fd::AsFd;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, pidfd_open};

/// The argument that makes this program the guard of another.
pub const GUARD: &str = "guard";

/// A run that takes longer is considered hung.
const LONGEST: Duration = Duration::from_secs(60);
/// A state that does not come sooner never comes.
const PATIENCE: Duration = Duration::from_secs(10);

/// The signals that end a bench; they stay blocked until they are checked.
#[derive(Debug)]
pub struct Signals(SignalFd);

/// The error for a signal that requests this program to end.
#[derive(Debug)]
pub struct Interrupted(
    /// The signal number.
    pub i32,
);

impl fmt::Display for Interrupted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "interrupted by signal {}", self.0)
    }
}

impl std::error::Error for Interrupted {}

impl Signals {
    /// Blocks the signals. Children inherit that; the guard and [`unblock_signals`] undo it.
    pub fn hold() -> Result<Self> {
        let set: SigSet = [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP].into_iter().collect();
        set.thread_block().context("cannot hold signals back")?;
        let flags = SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK;
        Ok(Self(SignalFd::with_flags(&set, flags).context("cannot make a signalfd")?))
    }

    /// Checks for a pending signal.
    ///
    /// # Errors
    /// [`Interrupted`] when a signal has arrived.
    pub fn check(&self) -> Result<()> {
        match self.0.read_signal().context("cannot read the signalfd")? {
            Some(signal) => Err(Interrupted(signal.ssi_signo.cast_signed()).into()),
            None => Ok(()),
        }
    }

    /// Waits for a child to end and returns its status. The child is killed when a signal arrives
    /// or when it takes too long.
    ///
    /// # Errors
    /// [`Interrupted`], or an error when the child took too long.
    pub fn wait(&self, child: &mut Child) -> Result<ExitStatus> {
        self.wait_at_most(child, LONGEST)
    }

    /// Returns the wall time of a command that succeeds, in ns; what it prints goes nowhere.
    ///
    /// # Errors
    /// When it cannot be run, or fails; as [`Self::wait`].
    pub fn wall_ns(&self, argv: &[String]) -> Result<f64> {
        let null =
            File::options().write(true).open("/dev/null").context("cannot open /dev/null")?;
        let mut command = guarded(argv, null)?;
        let start = Instant::now();
        let mut child = command.spawn().with_context(|| format!("cannot run {}", argv[0]))?;
        let status = self.wait(&mut child)?;
        let wall = start.elapsed().as_nanos() as f64;
        if !status.success() {
            bail!("{} ended with {status}", argv[0]);
        }
        Ok(wall)
    }

    /// Does the same with another limit on the time.
    ///
    /// # Errors
    /// [`Interrupted`], or an error when the child took too long.
    pub fn wait_at_most(&self, child: &mut Child, longest: Duration) -> Result<ExitStatus> {
        self.wait_for(child, longest)?.context("took too long")
    }

    /// Waits for a child to end for this long, and then kills it. Returns its status if it ended by itself.
    ///
    /// # Errors
    /// [`Interrupted`]; the child is killed then, too.
    pub fn wait_for(&self, child: &mut Child, time: Duration) -> Result<Option<ExitStatus>> {
        let waited = self.wait_for_end(child, Some(Instant::now() + time));
        if !matches!(waited, Ok(Some(_))) {
            let _ = child.kill();
            let _ = child.wait();
        }
        waited
    }

    /// Checks repeatedly, for some seconds, until the condition holds; returns whether it did.
    ///
    /// # Errors
    /// [`Interrupted`] when a signal has arrived.
    pub fn until(&self, holds: impl Fn() -> bool) -> Result<bool> {
        let until = Instant::now() + PATIENCE;
        while !holds() {
            self.check()?;
            if Instant::now() > until {
                return Ok(false);
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        Ok(true)
    }

    /// Waits for a child without a time limit and forwards signals to it.
    ///
    /// # Errors
    /// When waiting for the child fails.
    pub fn wait_passing_on(&self, child: &mut Child) -> Result<ExitStatus> {
        loop {
            match self.wait_for_end(child, None) {
                Ok(status) => return status.context("a child did not end"),
                Err(error) => {
                    let Some(Interrupted(number)) = error.downcast_ref() else { return Err(error) };
                    let signal = Signal::try_from(*number).context("an unknown signal")?;
                    let pid = nix::unistd::Pid::from_raw(child.id().cast_signed());
                    // The child may have ended meanwhile.
                    let _ = nix::sys::signal::kill(pid, signal);
                }
            }
        }
    }

    /// Returns the status of a child that ended before that moment, if there is one.
    fn wait_for_end(
        &self,
        child: &mut Child,
        until: Option<Instant>,
    ) -> Result<Option<ExitStatus>> {
        let pidfd = pidfd_open(Pid::from_child(child), PidfdFlags::empty())
            .context("cannot open a pidfd")?;
        loop {
            if let Some(status) = child.try_wait().context("cannot wait for a child")? {
                return Ok(Some(status));
            }
            self.check()?;
            let left = until.map(|until| until.saturating_duration_since(Instant::now()));
            if left.is_some_and(|left| left.is_zero()) {
                return Ok(None);
            }
            let mut ready = [
                PollFd::new(&pidfd, PollFlags::IN),
                PollFd::from_borrowed_fd(self.0.as_fd(), PollFlags::IN),
            ];
            let timeout = left.map(|left| Timespec {
                tv_sec: i64::try_from(left.as_secs()).unwrap_or(i64::MAX),
                tv_nsec: left.subsec_nanos().into(),
            });
            match poll(&mut ready, timeout.as_ref()) {
                Ok(_) | Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(error).context("cannot poll a child"),
            }
        }
    }
}

/// Returns a command that dies with this program. Its standard error goes to `errors`.
pub fn guarded(argv: &[String], errors: File) -> Result<Command> {
    let mut command = Command::new(own_path()?);
    command.arg(GUARD).args(argv);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(errors);
    Ok(command)
}

/// Returns the same command, changed to die with this program. It inherits this program's streams.
pub fn guard_of(command: &Command) -> Result<Command> {
    let mut guarded = Command::new(own_path()?);
    guarded.arg(GUARD).arg(command.get_program()).args(command.get_args());
    if let Some(folder) = command.get_current_dir() {
        guarded.current_dir(folder);
    }
    Ok(guarded)
}

/// Returns a command that runs this program as a part of a bench.
pub fn part(bench: &str, part: &str) -> Result<Command> {
    let mut command = Command::new(own_path()?);
    command.args([bench, part]);
    Ok(command)
}

/// Returns the path of this program.
pub fn own_path() -> Result<PathBuf> {
    std::env::current_exe().context("cannot tell this program's path")
}

/// Executes the program so that it dies with its parent, before other work of the machine
/// ([`go_first`]).
pub fn guard(argv: &[OsString]) -> Result<()> {
    let [program, arguments @ ..] = argv else { bail!("nothing to guard") };
    die_with_parent()?;
    unblock_signals()?;
    go_first();
    Err(Command::new(program).args(arguments).exec())
        .with_context(|| format!("cannot run {}", program.display()))
}

/// Requests that the kernel ends this process when its parent dies.
pub fn die_with_parent() -> Result<()> {
    rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL))
        .context("cannot ask for a signal at the parent's death")
}

/// Unblocks the signals that this program's children inherit blocked.
pub fn unblock_signals() -> Result<()> {
    SigSet::empty().thread_set_mask().context("cannot unblock signals")
}

/// Gives this process a higher priority than other work of the machine where that is permitted, so that a concurrent
/// build does not affect the measurement. Under `nice`, a bench lets the other work go first, as it was told to.
pub fn go_first() {
    if rustix::process::getpriority_process(None).is_ok_and(|nice| nice <= 0) {
        let _ = rustix::process::setpriority_process(None, -20);
    }
}
