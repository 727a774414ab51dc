//! The meaning of each stop of a tracee, and how the tracee is resumed.
//!
//! The one invariant: every stop is answered once, by a resumption or by being kept, or the tracee
//! stands still for ever. A tracee that was killed meanwhile refuses every request with `ESRCH`;
//! that is not an error, its end is reported by itself.

use std::time::Instant;

use iotomy_record::{Exit, WholeCall};
use iotomy_sys::ptrace::{self, CallStop, Origin, Status, Stop};
use iotomy_sys::syscalls::{self, Abi};

use super::bytes;
use super::entered::Entered;
use super::procfs;
use super::session::PtraceSession;
use super::tracees;
use crate::clock::nanoseconds;
use crate::naming::{BEYOND, CallNumber, call_name, error_name, plain_name};
use crate::tally::{Direction, FileRef, ImageId};
use crate::threads::CallCounts;

/// The call by which the kernel has an interrupted one go on.
const RESTART: &str = "restart_syscall";

/// Whether a call that made a task kept it from being traced.
fn makes_untraced(tid: u32, name: &str, args: &[u64; 6]) -> bool {
    const CLONE_UNTRACED: u64 = 0x0080_0000;
    let flags = match name {
        "clone" => args[0],
        "clone3" => procfs::bytes_at(tid, args[0], 8)
            .and_then(|bytes| bytes.try_into().ok())
            .map_or(0, u64::from_ne_bytes),
        _ => 0,
    };
    flags & CLONE_UNTRACED != 0
}

impl PtraceSession {
    /// Processes the result of `waitpid` for a task.
    pub(super) fn note(&mut self, tid: u32, status: Status) {
        let now = Instant::now();
        match status {
            Status::Stopped(stop) => self.stopped(tid, stop, now),
            Status::Exited(code) => self.ended(tid, Exit::Code(code), now),
            Status::Killed(signal) => self.ended(tid, Exit::Signal(signal), now),
        }
    }

    fn stopped(&mut self, tid: u32, stop: Stop, now: Instant) {
        if self.tracees.get(tid).is_none() && stop != Stop::Exec {
            self.tracees.keep_early(tid, stop, now);
            return;
        }
        let mut deliver = 0;
        match stop {
            Stop::Syscall => self.at_call(tid, now),
            Stop::Signal(signal) => {
                self.repeats_no_more(tid);
                deliver = signal;
            }
            Stop::NewTask => self.made(tid, now),
            Stop::Exec => self.executed(tid),
            Stop::Exiting => {
                self.look_before_end(tid);
                self.tracees.close(tid, now, &mut self.tally);
            }
            Stop::Group(_) => {
                let _ = ptrace::listen(tid);
                return;
            }
            Stop::Trap => self.trapped(tid),
            Stop::Other => {}
        }
        let _ = ptrace::resume(tid, deliver);
    }

    fn at_call(&mut self, tid: u32, now: Instant) {
        match ptrace::call_stop(tid) {
            // Unknown call numbers are one row, as with the other observer.
            Ok(CallStop::Entry { abi, number, args }) => {
                self.enters(tid, (abi, number.min(BEYOND)), &args);
            }
            Ok(CallStop::Exit(value)) => self.returns(tid, value, now),
            Ok(CallStop::Neither) | Err(_) => {}
        }
    }

    fn enters(&mut self, tid: u32, call: CallNumber, args: &[u64; 6]) {
        let image = self.tracees.image_of(tid);
        let path = self.exec_calls.path_argument(call).and_then(|at| {
            // The last chance: the program executed has an address space and a name of its own.
            if let Some(image) = image {
                self.tally.resident(image, procfs::peak_resident_bytes(tid));
            }
            if let Some(tracee) = self.tracees.get(tid).filter(|_| self.tally.has_threads()) {
                tracee.name = procfs::name(tracee.process, tid);
            }
            procfs::path_at(tid, args[at])
        });
        let paths = match self.paths {
            true => procfs::paths_of_call(tid, &syscalls::name(call.0, call.1), args),
            false => Vec::new(),
        };
        // A call that repeats an interrupted one is not the first use.
        let is_new = self.tracees.get(tid).is_some_and(|tracee| tracee.repeating.is_none());
        if is_new {
            self.look_before(tid, call, args);
        }
        let (files, argument) = self.looks_at(tid, call, args);
        for (fd, file, _) in files.iter().filter(|_| is_new) {
            self.meet(tid, image, *fd, file);
        }
        let facts = self.entry_facts(tid, call, args);
        let Some(tracee) = self.tracees.get(tid) else { return };
        tracee.unseen = false;
        let repeats = tracee.repeating.take();
        // Some calls are made again by one of another name.
        let call = match repeats {
            Some(number) if syscalls::name(call.0, call.1) == RESTART => (call.0, number),
            _ => call,
        };
        let before = repeats.is_some();
        // The clock is read last: the work above is not the call's time.
        let at = Instant::now();
        let entered =
            Entered { call, image, files, argument, args: *args, paths, path, facts, before, at };
        let last = tracee.entered.replace(entered);
        // A call that seccomp had a signal sent for is left open by its return.
        let last = last.filter(|last| !last.is_doubtful());
        if let Some(Entered { call, image: Some(image), at: entered, .. }) = last {
            let wall_ns = nanoseconds(entered, at);
            self.tally.unfinished(image, call, wall_ns);
            let open = CallCounts { wall_ns, ..CallCounts::default() };
            tracee.count(&mut self.tally, image, call, open);
        }
    }

