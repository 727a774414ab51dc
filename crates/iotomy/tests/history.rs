//! `iotomy history` and `--save`: what is kept, by whom it is asked for, and how it is found again.

use crate::support;

use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::process::Output;

use support::histories::{History, limits, names};

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// `true` traced, timed or copied: what a verb needs to make a record.
const RUNS: [&[&str]; 3] = [
    &["trace", "true"],
    &["race", "--no-trace", "-r", "2", "true"],
    &["copy", "--explain", "/proc/version", "copied"],
];

#[test]
fn a_run_that_was_saved_is_shown_as_it_was_printed_and_exported_as_it_was_written() {
    let history = History::new();
    for (at, words) in RUNS.iter().enumerate() {
        let mut words = words.to_vec();
        words.splice(1..1, ["--save=mine", "--json", "record.json"]);
        let made = history.run(&words);
        assert!(made.status.success(), "{made:?}");
        let said = stderr(&made);
        let line = format!("iotomy: kept as run {} of the history", at + 1);
        assert!(said.lines().any(|said| said == line), "{said}");
        let printed = match words[0] {
            "race" => String::from_utf8(made.stdout).unwrap(),
            _ => {
                said.lines().filter(|said| *said != line).map(|line| format!("{line}\n")).collect()
            }
        };
        assert_eq!(history.says(&["history", "show", "mine"]), printed, "{words:?}");
        let record = fs::read(history.path("record.json")).unwrap();
        assert_eq!(history.says(&["history", "export", "mine"]).as_bytes(), record);
    }
    let list = history.says(&["history", "list"]);
    for text in ["1  true", "2  true", "3  copy /proc/version copied", "trace", "race", "mine"] {
        assert!(list.contains(text), "{text}: {list}");
    }
    assert_eq!(names(&history.path("data/iotomy")), ["history.db"]);
}

#[test]
fn nothing_is_kept_unless_it_is_asked_for() {
    let history = History::new();
    for words in RUNS {
        assert!(history.run(words).status.success());
    }
    assert!(!history.path("data").exists());
    assert_eq!(
        history.says(&["history", "list"]),
        "the history is empty; keep a run with --save\n"
    );
    assert!(history.refuses(&["history", "show", "1"]).contains("there is no history /"));
}

#[test]
fn the_configuration_or_the_environment_keeps_every_run() {
    let history = History::new();
    history.configure("history.always = true\n");
    for words in RUNS {
        let made = history.run(words);
        assert!(made.status.success() && !stderr(&made).contains("kept"), "{made:?}");
    }
    // To look for a configuration takes a small copy too long.
    assert!(history.run(&["copy", "/proc/version", "copied"]).status.success());
    let list = history.says(&["history", "list"]);
    assert_eq!(list.matches(" 1").count().min(1) + list.lines().count(), 1 + 4, "{list}");
    let mut never = history.command(RUNS[1]);
    assert!(never.env("IOTOMY_HISTORY", "never").status().unwrap().success());
    assert_eq!(history.says(&["history", "list"]), list);
    fs::remove_file(history.path("config/iotomy/config.toml")).unwrap();
    let mut always = history.command(RUNS[1]);
    assert!(always.env("IOTOMY_HISTORY", "always").status().unwrap().success());
    assert_ne!(history.says(&["history", "list"]), list);
}

#[test]
fn a_configuration_that_cannot_be_followed_is_told_and_nothing_is_run() {
    let history = History::new();
    history.configure("[history]\nalway = true\n");
    let run = history.run(&["trace", "sh", "-c", "exit 7"]);
    assert_eq!(run.status.code(), Some(2), "{run:?}");
    let said = stderr(&run);
    assert!(said.contains("config.toml: line 2: history has no option \"alway\""), "{said}");
    history.configure("");
    let mut odd = history.command(RUNS[1]);
    let odd = odd.env("IOTOMY_HISTORY", "sometimes").output().unwrap();
    assert!(odd.status.success() && stderr(&odd).contains("expected always or never"), "{odd:?}");
    assert!(!history.path("data").exists());
}

