//! Somebody else who changes the names on the way to an output while it is written: nothing outside of
//! that user's folders may change, and nothing of anybody's be given away.

use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, lchown, symlink};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use iotomy_needs::{Need, skip};
use rustix::fs::{CWD, RenameFlags, renameat_with};

use super::*;

/// The other user.
const OTHER: u32 = 65534;

/// Swaps there are at least in an attack.
const SWAPS: u64 = 10_000;

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

fn give(path: &Path) {
    lchown(path, Some(OTHER), Some(OTHER)).unwrap();
}

/// A folder `theirs/d` of the other user with a file `f`, and one of root's, `ours`, with another.
struct Scene {
    top: tempfile::TempDir,
}

impl Scene {
    fn new() -> Self {
        // In memory, where there is some: every replaced file is synced.
        let memory = tempfile::tempdir_in("/dev/shm");
        let scene = Self { top: memory.or_else(|_| tempfile::tempdir()).unwrap() };
        for folder in ["theirs", "theirs/d", "ours"] {
            fs::create_dir(scene.path(folder)).unwrap();
        }
        fs::write(scene.path("theirs/d/f"), "old").unwrap();
        fs::write(scene.path("ours/f"), "precious").unwrap();
        fs::set_permissions(scene.path("ours/f"), Permissions::from_mode(0o600)).unwrap();
        for theirs in ["theirs", "theirs/d", "theirs/d/f"] {
            give(&scene.path(theirs));
        }
        scene
    }

    fn path(&self, name: &str) -> PathBuf {
        self.top.path().join(name)
    }

    fn link(&self, to: &str, name: &str) {
        symlink(to, self.path(name)).unwrap();
        give(&self.path(name));
    }

    /// What root has: names, content, owner, mode and the file itself.
    fn ours(&self) -> (Vec<String>, Vec<u8>, (u32, u32, u32), u64) {
        let names = fs::read_dir(self.path("ours")).unwrap();
        let names = names.map(|name| name.unwrap().file_name().into_string().unwrap()).collect();
        let file = fs::metadata(self.path("ours/f")).unwrap();
        let content = fs::read(self.path("ours/f")).unwrap();
        (names, content, (file.uid(), file.gid(), file.mode()), file.ino())
    }

    /// Exchanges two names while `work` is done again and again.
    fn attack(&self, one: &str, other: &str, work: impl Fn()) {
        let (one, other) = (self.path(one), self.path(other));
        let (swaps, ends) = (AtomicU64::new(0), AtomicBool::new(false));
        std::thread::scope(|scope| {
            let attacker = scope.spawn(|| {
                while !ends.load(Ordering::Relaxed) {
                    renameat_with(CWD, &one, CWD, &other, RenameFlags::EXCHANGE).unwrap();
                    swaps.fetch_add(1, Ordering::Relaxed);
                }
            });
            // Enough of both, so that they meet whichever is the faster.
            for _ in 0..WRITES {
                work();
            }
            while swaps.load(Ordering::Relaxed) < SWAPS && !attacker.is_finished() {
                work();
            }
            ends.store(true, Ordering::Relaxed);
        });
    }
}

#[test]
fn a_folder_that_is_swapped_for_a_link_leads_no_output_elsewhere() {
    if !is_root() {
        return;
    }
    let scene = Scene::new();
    scene.link("../ours", "theirs/l");
    let ours = scene.ours();
    let out = scene.path("theirs/d/f");
    scene.attack("theirs/d", "theirs/l", || {
        // It is written where it was meant to be, or refused.
        let _ = OutputFile::write(&out, Path::new("/"), b"new");
    });
    assert_eq!(scene.ours(), ours);
    // And so it is when nobody moves.
    let is_link = |name: &str| fs::symlink_metadata(scene.path(name)).unwrap().is_symlink();
    let (real, link) = if is_link("theirs/d") { ("l", "d") } else { ("d", "l") };
    OutputFile::write(&scene.path(&format!("theirs/{real}/f")), Path::new("/"), b"x").unwrap();
    let file = fs::metadata(scene.path(&format!("theirs/{real}/f"))).unwrap();
    assert_eq!((file.uid(), file.len()), (OTHER, 1));
    let refused = OutputFile::write(&scene.path(&format!("theirs/{link}/f")), Path::new("/"), b"x");
    let refused = refused.unwrap_err().to_string();
    assert!(
        refused.contains("a symbolic link of user 65534 leads to a folder of user 0"),
        "{refused}"
    );
    assert_eq!(scene.ours(), ours);
}

#[test]
fn a_file_that_is_swapped_for_a_link_leads_no_output_elsewhere() {
    if !is_root() {
        return;
    }
    let scene = Scene::new();
    scene.link("../../ours/f", "theirs/d/l");
    let ours = scene.ours();
    let out = scene.path("theirs/d/f");
    scene.attack("theirs/d/f", "theirs/d/l", || {
        let _ = OutputFile::write(&out, Path::new("/"), b"new");
    });
    assert_eq!(scene.ours(), ours);
}

#[test]
fn a_place_that_was_looked_up_stays_where_it_was() {
    if !is_root() {
        return;
    }
    let scene = Scene::new();
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
    // Meanwhile the name has come to another file.
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
    let scene = Scene::new();
    // In root's folder, where files of both come and go.
    fs::write(scene.path("ours/theirs"), "old").unwrap();
    give(&scene.path("ours/theirs"));
    let out = scene.path("ours/f");
    scene.attack("ours/f", "ours/theirs", || {
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
}

#[test]
fn a_link_of_another_is_followed_within_what_is_that_users() {
    if !is_root() {
        return;
    }
    let scene = Scene::new();
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
        assert!(refused.contains("name the place itself"), "{path}: {refused}");
    }
    assert_eq!(scene.ours(), ours);
}
