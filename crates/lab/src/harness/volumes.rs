//! File systems that belong to a run.
//!
//! The invariant: nothing is left of them, however this process ends. For root they are mounts that
//! were never attached to any directory (`fsmount(2)`), of an image without a name, on a loop
//! device that clears itself: the kernel removes all of it when the last descriptor is closed. No
//! other process ever sees them, and they need no mount point. An [`OwnFolder`] holds what must
//! have a name, and a [`Zram`] a device of memory that the kernel would keep.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use iotomy_host::Skip;
use iotomy_host::file_systems;
use iotomy_host::folder::{Folder, free_bytes};
use iotomy_host::room;
use iotomy_sys::launch::helper;
use iotomy_sys::loop_device::LoopDevice;
use rustix::fs::{Advice, Mode, OFlags, fadvise, fsync, ftruncate, open, openat, statfs, syncfs};
use rustix::mount::{
    FsMountFlags, FsOpenFlags, MountAttrFlags, fsconfig_create, fsconfig_set_string, fsmount,
    fsopen,
};

use super::own_folder::OwnFolder;
use super::zram::Zram;

/// The usual place of a memory file system that every user may write to.
const MEMORY: &str = "/dev/shm";

/// The divisor for the free bytes where an image is stored: the image may take at most this
/// fraction.
const PART: u64 = 2;

const FOLDER: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

/// A file system, or a directory on one.
#[derive(Debug)]
pub(crate) struct Volume {
    /// `None` only while it is being mounted again.
    top: Option<Top>,
    image: Option<Image>,
    _made: Option<OwnFolder>,
}

/// The top directory of a file system, and the mount, which is dropped last.
#[derive(Debug)]
struct Top {
    folder: OwnedFd,
    _mount: Option<OwnedFd>,
}

/// A file system in files.
#[derive(Debug)]
struct Image {
    kind: &'static str,
    devices: Vec<BlockDevice>,
}

/// A block device.
#[derive(Debug)]
enum BlockDevice {
    /// A device on a file.
    File { device: LoopDevice, file: OwnedFd },
    /// A device in memory.
    Memory(Zram),
}

impl BlockDevice {
    fn path(&self) -> &str {
        match self {
            Self::File { device, .. } => device.path(),
            Self::Memory(device) => device.path(),
        }
    }
}

/// The parameters of an image.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Recipe<'a> {
    /// Its name for mount(8).
    pub(crate) kind: &'static str,
    /// Options of mkfs besides those that make it quiet.
    pub(crate) options: &'a [&'static str],
    /// Bytes of each device.
    pub(crate) bytes: u64,
    /// Number of devices.
    pub(crate) devices: usize,
    /// Bytes that the whole image may actually take where it is stored.
    pub(crate) takes: u64,
    /// Whether the devices bypass the page cache when they read and write their files.
    pub(crate) past_the_cache: bool,
}

/// Where the files of an image are stored.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Backing<'a> {
    /// In a directory.
    Folder(&'a Folder),
    /// In memory.
    Memory,
    /// In no file, but in a zram device if the kernel has zram; otherwise in memory.
    Zram,
}

impl Volume {
    /// Creates a new directory on the file system of a given directory.
    pub(crate) fn here(folder: &Folder) -> Result<Self, Skip> {
        Self::folder(Path::new(&folder.volume().path))
    }

    fn folder(path: &Path) -> Result<Self, Skip> {
        let made = OwnFolder::in_folder(path)?;
        let folder =
            open(made.path(), FOLDER, Mode::empty()).map_err(|e| Skip::refused("open", e))?;
        let top = Some(Top { folder, _mount: None });
        Ok(Self { top, image: None, _made: Some(made) })
    }

    /// Returns a file system in memory: for root a tmpfs of its own, for others a directory in
    /// /dev/shm.
    pub(crate) fn memory() -> Result<Self, Skip> {
        match mount("tmpfs", &[]) {
            Ok(top) => Ok(Self { top: Some(top), image: None, _made: None }),
            Err(refused) => {
                let is_memory = statfs(MEMORY)
                    .is_ok_and(|found| file_systems::magic(found.f_type) == file_systems::TMPFS);
                if is_memory { Self::folder(Path::new(MEMORY)) } else { Err(refused) }
            }
        }
    }

