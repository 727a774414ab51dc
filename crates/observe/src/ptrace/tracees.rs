//! The traced tasks and the processes they belong to: the program image of each, the current call
//! of each thread, and its usage when the image began.
//!
//! The one tricky invariant: a task becomes known once. Its own first stop and its parent's event
//! come in either order; a stop that comes first is kept until the event identifies the image that
//! the new process shares. A parent that was killed sends no event, so there is a time limit, and
//! an event may be about a task that has already ended.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use iotomy_host::title;
use iotomy_record::{Call, Process, Running, Snapshot};
use iotomy_sys::ptrace::Stop;
use iotomy_sys::syscalls;

use super::entered::Entered;
use super::procfs;
use crate::clock::nanoseconds;
use crate::naming::{CallNumber, call_name};
use crate::tally::{Direction, FileRef, ImageId, Tally, Usage};
use crate::threads::{CallCounts, CallsOfThread, ThreadBook};

/// One thread.
#[derive(Debug)]
pub(super) struct Tracee {
    /// Its process.
    pub(super) process: u32,
    /// The call it is in.
    pub(super) entered: Option<Entered>,
    /// Whether it existed before the watch and has not stopped yet: its first return is that of a
    /// call entered before.
    pub(super) unseen: bool,
    /// The number of the call that attaching took it out of, which it makes again: not a new one.
    pub(super) repeating: Option<u32>,
    /// Its usage when its image began.
    base: Usage,
    /// Whether it has passed its last stop.
    pub(super) ending: bool,
    /// When it began in its image.
    began: Instant,
    /// Its calls in its image, where threads are counted.
    calls: CallsOfThread<CallNumber>,
    /// Its name before it executes a program, which gives it another.
    pub(super) name: String,
    /// What it did in the image before, until its `execve` has returned there.
    former: Option<(ImageId, ThreadBook<CallNumber>)>,
}

/// Every task being traced.
#[derive(Debug, Default)]
pub(super) struct Tracees {
    threads: HashMap<u32, Tracee>,
    /// The image each process runs; `None` for a launcher before its `execve`.
    processes: HashMap<u32, Option<ImageId>>,
    /// Tasks that stopped before anything was known of them.
    early: Vec<Early>,
    /// The programs that attached processes ran just before they were seized.
    found: HashMap<u32, Process>,
}

/// A task whose parent's event has not arrived.
#[derive(Debug)]
struct Early {
    tid: u32,
    stop: Stop,
    since: Instant,
}

/// How long a task waits for its parent's event, which follows at once.
const PATIENCE: Duration = Duration::from_millis(100);

impl Tracees {
    pub(super) fn get(&mut self, tid: u32) -> Option<&mut Tracee> {
        self.threads.get_mut(&tid)
    }

    /// Adds the unfinished calls of the threads to a snapshot, and removes the images that no
    /// thread runs any more.
    pub(super) fn show(
        &self,
        snapshot: &mut Snapshot,
        tally: &Tally,
        wanted: &dyn Fn(&str) -> bool,
    ) {
        let now = Instant::now();
        for tracee in self.threads.values().filter(|tracee| !tracee.ending) {
            let image = self.processes.get(&tracee.process).copied().flatten();
            let Some(image) = image else { continue };
            let doing = &mut snapshot.processes[tally.place(image)];
            doing.threads += 1;
            snapshot.threads += 1;
            let of_image = &mut snapshot.images[tally.place(image)];
            of_image.threads += 1;
            let Some(entered) = &tracee.entered else { continue };
            let (abi, number) = entered.call;
            let name = call_name(abi, number);
            if !wanted(&name) {
                continue;
            }
            let wall_ns = nanoseconds(entered.at, now);
            doing.calls_ns = doing.calls_ns.saturating_add(wall_ns);
            for calls in [&mut snapshot.calls, &mut of_image.calls] {
                if let Some(row) = calls.iter_mut().find(|row| row.syscall == name) {
                    row.in_flight += 1;
                    row.wall_ns = row.wall_ns.saturating_add(wall_ns);
                    row.open_ns = Some(row.open_ns.unwrap_or(0).saturating_add(wall_ns));
                } else {
                    let (syscall, open_ns) = (name.clone(), Some(wall_ns));
                    calls.push(Call { syscall, in_flight: 1, wall_ns, open_ns, ..Call::default() });
                }
            }
            doing.inside = Some(name);
        }
        snapshot.processes.retain(|doing| doing.threads > 0);
    }

    /// How many tasks there are.
    pub(super) fn len(&self) -> usize {
        self.threads.len() + self.early.len()
    }

