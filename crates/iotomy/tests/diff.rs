//! `iotomy diff`: counts that are known beforehand, requests of which some take longer, both sides of
//! several runs, records from files and from the history, and records that cannot be compared.

use crate::support;

use std::path::Path;
use std::process::Output;

use support::histories::History;
use support::{bpf, each_observer, has, iotomy};

/// Keeps a trace of a dd that makes `count` reads and as many writes.
fn dd(observer: &str, folder: &Path, name: &str, count: u32) {
    let json = folder.join(name);
    let count = format!("count={count}");
    let words = ["trace", "-q", "--observer", observer, "--json", json.to_str().unwrap(), "--"];
    let command = ["dd", "if=/dev/zero", "of=/dev/null", "bs=16", &count, "status=none"];
    let output = iotomy(&[&words[..], &command].concat()).output().unwrap();
    assert!(output.status.success(), "{output:?}");
}

fn diff(folder: &Path, words: &[&str]) -> Output {
    iotomy(&[&["diff"], words].concat()).current_dir(folder).output().unwrap()
}

fn json(folder: &Path, words: &[&str]) -> serde_json::Value {
    let output = diff(folder, &[&["--json", "-"], words].concat());
    assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
    serde_json::from_slice(&output.stdout).unwrap()
}

/// B − A of a measure of a call.
fn delta(record: &serde_json::Value, call: &str, measure: &str) -> f64 {
    let rows = record["calls"].as_array().unwrap().iter();
    let row = rows.into_iter().find(|row| row["name"] == call).unwrap();
    let measures = row["measures"].as_array().unwrap().iter();
    let found = measures.into_iter().find(|one| one["measure"] == measure).unwrap();
    found["b"].as_f64().unwrap() - found["a"].as_f64().unwrap()
}

fn error(output: &Output) -> String {
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    let text = String::from_utf8(output.stderr.clone()).unwrap();
    assert!(text.starts_with("iotomy: ") && text.lines().count() == 1, "{text}");
    text
}

#[test]
fn the_difference_of_two_runs_is_the_work_that_one_did_more() {
    each_observer(|observer| {
        let folder = tempfile::tempdir().unwrap();
        dd(observer, folder.path(), "a.json", 100);
        dd(observer, folder.path(), "b.json", 150);
        let record = json(folder.path(), &["a.json", "b.json"]);
        assert_eq!(
            (record["schema"].as_str(), &record["judged"]),
            (Some("iotomy.diff/1"), &false.into())
        );
        for call in ["read", "write"] {
            assert_eq!(delta(&record, call, "calls"), 50.0, "{observer}");
            assert_eq!(delta(&record, call, "bytes"), 800.0, "{observer}");
        }
        let text = String::from_utf8(diff(folder.path(), &["a.json", "b.json"]).stdout).unwrap();
        assert!(text.contains("wall time of B: ") && text.contains("one run of each"), "{text}");
        let row = text.lines().find(|line| line.starts_with("  write ")).unwrap();
        let cells: Vec<&str> = row.split_whitespace().collect();
        assert_eq!(
            cells[2].parse::<u32>().unwrap() - cells[1].parse::<u32>().unwrap(),
            50,
            "{row}"
        );
        let same = json(folder.path(), &["a.json", "a.json"]);
        let verdicts = same["calls"].as_array().unwrap().iter().map(|row| row["verdict"].clone());
        assert!(verdicts.into_iter().all(|verdict| verdict == "equal"), "{same}");
        assert!(
            error(&diff(folder.path(), &["a.json", "b.json", "--check"])).contains("too few runs")
        );
    });
}

