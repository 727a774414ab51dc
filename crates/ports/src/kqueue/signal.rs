//! The filter `SIGNAL`: the signals that come to the process, beside what it does with them.

use iotomy_sys::signal_watch::Watched;
use rustix::io::Errno;

use super::Verdict;
use super::kevent::{Kevent, flag};
use super::notes::{Note, Source};
use crate::errno::errno;

pub(super) fn start(note: &mut Note) -> Result<(), Errno> {
    let signal = i32::try_from(note.event.ident).map_err(|_| Errno::INVAL)?;
    let watched = Watched::begin(signal).map_err(errno)?;
    let seen = watched.count();
    note.event.flags |= flag::CLEAR;
    note.source = Source::Signal { watched, seen };
    Ok(())
}

/// Whether signals have come since the last event.
pub(super) fn has_come(watched: &Watched, seen: u64) -> bool {
    watched.count() > seen
}

pub(super) fn ask(note: &mut Note) -> Verdict {
    let event = note.event;
    let Source::Signal { watched, seen } = &mut note.source else { return Verdict::Nothing };
    let count = watched.count();
    if count == *seen {
        return Verdict::Nothing;
    }
    let data = count.saturating_sub(std::mem::replace(seen, count)).cast_signed();
    Verdict::Event(Kevent { data, ..event })
}
