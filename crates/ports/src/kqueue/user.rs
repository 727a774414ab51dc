//! The filter `USER`: events that the program triggers, with 24 flags of its own.

use super::Verdict;
use super::kevent::{Kevent, flag, note};
use super::notes::{Note, Source};

/// A new note; it may be triggered with the change that adds it.
pub(super) fn start(note: &mut Note) {
    note.source = Source::User { is_triggered: note.wanted & note::TRIGGER != 0 };
    note.wanted &= note::FF_FLAGS;
}

/// Changes the flags, and triggers the event.
pub(super) fn touch(note: &mut Note, change: Kevent) {
    let given = change.fflags & note::FF_FLAGS;
    match change.fflags & note::FF_CONTROL {
        note::FF_AND => note.wanted &= given,
        note::FF_OR => note.wanted |= given,
        note::FF_COPY => note.wanted = given,
        _ => {}
    }
    note.amount = change.data;
    if let Source::User { is_triggered } = &mut note.source {
        if change.flags & flag::CLEAR != 0 {
            *is_triggered = false;
        }
        *is_triggered |= change.fflags & note::TRIGGER != 0;
    }
}

pub(super) fn ask(note: &mut Note) -> Verdict {
    let is_cleared = note.has(flag::CLEAR);
    let event = Kevent { fflags: note.wanted, data: note.amount, ..note.event };
    match &mut note.source {
        Source::User { is_triggered } if *is_triggered => {
            *is_triggered = !is_cleared;
            Verdict::Event(event)
        }
        _ => Verdict::Nothing,
    }
}
