//! The statistics of the runs: the spread of each command and the comparison of pairs. Pure.

use iotomy_record::{Comparison, Metric, RaceVerdict, Round, Run, Spread};
use iotomy_stats::sequential::{Measured, Requirements, Verdict, interim_test, single_test};
use iotomy_stats::{Interval, Summary, mean_interval, median_interval};

/// A metric of a run, in ns; never 0, of which there is no ratio.
pub(super) fn value(run: &Run, metric: Metric) -> f64 {
    let ns = match metric {
        Metric::Wall => run.wall_ns,
        // The kernel tells it in µs.
        Metric::Cpu => run.cpu_ns().max(1_000),
    };
    ns.max(1) as f64
}

/// The runs of rounds that count.
pub(super) fn counting<'a>(runs: &'a [Run], rounds: &'a [Round]) -> impl Iterator<Item = &'a Run> {
    runs.iter().filter(|run| {
        usize::try_from(run.round).ok().and_then(|at| rounds.get(at)).is_some_and(|b| !b.redone)
    })
}

/// How two commands are to be compared.
#[derive(Debug, Clone, Copy)]
pub(super) struct Rules {
    pub(super) min_effect: f64,
    /// How many comparisons of a metric the race makes.
    pub(super) among: usize,
    /// Whether the number of runs was fixed beforehand.
    pub(super) fixed: bool,
    pub(super) seed: u64,
}

/// Compares two commands by the rounds both have runs in.
pub(super) fn compare(
    [base, other]: [(&str, &[Run]); 2],
    rounds: &[Round],
    metric: Metric,
    rules: Rules,
) -> Comparison {
    let mut logs = Vec::new();
    let mut each = [Vec::new(), Vec::new()];
    let mut ratios = Vec::new();
    let mut pairs = 0;
    for at in (0..rounds.len()).filter(|at| !rounds[*at].redone) {
        let of = |runs: &[Run]| -> Vec<f64> {
            let mine = runs.iter().filter(|run| run.round == at as u64);
            mine.map(|run| value(run, metric)).collect()
        };
        let (mut a, mut b) = (of(base.1), of(other.1));
        // Of a round that was cut short the runs that are pairs.
        let both = a.len().min(b.len());
        if both == 0 {
            continue;
        }
        a.truncate(both);
        b.truncate(both);
        let log = |values: &[f64]| {
            values.iter().map(|value| value.ln()).sum::<f64>() / values.len() as f64
        };
        logs.push(log(&b) - log(&a));
        ratios.push(b.iter().sum::<f64>() / a.iter().sum::<f64>());
        each[0].extend(a.iter().map(|value| value.ln()));
        each[1].extend(b.iter().map(|value| value.ln()));
        pairs += both;
    }
    let measured = Measured { ratios: &logs, base: &each[0], other: &each[1] };
    let wanted = Requirements { min_effect: rules.min_effect, among: rules.among };
    let found = match rules.fixed {
        true => single_test(measured, wanted),
        false => interim_test(measured, wanted),
    };
    let mean = mean_interval(&ratios, iotomy_stats::sequential::ALPHA, rules.seed);
    let (verdict, more) = match found.verdict {
        Verdict::Faster => (RaceVerdict::Faster, None),
        Verdict::Slower => (RaceVerdict::Slower, None),
        Verdict::NoDifference => (RaceVerdict::NoDifference, None),
        Verdict::Undecided { more } => (RaceVerdict::Undecided, more),
    };
    // With too few rounds for an interval, the middle of those there are.
    let ratio = found.ratio.map_or_else(
        || iotomy_stats::median(&logs).map_or(1.0, f64::exp),
        |interval| interval.point,
    );
    // An interval of a mean that reaches 0 is that of too few or too different ratios: there is none below.
    let mean = mean.filter(|interval| interval.low > 0.0);
    let ends = |interval: Interval| [interval.low, interval.high];
    Comparison {
        base: base.0.to_owned(),
        other: other.0.to_owned(),
        metric,
        ratio,
        ci95: found.ratio.map_or([0.0, 0.0], ends),
        verdict,
        runs: pairs as u64,
        more_runs: more.map(|runs| runs as u64),
        mean_ratio: mean.map(|interval| interval.point),
        mean_ci95: mean.map(ends),
    }
}

