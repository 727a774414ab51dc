//! How the command starts: with no library that the run does not need, and with its standard streams
//! taken care of.

#![expect(clippy::unwrap_used, reason = "a failed step of a test is a failed test")]

mod support;

use std::fs;
use std::process::{Command, Output};

use support::IOTOMY;

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn nothing_but_the_c_library_is_loaded_at_the_start() {
    let listed = Command::new(IOTOMY).env("LD_TRACE_LOADED_OBJECTS", "1").output().unwrap();
    let text = String::from_utf8(listed.stdout).unwrap();
    let libraries: Vec<&str> =
        text.lines().filter_map(|line| line.split_whitespace().next()).collect();
    assert!(libraries.contains(&"libc.so.6"), "{text}");
    for library in libraries {
        let is_needed = ["libc.so.6", "linux-vdso.so.1"].contains(&library)
            || library.contains("/ld-linux-x86-64.so.");
        assert!(
            is_needed,
            "{library} is loaded in front of every run; see crates/sys/src/on_demand.rs"
        );
    }
}

#[test]
fn without_libelf_bpf_says_so_and_ptrace_takes_over() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("libelf.so.1"), "no library").unwrap();
    let trace = |words: &[&str]| {
        let mut trace = support::iotomy(words);
        trace.env("LD_LIBRARY_PATH", folder.path()).output().unwrap()
    };
    let refused = trace(&["trace", "--observer", "bpf", "true"]);
    assert_eq!(refused.status.code(), Some(2), "{refused:?}");
    let said = stderr(&refused);
    assert!(said.contains("cannot load libelf.so.1 (package libelf1): "), "{said}");
    let copied = trace(&["copy", "/etc/passwd", "/dev/null"]);
    assert!(copied.status.success(), "{copied:?}");
    if trace(&["trace", "-q", "--observer", "ptrace", "true"]).status.success() {
        let traced = trace(&["trace", "true"]);
        assert!(traced.status.success(), "{traced:?}");
        assert!(stderr(&traced).contains("observer ptrace"), "{}", stderr(&traced));
    } else {
        support::skip("ptrace does not work here");
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
fn what_was_printed_is_there_when_the_command_has_ended() {
    let version = Command::new(IOTOMY).arg("--version").output().unwrap();
    assert_eq!(version.stdout, format!("iotomy {}\n", env!("CARGO_PKG_VERSION")).as_bytes());
    let movers = Command::new(IOTOMY).args(["copy", "--list"]).output().unwrap();
    assert!(movers.stdout.ends_with(b"\n"), "{movers:?}");
}
