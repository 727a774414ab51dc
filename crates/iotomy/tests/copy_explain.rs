//! What a copy says of itself: explanations, lists, records, progress.

use crate::support;

use std::fs;
use std::io::{Read, Write};
use std::process::Stdio;

use iotomy_movers::MOVERS;
use iotomy_record::store::parse_copy;
use support::copying::{Folder, content, refused};
use support::{Need, skip};

const LARGE: usize = 3_000_001;

fn explained(folder: &Folder, words: &[&str]) -> String {
    let output = folder.run(&[&["--explain"], words].concat());
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stderr).unwrap()
}

fn line<'a>(said: &'a str, begin: &str) -> &'a str {
    said.lines().find(|line| line.starts_with(begin)).unwrap_or_else(|| panic!("{begin}: {said}"))
}

#[test]
fn an_explanation_names_the_ends_the_choice_and_every_other_mover() {
    let folder = Folder::new();
    folder.write("a", content(LARGE));
    let said = explained(&folder, &["a", "b"]);
    assert!(line(&said, "source    a: regular file, 3,000,001 bytes, on ").len() > 40);
    assert!(line(&said, "target    b: new regular file, 0 bytes, on ").len() > 30);
    assert!(line(&said, "chosen    ").contains("3,000,001 bytes in "));
    for mover in MOVERS {
        assert!(said.contains(mover.declaration().name), "{said}");
    }
    assert!(said.lines().all(|line| line.chars().count() <= 100), "{said}");
    for figure in ["bytes referenced", "bytes copied", "bytes touched in user space"] {
        assert!(said.contains(figure), "{said}");
    }
    let asked = explained(&folder, &["--mover", "read-write", "a", "b"]);
    assert!(line(&asked, "plan ").contains("asked for by name"));
    assert!(asked.contains("6,000,002        bytes copied"), "{asked}");
    assert!(asked.contains("3,000,001        bytes touched"), "{asked}");
    assert!(line(&asked, "target    b: regular file, 3,000,001 bytes").len() > 30);
    assert!(
        line(&explained(&folder, &["/proc/version", "c"]), "source ")
            .contains("generated when read")
    );
}

#[test]
fn a_fall_back_is_explained_and_recorded() {
    let folder = Folder::new();
    let Ok(memory) = tempfile::tempdir_in("/dev/shm") else {
        skip(Need::Machine, "there is no /dev/shm");
        return;
    };
    // Small enough that copy_file_range is asked first; it is refused between two file systems.
    let source = memory.path().join("a");
    fs::write(&source, content(60_000)).unwrap();
    let source = source.to_str().unwrap();
    let said = explained(&folder, &["--json", "record", source, "b"]);
    assert!(folder.read("b") == content(60_000));
    let record = parse_copy(&folder.read("record")).unwrap();
    let tried = &record.copies[0].plan.tried;
    let Some(refusal) = tried[0].refused.as_ref() else {
        skip(Need::Machine, "this kernel copies between file systems");
        return;
    };
    assert_eq!(
        (refusal.call.as_str(), refusal.errno.as_deref()),
        ("copy_file_range", Some("EXDEV"))
    );
    let refused = "refused   copy-file-range  copy_file_range: ";
    assert!(line(&said, refused).contains("cross-device"), "{said}");
    assert!(line(&said, "chosen    sendfile ").contains("60,000"), "{said}");
    assert_eq!(record.mover.as_deref(), Some("sendfile"));
    // Asked for by name, it is refused, and leaves nothing behind and everything as it was.
    let said = folder.refuse(2, &["--mover", "copy-file-range", source, "c"]);
    assert!(said.contains("copy-file-range: copy_file_range: "), "{said}");
    assert!(!folder.path("c").exists());
    let said = folder.refuse(2, &["--mover", "copy-file-range", source, "b"]);
    assert!(said.contains("copy-file-range: copy_file_range: ") && !said.contains("empty"));
    assert!(folder.read("b") == content(60_000));
}

