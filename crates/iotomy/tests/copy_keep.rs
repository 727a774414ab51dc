//! Attributes kept, targets read back, targets synced.

use crate::support;

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::path::Path;
use std::process::Output;

use support::copying::{Folder, content, refused};
use support::{Need, skip};

const LARGE: usize = 3_000_001;

fn touched(path: &Path) {
    let words = ["-d", "2001-02-03 04:05:06.789012345", path.to_str().unwrap()];
    assert!(support::bare("touch", &words).status().unwrap().success());
}

#[test]
fn mode_and_times_are_kept() {
    let folder = Folder::new();
    let source = folder.write("a", "x");
    for (words, target) in [
        (&["--preserve", "a", "new"][..], "new"),
        (&["--preserve", "a", "old"], "old"),
        (&["--preserve", "--atomic", "a", "replaced"], "replaced"),
        (&["--preserve", "a", "d"], "d/a"),
    ] {
        fs::set_permissions(&source, fs::Permissions::from_mode(0o6751)).unwrap();
        touched(&source);
        if !folder.path("d").exists() {
            fs::create_dir(folder.path("d")).unwrap();
        }
        if matches!(target, "old" | "replaced") {
            folder.write(target, "old");
        }
        let of = fs::metadata(&source).unwrap();
        folder.copy(words);
        let kept = fs::metadata(folder.path(target)).unwrap();
        assert_eq!(kept.mode(), of.mode(), "{words:?}");
        assert_eq!((kept.mtime(), kept.mtime_nsec()), (of.mtime(), of.mtime_nsec()), "{words:?}");
        assert_eq!((kept.atime(), kept.atime_nsec()), (of.atime(), of.atime_nsec()), "{words:?}");
        assert_eq!(folder.read(target), b"x");
    }
}

#[test]
fn owners_are_kept_by_root_and_set_id_bits_only_with_them() {
    if !support::root() || !support::has("setpriv") {
        return;
    }
    let folder = support::for_everyone();
    let source = folder.path().join("a");
    fs::write(&source, "x").unwrap();
    chown(&source, Some(12345), Some(54321)).unwrap();
    fs::set_permissions(&source, fs::Permissions::from_mode(0o6755)).unwrap();
    let mut command = support::iotomy(&["copy", "--preserve", "a", "b"]);
    assert!(command.current_dir(folder.path()).status().unwrap().success());
    let kept = fs::metadata(folder.path().join("b")).unwrap();
    assert_eq!((kept.uid(), kept.gid(), kept.mode() & 0o7777), (12345, 54321, 0o6755));
    // Who may not give files away keeps the rest.
    let words = ["copy", "--preserve", "a", "c"];
    let output = support::as_nobody(folder.path()).args(words).output().unwrap();
    assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
    let kept = fs::metadata(folder.path().join("c")).unwrap();
    assert_eq!((kept.uid(), kept.mode() & 0o7777), (65534, 0o755));
    assert_eq!(kept.mtime(), fs::metadata(&source).unwrap().mtime());
}

/// Sets an attribute; `false` where the file system has none.
fn attribute(path: &Path, name: &str, value: &[u8]) -> bool {
    let flags = rustix::fs::XattrFlags::empty();
    rustix::fs::setxattr(path, name, value, flags).is_ok()
}

fn attribute_of(path: &Path, name: &str) -> Option<Vec<u8>> {
    let mut value = vec![0; 100_000];
    let length = rustix::fs::getxattr(path, name, &mut value[..]).ok()?;
    value.truncate(length);
    Some(value)
}

#[test]
fn extended_attributes_are_kept() {
    let folder = Folder::new();
    let source = folder.write("a", "x");
    if !attribute(&source, "user.small", b"value") {
        skip(Need::Machine, "the file system has no extended attributes");
        return;
    }
    let large = content(2000);
    assert!(attribute(&source, "user.large", &large) && attribute(&source, "user.empty", b""));
    folder.copy(&["--preserve", "a", "b"]);
    let target = folder.path("b");
    assert_eq!(attribute_of(&target, "user.small").unwrap(), b"value");
    assert_eq!(attribute_of(&target, "user.large").unwrap(), large);
    assert_eq!(attribute_of(&target, "user.empty").unwrap(), b"");
    folder.copy(&["a", "c"]);
    assert_eq!(attribute_of(&folder.path("c"), "user.small"), None);
}