#[test]
fn names_numbers_and_the_last_lead_to_runs_and_rm_forgets_them() {
    let history = History::new();
    for day in 0..5 {
        history.keep(day, 80.0 + f64::from(day), (day < 2).then_some("old"));
    }
    let shown = |run: &str| history.says(&["history", "show", run]);
    assert_eq!(shown("old"), shown("2"));
    assert_eq!(shown("last"), shown("5"));
    history.says(&["history", "name", "3", "main"]);
    assert_eq!(shown("main"), shown("3"));
    history.says(&["history", "name", "3"]);
    assert!(history.refuses(&["history", "show", "main"]).contains("no run \"main\""));
    assert!(history.refuses(&["history", "rm", "1", "nobody"]).contains("no run \"nobody\""));
    history.says(&["history", "rm", "1", "last"]);
    let list = history.says(&["history", "list"]);
    assert_eq!(list.lines().count(), 1 + 3, "{list}");
    let last = history.says(&["history", "list", "--last", "1"]);
    assert!(last.contains("2 runs kept before these not shown (--last 0)"), "{last}");
    assert_eq!(history.says(&["history", "list", "--last", "0", "lim"]), list);
    let none = "3 runs are kept, and none of them matches\n";
    assert_eq!(history.says(&["history", "list", "--kind", "race"]), none);
    assert_eq!(history.says(&["history", "list", "zzz"]), none);
    assert_eq!(history.says(&["history", "list", "--name", "old"]).lines().count(), 1 + 1);
}

#[test]
fn the_list_last_and_names_go_by_the_order_in_which_runs_were_kept() {
    let history = History::new();
    for (day, ns) in [(9, 80.0), (3, 81.0)] {
        history.keep(day, ns, Some("main"));
    }
    let shown = |run: &str| history.says(&["history", "show", run]);
    assert!(shown("last") == shown("2") && shown("main") == shown("2") && shown("1") != shown("2"));
    let list = history.says(&["history", "list"]);
    let dates: Vec<&str> =
        list.lines().skip(1).map(|line| line.split("2026-01-").nth(1).unwrap()).collect();
    assert!(dates[0].starts_with("10 ") && dates[1].starts_with("04 "), "{list}");
    // Nowhere is that called the newest.
    for words in [
        &["history", "--help"][..],
        &["history", "list", "--help"],
        &["history", "rm", "--help"],
        &["history", "compare", "--help"],
    ] {
        let help = history.says(words);
        assert!(help.contains("kept") && !help.contains("newest"), "{help}");
    }
}

#[test]
fn hostile_names_and_commands_are_inert() {
    let history = History::new();
    let mut run = history.command(&["trace", "-q", "--save=\x1b]0;x\x07"]);
    let word = std::ffi::OsStr::from_bytes(b"\xff\x1b[2J\xe2\x80\xae<img src=x>\n");
    assert!(run.arg("true").arg(word).status().unwrap().success());
    for words in [
        &["history", "list"][..],
        &["history", "show", "1"],
        &["history", "diff", "1", "last"],
        &["history", "trend", "true"],
        &["history", "list", "--ascii"],
    ] {
        let text = history.says(words);
        assert!(!text.chars().any(|c| c.is_control() && c != '\n'), "{words:?}: {text:?}");
        assert!(!text.contains('\u{202e}'), "{text:?}");
    }
    let mut invalid = history.command(&["race", "true"]);
    let invalid = invalid.arg(std::ffi::OsStr::from_bytes(b"--save=\xff\x1b[2J")).output().unwrap();
    assert_eq!(invalid.status.code(), Some(2), "{invalid:?}");
    assert!(!stderr(&invalid).contains('\x1b'), "{invalid:?}");
    assert!(!history.refuses(&["history", "show", "\x1b[31m"]).contains('\x1b'));
    assert!(!history.refuses(&["history", "trend", "\x1b[31m"]).contains('\x1b'));
}

#[test]
fn names_that_no_run_may_have_are_refused_before_anything_is_run() {
    let history = History::new();
    for name in ["12", "last", ""] {
        let save = format!("--save={name}");
        let run = history.run(&["trace", &save, "sh", "-c", "echo ran"]);
        assert_eq!((run.status.code(), run.stdout.len()), (Some(2), 0), "{run:?}");
    }
    let unknown = history.run(&["race", "--against", "main", "--", "echo ran"]);
    assert_eq!((unknown.status.code(), unknown.stdout.len()), (Some(2), 0), "{unknown:?}");
    assert!(stderr(&unknown).contains("there is no history"), "{unknown:?}");
    history.keep(1, 80.0, Some("limits"));
    let other = history.refuses(&["race", "--against", "limits", "true"]);
    assert!(other.contains("it is a limits; name a race"), "{other}");
    let base = ["race", "--no-trace", "-q", "-r", "1", "--save=base", "true", "true 2"];
    assert!(history.run(&base).status.success());
    let strange = history.refuses(&["race", "--against", "base", "--", "echo ran > ran"]);
    assert!(
        strange.contains("cannot compare base and echo ran > ran: they have no common command"),
        "{strange}"
    );
    assert!(strange.contains("base is of true | true 2"), "{strange}");
    assert!(!history.path("ran").exists());
    // One that is there is enough, however the command is given.
    let axis =
        ["race", "--no-trace", "-q", "-r", "1", "--against", "base", "true {n}", "-L", "n=2,3"];
    assert!(history.run(&axis).status.success());
}

