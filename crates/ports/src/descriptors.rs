//! Descriptors in a port (`PORT_SOURCE_FD`): association, dissociation, and the close of a descriptor.
//!
//! The kernel's set knows descriptors by number and open file together, as Solaris does. But it
//! forgets one only when the file's last descriptor is closed; so a node has a generation, which
//! makes what the set says of closed descriptors void.

use std::ops::RangeInclusive;
use std::os::fd::{AsFd, RawFd};

use iotomy_sys::epoll::{Change, EpollEvent, epoll_ctl};
use iotomy_sys::{forks, same_file};
use rustix::event::PollFlags;
use rustix::io::Errno;

use crate::Closes;
use crate::errno::errno;
use crate::event::{Event, Source};
use crate::inside::is_inside;
use crate::port::{ONE_SHOT, Port, always_ready};
use crate::retrieve::Fate;
use crate::shared::{Field, Kind, Locked, Node, State};

/// In a node's wanted events: the descriptor is one that `epoll(7)` refuses because it is always
/// ready.
const ALWAYS_READY: u64 = 1 << 32;

impl Port {
    /// Associates a descriptor with the port (`port_associate` with `PORT_SOURCE_FD`), or changes the
    /// events and the value of its association. The events are those of poll(2); errors and hang-ups
    /// are always reported.
    ///
    /// One event is sent, at once if the descriptor is ready. When it is retrieved the association
    /// ends. An event of an earlier association that was not retrieved is void.
    ///
    /// # Errors
    /// `EBADFD` for what is no open descriptor, `EAGAIN` if the port or the user has too many, `EINVAL`
    /// for the port itself.
    pub fn associate(&self, fd: RawFd, events: PollFlags, user: usize) -> Result<(), Errno> {
        let object = usize::try_from(fd).map_err(|_| Errno::BADFD)?;
        let wanted = u32::from(events.bits());
        let me = forks::process_id();
        let locked = self.lock();
        let own = locked.descriptors(object).find(|node| locked.owner(*node) == me);
        let of_parent_or_child = || {
            let other = Self::association_of_another(&locked, object)?;
            self.is_same_as_watched(fd).then_some(other)
        };
        let (node, change) = match own.or_else(of_parent_or_child) {
            Some(node) => (node, Change::Modify),
            None => (locked.add(Kind::Fd, me, object)?, Change::Add),
        };
        locked.renew(node);
        let armed = self.arm(&locked, node, change, fd, wanted, user);
        if armed.is_err() {
            locked.remove(node);
        }
        self.bell.settle(&self.shared, &locked);
        armed
    }

    fn arm(
        &self,
        locked: &Locked<'_>,
        node: Node,
        change: Change,
        fd: RawFd,
        wanted: u32,
        user: usize,
    ) -> Result<(), Errno> {
        locked.set_state(node, State::Armed)?;
        locked.set(node, Field::User, user as u64);
        locked.set(node, Field::Wanted, u64::from(wanted));
        let event = EpollEvent { events: wanted | ONE_SHOT, data: locked.tag(node) };
        let set = |change| epoll_ctl(self.epoll.as_fd(), change, fd, event).map_err(errno);
        // What a node says of the set can be old: a number that was closed and is open again.
        let done = match (change, set(change)) {
            (Change::Modify, Err(Errno::NOENT)) => set(Change::Add),
            (Change::Add, Err(Errno::EXIST)) => set(Change::Modify),
            (_, done) => done,
        };
        match done {
            Ok(()) => Ok(()),
            Err(Errno::PERM) => {
                locked.set(node, Field::Wanted, u64::from(wanted) | ALWAYS_READY);
                let ready = wanted & u32::from(always_ready().bits());
                if ready != 0 {
                    locked.set(node, Field::Events, u64::from(ready));
                    locked.end(node, State::Queued);
                }
                Ok(())
            }
            Err(Errno::BADF) => Err(Errno::BADFD),
            Err(Errno::NOSPC) => Err(Errno::AGAIN),
            Err(Errno::LOOP) => Err(Errno::INVAL),
            Err(error) => Err(error),
        }
    }

    /// Ends the association of a descriptor (`port_dissociate` with `PORT_SOURCE_FD`). An event that
    /// was not retrieved is void.
    ///
    /// # Errors
    /// `EBADFD` for what is no open descriptor, `ENOENT` if it is not associated, `EACCES` if another
    /// process associated it.
    pub fn dissociate(&self, fd: RawFd) -> Result<(), Errno> {
        let object = usize::try_from(fd).map_err(|_| Errno::BADFD)?;
        let me = forks::process_id();
        let locked = self.lock();
        let is_live = |node: &Node| locked.state(*node) != State::Spent;
        let own = locked.descriptors(object).find(|node| locked.owner(*node) == me);
        if let Some(node) = own {
            let was_live = is_live(&node);
            let is_always_ready = locked.get(node, Field::Wanted) & ALWAYS_READY != 0;
            let removed = self.remove_from_set(fd);
            locked.remove(node);
            self.bell.settle(&self.shared, &locked);
            return match removed {
                Err(Errno::BADF) => Err(Errno::BADFD),
                Err(Errno::PERM) if is_always_ready && was_live => Ok(()),
                Ok(()) if was_live => Ok(()),
                _ => Err(Errno::NOENT),
            };
        }
        let is_others = || Self::association_of_another(&locked, object).is_some();
        match same_file::is_open(fd) {
            false => Err(Errno::BADFD),
            true if is_others() && self.is_same_as_watched(fd) => Err(Errno::ACCESS),
            true => Err(Errno::NOENT),
        }
    }

