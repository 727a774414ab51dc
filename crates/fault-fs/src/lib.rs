//! A FUSE file system in memory whose files fail on request. For tests only.
//!
//! The server is a separate process: a process that served itself could not be killed while one of its threads waits
//! for an answer. The server only waits for requests, so every request is answered.
//!
//! The one invariant: no mount outlives its test. The mount exists in a private mount namespace of the thread that
//! created it, and of the threads and processes that this thread starts; the namespace ends with the last of them. The
//! server ends with that thread, and without the server every request fails.

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
    /// Whether this thread already has a mount namespace of its own.
    static HAS_NAMESPACE: Cell<bool> = const { Cell::new(false) };
}

/// A mounted file system. It is visible to this thread, and to threads and processes that this thread starts from now
/// on; others see an empty directory. Dropping it unmounts it.
#[derive(Debug)]
pub struct FaultFs {
    // Dropped in this order: without a server every request fails at once, so that unmounting does not block.
    crew: Crew,
    mounted: Mounted,
    /// Makes the type `!Send`, because the namespace belongs to the thread.
    thread: PhantomData<*const ()>,
}

/// A directory on which a file system is mounted, or will be.
#[derive(Debug)]
struct Mounted(TempDir);

impl FaultFs {
    /// Mounts a file system with these files and these faults. Faults do not apply to the creation of the files.
    ///
    /// # Errors
    /// When it cannot be mounted here; the error is the reason to skip a test.
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

    /// Returns the directory on which it is mounted.
    pub fn folder(&self) -> &Path {
        self.mounted.0.path()
    }

    /// Returns the path of one of its files.
    pub fn path(&self, name: &str) -> PathBuf {
        self.mounted.0.path().join(name)
    }

    /// Returns how often a fault has occurred so far, by its index among the given faults.
    ///
    /// # Panics
    /// When there is no such fault, or when the server has ended.
    pub fn times(&self, fault: usize) -> u64 {
        let place = u8::try_from(fault).expect("fewer than 256 faults");
        let mut line = &self.crew.lines()[0];
        line.write_all(&[place]).expect("the server is there");
        self.number().expect("the server knows the fault")
    }

    /// Reads the server's next answer.
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
            // A descriptor that a failed test leaves open must not keep the mount: the mount has no server, and no
            // other process can see it. If nothing was mounted, this call fails as well.
            let _ = umount2(folder, MntFlags::MNT_DETACH);
        }
    }
}
