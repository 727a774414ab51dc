//! What the kernel's sets tell becomes active notes, and what their filters say of these becomes events.

use std::os::fd::AsFd;
use std::sync::atomic::Ordering;

use iotomy_sys::epoll::EpollEvent;

use super::kevent::{Kevent, flag};
use super::notes::{Note, Source, Tag};
use super::{BATCH, Batch, CHANGES, Kqueue, NUDGE, OTHERS, PROCESSES, State, Verdict, WRITES};
use super::{process, signal, timer, user, vnode};

impl State {
    /// Makes a note active, of which a set has told; false if it has in this round before.
    fn told(&mut self, word: u64, events: u32) -> bool {
        self.notes.activate_as(Tag::from_word(word), self.round, events)
    }
}

impl Kqueue {
    /// Makes notes active of which the kernel's sets have something, at least so many if there are.
    pub(super) fn harvest(&self, state: &mut State, limit: usize) {
        let mut batch = Batch::new();
        let mut left = limit + OTHERS;
        while left > 0 {
            let most = left.min(BATCH);
            let count = batch.wait(self.epoll.as_fd(), most, 0).unwrap_or(0);
            let is_new = self.absorb(state, batch.events(), left);
            left -= count;
            if count < most || !is_new {
                return;
            }
        }
    }

    /// Makes notes active of which the first set has told; false if it has told of one in this round before:
    /// a set goes round among those that tell of the level.
    pub(super) fn absorb(&self, state: &mut State, fired: &[EpollEvent], limit: usize) -> bool {
        let mut is_new = true;
        for event in fired {
            match event.data {
                NUDGE => {}
                WRITES => self.absorb_writes(state, limit),
                CHANGES => self.absorb_changes(state),
                PROCESSES => self.absorb_processes(state),
                word => is_new &= state.told(word, event.events),
            }
        }
        is_new
    }

    fn absorb_writes(&self, state: &mut State, limit: usize) {
        let mut batch = Batch::new();
        let mut left = limit;
        while left > 0 {
            let most = left.min(BATCH);
            let count = batch.wait(self.writes.as_fd(), most, 0).unwrap_or(0);
            let mut is_new = true;
            for event in batch.events() {
                is_new &= state.told(event.data, event.events);
            }
            left -= count;
            if count < most || !is_new {
                return;
            }
        }
    }

    /// Asks the filters of active notes, each once, and gives their events to `put`.
    pub(super) fn scan(
        &self,
        state: &mut State,
        room: usize,
        put: &mut impl FnMut(Kevent),
    ) -> usize {
        let mut got = 0;
        for _ in 0..state.notes.active_count() {
            if got == room {
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
                    put(event);
                    got += 1;
                    self.delivered(state, tag);
                }
                Verdict::Nothing => state.notes.rest(tag),
                Verdict::AskAgain => {
                    state.notes.rest(tag);
                    state.asked_again.push(tag);
                }
                Verdict::Gone => self.end(state, tag),
            }
        }
        got
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
