//! Files copied to files and folders, whole and in parts.

use std::fs;
use std::os::unix::fs::{FileExt, MetadataExt, PermissionsExt, symlink};

use iotomy_copy::{Options, Placement};
use iotomy_movers::{Job, Reflink, Sparse};
use iotomy_test_requirements::{Need, skip};

use crate::support::{Folder, any, append, atomic, content, joined, part};

/// Larger than a block, and no multiple of one.
const LARGE: usize = 1_000_003;

#[test]
fn what_a_target_held_is_gone_and_its_mode_and_its_links_stay() {
    let folder = Folder::new();
    folder.write("a", "new");
    fs::create_dir(folder.path("d")).unwrap();
    symlink("a", folder.path("to-a")).unwrap();
    symlink("d/old", folder.path("link")).unwrap();
    for placement in [Placement::Truncate, Placement::Atomic] {
        let old = folder.write("d/old", content(LARGE));
        fs::set_permissions(&old, fs::Permissions::from_mode(0o640)).unwrap();
        let _ = fs::remove_file(folder.path("d/other"));
        fs::hard_link(&old, folder.path("d/other")).unwrap();
        let before = fs::metadata(&old).unwrap();
        let options = Options { placement, fsync: true, verify: true, ..joined() };
        folder.copy(&options, &["to-a", "a"], "link");
        assert_eq!(folder.read("d/old"), b"newnew", "{placement:?}");
        assert!(fs::symlink_metadata(folder.path("link")).unwrap().is_symlink());
        let after = fs::metadata(&old).unwrap();
        assert_eq!(after.mode(), before.mode(), "{placement:?}");
        // Put in place, it is another file, and the old one is whole under its other name.
        let is_other = placement == Placement::Atomic;
        assert_eq!(after.ino() != before.ino(), is_other);
        assert_eq!(folder.read("d/other").len(), if is_other { LARGE } else { 6 });
        folder.copy(&Options { placement, ..any() }, &["a"], "d");
        assert_eq!(folder.read("d/a"), b"new");
        assert_eq!(Folder::at(&folder.path("d")).names(), ["a", "old", "other"]);
    }
}

#[test]
fn a_new_file_has_the_sources_mode_less_the_umask_and_set_id_bits() {
    let folder = Folder::new();
    let source = folder.write("a", "x");
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let umask = status.lines().find_map(|line| line.strip_prefix("Umask:")).unwrap();
    let allowed = 0o777 & !u32::from_str_radix(umask.trim(), 8).unwrap();
    for mode in [0o4777, 0o2750, 0o600, 0o444] {
        fs::set_permissions(&source, fs::Permissions::from_mode(mode)).unwrap();
        for options in [any(), atomic()] {
            folder.copy(&options, &["a"], "b");
            let new = fs::metadata(folder.path("b")).unwrap();
            assert_eq!(new.mode() & 0o7777, mode & allowed, "{mode:o} {:?}", options.placement);
            fs::remove_file(folder.path("b")).unwrap();
        }
    }
}

#[test]
fn a_folder_takes_each_source_under_its_name() {
    let folder = Folder::new();
    folder.write("a", "1");
    fs::create_dir_all(folder.path("x/y")).unwrap();
    folder.write("x/b", "2");
    symlink("x/y", folder.path("link")).unwrap();
    for target in ["x/y", "x/y/", "link"] {
        folder.copy(&any(), &["a", "x/b"], target);
        assert_eq!((folder.read("x/y/a"), folder.read("x/y/b")), (b"1".to_vec(), b"2".to_vec()));
        fs::remove_file(folder.path("x/y/a")).unwrap();
    }
}

#[test]
fn parts_are_counted_over_all_sources_as_far_as_they_go() {
    let folder = Folder::new();
    let large = content(LARGE);
    for (name, content) in [("a", &large[..]), ("b", b""), ("c", b"the end"), ("s", b"abcdef")] {
        folder.write(name, content);
    }
    let last = LARGE as u64 - 2;
    for (options, sources, expected) in [
        (any(), &["a", "b", "c"][..], [&large[..], b"the end"].concat()),
        (part(last, Some(5)), &["a", "b", "c"], [&large[LARGE - 2..], b"the"].concat()),
        (append(), &["a"], [b"before", &large[..]].concat()),
        (Options { placement: Placement::Append, ..part(1, Some(2)) }, &["s"], b"beforebc".into()),
        (part(0, Some(0)), &["s"], vec![]),
        (part(0, Some(1 << 20)), &["s"], b"abcdef".into()),
        (part(4, None), &["s"], b"ef".into()),
        (part(6, None), &["s"], vec![]),
        (part(1 << 30, None), &["s"], vec![]),
    ] {
        folder.write("to", "before");
        folder.copy(&Options { concat: true, ..options }, sources, "to");
        assert!(folder.read("to") == expected, "{sources:?}: {} bytes", expected.len());
    }
    folder.copy(&append(), &["s"], "new");
    assert_eq!(folder.read("new"), b"abcdef");
}

