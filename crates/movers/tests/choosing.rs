//! What the chooser makes of a pair of ends: which movers, in which order, and who comes next when one
//! refuses.

use crate::support;

use std::fs::{File, OpenOptions};
use std::os::fd::AsFd;
use std::sync::atomic::AtomicU64;

use rustix::fs::{FallocateFlags, OFlags, fallocate};

use iotomy_movers::{BLOCK_SIZE, End, Job, MOVERS, Reflink, Sparse, chooser};
use iotomy_test_requirements::{Need, skip};

use support::ends::{self, From, TargetKind};
use support::{content, difference, folders, job, name, position};

const EXT4: u64 = 0xef53;

/// The movers of a plan, in their order.
fn chosen(source: &End<'_>, target: &End<'_>, job: &Job<'_>) -> Vec<&'static str> {
    let plan = chooser::choose(source, target, job);
    let names = plan.steps.iter().map(|step| name(step.mover));
    let all = plan.steps.len() + plan.unsuited.len();
    assert_eq!(all, MOVERS.len(), "every mover is tried or has a reason: {plan:?}");
    names.collect()
}

#[test]
fn zeros_are_reserved_and_not_written_unless_they_are_to_be() {
    let fallocate = iotomy_movers::mover("fallocate").unwrap();
    let mut folders = vec![folders::here()];
    folders.extend(folders::memory());
    folders
        .extend(["ext4", "xfs", "btrfs"].into_iter().filter_map(|kind| folders::image(kind).ok()));
    for folder in &folders {
        let path = folder.path().join("target");
        for (old, start) in [(0, 0), (0, 5000), (100_000, 5000), (100_000, 100_000)] {
            std::fs::write(&path, vec![0xEE; old]).unwrap();
            let zero = File::open("/dev/zero").unwrap();
            let target = OpenOptions::new().write(true).open(&path).unwrap();
            rustix::fs::seek(&target, rustix::fs::SeekFrom::Start(start)).unwrap();
            let progress = AtomicU64::new(0);
            let job = Job { count: Some(70_001), ..job(&progress) };
            let (from, to) = (End::new(&zero).unwrap(), End::new(&target).unwrap());
            assert_eq!(chosen(&from, &to, &job), ["fallocate", "read-write"]);
            let forbidden = Job { sparse: Sparse::Never, ..job };
            assert_eq!(chosen(&from, &to, &forbidden), ["read-write"]);
            assert!(fallocate.serves(&from, &to, &Job { count: None, ..job }).is_err());

            let plan = chooser::choose(&from, &to, &job);
            let report = chooser::run(&plan, &from, &to, &job).unwrap();
            let label = format!("{} over {old} from {start}: {report:?}", folder.name);
            assert_eq!(report.moved.bytes, 70_001, "{label}");
            assert_eq!(position(&target), Some(start + 70_001), "{label}");
            let mut expected = vec![0xEE; old];
            let start = usize::try_from(start).unwrap();
            expected.resize(expected.len().max(start + 70_001), 0);
            expected[start..start + 70_001].fill(0);
            let is = std::fs::read(&path).unwrap();
            assert_eq!(difference(&is, &expected), None, "{label}");
        }
    }
}

#[test]
fn where_nothing_can_be_shared_large_files_are_spliced() {
    let Some(folder) = folders::memory() else { return skip(Need::Machine, "no /dev/shm") };
    let progress = AtomicU64::new(0);
    for (size, expected) in [
        (1 << 20, &["splice", "copy-file-range", "sendfile", "read-write"][..]),
        // A wide pipe is not worth making for these.
        (4096, &["copy-file-range", "sendfile", "read-write"]),
    ] {
        let source = ends::source(From::File(0), &content(size), folder.path());
        let target = ends::target(TargetKind::File, folder.path());
        let (from, to) = (End::new(&source.fd).unwrap(), End::new(&target.fd).unwrap());
        assert_eq!(chosen(&from, &to, &job(&progress)), expected);
    }
}

#[test]
fn large_files_are_copied_by_two_threads_where_there_is_a_cpu_for_each() {
    let Some(folder) = folders::memory() else { return skip(Need::Machine, "no /dev/shm") };
    let source = File::create_new(folder.path().join("source")).unwrap();
    let target = ends::target(TargetKind::File, folder.path());
    let progress = AtomicU64::new(0);
    let room = |size| fallocate(&source, FallocateFlags::empty(), 0, size).unwrap();
    let first = |size: u64, job: &Job<'_>| {
        source.set_len(size).unwrap();
        let (from, to) = (End::new(&source).unwrap(), End::new(&target.fd).unwrap());
        chosen(&from, &to, job)[..2].to_vec()
    };
    let job = job(&progress);
    let two = match std::thread::available_parallelism().unwrap().get() {
        1 => ["splice", "copy-file-range"],
        _ => ["pipelined", "splice"],
    };
    let one = ["splice", "copy-file-range"];
    // A file with holes is copied extent by extent.
    assert_eq!(first(64 << 20, &job), one);
    room(64 << 20);
    assert_eq!(first(64 << 20, &job), two);
    assert_eq!(first(64 << 20, &Job { count: Some(1 << 20), ..job }), one);
    assert_eq!(first(64 << 20, &Job { threads: 1, ..job }), one);
    assert_eq!(first((64 << 20) - 1, &job), one);
    room(64 << 20);
    let mut cpu = rustix::thread::CpuSet::new();
    cpu.set(rustix::thread::sched_getcpu());
    // Of this test's thread alone.
    rustix::thread::sched_setaffinity(None, &cpu).unwrap();
    assert_eq!(first(64 << 20, &job), one);
}

