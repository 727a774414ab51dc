//! Files copied to files and folders as the command line says. What becomes of them is tested in `crates/copy`.

use crate::support;

use std::ffi::OsStr;
use std::fs;
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::process::{Command, Stdio};

use support::copying::{Folder, content, refused};

/// Larger than a block, and no multiple of one.
const LARGE: usize = 1_000_003;

#[test]
fn a_file_is_copied_whole_and_silently() {
    let folder = Folder::new();
    for length in [0, 1, 4096, LARGE] {
        folder.write("a", content(length));
        folder.copy(&["a", "b"]);
        assert!(folder.read("b") == content(length), "{length}");
    }
}

#[test]
fn each_option_reaches_the_copy() {
    let folder = Folder::new();
    let (a, old) = (content(LARGE), content(5000));
    let path = folder.write("a", &a);
    let inside = [&old[..1000], &a[2048..3072], &old[2024..]].concat();
    for (words, expected) in [
        ("a b", a.clone()),
        ("--skip 2K --count 1k --seek 1000 a b", inside),
        ("--append a b", [&old[..], &a].concat()),
        ("--concat --fsync --verify a a b", [&a[..], &a].concat()),
        ("--mover read-write --sparse never --reflink never a b", a.clone()),
        ("--by-value --block-size 64K --depth 3 --threads 3 a b", a.clone()),
    ] {
        folder.write("b", &old);
        folder.copy(&words.split(' ').collect::<Vec<_>>());
        assert!(folder.read("b") == expected, "{words}");
    }
    let before = fs::metadata(folder.path("b")).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o4711)).unwrap();
    folder.copy(&["--atomic", "--preserve", "a", "b"]);
    let after = fs::metadata(folder.path("b")).unwrap();
    assert_ne!(after.ino(), before.ino(), "it is another file");
    assert_eq!(after.mode() & 0o7777, 0o4711);
    assert_eq!(after.mtime(), fs::metadata(path).unwrap().mtime());
}

#[test]
fn a_source_that_fails_does_not_keep_the_others_from_a_folder() {
    let folder = Folder::new();
    folder.write("a", "1");
    folder.write("c", "3");
    fs::create_dir_all(folder.path("d/c")).unwrap();
    fs::create_dir(folder.path("e")).unwrap();
    let output = folder.run(&["nope", "e", "a", "-", "..", "a", "c", "d"]);
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{stderr}");
    let lines: Vec<&str> = stderr.lines().collect();
    assert_eq!(lines.len(), 6, "{stderr}");
    for (line, word) in lines.iter().zip([
        "cannot read nope: No such file",
        "cannot copy e: it is a directory",
        "cannot copy - into d: it has no name",
        "cannot copy .. into d",
        "cannot copy a to d/a: another source was just copied there",
        "cannot write d/c: is a directory",
    ]) {
        assert!(line.contains(word), "{line}");
    }
    assert_eq!(folder.read("d/a"), b"1");
}

#[test]
fn names_need_not_be_text() {
    let folder = Folder::new();
    let (from, to) = (OsStr::from_bytes(b"a\xff\n"), OsStr::from_bytes(b"b\xfe"));
    folder.write(from, "x");
    assert!(folder.command(&[from, to]).status().unwrap().success());
    assert_eq!(folder.read(to), b"x");
    fs::create_dir(folder.path("d")).unwrap();
    assert!(folder.command(&[from, to, OsStr::new("d")]).status().unwrap().success());
    assert_eq!(fs::read_dir(folder.path("d")).unwrap().count(), 2);
    fs::remove_file(folder.path(from)).unwrap();
    let output = folder.command(&[from, to]).output().unwrap();
    assert!(refused(2, &output).contains(r"cannot read a\xff\n: No such file"), "{output:?}");
    // A name that looks like an option.
    folder.write("-v", "y");
    folder.copy(&["--", "-v", "w"]);
    assert_eq!(folder.read("w"), b"y");
}

#[test]
fn a_program_that_runs_is_replaced_only_in_one_step() {
    let folder = Folder::new();
    folder.write("a", "#!/bin/sh\n");
    let sleep = fs::read("/bin/sleep").unwrap();
    let program = support::program(&folder.path(""), "program", &sleep);
    let mut running = Command::new(&program).arg("600").spawn().unwrap();
    let said = folder.refuse(2, &["a", "program"]);
    let replaced = folder.run(&["--atomic", "a", "program"]);
    running.kill().unwrap();
    running.wait().unwrap();
    assert!(said.contains("Text file busy; it is a running program: use --atomic"), "{said}");
    assert!(replaced.status.success() && folder.read("program") == b"#!/bin/sh\n");
}

#[test]
fn a_kill_in_the_middle_leaves_the_old_whole_and_nothing_behind() {
    for old in [Some("old"), None] {
        let folder = Folder::new();
        if let Some(old) = old {
            folder.write("b", old);
        }
        let mut command = folder.command(&["--atomic", "-", "b"]);
        let mut child = command.stdin(Stdio::piped()).spawn().unwrap();
        // More than a pipe holds, so that some of it has been written.
        child.stdin.as_mut().unwrap().write_all(&content(LARGE)).unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
        let expected: &[&str] = if old.is_some() { &["b"] } else { &[] };
        assert_eq!(folder.names(), expected);
        if let Some(old) = old {
            assert_eq!(folder.read("b"), old.as_bytes());
        }
    }
}
