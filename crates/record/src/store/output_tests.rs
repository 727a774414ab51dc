use std::os::unix::fs::symlink;
use std::process::Command;

use super::*;
use std::fs::{OpenOptions, Permissions};
use std::os::unix::fs::PermissionsExt;

fn folder() -> tempfile::TempDir {
    tempfile::tempdir().unwrap()
}

fn names(dir: &Path) -> Vec<String> {
    let mut names: Vec<_> = fs::read_dir(dir)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().mode() & 0o7777
}

#[test]
fn a_new_file_is_relative_to_the_base_and_has_the_usual_mode() {
    let dir = folder();
    OutputFile::write(Path::new("a"), dir.path(), b"text").unwrap();
    fs::write(dir.path().join("usual"), b"").unwrap();
    assert_eq!(fs::read(dir.path().join("a")).unwrap(), b"text");
    assert_eq!(mode(&dir.path().join("a")), mode(&dir.path().join("usual")));
    assert_eq!(names(dir.path()), ["a", "usual"]);
}

#[test]
fn an_old_file_is_replaced_and_keeps_its_mode() {
    let dir = folder();
    let path = dir.path().join("a");
    fs::write(&path, b"a longer text").unwrap();
    fs::set_permissions(&path, Permissions::from_mode(0o640)).unwrap();
    OutputFile::write(&path, Path::new("/"), b"new").unwrap();
    assert_eq!(fs::read(&path).unwrap(), b"new");
    assert_eq!(mode(&path), 0o640);
}

#[test]
fn a_failure_half_way_leaves_the_old_file_and_nothing_else() {
    let dir = folder();
    fs::write(dir.path().join("a"), b"old").unwrap();
    let error = OutputFile::write_with(Path::new("a"), dir.path(), |to| {
        to.write_all(&[b'x'; 100_000])?;
        Err(ErrorKind::StorageFull.into())
    })
    .unwrap_err()
    .to_string();
    assert!(error.starts_with("cannot write "), "{error}");
    assert!(error.contains("; free some space"), "{error}");
    assert_eq!(fs::read(dir.path().join("a")).unwrap(), b"old");
    assert_eq!(names(dir.path()), ["a"]);
}

#[test]
fn a_device_is_written_through_and_stays_one() {
    OutputFile::write(Path::new("/dev/null"), Path::new("/"), b"text").unwrap();
    let error =
        OutputFile::write(Path::new("/dev/full"), Path::new("/"), b"text").unwrap_err().to_string();
    assert!(error.starts_with("cannot write to /dev/full: No space left on device"), "{error}");
    for device in ["/dev/null", "/dev/full"] {
        assert!(fs::symlink_metadata(device).unwrap().file_type().is_char_device());
    }
}

#[test]
fn a_link_stays_a_link_and_what_it_leads_to_is_replaced() {
    let dir = folder();
    fs::create_dir(dir.path().join("sub")).unwrap();
    fs::write(dir.path().join("sub/real"), b"old").unwrap();
    symlink("sub/real", dir.path().join("link")).unwrap();
    symlink("link", dir.path().join("link2")).unwrap();
    symlink("sub/absent", dir.path().join("dangling")).unwrap();
    symlink("/dev/full", dir.path().join("full")).unwrap();
    symlink("circle", dir.path().join("circle")).unwrap();
    OutputFile::write(Path::new("link2"), dir.path(), b"new").unwrap();
    OutputFile::write(Path::new("dangling"), dir.path(), b"made").unwrap();
    OutputFile::write(Path::new("full"), dir.path(), b"lost").unwrap_err();
    OutputFile::write(Path::new("circle"), dir.path(), b"lost").unwrap_err();
    assert_eq!(fs::read(dir.path().join("sub/real")).unwrap(), b"new");
    assert_eq!(fs::read(dir.path().join("sub/absent")).unwrap(), b"made");
    for link in ["link", "link2", "dangling", "full", "circle"] {
        assert!(fs::symlink_metadata(dir.path().join(link)).unwrap().is_symlink());
    }
    assert_eq!(names(&dir.path().join("sub")), ["absent", "real"]);
}

#[test]
fn a_link_that_the_kernel_would_not_follow_is_not_followed() {
    let protected = fs::read_to_string("/proc/sys/fs/protected_symlinks").unwrap_or_default();
    let dir = folder();
    let (shared, target) = (dir.path().join("shared"), dir.path().join("target"));
    fs::create_dir(&shared).unwrap();
    fs::set_permissions(&shared, Permissions::from_mode(0o1777)).unwrap();
    fs::write(&target, b"precious").unwrap();
    let link = shared.join("out.json");
    symlink(&target, &link).unwrap();
    if protected.trim() != "1" || std::os::unix::fs::lchown(&link, Some(65534), None).is_err() {
        let reason = "not root, or fs.protected_symlinks is not 1";
        return iotomy_test_requirements::skip(iotomy_test_requirements::Need::Machine, reason);
    }
    OutputFile::write(&link, Path::new("/"), b"x").unwrap_err();
    assert_eq!(fs::read(&target).unwrap(), b"precious");
}