    fn returns(&mut self, tid: u32, value: Result<u64, u32>, now: Instant) {
        let Some(tracee) = self.tracees.get(tid) else { return };
        // Where seccomp sends a signal in place of an error, the call's number is its "return
        // value".
        let number = tracee.entered.as_ref().map(|entered| u64::from(entered.call.1));
        if number.is_some() && value.ok() == number && procfs::is_trapped(tid) {
            return;
        }
        let Some(mut entered) = tracee.entered.take() else {
            // The other return without an entry is a new task's from the call that made it, which
            // is its maker's call.
            if std::mem::take(&mut tracee.unseen) | tracee.repeating.take().is_some() {
                self.tally.headless();
            }
            return;
        };
        let Some(image) = entered.image else { return };
        // A handler's return shows the interrupted program's register: no result of a call's.
        let value = match syscalls::name(entered.call.0, entered.call.1).as_ref() {
            "rt_sigreturn" | "sigreturn" => Ok(0),
            _ => value,
        };
        let name = syscalls::name(entered.call.0, entered.call.1);
        let value_and_bytes = value
            .map(|value| (value, bytes::moved(tid, (entered.call.0, &name), &entered.args, value)));
        let moved = value_and_bytes.map_or(0, |(_, bytes)| bytes);
        if value.is_ok_and(|made| made > 0) && makes_untraced(tid, &name, &entered.args) {
            self.untraced_tasks += 1;
        }
        let (counts, ends) = match entered.before {
            true => (!entered.is_doubtful(), false),
            false => self.counts(tid, image, &mut entered, (value, moved), now),
        };
        if !entered.before {
            self.look_behind(tid, image, &entered, value, (counts, now));
        }
        if !counts {
            self.left_out += 1;
            return;
        }
        let Some(tracee) = self.tracees.get(tid) else { return };
        let wall_ns = nanoseconds(entered.at, now);
        let calls = u64::from(!entered.before);
        let errors = u64::from(!entered.before && value.is_err());
        tracee.count(&mut self.tally, image, entered.call, CallCounts { calls, errors, wall_ns });
        if entered.before {
            self.tally.entered_before(image, entered.call, wall_ns);
            return;
        }
        self.tally.returned(image, entered.call, value_and_bytes, wall_ns);
        self.keep_if_slow(tid, image, &entered, value, now);
        if ends {
            let call = self.whole_call(tid, &entered, value, now);
            self.fulfilled(image, call, now);
        }
        self.count_paths(tid, image, entered.call, entered.paths, value, wall_ns);
        for (_, file, way) in entered.files {
            match way {
                Direction::Map if value.is_err() => {}
                Direction::Map => self.tally.moved(image, file, way, entered.argument),
                _ => self.tally.moved(image, file, way, moved),
            }
        }
        if self.files
            && value.is_ok()
            && syscalls::polls(&syscalls::name(entered.call.0, entered.call.1)).is_some()
            && entered.call.0 == Abi::X86_64
        {
            self.tally.asked(image, entered.call, entered.argument);
        }
    }

    /// Keeps a call that returned, if it is one of the slowest so far.
    fn keep_if_slow(
        &mut self,
        tid: u32,
        image: ImageId,
        entered: &Entered,
        value: Result<u64, u32>,
        now: Instant,
    ) {
        let wall_ns = nanoseconds(entered.at, now);
        let syscall = call_name(entered.call.0, entered.call.1);
        if self.tally.is_slow(image, wall_ns)
            && self.is_wanted(&syscall)
            && !self.is_left_idle(&syscall, &entered.args)
        {
            let call = self.whole_call(tid, entered, value, now);
            self.tally.keep_slow(image, call);
        }
    }