#[test]
fn records_of_before_are_imported_byte_by_byte_and_others_are_refused() {
    let history = History::new();
    let good = history.limits("good.json", 3, 80.0);
    fs::write(history.path("bad.json"), "{}").unwrap();
    let refused = history.refuses(&["history", "import", "good.json", "bad.json"]);
    assert!(refused.contains("nothing imported of 2 files: "), "{refused}");
    assert!(refused.contains("bad.json: not a record"), "{refused}");
    assert!(!history.path("data").exists());
    assert_eq!(history.says(&["history", "import", "good.json"]), "good.json: run 1\n");
    history.says(&["history", "export", "1", "-o", "again.json"]);
    assert_eq!(fs::read(history.path("again.json")).unwrap(), fs::read(good).unwrap());
}

#[test]
fn a_trend_shows_where_the_level_changed_and_what_changed_with_it() {
    let history = History::new();
    for day in 0..24u32 {
        let (level, kernel) = if day < 14 { (80.0, "6.1") } else { (88.0, "6.18") };
        let json = limits(day, level + f64::from(day * 7 % 5) * 0.3, kernel);
        fs::write(history.path("day.json"), json).unwrap();
        history.says(&["history", "import", "day.json"]);
    }
    let text = history.says(&["history", "trend", "limits"]);
    assert!(text.starts_with("limits · syscall · 24 runs (limits)\n"), "{text}");
    assert_eq!(text.matches("change: ").count(), 1, "{text}");
    assert!(text.contains("over 10 runs, since run 15, 2026-01-15 10:20"), "{text}");
    assert!(text.contains("kernel: Linux 6.1 → Linux 6.18"), "{text}");
    let steady = history.says(&["history", "trend", "limits", "--last", "9"]);
    assert!(steady.contains("no step change"), "{steady}");
    let unknown = history.refuses(&["history", "trend", "make"]);
    assert!(unknown.contains("no run of \"make\" is kept; known: \"limits\""), "{unknown}");
}

#[test]
fn a_comparison_says_what_differs_and_gives_no_verdict_then() {
    let history = History::new();
    for (file, ns, kernel) in [("a", 80.0, "6.1"), ("b", 96.0, "6.18")] {
        fs::write(history.path(file), limits(1, ns, kernel)).unwrap();
        history.says(&["history", "import", file, "--name", file]);
    }
    let text = history.says(&["history", "diff", "a", "b"]);
    assert!(text.contains("differs      kernel: Linux 6.1 → Linux 6.18"), "{text}");
    assert!(
        text.contains("80 ns") && text.contains("1.20") && text.contains("undecided"),
        "{text}"
    );
    assert!(text.contains("the different conditions may be the cause"), "{text}");
    assert_eq!(history.says(&["history", "compare", "--baseline", "a"]), text);
    assert!(history.refuses(&["history", "diff", "a", "c"]).contains("no run \"c\""));
}

#[test]
fn sessions_that_are_kept_tell_how_far_a_figure_may_be_off() {
    let history = History::new();
    for day in 0..6u32 {
        history.keep(day, 80.0 + f64::from(day % 3) * 0.05, Some("main"));
    }
    let check = |ns: f64| {
        history.keep(9, ns, Some("now"));
        history.run(&["history", "compare", "--baseline", "main", "--check"])
    };
    let same = check(80.05);
    let text = String::from_utf8(same.stdout).unwrap();
    assert!(same.status.success() && text.contains("no difference"), "{text}");
    assert!(text.contains("estimated from the 6 of the baseline"), "{text}");
    let slower = check(90.0);
    assert_eq!(slower.status.code(), Some(1), "{slower:?}");
    assert!(String::from_utf8(slower.stdout).unwrap().contains("slower"));
}

