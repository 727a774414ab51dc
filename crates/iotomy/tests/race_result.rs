//! What a race says, and how the record has it.

use crate::support;

use std::fs;

use iotomy_record::{Call, Comparison, Metric, Race, RaceVerdict};
use support::races::{FinishedRace, raced};
use support::{doubled_until, iotomy};

const QUICK: [&str; 3] = ["--no-trace", "-w", "0"];

fn quick(options: &[&str]) -> FinishedRace {
    raced(&[&QUICK[..], options].concat())
}

fn wall(race: &Race) -> &iotomy_record::Comparison {
    race.comparisons.iter().find(|found| found.metric == Metric::Wall).unwrap()
}

#[test]
fn who_sleeps_longer_is_slower_and_it_is_said() {
    // On a busy machine it takes sleeps that are further apart to tell.
    let is_told = |(_, race): &(FinishedRace, Race)| wall(race).verdict == RaceVerdict::Faster;
    let (raced, race) = doubled_until(1, is_told, |quarters| {
        let longer = format!("sleep {}", 0.25 * f64::from(quarters));
        let raced = quick(&["--max-time", "60", &longer, "sleep 0.01"]);
        let race = raced.record();
        (raced, race)
    });
    assert!(wall(&race).ci95[1] < 1.0);
    assert!(raced.stdout().contains("B is "), "{}", raced.stdout());
    assert!(raced.stdout().contains("× as fast as A"), "{}", raced.stdout());
    assert!(raced.stderr().is_empty(), "{}", raced.stderr());
    let walls = |race: &Race| -> Vec<Comparison> {
        let walls = race.comparisons.iter().filter(|found| found.metric == Metric::Wall);
        walls.cloned().collect()
    };
    let are_told = |race: &Race| walls(race).iter().all(|f| f.verdict == RaceVerdict::Slower);
    let race = doubled_until(1, are_told, |quarters| {
        let [second, third] = [0.0, 0.01].map(|more| 0.25 * f64::from(quarters) + more);
        let [second, third] = [second, third].map(|seconds| format!("sleep {seconds}"));
        quick(&["--max-time", "60", "sleep 0.01", &second, &third]).record()
    });
    assert_eq!(walls(&race).len(), 2);
    assert!(walls(&race).iter().all(|found| found.base == "A"));
    assert_eq!(race.plan.shared_error, Some(0.05));
    let few = quick(&["-r", "2", "true", "true", "true", "true"]);
    let stdout = few.stdout().split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(stdout.contains("try -r 5 or more"), "{stdout}");
    assert!(stdout.contains("the 3 comparisons share a false-positive rate of 5 %"), "{stdout}");
}

/// That the harness favours no side so much that every race of a command with itself is wrong: with an error of
/// 5 in 100 a race, chance makes all of six wrong once in 64 million times. How often a race is wrong, the
/// simulations of `iotomy_stats` tell.
#[test]
fn of_six_races_of_a_command_with_itself_one_is_right() {
    let is_wrong = |seed: &u32| {
        let seed = seed.to_string();
        let race = quick(&["true", "true", "--max-time", "8", "--seed", &seed]).record();
        matches!(wall(&race).verdict, RaceVerdict::Faster | RaceVerdict::Slower)
    };
    assert!((0..6).take_while(is_wrong).count() < 6);
}

#[test]
fn as_many_runs_are_made_as_asked_for_in_mirrored_order() {
    for runs in [1, 2, 5, 12, 14] {
        let race = quick(&["-r", &runs.to_string(), "true", "true", "true"]).record();
        assert!(race.commands.iter().all(|one| one.runs.len() == runs));
        for whole in race.order.chunks_exact(6) {
            assert!(whole.iter().eq(whole.iter().rev()), "{:?}", race.order);
        }
        // Two comparisons share the error, so that 4 runs, enough for one, are too few.
        let few = wall(&race).ci95 == [0.0, 0.0];
        assert_eq!(few, runs < 5, "{runs}");
    }
    let race = quick(&["-r", "4", "true", "true"]).record();
    assert_ne!(wall(&race).ci95, [0.0, 0.0]);
}

#[test]
fn a_few_runs_that_lie_far_apart_are_decided_and_fewer_say_how_many_it_takes() {
    for runs in ["4", "5", "7"] {
        // On a busy machine it takes sleeps that are further apart.
        let is_told = |race: &Race| wall(race).verdict == RaceVerdict::Slower;
        doubled_until(1, is_told, |fifths| {
            let longer = format!("sleep {}", f64::from(fifths) / 5.0);
            quick(&["-r", runs, "sleep 0.01", &longer]).record()
        });
    }
    let raced = quick(&["-r", "3", "sleep 0.01", "sleep 0.4"]);
    assert_eq!(wall(&raced.record()).verdict, RaceVerdict::Undecided);
    let stdout = raced.stdout().split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(stdout.contains("try -r 4 or more"), "{stdout}");
}

#[test]
fn a_seed_repeats_the_order() {
    let order = |seed: &str| quick(&["-r", "12", "--seed", seed, "true", "true"]).record().order;
    assert_eq!(order("7"), order("7"));
    assert_ne!(order("7"), order("8"));
}

