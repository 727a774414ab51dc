//! The state of a port, in memory that a process shares with its children: objects, their events in
//! the order in which they came, and the alert.
//!
//! An object or event is a node of eight words. The lower half of the nodes are objects
//! (descriptors, timers, files), which are found and changed under the lock; the upper half are
//! events that a thread sent, which come without it: `port_send(3C)` may be called in a handler of a
//! signal that interrupted a holder of the lock.
//!
//! The tricky invariant is of the sent events. A sender takes a free node, fills it and pushes it
//! onto a stack; a receiver, with the lock, takes the whole stack and turns it round into the queue.
//! A sender that is killed in between loses its node and stops nobody. What a holder of the lock
//! leaves behind that is killed is put in order by the next one (`repair`).

mod repair;

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};

use iotomy_sys::board::Board;
use iotomy_sys::forks;
use iotomy_sys::shared_lock::{SharedGuard, SharedLock};
use rustix::io::Errno;

use crate::inside::Inside;

/// How many objects and events a port can have, as Solaris' `process.max-port-events` by default.
pub(crate) const LIMIT: u64 = 65_536;

const OBJECTS: u64 = LIMIT;
const BUCKETS: u64 = 65_536;

/// The words of the header, each on a line of its own where several CPUs change them.
mod header {
    pub(super) const FREE_SENT: usize = 0;
    pub(super) const FRESH_SENT: usize = 1;
    pub(super) const ARRIVED: usize = 8;
    pub(super) const TAKEN: usize = 16;
    pub(super) const LIVE: usize = 17;
    pub(super) const FIRST: usize = 24;
    pub(super) const LAST: usize = 25;
    pub(super) const FREE_OBJECT: usize = 26;
    pub(super) const FRESH_OBJECT: usize = 27;
    pub(super) const ALERT: usize = 32;
    pub(super) const ALERT_EVENTS: usize = 33;
    pub(super) const ALERT_USER: usize = 34;
    pub(super) const ALERTS: usize = 35;
    pub(super) const ALERTED: usize = 36;
    pub(super) const SLEEPERS: usize = 37;
    pub(super) const RUNG: usize = 40;
    pub(super) const LENGTH: usize = 64;
}
use header::*;

const NODE: usize = 8;
const FIRST_NODE: usize = LENGTH + BUCKETS as usize;

/// A field of a node.
#[derive(Debug, Clone, Copy)]
#[repr(usize)]
pub(crate) enum Field {
    /// The next node of the queue or of a list of free ones, plus 1.
    Next = 0,
    /// Generation, whether it is in the queue, and state.
    State = 1,
    Object = 2,
    User = 3,
    /// The events that happened.
    Events = 4,
    /// The events that are wanted, and flags of the source.
    Wanted = 5,
    /// The process that made it, and the kind.
    Owner = 6,
    /// The next object of the bucket, plus 1.
    Chain = 7,
}

/// A node's number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Node(pub(crate) u32);

/// What a node is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub(crate) enum Kind {
    User = 0,
    Fd = 1,
    Timer = 2,
    File = 3,
    /// The process' descriptor for changes of files.
    Changes = 4,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum State {
    Free = 0,
    /// Associated, and nothing happened yet.
    Armed = 1,
    /// Its event is in the queue.
    Queued = 2,
    /// A descriptor whose event was retrieved; the kernel's set still knows it.
    Spent = 3,
    /// A sent event that no receiver has seen.
    Sent = 4,
}

const LINKED: u64 = 1 << 8;

/// The state of a port.
#[derive(Debug)]
pub(crate) struct Shared {
    board: Board,
    lock: SharedLock,
}

impl Shared {
    pub(crate) fn new() -> io::Result<Self> {
        let words = FIRST_NODE + NODE * (OBJECTS + LIMIT) as usize;
        Ok(Self { board: Board::new(words)?, lock: SharedLock::new()? })
    }

    fn head(&self, word: usize) -> &AtomicU64 {
        &self.board.words()[word]
    }

    fn field(&self, node: Node, field: Field) -> &AtomicU64 {
        &self.board.words()[FIRST_NODE + NODE * node.0 as usize + field as usize]
    }

