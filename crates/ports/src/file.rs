//! Changes of files and directories (`PORT_SOURCE_FILE`), by `inotify(7)`.
//!
//! A file is watched itself, for what happens to its contents and attributes, and its directory is
//! watched for what happens to its name. One inotify descriptor of the process serves all of them.
//!
//! The tricky invariant: watches are set before the time stamps are compared, so that no change falls
//! between the two; and a descriptor in the port's set (the node `Changes`) is re-armed only after it
//! has been read empty.

mod association;

use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::ops::{BitAnd, BitOr};
use std::path::{Path, PathBuf};

use iotomy_sys::private_fd::PrivateFd;
use rustix::fs::inotify::{self, ReadFlags, WatchFlags};
use rustix::fs::{AtFlags, CWD, Stat, statat};
use rustix::io::Errno;

use crate::errno::errno;
use crate::shared::{Field, Locked, Node, State};

/// What happened to a file, or is of interest (`FILE_ACCESS`…).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct FileChanges(u32);

impl FileChanges {
    /// It was read: the access time changes.
    pub const ACCESS: Self = Self(0x1);
    /// It was written: the modification time changes.
    pub const MODIFIED: Self = Self(0x2);
    /// Its attributes changed: the change time changes.
    pub const ATTRIB: Self = Self(0x4);
    /// Its name was removed. Reported without being asked for, as all that follow but the last two.
    pub const DELETE: Self = Self(0x10);
    /// Another file was renamed to its name.
    pub const RENAME_TO: Self = Self(0x20);
    /// It was renamed.
    pub const RENAME_FROM: Self = Self(0x40);
    /// Its file system was unmounted.
    pub const UNMOUNTED: Self = Self(0x2000_0000);
    /// It became shorter.
    pub const TRUNC: Self = Self(0x0010_0000);
    /// Watch a symbolic link itself.
    pub const NOFOLLOW: Self = Self(0x1000_0000);

    const NONE: Self = Self(0);
    /// `MOUNTEDOVER`, which Linux does not tell of.
    const MOUNTED_OVER: u32 = 0x4000_0000;
    const EXCEPTIONS: Self =
        Self(Self::DELETE.0 | Self::RENAME_TO.0 | Self::RENAME_FROM.0 | Self::UNMOUNTED.0);
    const KNOWN: u32 = Self::ACCESS.0
        | Self::MODIFIED.0
        | Self::ATTRIB.0
        | Self::TRUNC.0
        | Self::NOFOLLOW.0
        | Self::EXCEPTIONS.0
        | Self::MOUNTED_OVER;

    /// The bits as in `Event::events`.
    #[must_use]
    pub const fn bits(self) -> u32 {
        self.0
    }

    /// The changes of these bits, if all are known.
    #[must_use]
    pub const fn from_bits(bits: u32) -> Option<Self> {
        if bits & !Self::KNOWN == 0 { Some(Self(bits)) } else { None }
    }

    /// Whether one of the other's changes is among these.
    #[must_use]
    pub const fn has(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }
}

impl BitOr for FileChanges {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

impl BitAnd for FileChanges {
    type Output = Self;

    fn bitand(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }
}

/// A time stamp of a file: seconds and nanoseconds.
pub type Timestamp = (i64, i64);

/// A file as its watcher knows it (`file_obj_t`).
#[derive(Debug, Clone, Copy)]
pub struct FileObject<'f> {
    /// Its path.
    pub path: &'f Path,
    /// The access time that stat(2) told.
    pub accessed: Timestamp,
    /// The modification time that stat(2) told.
    pub modified: Timestamp,
    /// The change time that stat(2) told.
    pub changed: Timestamp,
}

#[derive(Debug, Default)]
pub(crate) struct Files {
    changes: Option<PrivateFd>,
    /// The objects that a watch serves.
    watches: HashMap<i32, Vec<usize>>,
    objects: HashMap<usize, Watched>,
}

#[derive(Debug)]
struct Watched {
    node: Node,
    /// Its path, with no symbolic link in front of its name.
    path: PathBuf,
    name: OsString,
    wanted: FileChanges,
    watch: i32,
    watch_of_directory: Option<i32>,
    is_directory: bool,
    /// Device and number of its inode.
    identity: (u64, u64),
    stamps: [Timestamp; 3],
    size: i64,
}

