//! Words of the command line: bytes where names are meant, and an error that names the word where a text is.

use crate::support;

use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::process::{Command, Stdio};

use iotomy_record::store::load_trace;
use support::{bpf, iotomy};

fn run(words: &[&[u8]]) -> (Option<i32>, String) {
    let mut command = iotomy(&[]);
    let output = command.args(words.iter().map(|word| OsStr::from_bytes(word))).output().unwrap();
    (output.status.code(), String::from_utf8(output.stderr).unwrap())
}

#[test]
fn a_word_that_is_not_utf8_where_a_text_is_needed_is_named() {
    const IN_A_STRING: &str = "write such a byte as \\xNN in a string";
    const IN_A_SCRIPT: &str = "put the command into a script, and race that";
    const IN_ANOTHER_SCRIPT: &str = "put the command into a script, and run that";
    const ANOTHER: &str = "use a name that is UTF-8";
    for (words, named, advice) in [
        (
            &[&b"trace"[..], b"--where", b"path == \"\xff\"", b"ls"][..],
            r#" for --where: path == "\xff""#,
            IN_A_STRING,
        ),
        (
            &[b"trace", b"--until=image == \"\xc3\"", b"ls"],
            r#" for --until: image == "\xc3""#,
            IN_A_STRING,
        ),
        (
            &[b"d", b"-n", b"BEGIN { trace(\"\xff\") }"],
            r#" for -n: BEGIN { trace("\xff") }"#,
            IN_A_STRING,
        ),
        (
            &[b"d", b"--program", b"BEGIN { trace(\"\xff\") }"],
            r#" for --program: BEGIN { trace("\xff") }"#,
            IN_A_STRING,
        ),
        (
            &[b"d", b"-qnBEGIN { trace(\"\xff\") }"],
            r#" for -n: BEGIN { trace("\xff") }"#,
            IN_A_STRING,
        ),
        (&[b"d", b"-n", b"BEGIN {}", b"-c", b"./\xff"], r" for -c: ./\xff", IN_ANOTHER_SCRIPT),
        (&[b"race", b"true", b"./\xff -l"], r": ./\xff -l", IN_A_SCRIPT),
        // A flag takes no value.
        (&[b"race", b"-i", b"./\xff"], r": ./\xff", IN_A_SCRIPT),
        (&[b"race", b"-r", b"2", b"--", b"-r", b"\xff"], r": \xff", IN_A_SCRIPT),
        (
            &[b"race", b"true", b"--prepare", b"./\xff"],
            r" for --prepare: ./\xff",
            IN_ANOTHER_SCRIPT,
        ),
        // Which word it is: other names may be bytes.
        (
            &[b"race", b"--output", b"/tmp/\xfe", b"true", b"--save=a\xff"],
            r" for --save: a\xff",
            ANOTHER,
        ),
        (&[b"trace", b"--unit", b"\xff", b"-o", b"/tmp/\xfe"], r" for --unit: \xff", ANOTHER),
        (&[b"lab", b"run", b"\xff"], r": \xff", ANOTHER),
    ] {
        let expected = format!("iotomy: invalid value{named} is not UTF-8; {advice}\n");
        assert_eq!(run(words), (Some(2), expected));
    }
}

#[test]
fn a_program_that_is_not_there_is_named_as_names_are_everywhere() {
    for verb in [&b"trace"[..], b"anatomy"] {
        let (status, said) = run(&[verb, b"--", b"./no such\xff"]);
        let expected = "iotomy: cannot run ./no such\\xff: No such file or directory (os error 2); check the path\n";
        assert_eq!((status, &*said), (Some(127), expected));
    }
}

#[test]
fn a_name_of_any_bytes_selects_its_processes() {
    if !bpf() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join(OsStr::from_bytes(b"sleeps\xff"));
    fs::copy("/bin/sleep", &program).unwrap();
    let mut sleeper = Command::new(&program).arg("1000").stdin(Stdio::null()).spawn().unwrap();
    let record = folder.path().join("record");
    let words: [&[u8]; 6] = [b"trace", b"--name", b"sleeps\xff", b"-d", b"0.01", b"--json"];
    let words = words.map(OsStr::from_bytes).map(OsString::from);
    let output = iotomy(&[]).args(words).arg(&record).output().unwrap();
    sleeper.kill().unwrap();
    sleeper.wait().unwrap();
    assert!(output.status.success(), "{output:?}");
    let record = load_trace(&record).unwrap();
    assert_eq!(record.targets[0].name, r"sleeps\xff");
    let found: Vec<(u32, &str)> =
        record.processes.iter().map(|process| (process.pid, process.name())).collect();
    assert_eq!(found, [(sleeper.id(), r"sleeps\xff")]);
}

#[test]
fn a_negative_number_is_a_value_and_no_option() {
    for (words, option, expected) in [
        (&["trace", "-d", "-1", "true"][..], "--duration", "expected more than 0 seconds"),
        (&["trace", "--top", "-1", "true"], "--top", "expected a whole number"),
        (&["trace", "--slowest", "-1", "true"], "--slowest", "-1 is not in 1..=100"),
        (&["race", "--max-time", "-0.5", "true"], "--max-time", "expected more than 0 seconds"),
        (&["copy", "--count", "-5", "a", "b"], "--count", "invalid size"),
        (&["trace", "-p", "-1"], "--pid", "expected a process ID"),
    ] {
        let words: Vec<&[u8]> = words.iter().map(|word| word.as_bytes()).collect();
        let (status, said) = run(&words);
        let is_said = said.starts_with("iotomy: invalid value '-") && said.contains(expected);
        assert!(status == Some(2) && is_said && said.contains(option), "{said}");
    }
}

#[test]
fn a_path_of_any_bytes_is_told_byte_by_byte() {
    let mut command = iotomy(&["history", "show", "1"]);
    let output = command.env("XDG_DATA_HOME", OsStr::from_bytes(b"/nosuch/\xff")).output().unwrap();
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert!(stderr.contains(r"there is no history /nosuch/\xff/iotomy/history.db yet"), "{stderr}");
}

#[test]
fn records_are_compared_whatever_their_names_are() {
    let folder = tempfile::tempdir().unwrap();
    let record = folder.path().join(OsStr::from_bytes(b"r\xff"));
    let json = iotomy(&["race", "--no-trace", "--runs", "2", "true", "--json"]);
    let made = { json }.arg(&record).output().unwrap();
    assert!(made.status.success(), "{made:?}");
    let mut diff = iotomy(&["diff"]);
    let refused = diff.args([&record, &record]).output().unwrap();
    let stderr = String::from_utf8(refused.stderr).unwrap();
    assert!(stderr.contains(r"/r\xff") && !stderr.contains("UTF-8"), "{stderr}");
    let (status, stderr) = run(&[b"diff", b"", b"x"]);
    assert_eq!(status, Some(2));
    assert!(stderr.starts_with("iotomy: cannot read a record without a name"), "{stderr}");
}