    /// The image the process of thread `tid` runs.
    pub(super) fn image_of(&self, tid: u32) -> Option<ImageId> {
        let process = self.threads.get(&tid)?.process;
        self.processes.get(&process).copied().flatten()
    }

    /// The process of thread `tid`.
    pub(super) fn process_of(&self, tid: u32) -> Option<u32> {
        Some(self.threads.get(&tid)?.process)
    }

    /// Whether no other thread of its process is left.
    pub(super) fn is_last(&self, tid: u32) -> bool {
        let process = self.process_of(tid);
        let is_other = |(id, tracee): (&u32, &Tracee)| {
            *id != tid && Some(tracee.process) == process && !tracee.ending
        };
        !self.threads.iter().any(is_other)
    }

    /// Every process that has not ended, with one of its threads.
    pub(super) fn one_of_each_process(&self) -> Vec<(u32, u32)> {
        let living = self.threads.iter().filter(|(_, tracee)| !tracee.ending);
        let threads: HashMap<u32, u32> = living.map(|(tid, one)| (one.process, *tid)).collect();
        threads.into_iter().collect()
    }

    /// A child that has not executed its program yet: its calls belong to no image.
    pub(super) fn add_launcher(&mut self, pid: u32) {
        self.processes.insert(pid, None);
        self.threads.insert(pid, Tracee::new(pid, Usage::default()));
    }

    /// Reads a process that is about to be seized: until its first stop it may execute another
    /// program, and the facts read meanwhile may be of either.
    pub(super) fn look_at(&mut self, pid: u32) {
        self.found.insert(pid, procfs::process(pid));
    }

    /// A thread that was there before the watch.
    pub(super) fn add_running(&mut self, pid: u32, tid: u32, tally: &mut Tally) {
        let image = self
            .processes
            .get(&pid)
            .copied()
            .flatten()
            .unwrap_or_else(|| tally.begin(Process { threads: 0, ..procfs::process(pid) }));
        self.processes.insert(pid, Some(image));
        tally.add_thread(image);
        let mut tracee = Tracee::new(pid, procfs::usage(pid, tid).unwrap_or_default());
        tracee.unseen = true;
        self.threads.insert(tid, tracee);
    }

    /// Task `tid` was created by thread `maker`, or by one that will never report it. Returns the
    /// stop at which it waits already, if any.
    pub(super) fn add_made(
        &mut self,
        tid: u32,
        maker: Option<u32>,
        tally: &mut Tally,
    ) -> Option<Stop> {
        let stop = self.forget_early(tid);
        if self.threads.contains_key(&tid) {
            return stop;
        }
        if !procfs::exists(tid) {
            return None;
        }
        let maker = maker.and_then(|maker| self.threads.get(&maker)).map(|maker| maker.process);
        let family = procfs::family(tid)
            .unwrap_or(procfs::Family { process: tid, parent: maker.unwrap_or(0) });
        if family.process == tid {
            let maker = maker.unwrap_or(family.parent);
            let Process { exec, called, binary, argv, title, .. } =
                match self.processes.get(&maker).copied().flatten() {
                    Some(image) => tally.process(image).clone(),
                    None => procfs::process(tid),
                };
            let ppid = family.parent;
            let (pid, threads) = (tid, 1);
            let names = Process { exec, called, binary, argv, title, ..Process::default() };
            let process = Process { pid, ppid, threads, ..names };
            self.processes.insert(tid, Some(tally.begin_forked(process)));
        } else if let Some(Some(image)) = self.processes.get(&family.process) {
            tally.add_thread(*image);
        }
        self.threads.insert(tid, Tracee::new(family.process, Usage::default()));
        stop
    }

    /// An unknown task stopped: it waits for its maker's event.
    pub(super) fn keep_early(&mut self, tid: u32, stop: Stop, since: Instant) {
        self.forget_early(tid);
        self.early.push(Early { tid, stop, since });
    }

    /// Since when the first of the tasks that wait for their makers has.
    pub(super) fn early_since(&self) -> Option<Instant> {
        self.early.iter().map(|early| early.since).min()
    }

    /// The tasks that have waited long enough.
    pub(super) fn overdue(&self, now: Instant) -> Vec<u32> {
        let overdue = self.early.iter().filter(|early| early.since + PATIENCE <= now);
        overdue.map(|early| early.tid).collect()
    }

    fn forget_early(&mut self, tid: u32) -> Option<Stop> {
        let at = self.early.iter().position(|early| early.tid == tid)?;
        Some(self.early.swap_remove(at).stop)
    }

