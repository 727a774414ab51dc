//! A baseline is what the user named: what is kept later changes nothing of it.

use crate::support;

use std::fs;
use std::process::Output;

use support::histories::History;

/// Races `./work`, which sleeps for so long.
fn race(history: &History, seconds: &str, options: &[&str]) -> Output {
    fs::write(history.path("seconds"), seconds).unwrap();
    let words =
        [&["race", "--no-trace", "-r", "4", "-w", "0"][..], options, &["sh ./work"]].concat();
    history.run(&words)
}

fn history() -> History {
    let history = History::new();
    fs::write(history.path("work"), "exec sleep $(cat seconds)\n").unwrap();
    history
}

/// The record of a run with all its times so many times as long, made on a later day; to be imported.
fn again(history: &History, run: &str, times: u64, day: u32) -> Vec<u8> {
    scaled(&history.says(&["history", "export", run]), times as f64, 2199, day)
}

/// A record with all its times so many times as long, made on a day of a year.
fn scaled(record: &str, times: f64, year: u32, day: u32) -> Vec<u8> {
    let mut record: serde_json::Value = serde_json::from_str(record).unwrap();
    record["started"] = format!("{year}-03-{:02}T10:00:00Z", day % 28 + 1).into();
    let scale = |value: &mut serde_json::Value| {
        if let Some(ns) = value.as_u64() {
            *value = ((ns as f64 * times).round() as u64).into();
        } else if let Some(ns) = value.as_f64() {
            *value = (ns * times).into();
        }
    };
    for one in record["contenders"].as_array_mut().unwrap() {
        one["runs"].as_array_mut().unwrap().iter_mut().for_each(|run| scale(&mut run["wall_ns"]));
        for key in ["median_ns", "min_ns", "max_ns", "mean_ns"] {
            scale(&mut one["wall"][key]);
        }
    }
    serde_json::to_vec(&record).unwrap()
}

#[test]
fn a_regression_that_is_kept_stays_one() {
    let history = history();
    // A hundredth of a time that is a hundredth of a second at least: what is raced below takes longer on any machine.
    assert!(race(&history, "0.01", &["-q", "--json", "main.json"]).status.success());
    let record = fs::read_to_string(history.path("main.json")).unwrap();
    for day in 0..3 {
        fs::write(history.path("main.json"), scaled(&record, 0.01, 2001, day)).unwrap();
        history.says(&["history", "import", "main.json", "--name", "main"]);
    }
    let is_slower = |made: Output| {
        let text = String::from_utf8(made.stdout).unwrap();
        assert_eq!(made.status.code(), Some(1), "{text}");
        let wall =
            text.lines().find(|line| line.starts_with("  wall") && line.contains(" … ")).unwrap();
        assert!(wall.contains("slower"), "{text}");
    };
    let bad = ["--against", "main", "--check", "--save=bad"];
    is_slower(race(&history, "0.1", &bad));
    for day in 0..5 {
        fs::write(history.path("bad.json"), again(&history, "bad", 1, day)).unwrap();
        history.says(&["history", "import", "bad.json", "--name", "bad"]);
        is_slower(history.run(&["history", "compare", "--baseline", "main", "--check"]));
    }
    let trend = history.says(&["history", "trend", "sh ./work"]);
    assert_eq!(trend.matches("change: ").count(), 1, "{trend}");
    assert!(trend.contains("over 6 runs, since run 4,"), "{trend}");
    is_slower(race(&history, "0.1", &bad));
}

#[test]
fn nothing_that_is_kept_later_changes_a_comparison() {
    let history = history();
    for name in ["--save=main", "--save=now"] {
        assert!(race(&history, "0.02", &["-q", name]).status.success());
    }
    let compare = || history.says(&["history", "compare", "--baseline", "main", "now"]);
    let before = compare();
    for day in 0..30 {
        fs::write(history.path("bad.json"), again(&history, "2", 47, day)).unwrap();
        let name: &[&str] = if day % 2 == 0 { &["--name", "bad"] } else { &[] };
        history.says(&[&["history", "import", "bad.json"], name].concat());
    }
    assert_eq!(compare(), before);
    let bad = history.run(&["history", "compare", "--baseline", "main", "--check", "last"]);
    let text = String::from_utf8(bad.stdout).unwrap();
    assert_eq!(bad.status.code(), Some(1), "{text}");
    let wall =
        text.lines().find(|line| line.starts_with("  wall") && line.contains(" … ")).unwrap();
    assert!(wall.contains("slower"), "{text}");
}

