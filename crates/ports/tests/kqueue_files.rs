//! What the filter `VNODE` of a queue tells of files and directories.

use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{Read, Write, pipe};
use std::os::fd::AsRawFd;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::Duration;

use iotomy_ports::{Closes, Errno, Kevent, Kqueue, filter, flag, note};

const NOW: Option<Duration> = Some(Duration::ZERO);
const ALL: u32 = 0x7ff;

fn change(fd: &impl AsRawFd, flags: u16, fflags: u32) -> Kevent {
    let ident = fd.as_raw_fd() as usize;
    Kevent { ident, filter: filter::VNODE, flags, fflags, ..Kevent::default() }
}

fn put(queue: &Kqueue, change: Kevent) -> Result<usize, Errno> {
    queue.kevent(&[change], 0, None, |_| ())
}

/// A queue that watches a file for some of what happens to it.
fn watching(file: &File, fflags: u32) -> Kqueue {
    let queue = Kqueue::new(Closes::Checked).unwrap();
    assert_eq!(put(&queue, change(file, flag::ADD | flag::CLEAR, fflags)), Ok(0));
    queue
}

fn take(queue: &Kqueue) -> Vec<Kevent> {
    let mut events = Vec::new();
    let got = queue.kevent(&[], 8, NOW, |event| events.push(event));
    assert_eq!(got, Ok(events.len()));
    events
}

/// What the queue tells of its one file now: inotify tells before the call returns that it is of.
fn told(queue: &Kqueue) -> u32 {
    let events = take(queue);
    assert!(events.len() <= 1, "{events:?}");
    events.first().map_or(0, |event| event.fflags)
}

fn file(folder: &Path, text: &str) -> File {
    fs::write(folder.join("file"), text).unwrap();
    OpenOptions::new().read(true).write(true).open(folder.join("file")).unwrap()
}

#[test]
fn writes_are_told_with_growth_and_truncation() {
    let folder = tempfile::tempdir().unwrap();
    let mut file = file(folder.path(), "four");
    let queue = watching(&file, note::WRITE | note::EXTEND | note::ATTRIB);
    assert_eq!(told(&queue), 0);
    file.write_all(b"FOUR").unwrap();
    assert_eq!(told(&queue), note::WRITE);
    file.write_all(b"more").unwrap();
    assert_eq!(told(&queue), note::WRITE | note::EXTEND);
    file.set_len(1).unwrap();
    assert_eq!(told(&queue), note::WRITE | note::ATTRIB);
    assert_eq!(told(&queue), 0);
}

#[test]
fn names_are_told_apart_from_attributes() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let file = file(folder.path(), "");
    let queue = watching(&file, note::LINK | note::DELETE | note::RENAME | note::ATTRIB);
    fs::hard_link(path("file"), path("second")).unwrap();
    assert_eq!(told(&queue), note::LINK);
    fs::remove_file(path("second")).unwrap();
    assert_eq!(told(&queue), note::DELETE);
    file.set_permissions(Permissions::from_mode(0o600)).unwrap();
    assert_eq!(told(&queue), note::ATTRIB);
    fs::rename(path("file"), path("other")).unwrap();
    assert_eq!(told(&queue), note::RENAME);
    fs::write(path("third"), "").unwrap();
    fs::rename(path("third"), path("other")).unwrap();
    assert_eq!(told(&queue), note::DELETE, "its last name was given to another file");
}

#[test]
fn opens_reads_and_closes_are_told() {
    let folder = tempfile::tempdir().unwrap();
    let file = file(folder.path(), "text");
    let queue = watching(&file, note::OPEN | note::READ | note::CLOSE | note::CLOSE_WRITE);
    let mut reader = File::open(folder.path().join("file")).unwrap();
    assert_eq!(told(&queue), note::OPEN);
    reader.read_exact(&mut [0; 4]).unwrap();
    assert_eq!(told(&queue), note::READ);
    drop(reader);
    assert_eq!(told(&queue), note::CLOSE);
    drop(OpenOptions::new().append(true).open(folder.path().join("file")).unwrap());
    assert_eq!(told(&queue), note::OPEN | note::CLOSE_WRITE);
}

#[test]
fn entries_of_a_directory_are_told() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    fs::create_dir(path("watched")).unwrap();
    let directory = File::open(path("watched")).unwrap();
    let queue = watching(&directory, note::WRITE | note::EXTEND | note::LINK);
    fs::write(path("watched/entry"), "").unwrap();
    assert_eq!(told(&queue), note::WRITE);
    fs::write(path("watched/entry"), "text").unwrap();
    assert_eq!(told(&queue), 0, "what is written is the entry's");
    fs::create_dir(path("watched/folder")).unwrap();
    assert_eq!(told(&queue), note::WRITE | note::LINK);
    fs::remove_dir(path("watched/folder")).unwrap();
    assert_eq!(told(&queue), note::WRITE | note::LINK);
    fs::rename(path("watched/entry"), path("watched/other")).unwrap();
    assert_eq!(told(&queue), note::WRITE, "it stays in the directory");
    fs::rename(path("watched/other"), path("away")).unwrap();
    assert_eq!(told(&queue), note::WRITE | note::EXTEND);
    fs::rename(path("away"), path("watched/back")).unwrap();
    assert_eq!(told(&queue), note::WRITE | note::EXTEND);
    fs::remove_file(path("watched/back")).unwrap();
    assert_eq!(told(&queue), note::WRITE);
}