const OF_FILE: WatchFlags = WatchFlags::ACCESS
    .union(WatchFlags::MODIFY)
    .union(WatchFlags::ATTRIB)
    .union(WatchFlags::CREATE)
    .union(WatchFlags::DELETE)
    .union(WatchFlags::MOVE)
    .union(WatchFlags::DELETE_SELF)
    .union(WatchFlags::MOVE_SELF)
    .union(WatchFlags::MASK_ADD);
const OF_DIRECTORY: WatchFlags =
    WatchFlags::DELETE.union(WatchFlags::MOVE).union(WatchFlags::MASK_ADD);

impl Files {
    /// Sets the watches of a file, and returns its time stamps from then.
    fn start(
        &mut self,
        node: Node,
        object: usize,
        path: PathBuf,
        name: OsString,
        wanted: FileChanges,
    ) -> Result<[Timestamp; 3], Errno> {
        let changes = self.changes.as_ref().ok_or(Errno::INVAL)?;
        let is_link = wanted.has(FileChanges::NOFOLLOW);
        let follow = if is_link { WatchFlags::DONT_FOLLOW } else { WatchFlags::empty() };
        let add = |path: &Path, flags| {
            inotify::add_watch(changes, path, flags).map_err(|error| match error {
                Errno::NOSPC => Errno::AGAIN,
                error => error,
            })
        };
        let watch = add(&path, OF_FILE | follow)?;
        // Its directory may be unreadable: the file itself is told that it moved, or is no more.
        let watch_of_directory = path.parent().and_then(|parent| add(parent, OF_DIRECTORY).ok());
        let status = stat(&path, is_link);
        let (identity, stamps, size) = status.map_or(((0, 0), [(0, 0); 3], 0), |status| {
            ((status.st_dev, status.st_ino), stamps(&status), status.st_size)
        });
        let is_directory =
            status.is_ok_and(|status| rustix::fs::FileType::from_raw_mode(status.st_mode).is_dir());
        let of_directory = watch_of_directory.filter(|other| *other != watch);
        for watch in [Some(watch), of_directory].into_iter().flatten() {
            self.watches.entry(watch).or_default().push(object);
        }
        let watched = Watched {
            node,
            path,
            name,
            wanted,
            watch,
            watch_of_directory,
            is_directory,
            identity,
            stamps,
            size,
        };
        self.objects.insert(object, watched);
        status.map(|_| stamps)
    }

    /// Ends the watches of a file; whether there were any.
    fn stop(&mut self, locked: &Locked<'_>, object: usize) -> bool {
        let Some(watched) = self.objects.remove(&object) else { return false };
        locked.remove(watched.node);
        for watch in [Some(watched.watch), watched.watch_of_directory].into_iter().flatten() {
            let Some(objects) = self.watches.get_mut(&watch) else { continue };
            objects.retain(|other| *other != object);
            if objects.is_empty() {
                self.watches.remove(&watch);
                if let Some(changes) = &self.changes {
                    // Fails if the kernel ended it with the file.
                    let _ = inotify::remove_watch(changes, watch);
                }
            }
        }
        true
    }

    /// Adds a change to the events of the files that it concerns.
    fn note(&mut self, locked: &Locked<'_>, watch: i32, change: ReadFlags, name: Option<&OsStr>) {
        if change.contains(ReadFlags::QUEUE_OVERFLOW) {
            for watched in self.objects.values_mut() {
                let missed = watched.changes_since();
                raise(locked, watched.node, missed & watched.wanted);
            }
            return;
        }
        for object in self.watches.get(&watch).into_iter().flatten() {
            let Some(watched) = self.objects.get_mut(object) else { continue };
            let changes = watched.changes_by(watch, change, name);
            raise(locked, watched.node, changes & (watched.wanted | FileChanges::EXCEPTIONS));
        }
    }
}

