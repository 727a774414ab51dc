//! The contenders of this bench, which are themselves racers of commands: the command line of each, and the conversion
//! of its output to a verdict.

use std::fs::File;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context, Result, bail};
use iotomy_record::{Metric, RaceVerdict, store};
use iotomy_stats::{Summary, median, t975};

use crate::child::{Signals, guard_of};

/// Runs of each command in tools with a fixed number of runs.
pub(crate) const RUNS: usize = 15;

/// A tool that races two commands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tool {
    /// `iotomy race` until it reaches a decision.
    Iotomy,
    /// `iotomy race` with a fixed number of runs.
    IotomyFixed,
    /// hyperfine with the same fixed number.
    HyperfineFixed,
    /// hyperfine with its default number of runs.
    Hyperfine,
}

impl Tool {
    pub(crate) const ALL: [Self; 4] =
        [Self::Iotomy, Self::IotomyFixed, Self::HyperfineFixed, Self::Hyperfine];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Iotomy => "iotomy race",
            Self::IotomyFixed => "iotomy race -r 15",
            Self::HyperfineFixed => "hyperfine -r 15",
            Self::Hyperfine => "hyperfine",
        }
    }

    pub(crate) fn is_iotomy(self) -> bool {
        matches!(self, Self::Iotomy | Self::IotomyFixed)
    }

    /// Returns whether the tool is slow: hyperfine by default takes 3 s per command, so it runs
    /// fewer races.
    pub(crate) fn is_slow(self) -> bool {
        self == Self::Hyperfine
    }

    fn arguments(self, json: &Path) -> Vec<String> {
        let json = json.to_string_lossy().into_owned();
        let mut words = match self.is_iotomy() {
            true => {
                vec!["race".to_owned(), "--no-trace".into(), "-q".into(), "--json".into(), json]
            }
            false => {
                let words = ["-N", "-w", "1", "--style", "none", "--export-json"];
                words.iter().map(|word| (*word).to_owned()).chain([json]).collect()
            }
        };
        if matches!(self, Self::IotomyFixed | Self::HyperfineFixed) {
            words.extend(["-r".to_owned(), RUNS.to_string()]);
        }
        words
    }
}

/// A tool's verdict on the second command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    Faster,
    Slower,
    Same,
    Undecided,
}

impl Verdict {
    pub(crate) fn is_difference(self) -> bool {
        matches!(self, Self::Faster | Self::Slower)
    }
}

/// A completed race.
#[derive(Debug)]
pub(crate) struct ToolRace {
    pub(crate) verdict: Verdict,
    /// Whether 1 is outside of the ratio ± deviation that hyperfine prints.
    pub(crate) outside_printed: bool,
    /// Second ÷ first, and its 95 % confidence interval.
    pub(crate) ratio: f64,
    pub(crate) interval: [f64; 2],
    /// Wall times of either command, in ns.
    pub(crate) times: [Vec<f64>; 2],
    pub(crate) seconds: f64,
}

impl ToolRace {
    pub(crate) fn pairs(&self) -> usize {
        self.times[0].len().min(self.times[1].len())
    }

    /// Returns the deviation of a run's time from its command's median, relative to that median.
    pub(crate) fn noise(&self) -> f64 {
        let of = |times: &[f64]| {
            let middle = median(times).unwrap_or(0.0);
            let apart: Vec<f64> = times.iter().map(|time| (time / middle - 1.0).abs()).collect();
            1.4826 * median(&apart).unwrap_or(0.0)
        };
        f64::midpoint(of(&self.times[0]), of(&self.times[1]))
    }
}

/// Races two commands and reads the result.
pub(crate) fn race(
    tool: Tool,
    iotomy: &str,
    commands: &[String; 2],
    folder: &Path,
    signals: &Signals,
) -> Result<ToolRace> {
    let json = folder.join("race.json");
    let program = if tool.is_iotomy() { iotomy } else { "hyperfine" };
    let errors = folder.join("errors");
    let said = File::create(&errors).context("cannot make a file for errors")?;
    let mut command = Command::new(program);
    command.args(tool.arguments(&json)).args(commands);
    let mut command = guard_of(&command)?;
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(said);
    let began = Instant::now();
    let mut child = command.spawn().with_context(|| format!("cannot start {program}"))?;
    let status = signals.wait(&mut child)?;
    let seconds = began.elapsed().as_secs_f64();
    if !status.success() {
        let stderr = std::fs::read_to_string(&errors).unwrap_or_default();
        bail!("{} ended with {status}: {}", tool.name(), stderr.trim());
    }
    let raced = if tool.is_iotomy() { of_iotomy(&json)? } else { of_hyperfine(&json)? };
    Ok(ToolRace { seconds, ..raced })
}

