//! Sources and targets that are no plain files or streams, large ones, and what figures say of them.

use crate::support;

use std::fs::{File, OpenOptions};
use std::io::{Read, Seek, SeekFrom, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt;
use std::os::unix::net::UnixStream;
use std::sync::atomic::AtomicU64;

use iotomy_movers::{End, Job, MOVERS, Mover, Outcome, Probe, Reflink, chooser};
use iotomy_test_requirements::{Need, skip};

use support::ends::{self, From, TargetKind};
use support::{content, difference, folders, job, moves, name, position};

fn movers() -> impl Iterator<Item = &'static dyn Mover> {
    MOVERS.iter().copied().filter(|mover| moves(*mover))
}

#[test]
fn declarations_are_whole_and_names_are_unique() {
    for mover in MOVERS {
        let declaration = mover.declaration();
        assert!(!declaration.summary.is_empty() && !declaration.description.is_empty());
        let found = iotomy_movers::mover(declaration.name).unwrap();
        assert_eq!(found.declaration().summary, declaration.summary);
        println!("{}: {:?}", declaration.name, mover.probe());
        if let Probe::Unsupported(reason) = mover.probe() {
            assert!(!reason.is_empty());
        }
    }
}

#[test]
fn a_device_without_end_gives_what_was_asked_for() {
    let folder = folders::here();
    for mover in movers() {
        for to in [TargetKind::File, TargetKind::Pipe, TargetKind::Unix, TargetKind::Null] {
            let label = format!("{} to {to:?}", name(mover));
            let source = File::open("/dev/zero").unwrap();
            let target = ends::target(to, folder.path());
            let progress = AtomicU64::new(0);
            let job = Job { count: Some(300_001), ..job(&progress) };
            let (from, into) = (End::new(&source).unwrap(), End::new(&target.fd).unwrap());
            if mover.serves(&from, &into, &job).is_err() {
                continue;
            }
            let outcome = mover.run(&from, &into, &job).unwrap_or_else(|e| panic!("{label}: {e}"));
            let wanted = match outcome {
                Outcome::Done(moved) => {
                    assert_eq!(moved.bytes, 300_001, "{label}");
                    300_001
                }
                Outcome::Refused { .. } => 0,
            };
            if let Some(got) = target.content() {
                assert_eq!(difference(&got, &vec![0; wanted]), None, "{label}");
            }
        }
    }
}

#[test]
fn a_file_made_up_when_it_is_read_is_moved_whole_or_refused() {
    let folder = folders::here();
    let expected = std::fs::read("/proc/version").unwrap();
    for mover in movers() {
        for to in [TargetKind::File, TargetKind::Append, TargetKind::Pipe, TargetKind::Unix] {
            let label = format!("{} to {to:?}", name(mover));
            let source = File::open("/proc/version").unwrap();
            let target = ends::target(to, folder.path());
            let progress = AtomicU64::new(0);
            let job = job(&progress);
            let (from, into) = (End::new(&source).unwrap(), End::new(&target.fd).unwrap());
            let moved: &[u8] = match mover.serves(&from, &into, &job) {
                Err(_) => &[],
                Ok(()) => match mover.run(&from, &into, &job) {
                    Ok(Outcome::Done(moved)) => {
                        assert_eq!(moved.bytes, expected.len() as u64, "{label}");
                        &expected
                    }
                    Ok(Outcome::Refused { .. }) => &[],
                    Err(e) => panic!("{label}: {e}"),
                },
            };
            assert_eq!(position(&source), Some(moved.len() as u64), "{label}");
            assert_eq!(target.content(), ends::expected(to, moved), "{label}");
        }
    }
}

