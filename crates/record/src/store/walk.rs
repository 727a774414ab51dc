//! From a path to the directory that holds its last name, by descriptors: each component is looked
//! up once, and the result stays valid if names change.
//!
//! The invariant: only root and the user of this process can lead it out of their own files. A
//! symbolic link of another user is followed only into a directory of its owner; the kernel follows
//! it anywhere, with this process's rights. The links that /proc has for a process (`fd/3`, `cwd`,
//! `root`) belong to that process's user, who chooses where they lead: those of another user are not
//! followed. `..` returns to the directory that the walk came from,
//! and not to the place a directory has been moved to meanwhile.

use std::ffi::{CStr, OsStr, OsString};
use std::fs::{File, Metadata};
use std::io::{self, ErrorKind};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use rustix::fs::{CWD, Mode, OFlags, fstatfs, openat, readlinkat};
use rustix::io::Errno;

/// Of procfs, as linux/magic.h has it.
const PROC_SUPER_MAGIC: rustix::fs::FsWord = 0x9fa0;

/// Links followed before they are called a circle; the kernel's own bound.
const MAX_LINKS: usize = 40;

/// `ST_NOSYMFOLLOW`: links of this file system are not to be followed.
const NOSYMFOLLOW: u64 = 0x2000;

/// World-writable and sticky, as /tmp is.
const SHARED: u32 = 0o1002;

/// Flags that open the named file itself, also a link.
const ITSELF: OFlags = OFlags::PATH.union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

const FOLDER: OFlags = OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

/// A link that leads where its owner may not lead others.
#[derive(Debug, thiserror::Error)]
pub(super) enum ForeignLink {
    #[error("a symbolic link of user {owner} leads to a directory of user {other}")]
    Leads { owner: u32, other: u32 },
    #[error("it is a symbolic link of user {owner} in a directory where everybody may write")]
    Shared { owner: u32 },
    #[error("it leads through a link of /proc that belongs to a process of user {owner}")]
    Process { owner: u32 },
    #[error("a symbolic link of user {owner} leads to a file of user {other}")]
    Opens { owner: u32, other: u32 },
}

impl From<ForeignLink> for io::Error {
    fn from(link: ForeignLink) -> Self {
        Self::new(ErrorKind::PermissionDenied, link)
    }
}

/// The file that a path resolves to.
#[derive(Debug)]
pub(super) struct ResolvedPath {
    /// The directory that holds the last name.
    pub(super) folder: OwnedFd,
    /// That name, which is not a link but one of /proc.
    pub(super) name: OsString,
    /// The file that has the name, opened with `O_PATH`, if there is one.
    pub(super) there: Option<(File, Metadata)>,
    /// Whether it was reached through a link of /proc, so that it has no name here.
    pub(super) is_open_elsewhere: bool,
}

/// Looks `path` up; one that is relative starts from `from`.
pub(super) fn find(from: BorrowedFd<'_>, path: &Path) -> io::Result<ResolvedPath> {
    if path.as_os_str().is_empty() {
        return Err(Errno::NOENT.into());
    }
    let mut walk = Walk::begin(from, path)?;
    while let Some(step) = walk.todo.pop() {
        match step {
            Step::Up => walk.up()?,
            Step::LedBy(owner) => walk.is_of(owner)?,
            Step::Into(name) => walk.enter(&name)?,
            Step::Last(name) => {
                if let Some((there, is_open_elsewhere)) = walk.look_at(&name)? {
                    // The directory that holds a link of /proc says nothing of where it leads.
                    if let Some((_, of)) = there.as_ref().filter(|_| is_open_elsewhere) {
                        walk.is_of_all(of)?;
                    }
                    return Ok(ResolvedPath {
                        folder: walk.end()?,
                        name,
                        there,
                        is_open_elsewhere,
                    });
                }
            }
        }
    }
    Err(ErrorKind::IsADirectory.into())
}

