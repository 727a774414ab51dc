//! What cannot be done is said in one line, with status 2, and changes nothing.

use crate::support;

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::net::UnixListener;
use std::path::Path;

use support::copying::{Folder, content, refused};

#[test]
fn sources_that_cannot_be_read_leave_the_target_alone() {
    let folder = Folder::new();
    folder.write("a", "x");
    fs::create_dir(folder.path("d")).unwrap();
    let _socket = UnixListener::bind(folder.path("s")).unwrap();
    for (source, word) in [
        ("nope", "cannot read nope: No such file or directory; check the name"),
        ("a/b", "cannot read a/b: Not a directory"),
        ("d", "cannot copy d: it is a directory"),
        ("s", "cannot read s: No such device or address; a socket"),
    ] {
        folder.write("old", "old");
        for words in
            [&[source, "old"][..], &["--concat", "a", source, "old"], &["--atomic", source, "old"]]
        {
            let said = folder.refuse(2, words);
            assert!(said.contains(word), "{words:?}: {said}");
            assert_eq!(folder.read("old"), b"old", "{words:?}");
        }
        folder.refuse(2, &[source, "new"]);
        assert!(!folder.path("new").exists());
    }
}

#[test]
fn targets_that_cannot_be_written_say_why() {
    let folder = Folder::new();
    folder.write("a", "x");
    folder.write("b", "old");
    fs::create_dir(folder.path("d")).unwrap();
    fs::create_dir(folder.path("d/a")).unwrap();
    for (target, word) in [
        ("nope/b", "cannot write nope/b: No such file or directory; create its directory first"),
        (
            "nope/",
            "cannot copy a into nope/: there is no such directory; make it first, or leave out",
        ),
        ("b/", "cannot copy a into b/: it is not a directory; name one, or leave out the slash"),
        ("a/b", "cannot write a/b: Not a directory"),
        ("d", "cannot write d/a: is a directory; name a file in it"),
        ("/proc/version", "cannot write /proc/version: "),
    ] {
        let said = folder.refuse(2, &["a", target]);
        assert!(said.contains(word), "{target}: {said}");
    }
    let said = folder.refuse(2, &["--atomic", "a", "nope/b"]);
    assert!(said.contains("create its directory first"), "{said}");
}

#[test]
fn several_sources_are_not_joined_unless_that_is_asked_for() {
    let folder = Folder::new();
    folder.write("a", "1");
    folder.write("b", "2");
    folder.write("old", "old");
    for (target, why) in [
        (
            "new",
            "cannot copy 2 sources into new: there is no such directory; make it first, or use --concat",
        ),
        (
            "new/",
            "cannot copy 2 sources into new/: there is no such directory; make it first, or use",
        ),
        ("old", "cannot copy 2 sources into old: it is not a directory; name one, or use --concat"),
        ("/dev/null", "cannot copy 2 sources into /dev/null: it is not a directory"),
    ] {
        for options in [&[][..], &["--atomic"], &["--seek", "0"]] {
            let said = folder.refuse(2, &[options, &["a", "b", target]].concat());
            assert!(said.contains(why), "{options:?} {target}: {said}");
            assert_eq!((folder.read("old"), folder.names().len()), (b"old".to_vec(), 3));
        }
    }
    folder.copy(&["--concat", "a", "b", "new"]);
    folder.copy(&["--concat", "--append", "b", "a", "new"]);
    folder.copy(&["--concat", "a", "one"]);
    assert_eq!((folder.read("new"), folder.read("one")), (b"1221".to_vec(), b"1".to_vec()));
    for target in ["-", "/dev/stdout"] {
        assert_eq!(folder.run(&["a", "b", target]).stdout, b"12");
    }
    // In a folder nothing can be joined without a name.
    fs::create_dir(folder.path("d")).unwrap();
    let said = folder.refuse(2, &["--concat", "a", "b", "d"]);
    assert!(
        said.contains("cannot write the sources into d: it is a directory; name a file"),
        "{said}"
    );
    let said = folder.refuse(2, &["--concat", "a", "b", "e/"]);
    assert!(said.contains("there is no such directory; make it first, or leave out"), "{said}");
}

