//! The filters of descriptors, `READ` and `WRITE`: what there is to read, and what room to write.

use std::os::fd::RawFd;

use iotomy_sys::measure::{self, FileKind};
use rustix::event::PollFlags;

use super::kevent::{Kevent, filter, flag, note};
use super::notes::{Note, Source};
use super::{Kqueue, Verdict};
use crate::port::Closes;

/// `EPOLLET`: what happens, not what is so.
pub(super) const EDGES: u32 = 1 << 31;
/// `EPOLLONESHOT`.
const ONCE: u32 = 1 << 30;
/// `EPOLLIN` and `EPOLLRDHUP`.
const READS: u32 = 0x2001;
/// `EPOLLOUT`.
const WRITES: u32 = 0x4;

/// What a descriptor has.
struct Amount {
    /// `data` of the event.
    data: i64,
    is_ready: bool,
    /// Whether the other side is gone.
    is_end: bool,
    /// Whether it is ready whatever the limit is: it is at its end, or has an error.
    has_no_limit: bool,
    /// Whether the kernel tells when there is more.
    has_edges: bool,
}

impl Kqueue {
    /// Whether the set of a note tells of it as long as it is ready, and not only when something happens.
    ///
    /// Where the queue is not told of closes it must not: the set could not be rid of a file whose number is
    /// closed. Nor where there can be something, and less than is asked for.
    pub(super) fn is_level(&self, note: &Note) -> bool {
        let is_descriptor = matches!(note.source, Source::Descriptor(_));
        let is_edge = note.has(flag::CLEAR) || note.wanted & note::LOWAT != 0 || note.is_forced;
        is_descriptor && self.closes == Closes::Reported && !is_edge
    }

    /// What the set of a note's descriptor is asked for.
    pub(super) fn events_of(&self, note: &Note) -> u32 {
        let wanted = if note.event.filter == filter::WRITE { WRITES } else { READS };
        match self.is_level(note) {
            true if note.has(flag::DISPATCH) => wanted | ONCE,
            true => wanted,
            false => wanted | EDGES,
        }
    }

    pub(super) fn ask_descriptor(&self, note: &Note, round: u64) -> Verdict {
        if self.is_gone(note) {
            return Verdict::Gone;
        }
        let Some(fd) = note.descriptor() else { return Verdict::Gone };
        let is_write = note.event.filter == filter::WRITE;
        let amount = match note.source {
            Source::Descriptor(kind) if is_write => to_write(fd, kind, note.told(round)),
            Source::Descriptor(kind) => to_read(fd, kind, note.told(round)),
            _ if is_write => always_ready(0),
            _ => to_end(fd, note.wanted),
        };
        // An offset behind the end of a file is an event with an amount below 0.
        let limit = if note.wanted & note::LOWAT != 0 { note.amount } else { i64::MIN };
        if !amount.is_ready {
            return if amount.has_edges { Verdict::Nothing } else { Verdict::AskAgain };
        }
        if amount.data < limit && !amount.has_no_limit {
            // More data is an edge, but of a file. More room is none to the kernel, if there is some.
            let has_edge = !is_write && amount.has_edges;
            return if has_edge { Verdict::Nothing } else { Verdict::AskAgain };
        }
        let end = if amount.is_end { flag::EOF } else { 0 };
        let flags = note.event.flags | end;
        Verdict::Event(Kevent { flags, data: amount.data, ..note.event })
    }
}

fn to_read(fd: RawFd, kind: FileKind, told: Option<u32>) -> Amount {
    let hang_up = match kind {
        FileKind::Socket => PollFlags::HUP | PollFlags::RDHUP,
        _ => PollFlags::HUP,
    };
    let events = events(fd, PollFlags::IN | PollFlags::RDHUP, told);
    let is_ready = !events.is_empty();
    // A listener has no bytes.
    let connections = || measure::backlog(fd).filter(|_| measure::is_listener(fd));
    let bytes = || measure::bytes_to_read(fd).or_else(connections).unwrap_or(1);
    Amount {
        data: if is_ready { bytes() } else { 0 },
        is_ready,
        is_end: events.intersects(hang_up),
        has_no_limit: events.intersects(hang_up | PollFlags::ERR),
        has_edges: true,
    }
}

fn to_write(fd: RawFd, kind: FileKind, told: Option<u32>) -> Amount {
    let events = events(fd, PollFlags::OUT, told);
    let hang_up = match kind {
        FileKind::Socket => PollFlags::HUP,
        _ => PollFlags::HUP | PollFlags::ERR,
    };
    let room = match kind {
        FileKind::Pipe => measure::pipe_room(fd),
        FileKind::Socket => measure::socket_room(fd),
        _ => None,
    };
    // What can be written is at least a byte, whatever the figures say.
    let least = i64::from(events.intersects(PollFlags::OUT));
    Amount {
        data: room.unwrap_or(least).max(least),
        is_ready: !events.is_empty(),
        is_end: events.intersects(hang_up),
        has_no_limit: events.intersects(PollFlags::HUP | PollFlags::ERR),
        has_edges: true,
    }
}

/// A file with an end: there is something to read unless the offset is there.
fn to_end(fd: RawFd, wanted: u32) -> Amount {
    let Ok(status) = measure::status(fd) else { return always_ready(0) };
    if status.kind != FileKind::Seekable {
        return always_ready(1);
    }
    let data = measure::bytes_to_end(fd, status.size).unwrap_or(0);
    let is_ready = data != 0 || wanted & note::FILE_POLL != 0;
    Amount { is_ready, has_no_limit: false, has_edges: false, ..always_ready(data) }
}

fn always_ready(data: i64) -> Amount {
    Amount { data, is_ready: true, is_end: false, has_no_limit: true, has_edges: true }
}

/// The events of a descriptor, which need not be asked for if the kernel has just told them.
fn events(fd: RawFd, wanted: PollFlags, told: Option<u32>) -> PollFlags {
    let ask = || measure::events(fd, wanted.bits().cast_signed()).cast_unsigned();
    // epoll(7) has poll(2)'s values.
    PollFlags::from_bits_retain(told.map_or_else(ask, |events| events as u16))
}
