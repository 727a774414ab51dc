//! What cannot be done is an error of one line, found before anything changes.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::symlink;
use std::os::unix::net::UnixListener;
use std::path::Path;

use iotomy_copy::{Options, Placement};
use iotomy_movers::{Job, MOVERS, Reflink};
use iotomy_test_requirements::{Need, skip};

use crate::file_systems;
use crate::support::{
    Folder, any, append, at, atomic, by, content, joined, part, preserved, synced, verified,
};

/// Everything that the tables name.
fn furnished() -> Folder {
    let folder = Folder::new();
    for (name, text) in [("a", "some text"), ("b", "other"), ("empty", ""), ("old", "old")] {
        folder.write(name, text);
    }
    fs::create_dir_all(folder.path("d/a")).unwrap();
    fs::create_dir_all(folder.path("links")).unwrap();
    fs::hard_link(folder.path("a"), folder.path("hard")).unwrap();
    folder.make_fifo("p");
    fs::hard_link(folder.path("p"), folder.path("hard-p")).unwrap();
    drop(UnixListener::bind(folder.path("s")).unwrap());
    for (name, to) in [
        ("soft", "a"),
        ("soft-p", "p"),
        ("link", "nothing"),
        ("link-to-link", "link"),
        ("links/a", "../nothing"),
    ] {
        symlink(to, folder.path(name)).unwrap();
    }
    folder
}

/// The names in a folder, and what is in its files.
fn inventory(folder: &Folder) -> BTreeMap<String, Vec<u8>> {
    let names = folder.names().into_iter();
    let content = |name: &str| match fs::symlink_metadata(folder.path(name)).unwrap().is_file() {
        true => folder.read(name),
        false => Vec::new(),
    };
    names.map(|name| (name.clone(), content(&name))).collect()
}

