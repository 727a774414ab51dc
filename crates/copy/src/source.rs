//! The end bytes come from: opening it, and leaving out its beginning.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::sync::atomic::AtomicU64;

use iotomy_host::file_systems;
use iotomy_movers::{End, Job, Kind, chooser};
use iotomy_record::path_text;
use iotomy_sys::close::close;
use rustix::fs::{Mode, OFlags, SeekFrom, Stat, fcntl_getfl, fstat, fstatfs, open, seek, tell};
use rustix::io::{Errno, pread, retry_on_intr};

use crate::CopyError;
use crate::error::{Result, is_folder, open_at_start, unreadable};
use crate::names::is_standard_input;

/// The magic numbers of file systems, by device: thousands of files need one lookup.
#[derive(Debug, Default)]
pub(crate) struct FileSystems(Vec<(u64, u64)>);

impl FileSystems {
    /// The magic number of the file system `fd` is on, 0 when unknown.
    pub(crate) fn magic(&mut self, fd: BorrowedFd<'_>, stat: &Stat) -> u64 {
        if let Some((_, magic)) = self.0.iter().find(|(device, _)| *device == stat.st_dev) {
            return *magic;
        }
        let magic = fstatfs(fd).map_or(0, |found| file_systems::magic(found.f_type));
        self.0.push((stat.st_dev, magic));
        magic
    }
}

/// A source, open for reading.
pub(crate) struct Source {
    hold: Hold,
    /// The result of fstat(2) when it was opened.
    pub(crate) stat: Stat,
    flags: OFlags,
    magic: u64,
    /// Its name in messages.
    pub(crate) name: String,
}

enum Hold {
    Standard(BorrowedFd<'static>),
    Own(OwnedFd),
}

impl Source {
    /// Opens it; opening a FIFO waits for its writer.
    ///
    /// # Errors
    /// When it cannot be read, or is a directory.
    pub(crate) fn open(path: &Path, systems: &mut FileSystems) -> Result<Self> {
        let (hold, name) = if is_standard_input(path) {
            let fd = rustix::stdio::stdin();
            let name = "standard input".to_owned();
            open_at_start(fd).map_err(|e| unreadable(&name, e))?;
            (Hold::Standard(fd), name)
        } else {
            let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOCTTY;
            let name = path_text(path);
            let fd = retry_on_intr(|| open(path, flags, Mode::empty()))
                .map_err(|e| unreadable(&name, e))?;
            (Hold::Own(fd), name)
        };
        let fd = hold.as_fd();
        let stat = fstat(fd).map_err(|e| unreadable(&name, e))?;
        let flags = match &hold {
            Hold::Own(_) => OFlags::RDONLY,
            Hold::Standard(fd) => fcntl_getfl(fd).map_err(|e| unreadable(&name, e))?,
        };
        let magic = systems.magic(fd, &stat);
        let source = Self { hold, stat, flags, magic, name };
        if source.end().kind() == Kind::Directory {
            return is_folder(&source.name);
        }
        Ok(source)
    }

    /// The end that movers see.
    pub(crate) fn end(&self) -> End<'_> {
        End::known(self.fd(), &self.stat, self.flags, self.magic)
    }

    /// Closes it. Standard input is left open for its owner.
    ///
    /// # Errors
    /// Its name, and the kernel's error.
    pub(crate) fn close(self) -> Result<(), (String, io::Error)> {
        match self.hold {
            Hold::Own(fd) => close(fd).map_err(|error| (self.name, error)),
            Hold::Standard(_) => Ok(()),
        }
    }

    /// The descriptor.
    pub(crate) fn fd(&self) -> BorrowedFd<'_> {
        self.hold.as_fd()
    }

    /// How many bytes it has, where that is known: from here on of standard input, else all.
    pub(crate) fn left(&self) -> Option<u64> {
        if !self.end().has_true_size() {
            return None;
        }
        let at = match self.hold {
            Hold::Own(_) => 0,
            Hold::Standard(fd) => tell(fd).ok()?,
        };
        Some(self.end().size().saturating_sub(at))
    }

    /// Leaves out as many of `bytes` as there are; returns how many that was.
    ///
    /// # Errors
    /// It cannot be sought in or read.
    pub(crate) fn skip(&self, bytes: u64) -> Result<u64> {
        if bytes == 0 {
            return Ok(0);
        }
        let cannot = |e: Errno| CopyError::failed(format!("seek in {}", self.name), e);
        let end = self.end();
        let at = || tell(self.fd()).map_err(cannot);
        let sure = match end.kind() {
            Kind::Regular if end.has_true_size() => {
                let at = at()?;
                let sure = bytes.min(end.size().saturating_sub(at));
                // Only reading shows whether a file is as long as it claims.
                if self.gives(at + sure) { sure } else { 0 }
            }
            Kind::Block => {
                let at = at()?;
                let size = seek(self.fd(), SeekFrom::End(0)).map_err(cannot)?;
                seek(self.fd(), SeekFrom::Start(at)).map_err(cannot)?;
                bytes.min(size.saturating_sub(at))
            }
            _ => return self.drop_bytes(bytes),
        };
        seek(self.fd(), SeekFrom::Current(sure.cast_signed())).map_err(cannot)?;
        match bytes - sure {
            // And whether it is longer.
            rest @ 1.. if end.kind() == Kind::Regular => Ok(sure + self.drop_bytes(rest)?),
            _ => Ok(sure),
        }
    }

    /// Whether the byte in front of offset `end` is there, or reading it fails, which shows later.
    fn gives(&self, end: u64) -> bool {
        end == 0 || retry_on_intr(|| pread(self.fd(), &mut [0], end - 1)) != Ok(0)
    }

    /// Whether reading ends at this offset, for which the size is only a hint.
    pub(crate) fn ends_at(&self, at: u64) -> bool {
        at >= self.end().size() && !self.gives(at.saturating_add(1))
    }

    /// Reads bytes and discards them.
    fn drop_bytes(&self, bytes: u64) -> Result<u64> {
        let attempt = || format!("skip {bytes} bytes of {}", self.name);
        let cannot = |e: io::Error| CopyError::failed(attempt(), e);
        let nowhere = open("/dev/null", OFlags::WRONLY | OFlags::CLOEXEC, Mode::empty())
            .map_err(|e| cannot(e.into()))?;
        let progress = AtomicU64::new(0);
        let job = Job { count: Some(bytes), ..Job::new(&progress) };
        let (from, to) = (self.end(), End::new(&nowhere).map_err(cannot)?);
        // To the null device others move bytes by their number.
        let reader = iotomy_movers::mover("read-write").filter(|_| from.kind() == Kind::Regular);
        let plan = reader.and_then(|reader| chooser::only(reader, &from, &to, &job).ok());
        let plan = plan.unwrap_or_else(|| chooser::choose(&from, &to, &job));
        let report = chooser::run(&plan, &from, &to, &job).map_err(|e| cannot(e.error.source))?;
        match (report.mover, report.refused.last()) {
            (None, Some(refused)) => {
                let errno = refused.errno.unwrap_or(Errno::IO);
                Err(cannot(errno.into()))
            }
            _ => Ok(report.moved.bytes),
        }
    }
}

impl AsFd for Hold {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Standard(fd) => *fd,
            Self::Own(fd) => fd.as_fd(),
        }
    }
}
