//! Errors of read(2), write(2), fsync(2) and close(2), which a file system for tests gives where it is told to: each
//! of them ends a copy with an error that names it, by every mover, and an atomic copy leaves the old file whole.

use std::collections::BTreeSet;
use std::fs;

use iotomy_copy::{Account, Options, Placement};
use iotomy_fault_fs::{Fault, FaultFs, Operation};
use iotomy_movers::{Job, Sparse};
use iotomy_test_requirements::{Need, skip};
use rustix::io::Errno;

use crate::file_systems;
use crate::support::{
    Folder, any, append, at, atomic, by, by_any, content, is_refused, joined, mount, movers,
    preserved, verified,
};

/// Bytes of a source, and the byte where it or its copy fails.
const SIZE: usize = 2_500_000;
const AT: u64 = 1_000_000;

/// What a target holds before the copy.
const OLD: &[u8] = b"what was there before";

/// What the kernel says of an error.
fn text(errno: Errno) -> String {
    let said = std::io::Error::from(errno).to_string();
    said[..said.find(" (os error").unwrap()].to_owned()
}

/// The bytes an error says had been written.
fn stated(said: &str) -> usize {
    let (before, _) = said.split_once(" bytes").unwrap_or_else(|| panic!("{said}"));
    let number = before.rsplit(' ').next().unwrap().replace(',', "");
    number.parse().unwrap_or_else(|_| panic!("{said}"))
}

/// Those who met the fault that a test is about.
type Met = BTreeSet<Option<&'static str>>;

/// Says which movers serve no pair of a test; the usual ones do, but those `without`.
fn check_met(met: &Met, without: &[&str]) {
    let usual = ["read-write", "splice", "copy-file-range", "sendfile", "mmap-write", "vmsplice"];
    let usual = usual.into_iter().chain(["pipelined", "parallel"]);
    for mover in usual.filter(|mover| !without.contains(mover)).map(Some).chain([None]) {
        assert!(met.contains(&mover), "{mover:?} never met the fault");
    }
    for mover in movers().filter(|mover| !met.contains(mover)) {
        skip(Need::Machine, &format!("{mover:?} does not serve these pairs"));
    }
}

/// The routes from a file of a mounted file system: to a file elsewhere, to one beside it, which copy_file_range(2) may
/// want, and to a FIFO.
const TARGETS: [(Placement, &str); 6] = [
    (Placement::Truncate, "b"),
    (Placement::Append, "b"),
    (Placement::Atomic, "b"),
    (Placement::Truncate, "beside"),
    (Placement::Atomic, "beside"),
    (Placement::Truncate, "fifo"),
];

