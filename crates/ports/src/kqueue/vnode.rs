//! The filter `VNODE`: what happens to a file that is open, by one `inotify(7)` a queue.
//!
//! The kernel tells that the count of a file's names changed as a change of its attributes, and growth as
//! a write: what it was before is compared with what it is.

use std::collections::HashMap;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd};

use iotomy_sys::epoll::{Change, EpollEvent, epoll_ctl};
use iotomy_sys::measure::{self, FileKind, FileStatus};
use iotomy_sys::private_fd::PrivateFd;
use rustix::fs::inotify::{self, CreateFlags, ReadFlags, Reader, WatchFlags};
use rustix::io::Errno;

use super::kevent::{Kevent, note};
use super::notes::{Note, Notes, Source, Tag};
use super::watched::WatchedFile;
use super::{CHANGES, Kqueue, State, Verdict};
use crate::errno::errno;
use crate::port::READABLE;

/// The files of a queue.
#[derive(Debug, Default)]
pub(super) struct Files {
    changes: Option<PrivateFd>,
    notes: HashMap<i32, Vec<Tag>>,
}

/// What happened to a file, as the kernel has it.
#[derive(Debug, Clone, Copy)]
struct FileChange {
    watch: i32,
    flags: ReadFlags,
    /// Pairs the two halves of a rename.
    cookie: u32,
    /// Whether it is of an entry of the directory that is watched.
    is_of_entry: bool,
}

impl Kqueue {
    /// Watches the file of a new note, or for what else a note is asked for now.
    pub(super) fn watch_file(
        &self,
        files: &mut Files,
        note: &mut Note,
        tag: Tag,
    ) -> Result<(), Errno> {
        let fd = note.descriptor().ok_or(Errno::BADF)?;
        let status = measure::status(fd).map_err(errno)?;
        if matches!(status.kind, FileKind::Socket | FileKind::Pipe) {
            return Err(Errno::INVAL);
        }
        let changes = self.changes(files)?;
        let path = format!("/proc/self/fd/{fd}");
        let watch = inotify::add_watch(changes, path, mask(note.wanted)).map_err(|error| {
            match error {
                // So many files.
                Errno::NOSPC => Errno::NOMEM,
                error => error,
            }
        })?;
        let tags = files.notes.entry(watch).or_default();
        if !tags.contains(&tag) {
            tags.push(tag);
        }
        if !matches!(note.source, Source::File(_)) {
            note.source = Source::File(WatchedFile { watch, last: status, came: 0 });
        }
        Ok(())
    }

    /// The descriptor of changes, which is in the queue's set.
    fn changes<'f>(&self, files: &'f mut Files) -> Result<&'f PrivateFd, Errno> {
        if files.changes.is_none() {
            let new = PrivateFd::from(inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK)?);
            let event = EpollEvent { events: READABLE, data: CHANGES };
            let number = new.as_fd().as_raw_fd();
            epoll_ctl(self.epoll.as_fd(), Change::Add, number, event).map_err(errno)?;
            files.changes = Some(new);
        }
        files.changes.as_ref().ok_or(Errno::BADF)
    }

    /// Takes the changes that the kernel has, and makes notes active.
    pub(super) fn absorb_changes(&self, state: &mut State) {
        let State { files, notes, .. } = state;
        let Some(changes) = &files.changes else { return };
        let mut room = [MaybeUninit::uninit(); 4096];
        let mut reader = Reader::new(changes.as_fd(), &mut room);
        // The first half of a rename, until the second one follows or does not.
        let mut half: Option<FileChange> = None;
        // The last error is that there are no more.
        while let Ok(change) = reader.next() {
            let change = FileChange {
                watch: change.wd(),
                flags: change.events(),
                cookie: change.cookie(),
                is_of_entry: change.file_name().is_some(),
            };
            let is_second =
                |first: &FileChange| first.watch == change.watch && first.cookie == change.cookie;
            let is_within =
                change.flags.contains(ReadFlags::MOVED_TO) && half.as_ref().is_some_and(is_second);
            if let Some(first) = half.take().filter(|_| !is_within) {
                files.note(notes, first, false);
            }
            if change.flags.contains(ReadFlags::MOVED_FROM) {
                half = Some(change);
            } else {
                files.note(notes, change, is_within);
            }
        }
        if let Some(first) = half {
            files.note(notes, first, false);
        }
    }
}

impl Files {
    /// Watches a file no longer for a note.
    pub(super) fn end(&mut self, file: &WatchedFile, tag: Tag) {
        let Some(tags) = self.notes.get_mut(&file.watch) else { return };
        tags.retain(|other| *other != tag);
        if tags.is_empty() {
            self.notes.remove(&file.watch);
            if let Some(changes) = &self.changes {
                // Fails if the kernel has dropped it with its file.
                let _ = inotify::remove_watch(changes, file.watch);
            }
        }
    }

