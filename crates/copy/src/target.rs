//! The end that bytes go to: opened without harm, emptied once a mover is sure to serve, and left
//! in a state that can be described after a failure.
//!
//! The invariant: until [`Target::begin`] nothing that was there before has changed.

use std::cell::Cell;
use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

use iotomy_host::kernel_text;
use iotomy_movers::{End, Kind};
use iotomy_record::path_text;
use iotomy_record::store::{NewFile, Place, remove_own};
use iotomy_sys::close::{close, close_duplicate};
use rustix::fs::{
    Access, AtFlags, CWD, Mode, OFlags, SeekFrom, Stat, accessat, fcntl_getfl, fstat, fstatvfs,
    ftruncate, major, minor, openat, readlinkat, seek,
};
use rustix::io::{Errno, retry_on_intr};

use crate::error::{
    Result, message, more_room, number, open_at_start, unclosed, unsuited, unwritable,
};
use crate::names::is_standard_output;
use crate::source::FileSystems;
use crate::{CopyError, Options, Placement};

/// Where a target is to be.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TargetPlace<'a> {
    /// The directory that `name` is relative to, when it is open already.
    pub(crate) folder: Option<BorrowedFd<'a>>,
    /// The name in that directory, or the whole path.
    pub(crate) name: &'a Path,
    /// The whole path.
    pub(crate) path: &'a Path,
    /// Whether the name is known to exist and to be no directory.
    pub(crate) is_there: bool,
}

impl TargetPlace<'_> {
    /// The directory that `name` is relative to.
    pub(crate) fn folder(&self) -> BorrowedFd<'_> {
        self.folder.unwrap_or(CWD)
    }
}

/// A target, open for writing.
pub(crate) struct Target<'a> {
    pub(crate) hold: Hold,
    pub(crate) stat: Stat,
    flags: OFlags,
    magic: u64,
    place: TargetPlace<'a>,
    pub(crate) truncates: bool,
    begun: Cell<bool>,
    /// Whether content was taken away.
    is_emptied: Cell<bool>,
    /// Its name in messages.
    pub(crate) name: String,
}

pub(crate) enum Hold {
    Standard(BorrowedFd<'static>),
    /// A name; `made` when it was not there before.
    Named {
        fd: OwnedFd,
        made: bool,
    },
    Fresh(Box<NewFile>),
}

impl<'a> Target<'a> {
    /// Opens it; a new file gets `mode` less the umask. Opening a FIFO waits for its reader.
    ///
    /// # Errors
    /// When it cannot be written to, or not in the requested way.
    pub(crate) fn open(
        place: TargetPlace<'a>,
        mode: Mode,
        options: &Options,
        systems: &mut FileSystems,
    ) -> Result<Self> {
        let standard = place.folder.is_none() && is_standard_output(place.path);
        let name = if standard { "standard output".to_owned() } else { path_text(place.path) };
        let cannot = |e: Errno| unwritable(&name, e);
        let appends = options.placement == Placement::Append;
        let hold = match (standard, options.placement) {
            (true, Placement::Atomic) => {
                return unsuited(format!("cannot replace {name} atomically; leave out --atomic"));
            }
            (true, Placement::Append) => {
                return unsuited(format!(
                    "cannot append to {name}: it is open already; let the shell do it with >>"
                ));
            }
            (true, _) => {
                open_at_start(rustix::stdio::stdout()).map_err(|e| unwritable(&name, e))?;
                Hold::Standard(rustix::stdio::stdout())
            }
            (false, Placement::Atomic) => fresh(place, &name, mode)?,
            (false, _) => named(place, appends, mode).map_err(|e| match leads_nowhere(place) {
                Some(link) if e.kind() == io::ErrorKind::NotFound => dangling(&name, &link),
                _ => unwritable(&name, e),
            })?,
        };
        let fd = hold.as_fd();
        let stat = fstat(fd).map_err(cannot)?;
        let flags = match &hold {
            Hold::Standard(fd) => fcntl_getfl(fd).map_err(cannot)?,
            _ if appends => OFlags::WRONLY | OFlags::APPEND,
            _ => OFlags::WRONLY,
        };
        let magic = systems.magic(fd, &stat);
        let truncates =
            options.placement == Placement::Truncate && matches!(hold, Hold::Named { .. });
        let (begun, is_emptied) = (Cell::new(false), Cell::new(false));
        let target = Self { hold, stat, flags, magic, place, truncates, begun, is_emptied, name };
        match target.can_append().and_then(|()| target.seek(options.placement)) {
            Ok(()) => Ok(target),
            Err(error) => {
                target.give_up();
                Err(error)
            }
        }
    }

