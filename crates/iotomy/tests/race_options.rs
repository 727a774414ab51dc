//! The options of a race, each seen to do what it says.

use crate::support;

use std::fs;

use iotomy_record::{Exit, Metric, Race};
use support::races::{FinishedRace, raced, racing};
use support::{Need, doubled_until, skip};

fn quick(options: &[&str]) -> FinishedRace {
    raced(&[&["--no-trace"], options].concat())
}

fn lines(raced: &FinishedRace, name: &str) -> usize {
    fs::read_to_string(raced.folder.path().join(name)).unwrap_or_default().lines().count()
}

#[test]
fn warm_ups_come_before_the_timed_runs_and_are_not_counted() {
    for (options, runs) in [(&["-w", "3"][..], 5), (&[], 3), (&["--cache", "asis"], 2)] {
        let raced = quick(&[options, &["-r", "2", "sh -c 'echo x >> log'"]].concat());
        assert_eq!(raced.record().commands[0].runs.len(), 2);
        assert_eq!(lines(&raced, "log"), runs, "{options:?}");
    }
}

#[test]
fn scripts_run_before_each_run_once_first_and_once_last() {
    let scripts = [
        "--setup",
        "echo setup >> log",
        "--prepare",
        "echo prepare >> log",
        "--cleanup",
        "echo cleanup >> log",
    ];
    let raced = quick(&[&scripts[..], &["-w", "1", "-r", "2", "sh -c 'echo run >> log'"]].concat());
    raced.record();
    let log = fs::read_to_string(raced.folder.path().join("log")).unwrap();
    let words: Vec<&str> = log.lines().collect();
    let one = ["prepare", "run"];
    assert_eq!(words, [&["setup"][..], &one, &one, &one, &["cleanup"]].concat());
}

#[test]
fn a_failed_clean_up_costs_no_result() {
    let raced = quick(&["-r", "2", "--cleanup", "echo no good >&2; exit 9", "true"]);
    assert_eq!(raced.code(), 2);
    assert!(raced.stdout().contains("A takes"), "{}", raced.stdout());
    assert!(raced.stderr().ends_with("exit status 9\n  | no good\n"), "{}", raced.stderr());
    assert!(iotomy_record::store::load_race(raced.json()).is_ok());
}

#[test]
fn what_cannot_be_meant_is_refused_with_what_can() {
    for (options, says) in [
        (&["--min-effect", "5", "true"][..], "5 means 500 %; for 5 % write 5%"),
        (&["--min-effect", "1.5", "true"], "1.5 means 150 %; for 1.5 % write 1.5%"),
        (&["--min-effect", "-1%", "true"], "expected 0% or more, and less than 100%"),
        (&["--deny", "B:splice", "true"], "unknown command B; there is only A"),
        (&["--deny", "C:splice", "true", "true"], "unknown command C; they are A to B"),
        (&["-L", "n=1,2", "echo {m}"], "no command has the placeholder {n}"),
        (&["-L", "n", "echo {n}"], "invalid sweep: expected the form name=value,value"),
        (&["--user-stacks", "true", "true"], "cannot be used with '--user-stacks'"),
    ] {
        let raced = quick(options);
        assert_eq!(raced.code(), 2);
        assert!(raced.stderr().contains(says), "{}", raced.stderr());
    }
    let raced = raced(&["--user-stacks", "touch ran", "touch ran"]);
    assert_eq!(raced.code(), 2);
    let stderr = raced.stderr();
    assert!(stderr.contains("were not provided:\n  --flame <FILE>"), "{stderr}");
    assert!(!raced.folder.path().join("ran").exists());
}

#[test]
fn the_clean_up_is_run_after_a_failure_too() {
    let raced = quick(&["--cleanup", "echo x > cleaned", "false"]);
    assert_eq!(raced.code(), 2);
    assert_eq!(lines(&raced, "cleaned"), 1);
    for option in ["--setup", "--prepare", "--cleanup"] {
        let raced = quick(&[option, "echo no good >&2; exit 9", "true", "-r", "2"]);
        assert_eq!(raced.code(), 2);
        assert!(raced.stderr().contains(&format!("iotomy: {option}")), "{}", raced.stderr());
        assert!(raced.stderr().contains("exit status 9\n  | no good\n"), "{}", raced.stderr());
    }
}

