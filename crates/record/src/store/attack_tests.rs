//! Another user changes the names on the way to an output while it is written: nothing outside of
//! that user's directories may change, and no file may be given away.

use std::fs::{self, Permissions};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, symlink};
use std::path::Path;

use iotomy_test_requirements::{Need, skip};
use rustix::fs::{CWD, RenameFlags, renameat_with};
use rustix::process::Uid;
use rustix::thread::set_thread_res_uid;

use super::*;
use scene::{AttackScene, OTHER, SWAPS, give};

#[path = "attack_scene.rs"]
mod scene;

/// Outputs written meanwhile at least.
const WRITES: u64 = 1_000;

/// Whether files can be given to another; a test that needs that is skipped.
fn is_root() -> bool {
    let is_root = rustix::process::geteuid().is_root();
    if !is_root {
        skip(Need::Root, "only root can be led to another user's files");
    }
    is_root
}

#[test]
fn a_folder_that_is_swapped_for_a_link_leads_no_output_elsewhere() {
    if !is_root() {
        return;
    }
    let scene = AttackScene::new();
    scene.link("../ours", "theirs/l");
    let ours = scene.ours();
    let out = scene.path("theirs/d/f");
    scene.attack("theirs/d", "theirs/l", WRITES, || {
        // It is written where it was meant to be, or refused.
        let _ = OutputFile::write(&out, Path::new("/"), b"new");
    });
    assert_eq!(scene.ours(), ours);
    // The same without an attacker.
    let is_link = |name: &str| fs::symlink_metadata(scene.path(name)).unwrap().is_symlink();
    let (real, link) = if is_link("theirs/d") { ("l", "d") } else { ("d", "l") };
    OutputFile::write(&scene.path(&format!("theirs/{real}/f")), Path::new("/"), b"x").unwrap();
    let file = fs::metadata(scene.path(&format!("theirs/{real}/f"))).unwrap();
    assert_eq!((file.uid(), file.len()), (OTHER, 1));
    let refused = OutputFile::write(&scene.path(&format!("theirs/{link}/f")), Path::new("/"), b"x");
    let refused = refused.unwrap_err().to_string();
    assert!(
        refused.contains("a symbolic link of user 65534 leads to a directory of user 0"),
        "{refused}"
    );
    assert_eq!(scene.ours(), ours);
}

#[test]
fn a_file_that_is_swapped_for_a_link_leads_no_output_elsewhere() {
    if !is_root() {
        return;
    }
    let scene = AttackScene::new();
    scene.link("../../ours/f", "theirs/d/l");
    let ours = scene.ours();
    let out = scene.path("theirs/d/f");
    scene.attack("theirs/d/f", "theirs/d/l", WRITES, || {
        let _ = OutputFile::write(&out, Path::new("/"), b"new");
    });
    assert_eq!(scene.ours(), ours);
}

#[test]
fn a_link_of_another_users_process_leads_no_output_elsewhere() {
    if !is_root() {
        return;
    }
    let scene = AttackScene::new();
    let ours = scene.ours();
    let process = scene.their_process();
    let proc = format!("/proc/{}", process.pid());
    scene.link(&format!("{proc}/fd/0"), "theirs/fd");
    scene.link(&format!("{proc}/cwd"), "theirs/cwd");
    scene.link(&format!("{proc}/root/{}", scene.path("ours").display()), "theirs/root");
    let theirs = |name: &str| scene.path("theirs").join(name);
    for path in [
        theirs("fd"),
        theirs("cwd/f"),
        theirs("cwd/new"),
        theirs("root/f"),
        format!("{proc}/fd/0").into(),
        format!("{proc}/cwd/f").into(),
        format!("{proc}/task/{}/cwd/f", process.pid()).into(),
    ] {
        let refused = OutputFile::write(&path, Path::new("/"), b"x").unwrap_err().to_string();
        let says = "a link of /proc that belongs to a process of user 65534";
        assert!(refused.contains(says), "{path:?}: {refused}");
        assert!(
            Place::folder(path.parent().unwrap()).is_err()
                || path.ends_with("fd/0")
                || path.ends_with("fd")
        );
    }
    // Those of this process lead where its user's files are.
    scene.link("/proc/self/fd", "theirs/own");
    let open = fs::OpenOptions::new().append(true).open(scene.path("ours/f")).unwrap();
    let refused = theirs("own").join(open.as_raw_fd().to_string());
    OutputFile::write(&refused, Path::new("/"), b"x").unwrap_err();
    assert_eq!(scene.ours(), ours);
    let own = format!("/proc/self/fd/{}", open.as_raw_fd());
    OutputFile::write(Path::new(&own), Path::new("/"), b" and more").unwrap();
    assert_eq!(fs::read(scene.path("ours/f")).unwrap(), b"precious and more");
}

