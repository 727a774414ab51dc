//! Files that hold more or fewer bytes than their size says, and holes that only the number of blocks shows: what
//! read(2) gives is what arrives, by every mover.

use crate::support;

use std::fs::{File, read};
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::sync::atomic::AtomicU64;

use iotomy_fault_fs::{Fault, FaultFs, Operation};
use iotomy_movers::{End, Job, MOVERS, Mover, Outcome, Sparse, chooser};
use iotomy_test_requirements::{Need, skip};
use rustix::io::Errno;

use support::{content, difference, folders, job, moves, name, position};

fn mount(files: &[(&str, &[u8])], faults: &[Fault]) -> Option<FaultFs> {
    FaultFs::mount(files, faults).map_err(|reason| skip(Need::Fuse, &reason)).ok()
}

/// The bytes of `source` that arrive at the other end of `into`.
fn through_a_pipe(run: impl FnOnce(&End<'_>)) -> Vec<u8> {
    let (mut out, into) = std::io::pipe().unwrap();
    let reader = std::thread::spawn(move || {
        let mut all = Vec::new();
        out.read_to_end(&mut all).unwrap();
        all
    });
    run(&End::new(&into).unwrap());
    drop(into);
    reader.join().unwrap()
}

/// Runs every mover that serves, alone and as the chooser does, to a file, behind one and into a pipe; returns the
/// names of those that moved something.
fn every_way(source: &std::path::Path, all: &[u8]) -> Vec<&'static str> {
    let folder = folders::here();
    let mut served = Vec::new();
    for mover in MOVERS.iter().copied().filter(|mover| moves(*mover)) {
        for by_plan in [false, true] {
            let progress = AtomicU64::new(0);
            let job = Job { sparse: Sparse::Auto, ..job(&progress) };
            let label = format!("{} by a plan: {by_plan}, {}", name(mover), source.display());
            let from_file = File::open(source).unwrap();
            let path = folder.path().join("target");
            for append in [false, true] {
                let _ = std::fs::remove_file(&path);
                rustix::fs::seek(&from_file, rustix::fs::SeekFrom::Start(0)).unwrap();
                let mut options = File::options();
                let target = options.create(true).append(append).write(!append).open(&path);
                let target = target.unwrap();
                let (from, to) = (End::new(&from_file).unwrap(), End::new(&target).unwrap());
                if let Some(moved) = moved(mover, &from, &to, &job, by_plan) {
                    assert_eq!(moved, all.len() as u64, "{label}");
                    assert_eq!(difference(&read(&path).unwrap(), all), None, "{label}");
                    assert_eq!(position(&from_file), Some(moved), "{label}");
                    served.push(name(mover));
                }
            }
            rustix::fs::seek(&from_file, rustix::fs::SeekFrom::Start(0)).unwrap();
            let from = End::new(&from_file).unwrap();
            let mut is_served = false;
            let arrived = through_a_pipe(|to| {
                is_served = moved(mover, &from, to, &job, by_plan).is_some();
            });
            if is_served {
                assert_eq!(difference(&arrived, all), None, "{label}, pipe");
                served.push(name(mover));
            }
        }
    }
    served
}

/// The bytes that a mover moved; `None` when it does not serve, or the kernel refused it.
fn moved(
    mover: &'static dyn Mover,
    from: &End<'_>,
    to: &End<'_>,
    job: &Job<'_>,
    by_plan: bool,
) -> Option<u64> {
    let plan = chooser::only(mover, from, to, job).ok()?;
    if by_plan {
        let report = chooser::run(&plan, from, to, job).unwrap();
        return report.mover.map(|_| report.moved.bytes);
    }
    match mover.run(from, to, job).unwrap() {
        Outcome::Done(moved) => Some(moved.bytes),
        Outcome::Refused { .. } => None,
    }
}

#[test]
fn every_mover_moves_what_reading_gives_and_not_what_the_size_claims() {
    let sizes: [(usize, u64); 7] = [
        (2446, 0),
        (2446, 1000),
        (300_000, 0),
        (3_000_000, 200_000),
        (1000, 8192),
        (300_000, 3_000_000),
        (0, 500_000),
    ];
    for (there, claimed) in sizes {
        for is_cached in [false, true] {
            // Through the page cache reading ends at the size, too.
            if is_cached && claimed < there as u64 {
                continue;
            }
            let all = content(there);
            let mut faults = vec![Fault::silent("a", Operation::Size(claimed))];
            if !is_cached {
                faults.push(Fault::silent("a", Operation::Cache));
            }
            let Some(mounted) = mount(&[("a", &all)], &faults) else { return };
            let path = mounted.path("a");
            assert_eq!(path.metadata().unwrap().len(), claimed);
            assert_eq!(difference(&read(&path).unwrap(), &all), None, "what reading gives");
            let served = every_way(&path, &all);
            for usual in ["read-write", "pipelined", "parallel", "vmsplice", "direct"] {
                assert!(served.contains(&usual), "{there} for {claimed}: {usual}");
            }
            let is_offloaded = served.contains(&"sendfile") && served.contains(&"splice");
            assert!(is_offloaded || there == 0, "{there} for {claimed}: {served:?}");
        }
    }
}

