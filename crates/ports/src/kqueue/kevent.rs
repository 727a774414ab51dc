//! A change or an event of a queue, with FreeBSD's values.

/// A change of what a queue watches, or an event of it (`struct kevent`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[repr(C)]
pub struct Kevent {
    /// What is watched: a descriptor, a process, a signal, or a number of the caller's.
    pub ident: usize,
    /// For what: one of [`filter`].
    pub filter: i16,
    /// In a change what to do, in an event what is so: of [`flag`].
    pub flags: u16,
    /// Of [`note`], as the filter has them.
    pub fflags: u32,
    /// As the filter has it.
    pub data: i64,
    /// The caller's value.
    pub udata: usize,
    /// Further values of the caller's.
    pub ext: [u64; 4],
}

/// For what something is watched (`EVFILT_…`).
pub mod filter {
    /// There is something to read.
    pub const READ: i16 = -1;
    /// There is room to write.
    pub const WRITE: i16 = -2;
    /// Something happens to a file.
    pub const VNODE: i16 = -4;
    /// A process ends, makes another one, or executes a program. Of the last two Linux tells those who may listen to
    /// its process connector: in the first network and process namespaces the superuser, or from Linux 6.6 on all.
    pub const PROC: i16 = -5;
    /// A signal comes.
    pub const SIGNAL: i16 = -6;
    /// A timer expires.
    pub const TIMER: i16 = -7;
    /// The program triggers it.
    pub const USER: i16 = -11;

    /// Those of which the identifier is a descriptor.
    pub(crate) const OF_DESCRIPTORS: [i16; 3] = [READ, WRITE, VNODE];
}

/// Flags of changes and of events (`EV_…`).
pub mod flag {
    /// Watch it, or change how it is watched.
    pub const ADD: u16 = 0x1;
    /// Watch it no longer.
    pub const DELETE: u16 = 0x2;
    /// Return its events again.
    pub const ENABLE: u16 = 0x4;
    /// Return none of its events until it is enabled.
    pub const DISABLE: u16 = 0x8;
    /// Return one event only, and watch it no longer.
    pub const ONESHOT: u16 = 0x10;
    /// Return an event for what happens from now on, not for what is still so.
    pub const CLEAR: u16 = 0x20;
    /// Return the outcome of the change, also if it is a success.
    pub const RECEIPT: u16 = 0x40;
    /// Disable it with each event.
    pub const DISPATCH: u16 = 0x80;
    /// Return one event now, whether anything happened or not, and watch it no longer.
    pub const FORCE_ONESHOT: u16 = 0x100;
    /// Leave the caller's value as it is.
    pub const KEEP_UDATA: u16 = 0x200;
    /// What the caller has no say in.
    pub(crate) const SYSTEM: u16 = 0xf000;
    /// The event is the outcome of a change: `data` is the error, or 0.
    pub const ERROR: u16 = 0x4000;
    /// The other side is gone.
    pub const EOF: u16 = 0x8000;
}

/// What a filter is asked for, or tells (`NOTE_…`).
pub mod note {
    /// `READ`, `WRITE`: only if there are `data` bytes.
    pub const LOWAT: u32 = 0x1;
    /// `READ`: a regular file is always ready, as for poll(2).
    pub const FILE_POLL: u32 = 0x2;

    /// `USER`: leave the flags as they are.
    pub const FF_NOP: u32 = 0;
    /// `USER`: keep those of the flags that are given.
    pub const FF_AND: u32 = 0x4000_0000;
    /// `USER`: add the given flags.
    pub const FF_OR: u32 = 0x8000_0000;
    /// `USER`: take the given flags.
    pub const FF_COPY: u32 = 0xc000_0000;
    /// `USER`: the bits that say what is done.
    pub const FF_CONTROL: u32 = 0xc000_0000;
    /// `USER`: the bits that are the caller's.
    pub const FF_FLAGS: u32 = 0x00ff_ffff;
    /// `USER`: trigger the event.
    pub const TRIGGER: u32 = 0x0100_0000;

    /// `TIMER`: `data` is in seconds.
    pub const SECONDS: u32 = 0x1;
    /// `TIMER`: `data` is in milliseconds, as without a unit.
    pub const MSECONDS: u32 = 0x2;
    /// `TIMER`: `data` is in microseconds.
    pub const USECONDS: u32 = 0x4;
    /// `TIMER`: `data` is in nanoseconds.
    pub const NSECONDS: u32 = 0x8;
    /// `TIMER`: `data` is a time of the real-time clock.
    pub const ABSTIME: u32 = 0x10;

    /// `VNODE`: a name of the file was removed.
    pub const DELETE: u32 = 0x1;
    /// `VNODE`: it was written, or an entry of the directory was made, removed or renamed.
    pub const WRITE: u32 = 0x2;
    /// `VNODE`: it grew, or an entry was moved into the directory or out of it.
    pub const EXTEND: u32 = 0x4;
    /// `VNODE`: its attributes changed.
    pub const ATTRIB: u32 = 0x8;
    /// `VNODE`: it got another name, or a directory was made or removed in the directory.
    pub const LINK: u32 = 0x10;
    /// `VNODE`: it was renamed.
    pub const RENAME: u32 = 0x20;
    /// `VNODE`: its file system was unmounted.
    pub const REVOKE: u32 = 0x40;
    /// `VNODE`: it was opened.
    pub const OPEN: u32 = 0x80;
    /// `VNODE`: one who could not write closed it.
    pub const CLOSE: u32 = 0x100;
    /// `VNODE`: one who could write closed it.
    pub const CLOSE_WRITE: u32 = 0x200;
    /// `VNODE`: it was read.
    pub const READ: u32 = 0x400;

    /// `PROC`: it ended; `data` of the event is its status, as wait(2) has it.
    pub const EXIT: u32 = 0x8000_0000;
    /// `PROC`: it made another process. Where Linux tells of that, see [`super::filter::PROC`].
    pub const FORK: u32 = 0x4000_0000;
    /// `PROC`: it executes another program.
    pub const EXEC: u32 = 0x2000_0000;
    /// `PROC`: watch its children for the same, and theirs.
    pub const TRACK: u32 = 0x1;
    /// `PROC`: children, or other events, were lost.
    pub const TRACKERR: u32 = 0x2;
    /// `PROC`: it is a child of a process that is tracked; `data` of the event is its parent.
    pub const CHILD: u32 = 0x4;
}
