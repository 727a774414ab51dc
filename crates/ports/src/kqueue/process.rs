//! The filter `PROC`: the end of any process, by its pidfd; its forks and executions, and its children's, by
//! the kernel's process connector, where it tells this process of them.
//!
//! The tricky invariant: the connector is listened to before the pidfd is opened, and what it has told of is taken
//! before a process is said to have ended, so that nothing of it is lost.

use std::os::fd::{AsFd, AsRawFd};

use iotomy_sys::epoll::{Change, EpollEvent, epoll_ctl};
use iotomy_sys::private_fd::PrivateFd;
use iotomy_sys::process_events::{ProcessEvent, ProcessEvents};
use iotomy_sys::process_exit;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, pidfd_open};

use super::change::remove_from;
use super::kevent::{Kevent, filter, flag, note};
use super::notes::{Note, Notes, Source, Tag};
use super::watched::WatchedProcess;
use super::{Kqueue, PROCESSES, State, Verdict};
use crate::errno::errno;
use crate::port::READABLE;

/// What the connector tells of.
const TOLD: u32 = note::FORK | note::EXEC | note::TRACK;

/// What a queue is told of processes, while notes ask for more than ends.
#[derive(Debug, Default)]
pub(super) struct Processes {
    events: Option<ProcessEvents>,
    /// How many notes ask for it.
    users: usize,
}

impl Processes {
    pub(super) fn is_told(&self) -> bool {
        self.events.is_some()
    }
}

impl Kqueue {
    /// Watches the process of a new note.
    pub(super) fn watch_process(
        &self,
        processes: &mut Processes,
        note: &mut Note,
    ) -> Result<(), Errno> {
        let id = i32::try_from(note.event.ident).map_err(|_| Errno::SRCH)?;
        self.ask_for(processes, 0, note.wanted)?;
        let pidfd = open(id).inspect_err(|_| self.ask_for_no_longer(processes, note.wanted))?;
        note.event.flags |= flag::CLEAR;
        note.source =
            Source::Process(WatchedProcess { pidfd: Some(pidfd), ..WatchedProcess::default() });
        Ok(())
    }

    /// A note asks for something, or for something else than before; refused if there is no such thing, or the
    /// kernel does not tell this process of it.
    pub(super) fn ask_for(
        &self,
        processes: &mut Processes,
        before: u32,
        wanted: u32,
    ) -> Result<(), Errno> {
        if wanted & !(note::EXIT | TOLD) != 0 {
            return Err(Errno::INVAL);
        }
        if wanted & TOLD != 0 {
            self.listen(processes)?;
            processes.users += 1;
        }
        self.ask_for_no_longer(processes, before);
        Ok(())
    }

    /// A note that asked for something asks no longer.
    pub(super) fn ask_for_no_longer(&self, processes: &mut Processes, wanted: u32) {
        processes.users -= usize::from(wanted & TOLD != 0);
        if processes.users == 0
            && let Some(events) = processes.events.take()
        {
            // A child may have a copy, which would keep it in the set.
            remove_from(&self.epoll, events.as_fd().as_raw_fd());
        }
    }

    fn listen(&self, processes: &mut Processes) -> Result<(), Errno> {
        if processes.events.is_none() {
            let events = ProcessEvents::listen().map_err(|error| match errno(error) {
                Errno::PERM | Errno::ACCESS => Errno::ACCESS,
                Errno::OPNOTSUPP => Errno::INVAL,
                error => error,
            })?;
            let event = EpollEvent { events: READABLE, data: PROCESSES };
            let fd = events.as_fd().as_raw_fd();
            epoll_ctl(self.epoll.as_fd(), Change::Add, fd, event).map_err(errno)?;
            processes.events = Some(events);
        }
        Ok(())
    }

    /// Takes what the kernel has told of processes, and makes notes active.
    pub(super) fn absorb_processes(&self, state: &mut State) {
        let mut told = Vec::new();
        if let Some(events) = &state.processes.events {
            events.take(|event| told.push(event));
        }
        for event in told {
            match event {
                ProcessEvent::Fork { parent, child } => self.has_forked(state, parent, child),
                ProcessEvent::Exec(id) => state.notes.came(id, note::EXEC),
                ProcessEvent::Exit(id, status) => {
                    if let Some((tag, process)) = state.notes.process(id) {
                        process.status = Some(status);
                        state.notes.activate(tag);
                    }
                }
                ProcessEvent::Lost => {
                    for index in 0..state.notes.slots() {
                        if let Some(tag) = state.notes.tag_at(index) {
                            state.notes.came_to(tag, note::TRACKERR);
                        }
                    }
                }
            }
        }
    }