    pub(crate) fn lock(&self) -> Locked<'_> {
        let inside = Inside::enter();
        let guard = self.lock.lock();
        let is_repaired = guard.is_inherited();
        let locked = Locked { _guard: guard, shared: self, is_repaired, _inside: inside };
        if is_repaired {
            locked.repair();
        }
        locked
    }

    /// Queues an event that a thread sends. Safe in handlers of signals.
    pub(crate) fn send(&self, events: i32, user: usize) -> Result<(), Errno> {
        let node = self.pop_sent().ok_or(Errno::AGAIN)?;
        let put = |field, value| self.field(node, field).store(value, Ordering::Relaxed);
        put(Field::Object, 0);
        put(Field::User, user as u64);
        put(Field::Events, u64::from(events.cast_unsigned()));
        put(Field::Owner, u64::from(Kind::User as u32) << 32);
        put(Field::State, State::Sent as u64);
        let arrived = self.head(ARRIVED);
        let mut top = arrived.load(Ordering::Relaxed);
        loop {
            put(Field::Next, top);
            let this = u64::from(node.0) + 1;
            match arrived.compare_exchange_weak(top, this, Ordering::SeqCst, Ordering::Relaxed) {
                Ok(_) => return Ok(()),
                Err(other) => top = other,
            }
        }
    }

    fn pop_sent(&self) -> Option<Node> {
        let free = self.head(FREE_SENT);
        let mut top = free.load(Ordering::Acquire);
        while let Some(number) = (top & 0xffff_ffff).checked_sub(1) {
            let node = Node(number as u32);
            let next = self.field(node, Field::Next).load(Ordering::Relaxed);
            // The upper half counts the changes: a node that was taken and put back meanwhile shows.
            let new = ((top >> 32).wrapping_add(1) << 32) | next;
            match free.compare_exchange_weak(top, new, Ordering::Acquire, Ordering::Acquire) {
                Ok(_) => return Some(node),
                Err(other) => top = other,
            }
        }
        let more = |fresh| (fresh < LIMIT).then_some(fresh + 1);
        let fresh = self.head(FRESH_SENT);
        let fresh = fresh.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).ok()?;
        Some(Node((OBJECTS + fresh) as u32))
    }

    fn push_sent(&self, node: Node) {
        let free = self.head(FREE_SENT);
        let mut top = free.load(Ordering::Relaxed);
        loop {
            self.field(node, Field::Next).store(top & 0xffff_ffff, Ordering::Relaxed);
            let new = ((top >> 32).wrapping_add(1) << 32) | (u64::from(node.0) + 1);
            match free.compare_exchange_weak(top, new, Ordering::Release, Ordering::Relaxed) {
                Ok(_) => return,
                Err(other) => top = other,
            }
        }
    }

    /// Whether the bell is rung, which is so from now on.
    pub(crate) fn swap_rung(&self, rung: bool) -> bool {
        self.head(RUNG).swap(rung.into(), Ordering::SeqCst) != 0
    }

    pub(crate) fn is_rung(&self) -> bool {
        self.head(RUNG).load(Ordering::SeqCst) != 0
    }

    /// Whether events came that no receiver has seen yet.
    pub(crate) fn has_arrivals(&self) -> bool {
        self.head(ARRIVED).load(Ordering::SeqCst) != 0
    }

    /// How often the port went into alert mode, or was told other values in it.
    pub(crate) fn alerts(&self) -> u64 {
        self.head(ALERTS).load(Ordering::SeqCst)
    }

    /// Whether a descriptor may be known; no lock is needed to ask.
    pub(crate) fn has_descriptor(&self, fd: usize) -> bool {
        self.head(bucket(fd)).load(Ordering::Relaxed) != 0
    }

    /// A thread goes to sleep.
    pub(crate) fn fall_asleep(&self) {
        self.head(SLEEPERS).fetch_add(1, Ordering::SeqCst);
    }

    /// A thread is awake again.
    pub(crate) fn wake_up(&self) {
        self.head(SLEEPERS).fetch_sub(1, Ordering::SeqCst);
    }
}

/// The state, with its lock held, which is released before the thread is outside.
pub(crate) struct Locked<'s> {
    shared: &'s Shared,
    _guard: SharedGuard<'s>,
    /// Whether the one who held the lock before was killed with it.
    pub(crate) is_repaired: bool,
    _inside: Inside,
}

