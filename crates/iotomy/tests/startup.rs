//! How the command starts: with no library that the run does not need, and with its standard streams
//! taken care of.

#![expect(clippy::unwrap_used, reason = "a failed step of a test is a failed test")]

mod support;

use std::fs;
use std::process::{Command, Output};

use support::IOTOMY;
use support::{Need, skip};

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// What `scripts/link-flags` says of this machine, with or without libelf's archive being found.
fn link_flags() -> String {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scripts/link-flags");
    let said = Command::new(script).output().unwrap();
    assert!(said.status.success(), "{said:?}");
    String::from_utf8(said.stdout).unwrap()
}

#[test]
fn what_is_linked_as_make_build_does_loads_no_library_and_has_its_start_in_one_place() {
    let flags = link_flags();
    if flags.trim().is_empty() {
        skip(Need::Programs, "the archives of libelf, zlib and the C library are not here");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let (source, program) = (folder.path().join("p.rs"), folder.path().join("p"));
    let text = "#[link(name = \"elf\")] unsafe extern \"C\" { fn elf_version(version: u32) -> u32; }\n\
        // SAFETY: takes and returns a number.\n\
        fn main() { assert_eq!(unsafe { elf_version(1) }, 1); }\n";
    fs::write(&source, text).unwrap();
    let mut rustc = Command::new(std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into()));
    rustc.args(["--edition", "2024"]).args(flags.split_whitespace());
    let made = rustc.arg("-o").args([&program, &source]).output().unwrap();
    assert!(made.status.success(), "{made:?}");
    let image = fs::read(&program).unwrap();
    let section = b"\0.text.start\0";
    assert!(image.windows(section.len()).any(|name| name == section), "start.ld was not used");
    let ran = Command::new(&program).env("LD_PRELOAD", "/no/such/library").output().unwrap();
    assert!(ran.status.success(), "{ran:?}");
    // The loader of libraries would name what it cannot preload.
    assert!(stderr(&ran).is_empty(), "{}", stderr(&ran));
}

#[test]
fn a_closed_standard_stream_is_no_file_that_is_opened() {
    let folder = tempfile::tempdir().unwrap();
    let (source, target) = (folder.path().join("source"), folder.path().join("target"));
    fs::write(&source, "content").unwrap();
    let script = "exec \"$0\" copy --explain \"$1\" \"$2\" <&- >&- 2>&-";
    let mut shell = Command::new("sh");
    let status = shell.args(["-c", script, IOTOMY]).args([&source, &target]).status().unwrap();
    assert!(status.success(), "{status}");
    assert_eq!(fs::read_to_string(&target).unwrap(), "content");
}

#[test]
fn what_cannot_be_read_or_written_because_a_stream_is_closed_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let (source, target) = (folder.path().join("source"), folder.path().join("target"));
    fs::write(&source, "content").unwrap();
    let input = "cannot read standard input: Bad file descriptor; it was closed";
    for (line, said) in [
        ("copy - \"$2\" <&-", input),
        ("copy /dev/stdin \"$2\" <&-", input),
        ("copy /dev/fd/0 \"$2\" <&-", input),
        ("copy --concat \"$1\" - \"$2\" <&-", input),
        ("copy \"$1\" - >&-", "cannot write standard output: Bad file descriptor; it was closed"),
        ("copy --json - \"$1\" \"$2\" >&-", "cannot write --json to standard output: it is closed"),
        ("copy --list >&-", "cannot write to standard output: Bad file descriptor"),
        ("lab list >&-", "Bad file descriptor (os error 9); it was closed"),
        ("race --runs 3 true true >&-", "cannot write to standard output: Bad file descriptor"),
        ("trace -h >&-", "cannot write to standard output: Bad file descriptor"),
        ("--version >/dev/full", "cannot write to standard output: No space left on device"),
    ] {
        fs::write(&target, "old").unwrap();
        let mut shell = Command::new("sh");
        let script = format!("exec \"$0\" {line}");
        let output = shell.args(["-c", &script, IOTOMY]).args([&source, &target]).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{line}: {output:?}");
        assert!(stderr(&output).contains(said), "{line}: {}", stderr(&output));
        assert_eq!(fs::read_to_string(&target).unwrap(), "old", "{line}");
    }
}

#[test]
fn what_was_printed_is_there_when_the_command_has_ended() {
    let version = Command::new(IOTOMY).arg("--version").output().unwrap();
    assert_eq!(version.stdout, format!("iotomy {}\n", env!("CARGO_PKG_VERSION")).as_bytes());
    let movers = Command::new(IOTOMY).args(["copy", "--list"]).output().unwrap();
    assert!(movers.stdout.ends_with(b"\n"), "{movers:?}");
}
