//! What cannot be done is said in one line, with status 2, and changes nothing. All refusals are tested in
//! `crates/copy`; here are one of each kind, and those of the command line.

use crate::support;

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};

use support::copying::{Folder, content, refused};

#[test]
fn each_kind_of_refusal_is_said_in_one_line() {
    let folder = Folder::new();
    folder.write("a", "x");
    folder.write("old", "old");
    symlink("nothing", folder.path("link")).unwrap();
    for (words, why) in [
        ("nope old", "cannot read nope: No such file or directory; check the name"),
        ("a nope/b", "cannot write nope/b: No such file or directory; create its directory"),
        ("a old/", "cannot copy a into old/: it is not a directory; name one, or leave out"),
        ("a old old", "cannot copy 2 sources into old: it is not a directory; name one, or"),
        ("a link", "cannot write link: it is a symbolic link to nothing"),
        ("old ./old", "they are the same file; name another"),
        ("--mover vmsplice a old", "by vmsplice: the target is a regular file"),
        ("--mover null a old", "by null: it moves nothing, and the target would lose"),
        ("--mover splice /proc/version old", " by splice"),
        ("--seek 9223372036854775807 a new", "cannot seek to 9,223,372,036,854,775,807 in"),
        ("a /dev/full", "cannot write /dev/full: No space left on device after 0 "),
    ] {
        let said = folder.refuse(2, &words.split(' ').collect::<Vec<_>>());
        assert!(said.contains(why), "{words}: {said}");
        assert_eq!((folder.read("old"), folder.names().len()), (b"old".to_vec(), 3), "{words}");
    }
}

#[test]
fn a_device_that_is_not_there_is_told_from_a_socket() {
    let folder = Folder::new();
    folder.write("a", "new text");
    if !support::has("setsid") {
        return;
    }
    for (words, attempt) in [
        (["/dev/tty", "b"], "cannot read /dev/tty: "),
        (["a", "/dev/tty"], "cannot write /dev/tty: "),
    ] {
        let mut command = support::bare("setsid", &["--wait", support::IOTOMY, "copy"]);
        let output = command.args(words).current_dir(folder.path("")).output().unwrap();
        let stderr = refused(2, &output);
        let why = "No such device or address; there is no such device";
        assert!(stderr.contains(&format!("{attempt}{why}")), "{stderr}");
    }
}

#[test]
fn permissions_are_asked_for_and_named() {
    if !support::root() || !support::has("setpriv") {
        return;
    }
    let folder = support::for_everyone();
    let write = |name: &str, mode| {
        let path = folder.path().join(name);
        fs::write(&path, "old").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
    };
    write("secret", 0o600);
    write("open", 0o644);
    for (words, word) in [
        (&["secret", "x"][..], "cannot read secret: Permission denied; see `ls -l`"),
        (&["--concat", "open", "secret", "x"], "cannot read secret: Permission denied"),
        (&["/etc/hostname", "open"], "cannot write open: Permission denied; see `ls -ld`"),
        (&["--atomic", "/etc/hostname", "open"], "cannot write open: Permission denied"),
        (&["/etc/hostname", "/etc/iotomy-new"], "cannot write /etc/iotomy-new: Permission denied"),
    ] {
        let output = support::as_nobody(folder.path()).arg("copy").args(words).output().unwrap();
        let stderr = refused(2, &output);
        assert!(stderr.contains(word), "{words:?}: {stderr}");
    }
    assert!(!folder.path().join("x").exists());
    assert_eq!(fs::read(folder.path().join("open")).unwrap(), b"old");
}

#[test]
fn options_that_do_not_fit_the_ends_are_refused() {
    let folder = Folder::new();
    folder.write("a", content(10));
    folder.write("b", content(10));
    fs::create_dir(folder.path("d")).unwrap();
    for (words, why) in [
        ("--seek 1 a -", "cannot seek in standard output: it is a pipe"),
        ("--append a -", "cannot append to standard output"),
        ("--atomic a -", "cannot replace standard output"),
        ("--verify a -", "cannot verify standard output: it is a pipe"),
        ("--fsync a -", "cannot sync standard output"),
        ("--preserve a /dev/null", "/dev/null is a character device"),
        ("--by-value --mover splice a -", "later writes to the source could show through"),
        ("- d", "it has no name of its own"),
        ("--json a a c", "--json a would be written over a"),
        ("--json c a c", "--json c would be written over c"),
        ("--json - a -", "--json - would be written over -"),
        ("--json d/a a d", "--json d/a would be written over d/a"),
        ("a", "no target given"),
        ("--populate a b", "cannot use --populate with the chooser's movers: only mmap"),
        ("--huge-pages --mover splice a b", "with splice: only mmap-write maps; add"),
    ] {
        let output = folder.run(&words.split(' ').collect::<Vec<_>>());
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{words:?}: {stderr}");
        assert!(stderr.contains(why) && stderr.starts_with("iotomy: "), "{words:?}: {stderr}");
        assert!(!folder.path("c").exists(), "{words:?}");
    }
}

#[test]
fn command_lines_that_make_no_sense_are_refused() {
    let folder = Folder::new();
    folder.write("a", "x");
    for words in [
        &[][..],
        &["--count", "x", "a", "b"],
        &["--count", "-1", "a", "b"],
        &["--skip", "1.5K", "a", "b"],
        &["--seek", "9E", "a", "b"],
        &["--block-size", "0", "a", "b"],
        &["--block-size", "2G", "a", "b"],
        &["--depth", "0", "a", "b"],
        &["--threads", "0", "a", "b"],
        &["--mover", "teleport", "a", "b"],
        &["--sparse", "sometimes", "a", "b"],
        &["--append", "--seek", "1", "a", "b"],
        &["--append", "--atomic", "a", "b"],
        &["--atomic", "--seek", "1", "a", "b"],
        &["--list", "a", "b"],
    ] {
        let output = folder.run(words);
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{words:?}: {stderr}");
        assert!(stderr.starts_with("iotomy: ") && output.stdout.is_empty(), "{words:?}: {stderr}");
        assert_eq!(folder.names(), ["a"], "{words:?}");
    }
}
