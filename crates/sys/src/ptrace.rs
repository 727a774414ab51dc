//! `ptrace(2)` and the `waitpid(2)` that goes with it, in raw signal numbers.
//!
//! nix wraps both, but in an enum without the real-time signals: `waitpid` there swallows the stop
//! of a process that is about to get one, and no request can deliver one. Everything here takes and
//! gives plain numbers instead. It keeps no state and decides nothing.

use std::ffi::c_void;
use std::io;

use crate::syscalls::Abi;

/// The stops of a tracee beyond signals, as [`seize`] sets them: every system call (distinguishable
/// from a trap), new tasks (traced from their first instruction on), `execve` and exit.
/// `PTRACE_O_EXITKILL` is not among them: when the tracer dies, the tracees shall go on.
const OPTIONS: libc::c_int = libc::PTRACE_O_TRACESYSGOOD
    | libc::PTRACE_O_TRACEFORK
    | libc::PTRACE_O_TRACEVFORK
    | libc::PTRACE_O_TRACECLONE
    | libc::PTRACE_O_TRACEEXEC
    | libc::PTRACE_O_TRACEEXIT;

/// Makes the calling thread the tracer of task `tid`, without stopping it.
///
/// # Errors
/// The errno of `PTRACE_SEIZE`: `ESRCH` for no such task, `EPERM` for one that may not be traced.
pub fn seize(tid: u32) -> io::Result<()> {
    control(libc::PTRACE_SEIZE, tid, OPTIONS)
}

/// The same, without the processes that the task will create; its threads are traced.
///
/// # Errors
/// As [`seize`].
pub fn seize_without_children(tid: u32) -> io::Result<()> {
    control(
        libc::PTRACE_SEIZE,
        tid,
        OPTIONS & !(libc::PTRACE_O_TRACEFORK | libc::PTRACE_O_TRACEVFORK),
    )
}

/// Stops task `tid` as soon as it is about to return to user mode.
///
/// # Errors
/// `ESRCH` when it has ended.
pub fn interrupt(tid: u32) -> io::Result<()> {
    control(libc::PTRACE_INTERRUPT, tid, 0)
}

/// Lets a stopped task run to its next stop, delivering `signal` (0 for none).
///
/// # Errors
/// `ESRCH` when it has been killed meanwhile.
pub fn resume(tid: u32, signal: i32) -> io::Result<()> {
    control(libc::PTRACE_SYSCALL, tid, signal)
}

/// Leaves a task of a stopped group stopped, but lets it receive `SIGCONT`.
///
/// # Errors
/// `ESRCH` when it has been killed meanwhile.
pub fn listen(tid: u32) -> io::Result<()> {
    control(libc::PTRACE_LISTEN, tid, 0)
}

fn control(request: libc::c_uint, tid: u32, data: libc::c_int) -> io::Result<()> {
    let data = data as usize as *mut c_void;
    let none = std::ptr::null_mut::<c_void>();
    // SAFETY: the four requests above take an integer as data and touch no memory of this process.
    checked(unsafe { libc::ptrace(request, tid.cast_signed(), none, data) }).map(drop)
}

fn checked(result: libc::c_long) -> io::Result<libc::c_long> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

/// The message of an event: the new task's id for [`Stop::NewTask`], the former id of the task that
/// executed for [`Stop::Exec`].
///
/// # Errors
/// `ESRCH` when the task has been killed meanwhile.
pub fn event_message(tid: u32) -> io::Result<u32> {
    let mut message: libc::c_ulong = 0;
    let none = std::ptr::null_mut::<c_void>();
    let request = libc::PTRACE_GETEVENTMSG;
    // SAFETY: the kernel writes one long into `message`.
    checked(unsafe { libc::ptrace(request, tid.cast_signed(), none, &raw mut message) })?;
    u32::try_from(message).map_err(|_| io::ErrorKind::InvalidData.into())
}

/// Which end of a system call a task stopped at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallStop {
    /// It is about to make the call.
    Entry {
        /// The table `number` belongs to.
        abi: Abi,
        /// The call's number.
        number: u32,
        /// Its arguments.
        args: [u64; 6],
    },
    /// It is about to return with this value, or with this error number.
    Exit(Result<u64, u32>),
    /// It is not at a system call.
    Neither,
}

