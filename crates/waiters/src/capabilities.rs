//! The features of waiters, in the words that tests and docs share.

/// The features of a waiter.
#[derive(Debug, Clone, Copy)]
pub struct Capabilities {
    /// How it learns of what happens.
    pub model: Model,
    /// When it reports a descriptor.
    pub trigger: Trigger,
    /// Whether one event wakes some, and not all, of the threads that wait for the same descriptor
    /// in sets of their own.
    pub exclusive: bool,
    /// When it reports room to write.
    pub room: Room,
    /// Whether it distinguishes a hang-up from bytes to be read.
    pub names_hang_up: bool,
    /// Whether an event is the received bytes themselves ([`crate::Events::received`]).
    pub receives: bool,
    /// Whether several threads can wait at one set, and change it while others wait.
    pub shared: bool,
    /// Whether a child of fork(2) goes on with the set itself, not with a copy: parent and children can wait at it
    /// at once and modify what was added before the fork.
    pub inherited: bool,
    /// Whether a wait sleeps; else it burns the CPU until something has happened.
    pub sleeps: bool,
    /// The kinds of descriptors it can watch.
    pub serves: &'static [Kind],
    /// The treatment of a descriptor that is closed while it is watched.
    pub closed: Closed,
    /// The highest descriptor it can watch, where its own interface has such a limit.
    pub highest: Option<i32>,
    /// The unit to which a time-out is rounded up, in ns.
    pub timeout_step_ns: u64,
}

/// How a program learns of what happens: four models, the fourth of which tells one of two things.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Model {
    /// It asks each descriptor, again and again.
    Polling,
    /// A signal tells it. The signals of an open file go to one process, so only one can watch it.
    Signals,
    /// It passes all descriptors with each wait, which returns those that are ready.
    Passed,
    /// It has registered what it waits for, and learns that a call would not block now.
    Readiness,
    /// It has requested what it wants, and learns that it was done.
    Completion,
}

impl Model {
    /// Every model.
    pub const ALL: [Self; 5] =
        [Self::Polling, Self::Signals, Self::Passed, Self::Readiness, Self::Completion];

    /// Its name in tables.
    pub fn name(self) -> &'static str {
        match self {
            Self::Polling => "polling",
            Self::Signals => "signals",
            Self::Passed => "set passed",
            Self::Readiness => "readiness",
            Self::Completion => "completion",
        }
    }
}

/// When a waiter reports a descriptor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trigger {
    /// At each wait, while it is ready.
    Level,
    /// When something new has happened to it; read until `EAGAIN` before you wait again.
    Edge,
    /// Once; then not until it is modified.
    OneShot,
}

impl Trigger {
    /// Its name in tables.
    pub fn name(self) -> &'static str {
        match self {
            Self::Level => "level",
            Self::Edge => "edge",
            Self::OneShot => "one-shot",
        }
    }
}

/// When a waiter reports room to write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Room {
    /// When there is some, as its trigger defines.
    Told,
    /// When there is some again after a write was refused (`EAGAIN`) while the descriptor was watched.
    AfterRefusal,
    /// Never.
    Never,
}

impl Room {
    /// The text for tables.
    pub fn summary(self) -> &'static str {
        match self {
            Self::Told => "told",
            Self::AfterRefusal => "reported after EAGAIN",
            Self::Never => "not reported",
        }
    }
}

/// The treatment of a descriptor whose last owner closes it while it is watched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Closed {
    /// It is reported once, as [`crate::Ready::INVALID`], and forgotten.
    Told,
    /// The kernel forgets it, without a word; not so where a duplicate of it is open.
    Forgotten,
    /// It stays open behind the number until it is removed or the waiter is gone.
    Held,
    /// It is never reported again, but the waiter still counts it as watched.
    Silent,
}

impl Closed {
    /// The text for tables.
    pub fn summary(self) -> &'static str {
        match self {
            Self::Told => "told",
            Self::Forgotten => "forgotten",
            Self::Held => "held open",
            Self::Silent => "silent",
        }
    }
}

/// Kinds of descriptors that matter to waiters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A pipe or a FIFO.
    Pipe,
    /// A connected socket, UNIX or TCP.
    Socket,
    /// A socket that connections arrive at.
    Listener,
    /// An eventfd(2).
    Event,
    /// A timerfd(2).
    Timer,
    /// A regular file, which is always ready.
    File,
}

impl Kind {
    /// Every kind.
    pub const ALL: [Self; 6] =
        [Self::Pipe, Self::Socket, Self::Listener, Self::Event, Self::Timer, Self::File];

    /// All but regular files.
    pub const NO_FILES: [Self; 5] =
        [Self::Pipe, Self::Socket, Self::Listener, Self::Event, Self::Timer];

    /// Its name in tables.
    pub fn name(self) -> &'static str {
        match self {
            Self::Pipe => "pipe",
            Self::Socket => "socket",
            Self::Listener => "listener",
            Self::Event => "eventfd",
            Self::Timer => "timer",
            Self::File => "file",
        }
    }
}
