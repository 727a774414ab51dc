//! `iotomy report`: the files it writes, and what it refuses. What a browser makes of its pages is in
//! `report_pages.rs`.

use crate::support;
use crate::support::anatomies;
use crate::support::records;

use std::fs;
use std::path::Path;
use std::process::Output;

use records::HOSTILE;
use support::{iotomy, program};
use tempfile::TempDir;

/// Runs `iotomy report` in a folder.
fn report(folder: &Path, words: &[&str]) -> Output {
    iotomy(&[&["report"], words].concat()).current_dir(folder).output().unwrap()
}

fn stdout_of(folder: &Path, words: &[&str]) -> String {
    let output = report(folder, words);
    assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// A folder with a record of each kind.
fn folder() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    for make in [
        records::impossible,
        records::limits,
        records::copy,
        records::sweep,
        records::hostile,
        anatomies::anatomy,
        anatomies::faster,
        anatomies::hostile_anatomy,
    ] {
        make(folder.path());
    }
    let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/examples/dd-and-cat.json");
    fs::copy(example, folder.path().join("race.json")).unwrap();
    folder
}

const KINDS: [(&str, &str); 6] = [
    ("anatomy.json", "anatomy"),
    ("impossible.json", "trace"),
    ("race.json", "race"),
    ("sweep.json", "sweep"),
    ("limits.json", "limits"),
    ("copy.json", "copy"),
];

#[test]
fn a_page_has_the_name_of_its_record_and_is_small() {
    let folder = folder();
    for (record, kind) in KINDS {
        let output = report(folder.path(), &[record]);
        let name = record.replace(".json", ".html");
        assert!(output.status.success() && output.stdout.is_empty(), "{output:?}");
        assert_eq!(String::from_utf8(output.stderr).unwrap(), format!("iotomy: wrote {name}\n"));
        let page = fs::read_to_string(folder.path().join(name)).unwrap();
        assert!(page.starts_with("<!DOCTYPE html>") && page.ends_with("</html>\n"));
        assert!(page.contains(&format!("data-kind=\"{kind}\"")) && page.len() < 1 << 20);
    }
    let output = report(folder.path(), &["limits.json", "copy.json"]);
    assert_eq!(output.stderr, b"iotomy: wrote report.html\n");
    assert_eq!(stdout_of(folder.path(), &["-o", "x.html", "limits.json"]), "");
    let page = fs::read_to_string(folder.path().join("x.html")).unwrap();
    assert_eq!(stdout_of(folder.path(), &["-o", "-", "limits.json"]), page);
    assert_eq!(page, fs::read_to_string(folder.path().join("limits.html")).unwrap());
}

#[test]
fn every_part_that_is_listed_can_be_had() {
    let folder = folder();
    for (record, _) in KINDS {
        let list = stdout_of(folder.path(), &["--list", record]);
        assert!(list.contains("picture") && list.contains("table"), "{list}");
        for line in list.lines() {
            let mut words = line.split_whitespace();
            let (name, kind) = (words.next().unwrap(), words.next().unwrap());
            let form = if kind == "picture" { "--svg" } else { "--csv" };
            let text = stdout_of(folder.path(), &[form, "--part", name, record]);
            assert_eq!(text.starts_with("<svg "), kind == "picture", "{name}: {text}");
        }
        assert!(stdout_of(folder.path(), &["--markdown", record]).starts_with("# "));
        assert!(stdout_of(folder.path(), &["--svg", record]).starts_with("<svg "));
    }
    let both = stdout_of(
        folder.path(),
        &["--csv", "--part", "2/machine-floors", "copy.json", "limits.json"],
    );
    assert_eq!(both.lines().nth(1), Some("syscall,81.25,4.0625,made for a test"));
}

#[test]
fn hostile_names_are_words_in_every_form() {
    let folder = folder();
    let all = ["--markdown", "--csv", "--svg", "--list"];
    for (form, record) in
        all.iter().flat_map(|form| [(*form, "hostile.json"), (*form, "hostile-anatomy.json")])
    {
        let text = stdout_of(folder.path(), &[form, record]);
        assert!(!text.chars().any(|c| c.is_control() && c != '\n'), "{text}");
        assert!(form == "--csv" || form == "--list" || !text.contains("<img"), "{text}");
    }
    let files = stdout_of(folder.path(), &["--csv", "--part", "files", "hostile.json"]);
    assert!(files.contains("\n\"'=1+1\",file,") && !files.contains("\n=1+1"), "{files}");
    let page = stdout_of(folder.path(), &["-o", "-", "hostile.json"]);
    assert!(
        !page.contains("<img") && !page.contains(HOSTILE) && page.matches("<script>").count() == 1
    );
    let shown = iotomy(&["show"]).arg(folder.path().join("hostile.json")).output().unwrap();
    assert!(!String::from_utf8(shown.stdout).unwrap().contains('\u{1b}'));
    // A name that is no UTF-8 is a name too.
    use std::os::unix::ffi::OsStrExt;
    let name = std::ffi::OsStr::from_bytes(b"\xff<b>.json");
    fs::copy(folder.path().join("copy.json"), folder.path().join(name)).unwrap();
    let output = iotomy(&["report", "-o", "-"]).arg(folder.path().join(name)).output().unwrap();
    assert!(
        output.status.success() && !String::from_utf8(output.stdout).unwrap().contains("<b>.json")
    );
    // Nor is it another one in an error.
    let output = iotomy(&["report"]).arg(std::ffi::OsStr::from_bytes(b"no\xff")).output().unwrap();
    let error = String::from_utf8(output.stderr).unwrap();
    assert!(error.starts_with("iotomy: cannot read the record no\\xff: "), "{error}");
    let mut output = iotomy(&["generate", "man"]);
    output.arg(std::ffi::OsStr::from_bytes(b"/proc/no\xff"));
    let error = String::from_utf8(output.output().unwrap().stderr).unwrap();
    assert!(error.contains("the directory /proc/no\\xff; "), "{error}");
}