#[test]
fn a_fifo_is_written_through() {
    let dir = folder();
    let path = dir.path().join("fifo");
    assert!(Command::new("mkfifo").arg(&path).status().unwrap().success());
    let reader = std::thread::spawn({
        let path = path.clone();
        move || fs::read(path).unwrap()
    });
    OutputFile::write(&path, Path::new("/"), b"text").unwrap();
    assert_eq!(reader.join().unwrap(), b"text");
    assert!(fs::symlink_metadata(&path).unwrap().file_type().is_fifo());
}

#[test]
fn an_open_descriptor_is_added_to_and_not_cut() {
    use std::os::fd::AsRawFd;
    let dir = folder();
    let path = dir.path().join("log");
    fs::write(&path, b"before\n").unwrap();
    let open = OpenOptions::new().write(true).open(&path).unwrap();
    let magic = format!("/proc/self/fd/{}", open.as_raw_fd());
    let inode = fs::metadata(&path).unwrap().ino();
    OutputFile::write(Path::new(&magic), Path::new("/"), b"after\n").unwrap();
    assert_eq!(fs::read(&path).unwrap(), b"before\nafter\n");
    assert_eq!(fs::metadata(&path).unwrap().ino(), inode);
}

#[test]
fn what_cannot_be_written_says_what_to_do() {
    let dir = folder();
    fs::write(dir.path().join("file"), b"old").unwrap();
    for (path, says) in [
        ("file/x", "a component of its path is a file"),
        ("absent/x", "create its directory first"),
        ("absent/", "cannot write"),
        (".", "name a file in it"),
        ("", "name a file in it"),
        ("/proc/self/comm", "cannot write /proc/self/comm"),
        ("/proc/iotomy", "cannot write /proc/iotomy"),
    ] {
        let error = OutputFile::write(Path::new(path), dir.path(), b"x").unwrap_err().to_string();
        assert!(error.contains(says), "{path}: {error}");
    }
    assert_eq!(names(dir.path()), ["file"]);
    assert_eq!(fs::read(dir.path().join("file")).unwrap(), b"old");
}

#[test]
fn outputs_to_one_place_are_seen() {
    let dir = folder();
    fs::create_dir(dir.path().join("sub")).unwrap();
    fs::write(dir.path().join("old"), b"").unwrap();
    fs::hard_link(dir.path().join("old"), dir.path().join("hard")).unwrap();
    symlink("old", dir.path().join("link")).unwrap();
    symlink("new", dir.path().join("dangling")).unwrap();
    let same = |a: &str, b: &str| same_output(Path::new(a), Path::new(b), dir.path());
    let absolute = dir.path().join("new").into_os_string().into_string().unwrap();
    for (a, b) in [
        ("old", "old"),
        ("old", "hard"),
        ("old", "link"),
        ("old", "sub/../old"),
        ("new", "new"),
        ("new", "./new"),
        ("new", "sub/../new"),
        ("new", "dangling"),
        ("new", &absolute),
        ("-", "-"),
        ("-", "/dev/stdout"),
        ("absent/x", "absent/x"),
    ] {
        assert!(same(a, b) && same(b, a), "{a} {b}");
    }
    for (a, b) in [("old", "new"), ("new", "new2"), ("sub/new", "new"), ("-", "new"), ("-", "old")]
    {
        assert!(!same(a, b) && !same(b, a), "{a} {b}");
    }
}

#[test]
fn what_could_be_written_is_known_before_and_nothing_comes_of_asking() {
    let dir = folder();
    fs::write(dir.path().join("old"), b"old").unwrap();
    fs::create_dir(dir.path().join("sub")).unwrap();
    symlink("absent", dir.path().join("dangling")).unwrap();
    let before = names(dir.path());
    let check = |path: &str| OutputFile::open(Path::new(path), dir.path()).map(drop);
    for path in ["new", "old", "dangling", "-", "/dev/null", "/dev/full"] {
        check(path).unwrap();
    }
    for (path, said) in [
        ("none/new", "; create its directory first"),
        ("old/new", "; a component of its path is a file"),
        ("sub", "; name a file in it"),
        ("new/", "; "),
        ("/dev/fd/77", "No such file"),
    ] {
        let refused = check(path).unwrap_err().to_string();
        let written = OutputFile::write(Path::new(path), dir.path(), b"x").unwrap_err();
        assert!(refused.contains(said), "{path}: {refused}");
        assert_eq!(refused, written.to_string());
    }
    assert_eq!(names(dir.path()), before);
    assert_eq!(fs::read(dir.path().join("old")).unwrap(), b"old");
}