#[test]
fn a_directory_is_refused_or_an_error() {
    let folder = folders::here();
    for mover in movers() {
        for to in [TargetKind::File, TargetKind::Pipe] {
            let source = File::open(folder.path()).unwrap();
            let target = ends::target(to, folder.path());
            let progress = AtomicU64::new(0);
            let job = job(&progress);
            let (from, into) = (End::new(&source).unwrap(), End::new(&target.fd).unwrap());
            if mover.serves(&from, &into, &job).is_ok() {
                let error = mover.run(&from, &into, &job).unwrap_err();
                assert_eq!(error.source.kind(), std::io::ErrorKind::IsADirectory);
                assert_eq!((error.moved.bytes, error.lost), (0, 0));
            }
            assert_eq!(target.content(), Some(Vec::new()));
        }
    }
}

#[test]
fn the_same_bytes_of_the_same_file_are_refused_by_all() {
    let folder = folders::here();
    let path = folder.path().join("same");
    std::fs::write(&path, content(100_000)).unwrap();
    let progress = AtomicU64::new(0);
    for append in [false, true] {
        let source = File::open(&path).unwrap();
        let target = OpenOptions::new().write(true).append(append).open(&path).unwrap();
        let (from, into) = (End::new(&source).unwrap(), End::new(&target).unwrap());
        for mover in movers() {
            assert!(mover.serves(&from, &into, &job(&progress)).is_err(), "{}", name(mover));
        }
    }
    // Apart by a count, they are two pieces of a file like others.
    for mover in movers() {
        let source = File::open(&path).unwrap();
        let mut target = OpenOptions::new().write(true).open(&path).unwrap();
        target.seek(SeekFrom::Start(49_152)).unwrap();
        let (from, into) = (End::new(&source).unwrap(), End::new(&target).unwrap());
        let job = Job { count: Some(40_960), ..job(&progress) };
        if mover.serves(&from, &into, &job).is_err() {
            continue;
        }
        if let Outcome::Done(moved) = mover.run(&from, &into, &job).unwrap() {
            assert_eq!(moved.bytes, 40_960, "{}", name(mover));
            let all = std::fs::read(&path).unwrap();
            assert_eq!(difference(&all[..40_960], &all[49_152..90_112]), None, "{}", name(mover));
        }
    }
}

#[test]
fn more_than_one_call_can_move_is_moved() {
    const SIZE: u64 = (2 << 30) + 1;
    // Holes are copied as zeros there, which take room.
    let Some(folder) = folders::memory_for(SIZE + (64 << 20)) else {
        return skip(Need::Machine, "no 2 GiB of memory for files");
    };
    let path = folder.path().join("large");
    let large = OpenOptions::new().write(true).read(true).create_new(true).open(&path).unwrap();
    large.set_len(SIZE).unwrap();
    large.write_all_at(b"begin", 0).unwrap();
    large.write_all_at(b"x", SIZE - 1).unwrap();
    for (wanted, to) in [
        ("sendfile", "/dev/null"),
        ("splice", "/dev/null"),
        ("io-uring", "/dev/null"),
        ("mmap-write", "/dev/null"),
        ("copy-file-range", "copy"),
    ] {
        let mover = iotomy_movers::mover(wanted).unwrap();
        let source = File::open(&path).unwrap();
        let target = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(true)
            .open(folder.path().join(to))
            .unwrap();
        let progress = AtomicU64::new(0);
        let job = Job::new(&progress);
        let (from, into) = (End::new(&source).unwrap(), End::new(&target).unwrap());
        mover.serves(&from, &into, &job).unwrap();
        let Outcome::Done(moved) = mover.run(&from, &into, &job).unwrap() else {
            println!("{wanted}: refused");
            continue;
        };
        assert_eq!(moved.bytes, SIZE, "{wanted}");
        assert_eq!(position(&source), Some(SIZE), "{wanted}");
        if to == "copy" {
            assert_eq!(target.metadata().unwrap().len(), SIZE);
            let copy = File::open(folder.path().join(to)).unwrap();
            let mut end = [1; 5];
            copy.read_exact_at(&mut end, SIZE - 5).unwrap();
            assert_eq!(&end, b"\0\0\0\0x");
        }
    }
}