    /// Creates a file system in an image of its own.
    pub(crate) fn image(recipe: &Recipe<'_>, under: Backing<'_>) -> Result<Self, Skip> {
        if !rustix::process::geteuid().is_root() {
            return Err(Skip("only root can mount images of file systems".to_owned()));
        }
        let devices = (0..recipe.devices).map(|_| backed(recipe, under));
        let devices: Vec<BlockDevice> = devices.collect::<Result<_, Skip>>()?;
        let image = Image { kind: recipe.kind, devices };
        image.format(recipe.options)?;
        let top = image.mount()?;
        Ok(Self { top: Some(top), image: Some(image), _made: None })
    }

    /// Returns its top directory.
    pub(crate) fn top(&self) -> Result<BorrowedFd<'_>, Skip> {
        match &self.top {
            Some(top) => Ok(top.folder.as_fd()),
            None => Err(Skip("the file system could not be mounted again".to_owned())),
        }
    }

    /// Whether [`Volume::forget`] is supported.
    pub(crate) fn is_image(&self) -> bool {
        self.image.is_some()
    }

    /// Waits until all dirty data is written.
    pub(crate) fn settle(&self) -> Result<(), Skip> {
        syncfs(self.top()?).map_err(|e| Skip::refused("syncfs", e))
    }

    /// Unmounts the file system and mounts it again, so that nothing of it is cached: no name, no
    /// attribute, no byte. All descriptors on it must be closed.
    pub(crate) fn forget(&mut self) -> Result<(), Skip> {
        let Some(image) = &self.image else {
            return Err(Skip("only the image of a file system can be mounted again".to_owned()));
        };
        self.top = None;
        for one in &image.devices {
            // For a device of memory, cached data cannot be told apart from stored data.
            let BlockDevice::File { device, file } = one else { continue };
            device.drop_cache().map_err(|e| Skip::refused("ioctl BLKFLSBUF", e))?;
            fsync(file).map_err(|e| Skip::refused("fsync", e))?;
            fadvise(file, 0, None, Advice::DontNeed).map_err(|e| Skip::refused("fadvise64", e))?;
        }
        self.top = Some(image.mount()?);
        Ok(())
    }

    /// Returns the file with the read-ahead in KiB, if this is an image: that of its device, or
    /// that of the file system where it has its own.
    pub(crate) fn window(&self) -> Option<PathBuf> {
        let image = self.image.as_ref()?;
        let name = image.devices.first()?.path().trim_start_matches("/dev/");
        let file_systems = fs::read_dir("/sys/fs/btrfs").into_iter().flatten().flatten();
        let mut pools = file_systems.map(|entry| entry.path());
        match image.kind {
            "btrfs" => pools.find(|pool| pool.join("devices").join(name).exists()),
            _ => Some(Path::new("/sys/block").join(name)),
        }
        .map(|of| of.join("bdi/read_ahead_kb"))
    }

    /// Whether it is on a zram device.
    pub(crate) fn is_zram(&self) -> bool {
        let devices = self.image.iter().flat_map(|image| &image.devices);
        devices.into_iter().any(|one| matches!(one, BlockDevice::Memory(_)))
    }
}

