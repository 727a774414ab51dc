//! Changes: what is watched, how, and what no longer.

use std::ops::RangeInclusive;
use std::os::fd::{AsFd, AsRawFd, RawFd};

use iotomy_sys::epoll::{Change, EpollEvent, epoll_ctl};
use iotomy_sys::measure::{self, FileKind};
use iotomy_sys::private_fd::PrivateFd;
use iotomy_sys::same_file;
use rustix::io::Errno;

use super::kevent::{Kevent, filter, flag};
use super::notes::{Note, Source, Tag};
use super::{Kqueue, State, descriptor, signal, timer, user};
use crate::errno::errno;
use crate::port::Closes;

impl Kqueue {
    /// Makes one change.
    pub(super) fn change(&self, state: &mut State, change: Kevent) -> Result<(), Errno> {
        let change = Kevent { flags: change.flags & !flag::SYSTEM, ..change };
        let has = |flags| change.flags & flags != 0;
        match change.filter {
            filter::READ | filter::WRITE | filter::VNODE | filter::TIMER | filter::USER => {}
            filter::SIGNAL | filter::PROC => {}
            _ => return Err(Errno::INVAL),
        }
        let known = self.known(state, change);
        if known.is_none() && filter::OF_DESCRIPTORS.contains(&change.filter) {
            let fd = RawFd::try_from(change.ident).map_err(|_| Errno::BADF)?;
            if !same_file::is_open(fd) {
                return Err(Errno::BADF);
            }
        }
        if has(flag::ADD) && has(flag::KEEP_UDATA) {
            return Err(Errno::INVAL);
        }
        match known {
            None if !has(flag::ADD) => Err(Errno::NOENT),
            None => self.add(state, change),
            Some(tag) if has(flag::DELETE) => {
                self.end(state, tag);
                Ok(())
            }
            Some(tag) => self.modify(state, tag, change),
        }
    }

    /// The note that a change is of. One of a descriptor that was closed since is none.
    fn known(&self, state: &mut State, change: Kevent) -> Option<Tag> {
        let tag = state.notes.find((change.filter, change.ident))?;
        let note = state.notes.get(tag)?;
        if self.is_gone(note) {
            self.end(state, tag);
            return None;
        }
        Some(tag)
    }

    fn add(&self, state: &mut State, change: Kevent) -> Result<(), Errno> {
        let passing = flag::ADD | flag::DELETE | flag::ENABLE | flag::DISABLE | flag::FORCE_ONESHOT;
        let tag = state.notes.next_tag();
        let event = Kevent { flags: change.flags & !passing, ..change };
        let kind =
            RawFd::try_from(change.ident).map(|fd| measure::status(fd).map(|file| file.kind));
        let kind = kind.map_or(FileKind::Other, |kind| kind.unwrap_or(FileKind::Other));
        let mut note = Note::new(event, Source::Descriptor(kind));
        // With both, it is enabled.
        note.is_disabled = change.flags & (flag::ENABLE | flag::DISABLE) == flag::DISABLE;
        match change.filter {
            filter::TIMER => timer::start(&mut note)?,
            filter::USER => user::start(&mut note),
            filter::SIGNAL => signal::start(&mut note)?,
            filter::PROC => self.watch_process(&mut state.processes, &mut note)?,
            filter::VNODE => self.watch_file(&mut state.files, &mut note, tag)?,
            _ => {}
        }
        if let Err(error) = self.watch(&mut note, tag, Change::Add) {
            if let Source::Process(_) = note.source {
                self.ask_for_no_longer(&mut state.processes, note.wanted);
            }
            return Err(if error == Errno::NOSPC { Errno::NOMEM } else { error });
        }
        let is_unpolled = matches!(note.source, Source::Unpolled);
        let is_triggered = matches!(note.source, Source::User { is_triggered: true });
        self.rest_if_disabled(&note);
        let tag = state.notes.insert(note);
        if is_unpolled || is_triggered {
            state.notes.activate(tag);
        }
        Ok(())
    }

    fn modify(&self, state: &mut State, tag: Tag, change: Kevent) -> Result<(), Errno> {
        let State { notes, files, processes, .. } = state;
        let Some(note) = notes.get(tag) else { return Err(Errno::NOENT) };
        let has = |flags| change.flags & flags != 0;
        match note.source {
            Source::Timer { .. } if has(flag::ADD) => {
                // A child may have a copy of the old one, which would keep it in the set.
                if let Source::Timer { fd: old, .. } = timer::restart(note, change)? {
                    remove_from(&self.epoll, old.as_fd().as_raw_fd());
                }
            }
            Source::Timer { .. } => {}
            Source::User { .. } => user::touch(note, change),
            Source::Descriptor(_) | Source::Unpolled => {
                (note.wanted, note.amount) = (change.fflags, change.data);
            }
            Source::Signal { .. } => {}
            Source::Process(_) => {
                self.ask_for(processes, note.wanted, change.fflags)?;
                note.wanted = change.fflags;
            }
            Source::File(_) => {
                note.wanted = change.fflags;
                self.watch_file(files, note, tag)?;
            }
        }
        if !has(flag::KEEP_UDATA) {
            note.event.udata = change.udata;
        }
        if has(flag::FORCE_ONESHOT) {
            note.event.flags |= flag::ONESHOT;
            note.is_forced = true;
        }
        if has(flag::ENABLE) {
            note.is_disabled = false;
        } else if has(flag::DISABLE) {
            note.is_disabled = true;
        }
        let is_active = note.is_forced
            || match &note.source {
                Source::Unpolled => true,
                Source::User { is_triggered } => *is_triggered,
                Source::Timer { expirations, .. } => *expirations > 0,
                Source::Signal { watched, seen } => signal::has_come(watched, *seen),
                Source::File(file) => file.has_come(),
                Source::Process(process) => process.has_come(),
                Source::Descriptor(_) => false,
            };
        if note.is_disabled {
            self.rest_if_disabled(note);
        } else {
            self.watch(note, tag, Change::Modify)?;
        }
        if is_active {
            state.notes.activate(tag);
        }
        Ok(())
    }

