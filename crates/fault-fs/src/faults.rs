//! The faults to inject, and how often each has occurred.

use std::cell::Cell;

use rustix::io::Errno;

/// The operations that a test can make fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operation {
    /// Reading the byte at this offset, or a later one: requests that reach it fail completely.
    Read(u64),
    /// Writing the byte at this offset, or a later one; also allocating it with fallocate(2).
    Write(u64),
    /// fsync(2) and fdatasync(2).
    Fsync,
    /// close(2) of any descriptor of the file.
    Close,
    /// copy_file_range(2) from the byte at this offset, or a later one. Without such a fault, the file system does not
    /// support this operation, and the kernel reads and writes instead.
    CopyRange(u64),
    /// `SEEK_DATA` and `SEEK_HOLE`.
    Seek,
    /// Changing the size: ftruncate(2), or open(2) with `O_TRUNC`.
    Truncate,
    /// Creating a name: open(2) with `O_CREAT`, mkdir(2), link(2), symlink(2).
    Make,
    /// rename(2) to the name.
    Rename,
    /// The size: stat(2) returns this one, whatever the content is. A fault without an error.
    Size(u64),
    /// The number of blocks of 512 bytes: stat(2) returns this one. A fault without an error.
    Blocks(u64),
    /// The page cache: open(2) makes descriptors that read(2) does not use it for (`FOPEN_DIRECT_IO`), so that a read
    /// goes as far as the content, and not to the size. A fault without an error.
    Cache,
}

/// A fault: an operation that fails.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// The operation that fails.
    pub operation: Operation,
    /// The name of the one file on which it fails, in any directory; `None`: on every file.
    pub name: Option<String>,
    /// Whether it fails on every file except that one.
    pub elsewhere: bool,
    /// The error that the file system returns. `None`: no error and no bytes transferred, which is
    /// possible for [`Operation::Read`] and [`Operation::CopyRange`], or what the operation says.
    pub errno: Option<Errno>,
}

impl Fault {
    /// Creates a fault on the file called `name`.
    pub fn on(name: &str, operation: Operation, errno: Errno) -> Self {
        Self { operation, name: Some(name.to_owned()), elsewhere: false, errno: Some(errno) }
    }

    /// Creates a fault on every file, including files without a name (`O_TMPFILE`).
    pub fn everywhere(operation: Operation, errno: Errno) -> Self {
        Self { operation, name: None, elsewhere: false, errno: Some(errno) }
    }

    /// Creates a fault on every file except the one called `name`.
    pub fn elsewhere(name: &str, operation: Operation, errno: Errno) -> Self {
        Self { elsewhere: true, ..Self::on(name, operation, errno) }
    }

    /// Creates a fault on the file called `name` that transfers nothing and returns no error.
    pub fn silent(name: &str, operation: Operation) -> Self {
        Self { operation, name: Some(name.to_owned()), elsewhere: false, errno: None }
    }

    /// Returns whether it applies to the file called `name`.
    fn is_on(&self, name: &str) -> bool {
        let is_it = |meant: &String| (meant.as_str() == name) != self.elsewhere;
        self.name.as_ref().is_none_or(is_it)
    }
}

/// The faults of a file system, and how often each has occurred.
pub(crate) struct Faults<'a> {
    all: &'a [Fault],
    times: Vec<Cell<u64>>,
}

impl<'a> Faults<'a> {
    pub(crate) fn new(all: &'a [Fault]) -> Self {
        Self { all, times: all.iter().map(|_| Cell::new(0)).collect() }
    }

    pub(crate) fn times(&self, place: usize) -> Option<u64> {
        self.times.get(place).map(Cell::get)
    }

    /// Returns whether any fault is of this kind.
    pub(crate) fn any(&self, is_meant: impl Fn(Operation) -> bool) -> bool {
        self.all.iter().any(|fault| is_meant(fault.operation))
    }

    /// Returns the result of the first fault that applies to an operation on the file called
    /// `name`, and counts it.
    pub(crate) fn answer(
        &self,
        name: &str,
        is_meant: impl Fn(Operation) -> bool,
    ) -> Option<Option<Errno>> {
        let place =
            self.all.iter().position(|fault| fault.is_on(name) && is_meant(fault.operation))?;
        self.times[place].set(self.times[place].get() + 1);
        Some(self.all[place].errno)
    }

    /// Returns what the first fault that applies to the file called `name` has in place of the truth, uncounted.
    pub(crate) fn claim<T>(&self, name: &str, claim: impl Fn(Operation) -> Option<T>) -> Option<T> {
        let is_here = |fault: &&Fault| fault.is_on(name);
        self.all.iter().filter(is_here).find_map(|fault| claim(fault.operation))
    }

    /// Returns the error of an operation on the file called `name`, if a fault applies.
    pub(crate) fn check(
        &self,
        name: &str,
        is_meant: impl Fn(Operation) -> bool,
    ) -> Result<(), Errno> {
        match self.answer(name, is_meant) {
            Some(errno) => Err(errno.unwrap_or(Errno::IO)),
            None => Ok(()),
        }
    }
}
