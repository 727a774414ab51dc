//! Ends that change while bytes are on their way: sources that grow or shrink, peers that leave,
//! disks that fill up, holes that come and go.

use crate::support;

use std::fs::{File, OpenOptions};
use std::io::{Read, Seek, SeekFrom, Write};
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

use iotomy_movers::{End, Job, MOVERS, Mover, Outcome, Side, Sparse, chooser};
use iotomy_test_requirements::{Need, skip};
use rustix::io::Errno;

use support::ends::{self, From, TargetKind};
use support::layouts::{self, Data, Hole};
use support::{content, difference, folders, job, moves, name, position};

/// A pipe, UNIX or TCP socket: what is written to the first comes out of the second.
fn streams() -> Vec<(&'static str, OwnedFd, OwnedFd)> {
    let (out, into) = std::io::pipe().unwrap();
    let (one, other) = std::os::unix::net::UnixStream::pair().unwrap();
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let client = std::net::TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let server = listener.accept().unwrap().0;
    vec![
        ("pipe", into.into(), out.into()),
        ("UNIX socket", one.into(), other.into()),
        ("TCP socket", client.into(), server.into()),
    ]
}

fn movers() -> impl Iterator<Item = &'static dyn Mover> {
    MOVERS.iter().copied().filter(|mover| moves(*mover))
}

#[test]
fn a_source_that_grows_is_followed_or_left_where_it_ended() {
    let folder = folders::here();
    let all = content(6 << 20);
    let (first, more) = all.split_at(4 << 20);
    for mover in movers() {
        for (stream, into, out) in streams() {
            let label = format!("{} to a {stream}", name(mover));
            let source = ends::source(From::File(0), first, folder.path());
            let mut out = File::from(out);
            let progress = AtomicU64::new(0);
            let job = job(&progress);
            let (from, to) = (End::new(&source.fd).unwrap(), End::new(&into).unwrap());
            if mover.serves(&from, &to, &job).is_err() {
                continue;
            }
            let path = folder.path().join("source");
            let more = more.to_vec();
            let reader = thread::spawn(move || {
                let mut got = vec![0; 1 << 20];
                out.read_exact(&mut got).unwrap();
                OpenOptions::new().append(true).open(path).unwrap().write_all(&more).unwrap();
                out.read_to_end(&mut got).unwrap();
                got
            });
            let outcome = mover.run(&from, &to, &job).unwrap();
            let Outcome::Done(moved) = outcome else { panic!("{label}: {outcome:?}") };
            drop(into);
            let (moved, got) = (moved.bytes, reader.join().unwrap());
            assert_eq!(moved, got.len() as u64, "{label}");
            assert!(got.len() >= first.len(), "{label}: {moved} bytes");
            assert_eq!(difference(&got, &all[..got.len()]), None, "{label}");
            assert_eq!(position(&source.fd), Some(moved), "{label}");
        }
    }
}

#[test]
fn a_source_that_shrinks_is_an_early_end() {
    let folder = folders::here();
    let all = content(6 << 20);
    let size = (4 << 20) + 100;
    for mover in movers() {
        for (stream, into, out) in streams() {
            let label = format!("{} to a {stream}", name(mover));
            let source = ends::source(From::File(0), &all, folder.path());
            let mut out = File::from(out);
            let progress = AtomicU64::new(0);
            let job = job(&progress);
            let (from, to) = (End::new(&source.fd).unwrap(), End::new(&into).unwrap());
            if mover.serves(&from, &to, &job).is_err() {
                continue;
            }
            let path = folder.path().join("source");
            let reader = thread::spawn(move || {
                let mut got = vec![0; 1 << 20];
                out.read_exact(&mut got).unwrap();
                OpenOptions::new().write(true).open(path).unwrap().set_len(size).unwrap();
                out.read_to_end(&mut got).unwrap();
                got
            });
            let outcome = mover.run(&from, &to, &job).unwrap();
            let Outcome::Done(moved) = outcome else { panic!("{label}: {outcome:?}") };
            drop(into);
            let (moved, got) = (moved.bytes, reader.join().unwrap());
            assert_eq!(moved, got.len() as u64, "{label}");
            assert_eq!(position(&source.fd), Some(moved), "{label}");
            // What was under way when it shrank may have been cleared.
            let sure = got.len().min(usize::try_from(size).unwrap());
            assert!(sure >= 1 << 20, "{label}");
            assert_eq!(difference(&got[..sure], &all[..sure]), None, "{label}");
        }
    }
}