#[test]
fn two_anatomies_have_a_picture_of_what_differs() {
    let folder = folder();
    let both = ["anatomy.json", "limits.json", "faster.json"];
    let list = stdout_of(folder.path(), &[&["--list"], &both[..]].concat());
    assert!(list.contains("3/difference  ") && !list.contains("1/difference"), "{list}");
    let picture =
        stdout_of(folder.path(), &[&["--svg", "--part", "3/difference"], &both[..]].concat());
    assert!(picture.contains("<title>write −20 ms: 45 ms before, 25 ms now</title>"), "{picture}");
    let table =
        stdout_of(folder.path(), &[&["--csv", "--part", "3/differences"], &both[..]].concat());
    let first = "write,page cache and copying,on-CPU,45000000,25000000,-20000000";
    assert_eq!(table.lines().nth(1), Some(first));
}

#[test]
fn the_picture_of_the_readme_is_what_is_drawn_of_its_record() {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
    let drawn = stdout_of(&docs, &["--svg", "--part", "waterfall-a-b", "examples/dd-and-cat.json"]);
    let kept = fs::read_to_string(docs.join("pictures/dd-and-cat.svg")).unwrap();
    assert!(drawn == kept, "draw it anew, by the command the README has");
}

#[test]
fn what_is_no_record_is_refused_and_the_old_page_stays() {
    let folder = folder();
    fs::write(folder.path().join("page.html"), "old").unwrap();
    let whole = fs::read(folder.path().join("race.json")).unwrap();
    fs::write(folder.path().join("cut.json"), &whole[..whole.len() / 2]).unwrap();
    let text = String::from_utf8(whole).unwrap().replacen("iotomy.race/1", "iotomy.race/2", 1);
    fs::write(folder.path().join("newer.json"), text).unwrap();
    for (record, says) in [
        ("cut.json", "ends too early"),
        ("newer.json", "newer"),
        ("absent.json", "No such file"),
        (".", "directory"),
    ] {
        // One that is damaged spoils the page of all.
        let output = report(folder.path(), &["-o", "page.html", "limits.json", record]);
        let error = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{error}");
        assert!(
            error.starts_with("iotomy: ") && error.contains(says) && error.lines().count() == 1,
            "{error}"
        );
    }
    assert_eq!(fs::read_to_string(folder.path().join("page.html")).unwrap(), "old");
    for (words, says) in [
        (&["-o", "race.json", "limits.json", "race.json"][..], "it is the record"),
        (&["-o", "none/x.html", "limits.json"], "create its directory first"),
        (&["--csv", "--part", "no-such", "limits.json"], "there are machine-floors"),
        (&["-", "-"], "two records from standard input"),
        (&["--svg", "--csv", "limits.json"], "cannot be used with"),
        (&["--part", "calls", "limits.json"], "--svg"),
        (&[], "RECORD"),
    ] {
        let output = report(folder.path(), words);
        let error = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{words:?}: {error}");
        assert!(error.contains(says), "{words:?}: {error}");
    }
    // Nothing but what was there, and no half of a page.
    let left = fs::read_dir(folder.path()).unwrap().count();
    assert_eq!(left, 12);
}

#[test]
fn the_page_is_opened_by_the_desktops_opener() {
    let records = folder();
    let folder = support::for_everyone();
    fs::copy(records.path().join("limits.json"), folder.path().join("limits.json")).unwrap();
    program(folder.path(), "xdg-open", b"#!/bin/sh\nprintf %s \"$1\" > opened\n");
    let words = ["report", "--open", "-o", "x.html", "limits.json"];
    let open = |mut command: std::process::Command, path: &str| {
        command.args(words).current_dir(folder.path()).env("PATH", path).output().unwrap()
    };
    let path = format!("{}:/usr/bin:/bin", folder.path().display());
    let is_root = support::root();
    let is_user = !is_root || support::has("setpriv");
    let user = || if is_root { support::as_nobody(folder.path()) } else { iotomy(&[]) };
    let opened = folder.path().join("opened");
    if is_user {
        let output = open(user(), &path);
        assert!(output.status.success(), "{output:?}");
        let page = fs::read_to_string(&opened).unwrap();
        assert_eq!(Path::new(&page), fs::canonicalize(folder.path().join("x.html")).unwrap());
        fs::remove_file(&opened).unwrap();
    }
    if support::is_there("xdg-open") {
        support::skip(support::Need::Machine, "the opener of this machine would be run");
        return;
    }
    // Root runs none that `PATH` names, and a relative folder is none.
    let refused = |output: Output| {
        let error = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{error}");
        assert!(error.contains("the page is written, open it by hand"), "{error}");
        assert!(!opened.exists());
    };
    if is_root {
        refused(open(iotomy(&[]), &path));
    }
    if is_user {
        refused(open(user(), ".:/usr/bin"));
    }
}
