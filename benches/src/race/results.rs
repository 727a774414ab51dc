//! Prints the results and stores them in a directory: the tables and the raw record.

use std::fmt::Write as _;

use iotomy_record::ClaimVerdict;
use serde_json::json;

use crate::conditions::Conditions;
use crate::race::expected::ExpectedResult;
use crate::race::rounds::{Field, Lane};
use crate::race::tool::{Tool, ToolRace, Verdict, median_pairs};
use crate::record::{Case, Claim, Sweep};
use crate::results::Results;
use crate::stats::{median, wilson};
use crate::summary::word;
use crate::tables::{digits, table};

/// The results of the bench.
pub(crate) struct RaceResults {
    pub(crate) units: u64,
    pub(crate) versions: Vec<String>,
    pub(crate) lanes: Vec<Lane>,
}

/// A target and its verdict.
struct Target {
    id: &'static str,
    text: String,
    hits: usize,
    races: usize,
    verdict: ClaimVerdict,
}

/// Number of pairs within which a difference of 3 % must be found when the noise of a run is 1 %. On a machine with
/// more noise, a longer race shows nothing.
const SOON: usize = 30;
const NOISE: f64 = 0.012;

impl RaceResults {
    /// Returns the results as text and as a record.
    pub(crate) fn results(&self, conditions: &Conditions) -> Results {
        Results {
            folder: "race",
            title: "False-positive and detection rates of races",
            text: self.text(conditions),
            method: METHOD.to_owned(),
            record: self.sweep(conditions),
            is_on_one_line: true,
        }
    }

    fn text(&self, conditions: &Conditions) -> String {
        let (a, b) = (self.units, Field::MoreQuiet.other(self.units));
        let mut text = conditions.text(&[
            ("tools", self.versions.join("; ")),
            ("load", format!("{a} units of work against {a}, or {b}; a run of {a} {}", self.run())),
            (
                "order",
                format!("every tool once per round, in random order, seed {}", conditions.seed),
            ),
        ]);
        for field in Field::ALL {
            let _ = writeln!(text, "\n## {}\n", field.name());
            text += &self.field(field);
        }
        let _ = writeln!(text, "\n## Targets\n");
        text + &self.target_table()
    }

    /// Describes the duration of the load.
    fn run(&self) -> String {
        let quiet = self.lanes.iter().filter(|lane| lane.field != Field::SameNeighbour);
        let times: Vec<f64> =
            quiet.flat_map(|lane| &lane.races).flat_map(|race| race.times[0].clone()).collect();
        format!("takes {} ms", digits(median(&times).unwrap_or(0.0) / 1e6, 2))
    }

    fn field(&self, field: Field) -> String {
        let titles = [
            "tool",
            "races",
            "a difference",
            "of them [95 %]",
            "none",
            "undecided",
            "pairs, median",
            "least … most",
            "s a race",
            "ratio, median",
            "its interval",
            "noise of a run",
        ];
        let mut rows = vec![titles.map(str::to_owned).to_vec()];
        let lanes = || self.lanes.iter().filter(|lane| lane.field == field);
        for lane in lanes() {
            let is =
                |wanted: fn(&ToolRace) -> bool| lane.races.iter().filter(|r| wanted(r)).count();
            let differ = is(|race| race.verdict.is_difference());
            let pairs = || lane.races.iter().map(ToolRace::pairs);
            let of = |value: fn(&ToolRace) -> f64| {
                median(&lane.races.iter().map(value).collect::<Vec<f64>>()).unwrap_or(0.0)
            };
            let half = of(|race| (race.interval[1] - race.interval[0]) / 2.0);
            let none = is(|race| race.verdict == Verdict::Same);
            rows.push(vec![
                lane.tool.name().to_owned(),
                lane.races.len().to_string(),
                differ.to_string(),
                share(differ, lane.races.len()),
                if lane.tool.is_iotomy() { none.to_string() } else { "never said".to_owned() },
                is(|race| race.verdict == Verdict::Undecided).to_string(),
                digits(median_pairs(&lane.races), 0),
                format!("{} … {}", pairs().min().unwrap_or(0), pairs().max().unwrap_or(0)),
                digits(of(|race| race.seconds), 2),
                digits(of(|race| race.ratio), 4),
                format!("± {} %", digits(half * 100.0, 2)),
                format!("{} %", digits(of(ToolRace::noise) * 100.0, 1)),
            ]);
        }
        let mut text = table(&rows, 1);
        for lane in lanes().filter(|lane| !lane.tool.is_iotomy()) {
            let outside = lane.races.iter().filter(|race| race.outside_printed).count();
            let _ = writeln!(
                text,
                "\n{}: in {outside} of {} races 1 is outside of the ratio ± deviation that it prints.",
                lane.tool.name(),
                lane.races.len()
            );
        }
        text
    }