const OP_ENTRY: u64 = 1;
const OP_EXIT: u64 = 2;
const ARCH_I386: u64 = 0x4000_0003;

/// The call that task `tid` is stopped at, and whether at its entry or exit:
/// `PTRACE_GET_SYSCALL_INFO`, Linux 5.3.
///
/// # Errors
/// `ESRCH` when the task has been killed meanwhile, `EIO` from an older kernel.
pub fn call_stop(tid: u32) -> io::Result<CallStop> {
    // struct ptrace_syscall_info, 88 bytes at most: op in the first byte, arch in the fifth to
    // eighth, two pointers, then number and arguments, or value and flag.
    let mut info = [0u64; 11];
    let room = size_of_val(&info);
    let request = libc::PTRACE_GET_SYSCALL_INFO;
    // SAFETY: the kernel writes at most `room` bytes, which is the size of `info`.
    checked(unsafe { libc::ptrace(request, tid.cast_signed(), room, info.as_mut_ptr()) })?;
    let [head, _, _, rest @ ..] = info;
    Ok(match head & 0xff {
        OP_ENTRY => {
            let abi = if head >> 32 == ARCH_I386 { Abi::I386 } else { Abi::X86_64 };
            let [number, args @ .., _] = rest;
            CallStop::Entry { abi, number: number as u32, args }
        }
        OP_EXIT if rest[1] & 0xff != 0 => {
            CallStop::Exit(Err(rest[0].cast_signed().unsigned_abs() as u32))
        }
        OP_EXIT => CallStop::Exit(Ok(rest[0])),
        _ => CallStop::Neither,
    })
}

/// The origin of a stop between two instructions of a task's program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// Its program.
    Program,
    /// A system call, of this table and by this number, that has returned.
    Call(Abi, u32),
    /// A system call, by this number, that was interrupted, and that it makes again unless a signal's
    /// handler runs.
    InterruptedCall(u32),
}

/// The origin of the stopped task `tid`, from its registers.
///
/// # Errors
/// `ESRCH` when the task has been killed meanwhile.
pub fn origin(tid: u32) -> io::Result<Origin> {
    // SAFETY: a zeroed `user_regs_struct` is a valid value of the type (plain integers).
    let mut registers: libc::user_regs_struct = unsafe { std::mem::zeroed() };
    let none = std::ptr::null_mut::<c_void>();
    let request = libc::PTRACE_GETREGS;
    // SAFETY: the kernel writes one `user_regs_struct` into `registers`.
    checked(unsafe { libc::ptrace(request, tid.cast_signed(), none, &raw mut registers) })?;
    // The call's number, or -1 when an interrupt came. The kernel's own codes are ERESTARTSYS (512)
    // to ERESTART_RESTARTBLOCK (516).
    Ok(match (registers.orig_rax.cast_signed(), registers.rax.cast_signed()) {
        (..0, _) => Origin::Program,
        (number, -516..=-512) => Origin::InterruptedCall(number as u32),
        (number, _) => {
            // The segment of 32-bit code.
            let abi = if registers.cs == 0x23 { Abi::I386 } else { Abi::X86_64 };
            Origin::Call(abi, number as u32)
        }
    })
}

/// The report of `waitpid` on a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Status {
    /// It ended with this exit status.
    Exited(i32),
    /// A signal of this number ended it.
    Killed(i32),
    /// It waits for its tracer.
    Stopped(Stop),
}

/// Why a tracee waits for its tracer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stop {
    /// A system call's entry or exit: see [`call_stop`].
    Syscall,
    /// A signal is about to be delivered.
    Signal(i32),
    /// It made a task: see [`event_message`].
    NewTask,
    /// It executed a program: see [`event_message`].
    Exec,
    /// It is about to end.
    Exiting,
    /// Its group was stopped by this signal.
    Group(i32),
    /// It is new, was interrupted, or its group was continued.
    Trap,
    /// Anything else.
    Other,
}