#[test]
fn an_access_list_is_kept_and_one_of_the_folder_is_not_added() {
    if !support::has("setfacl") || !support::has("getfacl") {
        return;
    }
    let folder = Folder::new();
    folder.write("a", "x");
    folder.write("plain", "x");
    fs::create_dir(folder.path("d")).unwrap();
    let set = |words: &[&str]| {
        let mut command = support::bare("setfacl", words);
        command.current_dir(folder.path("")).status().unwrap().success()
    };
    if !set(&["-m", "u:12345:rw", "a"]) || !set(&["-d", "-m", "u:777:rwx", "d"]) {
        skip(Need::Machine, "the file system has no access lists");
        return;
    }
    folder.copy(&["--preserve", "a", "plain", "d"]);
    let list = |name: &str| {
        let mut command = support::bare("getfacl", &["-cn", name]);
        String::from_utf8(command.current_dir(folder.path("")).output().unwrap().stdout).unwrap()
    };
    assert_eq!(list("d/a"), list("a"));
    assert_eq!(list("d/plain"), list("plain"));
}

#[test]
fn an_attribute_that_the_target_cannot_have_is_an_error() {
    let folder = Folder::new();
    let source = folder.write("a", "x");
    // A file system in memory takes attributes up to a bound; /proc has none to write to. A value
    // that only one of two has room for is hard to find, so strace says no.
    if !attribute(&source, "user.small", b"value") || !support::has("strace") {
        skip(Need::Machine, "the file system has no extended attributes");
        return;
    }
    let output = injected(&folder, "fsetxattr:error=EOPNOTSUPP", &["--preserve", "a", "b"]);
    let Some(output) = output else { return };
    let said = refused(2, &output);
    assert!(
        said.contains("cannot preserve attribute user.small of a on b: Operation not supported"),
        "{said}"
    );
    assert!(said.contains("all bytes were copied") && folder.read("b") == b"x");
}

/// A copy of which strace changes what calls return; `None` where strace does not work.
fn injected(folder: &Folder, injection: &str, words: &[&str]) -> Option<Output> {
    injected_at(folder, None, injection, words)
}

/// The same, only of calls on this file.
fn injected_at(
    folder: &Folder,
    file: Option<&str>,
    injection: &str,
    words: &[&str],
) -> Option<Output> {
    let inject = format!("inject={injection}");
    let call = injection.split(':').next().unwrap();
    let trace = format!("trace={call}");
    let options = ["-f", "-qqq", "-o", "/dev/null", "-e", &trace, "-e", &inject];
    let mut command = support::bare("strace", &options);
    if let Some(name) = file {
        command.arg("-P").arg(folder.path(name));
    }
    command.arg(support::IOTOMY).arg("copy").args(words).current_dir(folder.path(""));
    let output = command.output().unwrap();
    if String::from_utf8_lossy(&output.stderr).contains("strace") {
        skip(Need::Programs, "strace cannot change calls here");
        return None;
    }
    Some(output)
}

#[test]
fn a_target_is_read_back_and_found_right() {
    let folder = Folder::new();
    folder.write("a", content(LARGE));
    folder.write("old", vec![0xEE; 5000]);
    for words in [
        &["a", "b"][..],
        &["--concat", "a", "a", "b"],
        &["--append", "a", "b"],
        &["--skip", "1000", "--count", "2M", "a", "b"],
        &["--skip", "10", "--seek", "100", "--count", "1000", "a", "old"],
        &["--atomic", "--mover", "read-write", "a", "b"],
        &["/dev/null", "b"],
    ] {
        if words[0] == "/dev/null" {
            folder.refuse(2, &[&["--verify"], words].concat());
        } else {
            folder.copy(&[&["--verify"], words].concat());
        }
    }
}

#[test]
fn a_target_that_is_not_its_source_is_status_1() {
    if !support::has("strace") {
        return;
    }
    let folder = Folder::new();
    folder.write("a", content(LARGE));
    folder.write("old", "old");
    // The first write says that it has written a block, and has not.
    let lost = "write:retval=65536:when=1";
    let words = ["--verify", "--mover", "read-write", "--block-size", "64K"];
    let Some(output) = injected(&folder, lost, &[&words[..], &["a", "b"]].concat()) else {
        return;
    };
    let said = String::from_utf8(output.stderr.clone()).unwrap();
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("b differs from a at byte 0 (of the target; 0 of the source)"), "{said}");
    // The fifth is lost: all before it is right.
    let fifth = [&words[..], &["a", "b"]].concat();
    let output = injected(&folder, "write:retval=65536:when=5", &fifth).unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("differs from a at byte 262,144 (of the target; 262,144 of"), "{said}");
    // An old target that was to be replaced by it is still there.
    let atomic = [&words[..], &["--atomic", "a", "old"]].concat();
    let output = injected(&folder, lost, &atomic).unwrap();
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert_eq!(folder.read("old"), b"old");
    assert_eq!(folder.names(), ["a", "b", "old"]);
}

