//! The association of files with a port.

use std::ffi::OsStr;
use std::mem::MaybeUninit;
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;

use iotomy_sys::epoll::Change;
use iotomy_sys::forks;
use iotomy_sys::private_fd::PrivateFd;
use rustix::fs::inotify::{self, CreateFlags, Reader};
use rustix::io::Errno;

use super::{FileChanges, FileObject, differences, raise, resolve};
use crate::event::{Event, Source};
use crate::port::{Port, READABLE};
use crate::retrieve::Fate;
use crate::shared::{Field, Kind, Locked, Node, State};

impl Port {
    /// Associates a file or directory (`port_associate` with `PORT_SOURCE_FILE`) under a name of the
    /// caller's, which is `Event::object`; or changes the association of that name.
    ///
    /// One event is sent: at once if a time stamp that is of interest differs from the file's, else
    /// with the first change. Changes that come before it is retrieved are part of it. When it is
    /// retrieved the association ends.
    ///
    /// # Errors
    /// `ENOENT` if there is no such file, `EACCES` if it may not be searched for or read, `EINVAL` for
    /// events that there are not, `EAGAIN` if the port or the user has too many.
    pub fn associate_file(
        &self,
        object: usize,
        file: FileObject<'_>,
        wanted: FileChanges,
        user: usize,
    ) -> Result<(), Errno> {
        let locked = self.lock();
        let mut own = self.local.own();
        let files = &mut own.files;
        files.stop(&locked, object);
        let (path, name) = resolve(file.path, wanted.has(FileChanges::NOFOLLOW))?;
        if files.changes.is_none() {
            let changes = inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK);
            let changes = PrivateFd::from(changes.map_err(|_| Errno::AGAIN)?);
            let node = locked.add(Kind::Changes, forks::process_id(), 0)?;
            locked.set_state(node, State::Armed)?;
            self.watch(&locked, node, Change::Add, changes.as_fd(), READABLE)?;
            files.changes = Some(changes);
        }
        let node = locked.add(Kind::File, forks::process_id(), object)?;
        let started = locked.set_state(node, State::Armed);
        let watched = started.and_then(|()| files.start(node, object, path, name, wanted));
        let stamps = match watched {
            Ok(stamps) => stamps,
            Err(error) => {
                files.stop(&locked, object);
                locked.remove(node);
                return Err(error);
            }
        };
        locked.set(node, Field::User, user as u64);
        locked.set(node, Field::Events, 0);
        let known = [file.accessed, file.modified, file.changed];
        raise(&locked, node, differences(&known, &stamps) & wanted);
        self.bell.settle(&self.shared, &locked);
        Ok(())
    }

    /// Ends the association of a file (`port_dissociate` with `PORT_SOURCE_FILE`), with an event that
    /// was not retrieved.
    ///
    /// # Errors
    /// `ENOENT` if this process has not associated it.
    pub fn dissociate_file(&self, object: usize) -> Result<(), Errno> {
        let locked = self.lock();
        let is_stopped = self.local.own().files.stop(&locked, object);
        self.bell.settle(&self.shared, &locked);
        if is_stopped { Ok(()) } else { Err(Errno::NOENT) }
    }

    /// Delivers the event of a file, which ends its association.
    pub(crate) fn deliver_file(&self, locked: &Locked<'_>, node: Node) -> Fate {
        let object = locked.object(node);
        let events = (locked.get(node, Field::Events) as u32).cast_signed();
        let user = locked.get(node, Field::User) as usize;
        if !self.local.own().files.stop(locked, object) {
            locked.remove(node);
            return Fate::Void;
        }
        Fate::Delivered(Event::new(Source::File, events, object, user))
    }

    /// Queues events of the changes that there are, and makes the descriptor ready for others.
    pub(crate) fn read_changes(&self, locked: &Locked<'_>, node: Node) {
        let mut own = self.local.own();
        let files = &mut own.files;
        let Some(changes) = files.changes.take() else {
            locked.remove(node);
            return;
        };
        let mut room = [MaybeUninit::uninit(); 4096];
        let mut reader = Reader::new(changes.as_fd(), &mut room);
        // The last error is that there are no more.
        while let Ok(change) = reader.next() {
            let name = change.file_name().map(|name| OsStr::from_bytes(name.to_bytes()));
            files.note(locked, change.wd(), change.events(), name);
        }
        locked.renew(node);
        // A descriptor of this process' own that is in the set can be changed there.
        let _ = locked.set_state(node, State::Armed);
        let _ = self.watch(locked, node, Change::Modify, changes.as_fd(), READABLE);
        files.changes = Some(changes);
    }
}
