//! What is refused leaves the target as it was, whatever it is.

use crate::folders;
use crate::support;

use std::fs::{self, OpenOptions, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Output;

use iotomy_movers::MOVERS;
use support::copying::{Folder, content, refused};
use support::volume::Device;
use support::{Need, skip};

/// Runs the copy of something over `old`, which holds that word; it is refused, and holds it still.
#[track_caller]
fn spared(folder: &Path, run: impl FnOnce() -> Output) -> String {
    fs::write(folder.join("old"), "old").unwrap();
    let said = refused(2, &run());
    assert_eq!(fs::read(folder.join("old")).unwrap(), b"old", "{said}");
    assert!(!said.contains("empty now") && !said.contains("partial"), "{said}");
    said
}

#[test]
fn nothing_is_appended_to_a_block_device_whose_start_it_would_overwrite() {
    let folder = Folder::new();
    folder.write("a", content(100_000));
    let image = folder.write("image", vec![7; 1 << 20]);
    let Some(device) = Device::attach(&image) else { return };
    let path = device.path();
    let refusals =
        [&["--append", "a", path][..], &["--append", "--verify", "a", path], &["a", "-"]];
    for words in refusals {
        let appending = OpenOptions::new().append(true).open(path).unwrap();
        let output = folder.command(words).stdout(appending).output().unwrap();
        let said = refused(2, &output);
        assert!(said.contains("cannot append to ") && said.contains("block device"), "{said}");
        assert!(said.contains("--seek"), "{said}");
        assert!(fs::read(path).unwrap() == vec![7; 1 << 20], "{words:?}");
    }
    // In place it is written to, and read back.
    folder.copy(&["--verify", "--seek", "4096", "a", path]);
    let now = fs::read(path).unwrap();
    assert!(now[..4096] == [7; 4096] && now[4096..104_096] == content(100_000));
}

#[test]
fn a_place_that_cannot_be_sought_leaves_no_file_behind() {
    let folder = Folder::new();
    folder.write("a", "x");
    let said = folder.refuse(2, &["--seek", "9223372036854775807", "a", "new"]);
    assert!(said.contains("cannot seek to 9,223,372,036,854,775,807 in new"), "{said}");
    assert_eq!(folder.names(), ["a"]);
    folder.write("old", "old");
    folder.refuse(2, &["--seek", "9223372036854775807", "a", "old"]);
    assert_eq!(folder.read("old"), b"old");
}

#[test]
fn a_mover_that_may_be_refused_and_cannot_be_tried_empties_nothing() {
    let folder = Folder::new();
    let here = folder.path("");
    for mover in MOVERS.iter().map(|mover| mover.declaration().name) {
        if mover == "read-write" {
            continue;
        }
        let run = || folder.run(&["--mover", mover, "/proc/version", "old"]);
        let said = spared(&here, run);
        assert!(!said.contains("these can: copy-file-range"), "{said}");
        assert!(!said.contains(", copy-file-range"), "{said}");
    }
    for mover in ["splice", "io-uring"] {
        let fed = |words: &[&str]| {
            let (out, into) = std::io::pipe().unwrap();
            std::io::Write::write_all(&mut &into, b"new").unwrap();
            drop(into);
            folder.command(&[&["--mover", mover], words].concat()).stdin(out).output().unwrap()
        };
        let said = spared(&here, || fed(&["-", "old"]));
        let why = "the source can be read only once; use --atomic";
        assert!(said.contains(why), "{said}");
        // Nothing is in danger where there is nothing, or where it stays until the end.
        for words in [&["-", "new"][..], &["--atomic", "-", "old"]] {
            let output = fed(words);
            if mover == "io-uring" && !output.status.success() {
                skip(Need::IoUring, &refused(2, &output));
                continue;
            }
            assert!(output.status.success(), "{words:?}: {output:?}");
            assert_eq!(folder.read(words[words.len() - 1]), b"new", "{words:?}");
        }
        let _ = fs::remove_file(folder.path("new"));
    }
}

#[test]
fn of_several_sources_none_is_carried_by_a_mover_that_may_be_refused_for_another() {
    let folder = Folder::new();
    folder.write("empty", "");
    folder.write("a", content(10_000));
    for words in [
        &["--concat", "--mover", "copy-file-range", "empty", "/proc/version", "old"][..],
        &["--concat", "--mover", "direct", "a", "a", "old"],
        &["--concat", "--mover", "splice", "a", "empty", "a", "old"],
    ] {
        let said = spared(&folder.path(""), || folder.run(words));
        assert!(
            said.contains("only a single source can be tried; use --atomic"),
            "{words:?}: {said}"
        );
    }
    folder.copy(&["--concat", "--mover", "read-write", "a", "empty", "a", "old"]);
    folder.copy(&["--concat", "--mover", "splice", "--atomic", "a", "empty", "a", "old"]);
    folder.copy(&["--concat", "--mover", "splice", "a", "empty", "a", "new"]);
    assert!(folder.read("old") == folder.read("new") && folder.read("new").len() == 20_000);
}

#[test]
fn what_no_trial_can_be_made_for_beside_the_target_is_refused() {
    if !support::root() || !support::has("setpriv") {
        return;
    }
    let folder = support::for_everyone();
    let ours = folder.path().join("ours");
    fs::create_dir(&ours).unwrap();
    fs::write(ours.join("old"), "").unwrap();
    fs::write(ours.join("source"), content(10_000)).unwrap();
    fs::set_permissions(ours.join("old"), Permissions::from_mode(0o666)).unwrap();
    for words in [
        &["--mover", "splice", "/proc/self/exe", "ours/old"][..],
        &["--mover", "copy-file-range", "ours/source", "ours/old"],
        &["--mover", "direct", "--skip", "3", "ours/source", "ours/old"],
    ] {
        let run = || support::as_nobody(folder.path()).arg("copy").args(words).output().unwrap();
        let said = spared(&ours, run);
        let why = "cannot create a file beside it: Permission denied; empty it first";
        assert!(said.contains(why), "{words:?}: {said}");
    }
}

#[test]
fn a_mover_that_gets_no_descriptor_empties_nothing() {
    let folder = Folder::new();
    folder.write("a", content(300_000));
    let mut refusals = 0;
    // Who runs the tests may have left descriptors open.
    for most in 5..64 {
        fs::write(folder.path("old"), "old").unwrap();
        let script = format!("ulimit -n {most}; exec \"$@\"");
        let mut command = support::bare("sh", &["-c", &script, "sh", support::IOTOMY, "copy"]);
        command.args(["--mover", "splice", "a", "old"]).current_dir(folder.path(""));
        let output = command.output().unwrap();
        if output.status.success() {
            assert!(folder.read("old") == content(300_000));
            continue;
        }
        let said = refused(2, &output);
        assert!(said.contains("Too many open files"), "{said}");
        assert_eq!(folder.read("old"), b"old", "{most}: {said}");
        refusals += 1;
    }
    assert!((1..59).contains(&refusals), "{refusals} of 59 were refused");
}

#[test]
fn a_trial_asks_for_what_the_copy_will_ask_for() {
    match folders::small(8 << 20) {
        Err(reason) => skip(Need::Devices, &reason),
        Ok(folder) => {
            let words = ["copy", "--mover", "fallocate", "--count", "64M", "/dev/zero", "old"];
            let run = || support::iotomy(&words).current_dir(folder.path()).output().unwrap();
            let said = spared(folder.path(), run);
            assert!(said.contains("fallocate: fallocate: No space left"), "{said}");
        }
    }
    match folders::image("btrfs") {
        Err(reason) => skip(Need::Devices, &reason),
        Ok(folder) => {
            fs::write(folder.path().join("source"), content(3 << 20)).unwrap();
            // Only whole blocks can be shared.
            let words = ["copy", "--mover", "reflink", "--count", "1572865", "source", "old"];
            let run = || support::iotomy(&words).current_dir(folder.path()).output().unwrap();
            let said = spared(folder.path(), run);
            assert!(said.contains("reflink: ioctl: Invalid argument"), "{said}");
        }
    }
}

#[test]
fn the_mover_that_moves_nothing_empties_nothing() {
    let folder = Folder::new();
    folder.write("a", "new");
    for words in [&["a", "old"][..], &["--atomic", "a", "old"], &["--count", "3", "a", "old"]] {
        let words = [&["--mover", "null"], words].concat();
        let said = spared(&folder.path(""), || folder.run(&words));
        let why = "by null: it moves nothing, and the target would lose its content";
        assert!(said.contains(why) && said.contains("these can: read-write"), "{said}");
    }
    for words in [&["a", "none"][..], &["--append", "a", "old"], &["--seek", "1", "a", "old"]] {
        folder.copy(&[&["--mover", "null"], words].concat());
    }
    assert_eq!((folder.read("none"), folder.read("old")), (Vec::new(), b"old".to_vec()));
}