#[test]
fn to_ask_about_a_fifo_waits_for_nobody_and_a_socket_is_refused() {
    let dir = folder();
    let fifo = dir.path().join("fifo");
    assert!(Command::new("mkfifo").arg(&fifo).status().unwrap().success());
    OutputFile::open(&fifo, dir.path()).unwrap();
    let _socket = std::os::unix::net::UnixListener::bind(dir.path().join("socket")).unwrap();
    let socket = Path::new("socket");
    let refused = OutputFile::open(socket, dir.path()).unwrap_err().to_string();
    let written = OutputFile::write(socket, dir.path(), b"x").unwrap_err().to_string();
    assert_eq!(refused, written);
}

/// An access list: the owner, user 2, the group, the mask, everybody.
fn access_list(owner: u16, other_user: u16, group: u16, mask: u16, all: u16) -> Vec<u8> {
    let mut list = 2_u32.to_le_bytes().to_vec();
    let nobody = u32::MAX;
    for (tag, bits, of) in [
        (0x01_u16, owner, nobody),
        (0x02, other_user, 2),
        (0x04, group, nobody),
        (0x10, mask, nobody),
        (0x20, all, nobody),
    ] {
        list.extend(tag.to_le_bytes());
        list.extend(bits.to_le_bytes());
        list.extend(of.to_le_bytes());
    }
    list
}

/// Sets an extended attribute; without them the test is skipped.
fn set(path: &Path, name: &str, value: &[u8]) -> bool {
    let is_set = rustix::fs::setxattr(path, name, value, rustix::fs::XattrFlags::empty());
    if let Err(errno) = is_set {
        iotomy_test_requirements::skip(
            iotomy_test_requirements::Need::Machine,
            &format!("no attribute {name}: {errno}"),
        );
    }
    is_set.is_ok()
}

fn get(path: &Path, name: &str) -> Option<Vec<u8>> {
    let mut value = vec![0; 1000];
    let length = rustix::fs::getxattr(path, name, &mut value).ok()?;
    value.truncate(length);
    Some(value)
}

const ACCESS: &str = "system.posix_acl_access";

#[test]
fn the_access_list_of_an_old_file_stays_and_its_group_gets_no_more() {
    let dir = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap();
    let path = dir.path().join("a");
    fs::write(&path, "old").unwrap();
    fs::set_permissions(&path, Permissions::from_mode(0o640)).unwrap();
    // The group may read, user 2 may write, so the mode's group bits are both.
    let list = access_list(6, 6, 4, 6, 0);
    if !set(&path, ACCESS, &list) || !set(&path, "user.note", b"kept") {
        return;
    }
    assert_eq!(mode(&path), 0o660);
    OutputFile::write(&path, Path::new("/"), b"new").unwrap();
    assert_eq!((fs::read(&path).unwrap(), mode(&path)), (b"new".to_vec(), 0o660));
    assert_eq!(get(&path, ACCESS), Some(list));
    assert_eq!(get(&path, "user.note"), Some(b"kept".to_vec()));
    // Another file has the name meanwhile: the list is not its own, and the mask is no right of a group.
    let out = OutputFile::open(&path, Path::new("/")).unwrap();
    fs::write(dir.path().join("other"), "other").unwrap();
    fs::rename(dir.path().join("other"), &path).unwrap();
    out.put(b"new").unwrap();
    assert_eq!((mode(&path) & 0o070, get(&path, ACCESS)), (0, None));
}

#[test]
fn a_list_that_a_folder_gives_its_files_opens_no_old_file() {
    let dir = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap();
    let path = dir.path().join("a");
    fs::write(&path, "old").unwrap();
    fs::set_permissions(&path, Permissions::from_mode(0o640)).unwrap();
    if !set(dir.path(), "system.posix_acl_default", &access_list(7, 7, 7, 7, 7)) {
        return;
    }
    OutputFile::write(&path, Path::new("/"), b"new").unwrap();
    assert_eq!((mode(&path), get(&path, ACCESS)), (0o640, None));
}

#[test]
fn capabilities_of_the_old_content_are_not_those_of_the_new() {
    let dir = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap();
    let path = dir.path().join("a");
    fs::write(&path, "old").unwrap();
    // Version 2, CAP_NET_RAW permitted.
    let capability = [1, 0, 0, 2, 0, 0x20, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    if !set(&path, "security.capability", &capability) {
        return;
    }
    OutputFile::write(&path, Path::new("/"), b"new").unwrap();
    assert_eq!(get(&path, "security.capability"), None);
}

#[test]
fn only_the_own_file_is_removed_by_its_name() {
    let dir = folder();
    let (own, other) = (dir.path().join("own"), dir.path().join("other"));
    fs::write(&own, "").unwrap();
    fs::write(&other, "other").unwrap();
    let metadata = fs::metadata(&own).unwrap();
    let at = fs::File::open(dir.path()).unwrap();
    let remove = |name: &str| {
        crate::store::remove_own(at.as_fd(), name.as_ref(), &metadata).unwrap();
        names(dir.path())
    };
    assert_eq!(remove("other"), ["other", "own"]);
    assert_eq!(remove("nothing"), ["other", "own"]);
    assert_eq!(remove("own"), ["other"]);
}