/// Opens the directory at `path`.
pub(super) fn folder(path: &Path) -> io::Result<OwnedFd> {
    let mut walk = Walk::begin(CWD, path)?;
    while let Some(step) = walk.todo.pop() {
        match step {
            Step::Up => walk.up()?,
            Step::LedBy(owner) => walk.is_of(owner)?,
            Step::Into(name) | Step::Last(name) => walk.enter(&name)?,
        }
    }
    walk.end()
}

enum Step {
    /// Through this directory.
    Into(OsString),
    Up,
    /// The last one, unless the path says that it is a directory.
    Last(OsString),
    /// A link of this user ends here.
    LedBy(u32),
}

/// The components of a path, the last first: `x/` and `x/.` name directories.
fn steps(path: &OsStr) -> Vec<Step> {
    let mut steps = Vec::new();
    let mut parts = path.as_bytes().split(|byte| *byte == b'/').peekable();
    while let Some(part) = parts.next() {
        match part {
            b"" | b"." => {}
            b".." => steps.push(Step::Up),
            name => {
                let name = OsStr::from_bytes(name).to_owned();
                let is_last = parts.peek().is_none();
                steps.push(if is_last { Step::Last(name) } else { Step::Into(name) });
            }
        }
    }
    steps.reverse();
    steps
}

struct Walk {
    /// The directories that were passed, from the first.
    trail: Vec<OwnedFd>,
    /// Whether the first of them is the root, above which is nothing.
    is_from_root: bool,
    /// The rest of the path, the next component last.
    todo: Vec<Step>,
    links: usize,
}

type ExistingFile = Option<(File, Metadata)>;

impl Walk {
    fn begin(from: BorrowedFd<'_>, path: &Path) -> io::Result<Self> {
        let is_from_root = path.is_absolute();
        let first = if is_from_root { opened(CWD, c"/")? } else { opened(from, c".")? };
        Ok(Self { trail: vec![first], is_from_root, todo: steps(path.as_os_str()), links: 0 })
    }