#[test]
fn a_place_that_was_looked_up_stays_where_it_was() {
    if !is_root() {
        return;
    }
    let scene = AttackScene::new();
    scene.link("../ours", "theirs/l");
    let ours = scene.ours();
    let (folder, link) = (scene.path("theirs/d"), scene.path("theirs/l"));
    for _ in 0..SWAPS {
        let out = OutputFile::open(&folder.join("f"), Path::new("/")).unwrap();
        renameat_with(CWD, &folder, CWD, &link, RenameFlags::EXCHANGE).unwrap();
        out.put(b"new").unwrap();
        renameat_with(CWD, &folder, CWD, &link, RenameFlags::EXCHANGE).unwrap();
    }
    assert_eq!(scene.ours(), ours);
    assert_eq!(fs::read(folder.join("f")).unwrap(), b"new");
}

#[test]
fn an_owner_is_taken_over_of_the_file_that_is_replaced_and_of_no_other() {
    if !is_root() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("f");
    let made = |owner: u32, mode: u32| {
        let other = dir.path().join("other");
        fs::write(&other, "other").unwrap();
        fs::set_permissions(&other, Permissions::from_mode(mode)).unwrap();
        chown(&other, Some(owner), Some(owner)).unwrap();
        fs::rename(&other, &path).unwrap();
    };
    let is = || {
        let file = fs::metadata(&path).unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"new");
        (file.uid(), file.gid(), file.mode() & 0o7777)
    };
    made(OTHER, 0o640);
    OutputFile::write(&path, Path::new("/"), b"new").unwrap();
    assert_eq!(is(), (OTHER, OTHER, 0o640), "that of the old one");
    // Meanwhile the name was given to another file.
    for (before, meanwhile, after) in [
        ((OTHER, 0o640), (0, 0o600), (0, 0, 0o640)),
        ((0, 0o600), (OTHER, 0o666), (0, 0, 0o600)),
        ((OTHER, 0o640), (OTHER, 0o666), (0, 0, 0o640)),
    ] {
        made(before.0, before.1);
        let out = OutputFile::open(&path, Path::new("/")).unwrap();
        made(meanwhile.0, meanwhile.1);
        out.put(b"new").unwrap();
        assert_eq!(is(), after, "{before:?} {meanwhile:?}");
    }
    // Nothing had the name.
    fs::remove_file(&path).unwrap();
    let out = OutputFile::open(&path, Path::new("/")).unwrap();
    made(OTHER, 0o666);
    out.put(b"new").unwrap();
    assert_eq!((is().0, is().1), (0, 0));
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1, "nothing is left beside it");
}

#[test]
fn a_file_that_changes_all_the_while_is_replaced_and_nothing_is_left_beside_it() {
    if !is_root() {
        return;
    }
    let scene = AttackScene::new();
    // In root's directory, where files of both users come and go.
    fs::write(scene.path("ours/theirs"), "old").unwrap();
    give(&scene.path("ours/theirs"));
    let out = scene.path("ours/f");
    scene.attack("ours/f", "ours/theirs", WRITES, || {
        OutputFile::write(&out, Path::new("/"), b"new").unwrap();
    });
    let names = fs::read_dir(scene.path("ours")).unwrap().count();
    assert_eq!(names, 2, "nothing is left beside them");
}