fn of_iotomy(json: &Path) -> Result<ToolRace> {
    let race = store::load_race(json)?;
    let found = race.comparisons.iter().find(|found| found.metric == Metric::Wall);
    let found = found.context("iotomy compared nothing")?;
    let times = [0, 1].map(|at| race.commands[at].runs.iter().map(|run| run.wall_ns as f64));
    Ok(ToolRace {
        verdict: match found.verdict {
            RaceVerdict::Faster => Verdict::Faster,
            RaceVerdict::Slower => Verdict::Slower,
            RaceVerdict::NoDifference => Verdict::Same,
            RaceVerdict::Undecided => Verdict::Undecided,
        },
        outside_printed: false,
        ratio: found.ratio,
        interval: found.ci95,
        times: times.map(Iterator::collect),
        seconds: 0.0,
    })
}

fn of_hyperfine(json: &Path) -> Result<ToolRace> {
    let text = std::fs::read(json).context("cannot read what hyperfine exported")?;
    let value: serde_json::Value =
        serde_json::from_slice(&text).context("cannot read what hyperfine exported")?;
    let times = [0, 1].map(|at| {
        let times = value["results"][at]["times"].as_array().into_iter().flatten();
        times.filter_map(|time| Some(time.as_f64()? * 1e9)).collect::<Vec<f64>>()
    });
    if times.iter().any(|times| times.len() < 2) {
        bail!("hyperfine exported no times");
    }
    Ok(by_mean_and_deviation(times))
}

/// hyperfine reports mean and standard deviation, and no verdict. The verdict used here is the usual reading of these:
/// the 95 % confidence interval of the ratio of two means, each known to σ ÷ √n.
fn by_mean_and_deviation(times: [Vec<f64>; 2]) -> ToolRace {
    let of = |times: &[f64]| {
        Summary::from_samples(times).map_or((0.0, 0.0), |all| (all.mean, all.stddev))
    };
    let [(a, sa), (b, sb)] = [of(&times[0]), of(&times[1])];
    let runs = times[0].len() + times[1].len();
    let [n, m] = [times[0].len() as f64, times[1].len() as f64];
    let ratio = b / a;
    let relative = ((sa / a).powi(2) / n + (sb / b).powi(2) / m).sqrt();
    let margin = ratio * relative * t975(runs - 2);
    let interval = [ratio - margin, ratio + margin];
    let printed = ratio * ((sa / a).powi(2) + (sb / b).powi(2)).sqrt();
    let verdict = match interval {
        [_, high] if high < 1.0 => Verdict::Faster,
        [low, _] if low > 1.0 => Verdict::Slower,
        _ => Verdict::Undecided,
    };
    let outside_printed = (ratio - 1.0).abs() > printed;
    ToolRace { verdict, outside_printed, ratio, interval, times, seconds: 0.0 }
}

/// Returns the median number of pairs in the races.
pub(crate) fn median_pairs(races: &[ToolRace]) -> f64 {
    let pairs: Vec<f64> = races.iter().map(|race| race.pairs() as f64).collect();
    median(&pairs).unwrap_or(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn means_further_apart_than_they_are_sure_differ() {
        let times =
            |middle: f64| (0..15).map(|n| middle + f64::from(n % 3 - 1)).collect::<Vec<_>>();
        let found = by_mean_and_deviation([times(100.0), times(103.0)]);
        assert_eq!((found.verdict, found.outside_printed), (Verdict::Slower, true));
        assert!((found.ratio - 1.03).abs() < 1e-9);
        let found = by_mean_and_deviation([times(100.0), times(100.9)]);
        assert_eq!((found.verdict, found.outside_printed), (Verdict::Slower, false));
        let found = by_mean_and_deviation([times(100.0), times(100.1)]);
        assert_eq!(found.verdict, Verdict::Undecided);
    }
}