#[test]
fn nothing_is_written_through_a_link_that_leads_nowhere() {
    let folder = Folder::new();
    folder.write("a", "1");
    fs::create_dir(folder.path("d")).unwrap();
    symlink("../nothing", folder.path("d/a")).unwrap();
    symlink("nothing", folder.path("link")).unwrap();
    symlink("link", folder.path("link-to-link")).unwrap();
    for (target, name, to) in [
        ("link", "link", "nothing"),
        ("link-to-link", "link-to-link", "link"),
        ("d", "d/a", "../n"),
    ] {
        for options in [&[][..], &["--atomic"], &["--append"], &["--seek", "0"]] {
            let said = folder.refuse(2, &[options, &["a", target]].concat());
            let why = format!("cannot write {name}: it is a symbolic link to {to}");
            assert!(said.contains(&why), "{options:?}: {said}");
            assert!(!folder.path("nothing").exists(), "{options:?}");
        }
    }
    // One that leads to something is written through.
    folder.write("nothing", "old");
    folder.copy(&["a", "link-to-link"]);
    assert_eq!(folder.read("nothing"), b"1");
}

#[test]
fn what_is_said_of_a_name_is_true_of_what_it_leads_to() {
    let folder = Folder::new();
    folder.write("a", "new text");
    // Files of the kernel hold what they held, and are not empty because something went wrong.
    for (words, file) in [
        (&["a", "/proc/version"][..], "/proc/version"),
        (&["a", "/sys/kernel/mm/transparent_hugepage/enabled"], "/sys/kernel/mm"),
        (&["--count", "1", "a", "/sys/kernel/mm/transparent_hugepage/enabled"], "/sys/kernel/mm"),
    ] {
        if !support::root() || !Path::new(words[words.len() - 1]).exists() {
            continue;
        }
        let said = folder.refuse(2, words);
        assert!(said.contains(&format!("cannot write {file}")), "{said}");
        assert!(!said.contains("empty") && !said.contains("partial"), "{words:?}: {said}");
    }
    // Without a terminal there is none, and no socket either.
    let _socket = UnixListener::bind(folder.path("s")).unwrap();
    for (words, attempt) in [
        (["/dev/tty", "b"], "cannot read /dev/tty: "),
        (["a", "/dev/tty"], "cannot write /dev/tty: "),
        (["s", "b"], "cannot read s: "),
        (["a", "s"], "cannot write s: "),
    ] {
        if !support::has("setsid") {
            return;
        }
        let mut command = support::bare("setsid", &["--wait", support::IOTOMY, "copy"]);
        let output = command.args(words).current_dir(folder.path("")).output().unwrap();
        let said = refused(2, &output);
        assert!(said.contains(&format!("{attempt}No such device or address; ")), "{said}");
        assert_eq!(said.contains("a socket cannot be opened"), words.contains(&"s"), "{said}");
        assert_eq!(said.contains("there is no such device"), !words.contains(&"s"), "{said}");
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
        let said = refused(2, &output);
        assert!(said.contains(word), "{words:?}: {said}");
    }
    assert!(!folder.path().join("x").exists());
    assert_eq!(fs::read(folder.path().join("open")).unwrap(), b"old");
}

