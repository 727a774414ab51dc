//! Races to be run, and what holds for every record of one.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::{Command, Output};

use iotomy_record::{Metric, Race, RaceVerdict, Term, TermKind};
use tempfile::TempDir;

use super::iotomy;

/// A race that is over.
pub(crate) struct Raced {
    pub(crate) output: Output,
    pub(crate) folder: TempDir,
}

/// `iotomy race` with `options`, to be run; its record goes to the folder.
pub(crate) fn racing(folder: &TempDir, options: &[&str]) -> Command {
    let mut command = iotomy(&["race", "--json"]);
    command.arg(folder.path().join("race.json")).args(options).current_dir(folder.path());
    command
}

/// Runs a race in a folder of its own.
pub(crate) fn raced(options: &[&str]) -> Raced {
    let folder = tempfile::tempdir().unwrap();
    let output = racing(&folder, options).output().unwrap();
    Raced { output, folder }
}

impl Raced {
    pub(crate) fn code(&self) -> i32 {
        self.output.status.code().unwrap_or_else(|| panic!("{}", self.output.status))
    }

    pub(crate) fn stdout(&self) -> &str {
        std::str::from_utf8(&self.output.stdout).unwrap()
    }

    pub(crate) fn stderr(&self) -> &str {
        std::str::from_utf8(&self.output.stderr).unwrap()
    }

    pub(crate) fn json(&self) -> PathBuf {
        self.folder.path().join("race.json")
    }

    /// The record of a race that was run to its end, checked.
    pub(crate) fn record(&self) -> Race {
        assert_eq!(self.code(), 0, "{}", self.stderr());
        let race = iotomy_record::store::load_race(self.json()).unwrap();
        check(&race);
        race
    }
}

/// The term of this kind and name of the wall time's attribution.
pub(crate) fn term<'a>(race: &'a Race, kind: TermKind, name: &str) -> Option<&'a Term> {
    let wall = race.attributions.iter().find(|found| found.metric == Metric::Wall)?;
    wall.terms.iter().find(|term| term.kind == kind && term.name == name)
}

/// What holds for every record of a race.
pub(crate) fn check(race: &Race) {
    assert_eq!(race.schema, "iotomy.race/1");
    let mut made: BTreeMap<&str, usize> = BTreeMap::new();
    race.order.iter().for_each(|label| *made.entry(label).or_default() += 1);
    for one in &race.contenders {
        assert_eq!(made.get(one.label.as_str()).copied().unwrap_or(0), one.runs.len());
        for run in &one.runs {
            assert!(0 < run.startup_ns && run.startup_ns <= run.wall_ns, "{run:?}");
            assert!((run.block as usize) < race.blocks.len());
        }
        assert!(one.runs.windows(2).all(|pair| pair[0].block <= pair[1].block));
        assert!(one.wall.min_ns <= one.wall.median_ns && one.wall.median_ns <= one.wall.max_ns);
    }
    for found in &race.comparisons {
        let [low, high] = found.ci95;
        assert!(found.ratio > 0.0 && found.base != found.other);
        assert!(
            (low, high) == (0.0, 0.0) || low <= found.ratio && found.ratio <= high,
            "{found:?}"
        );
        if matches!(found.verdict, RaceVerdict::Faster | RaceVerdict::Slower) {
            assert!(high < 1.0 || low > 1.0, "{found:?}");
        }
    }
    for found in &race.attributions {
        let terms: i64 = found.terms.iter().map(|term| term.delta_ns).sum();
        assert_eq!(terms + found.residual_ns, found.delta_ns, "{found:?}");
        for term in &found.terms {
            assert_eq!(term.other_ns - term.base_ns, term.delta_ns, "{term:?}");
        }
    }
}