#[test]
fn files_whose_source_shrinks_and_grows_all_the_time_end_in_agreement() {
    let folder = folders::here();
    let all = content(4 << 20);
    for mover in movers() {
        for _ in 0..5 {
            let source = ends::source(From::File(0), &all, folder.path());
            let target = ends::target(TargetKind::File, folder.path());
            let progress = AtomicU64::new(0);
            let job = job(&progress);
            let (from, to) = (End::new(&source.fd).unwrap(), End::new(&target.fd).unwrap());
            if mover.serves(&from, &to, &job).is_err() {
                continue;
            }
            let over = AtomicBool::new(false);
            let path = folder.path().join("source");
            let outcome = thread::scope(|scope| {
                let over = &over;
                scope.spawn(move || {
                    let file = OpenOptions::new().write(true).open(path).unwrap();
                    while !over.load(Ordering::Relaxed) {
                        file.set_len(1 << 20).unwrap();
                        file.set_len(4 << 20).unwrap();
                    }
                });
                let outcome = mover.run(&from, &to, &job);
                over.store(true, Ordering::Relaxed);
                outcome
            });
            let label = name(mover);
            let moved = match outcome.unwrap_or_else(|e| panic!("{label}: {e}")) {
                Outcome::Done(moved) => moved.bytes,
                Outcome::Refused { .. } => 0,
            };
            assert_eq!(position(&source.fd), Some(moved), "{label}");
            assert_eq!(position(&target.fd), Some(moved), "{label}");
            let got = target.content().unwrap();
            let sure = usize::try_from(moved).unwrap().min(1 << 20);
            assert_eq!(difference(&got[..sure], &all[..sure]), None, "{label}");
        }
    }
}

#[test]
fn a_peer_that_leaves_is_an_error_of_the_target_that_says_what_was_moved() {
    let folder = folders::here();
    let all = content(8 << 20);
    for mover in movers() {
        for from_kind in [From::File(0), From::Pipe, From::Unix] {
            for reads in [0, 1 << 20] {
                for (stream, into, out) in streams() {
                    let label =
                        format!("{}, {from_kind:?} to a {stream}, {reads} read", name(mover));
                    let source = ends::source(from_kind, &all, folder.path());
                    let progress = AtomicU64::new(0);
                    let job = job(&progress);
                    let (from, to) = (End::new(&source.fd).unwrap(), End::new(&into).unwrap());
                    if mover.serves(&from, &to, &job).is_err() {
                        continue;
                    }
                    let leave = move || {
                        let mut got = vec![0; reads];
                        File::from(out).read_exact(&mut got).unwrap();
                        got
                    };
                    let (outcome, got) = if reads == 0 {
                        leave();
                        (mover.run(&from, &to, &job), Vec::new())
                    } else {
                        thread::scope(|scope| {
                            let reader = scope.spawn(leave);
                            (mover.run(&from, &to, &job), reader.join().unwrap())
                        })
                    };
                    let error = outcome.expect_err(&label);
                    let errno = Errno::from_io_error(&error.source).unwrap();
                    assert!(matches!(errno, Errno::PIPE | Errno::CONNRESET), "{label}: {error}");
                    assert!(error.side != Side::Source, "{label}: {error}");
                    assert!(error.moved.bytes >= reads as u64, "{label}: {error}");
                    assert_eq!(progress.load(Ordering::Relaxed), error.moved.bytes, "{label}");
                    assert_eq!(difference(&got, &all[..reads]), None, "{label}");
                    match position(&source.fd) {
                        Some(at) => assert_eq!((at, error.lost), (error.moved.bytes, 0), "{label}"),
                        None => {
                            // Nothing between what was moved or lost and what is left.
                            let rest = source.rest();
                            let taken = usize::try_from(error.moved.bytes + error.lost).unwrap();
                            assert_eq!(difference(&rest, &all[taken..]), None, "{label}");
                        }
                    }
                }
            }
        }
    }
}

#[test]
fn of_a_device_that_gives_for_ever_nothing_is_lost() {
    let folder = match folders::small(1 << 20) {
        Ok(folder) => folder,
        Err(reason) => return skip(Need::Devices, &reason),
    };
    let mut met = 0;
    for device in ["/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"] {
        for sparse in [Sparse::Auto, Sparse::Always] {
            for mover in movers() {
                let label = format!("{} from {device}, {sparse:?}", name(mover));
                let source = File::open(device).unwrap();
                let target = ends::target(TargetKind::File, folder.path());
                let progress = AtomicU64::new(0);
                let job = Job { count: Some(3 << 20), sparse, ..job(&progress) };
                let (from, to) = (End::new(&source).unwrap(), End::new(&target.fd).unwrap());
                let Ok(plan) = chooser::only(mover, &from, &to, &job) else { continue };
                let Err(failed) = chooser::run(&plan, &from, &to, &job) else { continue };
                assert_eq!(failed.error.lost, 0, "{label}: {failed}");
                met += 1;
            }
        }
    }
    assert!(met >= 8, "{met} runs found the disk full");
}

