//! A file that takes its name when it is whole.
//!
//! It has no name until then, where the file system supports that, so that not even a kill leaves it
//! behind: only one between the last two calls, where an old file is replaced, as no call gives a file without a name the
//! name of another. Otherwise it has a temporary one from the start, and is removed however the function
//! ends. Everything happens in the directory that was opened when its place was looked up, whatever
//! its present name.
//!
//! The owner is the difficult part: a new file takes over the owner of the file it replaces, and of
//! no other. By then another file may have the name, so both swap names in one step
//! (`RENAME_EXCHANGE`), and the file that comes out is checked.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File, Metadata};
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::{MetadataExt, fchown};

use rustix::fs::{
    AtFlags, CWD, Mode, OFlags, RenameFlags, linkat, openat, renameat, renameat_with, statat,
    unlinkat,
};
use rustix::io::Errno;

use super::attributes::{AccessList, access_list, copy_attributes, give_rights};
use super::place::{Slot, proc_name};

/// Names that are tried before it is called impossible to find a free one.
const TRIES: usize = 100;

/// A new file, open for reading and writing, that is nowhere yet.
#[derive(Debug)]
pub struct NewFile {
    file: File,
    slot: Slot,
    /// The name it has meanwhile, where it must have one.
    named: Option<OsString>,
}

impl NewFile {
    /// Makes a file in the directory of `slot`, with `mode` less the umask.
    ///
    /// # Errors
    /// When no file can be made there.
    pub fn beside(slot: Slot, mode: u32) -> io::Result<Self> {
        let (file, named) = made(&slot, mode)?;
        Ok(Self { file, slot, named })
    }

    /// Whether a file can be made there; nothing is left of it.
    ///
    /// # Errors
    /// As [`NewFile::beside`].
    pub(super) fn try_beside(slot: &Slot) -> io::Result<()> {
        let (file, named) = made(slot, 0o600)?;
        if let Some(name) = named {
            remove_own(slot.folder(), &name, &file.metadata()?)?;
        }
        Ok(())
    }

    /// The file.
    pub fn file(&self) -> &File {
        &self.file
    }

    /// The directory it will be in.
    pub fn folder(&self) -> BorrowedFd<'_> {
        self.slot.folder()
    }

    /// The metadata of the file it will replace, as found.
    pub fn old(&self) -> Option<&Metadata> {
        self.slot.old()
    }

    /// Gives it its name, replacing the old file. With `takes_over`, it gets the mode, the access
    /// list, the extended attributes and, where permitted, the owner of the file that was looked up, if that is the one it
    /// replaces; from
    /// another file that came there meanwhile it takes nothing, and nobody who could not read or
    /// write that one can read or write it.
    ///
    /// # Errors
    /// When it cannot have the name, or the mode. The name then still leads to the old file.
    pub fn put(mut self, takes_over: bool) -> io::Result<()> {
        let Some(old) = self.slot.old().filter(|_| takes_over) else { return self.put_as_it_is() };
        let (old, own) = (old.clone(), self.file.metadata()?);
        let list = self.slot.old_file().map_or(AccessList::None, access_list);
        if self.slot.is_as_it_was() {
            self.take_over(&old, &list)?;
            if self.exchange()? {
                return Ok(());
            }
            self.keep_own(&own)?;
        }
        // The list names users of another file.
        let AccessList::Is(_) = list else {
            give_rights(&self.file, old.mode() & 0o777, &list, true)?;
            return self.put_as_it_is();
        };
        give_rights(&self.file, old.mode() & 0o777, &list, false)?;
        self.put_as_it_is()
    }

    /// Gives it the first of these names that is free, and replaces no file. Returns the name, and the file's metadata.
    ///
    /// # Errors
    /// `EEXIST` when none of them is free; else the kernel's error: of a file system that can neither rename without
    /// replacing nor link, that of the link, as `EPERM`.
    pub(super) fn put_free(
        mut self,
        names: impl IntoIterator<Item = OsString>,
    ) -> io::Result<(OsString, Metadata)> {
        let own = self.file.metadata()?;
        let folder = self.slot.folder();
        for name in names {
            let done = match &self.named {
                None => self.link(&name),
                Some(now) => rename_to_free(folder, now, &name),
            };
            match done {
                Err(Errno::EXIST) => {}
                done => {
                    done?;
                    self.named = None;
                    return Ok((name, own));
                }
            }
        }
        Err(Errno::EXIST.into())
    }

    /// Gives it its name, whatever has it; `AlreadyExists` is not an error.
    fn put_as_it_is(&mut self) -> io::Result<()> {
        if self.named.is_none() && self.slot.old().is_none() {
            match self.link(self.slot.name()) {
                Err(Errno::EXIST) => {}
                done => return Ok(done?),
            }
        }
        let name = self.name()?;
        renameat(self.slot.folder(), &name, self.slot.folder(), self.slot.name())?;
        self.named = None;
        Ok(())
    }

    /// Exchanges names with the present file, and removes that; `false` when it was not the file
    /// that was looked up, or is gone.
    fn exchange(&mut self) -> io::Result<bool> {
        let (name, folder) = (self.name()?, self.slot.folder());
        let swap = || renameat_with(folder, &name, folder, self.slot.name(), RenameFlags::EXCHANGE);
        match swap() {
            Ok(()) => {}
            Err(Errno::NOENT) => return Ok(false),
            // Not every file system can do that.
            Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => {
                if !self.slot.is_as_it_was() {
                    return Ok(false);
                }
                renameat(folder, &name, folder, self.slot.name())?;
                self.named = None;
                return Ok(true);
            }
            Err(errno) => return Err(errno.into()),
        }
        let old = self.slot.old().filter(|_| self.slot.is_old(&name)).cloned();
        let Some(old) = old else {
            // A file that came in between gets its name back, until this file is allowed to replace
            // it.
            swap()?;
            return Ok(false);
        };
        remove_own(folder, &name, &old)?;
        self.named = None;
        Ok(true)
    }

    /// Makes it like the file it will replace: its owner, where that is allowed, its rights and its attributes. Another
    /// owner's file must not run with the rights of this one: set-id bits go only with the owner and the group.
    fn take_over(&self, old: &Metadata, list: &AccessList) -> io::Result<()> {
        let now = self.file.metadata()?;
        let is_of_both = (now.uid(), now.gid()) == (old.uid(), old.gid())
            // Only root may give a file away; for others the content matters more than the owner.
            || fchown(&self.file, Some(old.uid()), Some(old.gid())).is_ok();
        let is_of_group = is_of_both
            || now.gid() == old.gid()
            // A user may still be in the group.
            || fchown(&self.file, None, Some(old.gid())).is_ok();
        if let Some(node) = self.slot.old_file() {
            copy_attributes(node, &self.file)?;
        }
        let mode = if is_of_both { old.mode() } else { old.mode() & 0o777 };
        give_rights(&self.file, mode & 0o7777, list, is_of_group)
    }

    /// Undoes [`NewFile::take_over`], as to the owner.
    fn keep_own(&self, own: &Metadata) -> io::Result<()> {
        let now = self.file.metadata()?;
        match (now.uid(), now.gid()) == (own.uid(), own.gid()) {
            true => Ok(()),
            false => fchown(&self.file, Some(own.uid()), Some(own.gid())),
        }
    }

    /// The name it has meanwhile; one that had none gets one.
    fn name(&mut self) -> io::Result<OsString> {
        if let Some(name) = &self.named {
            return Ok(name.clone());
        }
        let ((), name) = by_a_free_name(|name| self.link(name))?;
        self.named = Some(name.clone());
        Ok(name)
    }

    fn link(&self, name: &OsStr) -> Result<(), Errno> {
        let from = proc_name(self.file.as_fd());
        linkat(CWD, from, self.slot.folder(), name, AtFlags::SYMLINK_FOLLOW)
    }
}

