//! What iotomy says of itself, and of a command line it does not understand.

#![expect(clippy::unwrap_used, reason = "a failed step of a test is a failed test")]

mod support;

use std::fs;

use support::iotomy;

fn said(arguments: &[&str]) -> String {
    let output = iotomy(arguments).output().unwrap();
    assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn every_verb_and_option_is_in_the_help_and_fits_the_page() {
    let help = said(&["--help"]);
    let verbs = [
        "trace", "anatomy", "race", "copy", "limits", "lab", "show", "history", "report", "doctor",
        "generate",
    ];
    for verb in verbs {
        assert!(help.contains(&format!("\n  {verb} ")), "{help}");
        let of_verb = said(&[verb, "--help"]);
        assert!(of_verb.lines().all(|line| line.chars().count() <= 100), "{of_verb}");
        assert!(said(&[verb, "-h"]).len() <= of_verb.len());
    }
    let trace = said(&["trace", "--help"]);
    for option in [
        "-p, --pid",
        "-a, --all",
        "-d, --duration",
        "--live",
        "--wait",
        "--user",
        "--observer",
        "--call",
        "--files",
        "--sort",
        "--top",
        "--quantize",
        "--json",
        "-o, --output",
        "-q, --quiet",
        "--max-rows",
        "--color",
        "--ascii",
        "CMD",
    ] {
        assert!(trace.contains(option), "{option}: {trace}");
    }
    for name in ["auto", "bpf", "ptrace", "return", "on-cpu", "blocked"] {
        assert!(trace.contains(name), "{name}: {trace}");
    }
    let race = said(&["race", "--help"]);
    for option in [
        "-w, --warmup",
        "-r, --runs",
        "--min-effect",
        "--max-time",
        "--prepare",
        "--setup",
        "--cleanup",
        "--cache",
        "--drop-caches",
        "--output",
        "-i, --ignore-failure",
        "-L, --parameter",
        "--deny",
        "--seed",
        "--redo",
        "--no-trace",
        "--against",
        "--save",
        "--observer",
        "--json",
        "--export-csv",
        "--export-markdown",
        "-q, --quiet",
        "--color",
        "CMD",
    ] {
        assert!(race.contains(option), "{option}: {race}");
    }
    let lab = said(&["lab", "run", "--help"]);
    for option in [
        "--all",
        "-L, --axis",
        "--quick",
        "--full",
        "--max-time",
        "--resume",
        "--seed",
        "--path",
        "--json",
        "-q, --quiet",
        "--color",
        "--ascii",
        "NAME",
    ] {
        assert!(lab.contains(option), "{option}: {lab}");
    }
    let report = said(&["report", "--help"]);
    for option in
        ["-o, --output", "--open", "--svg", "--csv", "--markdown", "--list", "--part", "RECORD"]
    {
        assert!(report.contains(option), "{option}: {report}");
    }
    let show = said(&["show", "--help"]);
    assert!(["--sort", "--top", "--quantize", "--color"].iter().all(|o| show.contains(o)));
}

#[test]
fn the_version_is_the_packages() {
    assert_eq!(said(&["--version"]), format!("iotomy {}\n", env!("CARGO_PKG_VERSION")));
}

#[test]
fn man_pages_and_completions_are_written() {
    let folder = tempfile::tempdir().unwrap();
    let man = folder.path().join("a/man");
    said(&["generate", "man", man.to_str().unwrap()]);
    for name in [
        "",
        "-trace",
        "-race",
        "-copy",
        "-limits",
        "-lab",
        "-lab-run",
        "-show",
        "-doctor",
        "-history",
        "-history-trend",
    ] {
        let page = fs::read_to_string(man.join(format!("iotomy{name}.1"))).unwrap();
        assert!(page.contains(".TH") && page.contains(".SH"), "{name}: {page}");
    }
    let page = fs::read_to_string(man.join("iotomy-trace.1")).unwrap();
    assert!(page.contains("quantize") && page.contains("duration"));
    let completions = folder.path().join("completions");
    said(&["generate", "completions", completions.to_str().unwrap()]);
    for name in ["iotomy.bash", "_iotomy", "iotomy.fish"] {
        let script = fs::read_to_string(completions.join(name)).unwrap();
        assert!(script.contains("quantize") && script.contains("trace"), "{name}");
    }
    let output = iotomy(&["generate", "man", "/proc/nowhere"]).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(output.stderr.starts_with(b"iotomy: cannot make the folder /proc/nowhere"));
}

#[test]
fn a_command_line_that_makes_no_sense_is_refused_with_status_2() {
    for words in [
        &[][..],
        &["no-such-verb"],
        &["trace"],
        &["trace", "--"],
        &["trace", "--no-such-option", "true"],
        &["trace", "-p", "1", "true"],
        &["trace", "-p", "1", "-a"],
        &["trace", "-a", "true"],
        &["trace", "-a", "--wait"],
        &["trace", "-p", "1", "--user", "root"],
        &["trace", "-d", "0", "true"],
        &["trace", "-d", "-1", "true"],
        &["trace", "-d", "nan", "true"],
        &["trace", "-d", "1e30", "true"],
        &["trace", "--top", "-1", "true"],
        &["trace", "--top", "99999999999999999999", "true"],
        &["trace", "--sort", "size", "true"],
        &["trace", "--quantize", "size", "true"],
        &["trace", "--max-rows", "0", "true"],
        &["trace", "--max-rows", "4294967296", "true"],
        &["trace", "--observer", "strace", "true"],
        &["trace", "--call", "no_such_call", "true"],
        &["trace", "--call", "%no-such-group", "true"],
        &["trace", "--call", "", "true"],
        &["trace", "--json", "", "true"],
        &["trace", "--json", "a", "--json", "b", "true"],
        &["race"],
        &["race", ""],
        &["race", "  "],
        &["race", "echo 'a"],
        &["race", "no-such-program-here"],
        &["race", "/nonexistent/program", "true"],
        &["race", "-r", "0", "true"],
        &["race", "-r", "many", "true"],
        &["race", "--max-time", "0", "true"],
        &["race", "--min-effect", "-1%", "true"],
        &["race", "--min-effect", "100%", "true"],
        &["race", "--min-effect", "nan", "true"],
        &["race", "--cache", "lukewarm", "true"],
        &["race", "--output", "nowhere", "true"],
        &["race", "--output", "/nonexistent/folder/file", "true"],
        &["race", "-L", "x", "true"],
        &["race", "-L", "x=", "true {x}"],
        &["race", "-L", "x=1,,2", "true {x}"],
        &["race", "-L", "x=1,2", "true"],
        &["race", "-L", "x=1", "-L", "x=2", "true {x}"],
        &["race", "--deny", "no_such_call", "true"],
        &["race", "--deny", "read=EVIL", "true"],
        &["race", "--deny", "C:read", "true", "true"],
        &["race", "--json", "a", "--export-csv", "a", "true"],
        &["show"],
        &["show", "a", "b"],
        &["history"],
        &["history", "show"],
        &["history", "compare", "1"],
        &["history", "diff", "1"],
        &["history", "trend", "x", "--last", "0"],
        &["race", "--save=12", "true"],
        &["limits", "--list", "--save"],
        &["report"],
        &["report", "--svg", "--open", "a"],
        &["limits", "--list", "--refresh"],
        &["limits", "--only"],
        &["limits", "--path"],
        &["limits", "extra"],
        &["generate", "no-such-thing", "/tmp"],
    ] {
        let output = iotomy(words).output().unwrap();
        let error = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{words:?}: {error}");
        assert!(output.stdout.is_empty() && !error.is_empty(), "{words:?}");
        assert!(!error.contains("panicked"), "{words:?}: {error}");
    }
}

#[test]
fn a_name_that_is_nearly_a_call_is_answered_with_those_there_are() {
    let answer = |words: &str| {
        let output = iotomy(&["trace", "--call", words, "true"]).output().unwrap();
        String::from_utf8(output.stderr).unwrap()
    };
    assert!(answer("stat64x").contains("stat"));
    assert!(answer("%disk").contains("%file"));
}