impl Locked<'_> {
    fn head(&self, word: usize) -> u64 {
        self.shared.head(word).load(Ordering::Relaxed)
    }

    fn set_head(&self, word: usize, value: u64) {
        self.shared.head(word).store(value, Ordering::Relaxed);
    }

    pub(crate) fn get(&self, node: Node, field: Field) -> u64 {
        self.shared.field(node, field).load(Ordering::Relaxed)
    }

    pub(crate) fn set(&self, node: Node, field: Field, value: u64) {
        self.shared.field(node, field).store(value, Ordering::Relaxed);
    }

    pub(crate) fn state(&self, node: Node) -> State {
        match self.get(node, Field::State) as u8 {
            1 => State::Armed,
            2 => State::Queued,
            3 => State::Spent,
            4 => State::Sent,
            _ => State::Free,
        }
    }

    pub(crate) fn kind(&self, node: Node) -> Kind {
        match self.get(node, Field::Owner) >> 32 {
            1 => Kind::Fd,
            2 => Kind::Timer,
            3 => Kind::File,
            4 => Kind::Changes,
            _ => Kind::User,
        }
    }

    /// The process that made it, 0 for events of no process.
    pub(crate) fn owner(&self, node: Node) -> u32 {
        self.get(node, Field::Owner) as u32
    }

    fn is_linked(&self, node: Node) -> bool {
        self.get(node, Field::State) & LINKED != 0
    }

    /// What the kernel's set keeps of a node: number and generation.
    pub(crate) fn tag(&self, node: Node) -> u64 {
        (self.get(node, Field::State) & !0xffff_ffff) | u64::from(node.0)
    }

    /// The node of a tag, unless it has been changed since the tag was made, or has fired.
    pub(crate) fn armed(&self, tag: u64) -> Option<Node> {
        let node = Node(tag as u32);
        let is_object = u64::from(node.0) < OBJECTS;
        (is_object && self.tag(node) == tag && self.state(node) == State::Armed).then_some(node)
    }

    /// Changes the state, keeps the count, and puts a node that is queued into the queue.
    pub(crate) fn set_state(&self, node: Node, state: State) -> Result<(), Errno> {
        let (old, is_live) =
            (self.state(node), |state| matches!(state, State::Armed | State::Queued));
        match (is_live(old), is_live(state)) {
            (false, true) if self.head(LIVE) == LIMIT => return Err(Errno::AGAIN),
            (false, true) => self.set_head(LIVE, self.head(LIVE) + 1),
            (true, false) => self.set_head(LIVE, self.head(LIVE) - 1),
            _ => {}
        }
        let rest = self.get(node, Field::State) & !0xff;
        self.set(node, Field::State, rest | state as u64);
        if state == State::Queued && !self.is_linked(node) {
            self.set(node, Field::State, rest | LINKED | state as u64);
            self.append(node);
        }
        Ok(())
    }

    /// A state that makes no further claim on room, so that nothing can fail.
    pub(crate) fn end(&self, node: Node, state: State) {
        debug_assert!(matches!(state, State::Free | State::Spent | State::Queued));
        let done = self.set_state(node, state);
        debug_assert!(done.is_ok());
    }

    /// Makes the tags that the kernel has of a node void.
    pub(crate) fn renew(&self, node: Node) {
        let old = self.get(node, Field::State);
        self.set(node, Field::State, old.wrapping_add(1 << 32));
    }

    fn append(&self, node: Node) {
        self.set(node, Field::Next, 0);
        let this = u64::from(node.0) + 1;
        match number(self.head(LAST)) {
            Some(last) => self.set(last, Field::Next, this),
            None => self.set_head(FIRST, this),
        }
        self.set_head(LAST, this);
    }

    /// Moves what was sent into the queue.
    pub(crate) fn absorb(&self) {
        let arrived = self.shared.head(ARRIVED);
        let mut top = arrived.load(Ordering::SeqCst);
        while top != 0 {
            // Noted first: whoever is killed now leaves a trace of what it took.
            self.set_head(TAKEN, top);
            match arrived.compare_exchange(top, 0, Ordering::SeqCst, Ordering::SeqCst) {
                Ok(_) => break,
                Err(other) => top = other,
            }
        }
        self.append_taken(top);
    }

    /// Appends a stack of sent events, the lowest first. The stack's own links stay as they are above
    /// those that have been appended.
    fn append_taken(&self, top: u64) {
        let (mut next, mut above) = (top, 0);
        while let Some(node) = number(next).filter(|node| self.state(*node) == State::Sent) {
            self.set(node, Field::Chain, above);
            above = next;
            next = self.get(node, Field::Next);
        }
        while let Some(node) = number(above) {
            above = self.get(node, Field::Chain);
            self.set(node, Field::State, LINKED | State::Queued as u64);
            self.append(node);
        }
        self.set_head(TAKEN, 0);
    }

    /// How many events are queued.
    pub(crate) fn queued(&self) -> usize {
        let (mut before, mut count) = (None, 0);
        while let Some(node) = self.next_queued(before) {
            count += 1;
            before = Some(node);
        }
        count
    }

    /// The first node of the queue that is still to be retrieved, with the one before it. Nodes whose
    /// event has become void are taken out on the way.
    pub(crate) fn next_queued(&self, before: Option<Node>) -> Option<Node> {
        loop {
            let next = before.map_or(self.head(FIRST), |before| self.get(before, Field::Next));
            let node = number(next)?;
            if self.state(node) == State::Queued {
                return Some(node);
            }
            self.unlink(before, node);
        }
    }

    /// Takes a node out of the queue, and frees it if nothing else holds it.
    pub(crate) fn unlink(&self, before: Option<Node>, node: Node) {
        let next = self.get(node, Field::Next);
        match before {
            Some(before) => self.set(before, Field::Next, next),
            None => self.set_head(FIRST, next),
        }
        if next == 0 {
            self.set_head(LAST, before.map_or(0, |before| u64::from(before.0) + 1));
        }
        let state = self.get(node, Field::State) & !LINKED;
        self.set(node, Field::State, state);
        if u64::from(node.0) >= OBJECTS {
            self.set(node, Field::State, State::Free as u64);
            self.shared.push_sent(node);
        } else if self.state(node) == State::Free {
            self.push_object(node);
        }
    }

    fn push_object(&self, node: Node) {
        self.set(node, Field::Next, self.head(FREE_OBJECT));
        self.set_head(FREE_OBJECT, u64::from(node.0) + 1);
    }

    /// A node for an object of this process, without state.
    pub(crate) fn add(&self, kind: Kind, owner: u32, object: usize) -> Result<Node, Errno> {
        if self.head(FREE_OBJECT) == 0 && self.head(FRESH_OBJECT) == OBJECTS {
            self.sweep();
        }
        let node = if let Some(node) = number(self.head(FREE_OBJECT)) {
            self.set_head(FREE_OBJECT, self.get(node, Field::Next));
            node
        } else if self.head(FRESH_OBJECT) < OBJECTS {
            let fresh = self.head(FRESH_OBJECT);
            self.set_head(FRESH_OBJECT, fresh + 1);
            Node(fresh as u32)
        } else {
            return Err(Errno::AGAIN);
        };
        self.set(node, Field::Object, object as u64);
        self.set(node, Field::Owner, u64::from(kind as u32) << 32 | u64::from(owner));
        if kind == Kind::Fd {
            let bucket = bucket(object);
            self.set(node, Field::Chain, self.head(bucket));
            self.set_head(bucket, u64::from(node.0) + 1);
        }
        Ok(node)
    }

    /// Gives an object's node back.
    pub(crate) fn remove(&self, node: Node) {
        self.renew(node);
        self.end(node, State::Free);
        if self.kind(node) == Kind::Fd {
            let object = self.get(node, Field::Object) as usize;
            let mut before = None;
            for other in self.bucket_nodes(object) {
                if other == node {
                    let next = self.get(node, Field::Chain);
                    match before {
                        Some(before) => self.set(before, Field::Chain, next),
                        None => self.set_head(bucket(object), next),
                    }
                    break;
                }
                before = Some(other);
            }
        }
        if !self.is_linked(node) {
            self.push_object(node);
        }
    }

    /// Frees the descriptors that are no longer associated, and objects of processes that are gone.
    fn sweep(&self) {
        let (mut known, mut is_alive) = (0, false);
        for node in self.objects().filter(|node| self.state(*node) != State::Free) {
            if self.owner(node) != known {
                known = self.owner(node);
                is_alive = forks::is_alive(known);
            }
            if self.state(node) == State::Spent || !is_alive {
                self.remove(node);
            }
        }
    }

    /// Every object that there ever was.
    pub(crate) fn objects(&self) -> impl Iterator<Item = Node> + Clone + use<> {
        (0..self.head(FRESH_OBJECT) as u32).map(Node)
    }

    fn bucket_nodes(&self, object: usize) -> impl Iterator<Item = Node> + '_ {
        let mut next = self.head(bucket(object));
        std::iter::from_fn(move || {
            let node = number(next)?;
            next = self.get(node, Field::Chain);
            Some(node)
        })
    }

    /// The nodes of a descriptor's number: of several processes, there may be several.
    pub(crate) fn descriptors(&self, fd: usize) -> impl Iterator<Item = Node> + '_ {
        self.bucket_nodes(fd).filter(move |node| self.get(*node, Field::Object) == fd as u64)
    }

    /// The values of the alert, in alert mode.
    pub(crate) fn alert(&self) -> Option<(i32, usize)> {
        (self.head(ALERT) != 0).then(|| self.last_alert())
    }

    pub(crate) fn last_alert(&self) -> (i32, usize) {
        ((self.head(ALERT_EVENTS) as u32).cast_signed(), self.head(ALERT_USER) as usize)
    }

    /// Enters alert mode; every thread that sleeps is to return with these values.
    pub(crate) fn set_alert(&self, events: i32, user: usize) {
        self.set_head(ALERT_EVENTS, u64::from(events.cast_unsigned()));
        self.set_head(ALERT_USER, user as u64);
        self.set_head(ALERT, 1);
        self.set_head(ALERTED, self.shared.head(SLEEPERS).load(Ordering::SeqCst));
        self.shared.head(ALERTS).fetch_add(1, Ordering::SeqCst);
    }

    pub(crate) fn clear_alert(&self) {
        self.set_head(ALERT, 0);
    }

    /// Threads that slept when the alert came and have not returned with it.
    pub(crate) fn alerted(&self) -> u64 {
        self.head(ALERTED)
    }

    pub(crate) fn set_alerted(&self, threads: u64) {
        self.set_head(ALERTED, threads);
    }

    /// Whether nothing is in the queue or on its way there.
    pub(crate) fn is_empty(&self) -> bool {
        self.next_queued(None).is_none() && !self.shared.has_arrivals()
    }

    /// The descriptor, timer or file of a node.
    pub(crate) fn object(&self, node: Node) -> usize {
        self.get(node, Field::Object) as usize
    }
}