impl Drop for NewFile {
    fn drop(&mut self) {
        let Some(name) = &self.named else { return };
        // The failure that led here is the one to report.
        let _ = self.file.metadata().and_then(|own| remove_own(self.slot.folder(), name, &own));
    }
}

/// Removes the name of a file from a directory, and no other file: in a directory that others write to, names are theirs,
/// and no call removes a file by its descriptor. So the file gets a name that nobody knows first, and what came with the name
/// in its place gets it back. A name that is gone, or leads to another file, is not an error.
///
/// # Errors
/// The kernel's error.
pub fn remove_own(folder: BorrowedFd<'_>, name: &OsStr, own: &Metadata) -> io::Result<()> {
    let is_it = |name: &OsStr| {
        statat(folder, name, AtFlags::SYMLINK_NOFOLLOW)
            .is_ok_and(|now| (now.st_dev, now.st_ino) == (own.dev(), own.ino()))
    };
    if !is_it(name) {
        return Ok(());
    }
    let aside = |aside: &OsStr| renameat_with(folder, name, folder, aside, RenameFlags::NOREPLACE);
    let aside = match by_a_free_name(aside) {
        Ok(((), aside)) => aside,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        // Not every file system can do that.
        Err(_) => {
            return match unlinkat(folder, name, AtFlags::empty()) {
                Ok(()) | Err(Errno::NOENT) => Ok(()),
                Err(errno) => Err(errno.into()),
            };
        }
    };
    if is_it(&aside) {
        return Ok(unlinkat(folder, &aside, AtFlags::empty())?);
    }
    Ok(renameat_with(folder, &aside, folder, name, RenameFlags::NOREPLACE)?)
}

/// Renames a file of a directory to a name that is free there.
fn rename_to_free(folder: BorrowedFd<'_>, now: &OsStr, name: &OsStr) -> Result<(), Errno> {
    match renameat_with(folder, now, folder, name, RenameFlags::NOREPLACE) {
        // Not every file system can do that: NFS, some of FUSE. A link takes no other file's name either.
        Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => {
            linkat(folder, now, folder, name, AtFlags::empty())?;
            // The file has its name; nothing can be done about another that stays.
            let _ = unlinkat(folder, now, AtFlags::empty());
            Ok(())
        }
        done => done,
    }
}

/// A new file, and the name it has, where it must have one.
fn made(slot: &Slot, mode: u32) -> io::Result<(File, Option<OsString>)> {
    let mode = Mode::from_raw_mode(mode);
    if let Some(file) = unnamed_in(slot, mode) {
        return Ok((file, None));
    }
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
    let (file, name) = by_a_free_name(|name| openat(slot.folder(), name, flags, mode))?;
    Ok((file.into(), Some(name)))
}

/// Does it by names that are hard to guess, until one is free.
fn by_a_free_name<T>(
    mut make: impl FnMut(&OsStr) -> Result<T, Errno>,
) -> io::Result<(T, OsString)> {
    for _ in 0..TRIES {
        let name =
            OsString::from(format!(".iotomy-{:016x}", RandomState::new().build_hasher().finish()));
        match make(&name) {
            Err(Errno::EXIST) => {}
            made => return Ok((made?, name)),
        }
    }
    Err(Errno::EXIST.into())
}

/// A file without a name, where its file system has such and /proc can name it later.
fn unnamed_in(slot: &Slot, mode: Mode) -> Option<File> {
    let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
    let file = File::from(openat(slot.folder(), c".", flags, mode).ok()?);
    fs::symlink_metadata(proc_name(file.as_fd())).is_ok().then_some(file)
}