/// The figures of a sample in ns.
pub(super) fn spread(samples: &[f64]) -> Spread {
    let Some(summary) = Summary::from_samples(samples) else { return Spread::default() };
    Spread {
        runs: summary.count as u64,
        median_ns: summary.median,
        ci95: median_interval(samples),
        min_ns: summary.min,
        max_ns: summary.max,
        mean_ns: summary.mean,
        stddev_ns: summary.stddev,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(round: u64, wall_ns: u64) -> Run {
        Run { wall_ns, user_ns: wall_ns / 2, round, ..Run::default() }
    }

    const RULES: Rules = Rules { min_effect: 0.01, among: 1, fixed: true, seed: 1 };

    #[test]
    fn half_the_time_is_faster_by_two() {
        let rounds = vec![Round::default(); 8];
        let a: Vec<Run> = (0..16).map(|n| run(n / 2, 1_000_000 + 1_000 * n)).collect();
        let b: Vec<Run> = (0..16).map(|n| run(n / 2, 500_000 + 700 * n)).collect();
        let found = compare([("A", &a), ("B", &b)], &rounds, Metric::Wall, RULES);
        assert_eq!((found.verdict, found.runs), (RaceVerdict::Faster, 16));
        assert!((found.ratio - 0.5).abs() < 0.01, "{found:?}");
        assert!(found.ci95[0] < found.ratio && found.ratio < found.ci95[1]);
        let [low, high] = found.mean_ci95.unwrap();
        assert!(low < found.mean_ratio.unwrap() && found.mean_ratio.unwrap() < high);
    }

    #[test]
    fn no_interval_of_a_ratio_begins_at_0() {
        let rounds = vec![Round::default(); 5];
        let a: Vec<Run> = (0..5).map(|n| run(n, 1_000)).collect();
        let b: Vec<Run> = (0..5).map(|n| run(n, if n == 0 { 900_000 } else { 1_000 })).collect();
        let found = compare([("A", &a), ("B", &b)], &rounds, Metric::Wall, RULES);
        assert_eq!((found.mean_ratio, found.mean_ci95), (None, None));
        assert!(found.ci95 == [0.0, 0.0] || found.ci95[0] > 0.0, "{found:?}");
    }

    #[test]
    fn what_was_redone_or_is_not_whole_does_not_count() {
        let mut rounds = vec![Round::default(); 9];
        rounds[3].redone = true;
        let a: Vec<Run> = (0..17).map(|n| run(n / 2, 1_000)).collect();
        let b: Vec<Run> = (0..16).map(|n| run(n / 2, if n / 2 == 3 { 1 } else { 1_000 })).collect();
        let found = compare([("A", &a), ("B", &b)], &rounds, Metric::Wall, RULES);
        assert_eq!((found.runs, found.ratio), (14, 1.0));
        assert_eq!(found.verdict, RaceVerdict::NoDifference);
        assert_eq!(counting(&b, &rounds).count(), 14);
    }

    #[test]
    fn too_few_runs_have_a_middle_and_no_interval() {
        let (a, b) = (vec![run(0, 100)], vec![run(0, 300)]);
        let found = compare([("A", &a), ("B", &b)], &[Round::default()], Metric::Wall, RULES);
        assert_eq!((found.verdict, found.ci95), (RaceVerdict::Undecided, [0.0, 0.0]));
        assert!((found.ratio - 3.0).abs() < 1e-9);
        assert_eq!(spread(&[1.0; 5]).ci95, None);
        assert_eq!(spread(&[]), Spread::default());
    }
}