    /// Ends what the port knows of a descriptor that the caller is about to close. Without it, a
    /// duplicate would keep the association alive; see [`Closes`].
    pub fn forget(&self, fd: RawFd) {
        let Ok(object) = usize::try_from(fd) else { return };
        if self.shared.has_descriptor(object) {
            let fd = fd.cast_unsigned();
            self.forget_range(fd, fd);
        }
    }

    /// [`Self::forget`] for all descriptors of a range, both ends included.
    pub fn forget_range(&self, first: u32, last: u32) {
        if is_inside() {
            self.noted.note(first..=last, &[&self.epoll]);
            return;
        }
        let locked = self.lock();
        self.forget_own(&locked, first..=last);
        self.bell.settle(&self.shared, &locked);
    }

    /// Ends the associations of this process' descriptors of a range.
    pub(crate) fn forget_own(&self, locked: &Locked<'_>, fds: RangeInclusive<u32>) {
        let me = forks::process_id();
        if fds.start() == fds.end() {
            let mut known = locked.descriptors(*fds.start() as usize);
            if let Some(node) = known.find(|node| locked.owner(*node) == me) {
                self.forget_node(locked, node);
            }
            return;
        }
        for node in locked.objects() {
            let is_own = locked.kind(node) == Kind::Fd && locked.owner(node) == me;
            let object = locked.get(node, Field::Object);
            let is_in_range = u32::try_from(object).is_ok_and(|fd| fds.contains(&fd));
            if is_own && is_in_range && locked.state(node) != State::Free {
                self.forget_node(locked, node);
            }
        }
    }

    pub(crate) fn forget_node(&self, locked: &Locked<'_>, node: Node) {
        let fd = locked.get(node, Field::Object) as RawFd;
        // Whatever the set says: a file that it never took, or one that is closed already.
        let _ = self.remove_from_set(fd);
        locked.remove(node);
    }

    /// The association of a descriptor's number by another process that lives. What a dead one associated
    /// has ended with it.
    fn association_of_another(locked: &Locked<'_>, object: usize) -> Option<Node> {
        let me = forks::process_id();
        locked.descriptors(object).find(|node| {
            let is_live = locked.state(*node) != State::Spent;
            is_live && locked.owner(*node) != me && forks::is_alive(locked.owner(*node))
        })
    }

    fn remove_from_set(&self, fd: RawFd) -> Result<(), Errno> {
        let none = EpollEvent::default();
        epoll_ctl(self.epoll.as_fd(), Change::Remove, fd, none).map_err(errno)
    }

    /// Whether a descriptor is the open file that was associated by its number. Where that cannot be
    /// asked, an open descriptor is taken for it.
    fn is_same_as_watched(&self, fd: RawFd) -> bool {
        match same_file::is_watched(self.epoll.as_fd(), fd) {
            Ok(is_same) => is_same,
            Err(error) => errno(error) != Errno::BADF && same_file::is_open(fd),
        }
    }

    /// Whether this process may retrieve the event of a descriptor that another one associated: it has
    /// the same file by the same number.
    pub(crate) fn is_shared_descriptor(&self, locked: &Locked<'_>, node: Node) -> bool {
        let is_always_ready = locked.get(node, Field::Wanted) & ALWAYS_READY != 0;
        !is_always_ready && self.is_same_as_watched(locked.object(node) as RawFd)
    }

    /// Delivers the event of a descriptor, which ends its association.
    pub(crate) fn deliver_descriptor(&self, locked: &Locked<'_>, node: Node) -> Fate {
        let fd = locked.get(node, Field::Object) as RawFd;
        let is_always_ready = locked.get(node, Field::Wanted) & ALWAYS_READY != 0;
        if locked.owner(node) == forks::process_id() {
            let is_checked = self.closes == Closes::Checked;
            let is_gone = match is_always_ready {
                true => is_checked && !same_file::is_open(fd),
                false => is_checked && !self.is_same_as_watched(fd),
            };
            if is_gone {
                locked.remove(node);
                return Fate::Void;
            }
        } else if !forks::is_alive(locked.owner(node)) {
            locked.remove(node);
            return Fate::Void;
        } else if !self.is_shared_descriptor(locked, node) {
            return Fate::OfAnotherProcess;
        }
        let events = (locked.get(node, Field::Events) as u32).cast_signed();
        let user = locked.get(node, Field::User) as usize;
        // Kept, without a claim on room: it says that the set knows the descriptor.
        locked.end(node, State::Spent);
        Fate::Delivered(Event::new(Source::Fd, events, fd as usize, user))
    }
}