#[test]
fn by_value_means_that_later_writes_do_not_show_through() {
    let folder = folders::here();
    let before = content(50_000);
    for mover in movers() {
        let source = ends::source(From::File(0), &before, folder.path());
        let (mut out, into) = std::io::pipe().unwrap();
        let progress = AtomicU64::new(0);
        let job = Job { by_value: true, ..job(&progress) };
        let (from, to) = (End::new(&source.fd).unwrap(), End::new(&into).unwrap());
        if mover.serves(&from, &to, &job).is_err() {
            continue;
        }
        let Outcome::Done(_) = mover.run(&from, &to, &job).unwrap() else { continue };
        let writer = OpenOptions::new().write(true).open(folder.path().join("source")).unwrap();
        writer.write_all_at(&[0; 50_000], 0).unwrap();
        drop(into);
        let mut got = Vec::new();
        out.read_to_end(&mut got).unwrap();
        assert_eq!(difference(&got, &before), None, "{}", name(mover));
    }
}

#[test]
fn by_value_holds_for_pages_that_a_pipe_or_socket_was_given() {
    let folder = folders::here();
    let before = content(10_000);
    let path = folder.path().join("shared");
    for (mover, by_socket) in movers().flat_map(|mover| [(mover, false), (mover, true)]) {
        std::fs::write(&path, &before).unwrap();
        let file = File::open(&path).unwrap();
        // What is between the file and the mover holds references to the file's pages.
        let (given, giving): (OwnedFd, OwnedFd) = if by_socket {
            UnixStream::pair().map(|(a, b)| (a.into(), b.into())).unwrap()
        } else {
            std::io::pipe().map(|(a, b)| (a.into(), b.into())).unwrap()
        };
        assert_eq!(rustix::fs::sendfile(&giving, &file, None, 10_000).unwrap(), 10_000);
        drop(giving);
        let (mut out, into) = std::io::pipe().unwrap();
        let progress = AtomicU64::new(0);
        let job = Job { by_value: true, ..job(&progress) };
        let (from, to) = (End::new(&given).unwrap(), End::new(&into).unwrap());
        if mover.serves(&from, &to, &job).is_err() {
            continue;
        }
        let Outcome::Done(_) = mover.run(&from, &to, &job).unwrap() else { continue };
        let writer = OpenOptions::new().write(true).open(&path).unwrap();
        writer.write_all_at(&[0; 10_000], 0).unwrap();
        drop(into);
        let mut got = Vec::new();
        out.read_to_end(&mut got).unwrap();
        assert_eq!(difference(&got, &before), None, "{}, socket: {by_socket}", name(mover));
    }
}

#[test]
fn figures_say_what_was_referenced_copied_and_touched() {
    let folder = folders::memory().unwrap_or_else(folders::here);
    const N: u64 = 10_000;
    for (wanted, from, to, figures) in [
        ("read-write", From::File(0), TargetKind::File, (0, 2 * N, N)),
        ("read-write", From::File(0), TargetKind::Null, (0, N, N)),
        ("splice", From::File(0), TargetKind::Pipe, (N, 0, 0)),
        ("splice", From::File(0), TargetKind::File, (N, N, 0)),
        ("splice", From::Pipe, TargetKind::Pipe, (N, 0, 0)),
        ("splice", From::Pipe, TargetKind::File, (N, N, 0)),
        ("sendfile", From::File(0), TargetKind::Unix, (N, 0, 0)),
        ("sendfile", From::File(0), TargetKind::Null, (N, 0, 0)),
        ("copy-file-range", From::File(0), TargetKind::File, (0, N, 0)),
        ("mmap-write", From::File(0), TargetKind::File, (0, N, N)),
        ("mmap-write", From::File(0), TargetKind::Null, (0, 0, 0)),
        ("vmsplice", From::File(0), TargetKind::Pipe, (N, N, N)),
        ("io-uring", From::File(0), TargetKind::File, (0, 2 * N, N)),
        ("null", From::File(0), TargetKind::File, (0, 0, 0)),
    ] {
        let given = content(usize::try_from(N).unwrap());
        let source = ends::source(from, &given, folder.path());
        let target = ends::target(to, folder.path());
        let progress = AtomicU64::new(0);
        let job = job(&progress);
        let (from_end, to_end) = (End::new(&source.fd).unwrap(), End::new(&target.fd).unwrap());
        let mover = iotomy_movers::mover(wanted).unwrap();
        match mover.run(&from_end, &to_end, &job).unwrap() {
            Outcome::Done(moved) => {
                let is = moved.traffic;
                let is = (is.referenced, is.copied, is.touched);
                assert_eq!(is, figures, "{wanted}, {from:?} to {to:?}");
            }
            Outcome::Refused { call, .. } => println!("{wanted}: {call} refused"),
        }
    }
}