    fn has_forked(&self, state: &mut State, parent: i32, child: i32) {
        state.notes.came(parent, note::FORK);
        let Some(tag) = state.notes.find((filter::PROC, parent as usize)) else { return };
        let Some(of_parent) = state.notes.get(tag).filter(|note| note.wanted & note::TRACK != 0)
        else {
            return;
        };
        let (event, wanted) = (of_parent.event, of_parent.wanted);
        match self.track(state, event, wanted, child) {
            Ok(()) => {
                if let Some((tag, process)) = state.notes.process(child) {
                    process.came |= note::CHILD;
                    process.parent = parent;
                    state.notes.activate(tag);
                }
            }
            Err(_) => state.notes.came_to(tag, note::TRACKERR),
        }
    }

    /// Watches a child for what its parent is watched for, unless it is watched already.
    fn track(
        &self,
        state: &mut State,
        of_parent: Kevent,
        wanted: u32,
        child: i32,
    ) -> Result<(), Errno> {
        if state.notes.process(child).is_some() {
            return Ok(());
        }
        let pidfd = match open(child) {
            Ok(pidfd) => Some(pidfd),
            // Its end is told of next.
            Err(Errno::SRCH) => None,
            Err(error) => return Err(error),
        };
        let event = Kevent { ident: child as usize, fflags: wanted, ..of_parent };
        let source = Source::Process(WatchedProcess { pidfd, ..WatchedProcess::default() });
        let mut note = Note::new(event, source);
        let tag = state.notes.next_tag();
        self.watch(&mut note, tag, Change::Add)?;
        state.processes.users += 1;
        state.notes.insert(note);
        Ok(())
    }
}

impl Notes {
    fn process(&mut self, id: i32) -> Option<(Tag, &mut WatchedProcess)> {
        let tag = self.find((filter::PROC, usize::try_from(id).ok()?))?;
        match &mut self.get(tag)?.source {
            Source::Process(process) => Some((tag, process)),
            _ => None,
        }
    }

    /// Something happened to a process.
    fn came(&mut self, id: i32, what: u32) {
        if let Some((tag, _)) = self.process(id) {
            self.came_to(tag, what);
        }
    }

    /// Something happened to the process of a note, which may ask for it.
    fn came_to(&mut self, tag: Tag, what: u32) {
        let Some(note) = self.get(tag) else { return };
        let (wanted, Source::Process(process)) = (note.wanted, &mut note.source) else { return };
        process.is_untold |= what == note::TRACKERR;
        // Losses are told to those who asked for everything.
        let is_lost = what == note::TRACKERR && wanted & TOLD != 0;
        if wanted & what != 0 || is_lost {
            process.came |= what;
            self.activate(tag);
        }
    }
}

fn open(id: i32) -> Result<PrivateFd, Errno> {
    let id = Pid::from_raw(id).filter(|_| id > 0).ok_or(Errno::SRCH)?;
    // Kernels before 6.9 say so of what is a thread and no process.
    let pidfd = pidfd_open(id, PidfdFlags::empty())
        .map_err(|error| if error == Errno::INVAL { Errno::SRCH } else { error })?;
    Ok(PrivateFd::from(pidfd))
}

pub(super) fn ask(note: &mut Note) -> Verdict {
    let (wanted, ident) = (note.wanted, note.event.ident);
    let Source::Process(process) = &mut note.source else { return Verdict::Nothing };
    let has_ended = match &process.pidfd {
        Some(pidfd) => is_readable(pidfd),
        None => process.status.is_some(),
    };
    let of_pidfd = || process.pidfd.as_ref().and_then(|fd| process_exit::status(fd.as_fd()));
    let known = || process.status.or_else(of_pidfd).or_else(|| status_of_zombie(ident));
    let status = if has_ended { known() } else { None };
    // The kernel tells of a descendant's status behind its end.
    let is_over = has_ended && (status.is_some() || process.parent == 0 || process.is_untold);
    let of_end = if is_over { wanted & note::EXIT } else { 0 };
    let fflags = std::mem::take(&mut process.came) | of_end;
    if fflags == 0 {
        return if is_over { Verdict::Gone } else { Verdict::Nothing };
    }
    let mut data = if fflags & note::CHILD != 0 { process.parent.into() } else { 0 };
    if of_end != 0 {
        data = status.unwrap_or(0).into();
    }
    if is_over {
        // Nothing can happen to it any more.
        note.event.flags |= flag::EOF | flag::ONESHOT;
    }
    Verdict::Event(Kevent { fflags, data, ..note.event })
}

fn is_readable(pidfd: &PrivateFd) -> bool {
    let mut entry = [PollFd::new(pidfd, PollFlags::IN)];
    poll(&mut entry, Some(&Timespec::default())) == Ok(1)
}

/// The status of a process that was not waited for yet and is no child, for those who may see it.
fn status_of_zombie(id: usize) -> Option<i32> {
    let stat = std::fs::read(format!("/proc/{id}/stat")).ok()?;
    // Behind the name, which can have anything in it, also half a letter.
    let stat = String::from_utf8_lossy(&stat);
    let (_, fields) = stat.rsplit_once(") ")?;
    let mut fields = fields.split_ascii_whitespace();
    let is_zombie = fields.next() == Some("Z");
    is_zombie.then(|| fields.last()?.parse().ok()).flatten()
}
