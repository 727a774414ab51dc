//! What becomes of holes: every mover, file system and layout, by content and by the room it takes.

use crate::support;

use std::fs::{File, OpenOptions};
use std::io::{Seek, SeekFrom};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use iotomy_movers::chooser::{self, Report};
use iotomy_movers::{End, Holes, Job, MOVERS, Mover, Sparse};
use iotomy_test_requirements::{Need, skip};
use proptest::prelude::*;

use support::ends::{self, From, TargetKind};
use support::folders::{self, Folder};
use support::layouts::{self, Data, Hole, Region, Zeros, extents, room, room_within};
use support::{content, difference, job, moves, name, position};

/// A run between two files of a folder.
#[derive(Debug, Clone, Copy)]
struct Case {
    sparse: Sparse,
    /// Where the source is read from, and how much of it.
    skip: u64,
    count: Option<u64>,
    /// Where a target that holds so much already is written to.
    old: usize,
    seek: u64,
    block_size: usize,
}

impl Case {
    fn new(sparse: Sparse) -> Self {
        Self { sparse, skip: 0, count: None, old: 0, seek: 0, block_size: support::BLOCK }
    }
}

/// What a target holds that is no new file.
fn old(length: usize) -> Vec<u8> {
    vec![0xEE; length]
}

fn movers() -> impl Iterator<Item = &'static dyn Mover> {
    MOVERS.iter().copied().filter(|mover| moves(*mover))
}

/// Every file system there is here; prints those that are not.
fn everywhere() -> Vec<Folder> {
    let mut folders = vec![folders::here()];
    folders.extend(folders::memory());
    for kind in ["ext4", "xfs", "btrfs"] {
        match folders::image(kind) {
            Ok(folder) => folders.push(folder),
            Err(reason) => skip(Need::Devices, &reason),
        }
    }
    folders
}

/// Runs one mover from `source` to `target`, and checks all that holds whatever the file system did;
/// `None` when it does not serve, or refused.
fn check(mover: &'static dyn Mover, case: Case, all: &[u8], folder: &Folder) -> Option<Report> {
    let label = format!("{} on {}: {case:?}", name(mover), folder.name);
    let target_path = folder.path().join("target");
    let _ = std::fs::remove_file(&target_path);
    std::fs::write(&target_path, old(case.old)).unwrap();
    let mut source = File::open(folder.path().join("source")).unwrap();
    let mut target = OpenOptions::new().write(true).open(&target_path).unwrap();
    source.seek(SeekFrom::Start(case.skip)).unwrap();
    target.seek(SeekFrom::Start(case.seek)).unwrap();
    let (from, to) = (End::new(&source).unwrap(), End::new(&target).unwrap());
    let progress = AtomicU64::new(0);
    let Case { sparse, count, block_size, .. } = case;
    let job = Job { sparse, count, block_size: Some(block_size), ..job(&progress) };
    let report = match chooser::only(mover, &from, &to, &job) {
        Ok(plan) => {
            chooser::run(&plan, &from, &to, &job).unwrap_or_else(|e| panic!("{label}: {e}"))
        }
        Err(reason) => {
            assert!(!reason.is_empty(), "{label}");
            return None;
        }
    };
    let given = &all[all.len().min(usize::try_from(case.skip).unwrap())..];
    let wanted = case.count.unwrap_or(u64::MAX).min(given.len() as u64);
    let wanted = if report.mover.is_some() { wanted } else { 0 };
    assert_eq!(report.moved.bytes, wanted, "{label}: bytes");
    assert_eq!(progress.load(Ordering::Relaxed), wanted, "{label}: progress");
    assert_eq!(position(&source), Some(case.skip + wanted), "{label}: the source's position");
    assert_eq!(position(&target), Some(case.seek + wanted), "{label}: the target's position");
    let mut expected = old(case.old);
    if wanted > 0 {
        let at = usize::try_from(case.seek).unwrap();
        let length = usize::try_from(wanted).unwrap();
        expected.resize(expected.len().max(at + length), 0);
        expected[at..at + length].copy_from_slice(&given[..length]);
    }
    drop(target);
    let is = std::fs::read(&target_path).unwrap();
    assert_eq!(difference(&is, &expected), None, "{label}: content");
    report.mover.is_some().then_some(report)
}