#[test]
fn a_part_is_copied_to_a_place_and_all_around_it_stays() {
    let folder = Folder::new();
    let from = content(LARGE);
    folder.write("a", &from);
    let mut expected = vec![0xEE; 5000];
    folder.write("b", &expected);
    // The second leaves a hole behind the old end, the third begins where the file does; the last are zeros.
    for (source, skip, count, at) in
        [("a", 2048, 1024, 1000), ("a", 0, 3, 6000), ("a", 0, 1, 0), ("/dev/zero", 0, 1000, 500)]
    {
        let placement = Placement::At(at as u64);
        folder.copy(
            &Options { placement, ..part(skip as u64, Some(count as u64)) },
            &[source],
            "b",
        );
        expected.resize(expected.len().max(at + count), 0);
        match source {
            "a" => expected[at..at + count].copy_from_slice(&from[skip..skip + count]),
            _ => expected[at..at + count].fill(0),
        }
        assert!(folder.read("b") == expected, "{count} bytes at {at}");
    }
}

#[test]
fn zeros_and_files_made_up_when_they_are_read_are_copied() {
    let folder = Folder::new();
    let version = fs::read("/proc/version").unwrap();
    for (options, sources, expected) in [
        (part(0, Some(1 << 20)), &["/dev/zero"][..], vec![0; 1 << 20]),
        (part(3, Some(5)), &["/dev/zero"], vec![0; 5]),
        (any(), &["/proc/version"], version.clone()),
        (part(6, Some(7)), &["/proc/version"], b"version".into()),
        (
            joined(),
            &["/proc/version", "/proc/sys/kernel/ostype"],
            [&version[..], b"Linux\n"].concat(),
        ),
    ] {
        folder.copy(&options, sources, "to");
        assert!(folder.read("to") == expected, "{sources:?}: {} bytes", expected.len());
    }
}

#[test]
fn holes_stay_what_was_asked_for_and_content_stays_the_same() {
    let folder = Folder::new();
    let file = fs::File::create(folder.path("a")).unwrap();
    file.set_len(8 << 20).unwrap();
    file.write_all_at(b"x", 4 << 20).unwrap();
    let is_sparse = |name: &str| fs::metadata(folder.path(name)).unwrap().blocks() * 512 < 1 << 20;
    if !is_sparse("a") {
        return skip(Need::Machine, "this file system has no holes");
    }
    for sparse in [Sparse::Auto, Sparse::Never, Sparse::Always] {
        let name = format!("{sparse:?}");
        folder.copy(&Options { job: Job { sparse, ..any().job }, ..any() }, &["a"], &name);
        assert!(folder.read(&name) == folder.read("a"), "{name}");
        assert_eq!(is_sparse(&name), sparse != Sparse::Never, "{name}");
    }
}

#[test]
fn extents_are_shared_only_where_the_file_system_can() {
    let folder = Folder::new();
    folder.write("a", content(LARGE));
    folder.write("d", "old");
    let copy = |reflink, to| {
        let options = Options { job: Job { reflink, ..any().job }, ..any() };
        folder.try_copy(&options, &["a"], to)
    };
    assert!(copy(Reflink::Never, "b").errors.is_empty() && folder.read("b") == content(LARGE));
    let accounts = ["c", "d"].map(|to| copy(Reflink::Always, to));
    if accounts[0].errors.is_empty() {
        assert!(folder.read("c") == content(LARGE) && folder.read("d") == content(LARGE));
        return;
    }
    let message = accounts.each_ref().map(|account| folder.error(account));
    assert!(message.iter().all(|message| message.contains("--reflink")), "{message:?}");
    assert!(!folder.path("c").exists(), "what could not be shared is not left behind");
    assert_eq!(folder.read("d"), b"old", "what cannot be shared leaves the old file whole");
}