#[test]
fn copies_by_the_file_system_are_counted_as_shared_only_where_they_are() {
    const N: u64 = 1 << 20;
    for kind in ["ext4", "xfs", "btrfs"] {
        let folder = match folders::image(kind) {
            Ok(folder) => folder,
            Err(reason) => {
                skip(Need::Devices, &reason);
                continue;
            }
        };
        let all = content(2 << 20);
        for wanted in ["copy-file-range", "parallel"] {
            // Extents are shared in blocks: from the middle of one there is only copying, whatever
            // the target shared before with a third.
            for (at, shares) in [(0, kind != "ext4"), (4096, kind != "ext4"), (1000, false)] {
                for shared_before in [false, true] {
                    let label = format!("{wanted} on {kind} from {at}, {shared_before}");
                    let mut source = ends::source(From::File(0), &all, folder.path()).fd.into();
                    File::seek(&mut source, SeekFrom::Start(at)).unwrap();
                    let target = ends::target(TargetKind::File, folder.path());
                    if shared_before {
                        std::fs::write(folder.path().join("third"), content(3 << 20)).unwrap();
                        let third = File::open(folder.path().join("third")).unwrap();
                        third.sync_all().unwrap();
                        let _ = rustix::fs::ioctl_ficlone(&target.fd, &third);
                    }
                    let progress = AtomicU64::new(0);
                    let job = Job { count: Some(N), ..job(&progress) };
                    let (from, to) = (End::new(&source).unwrap(), End::new(&target.fd).unwrap());
                    let mover = iotomy_movers::mover(wanted).unwrap();
                    let Outcome::Done(moved) = mover.run(&from, &to, &job).unwrap() else {
                        panic!("{label}: refused")
                    };
                    let traffic = moved.traffic;
                    let expected = if shares { (N, 0) } else { (0, N) };
                    assert_eq!((traffic.referenced, traffic.copied), expected, "{label}");
                }
            }
        }
    }
}

#[test]
fn who_wants_only_shared_extents_gets_nothing_else() {
    let progress = AtomicU64::new(0);
    let job = Job { reflink: Reflink::Always, ..job(&progress) };
    let mut folders = vec![folders::here()];
    folders.extend(["xfs", "btrfs"].iter().filter_map(|kind| folders::image(kind).ok()));
    for folder in folders {
        let given = content(100_000);
        let source = ends::source(From::File(0), &given, folder.path());
        let target = ends::target(TargetKind::File, folder.path());
        let (from, to) = (End::new(&source.fd).unwrap(), End::new(&target.fd).unwrap());
        let plan = chooser::choose(&from, &to, &job);
        assert!(plan.steps.iter().all(|step| name(step.mover) == "reflink"), "{plan:?}");
        let report = chooser::run(&plan, &from, &to, &job).unwrap();
        println!("{}: {report:?}", folder.name);
        match report.mover {
            Some(mover) => {
                assert_eq!((mover, report.moved.bytes), ("reflink", 100_000));
                assert_eq!(report.moved.traffic.copied, 0);
                // Shared until written to: later writes must not show through.
                let writer = OpenOptions::new().write(true).open(folder.path().join("source"));
                writer.unwrap().write_all(&[0; 5000]).unwrap();
                assert_eq!(difference(&target.content().unwrap(), &given), None);
            }
            None => assert_eq!(target.content(), Some(Vec::new())),
        }
    }
}
