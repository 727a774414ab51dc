//! The contract every mover keeps, held against all of them on real descriptors.

use crate::support;

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use iotomy_movers::{End, Job, MOVERS, Mover, Outcome};
use iotomy_test_requirements::{Need, skip};
use proptest::prelude::*;

use support::ends::{self, From, TargetKind};
use support::folders::{self, Folder};
use support::{BLOCK, content, difference, job, moves, name, position};

const FROMS: [From; 7] = [
    From::File(0),
    From::File(1000),
    From::Direct(0),
    From::Pipe,
    From::Fifo,
    From::Unix,
    From::Tcp,
];
const TOS: [TargetKind; 10] = [
    TargetKind::File,
    TargetKind::Over(0),
    TargetKind::Over(1234),
    TargetKind::Append,
    TargetKind::Direct,
    TargetKind::Pipe,
    TargetKind::Fifo,
    TargetKind::Unix,
    TargetKind::Tcp,
    TargetKind::Null,
];
const SIZES: [usize; 10] =
    [0, 1, 4095, 4096, 4097, BLOCK - 1, BLOCK, BLOCK + 1, (1 << 20) + 1, (3 << 20) + 123];

/// One run: a mover, its ends, how much there is, how much is wanted.
#[derive(Debug, Clone, Copy)]
struct Case {
    from: From,
    to: TargetKind,
    size: usize,
    count: Option<u64>,
    block_size: usize,
    depth: u32,
    non_blocking: bool,
    /// A microsecond of patience where others have seconds.
    hasty: bool,
}

impl Case {
    fn new(from: From, to: TargetKind, size: usize) -> Self {
        let (non_blocking, hasty) = (false, false);
        Self { from, to, size, count: None, block_size: BLOCK, depth: 4, non_blocking, hasty }
    }
}

#[derive(Debug, PartialEq, Eq)]
enum KeptHoles {
    Served,
    Refused,
    NotServed,
}

/// Runs one case and checks all that is promised of it.
fn check(mover: &dyn Mover, case: Case, all: &[u8], folder: &Folder) -> KeptHoles {
    let label = format!("{} on {}: {case:?}", name(mover), folder.name);
    let given = &all[..case.size];
    let source = ends::source(case.from, given, folder.path());
    let target = ends::target(case.to, folder.path());
    if case.non_blocking {
        ends::non_blocking(&source.fd);
        ends::non_blocking(&target.fd);
    }
    let (from, to) = (End::new(&source.fd).unwrap(), End::new(&target.fd).unwrap());
    let progress = AtomicU64::new(0);
    let (block_size, depth) = (Some(case.block_size), case.depth);
    let mut job = Job { count: case.count, block_size, depth, ..job(&progress) };
    if case.hasty {
        job.patience = Duration::from_micros(1);
    }
    let before = (position(&source.fd), position(&target.fd));
    let flags = |fd| rustix::fs::fcntl_getfl(fd).unwrap();
    let flags_before = (flags(&source.fd), flags(&target.fd));

    let serves = mover.serves(&from, &to, &job);
    let outcome = match serves {
        Ok(()) => Some(mover.run(&from, &to, &job).unwrap_or_else(|e| panic!("{label}: {e}"))),
        Err(reason) => {
            assert!(!reason.is_empty(), "{label}");
            None
        }
    };
    assert_eq!((flags(&source.fd), flags(&target.fd)), flags_before, "{label}: flags");
    let (moved, kept) = match outcome {
        Some(Outcome::Done(moved)) => (moved.bytes, KeptHoles::Served),
        Some(Outcome::Refused { .. }) => (0, KeptHoles::Refused),
        None => (0, KeptHoles::NotServed),
    };
    let mut wanted = case.count.unwrap_or(u64::MAX).min(case.size as u64);
    if kept != KeptHoles::Served || !moves(mover) {
        wanted = 0;
    }
    assert_eq!(moved, wanted, "{label}: bytes");
    assert_eq!(progress.load(Ordering::Relaxed), wanted, "{label}: progress");
    let arrived = &given[..usize::try_from(wanted).unwrap()];
    let after = (position(&source.fd), position(&target.fd));
    assert_eq!(after.0, before.0.map(|at| at + wanted), "{label}: the source's position");
    if case.to != TargetKind::Null {
        assert_eq!(
            after.1,
            ends::position_after(case.to, wanted),
            "{label}: the target's position"
        );
    }
    if let (Some(is), Some(expected)) = (target.content(), ends::expected(case.to, arrived)) {
        assert_eq!(difference(&is, &expected), None, "{label}: the target's content");
    }
    let rest = source.rest();
    assert_eq!(difference(&rest, &given[arrived.len()..]), None, "{label}: what is left");
    kept
}