#[test]
fn all_runs_of_a_name_are_the_baseline_and_a_run_is_not_its_own() {
    let history = History::new();
    for (day, ns) in [(1, 80.0), (2, 80.2), (3, 80.1), (4, 95.0)] {
        history.keep(day, ns, Some("main"));
    }
    let slower = history.run(&["history", "compare", "--baseline", "main", "--check", "4"]);
    let text = String::from_utf8(slower.stdout).unwrap();
    assert_eq!(slower.status.code(), Some(1), "{text}");
    assert!(text.contains("3 sessions: runs 1, 2, 3"), "{text}");
    // Without its name, a run is in no baseline.
    history.says(&["history", "name", "2"]);
    let two = history.says(&["history", "compare", "--baseline", "main", "4"]);
    assert!(two.contains("2 sessions: runs 1, 3") && two.contains("undecided"), "{two}");
    assert!(two.contains("to decide  a baseline of at least 3 sessions"), "{two}");
}

#[test]
fn a_run_is_no_baseline_of_its_own() {
    let history = History::new();
    history.keep(1, 80.0, Some("main"));
    for words in [["1", "1"], ["main", "1"], ["last", "main"], ["1", "last"]] {
        let [baseline, run] = words;
        let error =
            history.refuses(&["history", "compare", "--baseline", baseline, "--check", run]);
        assert!(error.contains("cannot compare a run with itself"), "{error}");
    }
    // Nothing is judged by looking at it.
    history.says(&["history", "diff", "1", "main"]);
}

#[test]
fn a_baseline_that_is_gone_or_of_another_machine_is_an_error_before_anything_is_run() {
    let history = history();
    assert!(race(&history, "0", &["-q", "--save=main"]).status.success());
    let same = race(&history, "0", &["--against", "main", "--save=main"]);
    let error = String::from_utf8(same.stderr).unwrap();
    assert_eq!(same.status.code(), Some(2), "{error}");
    assert!(error.contains("would become part of its own baseline"), "{error}");
    let json = history.says(&["history", "export", "main"]);
    let mut record: serde_json::Value = serde_json::from_str(&json).unwrap();
    record["machine"]["cpu"] = "another".into();
    fs::write(history.path("elsewhere.json"), serde_json::to_vec(&record).unwrap()).unwrap();
    history.says(&["history", "import", "elsewhere.json", "--name", "elsewhere"]);
    for words in [
        &["race", "--against", "elsewhere", "sh ./work"][..],
        &["race", "--against", "2", "sh ./work"],
        &["history", "compare", "--baseline", "elsewhere", "1"],
    ] {
        let error = history.refuses(words);
        assert!(error.contains("it is from another machine"), "{error}");
    }
    assert!(history.says(&["history", "diff", "elsewhere", "main"]).contains("cpu: another"));
    history.says(&["history", "rm", "main"]);
    let error = history.refuses(&["race", "--against", "main", "sh ./work"]);
    assert!(error.contains("there is no baseline \"main\""), "{error}");
}

#[test]
fn a_check_that_can_judge_nothing_is_an_error_and_not_a_pass() {
    let history = History::new();
    for (day, ns, name) in [(1, 80.0, "main"), (2, 800.0, "now")] {
        history.keep(day, ns, Some(name));
    }
    let race = |words: &[&str], end: &[&str]| {
        history.run(&[&["race", "--no-trace", "-w", "0", "-r", "1"], words, end].concat())
    };
    assert!(race(&["--save=once"], &["true"]).status.success());
    assert!(race(&["--save=pair"], &["true", "true 2"]).status.success());
    let compare = ["history", "compare", "--baseline", "main", "now"];
    let once = |words: &[&str]| race(&[&["--against", "once"], words].concat(), &["true"]);
    // Without a call, a command is another one: with two on a side there is nothing to compare.
    let without = |words: &[&str]| {
        let words = [&["--against", "pair", "--deny", "getppid"], words].concat();
        race(&words, &["true", "true 2"])
    };
    for (unchecked, checked, says) in [
        (
            history.run(&compare),
            history.run(&[&compare[..], &["--check"]].concat()),
            "too few measurements",
        ),
        (once(&[]), once(&["--check"]), "too few measurements"),
        (without(&[]), without(&["--check"]), "no common measure"),
    ] {
        assert!(unchecked.status.success(), "{unchecked:?}");
        let error = String::from_utf8_lossy(&checked.stderr);
        assert_eq!(checked.status.code(), Some(2), "{error}");
        assert!(error.contains(says) && !checked.stdout.is_empty(), "{error}");
    }
}

#[test]
fn a_check_under_other_conditions_is_an_error_and_not_a_pass() {
    let history = history();
    assert!(race(&history, "0", &["-q", "--save=main"]).status.success());
    let options = ["--against", "main", "--check", "--output", "null", "--save=now"];
    let other = race(&history, "0", &options);
    let error = String::from_utf8(other.stderr).unwrap();
    assert_eq!(other.status.code(), Some(2), "{error}");
    assert!(error.contains("not measured under the same conditions (output to)"), "{error}");
    assert!(String::from_utf8(other.stdout).unwrap().contains("against main"));
    let error = history.run(&["history", "compare", "--baseline", "main", "--check", "now"]);
    assert_eq!(error.status.code(), Some(2), "{error:?}");
    assert!(!race(&history, "0", &["--check"]).status.success());
}
