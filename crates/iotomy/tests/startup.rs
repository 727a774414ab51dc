//! How the command starts: with no library that the run does not need, and with its standard streams
//! taken care of.

use crate::support;

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use support::IOTOMY;
use support::{Need, has, skip};

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// The command that `make build` made, if it did.
fn built() -> Option<PathBuf> {
    let debug = Path::new(IOTOMY).parent().unwrap();
    let built = debug.parent().unwrap().join("release/iotomy");
    // What cargo makes is one file with what is among the dependencies; `make build` puts a copy in its place.
    let inode = |file: &Path| fs::metadata(file).map(|file| file.ino()).ok();
    let made = fs::read_dir(debug.parent().unwrap().join("release/deps")).into_iter().flatten();
    let mut made = made.filter_map(|file| inode(&file.ok()?.path()));
    let is_copy = inode(&built).is_some_and(|own| made.all(|other| other != own));
    if !is_copy {
        skip(Need::Build, "`make build` has made no command here");
    }
    is_copy.then_some(built)
}

/// What `scripts/link-flags` has the linker do here.
fn link_flags() -> String {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scripts/link-flags");
    let output = Command::new(script).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// Whether the archives are here that `make build` links with.
fn can_be_static() -> bool {
    let can = !link_flags().trim().is_empty();
    if !can {
        skip(Need::Programs, "the archives of libelf, zlib and the C library are not here");
    }
    can
}

/// What a program of binutils prints.
fn stdout_of(program: &str, words: &[&str], file: &Path) -> String {
    let output = Command::new(program).env("LC_ALL", "C").args(words).arg(file).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn make_build_makes_a_small_pie_with_full_relro_and_no_symbols() {
    let Some(iotomy) = built().filter(|_| has("readelf")) else { return };
    let size = fs::metadata(&iotomy).unwrap().len();
    assert!(size < 16_000_000, "{size} bytes");
    let words = ["--wide", "--file-header", "--segments", "--dynamic", "--sections"];
    let image = stdout_of("readelf", &words, &iotomy);
    for fact in [" DYN (", "GNU_RELRO", "BIND_NOW", "NOW PIE"] {
        assert!(image.contains(fact), "no {fact}: {image}");
    }
    for section in [" .symtab ", " .debug_info ", " .debug_line ", " .debug_str "] {
        assert!(!image.contains(section), "{section}: {image}");
    }
    let is_static = can_be_static();
    assert_eq!(image.contains("INTERP"), !is_static, "{image}");
    assert_eq!(image.contains("(NEEDED)"), !is_static, "{image}");
    let is_packed = link_flags().contains("pack-relative-relocs");
    assert_eq!(image.contains(" .relr.dyn "), is_packed, "{image}");
}

#[test]
fn the_line_tables_of_what_make_build_makes_are_found_beside_it() {
    let Some(iotomy) = built().filter(|_| has("nm") && has("addr2line")) else { return };
    let symbols = stdout_of("nm", &["--demangle"], &iotomy.with_extension("debug"));
    let main = symbols.lines().find(|line| line.ends_with(" iotomy::main")).unwrap();
    let address = main.split(' ').next().unwrap();
    // The command itself is looked at: by its link to the debug symbols, and their check sum.
    let place = stdout_of("addr2line", &[address, "--exe"], &iotomy);
    assert!(place.contains("crates/iotomy/src/main.rs:"), "{place}");
}

#[test]
fn what_make_build_makes_loads_no_library() {
    let Some(iotomy) = built().filter(|_| can_be_static()) else { return };
    for words in [&["--version"][..], &["copy", "--list"], &["doctor"]] {
        let mut command = Command::new(&iotomy);
        let ran = command.args(words).env("LD_PRELOAD", "/no/such/library").output().unwrap();
        // The loader of libraries would name what it cannot preload.
        let stderr = stderr(&ran);
        assert!(
            !ran.stdout.is_empty() && !stderr.contains("/no/such/library"),
            "{words:?}: {stderr}"
        );
    }
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