#[test]
fn paths_with_another_outcome_and_names_that_runs_draw_are_shown_as_such() {
    each_observer(|observer| {
        let folder = tempfile::tempdir().unwrap();
        let trace = |name: &str, options: &[&str]| {
            let json = folder.path().join(name);
            let words = ["trace", "-q", "--observer", observer, "--json", json.to_str().unwrap()];
            // So long that letters of both cases are in each: one of six has one case once in 80 times.
            let name = format!("{}.tmp", "X".repeat(20));
            let script = format!("mktemp -p . {name}; mktemp -p . {name}; cat present");
            let command = ["--", "sh", "-c", &script];
            let words = [&words[..], options, &command].concat();
            iotomy(&words).current_dir(folder.path()).output().unwrap()
        };
        std::fs::write(folder.path().join("present"), "x").unwrap();
        assert_eq!(trace("a.json", &["--paths"]).status.code(), Some(0));
        std::fs::remove_file(folder.path().join("present")).unwrap();
        assert_eq!(trace("b.json", &["--paths"]).status.code(), Some(1));
        let text = String::from_utf8(diff(folder.path(), &["a.json", "b.json"]).stdout).unwrap();
        let has =
            |words: &[&str]| text.lines().any(|line| words.iter().all(|word| line.contains(word)));
        assert!(has(&["/present", "openat ok → ENOENT"]), "{text}");
        assert!(has(&["1 with another outcome"]), "{text}");
        let record = json(folder.path(), &["a.json", "b.json"]);
        let rows = record["paths"].as_array().unwrap();
        let drawn = rows.iter().find(|row| row["name"].as_str().unwrap().ends_with("/….tmp"));
        let drawn = drawn.unwrap_or_else(|| panic!("{rows:?}"));
        assert_eq!(drawn["names"], serde_json::json!([2.0, 2.0]));
        assert_eq!(trace("plain.json", &[]).status.code(), Some(1));
        let text =
            String::from_utf8(diff(folder.path(), &["a.json", "plain.json"]).stdout).unwrap();
        let said = "paths are not compared: B was traced without --paths";
        assert!(text.contains(said), "{text}");
    });
}

#[test]
fn a_count_that_no_run_repeats_is_beyond_noise() {
    let folder = tempfile::tempdir().unwrap();
    // More than the fewest: other counts that take two values, as page faults do, then change nothing.
    let name = |side: &str, run: u32| format!("{side}{run}.json");
    for run in 0..6 {
        dd("auto", folder.path(), &name("a", run), 100);
        dd("auto", folder.path(), &name("b", run), 101);
    }
    let sides = |first: &str, second: &str| -> Vec<String> {
        let later = (0..6).rev().map(|run| name(second, run));
        (0..6).map(|run| name(first, run)).chain(["--".to_owned()]).chain(later).collect()
    };
    let compared = |option: &[&str], sides: &[String]| {
        let sides: Vec<&str> = sides.iter().map(String::as_str).collect();
        diff(folder.path(), &[option, &sides].concat())
    };
    let checked = compared(&["--check"], &sides("a", "b"));
    assert_eq!(checked.status.code(), Some(1), "{checked:?}");
    let text = String::from_utf8(checked.stdout).unwrap();
    let is_marked = |line: &str| line.starts_with("  write ") && line.contains("calls");
    assert!(text.lines().any(is_marked), "{text}");
    // Both sides of the same runs differ in nothing.
    assert_eq!(compared(&["--check"], &sides("a", "a")).status.code(), Some(0));
}

#[test]
fn runs_of_the_history_are_compared_by_their_numbers_and_names() {
    let history = History::new();
    for (name, count) in
        [("--save=old", "count=10"), ("--save=new", "count=30"), ("--save=old", "count=10")]
    {
        let words =
            ["trace", "-q", name, "--", "dd", "if=/dev/zero", "of=/dev/null", "bs=1", count];
        assert!(history.run(&words).status.success());
    }
    let text = history.says(&["diff", "--json", "-", "1", "2"]);
    let record: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(delta(&record, "read", "calls"), 20.0);
    let text = history.says(&["diff", "--json", "-", "old", "new"]);
    let record: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(record["a"]["sources"], serde_json::json!(["run 1", "run 3"]));
    assert_eq!(delta(&record, "read", "calls"), 20.0);
    assert!(
        history
            .refuses(&["diff", "old", "none"])
            .contains("cannot read none: there is no such file")
    );
}

/// Ten requests, each of which is answered after so many seconds, over a port that the kernel chooses.
const ASKS: &str = r#"
import os, socket, sys, time
l = socket.socket(); l.bind(('127.0.0.1', 0)); l.listen()
pid = os.fork()
if pid == 0:
    c, _ = l.accept()
    while c.recv(3): time.sleep(float(sys.argv[1])); c.send(b'answer')
    os._exit(0)
s = socket.create_connection(l.getsockname())
for n in range(10):
    s.send(b'ask')
    got = b''
    while len(got) < 6: got += s.recv(6 - len(got))
s.close(); assert os.waitpid(pid, 0)[1] == 0
"#;

/// B − A of a measure of the requests in a role.
fn of_requests(record: &serde_json::Value, role: &str, measure: &str) -> f64 {
    let rows = record["requests"].as_array().unwrap();
    let is = |row: &&serde_json::Value| row["program"] == "python3" && row["of"] == role;
    let [row] = rows.iter().filter(is).collect::<Vec<_>>()[..] else { panic!("{role}: {rows:#?}") };
    assert!(row.get("only_in").is_none(), "{row:#}");
    let measures = row["measures"].as_array().unwrap();
    let found = measures.iter().find(|one| one["measure"] == measure).unwrap();
    found["b"].as_f64().unwrap() - found["a"].as_f64().unwrap()
}

