//! The example of docs/race.md: it is what iotomy prints, and what it prints today.

use crate::support;

use std::fs;
use std::path::PathBuf;

use support::races::racing;
use support::{bpf, has, iotomy};

/// The example's command line, and what stands under it.
fn example() -> (String, String) {
    let text = include_str!("../../../docs/race.md");
    let block = text.split("```").find(|block| block.contains("\n$ iotomy race --json ")).unwrap();
    let (command, report) = block.trim_start().split_once('\n').unwrap();
    (command.to_owned(), report.to_owned())
}

fn kept() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs/examples/dd-and-cat.json")
}

#[test]
fn the_example_is_what_is_printed_of_the_record_that_was_kept() {
    let shown = iotomy(&["show", kept().to_str().unwrap()]).output().unwrap();
    assert!(shown.status.success(), "{shown:?}");
    assert_eq!(example().1, String::from_utf8(shown.stdout).unwrap());
    let race = iotomy_record::store::load_race(kept()).unwrap();
    support::races::check(&race);
    let commands = race.commands.iter().map(|one| format!(" '{}'", one.command));
    assert!(example().0.ends_with(&commands.collect::<String>()), "{}", example().0);
}

#[test]
fn the_examples_race_has_the_same_parts_here() {
    if !bpf() || !has("dd") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("file"), vec![7; 4 << 20]).unwrap();
    let race = iotomy_record::store::load_race(kept()).unwrap();
    let commands: Vec<&str> = race.commands.iter().map(|one| one.command.as_str()).collect();
    // With too few runs to decide, all there is is shown, whichever is faster here.
    let output = racing(&folder, &[&["-r", "2"], &commands[..]].concat()).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let found = String::from_utf8(output.stdout).unwrap();
    let squeezed =
        |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>().join(" ");
    let parts = [
        "pairs in random order",
        "min max CPU",
        "ms ms ms ms",
        "A dd if=file of=copy bs=8192",
        "B cat file > copy",
        "under sh, whose start-up is",
        "A B Δ ms share calls calls",
        "residual",
        "difference",
        "the traced runs took",
        "of CPU time",
        "caches warm · output to pipe · 1 warm-up of each · traced by bpf: overhead",
    ];
    for part in parts {
        assert!(squeezed(&example().1).contains(part), "the example has no {part:?}");
        assert!(squeezed(&found).contains(part), "no {part:?} in {found}");
    }
}