    /// Tells the notes of a file what happened to it; all of them if the kernel had no room to say more.
    fn note(&self, notes: &mut Notes, change: FileChange, is_within: bool) {
        let is_overflow = change.flags.contains(ReadFlags::QUEUE_OVERFLOW);
        let of_file = self.notes.get(&change.watch).into_iter().flatten();
        let of_all = self.notes.values().flatten().filter(|_| is_overflow);
        for tag in of_file.chain(of_all) {
            let Some(note) = notes.get(*tag) else { continue };
            let fd = note.descriptor();
            let Source::File(file) = &mut note.source else { continue };
            let now = fd.and_then(|fd| measure::status(fd).ok());
            // The number may be another file's by now.
            let now = now.filter(|now| now.identity == file.last.identity).unwrap_or(file.last);
            let events = match (is_overflow, change.is_of_entry) {
                (true, _) => differences(&file.last, &now),
                (_, true) => of_entry(change.flags, is_within),
                (_, false) => of_itself(change.flags, &file.last, &now),
            };
            file.last = now;
            file.came |= events & note.wanted;
            if file.came != 0 {
                notes.activate(*tag);
            }
        }
    }
}

pub(super) fn ask(note: &mut Note) -> Verdict {
    let is_cleared = note.has(super::flag::CLEAR);
    let event = note.event;
    let Source::File(file) = &mut note.source else { return Verdict::Nothing };
    if file.came == 0 {
        return Verdict::Nothing;
    }
    let fflags = file.came;
    if is_cleared {
        file.came = 0;
    }
    Verdict::Event(Kevent { fflags, ..event })
}

/// What the kernel is asked for.
fn mask(wanted: u32) -> WatchFlags {
    let entries = WatchFlags::CREATE | WatchFlags::DELETE | WatchFlags::MOVE;
    let asked = [
        (note::DELETE, WatchFlags::ATTRIB | WatchFlags::DELETE_SELF),
        (note::LINK, WatchFlags::ATTRIB | entries),
        (note::ATTRIB, WatchFlags::ATTRIB | WatchFlags::MODIFY),
        (note::WRITE | note::EXTEND, WatchFlags::MODIFY | entries),
        (note::RENAME, WatchFlags::MOVE_SELF),
        (note::OPEN, WatchFlags::OPEN),
        (note::CLOSE, WatchFlags::CLOSE_NOWRITE),
        (note::CLOSE_WRITE, WatchFlags::CLOSE_WRITE),
        (note::READ, WatchFlags::ACCESS),
    ];
    // A file can have notes by several descriptors. One that is asked for nothing must be asked for something.
    let least = WatchFlags::MASK_ADD | WatchFlags::DELETE_SELF;
    let asked = asked.into_iter().filter(|(bits, _)| wanted & bits != 0);
    asked.fold(least, |mask, (_, flags)| mask | flags)
}

/// What happened to a directory whose entry was made, removed or renamed.
fn of_entry(flags: ReadFlags, is_within: bool) -> u32 {
    let renamed = ReadFlags::MOVED_FROM | ReadFlags::MOVED_TO;
    if !flags.intersects(renamed | ReadFlags::CREATE | ReadFlags::DELETE) {
        return 0;
    }
    let mut events = note::WRITE;
    if flags.contains(ReadFlags::ISDIR) && !is_within {
        events |= note::LINK;
    }
    if flags.intersects(renamed) && !is_within {
        events |= note::EXTEND;
    }
    events
}

/// What happened to a file or directory itself.
fn of_itself(flags: ReadFlags, before: &FileStatus, now: &FileStatus) -> u32 {
    let mut events = 0;
    if flags.contains(ReadFlags::MODIFY) {
        events |= note::WRITE | of_size(before, now);
    }
    if flags.contains(ReadFlags::ATTRIB) {
        let of_links = of_links(before, now);
        let is_other = of_links == 0 || before.access != now.access;
        events |= of_links | if is_other { note::ATTRIB } else { 0 };
    }
    let told = [
        (ReadFlags::DELETE_SELF, note::DELETE),
        (ReadFlags::MOVE_SELF, note::RENAME),
        (ReadFlags::UNMOUNT, note::REVOKE),
        (ReadFlags::OPEN, note::OPEN),
        (ReadFlags::CLOSE_NOWRITE, note::CLOSE),
        (ReadFlags::CLOSE_WRITE, note::CLOSE_WRITE),
        (ReadFlags::ACCESS, note::READ),
    ];
    let told = told.into_iter().filter(|(flag, _)| flags.contains(*flag));
    told.fold(events, |events, (_, bit)| events | bit)
}

fn differences(before: &FileStatus, now: &FileStatus) -> u32 {
    let of_access = if before.access == now.access { 0 } else { note::ATTRIB };
    let of_contents = if before.size == now.size { 0 } else { note::WRITE };
    of_access | of_contents | of_size(before, now) | of_links(before, now)
}

/// A file that becomes shorter has other attributes: FreeBSD tells of truncation so.
fn of_size(before: &FileStatus, now: &FileStatus) -> u32 {
    match now.size.cmp(&before.size) {
        std::cmp::Ordering::Greater => note::EXTEND,
        std::cmp::Ordering::Less => note::ATTRIB,
        std::cmp::Ordering::Equal => 0,
    }
}

fn of_links(before: &FileStatus, now: &FileStatus) -> u32 {
    match now.links.cmp(&before.links) {
        std::cmp::Ordering::Greater => note::LINK,
        std::cmp::Ordering::Less => note::DELETE,
        std::cmp::Ordering::Equal => 0,
    }
}