    /// Process `pid` executed a program by its thread that was `former` before: that thread is the
    /// only one left, and has taken the process's id.
    pub(super) fn executed(&mut self, pid: u32, former: u32, tally: &mut Tally) {
        let before = self.processes.get(&pid).copied().flatten();
        let mut tracee = if former == pid { None } else { self.threads.remove(&former) }
            .or_else(|| self.threads.remove(&pid))
            .unwrap_or_else(|| Tracee::new(pid, Usage::default()));
        let now = procfs::usage(pid, pid).unwrap_or(tracee.base);
        if let Some(before) = before {
            tally.allow_cpus(procfs::allowed_cpus(pid));
            let used = now.since(tracee.base);
            tally.used(before, used);
            if tally.has_threads() {
                let name = std::mem::take(&mut tracee.name);
                tracee.former = Some((before, tracee.leave(former, name, used, Instant::now())));
            }
            if tracee.unseen
                && let Some(found) = self.found.remove(&pid)
            {
                tally.name(before, found);
            }
        }
        let path = tracee.entered.as_ref().and_then(|entered| entered.path.as_deref());
        let process = procfs::executed(pid, path);
        let image = match before {
            Some(before) => tally.begin_after(before, process),
            None => tally.begin(process),
        };
        if let Some(entered) = &mut tracee.entered {
            entered.image.get_or_insert(image);
        }
        tracee.process = pid;
        tracee.base = now;
        tracee.began = Instant::now();
        tracee.ending = false;
        self.processes.insert(pid, Some(image));
        self.threads.insert(pid, tracee);
    }

    /// Closes the account of thread `tid`, which ends or is watched no longer.
    pub(super) fn close(&mut self, tid: u32, now: Instant, tally: &mut Tally) {
        self.end(tid, now, tally, false);
    }

    fn end(&mut self, tid: u32, now: Instant, tally: &mut Tally, outlives: bool) {
        let image = self.image_of(tid);
        let Some(tracee) = self.threads.get_mut(&tid).filter(|tracee| !tracee.ending) else {
            return;
        };
        tracee.ending = true;
        let entered = tracee.entered.take().filter(|entered| !entered.is_doubtful());
        if let Some(Entered { call, image: Some(of_call), at, before, .. }) = entered {
            let wall_ns = nanoseconds(at, now);
            match before {
                true => tally.unseen(of_call, call, wall_ns),
                false => tally.unfinished(of_call, call, wall_ns),
            }
            tracee.count(tally, of_call, call, CallCounts { wall_ns, ..CallCounts::default() });
        }
        if let Some((image, thread)) = tracee.former.take() {
            tally.add_left(image, thread, true);
        }
        if let Some(image) = image {
            tally.allow_cpus(procfs::allowed_cpus(tid));
            let used = procfs::usage(tracee.process, tid).map(|usage| usage.since(tracee.base));
            if let Some(used) = used {
                tally.used(image, used);
            }
            tally.resident(image, procfs::peak_resident_bytes(tracee.process));
            tally.titled(image, &title::first_argument(tracee.process));
            if tally.has_threads() {
                let name = procfs::name(tracee.process, tid);
                let thread = tracee.leave(tid, name, used.unwrap_or_default(), now);
                tally.add_left(image, thread, !outlives);
            }
        }
    }

    /// Task `tid` is no more.
    pub(super) fn remove(&mut self, tid: u32) {
        self.forget_early(tid);
        self.threads.remove(&tid);
        self.processes.remove(&tid);
    }

    /// Ends every account, at the end of a watch. Returns the processes that are alive.
    pub(super) fn close_all(&mut self, now: Instant, tally: &mut Tally) -> Vec<Running> {
        let mut alive: Vec<Running> = Vec::new();
        let tids: Vec<u32> = self.threads.keys().copied().collect();
        for tid in tids {
            let Some(tracee) = self.threads.get(&tid) else { continue };
            let (pid, image) = (tracee.process, self.image_of(tid));
            if let Some(image) = image
                && !tracee.ending
                && procfs::is_alive(tid)
                && alive.iter().all(|running| running.pid != pid)
            {
                alive.push(Running { pid, exec: tally.process(image).exec.clone() });
            }
            let outlives = procfs::is_alive(tid);
            self.end(tid, now, tally, outlives);
        }
        alive.sort_by_key(|running| running.pid);
        alive
    }
}

impl Tracee {
    fn new(process: u32, base: Usage) -> Self {
        Self {
            process,
            entered: None,
            unseen: false,
            repeating: None,
            base,
            ending: false,
            began: Instant::now(),
            calls: CallsOfThread::default(),
            name: String::new(),
            former: None,
        }
    }