    /// Has the kernel report what happens to a note from now on, and whether it is ready now.
    pub(super) fn watch(&self, note: &mut Note, tag: Tag, change: Change) -> Result<(), Errno> {
        let events = match note.event.filter {
            filter::WRITE | filter::READ => self.events_of(note),
            _ => descriptor::EDGES | crate::port::READABLE,
        };
        let event = EpollEvent { events, data: tag.word() };
        for (set, fd) in self.places(note).into_iter().flatten() {
            let set = |change| epoll_ctl(set.as_fd(), change, fd, event).map_err(errno);
            let done = match (change, set(change)) {
                (Change::Modify, Err(Errno::NOENT)) => set(Change::Add),
                // Of a note that ended when its number was closed, while a duplicate of the file stayed.
                (Change::Add, Err(Errno::EXIST)) => set(Change::Modify),
                (_, done) => done,
            };
            match done {
                Ok(()) => {}
                Err(Errno::PERM) => {
                    note.source = Source::Unpolled;
                    return Ok(());
                }
                Err(Errno::LOOP) => return Err(Errno::INVAL),
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// A set that tells of the level would wake threads for a note that is disabled.
    fn rest_if_disabled(&self, note: &Note) {
        if note.is_disabled && self.is_level(note) {
            for (set, fd) in self.places(note).into_iter().flatten() {
                remove_from(set, fd);
            }
        }
    }

    /// The sets that have a note, and the descriptors by which they have it.
    fn places(&self, note: &Note) -> [Option<(&PrivateFd, RawFd)>; 2] {
        let own = |fd: &dyn AsFd| Some((&self.epoll, fd.as_fd().as_raw_fd()));
        match &note.source {
            Source::Descriptor(_) => {
                let is_write = note.event.filter == filter::WRITE;
                let set = if is_write { &self.writes } else { &self.epoll };
                [note.descriptor().map(|fd| (set, fd)), None]
            }
            Source::Timer { fd, .. } => [own(fd), None],
            Source::Process(process) => [process.pidfd().and_then(|pidfd| own(pidfd)), None],
            Source::Signal { watched, .. } => {
                let [handled, pending] = watched.descriptors();
                [own(&handled), own(&pending)]
            }
            Source::Unpolled | Source::User { .. } | Source::File(_) => [None, None],
        }
    }

    /// Whether a note is of a descriptor that was closed, where the queue is not told of that.
    pub(super) fn is_gone(&self, note: &Note) -> bool {
        let Some(fd) = note.descriptor().filter(|_| self.closes == Closes::Checked) else {
            return false;
        };
        if let Source::File(file) = &note.source {
            return !file.is(fd);
        }
        match self.places(note)[0] {
            None => !same_file::is_open(fd),
            Some((set, _)) => match same_file::is_watched(set.as_fd(), fd) {
                Ok(is_same) => !is_same,
                Err(_) => !same_file::is_open(fd),
            },
        }
    }

    /// Ends a note.
    pub(super) fn end(&self, state: &mut State, tag: Tag) {
        let Some(note) = state.notes.remove(tag) else { return };
        for (set, fd) in self.places(&note).into_iter().flatten() {
            remove_from(set, fd);
        }
        if let Source::File(file) = &note.source {
            state.files.end(file, tag);
        }
        if let Source::Process(_) = &note.source {
            self.ask_for_no_longer(&mut state.processes, note.wanted);
        }
    }

    /// Ends the notes of a range of descriptors. Asks for no memory, for the handlers of signals.
    pub(super) fn end_range(&self, state: &mut State, fds: &RangeInclusive<u32>) {
        if fds.start() == fds.end() {
            for filter in filter::OF_DESCRIPTORS {
                if let Some(tag) = state.notes.find((filter, *fds.start() as usize)) {
                    self.end(state, tag);
                }
            }
            return;
        }
        for index in 0..state.notes.slots() {
            let Some(tag) = state.notes.tag_at(index) else { continue };
            let fd = state.notes.get(tag).and_then(|note| note.descriptor());
            if fd.is_some_and(|fd| fds.contains(&fd.cast_unsigned())) {
                self.end(state, tag);
            }
        }
    }
}

impl Note {
    /// The descriptor that is watched, if it is one.
    pub(super) fn descriptor(&self) -> Option<RawFd> {
        let is_descriptor = filter::OF_DESCRIPTORS.contains(&self.event.filter);
        RawFd::try_from(self.event.ident).ok().filter(|_| is_descriptor)
    }
}

pub(super) fn remove_from(set: &PrivateFd, fd: RawFd) {
    // Fails if the kernel has dropped it with its file.
    let _ = epoll_ctl(set.as_fd(), Change::Remove, fd, EpollEvent::default());
}
