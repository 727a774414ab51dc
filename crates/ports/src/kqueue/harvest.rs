//! What the kernel's sets tell becomes active notes, and what their filters say of these becomes events.

use std::os::fd::AsFd;
use std::sync::atomic::Ordering;

use iotomy_sys::epoll::{Change, EpollEvent};

use super::kevent::{Kevent, flag};
use super::notes::{Note, Source, Tag, UNKNOWN};
use super::{BATCH, Batch, CHANGES, Kqueue, NUDGE, OTHERS, PROCESSES, State, Verdict, WRITES};
use super::{process, signal, timer, user, vnode};

/// Whether the first set has a place for something other than a note.
fn is_other(word: u64) -> bool {
    word > u64::MAX - OTHERS as u64
}

/// Where the events of a call go, and how many there is room for.
pub(super) struct Out<P> {
    pub(super) room: usize,
    pub(super) got: usize,
    pub(super) put: P,
}

impl<P: FnMut(Kevent)> Out<P> {
    fn give(&mut self, event: Kevent) {
        (self.put)(event);
        self.got += 1;
    }

    fn is_full(&self) -> bool {
        self.got == self.room
    }
}

impl Kqueue {
    /// Takes what the kernel's sets have, at least so many if there are and there is room.
    pub(super) fn harvest<P: FnMut(Kevent)>(
        &self,
        state: &mut State,
        limit: usize,
        out: &mut Out<P>,
    ) {
        let mut batch = Batch::new();
        // With much room and without active notes, only as many notes are asked for as there is room for: a further one
        // would become active, and all notes of the next call would come after it.
        let is_exact = limit >= BATCH && out.room > 0 && !state.notes.has_active();
        let (mut left, mut others) = if is_exact { (limit, OTHERS) } else { (limit + OTHERS, 0) };
        while left > 0 {
            let most = left.min(BATCH);
            let count = batch.wait(self.epoll.as_fd(), most, 0).unwrap_or(0);
            let is_new = self.absorb(state, (batch.events(), true), left, out);
            if count < most || !is_new || is_exact && out.is_full() {
                return;
            }
            let told = batch.events().iter().filter(|event| is_other(event.data)).count();
            let free = told.min(others);
            others -= free;
            left -= count - free;
        }
    }

    /// Takes what the first set has told, and whether that is so now; false if it has told of a note in this round
    /// before: a set goes round among those that tell of the level.
    pub(super) fn absorb<P: FnMut(Kevent)>(
        &self,
        state: &mut State,
        (fired, is_now): (&[EpollEvent], bool),
        limit: usize,
        out: &mut Out<P>,
    ) -> bool {
        let mut is_new = true;
        for event in fired {
            match event.data {
                NUDGE => {}
                WRITES => self.absorb_writes(state, limit, out),
                CHANGES => self.absorb_changes(state),
                PROCESSES => self.absorb_processes(state),
                word => {
                    let told = if is_now { event.events } else { UNKNOWN };
                    is_new &= self.hear(state, (word, told), out);
                }
            }
        }
        is_new
    }

    fn absorb_writes<P: FnMut(Kevent)>(&self, state: &mut State, limit: usize, out: &mut Out<P>) {
        let mut batch = Batch::new();
        let mut left = limit;
        while left > 0 {
            let most = left.min(BATCH);
            let count = batch.wait(self.writes.as_fd(), most, 0).unwrap_or(0);
            let mut is_new = true;
            for event in batch.events() {
                is_new &= self.hear(state, (event.data, event.events), out);
            }
            left -= count;
            if count < most || !is_new {
                return;
            }
        }
    }

