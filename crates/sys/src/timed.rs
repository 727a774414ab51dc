//! Running a command under the clock.
//!
//! The child is made as `vfork(2)` makes it, sharing this process's memory until it executes its
//! program, so that its start does not depend on how large this process is. The tricky invariant
//! follows: until then the child runs on this process's memory, on a stack of its own, while the
//! thread that made it sleeps and every signal is held back; it makes async-signal-safe calls
//! only, allocates nothing and drops nothing.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};

use crate::launch::{Command, Image, LaunchError, become_program};

/// A command made ready, so that starting it takes nothing but system calls.
pub struct Timed {
    command: Command,
    image: Image,
    stack: Vec<u128>,
}

/// The child's stack in units of 16 bytes, to which it is aligned: 64 KiB, of which it uses few.
const STACK: usize = 4096;

/// A running command.
#[derive(Debug)]
pub struct Started {
    pid: libc::pid_t,
    pidfd: OwnedFd,
    began_ns: u64,
    executed_ns: u64,
}

/// A command that has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EndedChild {
    /// From just before the process was made until it had been waited for.
    pub wall_ns: u64,
    /// The part of it that had passed when the new process called `execve`.
    pub startup_ns: u64,
    /// As `wait4(2)` has it.
    pub status: i32,
    /// The resource usage of the process and of the children it waited for.
    pub usage: Usage,
}

/// A part of `struct rusage`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Usage {
    /// Time on a CPU in user mode.
    pub user_ns: u64,
    /// Time on a CPU in the kernel.
    pub system_ns: u64,
    /// Largest resident set.
    pub max_rss_bytes: u64,
    /// Page faults served without I/O.
    pub minor_faults: u64,
    /// Page faults that waited for I/O.
    pub major_faults: u64,
    /// Times a CPU was taken away.
    pub involuntary_switches: u64,
}

/// The input of the child, and the shared memory for its report.
struct ChildTask<'a> {
    command: &'a Command,
    image: &'a Image,
    mask: libc::sigset_t,
    executed_ns: u64,
    failure: (i32, i32),
}

impl Timed {
    /// Makes a command ready.
    ///
    /// # Errors
    /// When a string of it holds a NUL byte.
    pub fn new(command: Command) -> Result<Self, LaunchError> {
        let image = Image::new(&command)?;
        Ok(Self { command, image, stack: vec![0; STACK] })
    }

    /// Changes the process group it joins.
    pub fn set_group(&mut self, group: u32) {
        self.command.setup.group = Some(group);
    }

    /// Starts it and returns when it has executed its program. It is killed when the thread that
    /// called this ends.
    ///
    /// # Errors
    /// The error that kept the child from executing the program; the child is gone then.
    pub fn start(&mut self, mask: &libc::sigset_t) -> Result<Started, LaunchError> {
        let mut errand = ChildTask {
            command: &self.command,
            image: &self.image,
            mask: *mask,
            executed_ns: 0,
            failure: (0, 0),
        };
        let held_back = hold_all_signals();
        let top = self.stack.as_mut_ptr_range().end;
        let mut pidfd: RawFd = -1;
        let flags = libc::CLONE_VM | libc::CLONE_VFORK | libc::CLONE_PIDFD | libc::SIGCHLD;
        let argument: *mut ChildTask<'_> = &raw mut errand;
        let began_ns = now_ns();
        // SAFETY: `top` is the aligned end of a stack nobody else uses; with CLONE_VFORK this thread
        // sleeps until the child has left both the stack and `errand`; signals are held back, so no
        // handler runs on the shared memory; `child` keeps to what the module's comment says.
        let pid = unsafe { libc::clone(child, top.cast(), flags, argument.cast(), &raw mut pidfd) };
        let error = io::Error::last_os_error();
        restore_signals(&held_back);
        if pid < 0 {
            return Err(LaunchError::Fork { operation: "clone", source: error });
        }
        // SAFETY: the kernel just made the descriptor and nobody else owns it.
        let pidfd = unsafe { OwnedFd::from_raw_fd(pidfd) };
        // SAFETY: `errand` is a live local; the child wrote it behind the compiler's back.
        let (stage, number) = unsafe { std::ptr::read_volatile(&raw const errand.failure) };
        // SAFETY: as above.
        let executed_ns = unsafe { std::ptr::read_volatile(&raw const errand.executed_ns) };
        let started = Started { pid, pidfd, began_ns, executed_ns };
        if stage == 0 {
            return Ok(started);
        }
        let _ = started.wait();
        Err(self.command.failure(stage, number))
    }
}