impl Watched {
    fn changes_by(&mut self, watch: i32, change: ReadFlags, name: Option<&OsStr>) -> FileChanges {
        let mut changes = FileChanges::NONE;
        let mut is = |flags: ReadFlags, of: FileChanges| {
            if change.intersects(flags) {
                changes = changes | of;
            }
        };
        let contents = FileChanges::MODIFIED | FileChanges::ATTRIB;
        match name {
            None if watch == self.watch => {
                is(ReadFlags::ACCESS, FileChanges::ACCESS);
                is(ReadFlags::MODIFY, contents);
                is(ReadFlags::DELETE_SELF, FileChanges::DELETE);
                is(ReadFlags::MOVE_SELF, FileChanges::RENAME_FROM);
                is(ReadFlags::UNMOUNT, FileChanges::UNMOUNTED);
                is(ReadFlags::ATTRIB, FileChanges::ATTRIB);
                if change.intersects(ReadFlags::ATTRIB | ReadFlags::MODIFY) {
                    changes = changes | self.changes_since();
                }
            }
            Some(name) => {
                let names = ReadFlags::CREATE | ReadFlags::DELETE | ReadFlags::MOVED_FROM;
                let names = names | ReadFlags::MOVED_TO;
                if watch == self.watch && self.is_directory {
                    is(names, contents);
                }
                if Some(watch) == self.watch_of_directory && name == self.name {
                    is(ReadFlags::DELETE, FileChanges::DELETE);
                    is(ReadFlags::MOVED_FROM, FileChanges::RENAME_FROM);
                    is(ReadFlags::MOVED_TO, FileChanges::RENAME_TO);
                }
            }
            None => {}
        }
        changes
    }

    /// What time stamps and size say of the time since they were last looked at.
    fn changes_since(&mut self) -> FileChanges {
        let Ok(status) = stat(&self.path, self.wanted.has(FileChanges::NOFOLLOW)) else {
            return FileChanges::NONE;
        };
        // Another file may have taken the name.
        if (status.st_dev, status.st_ino) != self.identity {
            return FileChanges::NONE;
        }
        let now = stamps(&status);
        let mut changes = differences(&self.stamps, &now);
        if status.st_size < self.size {
            changes = changes | FileChanges::TRUNC;
        }
        (self.stamps, self.size) = (now, status.st_size);
        changes
    }
}

/// Adds changes to a file's event, and queues it with the first ones.
fn raise(locked: &Locked<'_>, node: Node, changes: FileChanges) {
    let known = FileChanges(locked.get(node, Field::Events) as u32);
    // A file whose name another one took is gone by that; it is no second event.
    let changes = match known.has(FileChanges::RENAME_TO) {
        true => FileChanges(changes.0 & !FileChanges::DELETE.0),
        false => changes,
    };
    if changes != FileChanges::NONE {
        locked.set(node, Field::Events, u64::from((known | changes).0));
        if locked.state(node) == State::Armed {
            locked.end(node, State::Queued);
        }
    }
}

fn differences(known: &[Timestamp; 3], now: &[Timestamp; 3]) -> FileChanges {
    let of = [FileChanges::ACCESS, FileChanges::MODIFIED, FileChanges::ATTRIB];
    let differ = known.iter().zip(now).zip(of).filter(|((known, now), _)| known != now);
    differ.fold(FileChanges::NONE, |all, (_, one)| all | one)
}

fn stat(path: &Path, is_link: bool) -> Result<Stat, Errno> {
    let flags = if is_link { AtFlags::SYMLINK_NOFOLLOW } else { AtFlags::empty() };
    statat(CWD, path, flags)
}

#[expect(clippy::unnecessary_cast, reason = "the types differ between machines")]
fn stamps(status: &Stat) -> [Timestamp; 3] {
    [
        (status.st_atime as i64, status.st_atime_nsec as i64),
        (status.st_mtime as i64, status.st_mtime_nsec as i64),
        (status.st_ctime as i64, status.st_ctime_nsec as i64),
    ]
}

/// The path of a file without symbolic links, the last one excepted if it is watched itself; and its
/// name in its directory.
fn resolve(path: &Path, is_link: bool) -> Result<(PathBuf, OsString), Errno> {
    if path.as_os_str().is_empty() {
        return Err(Errno::NOENT);
    }
    let resolved = match (is_link, path.parent(), path.file_name()) {
        (true, Some(parent), Some(name)) => {
            let parent = if parent.as_os_str().is_empty() { Path::new(".") } else { parent };
            parent.canonicalize().map_err(errno)?.join(name)
        }
        _ => path.canonicalize().map_err(errno)?,
    };
    stat(&resolved, is_link)?;
    let name = resolved.file_name().unwrap_or_default().to_owned();
    Ok((resolved, name))
}