#[test]
fn the_chooser_knows_the_routes_and_never_runs_out_of_movers() {
    let folder = folders::here();
    let progress = AtomicU64::new(0);
    let plain = job(&progress);
    let by_value = Job { by_value: true, ..plain };
    for (from, to, job, first) in [
        (From::File(0), TargetKind::Pipe, plain, "splice"),
        (From::File(0), TargetKind::Pipe, by_value, "read-write"),
        (From::File(0), TargetKind::Unix, plain, "sendfile"),
        (From::File(0), TargetKind::Tcp, plain, "splice"),
        (From::File(0), TargetKind::Tcp, by_value, "read-write"),
        (From::File(0), TargetKind::Unix, by_value, "read-write"),
        (From::Pipe, TargetKind::Pipe, plain, "splice"),
        (From::Pipe, TargetKind::Pipe, by_value, "read-write"),
        (From::Pipe, TargetKind::Unix, by_value, "read-write"),
        (From::Unix, TargetKind::Pipe, by_value, "read-write"),
        (From::Pipe, TargetKind::File, by_value, "splice"),
        (From::Pipe, TargetKind::File, plain, "splice"),
        (From::Pipe, TargetKind::Append, plain, "read-write"),
        (From::File(0), TargetKind::Direct, plain, "read-write"),
        (From::Tcp, TargetKind::Tcp, plain, "splice"),
        (From::File(0), TargetKind::Null, plain, "mmap-write"),
    ] {
        let source = ends::source(from, b"some bytes", folder.path());
        let target = ends::target(to, folder.path());
        let (from_end, to_end) = (End::new(&source.fd).unwrap(), End::new(&target.fd).unwrap());
        let names = chosen(&from_end, &to_end, &job);
        // Where the build is on a file system that shares extents, sharing comes first.
        let names: Vec<_> = names.into_iter().filter(|name| *name != "reflink").collect();
        assert_eq!(names.first(), Some(&first), "{from:?} to {to:?}");
        assert_eq!(names.last(), Some(&"read-write"), "{from:?} to {to:?}");
        let plan = chooser::choose(&from_end, &to_end, &job);
        let report = chooser::run(&plan, &from_end, &to_end, &job).unwrap();
        assert_eq!(report.moved.bytes, 10, "{report:?}");
        assert_eq!(target.content(), ends::expected(to, b"some bytes"), "{from:?} to {to:?}");
    }
}

