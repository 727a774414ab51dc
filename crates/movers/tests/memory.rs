//! What buffers take: no more than there is to copy, no more than a process should have, and no abort
//! where it is refused.

use crate::support;

use std::fs::File;
use std::sync::atomic::AtomicU64;

use iotomy_movers::{End, Job, MOVERS, Outcome, chooser};

use support::ends::{self, From, TargetKind};
use support::{content, folders, job, moves, name};

const LARGE: usize = 1 << 30;

#[test]
fn blocks_are_no_larger_than_what_there_is_to_copy() {
    let folder = folders::here();
    let (all, progress) = (content(300_000), AtomicU64::new(0));
    for mover in MOVERS.iter().copied().filter(|mover| moves(*mover)) {
        let source = ends::source(From::File(0), &all, folder.path());
        let target = ends::target(TargetKind::File, folder.path());
        let (from, to) = (End::new(&source.fd).unwrap(), End::new(&target.fd).unwrap());
        // As large as any may be, a TiB together.
        let job = Job { block_size: Some(LARGE), depth: 1024, threads: 256, ..job(&progress) };
        let Ok(plan) = chooser::only(mover, &from, &to, &job) else { continue };
        assert_eq!(chooser::has_memory(&plan, &from, &to, &job), Ok(()), "{}", name(mover));
        let report = chooser::run(&plan, &from, &to, &job).unwrap();
        if report.mover.is_none() {
            iotomy_test_requirements::skip(
                iotomy_test_requirements::Need::Machine,
                &format!("{}: {:?}", name(mover), report.refused),
            );
            continue;
        }
        assert_eq!(target.content(), ends::expected(TargetKind::File, &all), "{}", name(mover));
    }
}

#[test]
fn buffers_of_more_than_half_the_memory_are_refused_with_the_figures() {
    let folder = folders::here();
    let path = folder.path().join("sparse");
    // Nothing but a hole, and larger than any memory.
    File::create(&path).unwrap().set_len(1 << 40).unwrap();
    let source = File::open(&path).unwrap();
    let target = ends::target(TargetKind::File, folder.path());
    let (from, to) = (End::new(&source).unwrap(), End::new(&target.fd).unwrap());
    let progress = AtomicU64::new(0);
    let job = Job { block_size: Some(LARGE), depth: 1024, ..Job::new(&progress) };
    let mover = iotomy_movers::mover("io-uring").unwrap();
    let said = chooser::only(mover, &from, &to, &job).unwrap_err();
    assert!(said.starts_with("its buffers would take 1048576 MiB, and half of this"), "{said}");
    let little = Job { block_size: Some(1 << 20), depth: 8, ..job };
    assert!(chooser::only(mover, &from, &to, &little).is_ok());
}

#[test]
fn windows_that_are_filled_or_of_huge_pages_give_the_same_bytes() {
    let folders = [Some(folders::here()), folders::memory()];
    let (all, progress) = (content((9 << 20) + 12_345), AtomicU64::new(0));
    let mover = iotomy_movers::mover("mmap-write").unwrap();
    for folder in folders.into_iter().flatten() {
        for (populate, huge_pages) in [(true, false), (false, true), (true, true)] {
            let source = ends::source(From::File(0), &all, folder.path());
            let target = ends::target(TargetKind::File, folder.path());
            let (from, to) = (End::new(&source.fd).unwrap(), End::new(&target.fd).unwrap());
            let job = Job { populate, huge_pages, ..job(&progress) };
            let Outcome::Done(moved) = mover.run(&from, &to, &job).unwrap() else {
                panic!("refused: {populate} {huge_pages}");
            };
            assert_eq!(moved.bytes, all.len() as u64);
            assert_eq!(target.content().as_ref(), Some(&all), "{populate} {huge_pages}");
        }
    }
}
