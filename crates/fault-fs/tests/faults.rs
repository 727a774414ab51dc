//! The file system behaves like others, fails only where a fault is requested, and leaves nothing behind.

#![allow(clippy::unwrap_used, reason = "a test fails by it")]

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::fd::{AsFd, IntoRawFd};
use std::os::unix::fs::{FileExt, MetadataExt, symlink};
use std::path::Path;

use iotomy_fault_fs::{Fault, FaultFs, Operation};
use iotomy_sys::crew::Crew;
use iotomy_test_requirements::{Need, skip};
use rustix::fs::{
    AtFlags, CWD, FallocateFlags, Mode, OFlags, SeekFrom, copy_file_range, fallocate, linkat, seek,
};
use rustix::io::Errno;

/// Mounts the file system; returns `None`, and reports the skip, if that is not possible here.
fn mount(files: &[(&str, &[u8])], faults: &[Fault]) -> Option<FaultFs> {
    FaultFs::mount(files, faults).map_err(|reason| skip(Need::Fuse, &reason)).ok()
}

/// Returns the error of a call that must fail.
fn errno<T>(answer: io::Result<T>) -> Option<Errno> {
    answer.err().and_then(|e| Errno::from_io_error(&e))
}

fn close(file: File) -> io::Result<()> {
    nix::unistd::close(file.into_raw_fd()).map_err(io::Error::from)
}

#[test]
fn files_hold_what_was_written_to_them() {
    let content: Vec<u8> = (0..300_000_u32).map(|n| (n % 251) as u8).collect();
    let Some(mounted) = mount(&[("a", &content)], &[]) else { return };
    assert_eq!(fs::read(mounted.path("a")).unwrap(), content);
    fs::copy(mounted.path("a"), mounted.path("b")).unwrap();
    OpenOptions::new().append(true).open(mounted.path("b")).unwrap().write_all(b"end").unwrap();
    assert_eq!(fs::read(mounted.path("b")).unwrap(), [&content[..], b"end"].concat());
    fs::create_dir(mounted.path("d")).unwrap();
    fs::rename(mounted.path("b"), mounted.path("d/b")).unwrap();
    symlink("d/b", mounted.path("l")).unwrap();
    assert_eq!(fs::metadata(mounted.path("l")).unwrap().len(), 300_003);
    let file = OpenOptions::new().write(true).open(mounted.path("d/b")).unwrap();
    file.set_len(7).unwrap();
    file.sync_all().unwrap();
    close(file).unwrap();
    assert_eq!(fs::read(mounted.path("l")).unwrap(), content[..7]);
    let tmpfile = OFlags::TMPFILE | OFlags::RDWR;
    let nameless = rustix::fs::open(mounted.folder(), tmpfile, Mode::RUSR | Mode::WUSR).unwrap();
    rustix::io::write(&nameless, b"it had no name").unwrap();
    let its_name = format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&nameless));
    linkat(CWD, its_name, CWD, mounted.path("n"), AtFlags::SYMLINK_FOLLOW).unwrap();
    assert_eq!(fs::read(mounted.path("n")).unwrap(), b"it had no name");
    let names = |folder: &Path| {
        let entries = fs::read_dir(folder).unwrap();
        let mut names: Vec<_> = entries.map(|e| e.unwrap().file_name()).collect();
        names.sort();
        names
    };
    assert_eq!(names(mounted.folder()), ["a", "d", "l", "n"]);
    assert_eq!(errno(fs::remove_dir(mounted.path("d"))), Some(Errno::NOTEMPTY));
    fs::remove_file(mounted.path("d/b")).unwrap();
    fs::remove_dir(mounted.path("d")).unwrap();
    assert_eq!(names(mounted.folder()), ["a", "l", "n"]);
}

