//! Fixtures for tests of attacks: directories of two users, one of whom swaps names all the time.

use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt, lchown, symlink};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use rustix::fs::{CWD, RenameFlags, renameat_with};

/// The other user: `nobody`.
pub(crate) const OTHER: u32 = 65534;

/// Swaps there are at least in an attack.
pub(crate) const SWAPS: u64 = 10_000;

pub(crate) fn give(path: &Path) {
    lchown(path, Some(OTHER), Some(OTHER)).unwrap();
}

/// A directory `theirs/d` of the other user with a file `f`, and one of root's, `ours`, with
/// another.
pub(crate) struct AttackScene {
    top: tempfile::TempDir,
}

/// A process of the other user.
pub(crate) struct TheirProcess(Child);

impl TheirProcess {
    pub(crate) fn pid(&self) -> u32 {
        self.0.id()
    }
}

impl Drop for TheirProcess {
    fn drop(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

/// Ends an attack, however the work ends.
struct End<'a>(&'a AtomicBool);

impl Drop for End<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

impl AttackScene {
    pub(crate) fn new() -> Self {
        // In memory, where there is some: every replaced file is synced.
        let memory = tempfile::tempdir_in("/dev/shm");
        let scene = Self { top: memory.or_else(|_| tempfile::tempdir_in("/tmp")).unwrap() };
        fs::set_permissions(scene.top.path(), Permissions::from_mode(0o755)).unwrap();
        for folder in ["theirs", "theirs/d", "ours"] {
            fs::create_dir(scene.path(folder)).unwrap();
        }
        fs::write(scene.path("theirs/d/f"), "old").unwrap();
        fs::write(scene.path("ours/f"), "precious").unwrap();
        fs::set_permissions(scene.path("ours/f"), Permissions::from_mode(0o600)).unwrap();
        for theirs in ["theirs", "theirs/d", "theirs/d/f"] {
            give(&scene.path(theirs));
        }
        scene
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.top.path().join(name)
    }

    /// Makes a link of the other user's.
    pub(crate) fn link(&self, to: &str, name: &str) {
        symlink(to, self.path(name)).unwrap();
        give(&self.path(name));
    }

    /// A process of the other user that has root's file open for reading, as descriptor 0, and root's
    /// directory as its current one.
    pub(crate) fn their_process(&self) -> TheirProcess {
        let mut command = Command::new("sleep");
        command.arg("1000").uid(OTHER).gid(OTHER).current_dir(self.path("ours"));
        TheirProcess(command.stdin(fs::File::open(self.path("ours/f")).unwrap()).spawn().unwrap())
    }

    /// Root's files: names, content, owner, mode and the inode.
    pub(crate) fn ours(&self) -> (Vec<String>, Vec<u8>, (u32, u32, u32), u64) {
        let names = fs::read_dir(self.path("ours")).unwrap();
        let names = names.map(|name| name.unwrap().file_name().into_string().unwrap()).collect();
        let file = fs::metadata(self.path("ours/f")).unwrap();
        let content = fs::read(self.path("ours/f")).unwrap();
        (names, content, (file.uid(), file.gid(), file.mode()), file.ino())
    }

    /// Exchanges two names while `work` is repeated: at least this often, and until there were
    /// enough exchanges, so that both meet whichever is faster.
    pub(crate) fn attack(&self, one: &str, other: &str, least: u64, work: impl Fn()) {
        let (one, other) = (self.path(one), self.path(other));
        let (swaps, ends) = (AtomicU64::new(0), AtomicBool::new(false));
        std::thread::scope(|scope| {
            let _end = End(&ends);
            let attacker = scope.spawn(|| {
                while !ends.load(Ordering::Relaxed) {
                    renameat_with(CWD, &one, CWD, &other, RenameFlags::EXCHANGE).unwrap();
                    swaps.fetch_add(1, Ordering::Relaxed);
                }
            });
            let mut done = 0;
            while !attacker.is_finished() && (done < least || swaps.load(Ordering::Relaxed) < SWAPS)
            {
                work();
                done += 1;
            }
        });
    }
}