#[test]
fn only_what_is_asked_for_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let mut file = file(folder.path(), "");
    let queue = watching(&file, note::ATTRIB);
    file.write_all(b"more").unwrap();
    assert_eq!(told(&queue), 0);
    assert_eq!(put(&queue, change(&file, flag::ADD | flag::CLEAR, note::WRITE)), Ok(0));
    file.set_permissions(Permissions::from_mode(0o600)).unwrap();
    assert_eq!(told(&queue), 0);
    file.write_all(b"more").unwrap();
    assert_eq!(told(&queue), note::WRITE);
}

#[test]
fn without_clear_what_happened_stays() {
    let folder = tempfile::tempdir().unwrap();
    let mut file = file(folder.path(), "");
    let queue = Kqueue::new(Closes::Checked).unwrap();
    assert_eq!(put(&queue, change(&file, flag::ADD, ALL)), Ok(0));
    file.write_all(b"more").unwrap();
    for _ in 0..2 {
        assert_eq!(told(&queue), note::WRITE | note::EXTEND);
    }
    assert_eq!(put(&queue, change(&file, flag::DELETE, 0)), Ok(0));
    assert_eq!(told(&queue), 0);
}

#[test]
fn one_file_has_notes_by_several_descriptors_and_in_several_queues() {
    let folder = tempfile::tempdir().unwrap();
    let mut first = file(folder.path(), "");
    let second = File::open(folder.path().join("file")).unwrap();
    let queue = watching(&first, note::WRITE);
    let other = watching(&second, note::ATTRIB | note::EXTEND);
    assert_eq!(put(&queue, change(&second, flag::ADD | flag::CLEAR, note::EXTEND)), Ok(0));
    first.write_all(b"more").unwrap();
    let mut told_of: Vec<_> = take(&queue).iter().map(|event| event.fflags).collect();
    told_of.sort_unstable();
    assert_eq!(told_of, [note::WRITE, note::EXTEND]);
    assert_eq!(told(&other), note::EXTEND);
    // The other one's note stays when a descriptor is closed.
    drop(second);
    first.write_all(b"more").unwrap();
    assert_eq!(told(&queue), note::WRITE);
    assert_eq!(told(&other), 0);
}

#[test]
fn a_descriptor_that_is_reused_has_no_note() {
    let folder = tempfile::tempdir().unwrap();
    let watched = file(folder.path(), "");
    let queue = watching(&watched, ALL);
    drop(watched);
    // The lowest free number, unless other tests open files at the same time; then it is that of one of theirs.
    let _other = File::open("/dev/null").unwrap();
    fs::write(folder.path().join("file"), "text").unwrap();
    assert_eq!(told(&queue), 0);
}

#[test]
fn a_disabled_note_collects_and_a_oneshot_note_ends() {
    let folder = tempfile::tempdir().unwrap();
    let mut file = file(folder.path(), "");
    let queue = watching(&file, note::WRITE);
    assert_eq!(put(&queue, change(&file, flag::DISABLE, note::WRITE)), Ok(0));
    file.write_all(b"more").unwrap();
    assert_eq!(told(&queue), 0);
    assert_eq!(put(&queue, change(&file, flag::ENABLE, note::WRITE)), Ok(0));
    assert_eq!(told(&queue), note::WRITE);
    assert_eq!(put(&queue, change(&file, flag::DELETE, 0)), Ok(0));
    assert_eq!(put(&queue, change(&file, flag::ADD | flag::ONESHOT, note::WRITE)), Ok(0));
    file.write_all(b"more").unwrap();
    assert_eq!(told(&queue), note::WRITE);
    file.write_all(b"more").unwrap();
    assert_eq!(told(&queue), 0);
    assert_eq!(put(&queue, change(&file, flag::DELETE, 0)), Err(Errno::NOENT));
}

#[test]
fn what_is_no_file_is_refused() {
    let queue = Kqueue::new(Closes::Checked).unwrap();
    let (reader, _writer) = pipe().unwrap();
    assert_eq!(put(&queue, change(&reader, flag::ADD, ALL)), Err(Errno::INVAL));
    let (socket, _other) = std::os::unix::net::UnixStream::pair().unwrap();
    assert_eq!(put(&queue, change(&socket, flag::ADD, ALL)), Err(Errno::INVAL));
}