/// A copy that is refused, and why.
type Refusal<'a> = (Options, &'a [&'a str], &'a str, &'a str);

/// Tries each of them; everything is then as it was.
fn refuse_all(refusals: &[Refusal<'_>]) {
    let folder = furnished();
    let before = inventory(&folder);
    for (options, sources, target, why) in refusals {
        let said = folder.refuse(options, sources, target);
        let label = format!("{sources:?} to {target} {:?}: {said}", options.placement);
        assert!(said.starts_with("cannot ") && said.contains(why), "{label}");
        assert!(!said.contains("empty now") && !said.contains("partial"), "{label}");
        assert!(inventory(&folder) == before, "{label}");
    }
}

#[test]
fn sources_that_cannot_be_read_leave_the_target_alone() {
    for (source, why) in [
        ("nope", "cannot read nope: No such file or directory; check the name"),
        ("a/b", "cannot read a/b: Not a directory"),
        ("d", "cannot copy d: it is a directory"),
        ("s", "cannot read s: No such device or address; a socket cannot be opened"),
    ] {
        refuse_all(&[
            (any(), &[source], "old", why),
            (any(), &[source], "new", why),
            (joined(), &["a", source], "old", why),
            (atomic(), &[source], "old", why),
        ]);
    }
}

#[test]
fn targets_that_cannot_be_written_say_why() {
    refuse_all(&[
        (any(), &["a"], "nope/b", "nope/b: No such file or directory; create its directory first"),
        (atomic(), &["a"], "nope/b", "create its directory first"),
        (any(), &["a"], "nope/", "into nope/: there is no such directory; make it first, or leave"),
        (any(), &["a"], "b/", "into b/: it is not a directory; name one, or leave out the slash"),
        (any(), &["a"], "a/b", "cannot write a/b: Not a directory"),
        (any(), &["a"], "d", "cannot write d/a: is a directory; name a file in it"),
        (any(), &["a"], "s", "write s: No such device or address; a socket cannot be opened"),
        (at(i64::MAX as u64), &["a"], "new", "seek to 9,223,372,036,854,775,807 in new"),
        (at(i64::MAX as u64), &["a"], "old", "seek to 9,223,372,036,854,775,807 in old"),
    ]);
}

#[test]
fn nothing_is_written_through_a_link_that_leads_nowhere() {
    for placement in [Placement::Truncate, Placement::Atomic, Placement::Append, Placement::At(0)] {
        let options = || Options { placement, ..any() };
        refuse_all(&[
            (options(), &["a"], "link", "link: it is a symbolic link to nothing"),
            (options(), &["a"], "link-to-link", "link-to-link: it is a symbolic link to link"),
            (options(), &["a"], "links", "links/a: it is a symbolic link to ../nothing"),
        ]);
    }
}

#[test]
fn several_sources_are_not_joined_unless_that_is_asked_for() {
    for placement in [Placement::Truncate, Placement::Atomic, Placement::At(0)] {
        let options = || Options { placement, ..any() };
        let none = "2 sources into new: there is no such directory; make it first, or use --concat";
        refuse_all(&[
            (options(), &["a", "b"], "new", none),
            (options(), &["a", "b"], "new/", "new/: there is no such directory; make it first"),
            (options(), &["a", "b"], "old", "old: it is not a directory; name one, or use"),
            (options(), &["a", "b"], "/dev/null", "into /dev/null: it is not a directory"),
        ]);
    }
    // In a folder nothing can be joined without a name.
    refuse_all(&[
        (joined(), &["a", "b"], "d", "sources into d: it is a directory; name a file in it"),
        (joined(), &["a", "b"], "e/", "there is no such directory; make it first, or leave out"),
    ]);
}

#[test]
fn a_file_is_not_copied_to_itself_by_whatever_name() {
    let (file, pipe) = ("they are the same file; name another", "they are the same pipe, whose");
    refuse_all(&[
        (any(), &["a"], "a", file),
        (any(), &["a"], "./a", file),
        (any(), &["a"], "hard", file),
        (any(), &["a"], "soft", file),
        (any(), &["soft"], "a", file),
        (any(), &["a"], ".", file),
        (append(), &["a"], "a", file),
        (atomic(), &["a"], "a", file),
        (atomic(), &["hard"], "a", file),
        (at(0), &["a"], "a", file),
        (Options { placement: Placement::At(2), ..part(0, Some(5)) }, &["a"], "a", file),
        (joined(), &["a", "b"], "a", file),
        (joined(), &["b", "a"], "a", file),
        (joined(), &["b", "hard"], "soft", file),
        // Nobody waits for the other end.
        (any(), &["p"], "p", pipe),
        (any(), &["p"], "soft-p", pipe),
        (any(), &["soft-p"], "hard-p", pipe),
        (joined(), &["a", "p", "a"], "p", pipe),
        (append(), &["p"], "p", pipe),
        (atomic(), &["p"], "p", pipe),
        (any(), &["p"], ".", pipe),
        (any(), &["./p"], "./", pipe),
    ]);
    let folder = furnished();
    folder.copy(&Options { placement: Placement::At(5), ..part(0, Some(4)) }, &["a"], "a");
    assert_eq!(folder.read("a"), b"some some", "two parts that do not touch are two");
}

#[test]
fn devices_and_fifos_are_refused_where_the_options_do_not_fit_them() {
    let one = || part(0, Some(1));
    refuse_all(&[
        (at(1), &["a"], "/dev/null", "it is a character device"),
        (atomic(), &["a"], "/dev/null", "it is not a regular file; leave out --atomic"),
        (atomic(), &["a"], "/dev/full", "it is not a regular file; leave out --atomic"),
        // Of zeros there are more.
        (any(), &["a"], "/dev/full", "/dev/full: No space left on device after 0 bytes; free some"),
        (any(), &["/dev/zero"], "/dev/full", "No space left on device after 0 bytes; free some sp"),
        (verified(), &["/dev/null"], "c", "cannot verify /dev/null"),
        (synced(), &["a"], "/dev/null", "cannot sync /dev/null: it is a character device"),
        (preserved(), &["a"], "/dev/null", "/dev/null is a character device"),
        (Options { preserve: true, ..one() }, &["/dev/zero"], "c", "/dev/zero is a character dev"),
        (Options { concat: true, ..preserved() }, &["a", "b"], "c", "attributes of several sour"),
        // A FIFO is not waited for.
        (verified(), &["a"], "p", "cannot verify p: it is a pipe"),
        (verified(), &["p"], "new", "cannot verify p: it is a pipe"),
        (synced(), &["a"], "p", "cannot sync p: it is a pipe"),
        (at(1), &["a"], "p", "cannot seek in p: it is a pipe"),
        (preserved(), &["a"], "p", "cannot preserve attributes: p is a pipe"),
        (preserved(), &["p"], "new", "cannot preserve attributes: p is a pipe"),
    ]);
}

#[test]
fn a_mover_that_cannot_serve_says_why_and_which_can() {
    let (plain, null) =
        ("these can: read-write", "by null: it moves nothing, and the target would");
    let sharing = Job { reflink: Reflink::Always, ..any().job };
    let appending = Options { placement: Placement::Append, ..by("splice") };
    refuse_all(&[
        (by("vmsplice"), &["a"], "old", "by vmsplice: the target is a regular file"),
        (by("vmsplice"), &["a"], "old", plain),
        (by("vmsplice"), &["a"], "new", plain),
        (appending, &["a"], "old", "by splice: the target is open for appending"),
        (Options { job: sharing, ..by("read-write") }, &["a"], "old", "extents must be shared; "),
        (by("sendfile"), &["/dev/zero"], "old", "by sendfile: the source is a character"),
        // Nothing would be left of the target.
        (by("null"), &["a"], "old", null),
        (by("null"), &["a"], "old", plain),
        (Options { placement: Placement::Atomic, ..by("null") }, &["a"], "old", null),
        (Options { job: part(0, Some(3)).job, ..by("null") }, &["a"], "old", null),
    ]);
    let folder = furnished();
    for (placement, target) in
        [(Placement::Truncate, "none"), (Placement::Append, "old"), (Placement::At(1), "old")]
    {
        folder.copy(&Options { placement, ..by("null") }, &["a"], target);
    }
    assert_eq!((folder.read("none"), folder.read("old")), (Vec::new(), b"old".to_vec()));
}

#[test]
fn a_mover_that_may_be_refused_and_cannot_be_tried_empties_nothing() {
    let joined_by = |mover| Options { concat: true, ..by(mover) };
    let (once, single) =
        ("the source can be read only once; use", "only a single source can be tri");
    for mover in MOVERS.iter().map(|mover| mover.declaration().name) {
        if mover != "read-write" {
            refuse_all(&[(by(mover), &["/proc/version"], "old", "")]);
            let said = furnished().refuse(&by(mover), &["/proc/version"], "old");
            let recommended = ["these can: copy-file-range", ", copy-file-range"];
            assert!(!recommended.iter().any(|words| said.contains(words)), "{said}");
        }
    }
    refuse_all(&[
        (joined_by("copy-file-range"), &["empty", "/proc/version"], "old", single),
        (joined_by("direct"), &["a", "a"], "old", single),
        (joined_by("splice"), &["a", "empty", "a"], "old", single),
    ]);
    // Nothing is in danger where there is nothing, or where it stays until the end.
    let folder = furnished();
    folder.copy(&joined_by("splice"), &["a", "empty", "a"], "new");
    folder.copy(&Options { placement: Placement::Atomic, ..joined_by("splice") }, &["a"], "old");
    assert_eq!((folder.read("new").len(), folder.read("old").len()), (18, 9));
    for mover in ["splice", "io-uring"] {
        let fed = |placement, target: &str| {
            let options = Options { placement, ..by(mover) };
            folder.fed("fifo", b"new", || folder.try_copy(&options, &["fifo"], target))
        };
        folder.write("old", "old");
        let message = folder.error(&fed(Placement::Truncate, "old"));
        assert!(message.contains(once) && folder.read("old") == b"old", "{message}");
        fs::remove_file(folder.path("new")).unwrap();
        for (placement, target) in [(Placement::Truncate, "new"), (Placement::Atomic, "old")] {
            let account = fed(placement, target);
            if mover == "io-uring" && !account.errors.is_empty() {
                return skip(Need::IoUring, &folder.error(&account));
            }
            assert!(account.errors.is_empty() && folder.read(target) == b"new", "{account:?}");
        }
    }
}

#[test]
fn a_trial_asks_for_what_the_copy_will_ask_for() {
    let (small, btrfs) = (file_systems::small(8 << 20), file_systems::image("btrfs"));
    let no_room = "fallocate: fallocate: No space left";
    // Only whole blocks can be shared.
    let no_block = "reflink: ioctl: Invalid argument";
    for (there, mover, source, count, why) in [
        (small, "fallocate", "/dev/zero", 64 << 20, no_room),
        (btrfs, "reflink", "source", 1_572_865, no_block),
    ] {
        let there = match there {
            Ok(there) => there,
            Err(reason) => {
                skip(Need::Devices, &reason);
                continue;
            }
        };
        let folder = Folder::at(there.path());
        folder.write("source", content(3 << 20));
        folder.write("old", "old");
        let options = Options { job: part(0, Some(count)).job, ..by(mover) };
        let said = folder.refuse(&options, &[source], "old");
        assert!(said.contains(why) && folder.read("old") == b"old", "{said}");
    }
}

#[test]
fn files_of_the_kernel_hold_what_they_held_and_are_not_called_empty() {
    if !rustix::process::geteuid().is_root() {
        return skip(Need::Root, "not root");
    }
    let enabled = "/sys/kernel/mm/transparent_hugepage/enabled";
    for (options, target) in
        [(any(), "/proc/version"), (any(), enabled), (part(0, Some(1)), enabled)]
    {
        if Path::new(target).exists() {
            refuse_all(&[(options, &["a"], target, &format!("cannot write {target}"))]);
        }
    }
}