    /// A call that returned, without its process.
    fn whole_call(
        &self,
        tid: u32,
        entered: &Entered,
        value: Result<u64, u32>,
        now: Instant,
    ) -> WholeCall {
        let syscall = call_name(entered.call.0, entered.call.1);
        let plain = plain_name(&syscall);
        let is_gone = plain.starts_with("exec") && value.is_ok();
        let count = if is_gone { 0 } else { syscalls::arity(plain).map_or(6, usize::from) };
        let given = match entered.paths.is_empty() && !is_gone {
            true => procfs::paths_of_call(tid, plain, &entered.args),
            false => entered.paths.clone(),
        };
        let file = || {
            let fd = entered.args[usize::from(syscalls::descriptor(plain)?)];
            procfs::file(tid, fd as u32 as i32).map(|file| file.path)
        };
        let path = given.into_iter().next().flatten().or_else(|| entered.path.clone());
        WholeCall {
            tid,
            thread: procfs::thread_name(tid),
            arguments: entered.args[..count].to_vec(),
            path: path.or_else(file),
            returned: value.map_or(0, u64::cast_signed),
            error: value.err().map(error_name),
            bytes: value
                .ok()
                .filter(|_| syscalls::returns_bytes(plain))
                .map(|value| bytes::moved(tid, (entered.call.0, plain), &entered.args, value)),
            start_ns: nanoseconds(self.began, entered.at),
            wall_ns: nanoseconds(entered.at, now),
            syscall,
            ..WholeCall::default()
        }
    }

    /// Counts a call that returned by the paths that it was given.
    fn count_paths(
        &mut self,
        tid: u32,
        image: ImageId,
        call: CallNumber,
        paths: Vec<Option<String>>,
        value: Result<u64, u32>,
        wall_ns: u64,
    ) {
        for (path, second) in paths.into_iter().zip([false, true]) {
            // It is where the path has led.
            let is_there = value.is_ok() && syscalls::name(call.0, call.1) == "chdir";
            let path = if is_there { procfs::working_directory(tid) } else { path };
            self.tally.named(image, (call, second, value.err(), path), wall_ns);
        }
    }

    /// The files of a call, and the argument that is a mapped length or a count of polled
    /// descriptors. The 32-bit forms of such calls have other arguments, which are ignored.
    fn looks_at(
        &mut self,
        tid: u32,
        (abi, number): CallNumber,
        args: &[u64; 6],
    ) -> (Vec<(i32, FileRef, Direction)>, u64) {
        if !self.files || !self.is_wanted(&call_name(abi, number)) {
            return (Vec::new(), 0);
        }
        let name = syscalls::name(abi, number);
        const MAP_ANONYMOUS: u64 = 0x20;
        let maps_no_file = abi != Abi::X86_64 || args[3] & MAP_ANONYMOUS != 0;
        if name == "mmap" && maps_no_file {
            return (Vec::new(), 0);
        }
        let files = tracees::files(tid, &name, args);
        for (fd, file, _) in &files {
            if self.tally.is_new(file) {
                self.tally.note_file(file.clone(), procfs::as_it_is(tid, *fd));
            }
        }
        // Of mmap, its length.
        let at = syscalls::polls(&name).unwrap_or(1);
        (files, args[usize::from(at)])
    }

    /// A new task's first stop, one caused by attaching, or the end of a group stop.
    fn trapped(&mut self, tid: u32) {
        let Some(tracee) = self.tracees.get(tid) else { return };
        if !std::mem::take(&mut tracee.unseen) {
            return;
        }
        match ptrace::origin(tid) {
            Ok(Origin::InterruptedCall(number)) => tracee.repeating = Some(number),
            // It returned while attaching: only its return was in the watch.
            Ok(Origin::Call(abi, number)) => match self.tracees.image_of(tid) {
                Some(image) => self.tally.entered_before(image, (abi, number.min(BEYOND)), 0),
                None => self.tally.headless(),
            },
            Ok(Origin::Program) | Err(_) => {}
        }
    }

    /// A signal arrived before the call that attaching interrupted was restarted: the next call may
    /// be its handler's.
    fn repeats_no_more(&mut self, tid: u32) {
        if let Some(tracee) = self.tracees.get(tid)
            && tracee.repeating.take().is_some()
        {
            self.tally.headless();
        }
    }

    fn made(&mut self, maker: u32, now: Instant) {
        let Ok(new) = ptrace::event_message(maker) else { return };
        if let Some(stop) = self.tracees.add_made(new, Some(maker), &mut self.tally) {
            self.stopped(new, stop, now);
        }
    }

    fn executed(&mut self, pid: u32) {
        let former = ptrace::event_message(pid).unwrap_or(pid);
        self.tracees.executed(pid, former, &mut self.tally);
    }

    fn ended(&mut self, tid: u32, exit: Exit, now: Instant) {
        self.tracees.close(tid, now, &mut self.tally);
        self.tracees.remove(tid);
        if let Some(at) = self.roots.iter().position(|root| *root == tid) {
            self.roots.swap_remove(at);
            if self.roots.is_empty() {
                self.end = Some((exit, now));
            }
        }
    }

    /// Resumes tasks that have waited long enough for a parent that must have been killed.
    pub(super) fn adopt_overdue(&mut self) {
        let now = Instant::now();
        for tid in self.tracees.overdue(now) {
            if let Some(stop) = self.tracees.add_made(tid, None, &mut self.tally) {
                self.stopped(tid, stop, now);
            }
        }
    }
}