/// The result of a wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WaitResult {
    /// News of this task.
    Task(u32, Status),
    /// No news.
    Nothing,
    /// No child and no tracee is left.
    Nobody,
}

/// The next event of a child or tracee of the calling thread; waits for it if `sleep`: then
/// [`WaitResult::Nothing`] is a wait interrupted by a signal.
///
/// # Errors
/// None that `waitpid(2)` documents for these arguments.
pub fn next_of_thread(sleep: bool) -> io::Result<WaitResult> {
    let flags = if sleep { 0 } else { libc::WNOHANG };
    wait(-1, libc::__WALL | libc::__WNOTHREAD | flags)
}

/// News of child `pid`, of whichever thread, without waiting.
///
/// # Errors
/// None that `waitpid(2)` documents for these arguments.
pub fn news_of(pid: u32) -> io::Result<WaitResult> {
    wait(pid.cast_signed(), libc::__WALL | libc::WNOHANG)
}

/// Waits until child `pid` has ended. A tracee's stops in between are left to its tracer's end.
pub fn reap(pid: u32) {
    while let Ok(WaitResult::Task(_, Status::Stopped(_)) | WaitResult::Nothing) =
        wait(pid.cast_signed(), libc::__WALL)
    {}
}

fn wait(pid: libc::pid_t, flags: libc::c_int) -> io::Result<WaitResult> {
    let mut status = 0;
    // SAFETY: the kernel writes one int into `status`.
    let found = unsafe { libc::waitpid(pid, &raw mut status, flags) };
    if found > 0 {
        return Ok(WaitResult::Task(found.unsigned_abs(), decode(status)));
    }
    if found == 0 {
        return Ok(WaitResult::Nothing);
    }
    let error = io::Error::last_os_error();
    match error.raw_os_error() {
        Some(libc::EINTR) => Ok(WaitResult::Nothing),
        Some(libc::ECHILD) => Ok(WaitResult::Nobody),
        _ => Err(error),
    }
}

fn decode(status: i32) -> Status {
    if libc::WIFEXITED(status) {
        return Status::Exited(libc::WEXITSTATUS(status));
    }
    if libc::WIFSIGNALED(status) {
        return Status::Killed(libc::WTERMSIG(status));
    }
    let signal = libc::WSTOPSIG(status);
    Status::Stopped(match status >> 16 {
        0 if signal == libc::SIGTRAP | 0x80 => Stop::Syscall,
        0 => Stop::Signal(signal),
        libc::PTRACE_EVENT_FORK | libc::PTRACE_EVENT_VFORK | libc::PTRACE_EVENT_CLONE => {
            Stop::NewTask
        }
        libc::PTRACE_EVENT_EXEC => Stop::Exec,
        libc::PTRACE_EVENT_EXIT => Stop::Exiting,
        libc::PTRACE_EVENT_STOP if signal == libc::SIGTRAP => Stop::Trap,
        libc::PTRACE_EVENT_STOP => Stop::Group(signal),
        _ => Stop::Other,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statuses_are_decoded_as_waitpid_packs_them() {
        assert_eq!(decode(23 << 8), Status::Exited(23));
        assert_eq!(decode(libc::SIGKILL), Status::Killed(libc::SIGKILL));
        assert_eq!(decode(0x857f), Status::Stopped(Stop::Syscall));
        // A real-time signal, which an enum of the named ones cannot hold.
        assert_eq!(decode((40 << 8) | 0x7f), Status::Stopped(Stop::Signal(40)));
        assert_eq!(decode((128 << 16) | 0x057f), Status::Stopped(Stop::Trap));
        assert_eq!(decode((128 << 16) | 0x137f), Status::Stopped(Stop::Group(libc::SIGSTOP)));
        assert_eq!(decode((6 << 16) | 0x057f), Status::Stopped(Stop::Exiting));
    }

    #[test]
    fn a_task_that_does_not_exist_is_esrch() {
        let error = seize(u32::MAX >> 2).unwrap_err();
        assert_eq!(error.raw_os_error(), Some(libc::ESRCH));
    }
}
