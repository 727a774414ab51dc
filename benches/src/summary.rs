//! The results of a run's benches, combined from their raw records, and the documents made from them.
//!
//! The steps: [`kept`] finds the records that count, each bench's `rows.rs` makes rows and a table for readers from
//! them, [`page`] writes the rows of a run on one page, `verdicts` updates the verdicts in the target tables of each
//! bench's own page, and [`documents`] writes the tables between their marks. Nothing is measured here, and every
//! figure comes from a raw record.

pub mod documents;
pub mod kept;
pub mod page;
pub mod raw;
mod verdicts;

use iotomy_record::numbers::fixed;
use iotomy_record::{Case, Claim, ClaimVerdict, Sweep};

use crate::stats::Estimate;
use crate::targets::Bound;
use raw::Raw;

/// A figure of iotomy compared with a peer's.
#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    /// The quantity, and the part of iotomy that it belongs to.
    pub what: String,
    /// The peer; empty if there is none.
    pub peer: String,
    /// The figure, if it is a number.
    pub figure: Option<Estimate>,
    /// The figure as text for readers.
    pub found: String,
    /// The target; empty if there is none.
    pub bound: String,
    /// The verdict.
    pub verdict: Option<ClaimVerdict>,
    /// Whether the target is only an aim, so that missing it is not a failure.
    pub is_aim: bool,
    /// The path of its raw record, relative to the run's directory.
    pub record: String,
}

impl Row {
    /// Creates a row for a figure without a target.
    pub(crate) fn beside(
        what: String,
        peer: &str,
        figure: Option<Estimate>,
        decimals: usize,
        raw: &Raw,
    ) -> Self {
        Self {
            what,
            peer: peer.to_owned(),
            figure,
            found: figure.map_or_else(|| "not in pairs".to_owned(), |found| shown(found, decimals)),
            bound: String::new(),
            verdict: None,
            is_aim: false,
            record: raw.path.clone(),
        }
    }

    /// Returns the text of the verdict.
    pub fn verdict_text(&self) -> String {
        text_of_verdict(self.verdict, self.is_aim)
    }
}

/// Returns the text of the verdict on a target or an aim; empty without a verdict.
pub(crate) fn text_of_verdict(verdict: Option<ClaimVerdict>, is_aim: bool) -> String {
    let aim = if is_aim { " (an aim)" } else { "" };
    verdict.map_or_else(String::new, |verdict| format!("{}{aim}", word(verdict)))
}

/// Returns the verdict on a target as one word.
pub fn word(verdict: ClaimVerdict) -> &'static str {
    match verdict {
        ClaimVerdict::Holds => "met",
        ClaimVerdict::Fails => "missed",
        ClaimVerdict::Inconclusive => "undecided",
    }
}

/// Formats a median with its interval, in groups of three digits.
pub(crate) fn shown(found: Estimate, decimals: usize) -> String {
    let Estimate { median, low, high } = found;
    let decimals = match median.abs() {
        small if small < 0.01 => decimals.max(4),
        small if small < 0.1 => decimals.max(3),
        _ => decimals,
    };
    let text = |figure: f64| {
        let decimals = if figure.abs() >= 1000.0 { 0 } else { decimals };
        fixed(figure, decimals).replace('-', "−")
    };
    if low == high {
        return text(median);
    }
    format!("{} [{}, {}]", text(median), text(low), text(high))
}

/// Returns the figure by which a target was judged.
pub(crate) fn evidence(claim: &Claim) -> Option<Estimate> {
    let median = claim.evidence.get("median")?.as_f64()?;
    let ends = claim.evidence.get("ci95")?.as_array()?;
    Some(Estimate { median, low: ends.first()?.as_f64()?, high: ends.get(1)?.as_f64()? })
}

/// Judges a claim by the whole interval, whatever criterion the bench used. Returns it unchanged if it has no figure or
/// no bound.
pub(crate) fn judged_anew(claim: Claim) -> Claim {
    let bound = claim.text.rsplit_once(": ").and_then(|(_, bound)| Bound::parse(bound));
    match bound.zip(evidence(&claim)) {
        Some((bound, found)) => Claim { verdict: bound.judge(found).of_claim(), ..claim },
        None => claim,
    }
}