    /// Refuses a device that was opened for appending, by `--append` or by the shell: Linux accepts
    /// the flag and overwrites the device's start all the same.
    fn can_append(&self) -> Result<()> {
        let end = self.end();
        if !end.is_append() || end.kind() != Kind::Block {
            return Ok(());
        }
        unsuited(format!(
            "cannot append to {}: it is a block device, which has no end to append at; name the \
             device, and the offset with --seek",
            self.name
        ))
    }

    /// Goes to where the first byte is to be written.
    fn seek(&self, placement: Placement) -> Result<()> {
        let Placement::At(to) = placement else { return Ok(()) };
        let end = self.end();
        if !matches!(end.kind(), Kind::Regular | Kind::Block) || end.is_append() {
            let what = if end.is_append() { "open for appending" } else { end.kind().name() };
            let what = articled(what);
            return unsuited(format!(
                "cannot seek in {}: it is {what}; leave out --seek",
                self.name
            ));
        }
        let distance = i64::try_from(to).unwrap_or(i64::MAX);
        seek(self.fd(), SeekFrom::Current(distance))
            .map(drop)
            .map_err(|e| CopyError::failed(format!("seek to {} in {}", number(to), self.name), e))
    }

    /// The end that movers see: it is empty already if it will be emptied.
    pub(crate) fn end(&self) -> End<'_> {
        let mut stat = self.stat;
        if self.truncates && Kind::Regular == End::known(self.fd(), &stat, self.flags, 0).kind() {
            stat.st_size = 0;
            stat.st_blocks = 0;
        }
        End::known(self.fd(), &stat, self.flags, self.magic)
    }