/// The room that the map of a file's extents may take.
const MAP: u64 = 16_384;

/// Every mover over every layout of one folder.
fn every_layout(folder: &Folder) {
    let (source, target) = (folder.path().join("source"), folder.path().join("target"));
    let (mut kept, mut filled) = (0, 0);
    for (layout, parts) in layouts::all() {
        let all = layouts::make(&source, &parts);
        let (size, due) = (all.len() as u64, room(&source));
        let data: u64 = extents(&source).iter().map(|(from, until)| until - from).sum();
        for mover in movers() {
            let label = format!("{}, {layout}, on {}", name(mover), folder.name);
            // Mapping a hole of tmpfs fills it: each mover has a source of its own.
            layouts::make(&source, &parts);
            if let Some(report) = check(mover, Case::new(Sparse::Auto), &all, folder) {
                let is = room_within(&target, due + MAP);
                assert!(is <= due + MAP, "{label}: {is} bytes, {due} due");
                let traffic = report.moved.traffic;
                assert!(traffic.copied <= 2 * data, "{label}: {traffic:?} of {data}");
                assert!(traffic.touched <= data, "{label}: {traffic:?} of {data}");
                kept += 1;
            }
            if check(mover, Case::new(Sparse::Never), &all, folder).is_some() {
                let is = room(&target);
                assert!(is >= size, "{label}: {is} bytes of {size}");
                let expected = if size > 0 { vec![(0, size)] } else { vec![] };
                assert_eq!(extents(&target), expected, "{label}: a hole");
                filled += 1;
            }
        }
    }
    println!("{}: {kept} runs kept holes, {filled} filled them", folder.name);
    assert!(kept > 0 && filled > 0);
}

#[test]
fn holes_are_kept_or_filled_by_every_mover_on_every_file_system() {
    for folder in everywhere() {
        every_layout(&folder);
    }
}

#[test]
fn holes_over_what_the_target_holds_are_punched() {
    // What the build is on is one of the kinds there are images of, on a slower disk.
    for folder in everywhere().into_iter().skip(1) {
        let (source, target) = (folder.path().join("source"), folder.path().join("target"));
        for (layout, parts) in layouts::all() {
            let all = layouts::make(&source, &parts);
            let holes = all.len() as u64
                - extents(&source).iter().map(|(from, until)| until - from).sum::<u64>();
            // Past the page cache each extent waits for a disk; runs into new files show the same.
            for mover in movers().filter(|mover| name(*mover) != "direct") {
                for (old, seek) in [(5 << 20, 0), (5 << 20, 1 << 20), (100_000, 8192), (100, 9000)]
                {
                    let label = format!("{}, {layout}, on {}", name(mover), folder.name);
                    let case = Case { old, seek, ..Case::new(Sparse::Auto) };
                    let Some(_) = check(mover, case, &all, &folder) else { continue };
                    if old == 5 << 20 {
                        let due = old as u64 - (holes - holes % 4096);
                        let is = room_within(&target, due + MAP);
                        assert!(is <= due + MAP, "{label}: {is} bytes, {due} due");
                    }
                }
            }
        }
    }
}

#[test]
fn zeros_that_are_data_become_holes_when_that_is_wanted() {
    for folder in everywhere() {
        let (source, target) = (folder.path().join("source"), folder.path().join("target"));
        for (layout, parts) in layouts::all() {
            let all = layouts::make(&source, &parts);
            let due: u64 = parts
                .iter()
                .map(|part| match part {
                    Data(length) => length.next_multiple_of(4096) as u64 + 4096,
                    Zeros(_) | Hole(_) => 0,
                })
                .sum();
            for old in [0, 4 << 20] {
                let mut runs = 0;
                for mover in movers() {
                    let case = Case { old, ..Case::new(Sparse::Always) };
                    let Some(report) = check(mover, case, &all, &folder) else { continue };
                    runs += 1;
                    let label = format!("{}, {layout}, {old} on {}", name(mover), folder.name);
                    assert_eq!(mover.declaration().holes, Holes::Found, "{label}");
                    let rest = (old as u64).saturating_sub(all.len() as u64);
                    let due = due + rest + 4096;
                    let is = room_within(&target, due + MAP);
                    assert!(is <= due + MAP, "{label}: {is} bytes, {due} due");
                    assert!(report.moved.traffic.touched <= all.len() as u64, "{label}");
                }
                assert!(runs > 0, "{layout}");
            }
        }
    }
}

