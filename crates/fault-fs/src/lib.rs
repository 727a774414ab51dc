//! A FUSE file system in memory whose files fail where they are told to. For tests only.
//!
//! The server is a process of its own: a process that served itself could not be killed while a thread of it
//! waits for an answer. It never waits for anything but requests, so every request is answered.
//!
//! The one invariant: no mount outlives its test. It exists in a private mount namespace of the thread that made
//! it, and of the threads and processes that this thread starts; the namespace ends with the last of them. The
//! server ends with that thread, and with the server every request fails.

mod faults;
mod files;
mod server;
mod wire;

use std::cell::Cell;
use std::io::{Read, Write};
use std::marker::PhantomData;
use std::path::{Path, PathBuf};

use iotomy_sys::crew::Crew;
use nix::mount::{MntFlags, MsFlags, mount, umount, umount2};
use nix::sched::{CloneFlags, unshare};
use tempfile::TempDir;

pub use faults::{Fault, Operation};

thread_local! {
    /// Whether this thread has a mount namespace of its own already.
    static HAS_NAMESPACE: Cell<bool> = const { Cell::new(false) };
}

/// A mounted file system. It is there for this thread, and for threads and processes that this thread starts
/// from now on; others see an empty folder. Dropping it unmounts it.
#[derive(Debug)]
pub struct FaultFs {
    // In this order they are dropped: without a server every request fails at once, so that unmounting waits
    // for nobody.
    crew: Crew,
    mounted: Mounted,
    /// The namespace belongs to the thread.
    thread: PhantomData<*const ()>,
}

/// A folder with a file system mounted on it, or about to be.
#[derive(Debug)]
struct Mounted(TempDir);

impl FaultFs {
    /// Mounts a file system that holds these files, and fails as these faults say. Faults do not apply to
    /// making the files.
    ///
    /// # Errors
    /// Why it cannot be mounted here: the reason to skip a test.
    pub fn mount(files: &[(&str, &[u8])], faults: &[Fault]) -> Result<Self, String> {
        if !Path::new("/dev/fuse").exists() {
            return Err("no FUSE here: there is no /dev/fuse".to_owned());
        }
        if !rustix::process::geteuid().is_root() {
            return Err("mounting a FUSE file system needs root".to_owned());
        }
        let failed = |what: &str, e: &dyn std::fmt::Display| format!("no FUSE here: {what}: {e}");
        let folder = tempfile::tempdir().map_err(|e| failed("temporary directory", &e))?;
        if !HAS_NAMESPACE.get() {
            unshare(CloneFlags::CLONE_NEWNS).map_err(|e| failed("unshare", &e))?;
            let private = MsFlags::MS_REC | MsFlags::MS_PRIVATE;
            mount(None::<&str>, "/", None::<&str>, private, None::<&str>)
                .map_err(|e| failed("making mounts private", &e))?;
            HAS_NAMESPACE.set(true);
        }
        let mounted = Mounted(folder);
        let at = mounted.0.path();
        let crew = Crew::start(1, &|_, line| server::run(at, files, faults, line))
            .map_err(|e| failed("fork", &e))?;
        let this = Self { crew, mounted, thread: PhantomData };
        match this.number() {
            Some(0) => Ok(this),
            Some(errno) => {
                let errno = i32::try_from(errno).unwrap_or(0);
                Err(failed("mount", &std::io::Error::from_raw_os_error(errno)))
            }
            None => Err("no FUSE here: its server has ended".to_owned()),
        }
    }

    /// The folder it is mounted on.
    pub fn folder(&self) -> &Path {
        self.mounted.0.path()
    }

    /// The path of a file of it.
    pub fn path(&self, name: &str) -> PathBuf {
        self.mounted.0.path().join(name)
    }

    /// How often a fault has happened so far, by its place among those that were given.
    ///
    /// # Panics
    /// When there is no such fault, or the server has ended.
    pub fn times(&self, fault: usize) -> u64 {
        let place = u8::try_from(fault).expect("fewer than 256 faults");
        let mut line = &self.crew.lines()[0];
        line.write_all(&[place]).expect("the server is there");
        self.number().expect("the server knows the fault")
    }

    /// The server's next answer.
    fn number(&self) -> Option<u64> {
        let mut answer = [0; 8];
        let mut line = &self.crew.lines()[0];
        line.read_exact(&mut answer).ok().map(|()| u64::from_le_bytes(answer))
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        let folder = self.0.path();
        if umount(folder).is_err() {
            // A descriptor that a failed test leaves open must not keep it: it has no server, and nobody else
            // can see it. Where nothing was mounted, this fails as well.
            let _ = umount2(folder, MntFlags::MNT_DETACH);
        }
    }
}