    /// Returns the targets for iotomy.
    fn targets(&self) -> Vec<Target> {
        let false_alarms = |id, text, field| {
            let races = self.races(field);
            let hits = races.iter().filter(|race| race.verdict.is_difference()).count();
            let verdict = ExpectedResult::FalseAlarms.judge(hits, races.len());
            Target { id, text, hits, races: races.len(), verdict }
        };
        let races = self.races(Field::MoreQuiet);
        let found = |race: &&&ToolRace| race.verdict == Verdict::Slower && race.pairs() <= SOON;
        let hits = races.iter().filter(found).count();
        let noise: Vec<f64> = races.iter().map(|race| race.noise()).collect();
        let is_noisy = median(&noise).is_some_and(|noise| noise > NOISE);
        let verdict = match ExpectedResult::Power.judge(hits, races.len()) {
            ClaimVerdict::Fails if is_noisy => ClaimVerdict::Inconclusive,
            verdict => verdict,
        };
        vec![
            false_alarms(
                "false-alarms-quiet",
                format!(
                    "a command against itself: a difference in {} of races",
                    ExpectedResult::FalseAlarms.bound()
                ),
                Field::SameQuiet,
            ),
            false_alarms(
                "false-alarms-neighbour",
                "the same with a neighbour arriving midway".to_owned(),
                Field::SameNeighbour,
            ),
            Target {
                id: ExpectedResult::POWER,
                text: format!(
                    "3 % more work: said to be slower within {SOON} pairs in {} of races, at 1 % of noise",
                    ExpectedResult::Power.percent()
                ),
                hits,
                races: races.len(),
                verdict,
            },
        ]
    }

    /// Returns iotomy's races with its default settings.
    fn races(&self, field: Field) -> Vec<&ToolRace> {
        let lane = self.lanes.iter().find(|lane| lane.field == field && lane.tool == Tool::Iotomy);
        lane.map_or_else(Vec::new, |lane| lane.races.iter().collect())
    }

    fn target_table(&self) -> String {
        let titles = ["target, of `iotomy race`", "found", "[95 %]", "verdict"];
        let mut rows = vec![titles.map(str::to_owned).to_vec()];
        for target in self.targets() {
            rows.push(vec![
                target.text.clone(),
                format!("{} of {}", target.hits, target.races),
                share(target.hits, target.races),
                word(target.verdict).to_owned(),
            ]);
        }
        table(&rows, 1)
    }

    fn sweep(&self, conditions: &Conditions) -> Sweep {
        let axes = [
            ("field", Field::ALL.map(|field| field.name().to_owned()).to_vec()),
            ("racer", Tool::ALL.map(|tool| tool.name().to_owned()).to_vec()),
            ("command", ["first", "second"].map(str::to_owned).to_vec()),
        ];
        let mut sweep = Sweep::new("race", conditions, &axes);
        for lane in &self.lanes {
            for (number, race) in lane.races.iter().enumerate() {
                for (command, times) in ["first", "second"].into_iter().zip(&race.times) {
                    sweep.cases.push(case(lane, number, race, command, times));
                }
            }
        }
        sweep.claims = self.targets().iter().map(claim).collect();
        sweep
    }
}

/// Returns the record of one command of one race.
fn case(lane: &Lane, number: usize, race: &ToolRace, command: &str, times: &[f64]) -> Case {
    let params = [("field", lane.field.name()), ("racer", lane.tool.name()), ("command", command)];
    // Tenths of µs are below any noise, and need half the space.
    let times: Vec<f64> = times.iter().map(|ns| (ns / 100.0).round() / 10.0).collect();
    let mut case = Case::new(&params, "wall", "µs", &times);
    case.params.insert("race", number.into());
    let verdict = match race.verdict {
        Verdict::Faster => "faster",
        Verdict::Slower => "slower",
        Verdict::Same => "no-difference",
        Verdict::Undecided => "undecided",
    };
    case.params.insert("verdict", verdict.into());
    case.extra = [
        ("ratio", race.ratio),
        ("ratio_low", race.interval[0]),
        ("ratio_high", race.interval[1]),
        ("seconds", race.seconds),
    ]
    .into();
    case
}

fn claim(target: &Target) -> Claim {
    Claim {
        id: target.id.to_owned(),
        source: "docs/race.md",
        text: target.text.clone(),
        verdict: target.verdict.name(),
        evidence: json!({ "races": target.races, "found": target.hits }),
    }
}

/// Formats a rate with its interval.
fn share(hits: usize, all: usize) -> String {
    let percent = |share: f64| digits(share * 100.0, 0);
    let [low, high] = wilson(hits, all).map(percent);
    format!("{} % [{low}, {high}]", percent(hits as f64 / all.max(1) as f64))
}

const METHOD: &str = "\n## Method\n\n\
    The load is a program that does a given number of units of work in registers and nothing else, run without a \
    shell. Against itself, any difference found is a false positive; against 3 % more units, a race that finds none \
    missed it. Every tool makes one untimed run of each command first, and runs at nice −20 in a session of its own. \
    The neighbour is a program that takes all of one CPU. It starts after half of the runs that the tool makes in a \
    median race without a neighbour, and stays to the end of the race.\n\n\
    `iotomy race` gives verdicts. hyperfine prints the mean and the standard deviation σ of each command and gives \
    none: here, it reports a difference where the 95 % CI of the ratio of the means excludes 1, with σ ÷ √n as the \
    error of each mean and Student's t for the number of runs. It prints the ratio ± its deviation, without √n; the \
    line below each table counts the races in which 1 is outside of that. Without a number of runs, `hyperfine` makes \
    at least 10 and continues for 3 s per command; there are some ten of these races.\n\n\
    The noise of a run is the deviation of a command's times from their median (1.4826 × the median absolute \
    deviation), and its median over all races. The target of 3 % is for 1 % of noise, and inconclusive where there is \
    more. Intervals of rates are Wilson's. `raw.json` (`iotomy.sweep/1`) has every time of every race.\n";