    /// Makes a note active of which a set has told; false if it has in this round before. The event of one that
    /// tells of the level is returned at once unless others come before it: what the kernel has just looked at is
    /// still in the caches.
    fn hear<P: FnMut(Kevent)>(
        &self,
        state: &mut State,
        (word, told): (u64, u32),
        out: &mut Out<P>,
    ) -> bool {
        let (tag, round) = (Tag::from_word(word), state.round);
        let is_first = !out.is_full() && !state.notes.has_active();
        let Some(note) = state.notes.get(tag) else { return true };
        let is_level = self.is_level(note);
        let is_new = note.hear(round, told);
        if is_new && is_first && is_level && !note.is_disabled {
            match self.ask_descriptor(note, round) {
                Verdict::Event(event) => {
                    out.give(event);
                    self.delivered(state, tag);
                }
                _ => self.has_nothing(state, tag),
            }
        } else if is_new || !is_level || note.has(flag::DISPATCH) {
            // Of any other level, the set tells the next call again.
            state.notes.activate(tag);
        }
        is_new
    }

    /// Asks the filters of active notes, each once, and returns their events.
    pub(super) fn scan<P: FnMut(Kevent)>(&self, state: &mut State, out: &mut Out<P>) {
        for _ in 0..state.notes.active_count() {
            if out.is_full() {
                break;
            }
            let Some(tag) = state.notes.take_active() else { break };
            let round = state.round;
            if state.processes.is_told() && state.notes.is_of_process(tag) {
                self.absorb_processes(state);
            }
            let Some(note) = state.notes.get(tag) else { continue };
            match self.ask(note, round) {
                Verdict::Event(event) => {
                    out.give(event);
                    self.delivered(state, tag);
                }
                Verdict::Nothing => self.has_nothing(state, tag),
                Verdict::AskAgain => {
                    state.notes.rest(tag);
                    state.asked_again.push(tag);
                }
                Verdict::Gone => self.end(state, tag),
            }
        }
    }

    /// What becomes of a note of which a set has told, and whose filter has nothing: another thread was first.
    fn has_nothing(&self, state: &mut State, tag: Tag) {
        state.notes.rest(tag);
        let Some(note) = state.notes.get(tag) else { return };
        if note.has(flag::DISPATCH) && self.is_level(note) {
            // The set tells of it once, and has. Its descriptor is open, so this cannot fail.
            let _ = self.watch(note, tag, Change::Modify);
        }
    }

    /// What becomes of a note whose event was returned.
    fn delivered(&self, state: &mut State, tag: Tag) {
        let Some(note) = state.notes.get(tag) else { return };
        if note.has(flag::ONESHOT) {
            self.end(state, tag);
        } else if note.has(flag::CLEAR | flag::DISPATCH) {
            note.is_disabled = note.has(flag::DISPATCH);
            state.notes.rest(tag);
        } else if self.is_level(note) {
            state.notes.rest(tag);
        } else {
            state.notes.stay_active(tag);
        }
    }

    fn ask(&self, note: &mut Note, round: u64) -> Verdict {
        let is_forced = note.is_forced;
        let verdict = match note.source {
            Source::Descriptor(_) | Source::Unpolled => self.ask_descriptor(note, round),
            Source::Timer { .. } => timer::ask(note),
            Source::User { .. } => user::ask(note),
            Source::Signal { .. } => signal::ask(note),
            Source::Process(_) => process::ask(note),
            Source::File(_) if self.is_gone(note) => Verdict::Gone,
            Source::File(_) => vnode::ask(note),
        };
        match verdict {
            Verdict::Nothing | Verdict::AskAgain if is_forced => Verdict::Event(note.event),
            verdict => verdict,
        }
    }

    /// Makes the eventfd readable as long as notes are active.
    pub(super) fn settle(&self, state: &mut State) {
        let is_needed = state.notes.has_active();
        if is_needed != state.is_nudged && !self.is_closed.load(Ordering::SeqCst) {
            // Neither can fail: the counter is 0 or 1.
            let _ = match is_needed {
                true => rustix::io::write(&self.nudge, &1u64.to_ne_bytes()),
                false => rustix::io::read(&self.nudge, &mut [0; 8][..]),
            };
            state.is_nudged = is_needed;
        }
    }
}