#[test]
fn the_list_has_every_mover_as_it_declares_itself() {
    let folder = Folder::new();
    let output = folder.run(&["--list"]);
    assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
    let list = String::from_utf8(output.stdout).unwrap();
    assert!(list.lines().all(|line| line.chars().count() <= 100), "{list}");
    let names: Vec<&str> = list
        .lines()
        .filter(|line| !line.starts_with(' '))
        .map(|line| line.split_whitespace().next().unwrap())
        .collect();
    let declared: Vec<&str> = MOVERS.iter().map(|mover| mover.declaration().name).collect();
    assert_eq!(names, declared);
    let words: Vec<&str> = list.split_whitespace().collect();
    for mover in MOVERS {
        let declaration = mover.declaration();
        assert!(list.contains(declaration.summary), "{list}");
        assert!(declaration.calls.iter().all(|call| words.contains(call)), "{list}");
    }
    assert_eq!(
        list.matches("by reference").count(),
        MOVERS.iter().filter(|mover| mover.declaration().by_reference).count()
    );
}

#[test]
fn the_guide_has_every_mover_and_every_option() {
    let guide = fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/copy.md"));
    let guide = guide.unwrap();
    let rows = MOVERS.iter().map(|mover| {
        let declaration = mover.declaration();
        let passes_on = if declaration.by_reference { "reference" } else { "value" };
        let cells = [&format!("`{}`", declaration.name), declaration.summary, passes_on];
        cells.map(str::to_owned).to_vec()
    });
    let header = ["mover", "what it does", "passes on by"];
    iotomy_test_requirements::guide::check(
        "docs/copy.md",
        "movers",
        &iotomy_test_requirements::guide::table(&header, rows),
    );
    let help = support::text(&support::iotomy(&["copy", "-h"]).output().unwrap().stdout[..]);
    let options = help.split_whitespace().filter(|word| word.starts_with("--") && word.len() > 2);
    let mut seen = 0;
    for option in options {
        let name = option.split(['[', '=', ',', ';', ' ']).next().unwrap();
        // What every verb has is described elsewhere.
        let is_general = ["--help", "--no-config", "--no-pager"].contains(&name);
        assert!(is_general || guide.contains(&format!("`{name}")), "{name} is not in the guide");
        seen += 1;
    }
    assert!(seen > 15, "{help}");
}

#[test]
fn a_record_is_written_where_it_was_asked_for() {
    let folder = Folder::new();
    folder.write("a", content(LARGE));
    folder.copy(&["--mover", "read-write", "--verify", "--fsync", "--json", "record", "a", "b"]);
    let record = parse_copy(&folder.read("record")).unwrap();
    assert_eq!((record.sources.as_slice(), record.target.as_str()), (&["a".to_owned()][..], "b"));
    assert_eq!((record.bytes, record.copied_bytes), (LARGE as u64, 2 * LARGE as u64));
    assert!(record.verified == Some(true) && record.fsync_ns.unwrap() > 0);
    let output = folder.run(&["--json", "-", "a", "b"]);
    assert_eq!(parse_copy(&output.stdout).unwrap().bytes, LARGE as u64);
}

#[test]
fn a_record_that_finds_no_room_is_an_error_and_the_copy_is_made() {
    let folder = Folder::new();
    folder.write("a", "x");
    let stderr = refused(2, &folder.run(&["--json", "/dev/full", "a", "b"]));
    assert!(stderr.contains("/dev/full: No space left on device"), "{stderr}");
    assert_eq!(folder.read("b"), b"x");
}