#[test]
fn links_of_root_and_of_the_user_are_followed_and_dots_go_back() {
    let dir = tempfile::tempdir().unwrap();
    fs::create_dir_all(dir.path().join("a/b/c")).unwrap();
    symlink("a/b", dir.path().join("ab")).unwrap();
    symlink(dir.path().join("ab/c"), dir.path().join("a/absolute")).unwrap();
    symlink("../ab/../b/./c/", dir.path().join("a/long")).unwrap();
    for (path, at) in [
        ("ab/c/1", "a/b/c/1"),
        ("ab/../2", "a/2"),
        ("a/absolute/3", "a/b/c/3"),
        ("a/long/4", "a/b/c/4"),
        ("a//b/./c/../5", "a/b/5"),
        ("a/absolute/../../6", "a/6"),
    ] {
        OutputFile::write(Path::new(path), dir.path(), path.as_bytes()).unwrap();
        assert_eq!(fs::read(dir.path().join(at)).unwrap(), path.as_bytes(), "{path}");
    }
    // From an open directory, dots lead to its parent.
    let open = fs::File::open(dir.path().join("a/b/c")).unwrap();
    for (dots, at) in [("../7", "a/b/7"), ("../../8", "a/8"), ("./9", "a/b/c/9")] {
        let path = format!("/proc/self/fd/{}/{dots}", open.as_raw_fd());
        OutputFile::write(Path::new(&path), dir.path(), path.as_bytes()).unwrap();
        assert_eq!(fs::read(dir.path().join(at)).unwrap(), path.as_bytes(), "{path}");
    }
}

#[test]
fn what_is_appended_to_is_what_was_looked_up() {
    let dir = tempfile::tempdir().unwrap();
    let (path, moved) = (dir.path().join("f"), dir.path().join("moved"));
    fs::write(&path, "old").unwrap();
    let place = Place::resolve(&path).unwrap();
    fs::rename(&path, &moved).unwrap();
    let none = Place::resolve(&path).unwrap();
    fs::write(&path, "other").unwrap();
    place.append().unwrap().write_all(b" new").unwrap();
    assert_eq!(none.append().unwrap_err().kind(), ErrorKind::AlreadyExists);
    assert_eq!(fs::read(&path).unwrap(), b"other");
    assert_eq!(fs::read(&moved).unwrap(), b"old new");
    fs::remove_file(&path).unwrap();
    none.append().unwrap().write_all(b"made").unwrap();
    assert_eq!(fs::read(&path).unwrap(), b"made");
}

#[test]
fn set_id_bits_are_taken_over_only_with_the_owner() {
    if !is_root() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    fs::set_permissions(dir.path(), Permissions::from_mode(0o777)).unwrap();
    for (user, expected) in [(0, (0, 0o6777)), (OTHER, (OTHER, 0o777))] {
        let path = dir.path().join(user.to_string());
        fs::write(&path, "old").unwrap();
        fs::set_permissions(&path, Permissions::from_mode(0o6777)).unwrap();
        // Another user for this thread alone, which has no rights but that user's then.
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let id = Some(Uid::from_raw(user));
                set_thread_res_uid(id, id, id).unwrap();
                OutputFile::write(&path, Path::new("/"), b"new").unwrap();
            });
        });
        let file = fs::metadata(&path).unwrap();
        assert_eq!((file.uid(), file.mode() & 0o7777), expected);
    }
}

#[test]
fn a_link_of_another_is_followed_within_what_is_that_users() {
    if !is_root() {
        return;
    }
    let scene = AttackScene::new();
    scene.link("d", "theirs/own");
    scene.link("d/f", "theirs/file");
    scene.link("../ours/f", "theirs/stolen");
    scene.link("../ours/none", "theirs/planted");
    scene.link("/dev/null", "theirs/device");
    let ours = scene.ours();
    for path in ["theirs/own/f", "theirs/file", "theirs/own/new"] {
        OutputFile::write(&scene.path(path), Path::new("/"), b"x").unwrap();
    }
    for path in ["theirs/stolen", "theirs/planted", "theirs/device"] {
        let refused = OutputFile::write(&scene.path(path), Path::new("/"), b"x").unwrap_err();
        let refused = refused.to_string();
        assert!(refused.contains("name its target itself"), "{path}: {refused}");
    }
    assert_eq!(scene.ours(), ours);
}