#[test]
fn requests_that_are_answered_later_take_longer_and_in_the_part_that_is_behind_it() {
    if !bpf() || !has("python3") {
        return;
    }
    let history = History::new();
    for (name, seconds) in [("--save=quick", "0"), ("--save=slow", "0.05")] {
        let words = ["trace", "-q", "--observer", "bpf", "--requests", name, "--"];
        let traced = history.run(&[&words[..], &["python3", "-c", ASKS, seconds]].concat());
        assert!(traced.status.success(), "{traced:?}");
    }
    let text = history.says(&["diff", "--json", "-", "quick", "slow"]);
    let record: serde_json::Value = serde_json::from_str(&text).unwrap();
    for (role, part) in [("served", "other_mean_ns"), ("asked", "peer_mean_ns")] {
        for measure in ["requests", "unanswered"] {
            assert_eq!(of_requests(&record, role, measure), 0.0, "{role}: {measure}");
        }
        for measure in ["mean_ns", "wall_p50_ns", "wall_p99_ns", part] {
            assert!(of_requests(&record, role, measure) > 0.0, "{role}: {measure}: {text}");
        }
    }
    assert_eq!(record["left_out"], serde_json::json!([]));
    let has = |text: &str, words: &[&str]| {
        text.lines().any(|line| words.iter().all(|word| line.contains(word)))
    };
    for words in [&["diff", "1", "2"][..], &["history", "diff", "1", "2"]] {
        let text = history.says(words);
        assert!(has(&text, &["requests, by difference of time"]), "{text}");
        assert!(has(&text, &["tcp 127.0.0.1", "served", " 10 "]), "{text}");
        assert!(has(&text, &["tcp 127.0.0.1", "served", " other "]), "{text}");
        assert!(has(&text, &["tcp 127.0.0.1", "asked", " upstream "]), "{text}");
    }
    assert!(has(&history.says(&["diff", "--markdown", "1", "2"]), &["| served |", "| other |"]));
    let csv = history.says(&["diff", "--csv", "1", "2"]);
    assert!(has(&csv, &["requests,python3,tcp 127.0.0.1", ",served,differs,,other_mean_ns,"]));
    // Of a run without it, no requests are known.
    let plain = ["trace", "-q", "--save=plain", "--", "python3", "-c", ASKS, "0"];
    assert!(history.run(&plain).status.success());
    let text = history.says(&["diff", "slow", "plain"]);
    let why = "requests are not compared: B was traced without timing requests (--requests)";
    assert!(text.contains(why), "{text}");
    assert!(!has(&text, &["requests, by difference of time"]), "{text}");
}

#[test]
fn what_cannot_be_compared_is_named() {
    let folder = tempfile::tempdir().unwrap();
    dd("auto", folder.path(), "a.json", 10);
    let examples = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/examples/dd-and-cat.json");
    let race = error(&diff(folder.path(), &["a.json", examples]));
    assert!(race.contains("it is iotomy.race/1, and diff compares traces and anatomies"), "{race}");
    assert!(error(&diff(folder.path(), &["a.json"])).contains("cannot compare one record"));
    assert!(
        error(&diff(folder.path(), &["a.json", "a.json", "a.json"])).contains("write -- between")
    );
    assert!(error(&diff(folder.path(), &["a.json", "none.json"])).contains("none.json"));
    assert!(error(&diff(folder.path(), &["-", "-"])).contains("standard input"));
}

#[test]
fn tables_are_written_as_csv_and_markdown() {
    let folder = tempfile::tempdir().unwrap();
    dd("auto", folder.path(), "a.json", 10);
    dd("auto", folder.path(), "b.json", 12);
    let text = |words: &[&str]| {
        String::from_utf8(diff(folder.path(), &[words, &["a.json", "b.json"]].concat()).stdout)
            .unwrap()
    };
    let csv = text(&["--csv"]);
    assert!(csv.lines().any(|line| line.starts_with("calls,dd,write,,differs,,calls,")), "{csv}");
    let width = csv.lines().next().unwrap().matches(',').count();
    assert!(csv.lines().all(|line| line.matches(',').count() >= width));
    assert!(text(&["--markdown", "--top", "100"]).contains("| write |"));
    assert_eq!(text(&["-o", "out.txt"]), "");
    assert!(
        std::fs::read_to_string(folder.path().join("out.txt")).unwrap().contains("wall time of B")
    );
}