    /// Counts a call of an image, where threads are counted.
    pub(super) fn count(
        &mut self,
        tally: &mut Tally,
        image: ImageId,
        call: CallNumber,
        more: CallCounts,
    ) {
        if !tally.has_threads() {
            return;
        }
        match self.former.take_if(|(former, _)| *former == image) {
            // Its last call there: the `execve` that led out of it.
            Some((_, mut thread)) => {
                thread.calls.add(call, more);
                tally.add_left(image, thread, true);
            }
            None => self.calls.add(call, more),
        }
    }

    /// What it has done in its image; it begins anew in another.
    fn leave(
        &mut self,
        tid: u32,
        name: String,
        used: Usage,
        now: Instant,
    ) -> ThreadBook<CallNumber> {
        ThreadBook {
            thread_ns: Some(nanoseconds(self.began, now)),
            on_cpu_ns: used.user_ns.saturating_add(used.system_ns),
            voluntary_switches: used.voluntary_switches,
            involuntary_switches: used.involuntary_switches,
            calls: std::mem::take(&mut self.calls),
            ..ThreadBook::new(tid, name)
        }
    }
}

/// The descriptors a call moves bytes between, or maps, by its arguments, and where they lead.
pub(super) fn files(tid: u32, call: &str, args: &[u64; 6]) -> Vec<(i32, FileRef, Direction)> {
    let transfer = syscalls::transfer(call).unwrap_or_default();
    let maps = (call == "mmap").then_some(4);
    let at = |argument: Option<u8>, way: Direction| {
        // A descriptor is the lower half of its argument's register.
        let fd = *args.get(usize::from(argument?))? as i32;
        Some((fd, procfs::file(tid, fd)?, way))
    };
    [
        at(transfer.from, Direction::Read),
        at(transfer.to, Direction::Write),
        at(maps, Direction::Map),
    ]
    .into_iter()
    .flatten()
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stop_that_comes_before_its_maker_s_event_is_kept_and_answered_once() {
        let (mut tracees, mut tally) = (Tracees::default(), Tally::with_room(9, 0));
        let (me, now) = (std::process::id(), Instant::now());
        tracees.keep_early(me, Stop::Trap, now);
        assert_eq!((tracees.len(), tracees.early_since()), (1, Some(now)));
        assert_eq!(tracees.overdue(now), [0; 0]);
        assert_eq!(tracees.overdue(now + PATIENCE), [me]);
        assert_eq!(tracees.add_made(me, None, &mut tally), Some(Stop::Trap));
        assert_eq!(tracees.add_made(me, None, &mut tally), None);
        assert_eq!((tracees.len(), tracees.early_since()), (1, None));
        let image = tracees.image_of(me).unwrap();
        assert_eq!((tally.process(image).pid, tally.process(image).threads), (me, 1));
    }

    #[test]
    fn a_task_that_was_gone_before_its_maker_told_of_it_is_no_second_process() {
        let (mut tracees, mut tally) = (Tracees::default(), Tally::with_room(9, 0));
        assert_eq!(tracees.add_made(u32::MAX >> 2, None, &mut tally), None);
        assert_eq!(tracees.len(), 0);
    }

    #[test]
    fn a_thread_that_executed_takes_the_first_one_s_place() {
        let (mut tracees, mut tally) = (Tracees::default(), Tally::with_room(9, 0));
        let me = std::process::id();
        tracees.add_running(me, me, &mut tally);
        tracees.add_running(me, me + 1, &mut tally);
        let before = tracees.image_of(me).unwrap();
        assert_eq!(tally.process(before).threads, 2);
        tracees.executed(me, me + 1, &mut tally);
        let after = tracees.image_of(me).unwrap();
        assert_ne!(before, after);
        assert_eq!((tracees.len(), tally.process(after).threads), (1, 1));
        assert!(tracees.get(me + 1).is_none());
    }

    #[test]
    fn an_exec_before_the_first_stop_leaves_the_name_read_before_seizing() {
        let pid = std::process::id();
        let name_of_the_first = |unseen: bool| {
            let (mut tracees, mut tally) = (Tracees::default(), Tally::with_room(9, 0));
            tracees.look_at(pid);
            let found = tracees.found.get_mut(&pid).unwrap();
            found.exec = "before".to_owned();
            found.argv = vec!["before".to_owned()];
            tracees.add_running(pid, pid, &mut tally);
            let first = tracees.image_of(pid).unwrap();
            tracees.get(pid).unwrap().unseen = unseen;
            tracees.executed(pid, pid, &mut tally);
            assert_ne!(tracees.image_of(pid), Some(first));
            (tally.process(first).exec.clone(), tally.process(first).argv.clone())
        };
        assert_eq!(name_of_the_first(true), ("before".to_owned(), vec!["before".to_owned()]));
        // After it has stopped, the facts read from it are right.
        let read = procfs::process(pid);
        assert_eq!(name_of_the_first(false), (read.exec, read.argv));
    }
}
