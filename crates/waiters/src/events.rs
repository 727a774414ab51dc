//! The caller's buffer of events.

use crate::Ready;

/// Something that happened to one descriptor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Event {
    /// The token that the descriptor was added or modified with.
    pub token: u64,
    /// The state of the descriptor.
    pub ready: Ready,
}

/// Events of one wait. Owned by the caller and used again and again, so that a wait allocates nothing
/// once it has been used.
#[derive(Debug)]
pub struct Events {
    list: Vec<Event>,
    capacity: usize,
    /// The bytes of all events, one after another.
    received: Vec<u8>,
    /// Where the bytes of each event end; empty where the waiter receives nothing.
    ends: Vec<usize>,
}

impl Events {
    /// Room for this many events per wait, at least one.
    pub fn with_capacity(capacity: usize) -> Self {
        let capacity = capacity.max(1);
        Self {
            list: Vec::with_capacity(capacity),
            capacity,
            received: Vec::new(),
            ends: Vec::new(),
        }
    }

    /// The number of events that a wait can report.
    #[inline]
    pub fn capacity(&self) -> usize {
        self.capacity
    }

    /// How many there are.
    #[inline]
    pub fn len(&self) -> usize {
        self.list.len()
    }

    /// Whether nothing happened.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// The events.
    #[inline]
    pub fn as_slice(&self) -> &[Event] {
        &self.list
    }

    /// The events, one by one.
    #[inline]
    pub fn iter(&self) -> std::slice::Iter<'_, Event> {
        self.list.iter()
    }

    /// The bytes that came with the event at `index`: of a waiter that receives by itself, and of no
    /// other. None at all is the end, or an error.
    ///
    /// # Panics
    /// When there is no such event.
    pub fn received(&self, index: usize) -> &[u8] {
        assert!(index < self.list.len(), "an event that there is");
        let Some(end) = self.ends.get(index) else { return &[] };
        let start = if index == 0 { 0 } else { self.ends[index - 1] };
        &self.received[start..*end]
    }

    /// Removes all events.
    #[inline]
    pub fn clear(&mut self) {
        self.list.clear();
        self.received.clear();
        self.ends.clear();
    }

    /// How many more there is room for.
    #[inline]
    pub(crate) fn room(&self) -> usize {
        self.capacity - self.list.len()
    }

    /// The caller has seen to it that there is room.
    #[inline]
    pub(crate) fn push(&mut self, token: u64, ready: Ready) {
        debug_assert!(self.room() > 0, "room for an event");
        self.list.push(Event { token, ready });
    }

    /// Adds to the event at `index`.
    #[inline]
    pub(crate) fn add_to(&mut self, index: usize, ready: Ready) {
        self.list[index].ready |= ready;
    }

    /// An event that is these bytes.
    #[inline]
    pub(crate) fn push_received(&mut self, token: u64, bytes: &[u8]) {
        self.received.extend_from_slice(bytes);
        self.push_received_nothing(token, Ready::READABLE);
    }

    /// An event of a waiter that receives, without bytes of its own.
    #[inline]
    pub(crate) fn push_received_nothing(&mut self, token: u64, ready: Ready) {
        self.push(token, ready);
        self.ends.push(self.received.len());
    }

    /// All events of a wait at once.
    #[inline]
    pub(crate) fn fill(&mut self, events: impl ExactSizeIterator<Item = Event>) {
        debug_assert!(events.len() <= self.room(), "room for the events");
        self.list.extend(events);
    }
}

impl<'a> IntoIterator for &'a Events {
    type Item = &'a Event;
    type IntoIter = std::slice::Iter<'a, Event>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}
