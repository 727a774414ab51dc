//! `iotomy show`: a saved record, as the run printed it; and records from strangers.

use crate::support;

use std::fs;
use std::io::Write;
use std::process::{Output, Stdio};

use support::copying::{Folder, content};
use support::{each_observer, iotomy, traced};

fn show(options: &[&str]) -> Output {
    iotomy(&[&["show"], options].concat()).output().unwrap()
}

#[test]
fn a_saved_record_is_shown_as_the_run_printed_it() {
    each_observer(|observer| {
        let one = ["dd", "if=/dev/zero", "of=/dev/null", "count=100", "status=none"];
        let tree = ["sh", "-c", "echo x | cat; ls /nonexistent; ls / | head -3; kill -9 $$"];
        for words in [&one[..], &tree] {
            for options in [
                &[][..],
                &["--files"],
                &["--sort", "calls", "--top", "3"],
                &["--top", "0"],
                &["--quantize", "return,wall,on-cpu,blocked"],
                &["--call", "read,%file", "--ascii"],
            ] {
                let folder = tempfile::tempdir().unwrap();
                let report = folder.path().join("report");
                let output = ["-o", report.to_str().unwrap()];
                let traced = traced(observer, &[options, &output].concat(), words);
                let live = fs::read_to_string(&report).unwrap();
                let ascii = options.iter().filter(|option| **option == "--ascii").copied();
                let json = traced.json();
                let words: Vec<&str> = ascii.chain([json.to_str().unwrap()]).collect();
                let shown = show(&words);
                assert!(shown.status.success() && shown.stderr.is_empty(), "{shown:?}");
                assert_eq!(
                    String::from_utf8(shown.stdout).unwrap(),
                    live,
                    "{observer} {options:?}"
                );
                traced.record();
            }
        }
    });
}

#[test]
fn what_is_shown_can_be_changed_afterwards() {
    each_observer(|observer| {
        let traced = traced(observer, &["-q"], &["ls", "/"]);
        let json = traced.json();
        let json = json.to_str().unwrap();
        let text = |options: &[&str]| {
            let shown = show(&[options, &[json]].concat());
            assert!(shown.status.success(), "{shown:?}");
            String::from_utf8(shown.stdout).unwrap()
        };
        assert!(text(&["--top", "1"]).contains("more"));
        assert!(text(&["--top", "0"]).lines().count() > text(&["--top", "2"]).lines().count());
        assert!(text(&["--quantize", "wall"]).contains("wall time"));
        assert_ne!(text(&["--sort", "name"]), text(&["--sort", "calls"]));
        let mut dash = iotomy(&["show", "-"]);
        dash.stdin(fs::File::open(json).unwrap());
        assert_eq!(dash.output().unwrap().stdout, text(&[]).into_bytes());
    });
}

#[test]
fn a_copy_is_shown_as_it_explained_itself() {
    let folder = Folder::new();
    let hostile = "a\u{1b}[2J\n name";
    folder.write(hostile, content(100_000));
    folder.write("b", content(5000));
    fs::create_dir(folder.path("d")).unwrap();
    for words in [
        &[hostile, "c"][..],
        &["--mover", "read-write", "--verify", "--fsync", "b", "c"],
        &[hostile, "b", "d"],
        &["--reflink", "never", "--sparse", "always", "--by-value", "--concat", hostile, "b", "c"],
        &["/proc/version", "/dev/null"],
    ] {
        let told = folder.run(&[&["--explain", "--json", "record"], words].concat());
        assert!(told.status.success(), "{told:?}");
        let shown = show(&[folder.path("record").to_str().unwrap()]);
        assert!(shown.status.success() && shown.stderr.is_empty(), "{shown:?}");
        let shown = String::from_utf8(shown.stdout).unwrap();
        assert_eq!(shown, String::from_utf8(told.stderr).unwrap(), "{words:?}");
        assert!(!shown.contains('\x1b') && shown.lines().all(|line| line.chars().count() <= 100));
        // Without an explanation the record knows as much, but for what probes would have said.
        let silent = folder.run(&[&["--json", "record"], words].concat());
        assert!(silent.stderr.is_empty(), "{silent:?}");
        let again = show(&[folder.path("record").to_str().unwrap()]);
        let again = String::from_utf8(again.stdout).unwrap();
        let begins = |text: &str| -> Vec<String> {
            text.lines()
                .filter_map(|line| line.split_whitespace().next())
                .map(str::to_owned)
                .collect()
        };
        assert_eq!(begins(&again)[..3], begins(&shown)[..3], "{words:?}");
        assert!(again.contains("chosen    ") && again.contains("in all    "), "{again}");
    }
}