#[test]
fn a_copy_that_ends_too_soon_is_found_whatever_its_mover_says() {
    let folder = Folder::new();
    folder.write("a", content(LARGE));
    let verify = ["--verify", "--json", "record", "--mover"];
    let found = |output: &Output, at: &str| {
        let said = String::from_utf8(output.stderr.clone()).unwrap();
        assert_eq!(output.status.code(), Some(1), "{said}");
        let why = format!("b differs from a at byte {at} (of the target; ");
        assert!(said.contains(&why) && said.contains(", where it ends; copy it again"), "{said}");
        let record = iotomy_record::store::parse_copy(&folder.read("record")).unwrap();
        assert_eq!((record.verified, record.errors), (Some(false), 1));
    };
    let nothing = [&verify[..], &["null", "--count", "1000", "a", "b"]].concat();
    found(&folder.run(&nothing), "0");
    if !support::has("strace") {
        return;
    }
    // The source says that it ends, long before it does. Of a call inside the kernel that is not believed.
    for (mover, inject, at) in [
        ("splice", "splice:retval=0:when=2", None),
        ("read-write", "read:retval=0:when=3", Some("131,072")),
    ] {
        let _ = fs::remove_file(folder.path("b"));
        let words =
            [&verify[..], &[mover, "--concat", "--block-size", "64K", "a", "a", "b"]].concat();
        let Some(output) = injected_at(&folder, Some("a"), inject, &words) else { return };
        match at {
            Some(at) => found(&output, at),
            None => assert!(output.status.success(), "{output:?}"),
        }
    }
    // A target that was not emptied, although that was no error, is longer than it should be.
    folder.write("old", vec![0xEE; LARGE + 5]);
    let words = ["--verify", "a", "old"];
    let output = injected_at(&folder, Some("old"), "ftruncate:retval=0", &words).unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("old has 3,000,006 bytes and should have 3,000,001;"), "{said}");
}

#[test]
fn a_sync_is_made_of_the_file_and_of_the_folder_when_its_name_is_new() {
    if !support::has("strace") {
        return;
    }
    let folder = Folder::new();
    folder.write("a", "x");
    folder.write("old", "old");
    fs::create_dir(folder.path("d")).unwrap();
    let syncs = |words: &[&str]| {
        let log = folder.path("log");
        let options = ["-f", "-qqq", "-e", "trace=fsync,fdatasync,rename,link,linkat", "-o"];
        let mut command = support::bare("strace", &options);
        command.arg(&log).arg(support::IOTOMY).arg("copy").args(words);
        let output = command.current_dir(folder.path("")).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        let log = fs::read_to_string(log).unwrap();
        let calls = log.lines().filter_map(|line| {
            let call = line.split_whitespace().nth(1)?;
            Some(call.split('(').next()?.to_owned())
        });
        calls.collect::<Vec<String>>()
    };
    assert!(syncs(&["a", "new"]).is_empty());
    assert_eq!(syncs(&["--fsync", "a", "made"]), ["fsync", "fsync"]);
    assert_eq!(syncs(&["--fsync", "a", "old"]), ["fdatasync"]);
    assert_eq!(syncs(&["--fsync", "--preserve", "a", "old"]), ["fsync"]);
    // What is put in place is on the disk before its name is.
    assert_eq!(syncs(&["--fsync", "--atomic", "a", "free"]), ["fsync", "linkat", "fsync"]);
    folder.write("b", "x");
    assert_eq!(syncs(&["--fsync", "a", "b", "d"]), ["fsync", "fsync", "fsync"]);
}

#[test]
fn a_sync_that_fails_is_an_error() {
    let folder = Folder::new();
    folder.write("a", "x");
    folder.write("old", "old");
    if !support::has("strace") {
        return;
    }
    let output = injected(&folder, "fdatasync:error=EIO", &["--fsync", "a", "old"]);
    let Some(output) = output else { return };
    assert!(refused(2, &output).contains("cannot sync old: Input/output error"));
}