impl Started {
    /// Its process id.
    pub fn pid(&self) -> u32 {
        self.pid.unsigned_abs()
    }

    /// Kills it, wherever it has gone: a program may have left the group it was started in.
    pub fn kill(&self) {
        // SAFETY: takes plain integers; it has not been waited for, so the id is its.
        unsafe { libc::kill(self.pid, libc::SIGKILL) };
    }

    /// Waits until it has ended.
    ///
    /// # Errors
    /// When another waiter has reaped it.
    pub fn wait(self) -> io::Result<EndedChild> {
        let mut status = 0;
        // SAFETY: `rusage` is plain integers.
        let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
        let ended_ns = loop {
            // SAFETY: `status` and `usage` are room for what the call writes.
            let got = unsafe { libc::wait4(self.pid, &raw mut status, 0, &raw mut usage) };
            let ended_ns = now_ns();
            if got == self.pid {
                break ended_ns;
            }
            let error = io::Error::last_os_error();
            if error.raw_os_error() != Some(libc::EINTR) {
                return Err(error);
            }
        };
        Ok(EndedChild {
            wall_ns: ended_ns.saturating_sub(self.began_ns),
            startup_ns: self.executed_ns.saturating_sub(self.began_ns),
            status,
            usage: Usage::from_rusage(&usage),
        })
    }
}

impl AsFd for Started {
    /// A descriptor that is readable once the process has ended.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.pidfd.as_fd()
    }
}

impl Usage {
    fn from_rusage(usage: &libc::rusage) -> Self {
        let time = |time: libc::timeval| {
            time.tv_sec.unsigned_abs() * 1_000_000_000 + time.tv_usec.unsigned_abs() * 1_000
        };
        Self {
            user_ns: time(usage.ru_utime),
            system_ns: time(usage.ru_stime),
            max_rss_bytes: usage.ru_maxrss.unsigned_abs() * 1024,
            minor_faults: usage.ru_minflt.unsigned_abs(),
            major_faults: usage.ru_majflt.unsigned_abs(),
            involuntary_switches: usage.ru_nivcsw.unsigned_abs(),
        }
    }
}

/// The child's side.
extern "C" fn child(argument: *mut libc::c_void) -> libc::c_int {
    // SAFETY: `argument` is the `ChildTask` of `start`, whose thread sleeps while this runs.
    let errand = unsafe { &mut *argument.cast::<ChildTask<'_>>() };
    // SAFETY: takes plain integers.
    unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL, 0, 0, 0) };
    let executed_ns = &mut errand.executed_ns;
    let failure = become_program(errand.command, errand.image, &errand.mask, &mut || {
        *executed_ns = now_ns();
    });
    errand.failure = failure;
    // SAFETY: ends this process at once, without the exit handlers of the one it shares memory with.
    unsafe { libc::_exit(127) }
}

/// `CLOCK_MONOTONIC`.
pub fn now_ns() -> u64 {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `now` is room for the time; the clock exists.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut now) };
    now.tv_sec.unsigned_abs() * 1_000_000_000 + now.tv_nsec.unsigned_abs()
}

fn hold_all_signals() -> libc::sigset_t {
    // SAFETY: `sigset_t` is plain integers; the full set is then written over it.
    let mut all: libc::sigset_t = unsafe { std::mem::zeroed() };
    let mut before = all;
    // SAFETY: `all` is room for a set.
    unsafe { libc::sigfillset(&raw mut all) };
    // SAFETY: `all` is an initialised set and `before` room for one.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &raw const all, &raw mut before) };
    before
}

