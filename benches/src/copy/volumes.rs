//! The locations of files: a directory in memory, and file systems in images.
//!
//! The invariant: whatever ends this program, SIGKILL included, nothing is left behind. Root works
//! in a private mount namespace, in a memory file system mounted over `/dev/shm`: images, their
//! loop devices and mounts all disappear with the last process in it. Other users get a temporary
//! directory in `/dev/shm`, which only SIGKILL leaves behind and the next run removes, and no
//! images.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result};
use nix::mount::{MntFlags, MsFlags, mount, umount2};
use nix::sched::{CloneFlags, unshare};

use crate::scratch::Scratch;

/// The directory where a memory file system is expected.
const MEMORY: &str = "/dev/shm";

/// A file system used in measurements.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum FileSystem {
    /// In memory.
    Tmpfs,
    /// In an image in memory, like the two below.
    Ext4,
    /// Can share extents.
    Xfs,
    /// Can share extents.
    Btrfs,
}

impl FileSystem {
    pub(crate) const ALL: [Self; 4] = [Self::Tmpfs, Self::Ext4, Self::Xfs, Self::Btrfs];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Tmpfs => "tmpfs",
            Self::Ext4 => "ext4",
            Self::Xfs => "xfs",
            Self::Btrfs => "btrfs",
        }
    }
}

/// The directory that contains all files of a run.
pub(crate) struct Workshop {
    root: PathBuf,
    private: bool,
    _holder: Option<Scratch>,
}

impl Workshop {
    /// Opens the workshop. Must be called before a second thread exists, because a mount namespace
    /// belongs to a thread.
    pub(crate) fn open() -> Result<Self> {
        if rustix::process::geteuid().is_root() && Path::new(MEMORY).is_dir() && private().is_ok() {
            let root = PathBuf::from(MEMORY);
            return Ok(Self { root, private: true, _holder: None });
        }
        let holder = Scratch::below(Path::new(MEMORY))?;
        Ok(Self { root: holder.path().to_owned(), private: false, _holder: Some(holder) })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.root
    }

    /// Creates a file system with room for `bytes`.
    ///
    /// # Errors
    /// When the file system cannot be created; the error is the reason to skip.
    pub(crate) fn volume(&self, kind: FileSystem, bytes: u64) -> Result<Volume, String> {
        let path = self.root.join(kind.name());
        let text = |e: std::io::Error| e.to_string();
        if kind == FileSystem::Tmpfs {
            fs::create_dir(&path).map_err(text)?;
            return Ok(Volume { kind, path, image: None });
        }
        if !self.private {
            return Err("images of file systems are mounted by root only".to_owned());
        }
        let image = self.root.join(format!("{}.image", kind.name()));
        let mut volume = Volume { kind, path, image: None };
        let file = File::create(&image).map_err(text)?;
        volume.image = Some(image.clone());
        file.set_len(bytes).map_err(text)?;
        let quiet: &[&str] = if kind == FileSystem::Ext4 {
            &["-q", "-F", "-E", "lazy_itable_init=0"]
        } else {
            &["-q", "-f"]
        };
        succeed(Command::new(format!("mkfs.{}", kind.name())).args(quiet).arg(&image))?;
        fs::create_dir(&volume.path).map_err(text)?;
        succeed(Command::new("mount").args(["-o", "loop"]).arg(&image).arg(&volume.path))?;
        Ok(volume)
    }
}

/// Moves this process to a mount namespace of its own, with an empty memory file system in it.
fn private() -> nix::Result<()> {
    const NONE: Option<&str> = None;
    unshare(CloneFlags::CLONE_NEWNS)?;
    mount(NONE, "/", NONE, MsFlags::MS_REC | MsFlags::MS_PRIVATE, NONE)?;
    mount(Some("iotomy-bench"), MEMORY, Some("tmpfs"), MsFlags::empty(), Some("size=90%"))
}

/// A file system that is removed with this value.
pub(crate) struct Volume {
    pub(crate) kind: FileSystem,
    path: PathBuf,
    image: Option<PathBuf>,
}

impl Volume {
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Waits until no data remains to be written, so that no run pays for the previous one.
    pub(crate) fn settle(&self) -> Result<()> {
        if self.kind == FileSystem::Tmpfs {
            return Ok(());
        }
        let folder = File::open(&self.path).context("cannot open the volume")?;
        rustix::fs::syncfs(&folder).context("cannot sync the volume")
    }
}

impl Drop for Volume {
    fn drop(&mut self) {
        if let Some(image) = &self.image {
            // Lazily: a process that was killed a moment ago may still use it.
            let _ = umount2(&self.path, MntFlags::MNT_DETACH);
            let _ = fs::remove_file(image);
        }
        let _ = fs::remove_dir_all(&self.path);
    }
}

fn succeed(command: &mut Command) -> Result<(), String> {
    let program = command.get_program().to_string_lossy().into_owned();
    match command.stdin(Stdio::null()).output() {
        Ok(output) if output.status.success() => Ok(()),
        Ok(output) => Err(format!("{program}: {}", String::from_utf8_lossy(&output.stderr).trim())),
        Err(error) => Err(format!("{program}: {error}")),
    }
}