#[test]
fn progress_that_was_asked_for_is_shown_and_ends_with_a_line() {
    let folder = Folder::new();
    folder.write("a", content(LARGE));
    let output = folder.run(&["--progress", "--mover", "read-write", "a", "b"]);
    let stderr = String::from_utf8(output.stderr).unwrap();
    let last = stderr.lines().last().unwrap();
    assert!(last.starts_with("2.86 MiB in ") && last.ends_with("/s   read-write"), "{stderr}");
    assert!(!stderr.contains('\x1b'), "{stderr}");
    // While a pipe gives nothing, the time passes.
    let mut command = folder.command(&["--progress", "-", "c"]);
    let mut child = command.stdin(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    child.stdin.as_mut().unwrap().write_all(b"12345").unwrap();
    let mut shown = [0; 40];
    child.stderr.as_mut().unwrap().read_exact(&mut shown).unwrap();
    assert!(shown.starts_with(b"5 B   "), "{}", String::from_utf8_lossy(&shown));
    drop(child.stdin.take());
    assert!(child.wait().unwrap().success());
}

#[test]
fn progress_comes_by_itself_on_a_terminal_and_goes_again() {
    if !support::has("script") {
        return;
    }
    let folder = Folder::new();
    let fifo = folder.path("fifo");
    assert!(support::bare("mkfifo", &[fifo.to_str().unwrap()]).status().unwrap().success());
    // The terminal is script's; what is drawn on it comes by its standard output.
    let words = format!("{} copy fifo b", support::IOTOMY);
    let mut script = support::bare("script", &["-qec", &words, "/dev/null"]);
    script.current_dir(folder.path("")).env("TERM", "xterm").stdout(Stdio::piped());
    let mut child = script.spawn().unwrap();
    let mut into = fs::OpenOptions::new().write(true).open(&fifo).unwrap();
    into.write_all(b"12345").unwrap();
    let mut screen = child.stdout.take().unwrap();
    let mut shown = Vec::new();
    // On a busy machine any of the pictures may be left out, but not all that tell of time that has passed.
    let tells_of_time = |shown: &[u8]| {
        let text = String::from_utf8_lossy(shown).into_owned();
        let mut before = text.split(" so far   splice").map(str::to_owned).collect::<Vec<_>>();
        before.pop();
        before.iter().any(|text| !text.ends_with(" 0:00"))
    };
    while !tells_of_time(&shown) {
        let mut some = [0; 100];
        let got = screen.read(&mut some).unwrap();
        assert!(got > 0, "{}", String::from_utf8_lossy(&shown));
        shown.extend_from_slice(&some[..got]);
    }
    drop(into);
    screen.read_to_end(&mut shown).unwrap();
    assert!(child.wait().unwrap().success());
    let shown = String::from_utf8(shown).unwrap();
    assert!(shown.starts_with("\r\x1b[K5 B   ") && shown.ends_with("\r\x1b[K"), "{shown:?}");
}

#[test]
fn a_small_file_takes_fewer_calls_than_cp_needs() {
    if !support::has("strace") || !support::has("cp") {
        return;
    }
    let folder = Folder::new();
    let names: Vec<String> = (0..50).map(|n| format!("f{n}")).collect();
    names.iter().for_each(|name| drop(folder.write(name, content(4096))));
    // Into a new folder, so that what is the start-up of both is taken off.
    let calls = |words: &[&str], names: &[String], target: &str| {
        fs::create_dir(folder.path(target)).unwrap();
        let mut command = support::bare("strace", &["-f", "-qqq", "-o", "log"]);
        command.args(words).args(names).arg(target).current_dir(folder.path(""));
        assert!(command.status().unwrap().success());
        let log = fs::read_to_string(folder.path("log")).unwrap();
        // A debug build asks of each descriptor whether it is open.
        log.lines().filter(|line| !line.contains("F_GETFD")).count()
    };
    let a_file = |words: &[&str], target: &str| {
        let one = calls(words, &names[..1], &format!("{target}-1"));
        calls(words, &names, target) - one
    };
    let (ours, theirs) = (a_file(&[support::IOTOMY, "copy"], "ours"), a_file(&["cp"], "theirs"));
    assert!(ours < theirs, "{ours} calls for 49 files, and cp makes {theirs}");
}