fn restore_signals(mask: &libc::sigset_t) {
    // SAFETY: `mask` is a set the kernel filled in.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, mask, std::ptr::null_mut()) };
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keeper::Keeper;
    use crate::launch::{Setup, Streams};
    use crate::seccomp::Filter;
    use std::io::{Read, Seek};
    use std::sync::Arc;

    fn no_signals() -> libc::sigset_t {
        // SAFETY: `sigset_t` is plain integers; the empty set is then written over it.
        let mut set: libc::sigset_t = unsafe { std::mem::zeroed() };
        // SAFETY: `set` is room for a set.
        unsafe { libc::sigemptyset(&raw mut set) };
        set
    }

    fn timed(script: &str, setup: Setup) -> Timed {
        Timed::new(Command {
            program: "/bin/sh".into(),
            argv: ["sh", "-c", script].map(Into::into).to_vec(),
            setup,
            ..Command::default()
        })
        .unwrap()
    }

    #[test]
    fn a_command_is_started_again_and_again_and_waited_for() {
        let mut command = timed("exit 23", Setup::default());
        for _ in 0..3 {
            let ended = command.start(&no_signals()).unwrap().wait().unwrap();
            assert!(libc::WIFEXITED(ended.status));
            assert_eq!(libc::WEXITSTATUS(ended.status), 23);
            assert!(0 < ended.startup_ns && ended.startup_ns < ended.wall_ns, "{ended:?}");
            assert!(ended.usage.max_rss_bytes > 0 && ended.usage.minor_faults > 0);
        }
    }

    #[test]
    fn a_program_that_cannot_be_executed_is_an_error_and_no_process() {
        let command = Command {
            program: "/etc/passwd".into(),
            argv: vec!["passwd".into()],
            ..Command::default()
        };
        let error = Timed::new(command).unwrap().start(&no_signals()).unwrap_err();
        assert!(matches!(&error, LaunchError::Exec { source, .. }
            if source.raw_os_error() == Some(libc::EACCES)));
    }

    #[test]
    fn streams_group_and_filter_are_as_asked_for() {
        let mut file = tempfile();
        let out = Arc::new(OwnedFd::from(file.try_clone().unwrap()));
        let null = Arc::new(OwnedFd::from(std::fs::File::open("/dev/null").unwrap()));
        let keeper = Keeper::new().unwrap();
        let filter = Filter::deny(&[(libc::SYS_mkdir as u32, 38), (libc::SYS_mkdirat as u32, 38)]);
        let setup = Setup {
            streams: Some(Streams {
                input: Some(null),
                output: Some(out.clone()),
                error: Some(out),
            }),
            group: Some(keeper.group()),
            filter: filter.map(Arc::new),
        };
        let script = "cut -d' ' -f5 /proc/self/stat; LC_ALL=C mkdir /tmp/no-such-folder; exit 7";
        let ended = timed(script, setup).start(&no_signals()).unwrap().wait().unwrap();
        assert_eq!(libc::WEXITSTATUS(ended.status), 7);
        let mut text = String::new();
        file.rewind().unwrap();
        file.read_to_string(&mut text).unwrap();
        assert!(text.starts_with(&format!("{}\n", keeper.group())), "{text}");
        assert!(text.contains("Function not implemented"), "{text}");
    }

    fn tempfile() -> std::fs::File {
        let path = c"/tmp";
        let flags = libc::O_TMPFILE | libc::O_RDWR | libc::O_CLOEXEC;
        // SAFETY: the path is a C string.
        let fd = unsafe { libc::open(path.as_ptr(), flags, 0o600) };
        assert!(fd >= 0);
        // SAFETY: the kernel just made the descriptor and nobody else owns it.
        unsafe { std::fs::File::from_raw_fd(fd) }
    }
}