#[test]
fn traces_are_compared_as_by_diff() {
    let history = History::new();
    for count in ["3", "5"] {
        let mut words = vec!["trace", "-q", "--save", "--"];
        let dd = format!("count={count}");
        words.extend(["dd", "if=/dev/zero", "of=/dev/null", "status=none", &dd]);
        let traced = history.run(&words);
        assert!(traced.status.success(), "{traced:?}");
    }
    let text = history.says(&["history", "diff", "1", "2"]);
    assert!(text.contains("write") && text.contains("dd"), "{text}");
    assert_eq!(history.says(&["diff", "1", "2"]), text);
    assert_eq!(history.says(&["history", "diff", "1", "last"]), text);
    // Of two kinds, nothing is compared.
    assert!(
        history
            .run(&RUNS[1].iter().chain(&["--save=timed"]).copied().collect::<Vec<_>>())
            .status
            .success()
    );
    let other = history.refuses(&["history", "diff", "timed", "2"]);
    assert!(other.contains("iotomy.race/1"), "{other}");
}

#[test]
fn a_run_is_never_among_the_earlier_ones_of_its_name() {
    let history = History::new();
    let keep = |name: &str| {
        let save = format!("--save={name}");
        assert!(history.run(&["trace", "-q", &save, "--", "true"]).status.success());
    };
    keep("same");
    for (earlier, later) in [("same", "same"), ("same", "1")] {
        let itself = history.refuses(&["history", "diff", earlier, later]);
        assert!(itself.contains("cannot compare a run with itself: \"same\""), "{itself}");
        let itself = history.refuses(&["history", "compare", "--baseline", earlier, later]);
        assert!(itself.contains("cannot compare a run with itself: \"same\""), "{itself}");
    }
    keep("same");
    keep("same");
    let of_names = |words: &[&str]| history.says(&[&["history", "diff"], words].concat());
    let of_runs = |words: &[&str]| history.says(&[&["diff"], words].concat());
    assert_eq!(of_names(&["same", "same"]), of_runs(&["1", "2", "--", "3"]));
    assert_eq!(of_names(&["same", "2"]), of_runs(&["1", "3", "--", "2"]));
    assert_eq!(of_names(&["2", "same"]), of_runs(&["2", "3"]));
    // Nor is it one of the runs that it is judged by.
    let judged = history.says(&["history", "compare", "--baseline", "same", "same"]);
    let first = judged.lines().find(|line| line.contains("against same")).unwrap();
    assert!(first.ends_with("runs 1, 2"), "{judged}");
}

#[test]
fn a_command_that_only_one_race_has_is_left_out_and_told() {
    let history = History::new();
    for commands in [&["true", "true 2", "true 3"][..], &["true", "true 2"]] {
        let words = [&["race", "--no-trace", "-q", "-r", "2", "--save"], commands].concat();
        assert!(history.run(&words).status.success());
    }
    let there = history.says(&["history", "diff", "1", "2"]);
    assert!(there.contains("left out     true 3, only in the earlier run"), "{there}");
    let back = history.says(&["history", "diff", "2", "1"]);
    assert!(back.contains("left out     true 3, only in the later run"), "{back}");
    assert!(!there.contains("none") && !back.contains("none"), "{there}{back}");
}

#[test]
fn a_race_against_its_baseline_says_so_and_shows_the_same_again() {
    let history = History::new();
    let race = |extra: &[&str]| {
        let words = [&["race", "--no-trace", "-r", "8"], extra, &["true"]].concat();
        let output = history.run(&words);
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    race(&["--save=main"]);
    let text = race(&["--against", "main", "--save=now", "--json", "now.json"]);
    assert!(text.contains("  against main, of 20"), "{text}");
    assert!(text.contains("were not run in turn") && text.contains("8 and 8 runs"), "{text}");
    assert_eq!(history.says(&["show", "now.json"]), text);
    assert_eq!(history.says(&["history", "show", "now"]), text);
    let other = race(&["--against", "main", "--cache", "asis"]);
    assert!(other.contains("differs      caches: warm → asis"), "{other}");
    assert!(other.contains("undecided"), "{other}");
    let compared = history.says(&["history", "compare", "--baseline", "main", "now"]);
    assert!(compared.contains("against main, of ") && compared.contains("wall"), "{compared}");
}

#[test]
fn a_watched_process_is_kept_under_the_name_that_it_was_executed_by() {
    let history = History::new();
    std::os::unix::fs::symlink("/bin/sleep", history.path("napper")).unwrap();
    support::each_observer(|observer| {
        let mut napper =
            std::process::Command::new(history.path("napper")).arg("1000").spawn().unwrap();
        let pid = napper.id().to_string();
        let made =
            history.run(&["trace", "--observer", observer, "-p", &pid, "-d", "0.1", "--save"]);
        napper.kill().unwrap();
        napper.wait().unwrap();
        assert!(made.status.success(), "{made:?}");
    });
    let list = history.says(&["history", "list"]);
    assert!(list.contains("(watched) napper") && !list.contains("sleep"), "{list}");
}