#[test]
fn a_failure_stops_the_race_with_what_was_said_unless_it_is_ignored() {
    let raced = quick(&["true", "sh -c 'echo out of luck >&2; exit 7'"]);
    assert_eq!(raced.code(), 2);
    assert!(raced.stderr().starts_with("iotomy: B (sh -c "), "{}", raced.stderr());
    assert!(raced.stderr().contains("exit status 7"), "{}", raced.stderr());
    assert!(raced.stderr().ends_with("\n  | out of luck\n"), "{}", raced.stderr());
    assert!(!raced.json().exists() && raced.stdout().is_empty());

    let raced = quick(&["true", "sh -c 'kill -9 $$'", "-i", "-r", "4"]);
    let race = raced.record();
    assert_eq!((race.commands[0].failures, race.commands[1].failures), (0, 4));
    assert!(race.commands[1].runs.iter().all(|run| run.exit == Exit::Signal(9)));
    assert!(race.findings.iter().any(|finding| finding.id == "failures"));
    assert!(raced.stdout().contains("4 failed runs"), "{}", raced.stdout());
}

#[test]
fn output_goes_where_it_is_sent() {
    for (place, bytes) in [("pipe", Some(6)), ("file", Some(6)), ("null", None)] {
        let race = quick(&["--output", place, "-r", "2", "echo hello"]).record();
        assert!(race.commands[0].runs.iter().all(|run| run.output_bytes == bytes), "{place}");
        assert_eq!(race.plan.output, place);
    }
    let to_file = quick(&["--output", "./out", "-r", "3", "echo hello"]);
    to_file.record();
    assert_eq!(fs::read_to_string(to_file.folder.path().join("out")).unwrap(), "hello\n");
    let inherited = quick(&["--output", "inherit", "-w", "1", "-r", "2", "echo hello"]);
    assert_eq!(inherited.stdout().matches("hello\n").count(), 3);
    // More than a pipe holds, on both streams.
    let loud =
        quick(&["-r", "2", "sh -c 'head -c 500000 /dev/zero; head -c 500000 /dev/zero >&2'"]);
    assert_eq!(loud.record().commands[0].runs[0].output_bytes, Some(500_000));
}

#[test]
fn commands_read_nothing() {
    assert_eq!(quick(&["-r", "2", "cat"]).record().commands[0].runs[0].output_bytes, Some(0));
}

#[test]
fn different_amounts_of_output_are_pointed_out() {
    let is_said = |a: &str, b: &str| {
        let race = quick(&["-r", "2", a, b]).record();
        race.findings.iter().any(|finding| finding.id == "different-output")
    };
    assert!(is_said("head -c 5000 /dev/zero", "head -c 6000 /dev/zero"));
    // Neither is a line that tells the time.
    assert!(!is_said("head -c 5000 /dev/zero", "head -c 5001 /dev/zero"));
    // A count in other words is the same work.
    assert!(!is_said("echo a", "echo bb"));
}

#[test]
fn placeholders_make_a_command_a_value() {
    let race = quick(&["-r", "2", "-L", "n=1,22,333", "echo {n} {} {x}"]).record();
    let commands: Vec<&str> = race.commands.iter().map(|one| one.command.as_str()).collect();
    assert_eq!(commands, ["echo 1 {} {x}", "echo 22 {} {x}", "echo 333 {} {x}"]);
    let bytes: Vec<_> = race.commands.iter().map(|one| one.runs[0].output_bytes).collect();
    assert_eq!(bytes, [Some(9), Some(10), Some(11)]);
    assert_eq!(race.commands[1].parameters["n"], "22");
    let race =
        quick(&["-r", "2", "-L", "n=1,2", "-L", "m=a,b", "echo {n}{m}", "true {n}"]).record();
    assert_eq!(race.commands.len(), 8);
    let pairs: Vec<_> = race
        .comparisons
        .iter()
        .filter(|found| found.metric == Metric::Wall)
        .map(|found| format!("{}{}", found.base, found.other))
        .collect();
    assert_eq!(pairs, ["AB", "CD", "EF", "GH"]);
    let many: Vec<String> = (0..30).map(|n| n.to_string()).collect();
    let raced = quick(&["-L", &format!("n={}", many.join(",")), "true {n}"]);
    assert!(raced.stderr().contains("30 commands exceed 26"), "{}", raced.stderr());
}