#[test]
fn a_route_has_its_block_size_unless_the_job_has_one() {
    let folder = folders::here();
    let progress = AtomicU64::new(0);
    let whole = content(2 << 20);
    for (to, block_size, expected) in [
        (TargetKind::Tcp, None, 512 * 1024),
        (TargetKind::Tcp, Some(64 * 1024), 64 * 1024),
        (TargetKind::Append, None, BLOCK_SIZE),
    ] {
        let source = ends::source(From::File(0), &whole, folder.path());
        let target = ends::target(to, folder.path());
        let (from, to_end) = (End::new(&source.fd).unwrap(), End::new(&target.fd).unwrap());
        let job = Job { block_size, ..Job::new(&progress) };
        let plan = chooser::only(iotomy_movers::mover("read-write").unwrap(), &from, &to_end, &job);
        let before = writes_of_this_thread();
        chooser::run(&plan.unwrap(), &from, &to_end, &job).unwrap();
        let (Some(before), Some(after)) = (before, writes_of_this_thread()) else {
            return skip(Need::Machine, "the kernel does not count the writes of a thread");
        };
        assert_eq!(after - before, whole.len() / expected, "{to:?} {block_size:?}");
    }
}

fn writes_of_this_thread() -> Option<usize> {
    let io = std::fs::read_to_string("/proc/thread-self/io").ok()?;
    io.lines().find_map(|line| line.strip_prefix("syscw: "))?.parse().ok()
}

#[test]
fn a_run_of_the_chooser_widens_pipes_for_more_than_they_hold() {
    // Not everybody may have wide pipes.
    for (bytes, wide) in [(1000, &[65_536][..]), (300_000, &[65_536, 1 << 20])] {
        let size = size_after(bytes, None);
        assert!(wide.contains(&size), "{bytes} bytes: {size}");
    }
}

#[test]
fn a_pipe_that_somebody_has_sized_stays_as_it_is() {
    for given in [4096, 1 << 17, 1 << 20] {
        let size = size_after(3_000_000, Some(given));
        assert_eq!(size, given);
    }
}

/// The size of a pipe, `given` or as the kernel makes it, after so many bytes of a file have gone
/// through it.
fn size_after(bytes: usize, given: Option<usize>) -> usize {
    use rustix::pipe::{fcntl_getpipe_size, fcntl_setpipe_size};
    let folder = folders::here();
    let progress = AtomicU64::new(0);
    let expected = content(bytes);
    let source = ends::source(From::File(0), &expected, folder.path());
    let target = ends::target(TargetKind::Pipe, folder.path());
    if let Some(given) = given {
        fcntl_setpipe_size(&target.fd, given).unwrap();
    }
    let (from, to) = (End::new(&source.fd).unwrap(), End::new(&target.fd).unwrap());
    let plan = chooser::choose(&from, &to, &job(&progress));
    chooser::run(&plan, &from, &to, &job(&progress)).unwrap();
    let size = fcntl_getpipe_size(&target.fd).unwrap();
    assert_eq!(difference(&target.content().unwrap(), &expected), None);
    size
}