/// The node of a link, which is 0 for none.
fn number(link: u64) -> Option<Node> {
    link.checked_sub(1).map(|number| Node(number as u32))
}

/// The word of the header that leads to the nodes of a descriptor.
fn bucket(fd: usize) -> usize {
    LENGTH + fd % BUCKETS as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn descriptors_that_are_no_longer_associated_make_room_for_others() {
        let shared = Shared::new().unwrap();
        let locked = shared.lock();
        let me = forks::process_id();
        for fd in 0..LIMIT as usize {
            let node = locked.add(Kind::Fd, me, fd).unwrap();
            locked.set_state(node, State::Armed).unwrap();
            locked.end(node, if fd % 2 == 0 { State::Spent } else { State::Queued });
        }
        // Two of one bucket.
        let node = locked.add(Kind::Fd, me, LIMIT as usize + 1).unwrap();
        locked.set_state(node, State::Armed).unwrap();
        assert!(locked.descriptors(1).count() == 1 && locked.descriptors(2).count() == 0);
        assert!(locked.descriptors(LIMIT as usize + 1).eq([node]));
        locked.remove(locked.descriptors(1).next().unwrap());
        assert_eq!(locked.descriptors(1).count(), 0);
        assert!(locked.descriptors(LIMIT as usize + 1).eq([node]));
        assert_eq!(locked.queued() as u64, LIMIT / 2 - 1);
    }

    #[test]
    fn what_was_sent_while_the_lock_is_held_comes_in_order() {
        let shared = Shared::new().unwrap();
        let locked = shared.lock();
        (0..3).for_each(|user| shared.send(1, user).unwrap());
        locked.absorb();
        (3..6).for_each(|user| shared.send(1, user).unwrap());
        locked.absorb();
        for user in 0..6 {
            let node = locked.next_queued(None).unwrap();
            assert_eq!(locked.get(node, Field::User), user);
            locked.unlink(None, node);
        }
        assert!(locked.is_empty() && locked.queued() == 0);
    }
}
