//! A race that is interrupted keeps the runs it has made.

use crate::support;

use std::fs;
use std::process::Stdio;

use iotomy_record::{Race, RaceVerdict};
use nix::sys::signal::Signal;
use support::histories::History;
use support::{send, until, until_ended};
use tempfile::TempDir;

/// A command that runs so often, over all that share the folder, and hangs from then on.
fn hanging_after(runs: u32) -> String {
    format!(
        "echo x >> runs; test $(wc -l < runs) -le {runs} || {{ echo $$ > hanging; exec sleep 1000; }}"
    )
}

/// Interrupts a race of such commands once they hang; what it printed, and its record.
fn interrupted(
    options: &[&str],
    commands: usize,
    runs: u32,
    signal: Signal,
) -> (String, Race, TempDir) {
    let history = History::new();
    let command = hanging_after(runs);
    let always =
        ["race", "--no-trace", "-w", "0", "--cache", "asis", "--json", "race.json", "--save=cut"];
    let commands = vec![command.as_str(); commands];
    let words = [&always[..], options, &commands].concat();
    let mut race = history.command(&words);
    let race = race.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let hanging = until("a run hangs", || {
        fs::read_to_string(history.path("hanging")).ok()?.trim().parse().ok()
    });
    send(race.id(), signal);
    let output = race.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(128 + signal as i32), "{output:?}");
    until_ended(hanging);
    let text = String::from_utf8(output.stdout).unwrap();
    let record = iotomy_record::store::load_race(history.path("race.json")).unwrap();
    assert_eq!(history.says(&["history", "show", "cut"]), text);
    (text, record, history.folder)
}

#[test]
fn what_was_made_is_printed_compared_and_kept() {
    for (signal, name) in [(Signal::SIGINT, "SIGINT"), (Signal::SIGTERM, "SIGTERM")] {
        let options = ["-r", "20", "--cleanup", "echo x > cleaned"];
        let (text, record, folder) = interrupted(&options, 2, 12, signal);
        assert!(text.contains(&format!("interrupted by {name}")), "{text}");
        assert!(text.contains("6 of 20 runs of each"), "{text}");
        assert_eq!(record.interrupted, Some(signal as u32));
        assert!(record.commands.iter().all(|one| one.runs.len() == 6 && one.wall.runs == 6));
        let wall = &record.comparisons[0];
        assert_eq!((wall.runs, wall.ci95 == [0.0, 0.0]), (6, false), "{wall:?}");
        assert!(folder.path().join("cleaned").exists());
    }
}

#[test]
fn runs_of_a_block_that_was_cut_short_are_kept_and_count_as_far_as_they_are_pairs() {
    let (text, record, _folder) = interrupted(&[], 2, 7, Signal::SIGINT);
    let made: Vec<usize> = record.commands.iter().map(|one| one.runs.len()).collect();
    assert_eq!((made.iter().sum::<usize>(), record.order.len()), (7, 7), "{text}");
    assert_eq!(record.comparisons[0].runs, 3);
    assert_eq!(record.comparisons[0].verdict, RaceVerdict::Undecided);
    assert!(text.contains("3 runs of each"), "{text}");
}

#[test]
fn one_command_alone_keeps_its_runs_too_and_says_why_it_is_not_traced() {
    let (text, record, _folder) = interrupted(&["-r", "9"], 1, 5, Signal::SIGINT);
    assert_eq!((record.commands[0].runs.len(), record.interrupted), (5, Some(2)), "{text}");
    assert!(record.commands[0].trace.is_none());
}

#[test]
fn where_a_command_has_not_run_yet_there_is_nothing_to_keep() {
    let history = History::new();
    let command = hanging_after(1);
    let words = [
        "race",
        "--no-trace",
        "-w",
        "0",
        "--cache",
        "asis",
        "--json",
        "race.json",
        &command,
        &command,
    ];
    let mut race = history.command(&words);
    let race = race.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    until("a run hangs", || history.path("hanging").exists().then_some(()));
    send(race.id(), Signal::SIGINT);
    let output = race.wait_with_output().unwrap();
    assert_eq!((output.status.code(), output.stdout.len()), (Some(130), 0), "{output:?}");
    assert!(!history.path("race.json").exists());
}

/// From the second run on: while it runs, while the race gets ready to trace, while it traces.
#[test]
fn an_interrupt_at_any_moment_after_the_first_run_keeps_what_was_made() {
    let mut interrupted = 0;
    for moment in 0..12 {
        let history = History::new();
        let command = "echo x >> runs; exec sleep 0.02";
        let words =
            ["race", "-r", "2", "-w", "0", "--cache", "asis", "--json", "race.json", command];
        let mut race = history.command(&words);
        let race = race.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        until("the second run began", || {
            let runs = fs::read_to_string(history.path("runs")).unwrap_or_default();
            (runs.lines().count() >= 2).then_some(())
        });
        // Whenever that is; nothing rests on it.
        std::thread::sleep(std::time::Duration::from_millis(15 * moment));
        send(race.id(), Signal::SIGINT);
        let output = race.wait_with_output().unwrap();
        if output.status.code() == Some(0) {
            // The race was over before.
            continue;
        }
        assert_eq!(output.status.code(), Some(130), "{moment}: {output:?}");
        interrupted += 1;
        let record = iotomy_record::store::load_race(history.path("race.json"));
        let record = record.unwrap_or_else(|error| panic!("{moment}: {error}: {output:?}"));
        assert_eq!(record.interrupted, Some(2));
        assert!((1..=2).contains(&record.commands[0].runs.len()), "{record:?}");
    }
    assert!(interrupted > 0, "every race was over before the signal came");
}