    fn folder(&self) -> BorrowedFd<'_> {
        self.trail.last().map_or(CWD, AsFd::as_fd)
    }

    fn up(&mut self) -> io::Result<()> {
        if self.trail.len() > 1 {
            self.trail.pop();
        } else if !self.is_from_root {
            self.trail = vec![opened(self.folder(), c"..")?];
        }
        Ok(())
    }

    fn enter(&mut self, name: &OsStr) -> io::Result<()> {
        // `O_DIRECTORY` also triggers automounts there.
        match openat(self.folder(), name, FOLDER | OFlags::NOFOLLOW, Mode::empty()) {
            Ok(folder) => self.trail.push(folder),
            Err(Errno::NOTDIR | Errno::LOOP) => {
                let (link, of) =
                    with_metadata(openat(self.folder(), name, ITSELF, Mode::empty())?)?;
                if !of.is_symlink() {
                    return Err(Errno::NOTDIR.into());
                }
                if !is_in_proc(&link)? {
                    return self.follow(&link, &of, false);
                }
                is_of_a_trusted_process(&of)?;
                // No path leads there, so the kernel is asked for its parent.
                self.trail = vec![openat(self.folder(), name, FOLDER, Mode::empty())?];
                self.is_from_root = false;
            }
            Err(errno) => return Err(errno.into()),
        }
        Ok(())
    }

    /// Looks up the last name: the file, if it exists, and whether it is a link of /proc; `None`
    /// for any other link, whose components must be followed next.
    fn look_at(&mut self, name: &OsStr) -> io::Result<Option<(ExistingFile, bool)>> {
        let (link, of) = match openat(self.folder(), name, ITSELF, Mode::empty()) {
            Ok(fd) => with_metadata(fd)?,
            Err(Errno::NOENT) => return Ok(Some((None, false))),
            Err(errno) => return Err(errno.into()),
        };
        if !of.is_symlink() {
            return Ok(Some((Some((link, of)), false)));
        }
        if !is_in_proc(&link)? {
            return self.follow(&link, &of, true).map(|()| None);
        }
        is_of_a_trusted_process(&of)?;
        let flags = OFlags::PATH | OFlags::CLOEXEC;
        let there = with_metadata(openat(self.folder(), name, flags, Mode::empty())?)?;
        Ok(Some((Some(there), true)))
    }

    /// Puts the parts of a link in front of those left.
    fn follow(&mut self, link: &File, of: &Metadata, is_last: bool) -> io::Result<()> {
        self.links += 1;
        if self.links > MAX_LINKS {
            return Err(io::Error::other("too many levels of symbolic links"));
        }
        let own = rustix::process::geteuid().as_raw();
        if is_last {
            self.is_safe_here(of, own)?;
        }
        let target = OsString::from_vec(readlinkat(link, c"", Vec::new())?.into_bytes());
        if Path::new(&target).is_absolute() {
            self.trail = vec![opened(CWD, c"/")?];
            self.is_from_root = true;
        }
        if ![0, own].contains(&of.uid()) {
            self.todo.push(Step::LedBy(of.uid()));
        }
        let as_a_folder = |step| match step {
            Step::Last(name) if !is_last => Step::Into(name),
            other => other,
        };
        self.todo.extend(steps(&target).into_iter().map(as_a_folder));
        Ok(())
    }

    /// The kernel's rule of `fs.protected_symlinks`, whether or not it is on: to read a link is to go
    /// round it.
    fn is_safe_here(&self, of: &Metadata, own: u32) -> io::Result<()> {
        let folder = rustix::fs::fstat(self.folder())?;
        let is_shared = folder.st_mode & SHARED == SHARED;
        if is_shared && ![own, folder.st_uid].contains(&of.uid()) {
            return Err(ForeignLink::Shared { owner: of.uid() }.into());
        }
        Ok(())
    }

    fn is_of(&self, owner: u32) -> io::Result<()> {
        match rustix::fs::fstat(self.folder())?.st_uid {
            other if other != owner => Err(ForeignLink::Leads { owner, other }.into()),
            _ => Ok(()),
        }
    }

    /// Whether a file that no path leads to is of each owner of the links that led to it.
    fn is_of_all(&self, file: &Metadata) -> io::Result<()> {
        let other = file.uid();
        for step in &self.todo {
            if let Step::LedBy(owner) = *step
                && owner != other
            {
                return Err(ForeignLink::Opens { owner, other }.into());
            }
        }
        Ok(())
    }

    /// The directory of the last name; the owners of the links that led there must own it.
    fn end(mut self) -> io::Result<OwnedFd> {
        for step in &self.todo {
            if let Step::LedBy(owner) = step {
                self.is_of(*owner)?;
            }
        }
        self.trail.pop().map_or_else(|| opened(CWD, c"."), Ok)
    }
}

/// Whether a link of /proc is of root or of this user.
fn is_of_a_trusted_process(link: &Metadata) -> io::Result<()> {
    let own = rustix::process::geteuid().as_raw();
    match link.uid() {
        owner if ![0, own].contains(&owner) => Err(ForeignLink::Process { owner }.into()),
        _ => Ok(()),
    }
}

fn opened(from: BorrowedFd<'_>, name: &CStr) -> io::Result<OwnedFd> {
    Ok(openat(from, name, FOLDER, Mode::empty())?)
}

fn with_metadata(fd: OwnedFd) -> io::Result<(File, Metadata)> {
    let file = File::from(fd);
    let metadata = file.metadata()?;
    Ok((file, metadata))
}

/// Whether a link is one of /proc, which leads where no path does; and whether it may be followed at all.
fn is_in_proc(link: &File) -> io::Result<bool> {
    let system = fstatfs(link)?;
    if system.f_flags as u64 & NOSYMFOLLOW != 0 {
        return Err(Errno::LOOP.into());
    }
    Ok(system.f_type == PROC_SUPER_MAGIC)
}
