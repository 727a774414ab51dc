//! Targets that are read back, and attributes that are kept.

use std::fs::{self, File};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::process::Command;

use iotomy_copy::{CopyError, Options, Placement};
use iotomy_test_requirements::{Need, skip};
use rustix::fs::{Timespec, Timestamps, XattrFlags, futimens, getxattr, setxattr};

use crate::support::{Folder, any, append, by, content, joined, mount, part, preserved, verified};

const LARGE: usize = 3_000_001;

#[test]
fn a_target_is_read_back_and_found_right() {
    let folder = Folder::new();
    folder.write("a", content(LARGE));
    folder.write("old", vec![0xEE; 5000]);
    for (options, sources, target) in [
        (any(), &["a"][..], "b"),
        (joined(), &["a", "a"], "b"),
        (append(), &["a"], "b"),
        (part(1000, Some(2 << 20)), &["a"], "b"),
        (Options { placement: Placement::At(100), ..part(10, Some(1000)) }, &["a"], "old"),
        (Options { placement: Placement::Atomic, ..by("read-write") }, &["a"], "b"),
    ] {
        let account = folder.try_copy(&Options { verify: true, ..options }, sources, target);
        assert!(account.errors.is_empty() && account.verified == Some(true), "{account:?}");
    }
}

#[test]
fn a_copy_that_moved_too_little_is_found_whatever_its_mover_says() {
    let folder = Folder::new();
    folder.write("a", content(LARGE));
    let nothing = Options { verify: true, job: part(0, Some(1000)).job, ..by("null") };
    let account = folder.try_copy(&nothing, &["a"], "b");
    assert!(matches!(account.errors[..], [CopyError::Differs(_)]), "{account:?}");
    assert_eq!(account.verified, Some(false));
    let why = "b differs from a at byte 0 (of the target; 0 of the source), where it ends; copy it";
    assert!(folder.error(&account).starts_with(why), "{account:?}");
    folder.copy(&verified(), &["a"], "b");
}

#[test]
fn mode_and_times_are_kept() {
    let folder = Folder::new();
    let source = folder.write("a", "x");
    fs::create_dir(folder.path("d")).unwrap();
    folder.write("old", "old");
    folder.write("replaced", "old");
    let time = Timespec { tv_sec: 981_173_106, tv_nsec: 789_012_345 };
    for (placement, target, file) in [
        (Placement::Truncate, "new", "new"),
        (Placement::Truncate, "old", "old"),
        (Placement::Atomic, "replaced", "replaced"),
        (Placement::Truncate, "d", "d/a"),
    ] {
        fs::set_permissions(&source, fs::Permissions::from_mode(0o6751)).unwrap();
        let times = Timestamps { last_access: time, last_modification: time };
        futimens(File::open(&source).unwrap(), &times).unwrap();
        let facts = |name: &str| {
            let of = fs::metadata(folder.path(name)).unwrap();
            (of.mode(), of.mtime(), of.mtime_nsec(), of.atime(), of.atime_nsec())
        };
        let before = facts("a");
        folder.copy(&Options { placement, ..preserved() }, &["a"], target);
        assert_eq!(facts(file), before, "{file}");
        assert_eq!(folder.read(file), b"x");
    }
}

#[test]
fn extended_attributes_are_kept_or_said_to_be_lost() {
    let folder = Folder::new();
    let source = folder.write("a", "x");
    let large = content(2000);
    let all = [("user.small", &b"value"[..]), ("user.large", &large), ("user.empty", b"")];
    for (name, value) in all {
        if let Err(errno) = setxattr(&source, name, value, XattrFlags::empty()) {
            return skip(Need::Machine, &format!("no extended attributes: {errno}"));
        }
    }
    let kept = |target: &str, name: &str| {
        let mut value = vec![0; 100_000];
        let length = getxattr(folder.path(target), name, &mut value[..]).ok();
        length.map(|length| value[..length].to_vec())
    };
    folder.copy(&preserved(), &["a"], "b");
    for (name, value) in all {
        assert_eq!(kept("b", name).unwrap(), value, "{name}");
    }
    folder.copy(&any(), &["a"], "c");
    assert_eq!(kept("c", "user.small"), None);
    // A file system that has none.
    let Some(mounted) = mount(&[], &[]) else { return };
    let target = mounted.path("b");
    let said = folder.refuse(&preserved(), &["a"], target.to_str().unwrap());
    assert!(said.starts_with("cannot preserve attribute user."), "{said}");
    assert!(said.ends_with(": Operation not supported; all bytes were copied"), "{said}");
    assert_eq!(fs::read(target).unwrap(), b"x");
}

#[test]
fn an_access_list_is_kept_and_one_of_the_folder_is_not_added() {
    let folder = Folder::new();
    folder.write("a", "x");
    folder.write("plain", "x");
    fs::create_dir(folder.path("d")).unwrap();
    let run = |program: &str, words: &[&str]| {
        let output = Command::new(program).args(words).current_dir(folder.path("")).output();
        output.ok().filter(|output| output.status.success()).map(|output| output.stdout)
    };
    let lists = [&["-m", "u:12345:rw", "a"][..], &["-d", "-m", "u:777:rwx", "d"]];
    if !lists.iter().all(|words| run("setfacl", words).is_some()) {
        return skip(Need::Programs, "no setfacl, or no access lists here");
    }
    folder.copy(&preserved(), &["a", "plain"], "d");
    for name in ["a", "plain"] {
        let list = |name: &str| run("getfacl", &["-cn", name]).unwrap();
        assert_eq!(list(&format!("d/{name}")), list(name));
    }
}