#[test]
fn an_end_of_the_holes_before_the_claimed_size_is_the_end() {
    // Its SEEK_DATA tells the truth: nothing is behind the content, and no hole either.
    let all = content(300_000);
    let faults = [Fault::silent("a", Operation::Size(3_000_000))];
    let Some(mounted) = mount(&[("a", &all)], &faults) else { return };
    let folder = folders::here();
    let path = folder.path().join("target");
    for sparse in [Sparse::Auto, Sparse::Always] {
        let (source, target) =
            (File::open(mounted.path("a")).unwrap(), File::create(&path).unwrap());
        let (from, to) = (End::new(&source).unwrap(), End::new(&target).unwrap());
        let progress = AtomicU64::new(0);
        let job = Job { sparse, ..job(&progress) };
        let report = chooser::run(&chooser::choose(&from, &to, &job), &from, &to, &job).unwrap();
        assert_eq!(report.moved.bytes, 300_000, "{sparse:?}");
        assert_eq!(difference(&read(&path).unwrap(), &all), None, "{sparse:?}");
    }
}

/// Data, three MiB of zeros, data, and zeros at the end.
fn with_zeros() -> Vec<u8> {
    let mut all = content(65_536);
    all.resize(65_536 + (3 << 20), 0);
    all.extend(content(65_536));
    all.resize(all.len() + (1 << 20), 0);
    all
}

#[test]
fn holes_of_a_file_system_without_seek_hole_stay_holes_by_every_mover() {
    let all = with_zeros();
    let faults =
        [Fault::silent("a", Operation::Blocks(256)), Fault::on("a", Operation::Seek, Errno::NOSYS)];
    let Some(mounted) = mount(&[("a", &all)], &faults) else { return };
    let folder = folders::here();
    let path = folder.path().join("target");
    let progress = AtomicU64::new(0);
    let job = job(&progress);
    let mut served = 0;
    for mover in [None].into_iter().chain(MOVERS.iter().copied().map(Some)) {
        let source = File::open(mounted.path("a")).unwrap();
        let target = File::create(&path).unwrap();
        let (from, to) = (End::new(&source).unwrap(), End::new(&target).unwrap());
        let plan = match mover {
            None => chooser::choose(&from, &to, &job),
            Some(mover) if !moves(mover) => continue,
            Some(mover) => match chooser::only(mover, &from, &to, &job) {
                Ok(plan) => plan,
                Err(_) => continue,
            },
        };
        let report = chooser::run(&plan, &from, &to, &job).unwrap();
        let label = mover.map_or("chosen", name);
        if mover.is_none() {
            // The bytes have to be looked at, and the plan says by what.
            assert_eq!(report.mover, Some("read-write"));
        }
        if report.mover.is_some() {
            assert_eq!(difference(&read(&path).unwrap(), &all), None, "{label}");
            let room = path.metadata().unwrap().blocks() * 512;
            assert!(room < (1 << 20), "{label}: {room} bytes of room");
            served += 1;
        }
    }
    assert!(served > 4, "{served}");
}

#[test]
fn zeros_of_a_file_that_takes_room_for_them_are_written() {
    let all = with_zeros();
    let faults = [Fault::on("a", Operation::Seek, Errno::NOSYS)];
    let Some(mounted) = mount(&[("a", &all)], &faults) else { return };
    let folder = folders::here();
    let path = folder.path().join("target");
    let (source, target) = (File::open(mounted.path("a")).unwrap(), File::create(&path).unwrap());
    let (from, to) = (End::new(&source).unwrap(), End::new(&target).unwrap());
    let progress = AtomicU64::new(0);
    let job = job(&progress);
    let report = chooser::run(&chooser::choose(&from, &to, &job), &from, &to, &job).unwrap();
    assert_eq!(report.moved.bytes, all.len() as u64);
    target.sync_all().unwrap();
    assert!(path.metadata().unwrap().blocks() * 512 >= all.len() as u64);
}
