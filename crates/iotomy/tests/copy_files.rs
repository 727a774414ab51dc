//! Files copied to files and folders, whole and in parts.

use crate::support;

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};

use support::copying::{Folder, content, refused};
use support::{Need, skip};

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
fn what_a_target_held_is_gone_and_its_mode_stays() {
    let folder = Folder::new();
    folder.write("a", "new");
    let target = folder.write("b", content(LARGE));
    fs::set_permissions(&target, fs::Permissions::from_mode(0o640)).unwrap();
    let before = fs::metadata(&target).unwrap();
    folder.copy(&["a", "b"]);
    assert_eq!(folder.read("b"), b"new");
    let after = fs::metadata(&target).unwrap();
    assert_eq!((after.ino(), after.mode()), (before.ino(), before.mode()));
}

#[test]
fn a_new_file_has_the_sources_mode_less_the_umask_and_set_id_bits() {
    let folder = Folder::new();
    let source = folder.write("a", "x");
    for (mode, expected) in [(0o4777, 0o755), (0o2750, 0o750), (0o600, 0o600), (0o444, 0o444)] {
        fs::set_permissions(&source, fs::Permissions::from_mode(mode)).unwrap();
        for (target, option) in [("b", &[][..]), ("c", &["--atomic"])] {
            let words = [option, &["a", target]].concat();
            let script = format!("umask 022; exec {} copy {}", support::IOTOMY, words.join(" "));
            let mut sh = support::bare("sh", &["-c", &script]);
            assert!(sh.current_dir(folder.path("")).status().unwrap().success());
            let made = fs::metadata(folder.path(target)).unwrap();
            assert_eq!(made.mode() & 0o7777, expected, "{mode:o} {option:?}");
            fs::remove_file(folder.path(target)).unwrap();
        }
    }
}

#[test]
fn several_sources_are_put_one_behind_the_other() {
    let folder = Folder::new();
    folder.write("a", content(LARGE));
    folder.write("b", "");
    folder.write("c", "the end");
    folder.copy(&["--concat", "a", "b", "c", "all"]);
    assert!(folder.read("all") == [&content(LARGE)[..], b"the end"].concat());
    // Left out and counted over all of them.
    let skip = (LARGE - 2).to_string();
    folder.copy(&["--concat", "--skip", &skip, "--count", "5", "a", "b", "c", "part"]);
    assert_eq!(folder.read("part"), [&content(LARGE)[LARGE - 2..], b"the"].concat());
}

#[test]
fn a_folder_takes_each_source_under_its_name() {
    let folder = Folder::new();
    folder.write("a", "1");
    fs::create_dir_all(folder.path("x/y")).unwrap();
    folder.write("x/b", "2");
    for target in ["x/y", "x/y/", "link"] {
        symlink("x/y", folder.path("link")).ok();
        folder.copy(&["a", "x/b", target]);
        assert_eq!((folder.read("x/y/a"), folder.read("x/y/b")), (b"1".to_vec(), b"2".to_vec()));
        fs::remove_file(folder.path("x/y/a")).unwrap();
    }
}