#[test]
fn a_refused_mover_gives_way_to_the_next() {
    let folder = match folders::image("xfs") {
        Ok(folder) => folder,
        Err(reason) => return skip(Need::Devices, &reason),
    };
    let given = content(100_000);
    // Extents are shared in blocks, and this is none.
    let source = ends::source(From::File(1000), &given, folder.path());
    let target = ends::target(TargetKind::File, folder.path());
    let progress = AtomicU64::new(0);
    let job = job(&progress);
    let (from, to) = (End::new(&source.fd).unwrap(), End::new(&target.fd).unwrap());
    let plan = chooser::choose(&from, &to, &job);
    let report = chooser::run(&plan, &from, &to, &job).unwrap();
    assert_eq!(report.mover, Some("copy-file-range"));
    let refused: Vec<_> = report.refused.iter().map(|refused| refused.mover).collect();
    assert_eq!(refused, ["reflink"]);
    assert_eq!(report.moved.bytes, 100_000);
    assert_eq!(difference(&target.content().unwrap(), &given), None);
}

#[test]
fn no_mover_that_passes_on_pages_is_chosen_where_a_file_may_hold_less_than_it_claims() {
    const FUSE: u64 = 0x6573_5546;
    let folder = folders::here();
    let progress = AtomicU64::new(0);
    let job = job(&progress);
    for (kind, passing) in [
        (TargetKind::File, &["copy-file-range", "sendfile"][..]),
        (TargetKind::Pipe, &["splice"]),
        (TargetKind::Unix, &["sendfile", "splice"]),
    ] {
        let source = ends::source(From::File(0), &content(1 << 20), folder.path());
        let target = ends::target(kind, folder.path());
        let stat = rustix::fs::fstat(&source.fd).unwrap();
        let end = |magic| End::known(source.fd.as_fd(), &stat, OFlags::RDONLY, magic);
        let to = End::new(&target.fd).unwrap();
        let (own, of_server) = (chosen(&end(EXT4), &to, &job), chosen(&end(FUSE), &to, &job));
        assert!(passing.iter().any(|name| own.contains(name)), "{kind:?}: {own:?}");
        let of_pages = |name: &&str| ["copy-file-range", "sendfile", "splice"].contains(name);
        assert!(!of_server.iter().any(of_pages), "{kind:?}: {of_server:?}");
        assert!(of_server.contains(&"read-write"), "{kind:?}: {of_server:?}");
    }
}

#[test]
fn plans_exclude_who_would_keep_holes_that_must_not_be_and_say_why() {
    let progress = AtomicU64::new(0);
    for (kind, shares) in [("ext4", false), ("xfs", true), ("btrfs", true)] {
        let folder = match folders::image(kind) {
            Ok(folder) => folder,
            Err(reason) => {
                skip(Need::Devices, &reason);
                continue;
            }
        };
        let source = ends::source(From::File(0), b"some bytes", folder.path());
        let target = ends::target(TargetKind::File, folder.path());
        let (from, to) = (End::new(&source.fd).unwrap(), End::new(&target.fd).unwrap());
        for sparse in [Sparse::Auto, Sparse::Never, Sparse::Always] {
            let plan = chooser::choose(&from, &to, &Job { sparse, ..job(&progress) });
            let steps: Vec<_> = plan.steps.iter().map(|step| name(step.mover)).collect();
            let expected: &[_] = match (sparse, shares) {
                (Sparse::Auto, true) => &["reflink", "copy-file-range", "sendfile", "read-write"],
                (Sparse::Auto | Sparse::Never, false) => {
                    &["copy-file-range", "sendfile", "read-write"]
                }
                (Sparse::Never, true) => &["sendfile", "read-write"],
                (Sparse::Always, _) => &["read-write"],
            };
            assert_eq!(steps, expected, "{kind}, {sparse:?}");
            if sparse == Sparse::Never && shares {
                let about_holes = |unsuited: &&chooser::Unsuited| unsuited.reason.contains("holes");
                let names: Vec<_> =
                    plan.unsuited.iter().filter(about_holes).map(|u| u.mover).collect();
                assert_eq!(names, ["reflink", "copy-file-range"], "{plan:?}");
            }
        }
        let both = Job { sparse: Sparse::Never, reflink: Reflink::Always, ..job(&progress) };
        assert!(chooser::choose(&from, &to, &both).steps.is_empty());
    }
}