#[test]
fn streams_have_holes_made_of_their_zeros() {
    let folder = folders::here();
    let mut all = content(10_000);
    all.extend(vec![0; 1 << 20]);
    all.extend(content(5000));
    all.extend(vec![0; 100_000]);
    for from in [From::Pipe, From::Fifo, From::Unix, From::Tcp, From::File(0), From::Direct(0)] {
        for (to, seek) in [
            (TargetKind::File, 0),
            (TargetKind::Over(0), 0),
            (TargetKind::Over(1234), 1234),
            (TargetKind::Direct, 0),
        ] {
            for count in [None, Some(500_000)] {
                let label = format!("{from:?} to {to:?}, {count:?}");
                let source = ends::source(from, &all, folder.path());
                let target = ends::target(to, folder.path());
                let progress = AtomicU64::new(0);
                let job = Job { sparse: Sparse::Always, count, ..job(&progress) };
                let (begin, end) = (End::new(&source.fd).unwrap(), End::new(&target.fd).unwrap());
                let plan = chooser::choose(&begin, &end, &job);
                let report = chooser::run(&plan, &begin, &end, &job).unwrap();
                let wanted = count.unwrap_or(all.len() as u64);
                assert_eq!((report.mover, report.moved.bytes), (Some("read-write"), wanted));
                assert_eq!(progress.load(Ordering::Relaxed), wanted, "{label}");
                assert_eq!(position(&target.fd), Some(seek + wanted), "{label}");
                let arrived = &all[..usize::try_from(wanted).unwrap()];
                let room = room_within(&folder.path().join("target"), 40_960);
                assert!(room <= 40_960, "{label}: {room} bytes");
                let is = target.content().unwrap();
                let expected = ends::expected(to, arrived).unwrap();
                assert_eq!(difference(&is, &expected), None, "{label}");
                assert_eq!(difference(&source.rest(), &all[arrived.len()..]), None, "{label}");
            }
        }
    }
}

#[test]
fn a_target_without_holes_is_an_error_up_front_only_when_they_must_be_made() {
    let folder = folders::here();
    let progress = AtomicU64::new(0);
    for to in [TargetKind::Append, TargetKind::Pipe, TargetKind::Unix, TargetKind::Null] {
        let source = ends::source(From::File(0), b"some bytes", folder.path());
        let target = ends::target(to, folder.path());
        let (from, into) = (End::new(&source.fd).unwrap(), End::new(&target.fd).unwrap());
        for (sparse, is_possible) in
            [(Sparse::Auto, true), (Sparse::Never, true), (Sparse::Always, false)]
        {
            let job = Job { sparse, ..job(&progress) };
            let possible = chooser::possible(&into, &job);
            let plan = chooser::choose(&from, &into, &job);
            assert_eq!(possible.is_ok(), is_possible, "{to:?}, {sparse:?}");
            assert_eq!(!plan.steps.is_empty(), is_possible, "{to:?}, {sparse:?}");
            if let Err(reason) = possible {
                assert!(plan.unsuited.iter().all(|unsuited| unsuited.reason == reason), "{plan:?}");
                assert_eq!(plan.unsuited.len(), MOVERS.len());
            }
        }
    }
}

/// A source of more than two GiB that is nearly all hole.
fn large(path: &Path, size: u64) {
    let file = File::create(path).unwrap();
    file.set_len(size).unwrap();
    file.write_all_at(b"begin", 0).unwrap();
    file.write_all_at(b"x", size - 1).unwrap();
    file.sync_all().unwrap();
}