#[test]
fn a_source_that_fails_does_not_keep_the_others_from_a_folder() {
    let folder = Folder::new();
    folder.write("a", "1");
    folder.write("c", "3");
    fs::create_dir_all(folder.path("d/c")).unwrap();
    fs::create_dir(folder.path("e")).unwrap();
    let output = folder.run(&["nope", "e", "a", "-", "..", "a", "c", "d"]);
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{said}");
    let lines: Vec<&str> = said.lines().collect();
    assert_eq!(lines.len(), 6, "{said}");
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
fn a_part_is_copied_to_a_place_and_all_around_it_stays() {
    let folder = Folder::new();
    let from = content(LARGE);
    folder.write("a", &from);
    folder.write("b", vec![0xEE; 5000]);
    folder.copy(&["--skip", "2K", "--count", "1k", "--seek", "1000", "a", "b"]);
    let mut expected = vec![0xEE; 5000];
    expected[1000..2024].copy_from_slice(&from[2048..3072]);
    assert!(folder.read("b") == expected);
    // Past the end there is a hole.
    folder.copy(&["--count", "3", "--seek", "6000", "a", "b"]);
    expected.resize(6000, 0);
    expected.extend_from_slice(&from[..3]);
    assert!(folder.read("b") == expected);
    // In place from the beginning, too.
    folder.copy(&["--count", "1", "--seek", "0", "a", "b"]);
    expected[0] = from[0];
    assert!(folder.read("b") == expected);
}

#[test]
fn counts_and_skips_past_the_end_take_what_there_is() {
    let folder = Folder::new();
    folder.write("a", "abcdef");
    for (words, expected) in [
        (&["--count", "0"][..], ""),
        (&["--count", "1M"], "abcdef"),
        (&["--skip", "4"], "ef"),
        (&["--skip", "6"], ""),
        (&["--skip", "1G"], ""),
        (&["--skip", "1", "--count", "2"], "bc"),
    ] {
        folder.write("b", "what was there before");
        folder.copy(&[words, &["a", "b"]].concat());
        assert_eq!(folder.read("b"), expected.as_bytes(), "{words:?}");
    }
}

#[test]
fn appending_writes_behind_what_is_there() {
    let folder = Folder::new();
    folder.write("a", content(LARGE));
    folder.write("b", "before");
    folder.copy(&["--append", "a", "b"]);
    assert!(folder.read("b") == [b"before", &content(LARGE)[..]].concat());
    folder.copy(&["--append", "--skip", "1", "--count", "2", "a", "new"]);
    assert_eq!(folder.read("new"), content(3)[1..]);
}

#[test]
fn every_mover_that_can_copies_the_same() {
    let folder = Folder::new();
    folder.write("a", content(3 * LARGE));
    for mover in iotomy_movers::MOVERS {
        let declaration = mover.declaration();
        if matches!(declaration.name, "null" | "reflink" | "vmsplice" | "fallocate") {
            continue;
        }
        let options = ["--block-size", "64K", "--depth", "3", "--threads", "3"];
        let output = folder.run(&[&options[..], &["--mover", declaration.name, "a", "b"]].concat());
        if !output.status.success() {
            skip(Need::Machine, &refused(2, &output));
            continue;
        }
        assert!(folder.read("b") == content(3 * LARGE), "{}", declaration.name);
        fs::remove_file(folder.path("b")).unwrap();
    }
}

#[test]
fn zeros_are_room_that_reads_as_zeros() {
    let folder = Folder::new();
    folder.write("old", content(3000));
    folder.copy(&["--count", "1M", "/dev/zero", "new"]);
    assert!(folder.read("new") == vec![0; 1 << 20]);
    folder.copy(&["--count", "1000", "--seek", "500", "/dev/zero", "old"]);
    let wanted = [&content(3000)[..500], &[0; 1000], &content(3000)[1500..]].concat();
    assert!(folder.read("old") == wanted);
}

#[test]
fn files_made_up_when_they_are_read_are_copied() {
    let folder = Folder::new();
    folder.copy(&["/proc/version", "a"]);
    assert_eq!(folder.read("a"), fs::read("/proc/version").unwrap());
    folder.copy(&["--skip", "6", "--count", "7", "/proc/version", "a"]);
    assert_eq!(folder.read("a"), b"version");
    folder.copy(&["--concat", "/proc/version", "/proc/sys/kernel/ostype", "a"]);
    let both = [fs::read("/proc/version").unwrap(), b"Linux\n".to_vec()].concat();
    assert_eq!(folder.read("a"), both);
}

#[test]
fn holes_stay_what_was_asked_for_and_content_stays_the_same() {
    let folder = Folder::new();
    let file = fs::File::create(folder.path("a")).unwrap();
    file.set_len(8 << 20).unwrap();
    std::os::unix::fs::FileExt::write_all_at(&file, b"x", 4 << 20).unwrap();
    drop(file);
    for when in ["auto", "never", "always"] {
        folder.copy(&["--sparse", when, "a", when]);
        assert!(folder.read(when) == folder.read("a"), "{when}");
    }
    let room = |name: &str| fs::metadata(folder.path(name)).unwrap().blocks() * 512;
    if room("a") < 1 << 20 {
        assert!(room("auto") < 1 << 20 && room("always") < 1 << 20);
        assert!(room("never") >= 8 << 20);
    } else {
        skip(Need::Machine, "this file system has no holes");
    }
}

#[test]
fn extents_are_shared_only_where_the_file_system_can() {
    let folder = Folder::new();
    folder.write("a", content(LARGE));
    folder.copy(&["--reflink", "never", "a", "b"]);
    assert!(folder.read("b") == content(LARGE));
    let output = folder.run(&["--reflink", "always", "a", "c"]);
    if output.status.success() {
        assert!(folder.read("c") == content(LARGE));
    } else {
        let said = refused(2, &output);
        assert!(said.contains("--reflink"), "{said}");
        assert!(!folder.path("c").exists(), "what could not be shared is not left behind");
    }
    let shares = output.status.success();
    folder.write("d", "old");
    assert_eq!(folder.run(&["--reflink", "always", "a", "d"]).status.success(), shares);
    let wanted = if shares { content(LARGE) } else { b"old".to_vec() };
    assert!(folder.read("d") == wanted, "what cannot be shared leaves the old file whole");
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
    assert!(refused(2, &output).contains("\\n"), "{output:?}");
    // A name that looks like an option.
    folder.write("-v", "y");
    folder.copy(&["--", "-v", "w"]);
    assert_eq!(folder.read("w"), b"y");
}

#[test]
fn links_lead_to_what_is_copied_and_written_to() {
    let folder = Folder::new();
    folder.write("a", "new");
    folder.write("b", "old");
    symlink("a", folder.path("to-a")).unwrap();
    symlink("b", folder.path("to-b")).unwrap();
    folder.copy(&["to-a", "to-b"]);
    assert!(fs::symlink_metadata(folder.path("to-b")).unwrap().is_symlink());
    assert_eq!(folder.read("b"), b"new");
}
