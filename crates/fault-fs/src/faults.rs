//! The faults to inject, and how often each has occurred.

use std::cell::Cell;

use rustix::io::Errno;

/// The operations that a test can make fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operation {
    /// Reading the byte at this offset, or one behind it: requests that reach it fail as a whole.
    Read(u64),
    /// Writing the byte at this offset, or one behind it; giving room to it by fallocate(2), too.
    Write(u64),
    /// fsync(2) and fdatasync(2).
    Fsync,
    /// close(2), of any descriptor of the file.
    Close,
    /// copy_file_range(2) from the byte at this offset, or one behind it. Where it is not told to fail, the
    /// file system has no such operation, and the kernel reads and writes in its place.
    CopyRange(u64),
    /// `SEEK_DATA` and `SEEK_HOLE`.
    Seek,
    /// Changing the size: ftruncate(2), or open(2) with `O_TRUNC`.
    Truncate,
    /// Making a name: open(2) with `O_CREAT`, mkdir(2), link(2), symlink(2).
    Make,
    /// rename(2) to the name.
    Rename,
}

/// An operation that fails.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// The operation that fails.
    pub operation: Operation,
    /// The name of the one file it fails on, in whatever folder; `None`: on every file.
    pub name: Option<String>,
    /// Whether it fails on every file but that one.
    pub elsewhere: bool,
    /// The error that the file system returns; `None`: no error and no bytes moved, which is
    /// possible for [`Operation::Read`] and [`Operation::CopyRange`].
    pub errno: Option<Errno>,
}

impl Fault {
    /// An operation that fails on the file called `name`.
    pub fn on(name: &str, operation: Operation, errno: Errno) -> Self {
        Self { operation, name: Some(name.to_owned()), elsewhere: false, errno: Some(errno) }
    }

    /// An operation that fails on every file, also on one without a name (`O_TMPFILE`).
    pub fn everywhere(operation: Operation, errno: Errno) -> Self {
        Self { operation, name: None, elsewhere: false, errno: Some(errno) }
    }

    /// An operation that fails on every file but the one called `name`.
    pub fn elsewhere(name: &str, operation: Operation, errno: Errno) -> Self {
        Self { elsewhere: true, ..Self::on(name, operation, errno) }
    }

    /// An operation on the file called `name` that moves nothing, without an error.
    pub fn silent(name: &str, operation: Operation) -> Self {
        Self { operation, name: Some(name.to_owned()), elsewhere: false, errno: None }
    }
}

/// The faults of a file system, and how often each has happened.
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

    /// Whether any fault is of the kind.
    pub(crate) fn any(&self, is_meant: impl Fn(Operation) -> bool) -> bool {
        self.all.iter().any(|fault| is_meant(fault.operation))
    }

    /// The answer of the first fault that applies to an operation on the file called `name`.
    pub(crate) fn answer(
        &self,
        name: &str,
        is_meant: impl Fn(Operation) -> bool,
    ) -> Option<Option<Errno>> {
        let is_here = |fault: &Fault| {
            let is_it = |meant: &String| (meant.as_str() == name) != fault.elsewhere;
            fault.name.as_ref().is_none_or(is_it)
        };
        let place =
            self.all.iter().position(|fault| is_here(fault) && is_meant(fault.operation))?;
        self.times[place].set(self.times[place].get() + 1);
        Some(self.all[place].errno)
    }

    /// The error of an operation on the file called `name`, if it is to fail.
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