#[test]
fn more_than_two_gib_of_hole_are_stepped_over() {
    const SIZE: u64 = (2 << 30) + 1;
    for folder in everywhere() {
        let (source_path, target_path) =
            (folder.path().join("source"), folder.path().join("target"));
        large(&source_path, SIZE);
        for mover in movers() {
            for sparse in [Sparse::Auto, Sparse::Always] {
                let label = format!("{} on {}, {sparse:?}", name(mover), folder.name);
                let source = File::open(&source_path).unwrap();
                let _ = std::fs::remove_file(&target_path);
                let target = File::create(&target_path).unwrap();
                let progress = AtomicU64::new(0);
                let job = Job { sparse, ..job(&progress) };
                let (from, to) = (End::new(&source).unwrap(), End::new(&target).unwrap());
                let Ok(plan) = chooser::only(mover, &from, &to, &job) else { continue };
                let report = chooser::run(&plan, &from, &to, &job).unwrap();
                if report.mover.is_none() {
                    continue;
                }
                assert_eq!(report.moved.bytes, SIZE, "{label}");
                assert!(report.moved.traffic.copied < 1 << 20, "{label}: {report:?}");
                assert_eq!(target.metadata().unwrap().len(), SIZE, "{label}");
                assert!(room_within(&target_path, 1 << 20) <= 1 << 20, "{label}");
                let copy = File::open(&target_path).unwrap();
                let mut end = [1; 6];
                copy.read_exact_at(&mut end[..5], 0).unwrap();
                copy.read_exact_at(&mut end[5..], SIZE - 1).unwrap();
                assert_eq!(&end, b"beginx", "{label}");
            }
        }
    }
}

#[test]
fn a_source_whose_blocks_outweigh_its_holes_keeps_them_too() {
    use rustix::fs::{FallocateFlags, fallocate};
    let folder = folders::here();
    let path = folder.path().join("source");
    let all = layouts::make(&path, &[Data(4096), Hole(1 << 20), Data(4096)]);
    let source = OpenOptions::new().write(true).open(&path).unwrap();
    // Blocks behind the end: the file takes more room than it has bytes.
    if fallocate(&source, FallocateFlags::KEEP_SIZE, 2 << 20, 4 << 20).is_err() {
        return skip(Need::Machine, "no blocks behind the end here");
    }
    assert!(!End::new(&source).unwrap().may_have_holes());
    let mover = iotomy_movers::mover("copy-file-range").unwrap();
    check(mover, Case::new(Sparse::Auto), &all, &folder).unwrap();
    assert!(room_within(&folder.path().join("target"), 65_536) <= 65_536);
}

fn part() -> impl Strategy<Value = Region> {
    let length = prop_oneof![1_usize..20_000, (1_usize..20).prop_map(|blocks| blocks * 4096)];
    (0..3, length).prop_map(|(kind, length)| match kind {
        0 => Data(length),
        1 => Zeros(length),
        _ => Hole(length),
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn any_layout_skip_count_and_target(
        mover in 0..MOVERS.len(),
        parts in proptest::collection::vec(part(), 0..12),
        sparse in prop_oneof![Just(Sparse::Auto), Just(Sparse::Never), Just(Sparse::Always)],
        skip in prop_oneof![Just(0_u64), 0_u64..100_000],
        count in proptest::option::of(0_u64..200_000),
        old in prop_oneof![Just(0_usize), 0_usize..200_000],
        seek in prop_oneof![Just(0_u64), 0_u64..200_000],
        block_size in prop_oneof![512_usize..8000, 8000_usize..200_000],
        in_memory in any::<bool>(),
    ) {
        let mover = if sparse == Sparse::Always { iotomy_movers::mover("read-write").unwrap() } else { MOVERS[mover] };
        prop_assume!(moves(mover));
        let folder = folders::memory().filter(|_| in_memory).unwrap_or_else(folders::here);
        let all = layouts::make(&folder.path().join("source"), &parts);
        // Behind its end there is nothing a mover could be asked for.
        let skip = skip.min(all.len() as u64);
        check(mover, Case { sparse, skip, count, old, seek, block_size }, &all, &folder);
    }
}