#[test]
fn a_file_is_not_copied_to_itself_by_whatever_name() {
    let folder = Folder::new();
    let path = folder.write("a", "some text");
    folder.write("b", "other");
    fs::hard_link(&path, folder.path("hard")).unwrap();
    symlink("a", folder.path("soft")).unwrap();
    for words in [
        &["a", "a"][..],
        &["a", "./a"],
        &["a", "hard"],
        &["a", "soft"],
        &["soft", "a"],
        &["a", "."],
        &["--append", "a", "a"],
        &["--atomic", "a", "a"],
        &["--atomic", "hard", "a"],
        &["--seek", "0", "a", "a"],
        &["--seek", "2", "--count", "5", "a", "a"],
        &["--concat", "a", "b", "a"],
        &["--concat", "b", "a", "a"],
        &["--concat", "b", "hard", "soft"],
    ] {
        let said = folder.refuse(2, words);
        assert!(said.contains("they are the same file; name another"), "{words:?}: {said}");
        assert_eq!(folder.read("a"), b"some text", "{words:?}");
    }
    // Two parts of one file that do not touch are two.
    folder.copy(&["--count", "4", "--seek", "5", "a", "a"]);
    assert_eq!(folder.read("a"), b"some some");
}

#[test]
fn a_mover_that_cannot_serve_says_why_and_which_can() {
    let folder = Folder::new();
    folder.write("a", "x");
    folder.write("old", "old");
    for (words, why) in [
        (&["--mover", "vmsplice", "a", "old"][..], "by vmsplice: the target is a regular file"),
        (&["--mover", "splice", "--append", "a", "old"], "by splice: the target is open for app"),
        (&["--mover", "read-write", "--reflink", "always", "a", "old"], "extents must be shared"),
        (&["--mover", "sendfile", "/dev/zero", "old"], "by sendfile: the source is a character"),
    ] {
        let said = folder.refuse(2, words);
        assert!(said.contains(why) && said.contains("; "), "{words:?}: {said}");
        let can = said.contains("these can: read-write") || said.contains("no other mover can");
        assert!(can || said.contains("these can: reflink"), "{words:?}: {said}");
        assert_eq!(folder.read("old"), b"old", "{words:?}");
    }
    folder.refuse(2, &["--mover", "vmsplice", "a", "new"]);
    assert!(!folder.path("new").exists());
    // By value, a pipe is not given pages of the source.
    let said = folder.refuse(2, &["--by-value", "--mover", "splice", "a", "-"]);
    assert!(said.contains("later writes to the source could show through"), "{said}");
}

#[test]
fn options_that_do_not_fit_the_ends_are_refused() {
    let folder = Folder::new();
    folder.write("a", content(10));
    folder.write("b", content(10));
    fs::create_dir(folder.path("d")).unwrap();
    for (words, why) in [
        (&["--seek", "1", "a", "-"][..], "cannot seek in standard output: it is a pipe"),
        (&["--seek", "1", "a", "/dev/null"], "it is a character device"),
        (&["--append", "a", "-"], "cannot append to standard output"),
        (&["--atomic", "a", "-"], "cannot replace standard output"),
        (&["--verify", "a", "-"], "cannot verify standard output: it is a pipe"),
        (&["--verify", "--count", "1", "/dev/zero", "c"], "cannot verify /dev/zero"),
        (&["--fsync", "a", "-"], "cannot sync standard output"),
        (&["--fsync", "a", "/dev/null"], "cannot sync /dev/null: it is a character device"),
        (
            &["--preserve", "--concat", "a", "b", "c"],
            "cannot preserve the attributes of several sources",
        ),
        (&["--preserve", "--count", "1", "/dev/zero", "c"], "/dev/zero is a character device"),
        (&["--preserve", "a", "/dev/null"], "/dev/null is a character device"),
        (&["-", "d"], "it has no name of its own"),
        (&["--json", "a", "a", "c"], "--json a would be written over a"),
        (&["--json", "c", "a", "c"], "--json c would be written over c"),
        (&["--json", "-", "a", "-"], "--json - would be written over -"),
        (&["--json", "d/a", "a", "d"], "--json d/a would be written over d/a"),
        (&["a"], "no target given"),
    ] {
        let output = folder.run(words);
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{words:?}: {said}");
        assert!(said.contains(why) && said.starts_with("iotomy: "), "{words:?}: {said}");
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
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{words:?}: {said}");
        assert!(said.starts_with("iotomy: ") && output.stdout.is_empty(), "{words:?}: {said}");
        assert_eq!(folder.names(), ["a"], "{words:?}");
    }
}