/// Past the page cache each block waits for a disk, and many of them show nothing that two do not.
fn is_slow(from: From, to: TargetKind) -> bool {
    matches!(from, From::Direct(_)) || to == TargetKind::Direct
}

/// Every mover over every pair; prints how many were served and how many refused.
fn check_all(folder: &Folder, sizes: &[usize], streams: bool) {
    let all = content(*sizes.iter().max().unwrap());
    for mover in MOVERS.iter().copied() {
        let (mut served, mut refused) = (0, 0);
        for from in FROMS {
            for to in TOS {
                let is_file = matches!(from, From::File(_) | From::Direct(_))
                    || matches!(
                        to,
                        TargetKind::File
                            | TargetKind::Over(_)
                            | TargetKind::Append
                            | TargetKind::Direct
                    );
                if !streams && !is_file {
                    continue;
                }
                for &size in sizes {
                    if is_slow(from, to) && size > BLOCK + 1 {
                        continue;
                    }
                    match check(mover, Case::new(from, to, size), &all, folder) {
                        KeptHoles::Served => served += 1,
                        KeptHoles::Refused => refused += 1,
                        KeptHoles::NotServed => {}
                    }
                }
            }
        }
        println!("{:>15} on {}: {served} served, {refused} refused", name(mover), folder.name);
    }
}

#[test]
fn every_pair_and_size_on_the_file_system_of_the_build() {
    check_all(&folders::here(), &SIZES, true);
}

#[test]
fn every_pair_and_size_in_memory() {
    let Some(folder) = folders::memory() else {
        skip(Need::Machine, "no /dev/shm");
        return;
    };
    check_all(&folder, &SIZES, false);
}

#[test]
fn every_pair_with_a_file_on_images_of_other_file_systems() {
    for kind in ["ext4", "xfs", "btrfs"] {
        match folders::image(kind) {
            Ok(folder) => check_all(&folder, &[0, 1, 4096, 4097, (1 << 20) + 1], false),
            Err(reason) => skip(Need::Devices, &reason),
        }
    }
}

#[test]
fn no_more_is_taken_than_was_asked_for() {
    let folder = folders::here();
    let all = content(300_000);
    for mover in MOVERS.iter().copied() {
        for from in FROMS {
            for to in TOS {
                let counts = [0, 1, 4096, 100_000, 300_000, 400_000];
                for count in counts.into_iter().take(if is_slow(from, to) { 4 } else { 6 }) {
                    let case = Case { count: Some(count), ..Case::new(from, to, all.len()) };
                    check(mover, case, &all, &folder);
                }
            }
        }
    }
}

#[test]
fn descriptors_that_others_made_non_blocking_are_waited_for() {
    let folder = folders::here();
    let all = content((1 << 20) + 77);
    for mover in MOVERS.iter().copied() {
        for from in FROMS {
            for to in TOS {
                if is_slow(from, to) {
                    continue;
                }
                let case = Case { non_blocking: true, ..Case::new(from, to, all.len()) };
                check(mover, case, &all, &folder);
            }
        }
    }
}

#[test]
fn requests_that_are_taken_back_too_early_lose_nothing() {
    // No file system answers within a microsecond, so requests are cancelled at every stage they can be
    // in.
    let all = content((1 << 20) + 77);
    let mut folders = vec![folders::here()];
    folders.extend(folders::memory());
    for kind in ["xfs", "btrfs"] {
        match folders::image(kind) {
            Ok(folder) => folders.push(folder),
            Err(reason) => skip(Need::Devices, &reason),
        }
    }
    for folder in folders {
        for from in FROMS {
            for to in TOS {
                for size in [BLOCK + 1, all.len()] {
                    if is_slow(from, to) && size > BLOCK + 1 {
                        continue;
                    }
                    let case = Case { hasty: true, ..Case::new(from, to, size) };
                    check(iotomy_movers::mover("io-uring").unwrap(), case, &all, &folder);
                }
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, ..ProptestConfig::default() })]

    #[test]
    fn any_block_size_count_and_offset(
        mover in 0..MOVERS.len(),
        from in 0..FROMS.len(),
        at in 0_u64..20_000,
        to in 0..TOS.len(),
        target_at in 0_u64..20_000,
        size in 0_usize..600_000,
        count in proptest::option::of(0_u64..700_000),
        block_size in 1_usize..200_000,
        depth in 1_u32..9,
        hasty in any::<bool>(),
    ) {
        let from = match FROMS[from] { From::File(_) => From::File(at), From::Direct(_) => From::Direct(at), other => other };
        let to = match TOS[to] { TargetKind::Over(_) => TargetKind::Over(target_at), other => other };
        // Tiny blocks are right or wrong on few bytes as on many.
        let size = size.min(block_size.saturating_mul(500));
        let case = Case { count, block_size, depth, hasty, ..Case::new(from, to, size) };
        check(MOVERS[mover], case, &content(size), &folders::here());
    }
}
