//! Copies between names in a folder, and the options for them.

#[path = "../../../movers/tests/support/content.rs"]
pub(crate) mod content;
mod folder;

use std::fs::{self, File};
use std::io::Read;
use std::path::PathBuf;
use std::thread;

use iotomy_copy::{Account, CopyError, Options, Placement, copy};
use iotomy_fault_fs::{Fault, FaultFs};
use iotomy_movers::{Job, MOVERS};
use iotomy_test_requirements::{Need, skip};
use rustix::fs::{CWD, Mode, OFlags, fcntl_setfl, mkfifoat, open};
use rustix::io::Errno;

pub(crate) use content::content;
pub(crate) use folder::Folder;

impl Folder {
    /// Copies between names in this folder; all errors are in the account.
    pub(crate) fn try_copy(&self, options: &Options, sources: &[&str], target: &str) -> Account {
        let sources: Vec<PathBuf> = sources.iter().map(|name| self.path(name)).collect();
        copy(options, &sources, &self.path(target), &mut ())
            .unwrap_or_else(|error| Account { errors: vec![error], ..Account::default() })
    }

    /// Copies, without an error.
    #[track_caller]
    pub(crate) fn copy(&self, options: &Options, sources: &[&str], target: &str) {
        let account = self.try_copy(options, sources, target);
        assert!(account.errors.is_empty(), "{sources:?} to {target}: {:?}", account.errors);
    }

    /// Copies, with one error, in which names of this folder are relative to it.
    #[track_caller]
    pub(crate) fn refuse(&self, options: &Options, sources: &[&str], target: &str) -> String {
        self.error(&self.try_copy(options, sources, target))
    }

    /// Runs a copy into a FIFO of this name; returns what came out of it, too.
    pub(crate) fn drained<T>(&self, fifo: &str, run: impl FnOnce() -> T) -> (T, Vec<u8>) {
        self.make_fifo(fifo);
        let end = |flags| File::from(open(self.path(fifo), flags, Mode::empty()).unwrap());
        // Both ends, so that the copy does not wait for a reader, nor the reader for the copy.
        let mut out = end(OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC);
        let into = end(OFlags::WRONLY | OFlags::CLOEXEC);
        fcntl_setfl(&out, OFlags::empty()).unwrap();
        let reading = thread::spawn(move || {
            let mut all = Vec::new();
            out.read_to_end(&mut all).map(|_| all).unwrap()
        });
        let done = run();
        drop(into);
        (done, reading.join().unwrap())
    }

    /// Runs a copy from a FIFO of this name, into which `content` is written; not all of it need be read.
    pub(crate) fn fed<T>(&self, fifo: &str, content: &[u8], run: impl FnOnce() -> T) -> T {
        self.make_fifo(fifo);
        let (path, content) = (self.path(fifo), content.to_vec());
        // It waits for a reader, as the copy does for a writer.
        let writing = thread::spawn(move || drop(fs::write(path, content)));
        let done = run();
        // A copy that never opened it leaves the writer waiting.
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
        drop(open(self.path(fifo), flags, Mode::empty()).unwrap());
        writing.join().unwrap();
        done
    }

    /// Makes a FIFO, where it is not there.
    pub(crate) fn make_fifo(&self, name: &str) {
        match mkfifoat(CWD, self.path(name), Mode::from_raw_mode(0o600)) {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(errno) => panic!("{name}: {errno}"),
        }
    }

    /// The only error of an account, with names relative to this folder.
    #[track_caller]
    pub(crate) fn error(&self, account: &Account) -> String {
        let [error] = &account.errors[..] else { panic!("{:?}", account.errors) };
        let text = error.to_string().replace(self.path("").to_str().unwrap(), "");
        assert!(!text.contains('\n') && !text.ends_with('.'), "{text}");
        text
    }
}

/// By any mover, over what is there.
pub(crate) fn any() -> Options {
    Options::default()
}

/// By one mover.
pub(crate) fn by(mover: &str) -> Options {
    Options { mover: Some(iotomy_movers::mover(mover).unwrap()), ..any() }
}

pub(crate) fn atomic() -> Options {
    Options { placement: Placement::Atomic, ..any() }
}

pub(crate) fn append() -> Options {
    Options { placement: Placement::Append, ..any() }
}

pub(crate) fn at(offset: u64) -> Options {
    Options { placement: Placement::At(offset), ..any() }
}

pub(crate) fn joined() -> Options {
    Options { concat: true, ..any() }
}

pub(crate) fn synced() -> Options {
    Options { fsync: true, ..any() }
}

pub(crate) fn preserved() -> Options {
    Options { preserve: true, ..any() }
}

pub(crate) fn verified() -> Options {
    Options { verify: true, ..any() }
}

/// So many bytes of the sources behind the first `skip`.
pub(crate) fn part(skip: u64, count: Option<u64>) -> Options {
    Options { skip, job: Job { count, ..any().job }, ..any() }
}

/// The names of all movers that move something, and `None`, the chooser.
pub(crate) fn movers() -> impl Iterator<Item = Option<&'static str>> {
    let declarations = MOVERS.iter().map(|mover| mover.declaration());
    let moving = declarations.filter(|of| !of.calls.is_empty()).map(|of| Some(of.name));
    [None].into_iter().chain(moving)
}

/// By a mover, or the chooser.
pub(crate) fn by_any(mover: Option<&str>) -> Options {
    mover.map(by).unwrap_or_default()
}

/// A file system of these files, with these faults; `None`, said and counted, where it is not to be had.
pub(crate) fn mount(files: &[(&str, &[u8])], faults: &[Fault]) -> Option<FaultFs> {
    FaultFs::mount(files, faults).map_err(|reason| skip(Need::Fuse, &reason)).ok()
}

/// Whether a mover does not serve a pair, or all that it has is a call that the kernel refused as a whole.
pub(crate) fn is_refused(mover: Option<&str>, account: &Account) -> bool {
    let calls = ["ioctl", "fallocate", "copy_file_range", "mmap"];
    match (mover, &account.errors[..]) {
        (Some(mover), [CopyError::Unsuited(said)]) => said.contains(&format!(" by {mover}: ")),
        (Some(mover), [CopyError::Refused(said)]) => {
            calls.iter().any(|call| said.contains(&format!(": {mover}: {call}: ")))
        }
        _ => false,
    }
}