#[test]
fn a_saved_race_is_shown_as_the_run_printed_it() {
    let few = ["-r", "2", "echo a", "echo b > f", "--output", "file"];
    for options in
        [&few[..], &["-r", "12", "--ignore-failure", "true", "false"], &["-r", "3", "true"]]
    {
        let raced = raced(options);
        raced.record();
        let shown = iotomy(&["show", raced.json().to_str().unwrap()]).output().unwrap();
        assert!(shown.status.success() && shown.stderr.is_empty(), "{shown:?}");
        assert_eq!(std::str::from_utf8(&shown.stdout).unwrap(), raced.stdout());
    }
}

#[test]
fn identical_images_are_one_entry_in_the_traces_of_a_race() {
    let command = "i=0; while [ $i -lt 20 ]; do /bin/true; i=$((i+1)); done; echo";
    let race = raced(&["-r", "1", "-w", "0", command]).record();
    let trace = race.commands[0].trace.as_ref().unwrap();
    let of_true: Vec<_> = trace.processes.iter().filter(|one| one.exec == "true").collect();
    assert_eq!((of_true.len(), of_true[0].instances), (1, 20));
    let is_row = |one: &&Call| one.exec == "true" && one.syscall == "brk";
    let rows: Vec<_> = trace.calls.iter().filter(is_row).map(|one| one.calls).collect();
    assert!(matches!(rows[..], [calls] if calls >= 20 && calls % 20 == 0), "{rows:?}");
}

#[test]
fn one_command_is_timed_and_accounted_for_alone() {
    let raced = raced(&["-r", "6", "sleep 0.01"]);
    let race = raced.record();
    assert!(race.comparisons.is_empty());
    assert_eq!(race.commands[0].runs.len(), 6);
    assert!(raced.stdout().contains("A takes "), "{}", raced.stdout());
    assert!(race.attributions.iter().all(|found| found.base == found.other));
}

#[test]
fn shell_syntax_runs_under_a_shell_and_that_is_said() {
    let raced = quick(&["-r", "2", "echo a | cat", "echo a"]);
    let race = raced.record();
    assert!(race.commands[0].shell && !race.commands[1].shell);
    assert!(race.harness.shell_startup_ns.unwrap() > 0);
    assert!(raced.stdout().contains("under sh, whose start-up is "), "{}", raced.stdout());
    assert_eq!(race.commands[0].runs[0].output_bytes, Some(2));
    assert_eq!(race.commands[1].runs[0].output_bytes, Some(2));
    assert!(quick(&["-r", "2", "echo 'a|b'"]).record().harness.shell_startup_ns.is_none());
}

#[test]
fn results_are_exported_run_by_run_and_as_a_table() {
    let options =
        ["-r", "3", "echo a,b", "echo 'c|d'", "--export-csv", "r.csv", "--export-markdown", "r.md"];
    let raced = quick(&options);
    let race = raced.record();
    let csv = fs::read_to_string(raced.folder.path().join("r.csv")).unwrap();
    assert_eq!(csv.lines().count(), 7);
    assert!(csv.starts_with("run,label,command,round,counts,wall_ns,"));
    assert!(csv.contains(",\"echo a,b\","), "{csv}");
    let first = csv.lines().nth(1).unwrap();
    let label = &race.order[0];
    let wall = race.command(label).unwrap().runs[0].wall_ns;
    assert!(
        first.starts_with(&format!("1,{label},")) && first.contains(&format!(",{wall},")),
        "{first}"
    );
    let table = fs::read_to_string(raced.folder.path().join("r.md")).unwrap();
    assert!(
        table.contains("| A | `echo a,b` |") && table.contains("| B | `echo 'c\\|d'` |"),
        "{table}"
    );
}

#[test]
fn the_record_goes_to_standard_output_alone() {
    let output =
        iotomy(&["race", "--no-trace", "-r", "2", "--json", "-", "true"]).output().unwrap();
    let race = iotomy_record::store::parse_race(&output.stdout).unwrap();
    assert_eq!(race.commands.len(), 1);
    assert!(String::from_utf8(output.stderr).unwrap().contains("A takes"));
    let output = iotomy(&["race", "--no-trace", "-r", "2", "-q", "true"]).output().unwrap();
    assert!(output.stdout.is_empty() && output.stderr.is_empty());
    let output =
        iotomy(&["race", "--no-trace", "-r", "2", "--json", "/dev/full", "true"]).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(!output.stdout.is_empty());
}

#[test]
fn a_race_is_no_trace_and_other_versions_are_refused() {
    let raced = quick(&["-r", "2", "true"]);
    let text = fs::read_to_string(raced.json()).unwrap();
    for (from, to, says) in [
        ("iotomy.race/1", "iotomy.race/2", "this iotomy reads iotomy.race/1"),
        ("\"order\"", "\"disorder\"", "missing field `order`"),
        ("\"median_ns\": ", "\"median_ns\": -", "expected 0 or more"),
    ] {
        let path = raced.folder.path().join("other.json");
        fs::write(&path, text.replacen(from, to, 1)).unwrap();
        let shown = iotomy(&["show", path.to_str().unwrap()]).output().unwrap();
        let error = String::from_utf8(shown.stderr).unwrap();
        assert_eq!(shown.status.code(), Some(2));
        assert!(error.contains(says) && error.lines().count() == 1, "{error}");
    }
}
