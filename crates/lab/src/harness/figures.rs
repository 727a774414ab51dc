//! The figures of a case, computed from its samples, and the verdicts on the claims from all cases.

use std::collections::BTreeMap;
use std::time::Duration;

use iotomy_record::{AxisValue, Case, Claim, ClaimVerdict};
use iotomy_stats::{Summary, centre_interval, mean, median, median_interval};

use super::claims::{by_visit, is_settled};
use super::judgement::ENOUGH;
use super::{Cases, ExperimentDeclaration, Fold, Judgement};

/// Builds a case of a sweep with these samples.
pub(crate) fn case_of(
    params: BTreeMap<String, AxisValue>,
    (metric, unit): (&str, &str),
    samples: Vec<f64>,
    extra: BTreeMap<String, f64>,
) -> Case {
    let summary = Summary::from_samples(&samples);
    Case {
        params,
        metric: metric.to_owned(),
        unit: unit.to_owned(),
        median: summary.map(|of| of.median),
        mean: summary.map(|of| of.mean),
        stddev: summary.map(|of| of.stddev),
        min: summary.map(|of| of.min),
        ci95: median_interval(&samples),
        samples,
        extra,
        skipped: None,
        extra_samples: BTreeMap::new(),
        note: None,
        visits: Vec::new(),
    }
}

/// Updates the figures of a case after a visit; they are computed from all samples.
pub(crate) fn with_figures(declared: &ExperimentDeclaration, case: Case) -> Case {
    let extra = folded(declared, &case);
    let figures = case_of(case.params, (declared.metric, declared.unit), case.samples, extra);
    let case = Case {
        skipped: case.skipped,
        note: case.note,
        extra_samples: case.extra_samples,
        visits: case.visits,
        ..figures
    };
    Case { ci95: interval(&case), ..case }
}

/// Computes the interval of the median. A visit counts once: with six or more visits the interval
/// holds for any distribution of the noise; with fewer it uses Student's distribution of their
/// logarithms.
fn interval(case: &Case) -> Option<[f64; 2]> {
    let middles: Vec<f64> = by_visit(case, &case.samples).into_iter().map(|(_, of)| of).collect();
    if let Some(found) = median_interval(&middles) {
        return Some(found);
    }
    let median = case.median?;
    let logs: Vec<f64> = middles.iter().map(|middle| middle.ln()).collect();
    let found = match logs.iter().all(|log| log.is_finite()) {
        true => centre_interval(&logs)?.map(f64::exp),
        false => centre_interval(&middles)?,
    };
    let ends = [found.low.min(median), found.high.max(median)];
    ends.iter().all(|end| end.is_finite()).then_some(ends)
}

/// Judges each claim from the cases.
pub(crate) fn judged(declared: &ExperimentDeclaration, cases: &[Case]) -> Vec<Claim> {
    judged_lacking(declared, cases, &missing(cases))
}

/// Judges each claim from the cases; an undecided one says that these are missing.
pub(crate) fn judged_lacking(
    declared: &ExperimentDeclaration,
    cases: &[Case],
    missing: &str,
) -> Vec<Claim> {
    let is_measured = cases.iter().any(|case| case.median.is_some());
    let cases = Cases::new(cases);
    let judge = |claim: &super::Claim| {
        let Judgement { verdict, mut because, evidence } = match is_measured {
            true => (claim.judge)(&cases),
            false => Judgement::inconclusive("no case was measured"),
        };
        if verdict == ClaimVerdict::Inconclusive {
            because += missing;
        }
        Claim {
            id: claim.id.to_owned(),
            source: claim.source.to_owned(),
            text: claim.text.to_owned(),
            verdict,
            evidence: evidence.into_iter().map(|(name, of)| (name.to_owned(), of)).collect(),
            because,
        }
    };
    declared.claims.iter().map(judge).collect()
}

/// Describes what an undecided claim may lack; empty if nothing is missing.
pub(crate) fn missing(cases: &[Case]) -> String {
    let without = cases.iter().filter(|case| case.had_no_time()).count();
    let is_rare = |case: &&Case| case.median.is_some() && !is_settled(case);
    let rare = cases.iter().filter(is_rare).count();
    let of = |count: usize| format!("{count} case{}", if count == 1 { "" } else { "s" });
    match (without, rare) {
        (0, 0) => String::new(),
        (0, rare) => format!(" ({} visited fewer than {ENOUGH} times)", of(rare)),
        (without, 0) => format!(" ({} had no time)", of(without)),
        (without, rare) => {
            format!(" ({} had no time, {} fewer than {ENOUGH} visits)", of(without), of(rare))
        }
    }
}

/// Combines the samples of each extra as the experiment declares.
pub(crate) fn folded(declared: &ExperimentDeclaration, case: &Case) -> BTreeMap<String, f64> {
    let fold_of = |name: &str| declared.extras.iter().find(|extra| extra.name == name);
    let folded = |(name, samples): (&String, &Vec<f64>)| {
        let value = match fold_of(name)?.fold {
            Fold::Mean => mean(samples),
            Fold::Median => median(samples),
            Fold::Least => Summary::from_samples(samples).map(|of| of.min),
        };
        Some((name.clone(), value?))
    };
    case.extra_samples.iter().filter_map(folded).collect()
}

pub(crate) fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}