impl Image {
    fn format(&self, options: &[&'static str]) -> Result<(), Skip> {
        // Tables are written now and not by a kernel thread during a measurement.
        let quiet: &[&str] = match self.kind {
            "ext4" => &["-q", "-F", "-E", "nodiscard,lazy_itable_init=0,lazy_journal_init=0"],
            "xfs" => &["-q", "-f", "-K"],
            _ => &["-q", "-f", "-K"],
        };
        let mut arguments: Vec<OsString> = quiet.iter().chain(options).map(Into::into).collect();
        arguments.extend(self.devices.iter().map(|one| one.path().into()));
        succeed(&format!("mkfs.{}", self.kind), &arguments)
    }

    fn mount(&self) -> Result<Top, Skip> {
        let paths: Vec<&str> = self.devices.iter().map(|one| one.path()).collect();
        mount(self.kind, &paths)
    }
}

fn backed(recipe: &Recipe<'_>, under: Backing<'_>) -> Result<BlockDevice, Skip> {
    if matches!(under, Backing::Zram) {
        let needed = usize::try_from(recipe.takes).unwrap_or(usize::MAX);
        room::check_memory(needed)?;
        if let Ok(device) = Zram::with_size(recipe.bytes) {
            return Ok(BlockDevice::Memory(device));
        }
    }
    let file = backing(recipe, under)?;
    let device = LoopDevice::attach(file.as_fd(), recipe.past_the_cache)
        .map_err(|(call, error)| Skip::refused(call, error))?;
    Ok(BlockDevice::File { device, file })
}

/// Creates a file without a name that has room for an image.
fn backing(recipe: &Recipe<'_>, under: Backing<'_>) -> Result<OwnedFd, Skip> {
    let memory;
    let folder = match under {
        Backing::Folder(folder) => folder,
        Backing::Memory | Backing::Zram => {
            memory = Folder::open(Path::new(MEMORY)).map_err(|error| Skip(error.to_string()))?;
            &memory
        }
    };
    let file = folder.unnamed().map_err(|(call, error)| Skip::refused(call, error))?;
    let free = free_bytes(&file)?;
    if free / PART < recipe.takes {
        return Err(Skip(format!(
            "{}: an image of {} takes {} MiB; {} MiB are free, and half of them stay reserved; \
             name another directory with --path",
            folder.volume().path,
            recipe.kind,
            recipe.takes.div_ceil(1 << 20),
            free >> 20
        )));
    }
    room::check_file_size(recipe.bytes)?;
    ftruncate(&file, recipe.bytes).map_err(|e| Skip::refused("ftruncate", e))?;
    Ok(file)
}

/// Mounts a file system of these devices without attaching it to a directory, and returns its top
/// directory.
fn mount(kind: &str, devices: &[&str]) -> Result<Top, Skip> {
    let refused = |call: &str| {
        let what = format!("{call} of {kind}");
        move |error: rustix::io::Errno| Skip::refused(&what, io::Error::from(error))
    };
    let context = fsopen(kind, FsOpenFlags::FSOPEN_CLOEXEC).map_err(refused("fsopen"))?;
    for (at, device) in devices.iter().enumerate() {
        let key = if at == 0 { "source" } else { "device" };
        fsconfig_set_string(&context, key, *device).map_err(refused("fsconfig"))?;
    }
    fsconfig_create(&context).map_err(refused("mount"))?;
    let mounted = fsmount(&context, FsMountFlags::FSMOUNT_CLOEXEC, MountAttrFlags::empty())
        .map_err(refused("fsmount"))?;
    let folder = openat(&mounted, ".", FOLDER, Mode::empty()).map_err(refused("open"))?;
    Ok(Top { folder, _mount: Some(mounted) })
}

/// Runs a system program to its end.
fn succeed(program: &str, arguments: &[OsString]) -> Result<(), Skip> {
    let output = helper(program).and_then(|mut command| {
        command.args(arguments).stdin(Stdio::null());
        // The program has its own process group: Ctrl-C is meant for iotomy, which then ends in
        // order.
        command.process_group(0).output()
    });
    match output {
        Ok(output) if output.status.success() => Ok(()),
        Ok(output) => {
            let said = String::from_utf8_lossy(&output.stderr);
            let said = said.lines().find(|line| !line.trim().is_empty()).unwrap_or("failed");
            Err(Skip(format!("{program}: {}", said.trim())))
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let package = match program {
                "mkfs.ext4" => "e2fsprogs",
                "mkfs.xfs" => "xfsprogs",
                _ => "btrfs-progs",
            };
            Err(Skip(format!("{program} is missing; install {package}")))
        }
        Err(error) => Err(Skip::refused(program, error)),
    }
}
