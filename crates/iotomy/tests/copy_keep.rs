//! Attributes, comparisons and syncs: what takes another user, or strace.

use crate::support;

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::process::Output;

use support::copying::{Folder, content};
use support::{Need, skip};

const LARGE: usize = 3_000_001;

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

/// A copy of which strace changes what calls return, of calls on this file if one is named; `None` where strace does
/// not work.
fn injected(
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
    let Some(output) = injected(&folder, None, lost, &[&words[..], &["a", "b"]].concat()) else {
        return;
    };
    let said = String::from_utf8(output.stderr.clone()).unwrap();
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("b differs from a at byte 0 (of the target; 0 of the source)"), "{said}");
    // The fifth is lost: all before it is right.
    let fifth = [&words[..], &["a", "b"]].concat();
    let output = injected(&folder, None, "write:retval=65536:when=5", &fifth).unwrap();
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert!(
        stderr.contains("differs from a at byte 262,144 (of the target; 262,144 of"),
        "{stderr}"
    );
    // An old target that was to be replaced by it is still there.
    let atomic = [&words[..], &["--atomic", "a", "old"]].concat();
    let output = injected(&folder, None, lost, &atomic).unwrap();
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert_eq!(folder.read("old"), b"old");
    assert_eq!(folder.names(), ["a", "b", "old"]);
}

#[test]
fn a_copy_that_ends_too_soon_is_found_whatever_its_mover_says() {
    let folder = Folder::new();
    folder.write("a", content(LARGE));
    if !support::has("strace") {
        return;
    }
    let verify = ["--verify", "--json", "record", "--mover"];
    let found = |output: &Output, at: &str| {
        let stderr = String::from_utf8(output.stderr.clone()).unwrap();
        assert_eq!(output.status.code(), Some(1), "{stderr}");
        let why = format!("b differs from a at byte {at} (of the target; ");
        assert!(
            stderr.contains(&why) && stderr.contains(", where it ends; copy it again"),
            "{stderr}"
        );
        let record = iotomy_record::store::parse_copy(&folder.read("record")).unwrap();
        assert_eq!((record.verified, record.errors), (Some(false), 1));
    };
    // The source says that it ends, long before it does. Of a call inside the kernel that is not believed.
    for (mover, inject, at) in [
        ("splice", "splice:retval=0:when=2", None),
        ("read-write", "read:retval=0:when=3", Some("131,072")),
    ] {
        let _ = fs::remove_file(folder.path("b"));
        let words =
            [&verify[..], &[mover, "--concat", "--block-size", "64K", "a", "a", "b"]].concat();
        let Some(output) = injected(&folder, Some("a"), inject, &words) else { return };
        match at {
            Some(at) => found(&output, at),
            None => assert!(output.status.success(), "{output:?}"),
        }
    }
    // A target that was not emptied, although that was no error, is longer than it should be.
    folder.write("old", vec![0xEE; LARGE + 5]);
    let words = ["--verify", "a", "old"];
    let output = injected(&folder, Some("old"), "ftruncate:retval=0", &words).unwrap();
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