    /// The end as found, before any change.
    pub(crate) fn end_as_found(&self) -> End<'_> {
        End::known(self.fd(), &self.stat, self.flags, self.magic)
    }

    /// The descriptor.
    pub(crate) fn fd(&self) -> BorrowedFd<'_> {
        self.hold.as_fd()
    }

    /// The directory that its name is in, open; not for standard output.
    pub(crate) fn folder(&self) -> io::Result<Option<OwnedFd>> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let open = |folder, name: &Path| openat(folder, name, flags, Mode::empty());
        match &self.hold {
            Hold::Standard(_) => Ok(None),
            Hold::Named { .. } => {
                let name = self.place.name.parent().filter(|name| !name.as_os_str().is_empty());
                Ok(Some(open(self.place.folder(), name.unwrap_or(Path::new(".")))?))
            }
            Hold::Fresh(fresh) => Ok(Some(open(fresh.folder(), Path::new("."))?)),
        }
    }

    /// Whether its name is new, or will lead to another file than before.
    pub(crate) fn changes_its_folder(&self) -> bool {
        matches!(self.hold, Hold::Fresh(_) | Hold::Named { made: true, .. })
    }

    /// Whether it is a file that is to end where the copied bytes end.
    pub(crate) fn ends_with_the_copy(&self) -> bool {
        let is_emptied = self.truncates || matches!(self.hold, Hold::Fresh(_));
        is_emptied && self.end().has_true_size()
    }

    /// Whether it has its name only when all has gone well.
    pub(crate) fn is_put_in_place_later(&self) -> bool {
        matches!(self.hold, Hold::Fresh(_))
    }

    /// Whether bytes written to it are gone at once, to a reader.
    pub(crate) fn is_stream(&self) -> bool {
        matches!(self.end().kind(), Kind::Pipe | Kind::Socket)
    }

    /// Whether `--atomic` would have been possible.
    pub(crate) fn may_be_atomic(&self) -> bool {
        matches!(self.hold, Hold::Named { .. })
            && self.truncates
            && self.end().kind() == Kind::Regular
    }

    /// Whether something is in it that [`Target::begin`] will take away.
    pub(crate) fn has_what_goes(&self) -> bool {
        self.truncates
            && !self.begun.get()
            && self.stat.st_size > 0
            && self.end().kind() == Kind::Regular
    }

    /// Whether something would be gone, at once or in the end, if nothing were moved.
    pub(crate) fn replaces_something(&self) -> bool {
        match &self.hold {
            Hold::Fresh(fresh) => fresh.old().is_some_and(|old| old.len() > 0),
            _ => self.has_what_goes(),
        }
    }

    /// A file like it that is removed with the value, to try requests that might be refused.
    ///
    /// # Errors
    /// Why none can be made.
    pub(crate) fn stand_in(&self) -> Result<NewFile, String> {
        let cannot = |e: &io::Error| format!("cannot create a file beside it: {}", message(e));
        // Where a link leads, its file is, and with it the file system to try on.
        let slot = match Place::from(self.place.folder(), self.place.name) {
            Ok(Place::Replace(slot)) => slot,
            Ok(Place::Through(_)) => return Err(cannot(&Errno::STALE.into())),
            Err(error) => return Err(cannot(&error)),
        };
        let file = NewFile::beside(slot, 0o600).map_err(|e| cannot(&e))?;
        let device = fstat(file.file()).map_err(|e| cannot(&e.into()))?.st_dev;
        // A file can be mounted on. File systems of several layers have more numbers than one.
        let system = |fd: BorrowedFd<'_>| fstatvfs(fd).map(|vfs| vfs.f_fsid).ok();
        let is_here = |id: u64| id != 0 && system(self.fd()) == Some(id);
        if device == self.stat.st_dev || system(file.file().as_fd()).is_some_and(is_here) {
            return Ok(file);
        }
        Err("its directory is on another file system".to_owned())
    }

    /// Empties it, when it is to be emptied: from here on the old content is gone.
    ///
    /// # Errors
    /// The kernel's error.
    pub(crate) fn begin(&self) -> Result<()> {
        if self.begun.replace(true) || !self.truncates {
            return Ok(());
        }
        let (end, claims_some) = (self.end(), self.stat.st_size > 0);
        let is_new = matches!(self.hold, Hold::Named { made: true, .. });
        // A file that claims no byte may hold some; what the kernel makes up is not to be emptied.
        let may_have_some = claims_some || end.has_true_size();
        if end.kind() == Kind::Regular && !is_new && may_have_some {
            ftruncate(self.fd(), 0)
                .map_err(|e| CopyError::failed(format!("empty {}", self.name), e))?;
            self.is_emptied.set(claims_some);
        }
        Ok(())
    }

    /// Checks that a device takes what is written: one that is read-only may be opened, and refuses the first write.
    ///
    /// # Errors
    /// It is read-only.
    pub(crate) fn is_writable(&self) -> Result<()> {
        if self.end().kind() != Kind::Block {
            return Ok(());
        }
        let device = fstat(self.fd()).map_err(|e| unwritable(&self.name, e))?.st_rdev;
        let facts = format!("/sys/dev/block/{}:{}/ro", major(device), minor(device));
        match kernel_text(facts) {
            Ok(read_only) if read_only.trim() != "0" => unsuited(format!(
                "cannot write {name}: the device is read-only; {name} is unchanged; see `blockdev --setrw`",
                name = self.name
            )),
            _ => Ok(()),
        }
    }

    /// The state after a failure, with `written` bytes written.
    pub(crate) fn state(&self, written: u64) -> Option<String> {
        let name = &self.name;
        match &self.hold {
            Hold::Fresh(fresh) if fresh.old().is_some() => Some(format!("{name} is unchanged")),
            Hold::Fresh(_) => Some(format!("{name} was not created")),
            Hold::Named { made: true, .. } if written == 0 => None,
            // Its content is the kernel's, whatever was written.
            _ if self.end().kind() != Kind::Block && !self.end().has_true_size() => None,
            _ if written > 0 => Some(format!("{name} is partial")),
            _ if self.is_emptied.get() => Some(format!("{name} is empty now")),
            _ => None,
        }
    }

    /// Closes it, since many file systems write only then, and puts it in place; `written` bytes have reached it.
    ///
    /// # Errors
    /// The written bytes have not arrived; or it could not take its name, or the mode of the file
    /// it replaces.
    pub(crate) fn settle(self, keeps_mode: bool, written: u64) -> Result<()> {
        let has_nothing_to_write = self.is_stream() || self.end().is_null_device();
        let may_be_atomic = self.may_be_atomic();
        let Self { hold, name, .. } = self;
        let failed = |e: io::Error, state: &str| {
            let state = format!("{name} {state}{}", more_room(&e, may_be_atomic));
            unclosed(&name, e, written, &state)
        };
        let fresh = match hold {
            Hold::Standard(_) if has_nothing_to_write => return Ok(()),
            // It is not ours, and may still be written to.
            Hold::Standard(fd) => {
                return close_duplicate(fd).map_err(|e| failed(e, INCOMPLETE));
            }
            Hold::Named { fd, .. } => return close(fd).map_err(|e| failed(e, INCOMPLETE)),
            Hold::Fresh(fresh) => *fresh,
        };
        // A file without a name would be gone with its descriptor.
        let state = if fresh.old().is_some() { "is unchanged" } else { "was not created" };
        close_duplicate(fresh.file().as_fd()).map_err(|e| failed(e, state))?;
        fresh.put(keeps_mode).map_err(|e| {
            let hint = match Errno::from_io_error(&e) {
                Some(Errno::BUSY) => "; it is a mount point: leave out --atomic to write to it",
                _ => "",
            };
            CopyError::failed(format!("put {name} in place"), e).with(hint)
        })
    }

    /// Leaves no file behind that was made and never written to.
    pub(crate) fn give_up(self) {
        let Self { hold: Hold::Named { made: true, fd }, place, .. } = self else { return };
        let file = File::from(fd);
        let Some(own) = file.metadata().ok().filter(|own| own.len() == 0) else { return };
        let Some(name) = place.name.file_name() else { return };
        // Names may lead elsewhere by now: only this file is removed.
        let folder = place.name.parent().filter(|folder| !folder.as_os_str().is_empty());
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let folder = folder.unwrap_or(Path::new("."));
        // The failure that led here is the one to tell.
        if let Ok(folder) = openat(place.folder(), folder, flags, Mode::empty()) {
            let _ = remove_own(folder.as_fd(), name, &own);
        }
    }
}