#[test]
fn each_operation_fails_on_the_file_it_was_told_to_fail_on_and_on_no_other() {
    let faults = [
        Fault::on("bad", Operation::Read(8192), Errno::IO),
        Fault::on("bad", Operation::Write(20_000), Errno::NOSPC),
        Fault::on("bad", Operation::Fsync, Errno::DQUOT),
        Fault::on("bad", Operation::Close, Errno::STALE),
        Fault::on("bad", Operation::Seek, Errno::NXIO),
        Fault::on("bad", Operation::Truncate, Errno::PERM),
        Fault::on("new", Operation::Make, Errno::ROFS),
        Fault::on("new", Operation::Rename, Errno::XDEV),
    ];
    let content = [7; 12_288];
    let Some(mounted) = mount(&[("bad", &content), ("good", &content)], &faults) else { return };
    for (name, bad) in [("good", false), ("bad", true)] {
        let expected = |errno| bad.then_some(errno);
        let file = OpenOptions::new().read(true).write(true).open(mounted.path(name)).unwrap();
        let mut page = [0; 4096];
        file.read_exact_at(&mut page, 4096).unwrap();
        assert_eq!(errno(file.read_exact_at(&mut page, 8192)), expected(Errno::IO));
        file.write_all_at(&page, 12_288).unwrap();
        assert_eq!(errno(file.write_all_at(&[1; 2], 19_999)), expected(Errno::NOSPC));
        let room = fallocate(&file, FallocateFlags::empty(), 16_384, 4096);
        assert_eq!(room.err(), expected(Errno::NOSPC));
        assert_eq!(errno(file.sync_all()), expected(Errno::DQUOT));
        assert_eq!(seek(&file, SeekFrom::Hole(0)).err(), expected(Errno::NXIO));
        assert_eq!(errno(file.set_len(1)), expected(Errno::PERM));
        assert_eq!(errno(close(file)), expected(Errno::STALE));
    }
    assert_eq!(errno(File::create(mounted.path("new"))), Some(Errno::ROFS));
    assert_eq!(errno(fs::rename(mounted.path("good"), mounted.path("new"))), Some(Errno::XDEV));
    fs::rename(mounted.path("good"), mounted.path("newer")).unwrap();
    for (place, fault) in faults.iter().enumerate() {
        assert!(mounted.times(place) > 0, "{fault:?} never happened");
    }
}

#[test]
fn a_fault_of_every_file_is_one_of_those_without_a_name_too() {
    for fault in [
        Fault::everywhere(Operation::Write(0), Errno::NOSPC),
        Fault::elsewhere("a", Operation::Write(0), Errno::NOSPC),
    ] {
        let Some(mounted) = mount(&[("a", b"")], std::slice::from_ref(&fault)) else { return };
        let file = tempfile::tempfile_in(mounted.folder()).unwrap();
        assert_eq!(errno((&file).write(b"x")), Some(Errno::NOSPC));
        assert_eq!(mounted.times(0), 1);
        let named = fs::write(mounted.path("a"), "x");
        assert_eq!(named.is_ok(), fault.elsewhere);
    }
}

#[test]
fn copies_inside_the_kernel_end_without_an_error_where_they_are_told_to() {
    let faults = [Fault::silent("a", Operation::CopyRange(200_000))];
    let Some(mounted) = mount(&[("a", &[1; 300_000])], &faults) else { return };
    let (source, target) = (File::open(mounted.path("a")), File::create(mounted.path("b")));
    let (source, target) = (source.unwrap(), target.unwrap());
    let mut moved = 0;
    while let more @ 1.. = copy_file_range(&source, None, &target, None, 1 << 20).unwrap() {
        moved += more;
    }
    assert!((200_000..300_000).contains(&moved), "{moved}");
    assert_eq!(target.metadata().unwrap().size(), moved as u64);
}

#[test]
fn nobody_else_sees_it_and_nothing_is_left_of_it() {
    let Some(mounted) = mount(&[("a", b"a")], &[]) else { return };
    let folder = mounted.folder().to_owned();
    let is_mounted = |process: &str| {
        let mounts = fs::read_to_string(format!("/proc/{process}/mounts")).unwrap();
        mounts.contains(folder.to_str().unwrap())
    };
    assert!(is_mounted("thread-self"));
    assert!(!is_mounted(&std::os::unix::process::parent_id().to_string()));
    // This also holds with a file that is still open.
    let open = File::open(mounted.path("a")).unwrap();
    drop(mounted);
    assert!(!is_mounted("thread-self") && !folder.exists());
    assert_eq!(errno(open.metadata()), Some(Errno::NOTCONN));
}

#[test]
fn a_killed_process_leaves_no_server_and_no_mount() {
    let user = Crew::start(1, &|_, mut line| {
        if let Ok(mounted) = FaultFs::mount(&[("a", b"a")], &[]) {
            let path = mounted.path("a");
            let root = format!("/proc/{}/root{}\0", std::process::id(), path.display());
            let _ = line.write_all(root.as_bytes());
            // Blocks until this process is killed.
            let _ = line.read(&mut [0]);
        }
    });
    let user = user.unwrap();
    let mut path = Vec::new();
    BufReader::new(&user.lines()[0]).read_until(0, &mut path).unwrap();
    path.pop();
    let path = String::from_utf8(path).unwrap();
    if path.is_empty() {
        return skip(Need::Fuse, "no FUSE here, or not for this user");
    }
    let file = File::open(&path).unwrap();
    assert!(rustix::fs::fstat(file.as_fd()).is_ok());
    drop(user);
    assert!(!Path::new(&path).exists());
    // The kernel ends the server as soon as it has ended the process.
    iotomy_test_requirements::wait::until("the server has ended", || file.metadata().is_err());
    assert_eq!(errno(file.metadata()), Some(Errno::NOTCONN));
}
