//! Which descriptors are ports, which are sets for polling, and which are queues. Duplicates are found when they
//! are used, or when the last one that is known is closed.

use std::ops::{Deref, RangeInclusive};
use std::os::fd::{AsFd, AsRawFd, RawFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, AtomicUsize, Ordering};

use iotomy_ports::{Closes, Errno, Kqueue, PollSet, Port};
use iotomy_sys::descriptor_table::{DescriptorTable, Entry};
use iotomy_sys::same_file;

use crate::duplicates;

/// What a descriptor of the library can be.
pub(crate) trait Openable: AsFd + Send + Sync + 'static {
    /// Ends it for this process.
    fn end(&self);
}

impl Openable for Port {
    fn end(&self) {
        self.close();
    }
}

impl Openable for PollSet {
    fn end(&self) {}
}

impl Openable for Kqueue {
    fn end(&self) {
        self.close();
    }
}

/// A port, a set or a queue, and how many descriptors of this process are known to be it.
pub(crate) struct Opened<T> {
    it: T,
    descriptors: AtomicUsize,
}

impl<T> Deref for Opened<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.it
    }
}

/// The descriptors that are of one kind.
pub(crate) struct Registry<T: 'static> {
    table: DescriptorTable<Arc<Opened<T>>>,
    /// The descriptors, in places; -1 is a free place.
    places: [AtomicI32; 256],
    /// How many places have ever been used.
    used: AtomicUsize,
}

pub(crate) static PORTS: Registry<Port> = Registry::new();
pub(crate) static SETS: Registry<PollSet> = Registry::new();
pub(crate) static QUEUES: Registry<Kqueue> = Registry::new();

/// Makes a port and its descriptor.
pub(crate) fn create_port() -> Result<RawFd, Errno> {
    PORTS.open(Port::new(Closes::Reported)?, true)
}

impl<T: Openable> Registry<T> {
    const fn new() -> Self {
        Self {
            table: DescriptorTable::new(),
            places: [const { AtomicI32::new(-1) }; 256],
            used: AtomicUsize::new(0),
        }
    }

    /// Gives the caller a descriptor.
    pub(crate) fn open(&self, it: T, closes_on_exec: bool) -> Result<RawFd, Errno> {
        let fd = rustix::io::fcntl_dupfd_cloexec(it.as_fd(), 0)?;
        if !closes_on_exec {
            rustix::io::fcntl_setfd(&fd, rustix::io::FdFlags::empty())?;
        }
        let opened = Arc::new(Opened { it, descriptors: AtomicUsize::new(0) });
        let number = fd.as_raw_fd();
        if !self.enter(number, opened) {
            return Err(Errno::MFILE);
        }
        // From here on it is closed by number, as the caller knows no other name of it.
        std::mem::forget(fd);
        Ok(number)
    }

    fn enter(&self, fd: RawFd, opened: Arc<Opened<T>>) -> bool {
        let place = self.places.iter().position(|place| {
            place.compare_exchange(-1, fd, Ordering::SeqCst, Ordering::SeqCst).is_ok()
        });
        let Some(place) = place else { return false };
        self.used.fetch_max(place + 1, Ordering::SeqCst);
        opened.descriptors.fetch_add(1, Ordering::SeqCst);
        let is_entered = self.table.insert(fd, opened);
        if !is_entered {
            self.places[place].store(-1, Ordering::SeqCst);
        }
        is_entered
    }

    /// What a descriptor is, if it is known.
    pub(crate) fn known(&self, fd: RawFd) -> Option<Entry<'_, Arc<Opened<T>>>> {
        self.table.get(fd)
    }

    /// What a descriptor is: `EBADF` if it is not open, `EBADFD` if it is something else.
    pub(crate) fn find(&self, fd: RawFd) -> Result<Entry<'_, Arc<Opened<T>>>, Errno> {
        if let Some(entry) = self.known(fd) {
            return Ok(entry);
        }
        if !same_file::is_open(fd) {
            return Err(Errno::BADF);
        }
        let is_duplicate = |entry: &Entry<'_, Arc<Opened<T>>>| {
            same_file::is_same(fd, entry.as_fd().as_raw_fd()).unwrap_or(false)
        };
        let original = self.all().find(is_duplicate).ok_or(Errno::BADFD)?;
        self.enter(fd, Arc::clone(&original));
        self.known(fd).ok_or(Errno::BADFD)
    }

    /// All of them, once for each descriptor.
    pub(crate) fn all(&self) -> impl Iterator<Item = Entry<'_, Arc<Opened<T>>>> {
        self.descriptors().filter_map(|fd| self.known(fd))
    }

    /// Whether there are any, or have been.
    pub(crate) fn is_used(&self) -> bool {
        self.used.load(Ordering::Relaxed) > 0
    }

    /// Every descriptor that is known.
    pub(crate) fn descriptors(&self) -> impl Iterator<Item = RawFd> {
        let places = self.places.iter().take(self.used.load(Ordering::Relaxed));
        places.map(|place| place.load(Ordering::Relaxed)).filter(|fd| *fd >= 0)
    }

    /// Takes note that a descriptor is about to be closed, with the others of the range; with the last one of a
    /// port, a set or a queue, that ends.
    pub(crate) fn leave(&self, fd: RawFd, closing: &RangeInclusive<u32>) {
        let Some(entry) = self.known(fd) else { return };
        if entry.descriptors.load(Ordering::SeqCst) == 1
            && let Some(other) = duplicates::find(entry.as_fd().as_raw_fd(), closing)
        {
            self.enter(other, Arc::clone(&entry));
        }
        self.leave_alone(fd);
    }

    /// [`Self::leave`], and no duplicates are looked for that are not known.
    pub(crate) fn leave_alone(&self, fd: RawFd) {
        let Some(entry) = self.known(fd) else { return };
        if !self.table.remove(fd) {
            return;
        }
        let is_left = |place: &&AtomicI32| {
            place.compare_exchange(fd, -1, Ordering::SeqCst, Ordering::SeqCst).is_ok()
        };
        // Two threads that met it at once have entered it twice.
        let left = self.places.iter().filter(is_left).count();
        if entry.descriptors.fetch_sub(left, Ordering::SeqCst) == left {
            entry.end();
        }
    }
}