/// The state of a target whose close reports an error.
const INCOMPLETE: &str = "may be incomplete";

/// `a pipe`, but `open for appending`.
pub(crate) fn articled(what: &str) -> String {
    if what.starts_with("open ") { what.to_owned() } else { format!("a {what}") }
}

/// Opens what has the name, or makes a file. Nothing is made where a symbolic link leads: what is there is an error
/// then, `NOENT`. A link of another user leads only to files of that user.
fn named(place: TargetPlace<'_>, append: bool, mode: Mode) -> io::Result<Hold> {
    let append = if append { OFlags::APPEND } else { OFlags::empty() };
    let flags = OFlags::WRONLY | OFlags::CLOEXEC | OFlags::NOCTTY | append;
    let new = flags | OFlags::CREATE | OFlags::EXCL;
    loop {
        match retry_on_intr(|| openat(place.folder(), place.name, new, mode)) {
            Ok(fd) => return Ok(Hold::Named { fd, made: true }),
            Err(Errno::EXIST) => {}
            Err(errno) => return Err(errno.into()),
        }
        match Place::from(place.folder(), place.name).and_then(|there| there.reopen(flags)) {
            // Another process has just removed it.
            Err(error)
                if error.kind() == io::ErrorKind::NotFound && leads_nowhere(place).is_none() => {}
            answer => return answer.map(|file| Hold::Named { fd: file.into(), made: false }),
        }
    }
}

/// The text of a symbolic link of this name that leads nowhere; `None` when there is none.
fn leads_nowhere(place: TargetPlace<'_>) -> Option<PathBuf> {
    let link = readlinkat(place.folder(), place.name, Vec::new()).ok()?;
    Some(PathBuf::from(OsString::from_vec(link.into_bytes())))
}

/// A symbolic link where a file was to be written.
fn dangling(name: &str, link: &Path) -> CopyError {
    let to = path_text(link);
    CopyError::Unsuited(format!(
        "cannot write {name}: it is a symbolic link to {to}, and there is no such file; name the file itself, or \
         remove the link"
    ))
}

/// Makes a file that will replace what has the name, links followed.
fn fresh(place: TargetPlace<'_>, name: &str, mode: Mode) -> Result<Hold> {
    let cannot = |e: io::Error| unwritable(name, e);
    let slot = match Place::from(place.folder(), place.name).map_err(cannot)? {
        Place::Replace(slot) => slot,
        Place::Through(passage) => {
            let why = match passage.is_mount_point() {
                true => "it is a mount point, whose name no other file can have",
                false => "it is not a regular file",
            };
            return unsuited(format!(
                "cannot replace {name}: {why}; leave out --atomic to write to it"
            ));
        }
    };
    if slot.old().is_none()
        && let Some(link) = leads_nowhere(place)
    {
        return Err(dangling(name, &link));
    }
    if slot.old().is_some() {
        // A rename needs no right to the file it replaces, so ask for it: a file made read-only was
        // made so for a reason.
        accessat(slot.folder(), slot.name(), Access::WRITE_OK, AtFlags::EACCESS)
            .map_err(|e| cannot(e.into()))?;
    }
    let file = NewFile::beside(slot, mode.as_raw_mode()).map_err(cannot)?;
    Ok(Hold::Fresh(Box::new(file)))
}

impl AsFd for Hold {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Standard(fd) => *fd,
            Self::Named { fd, .. } => fd.as_fd(),
            Self::Fresh(fresh) => fresh.file().as_fd(),
        }
    }
}