/// Shows `content`, which is no record: one line, and status 2.
fn refused(content: &[u8]) -> String {
    let mut command = iotomy(&["show", "-"]);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    // It may refuse before it has read all.
    let _ = child.stdin.take().unwrap().write_all(content);
    let output = child.wait_with_output().unwrap();
    let error = String::from_utf8(output.stderr).unwrap();
    let start = String::from_utf8_lossy(&content[..content.len().min(80)]).into_owned();
    assert_eq!((output.status.code(), output.stdout.len()), (Some(2), 0), "{start}: {error}");
    assert!(error.starts_with("iotomy: ") && error.lines().count() == 1, "{start}: {error}");
    assert!(!error.contains("panicked") && error.chars().all(|c| c == '\n' || !c.is_control()));
    error
}

#[test]
fn a_record_cut_anywhere_is_refused_in_a_line() {
    let traced = traced("auto", &["-q", "--files"], &["true"]);
    let record = fs::read(traced.json()).unwrap();
    let end = record.len() - 2;
    for cut in (0..end).step_by(end / 40) {
        refused(&record[..cut]);
    }
    assert!(refused(&record[..end / 2]).contains("ends too early"));
    assert!(refused(b"").contains("empty"));
}

#[test]
fn what_is_no_record_of_this_kind_and_version_is_refused_in_a_line() {
    let traced = traced("auto", &["-q"], &["true"]);
    let record = fs::read_to_string(traced.json()).unwrap();
    let with = |from: &str, to: &str| {
        assert!(record.contains(from), "{from}");
        refused(record.replacen(from, to, 1).as_bytes())
    };
    assert!(with("iotomy.trace/1", "iotomy.trace/2").contains("newer"));
    // Of a kind that is shown, and not of its form.
    assert!(with("iotomy.trace/1", "iotomy.sweep/1").contains("missing field"));
    assert!(with("iotomy.trace/1", "iotomy.anatomy/1").contains("missing field"));
    assert!(with("iotomy.trace/1", "\\u001b[31m").contains("\\x1b"));
    with("\"wall_ns\":", "\"wall_ns\":-");
    with("\"calls\":", "\"call\":");
    with("\"zero\":", "\"zero\":1e400,\"was\":");
    with("\"zero\":", "\"zero\":-1,\"was\":");
    for text in ["null", "[]", "{}", "{\"schema\":1}", "\"x\"", "{\"schema\":\"iotomy.trace/1\"}"] {
        refused(text.as_bytes());
    }
    refused(&[0xff; 100]);
    refused("[".repeat(100_000).as_bytes());
    refused(format!("{{\"schema\":{}", "{\"a\":".repeat(100_000)).as_bytes());
    assert!(record.contains("iotomy.trace/1"));
}

#[test]
fn the_raw_record_of_a_bench_is_called_that() {
    let mut met = 0;
    for run in fs::read_dir("../../results").unwrap() {
        let record = run.unwrap().path().join("trace/raw.json");
        if record.is_file() {
            let shown = show(&[record.to_str().unwrap()]);
            let error = String::from_utf8(shown.stderr).unwrap();
            assert_eq!(shown.status.code(), Some(2));
            assert!(error.contains("the raw record of a bench (trace-cost)"), "{error}");
            assert_eq!(error.lines().count(), 1, "{error}");
            met += 1;
        }
    }
    assert!(met > 0);
}

#[test]
fn a_file_that_cannot_be_read_is_named() {
    for (path, said) in [("/nonexistent", "No such file"), ("/", "directory")] {
        let shown = show(&[path]);
        let error = String::from_utf8(shown.stderr).unwrap();
        assert_eq!(shown.status.code(), Some(2));
        assert!(error.starts_with("iotomy: cannot read the record /"), "{error}");
        assert!(error.contains(said) && error.lines().count() == 1, "{error}");
        assert_eq!(error.matches(said).count(), 1, "{error}");
    }
}

#[test]
fn a_reader_that_leaves_early_is_no_failure() {
    let traced = traced("auto", &["-q"], &["true"]);
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let mut command = iotomy(&["show", traced.json().to_str().unwrap()]);
    assert!(command.stdout(writer).status().unwrap().success());
}