/// Returns the row of a target with a figure; the target's text is "WHAT ÷ PEER: BOUND".
pub(crate) fn of_target(claim: &Claim, decimals: usize, raw: &Raw) -> Row {
    let (subject, bound) = claim.text.rsplit_once(": ").unwrap_or((&claim.text, ""));
    let (what, peer) = subject.rsplit_once(" ÷ ").unwrap_or((subject, ""));
    let figure = evidence(claim);
    let is_unit = |word: &&str| word.parse::<f64>().is_err() && *word != "×";
    let unit = bound
        .rsplit(' ')
        .next()
        .filter(is_unit)
        .map_or_else(String::new, |unit| format!(" {unit}"));
    let reason = || {
        let reason =
            ["found", "not_judged"].iter().find_map(|name| claim.evidence.get(*name)?.as_str());
        reason.unwrap_or("not measured").to_owned()
    };
    Row {
        what: what.to_owned(),
        peer: peer.to_owned(),
        figure,
        found: figure.map_or_else(reason, |found| shown(found, decimals) + &unit),
        bound: bound.to_owned(),
        verdict: Some(claim.verdict),
        is_aim: claim.id.ends_with("-aim"),
        record: raw.path.clone(),
    }
}

/// Returns the targets of a record; other claims come from articles, which are identified by
/// number.
pub(crate) fn targets(sweep: &Sweep) -> impl Iterator<Item = &Claim> {
    let is_target = |claim: &&Claim| !claim.source.bytes().all(|letter| letter.is_ascii_digit());
    sweep.claims.iter().filter(is_target)
}

/// Returns the case's name on an axis.
pub(crate) fn on<'a>(case: &'a Case, axis: &str) -> &'a str {
    match case.params.get(axis) {
        Some(iotomy_record::AxisValue::Name(name)) => name,
        _ => "",
    }
}

/// Returns the names on an axis, in the record's order.
pub(crate) fn names(sweep: &Sweep, axis: &str) -> Vec<String> {
    let axis = sweep.axes.iter().find(|one| one.name == axis);
    axis.map_or_else(Vec::new, |axis| axis.values.iter().map(ToString::to_string).collect())
}

/// Returns the samples of the case that has these names on these axes.
pub(crate) fn samples<'a>(
    sweep: &'a Sweep,
    params: &[(&str, &str)],
    metric: &str,
) -> Option<&'a [f64]> {
    let is_it = |case: &&Case| {
        case.metric == metric && params.iter().all(|(axis, name)| on(case, axis) == *name)
    };
    let case = sweep.cases.iter().filter(is_it).find(|case| case.skipped.is_none())?;
    (!case.samples.is_empty()).then_some(&case.samples)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_have_as_many_digits_as_tell_something() {
        let found = |low, median, high| shown(Estimate { median, low, high }, 2);
        assert_eq!(found(0.949, 1.018, 1.061), "1.02 [0.95, 1.06]");
        assert_eq!(found(0.0066, 0.0074, 0.0081), "0.0074 [0.0066, 0.0081]");
        assert_eq!(found(31_300.0, 145_200.0, 169_065.0), "145,200 [31,300, 169,065]");
        assert_eq!(found(-0.29, 2.21, 5.24), "2.21 [−0.29, 5.24]");
        assert_eq!(found(44.83, 44.83, 44.83), "44.83");
    }

    #[test]
    fn a_claim_is_judged_by_its_interval_and_not_by_what_a_record_says() {
        let claim = |text: &str, evidence: serde_json::Value| Claim {
            id: "a".to_owned(),
            source: "b".to_owned(),
            text: text.to_owned(),
            verdict: ClaimVerdict::Holds,
            evidence: serde_json::from_value(evidence).unwrap(),
            because: String::new(),
        };
        let of = |evidence| judged_anew(claim("x ÷ y: at most 1.00 ×", evidence)).verdict;
        let found = |low: f64, high: f64| serde_json::json!({"median": 0.98, "ci95": [low, high]});
        assert_eq!(of(found(0.74, 2.07)), ClaimVerdict::Inconclusive);
        assert_eq!(of(found(0.74, 0.99)), ClaimVerdict::Holds);
        assert_eq!(of(found(1.74, 2.07)), ClaimVerdict::Fails);
        // A claim without an interval.
        assert_eq!(of(serde_json::json!({"found": "3 of 15"})), ClaimVerdict::Holds);
        let other = judged_anew(claim("3 routes or more; they are: a", found(0.74, 2.07)));
        assert_eq!(other.verdict, ClaimVerdict::Holds);
    }
}