#[test]
fn caches_are_dropped_before_each_run() {
    // On the disk, if the build is on one: what is only in memory cannot leave it.
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let data = folder.path().join("data");
    fs::write(&data, vec![7; 1 << 20]).unwrap();
    fs::File::open(&data).unwrap().sync_all().unwrap();
    if !support::has("fincore") {
        return;
    }
    let resident = || {
        let output = support::bare("fincore", &["-nbo", "RES"]).arg(&data).output().unwrap();
        String::from_utf8(output.stdout).unwrap().trim().parse::<u64>().unwrap()
    };
    let dropped = support::bare("dd", &["iflag=nocache", "count=0", "status=none"])
        .arg(format!("if={}", data.display()))
        .status();
    assert!(dropped.unwrap().success());
    if resident() != 0 {
        return skip(Need::Machine, "files cannot leave memory here");
    }
    // How much of it each run found in memory, before the run read all of it.
    let found = |options: &[&str]| {
        let _ = fs::remove_file(folder.path().join("log"));
        let run = "fincore -nbo RES data >> log; cat data > /dev/null";
        let words = [&["--no-trace", "-r", "3"], options, &[run]].concat();
        let output = racing(&folder, &words).output().unwrap();
        let log = fs::read_to_string(folder.path().join("log")).unwrap_or_default();
        (
            output,
            log.split_whitespace().map(|word| word.parse::<u64>().unwrap()).collect::<Vec<_>>(),
        )
    };
    let (output, cold) = found(&["--cache", "cold"]);
    assert!(output.status.success(), "{output:?}");
    assert_eq!(cold, [0; 3]);
    let race = iotomy_record::store::load_race(folder.path().join("race.json")).unwrap();
    assert_eq!((race.plan.cache.as_str(), race.plan.warmup), ("cold", 0));
    // Without it, it is there from the second run on, as far as the machine has memory.
    let (_, asis) = found(&["--cache", "asis"]);
    assert!(asis.len() == 3 && asis[1..].iter().any(|bytes| *bytes > 0), "{asis:?}");
    if support::root() {
        let (output, dropped) = found(&["--drop-caches", "-w", "0"]);
        let stderr = String::from_utf8_lossy(&output.stderr);
        // A container may keep its root from it: then that is said.
        match output.status.success() {
            true => assert_eq!(dropped, [0; 3]),
            false => assert!(stderr.contains("--drop-caches"), "{stderr}"),
        }
    }
}

#[test]
fn the_least_effect_decides_what_is_no_difference() {
    let race = quick(&["--min-effect", "80%", "sleep 0.02", "sleep 0.021"]).record();
    assert_eq!(race.plan.min_effect, 0.8);
    let found = &race.comparisons[0];
    assert!(found.runs <= 128, "{found:?}");
}

#[test]
fn the_machine_is_watched_and_blocks_can_be_redone() {
    let race = quick(&["-r", "4", "--redo", "3", "sleep 0.05", "sleep 0.05"]).record();
    let redone = race.rounds.iter().filter(|round| round.redone).count();
    assert!(redone <= 3 && race.rounds.len() == 2 + redone);
    assert!(race.rounds.iter().all(|round| !round.redone || !round.disturbed.is_empty()));
    assert!(race.rounds.iter().all(|round| round.state.wall_ns > 150_000_000));
    assert!(race.rounds.iter().all(|round| round.state.dirty_bytes.is_some()));
    assert_eq!(race.comparisons[0].runs, 4);
}

#[test]
fn a_race_ends_in_time_with_what_it_has() {
    let runs = |race: &Race| race.commands[0].runs.len();
    let of_seconds = |seconds: u32| {
        let time = seconds.to_string();
        let race = quick(&["--max-time", &time, "-w", "0", "sleep 0.1", "sleep 0.1"]).record();
        assert_eq!(race.plan.max_time_ns, Some(u64::from(seconds) * 1_000_000_000));
        // No pair takes less than 0.2 s; one may have begun when the time was up.
        assert!(runs(&race) <= 5 * seconds as usize + 2, "{seconds} s: {}", runs(&race));
        race
    };
    doubled_until(2, |race: &Race| runs(race) >= 2, of_seconds);
}

#[test]
fn a_flame_graph_that_cannot_be_sampled_is_refused_before_anything_is_run() {
    if !support::root() || !support::has("setpriv") {
        return;
    }
    let folder = support::for_everyone();
    let words = ["race", "--flame", "x.svg", "-r", "1", "echo A > ran", "echo B > ran"];
    let output = support::as_nobody(folder.path()).args(words).output().unwrap();
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{stderr}");
    assert!(stderr.starts_with("iotomy: cannot draw --flame: "), "{stderr}");
    assert!(
        stderr.contains("; anatomy needs the bpf observer") && stderr.lines().count() == 1,
        "{stderr}"
    );
    assert!(!folder.path().join("ran").exists() && !folder.path().join("x.svg").exists());
}