#[test]
fn a_disk_that_fills_up_is_an_error_that_says_what_was_moved() {
    let folder = match folders::small(1 << 20) {
        Ok(folder) => folder,
        Err(reason) => return skip(Need::Devices, &reason),
    };
    let sources = folders::here();
    let all = content(3 << 20);
    for mover in movers() {
        for from_kind in [From::File(0), From::Pipe, From::Unix] {
            let label = format!("{} from {from_kind:?}", name(mover));
            let source = ends::source(from_kind, &all, sources.path());
            let target = ends::target(TargetKind::File, folder.path());
            let progress = AtomicU64::new(0);
            let job = job(&progress);
            let (from, to) = (End::new(&source.fd).unwrap(), End::new(&target.fd).unwrap());
            if mover.serves(&from, &to, &job).is_err() {
                continue;
            }
            let error = match mover.run(&from, &to, &job) {
                Err(error) => error,
                Ok(Outcome::Refused { .. }) => continue,
                Ok(done) => panic!("{label}: {done:?}"),
            };
            assert_eq!(error.source.raw_os_error(), Some(Errno::NOSPC.raw_os_error()), "{label}");
            assert!(error.side != Side::Source, "{label}: {error}");
            let moved = usize::try_from(error.moved.bytes).unwrap();
            assert!(moved <= 1 << 20, "{label}: {error}");
            assert_eq!(position(&target.fd), Some(error.moved.bytes), "{label}");
            match position(&source.fd) {
                Some(at) => assert_eq!((at, error.lost), (error.moved.bytes, 0), "{label}"),
                None => {
                    let taken = moved + usize::try_from(error.lost).unwrap();
                    assert_eq!(difference(&source.rest(), &all[taken..]), None, "{label}");
                }
            }
            let got = target.content().unwrap();
            assert_eq!(difference(&got[..moved], &all[..moved]), None, "{label}");
        }
    }
}

#[test]
fn a_source_that_changes_all_the_time_ends_in_agreement() {
    let folder = folders::here();
    let path = folder.path().join("source");
    let data = content(65_536);
    for mover in movers() {
        for sparse in [Sparse::Auto, Sparse::Always] {
            for _ in 0..5 {
                layouts::make(&path, &[Data(65_536), Hole(65_536)].repeat(16));
                let source = File::open(&path).unwrap();
                let target = ends::target(TargetKind::File, folder.path());
                let progress = AtomicU64::new(0);
                let job = Job { sparse, ..job(&progress) };
                let (from, to) = (End::new(&source).unwrap(), End::new(&target.fd).unwrap());
                let Ok(plan) = chooser::only(mover, &from, &to, &job) else { continue };
                let over = std::sync::atomic::AtomicBool::new(false);
                let outcome = std::thread::scope(|scope| {
                    let over = &over;
                    let path = &path;
                    scope.spawn(move || {
                        let mut file = OpenOptions::new().write(true).open(path).unwrap();
                        while !over.load(Ordering::Relaxed) {
                            file.set_len(65_536).unwrap();
                            file.set_len(4 << 20).unwrap();
                            file.seek(SeekFrom::Start(3 << 20)).unwrap();
                            file.write_all(&[7; 5000]).unwrap();
                        }
                    });
                    let outcome = chooser::run(&plan, &from, &to, &job);
                    over.store(true, Ordering::Relaxed);
                    outcome
                });
                let label = format!("{}, {sparse:?}", name(mover));
                let moved = outcome.unwrap_or_else(|e| panic!("{label}: {e}")).moved.bytes;
                assert_eq!(position(&source), Some(moved), "{label}");
                assert_eq!(position(&target.fd), Some(moved), "{label}");
                assert_eq!(progress.load(Ordering::Relaxed), moved, "{label}");
                let got = target.content().unwrap();
                assert_eq!(got.len() as u64, moved, "{label}");
                let sure = got.len().min(data.len());
                assert_eq!(difference(&got[..sure], &data[..sure]), None, "{label}");
            }
        }
    }
}