/// Copies a file `a` of a mounted file system on each of these routes by each mover, over old files; gives the account
/// and what is in the target then to `check`, but of a mover that does not serve. A test that fails prints the last.
fn from_mounted(
    mounted: &FaultFs,
    mut check: impl FnMut(Option<&'static str>, Placement, &Account, &[u8]),
) {
    let folder = Folder::new();
    let (a, beside) = (mounted.path("a"), mounted.path("beside"));
    for mover in movers() {
        for (placement, name) in TARGETS {
            let target = if name == "beside" { beside.clone() } else { folder.path(name) };
            if name != "fifo" {
                fs::write(&target, OLD).unwrap();
            }
            let options = Options { placement, ..by_any(mover) };
            let run =
                || folder.try_copy(&options, &[a.to_str().unwrap()], target.to_str().unwrap());
            let (account, content) = match name {
                "fifo" => folder.drained("fifo", run),
                _ => (run(), fs::read(&target).unwrap()),
            };
            if is_refused(mover, &account) {
                continue;
            }
            println!("{mover:?} {placement:?} to {name}: {account:?}");
            check(mover, placement, &account, &content);
            let left = folder.names();
            assert!(left.iter().all(|name| ["b", "fifo"].contains(&&name[..])), "{left:?}");
            assert!(fs::read_dir(mounted.folder()).unwrap().count() <= 2, "{mover:?} {name}");
        }
    }
}

#[test]
fn a_read_error_is_not_the_end_by_any_mover() {
    let all = content(SIZE);
    let mut met = Met::new();
    for errno in [Errno::IO, Errno::STALE, Errno::NOMEM] {
        let faults = [Fault::on("a", Operation::Read(AT), errno)];
        let Some(mounted) = mount(&[("a", &all)], &faults) else { return };
        let error = format!("cannot read {}: {} after ", mounted.path("a").display(), text(errno));
        let mut times = 0;
        from_mounted(&mounted, |mover, placement, account, content| {
            let message = account.errors[0].to_string();
            assert!(message.contains(&error) && mounted.times(0) > times);
            times = mounted.times(0);
            met.insert(mover);
            let moved = &all[..stated(&message)];
            let expected = match placement {
                Placement::Append => [OLD, moved].concat(),
                Placement::Atomic => OLD.to_vec(),
                _ => moved.to_vec(),
            };
            // Movers that work at several places may have written behind the failure.
            assert!(content.starts_with(&expected), "{} bytes", content.len());
        });
    }
    check_met(&met, &[]);
}

#[test]
fn an_error_of_closing_the_source_is_told_and_keeps_the_old_file() {
    let all = content(SIZE);
    let faults = [Fault::on("a", Operation::Close, Errno::STALE)];
    let Some(mounted) = mount(&[("a", &all)], &faults) else { return };
    let a = mounted.path("a");
    let error = format!("cannot close {}: Stale file handle after 2,500,000 bytes; ", a.display());
    let mut met = Met::new();
    from_mounted(&mounted, |mover, placement, account, content| {
        let message = account.errors[0].to_string();
        met.insert(mover);
        let (state, expected) = match placement {
            Placement::Atomic => (" is unchanged", OLD.to_vec()),
            Placement::Append => ("holds everything that was read", [OLD, &all].concat()),
            _ => ("holds everything that was read", all.clone()),
        };
        assert!(message.contains(&error) && message.contains(state) && content == expected);
    });
    check_met(&met, &[]);
    let folder = Folder::new();
    folder.write("small", "small");
    let said = folder.refuse(&joined(), &[a.to_str().unwrap(), "small"], "b");
    assert!(said.contains(&error) && said.contains("b is partial"), "{said}");
    assert!(folder.read("b") == all);
}

#[test]
fn an_error_of_looking_for_holes_is_told_and_a_file_system_that_cannot_look_is_none() {
    let all = content(SIZE);
    for (errno, is_error) in [(Errno::IO, true), (Errno::OPNOTSUPP, false)] {
        let faults = [Fault::on("a", Operation::Seek, errno)];
        let Some(mounted) = mount(&[("a", &all)], &faults) else { return };
        let a = mounted.path("a");
        let error = format!("cannot read {}: Input/output error after 0 bytes", a.display());
        let mut met = Met::new();
        from_mounted(&mounted, |mover, placement, account, content| {
            if placement != Placement::Atomic {
                return;
            }
            met.insert(mover);
            if is_error {
                assert!(account.errors[0].to_string().contains(&error) && content == OLD);
            } else {
                assert!(account.errors.is_empty() && content == all);
            }
        });
        assert!(mounted.times(0) > 0);
        check_met(&met, &NO_FILES);
    }
}

/// Copies by every mover and from every kind of source, over an old file `b` of a file system with this fault;
/// gives each error to `check`, with what `b` holds then. Returns who met the fault.
fn over_old_files(
    options: &Options,
    fault: &Fault,
    mut check: impl FnMut(&str, Vec<u8>, &str),
) -> Option<Met> {
    let folder = Folder::new();
    let all = content(SIZE);
    folder.write("a", &all);
    let mut met = Met::new();
    for mover in movers() {
        // A file, one of the same file system, and where a mover takes no file, zeros.
        for source in ["a", "beside", "/dev/zero"] {
            let mounted = mount(&[("b", OLD), ("beside", &all)], std::slice::from_ref(fault))?;
            let (a, b) = (mounted.path("beside"), mounted.path("b"));
            let a = if source == "beside" { a.to_str().unwrap() } else { source };
            let one = by_any(mover);
            let options = Options {
                mover: one.mover,
                job: Job { count: Some(SIZE as u64), ..one.job },
                ..options.clone()
            };
            let account = folder.try_copy(&options, &[a], b.to_str().unwrap());
            let label = format!("{mover:?} {source:?} {:?}: {account:?}", options.placement);
            if is_refused(mover, &account) {
                // Nothing was written.
                assert_eq!(fs::read(&b).unwrap(), OLD, "{label}");
                continue;
            }
            let message = folder.error(&account).replace(b.to_str().unwrap(), "b");
            assert!(mounted.times(0) > 0, "{label}");
            met.insert(mover);
            check(&message, fs::read(&b).unwrap(), &label);
            let mut names = Folder::at(mounted.folder()).names();
            names.retain(|name| name != "beside");
            assert_eq!(names, ["b"], "{label}");
        }
    }
    Some(met)
}

/// What vmsplice writes to is a pipe.
const NO_FILES: [&str; 1] = ["vmsplice"];

#[test]
fn a_write_error_is_told_with_what_had_been_written_by_every_mover() {
    for errno in [Errno::NOSPC, Errno::DQUOT, Errno::IO] {
        let fault = Fault::elsewhere("beside", Operation::Write(AT), errno);
        let met = over_old_files(&any(), &fault, |said, now, label| {
            let is_named = said.starts_with("cannot write b: ")
                || (errno == Errno::IO && said.contains("to b: "));
            assert!(is_named && said.contains(&text(errno)), "{label}");
            assert!(now.len() >= stated(said) && now.len() < SIZE, "{label}: {}", now.len());
            assert!(said.contains("is partial"), "{label}");
        });
        let Some(met) = met else { return };
        check_met(&met, &NO_FILES);
        if errno == Errno::DQUOT {
            continue;
        }
        let met = over_old_files(&atomic(), &fault, |said, now, label| {
            assert!(said.contains(&text(errno)) && said.contains("is unchanged"), "{label}");
            assert_eq!(now, OLD, "{label}");
        });
        check_met(&met.unwrap(), &NO_FILES);
    }
}

#[test]
fn an_error_of_fsync_is_told_and_keeps_the_old_file() {
    let fault = Fault::elsewhere("beside", Operation::Fsync, Errno::IO);
    for placement in [Placement::Truncate, Placement::Atomic] {
        let options = Options { fsync: true, placement, ..any() };
        let met = over_old_files(&options, &fault, |said, now, label| {
            assert!(said.contains("cannot sync b: Input/output error"), "{label}");
            assert_eq!(now == OLD, placement == Placement::Atomic, "{label}");
        });
        let Some(met) = met else { return };
        check_met(&met, &NO_FILES);
    }
}

#[test]
fn an_error_of_close_is_told_by_every_mover_and_keeps_the_old_file() {
    for (placement, fsync, errno) in [
        (Placement::Truncate, false, Errno::NOSPC),
        (Placement::Truncate, true, Errno::IO),
        (Placement::Atomic, false, Errno::DQUOT),
        (Placement::Atomic, true, Errno::NOSPC),
    ] {
        let fault = Fault::elsewhere("beside", Operation::Close, errno);
        let options = Options { fsync, placement, ..any() };
        let met = over_old_files(&options, &fault, |said, now, label| {
            let is_atomic = placement == Placement::Atomic;
            // What is written past the page cache goes through a descriptor of its own, and the rest after it.
            let (state, least) = match label.starts_with("Some(\"direct\")") {
                _ if is_atomic => ("is unchanged", SIZE - 4096),
                true => ("is partial", SIZE - 4096),
                false => ("may be incomplete", SIZE),
            };
            let error = format!("cannot close b: {} after ", text(errno));
            assert!(said.contains(&error) && said.contains(state), "{label}");
            assert!((least..=SIZE).contains(&stated(said)), "{label}");
            assert_eq!(now == OLD, is_atomic, "{label}");
        });
        let Some(met) = met else { return };
        check_met(&met, &NO_FILES);
    }
}

#[test]
fn an_error_of_closing_is_told_of_new_files_parts_and_files_in_a_folder() {
    let faults = [Fault::everywhere(Operation::Close, Errno::DQUOT)];
    let folder = Folder::new();
    folder.write("a", "content");
    let sparse = Job { sparse: Sparse::Always, ..any().job };
    for (options, name) in [
        (any(), "new"),
        (preserved(), "new"),
        (append(), "b"),
        (at(3), "b"),
        (verified(), "b"),
        (Options { job: sparse, ..any() }, "b"),
        (any(), ""),
    ] {
        let Some(mounted) = mount(&[("b", OLD)], &faults) else { return };
        let (target, name) = (mounted.path(name), if name.is_empty() { "a" } else { name });
        let account = folder.try_copy(&options, &["a"], target.to_str().unwrap());
        let error = format!("cannot close {}: Disk quota exceeded", mounted.path(name).display());
        assert!(folder.error(&account).contains(&error), "{account:?}");
        assert_eq!(account.moved.bytes, 7, "{account:?}");
    }
}

#[test]
fn a_copy_inside_the_kernel_that_moves_nothing_in_the_middle_is_not_the_end() {
    let all = content(SIZE);
    let faults = [Fault::silent("a", Operation::CopyRange(AT))];
    let Some(mounted) = mount(&[("a", &all)], &faults) else { return };
    let folder = Folder::at(mounted.folder());
    for mover in ["copy-file-range", "parallel"] {
        folder.copy(&by(mover), &["a"], "b");
        assert!(folder.read("b") == all, "{mover}");
    }
    assert!(mounted.times(0) >= 2);
}

#[test]
fn a_file_that_would_block_for_ever_is_an_error() {
    let all = content(SIZE);
    let faults = [
        Fault::on("a", Operation::Read(AT), Errno::AGAIN),
        Fault::on("b", Operation::Write(AT), Errno::AGAIN),
    ];
    let Some(mounted) = mount(&[("a", &all), ("good", &all), ("b", OLD)], &faults) else { return };
    let (here, elsewhere) = (Folder::at(mounted.folder()), Folder::new());
    let fifo = elsewhere.path("fifo");
    let fifo = fifo.to_str().unwrap();
    let mut met = Met::new();
    for mover in movers() {
        let options = by_any(mover);
        let copy = |source, target| here.try_copy(&options, &[source], target);
        for account in [
            copy("a", "new"),
            copy("good", "b"),
            elsewhere.drained("fifo", || copy("a", fifo)).0,
            elsewhere.fed("fifo", &all, || copy(fifo, "b")),
        ] {
            if is_refused(mover, &account) {
                continue;
            }
            let message = here.error(&account);
            assert!(
                message.contains(&format!("{} after ", text(Errno::AGAIN))),
                "{mover:?}: {message}"
            );
            met.insert(mover);
        }
    }
    check_met(&met, &[]);
}

#[test]
fn a_full_disk_is_an_error_that_tells_what_is_left() {
    let small = match file_systems::small(1 << 20) {
        Err(reason) => return skip(Need::Devices, &reason),
        Ok(small) => small,
    };
    let (folder, from) = (Folder::at(small.path()), Folder::new());
    let large = from.write("a", content(3_000_001));
    let less = from.write("b", content(700 * 1024));
    let (large, less) = (large.to_str().unwrap(), less.to_str().unwrap());
    let said = folder.refuse(&any(), &[large], "x");
    let error = "cannot write x: No space left on device after 1,048,576 bytes; x is partial; free \
                 some space, or use --atomic to keep the old file whole";
    assert_eq!(said, error);
    assert!(folder.read("x") == content(3_000_001)[..1 << 20]);
    // It counts all sources.
    let said = folder.refuse(&joined(), &[less, less], "x");
    assert!(said.contains("No space left on device after 1,048,576 bytes; "), "{said}");
    let said = folder.refuse(&append(), &[less], "x");
    assert!(said.contains("No space left on device after 0 bytes; "), "{said}");
    // What is replaced in one step stays whole, and all the room is free again.
    folder.write("x", "old");
    let said = folder.refuse(&atomic(), &[large], "x");
    assert!(said.contains("No space left on device after "), "{said}");
    assert!(said.ends_with("; x is unchanged; free some space, or write somewhere else"), "{said}");
    assert_eq!(folder.read("x"), b"old");
    let said = folder.refuse(&atomic(), &[large], "new");
    assert!(said.contains("; new was not created; "), "{said}");
    assert_eq!(folder.names(), ["x"]);
    assert_eq!(rustix::fs::statvfs(small.path()).unwrap().f_bfree, 255);
}
