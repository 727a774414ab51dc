//! What is retrieved from a port.

/// What caused an event (`PORT_SOURCE_…`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u16)]
pub enum Source {
    /// A timer expired.
    Timer = 2,
    /// A thread sent it.
    User = 3,
    /// A descriptor is ready.
    Fd = 4,
    /// The port is in alert mode.
    Alert = 5,
    /// A file changed.
    File = 7,
}

/// An event (`port_event_t`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(C)]
pub struct Event {
    /// What happened: poll events of a descriptor, changes of a file, expirations of a timer, or
    /// the sender's value.
    pub events: i32,
    /// The source.
    pub source: Source,
    pad: u16,
    /// The descriptor, the timer, or the caller's name of the file.
    pub object: usize,
    /// The value that was given with the association, the timer or the event.
    pub user: usize,
}

impl Event {
    pub(crate) const fn new(source: Source, events: i32, object: usize, user: usize) -> Self {
        Self { events, source, pad: 0, object, user }
    }
}
