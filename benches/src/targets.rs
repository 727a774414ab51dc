//! Performance targets and their verdicts.

use iotomy_record::ClaimVerdict;
use serde_json::json;

use crate::record::Claim;
use crate::stats::Estimate;
use crate::tables::{interval, table};

/// The verdict on a target.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// All of the interval is inside the bound.
    Met,
    /// The interval reaches across the bound.
    Undecided,
    /// All of the interval is outside.
    Missed,
    /// There was nothing to compare.
    NotJudged,
}

impl Verdict {
    /// Returns the name of the verdict.
    pub fn name(self) -> &'static str {
        match self {
            Self::Met => "met",
            Self::Undecided => "undecided",
            Self::Missed => "missed",
            Self::NotJudged => "not judged",
        }
    }

    /// Returns the verdict in the form of a record.
    pub fn of_claim(self) -> ClaimVerdict {
        match self {
            Self::Met => ClaimVerdict::Holds,
            Self::Missed => ClaimVerdict::Fails,
            Self::Undecided | Self::NotJudged => ClaimVerdict::Inconclusive,
        }
    }
}

/// The smallest and the largest permitted figure.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bound {
    /// −∞ if there is only an upper limit.
    pub least: f64,
    /// Inclusive.
    pub most: f64,
    /// Printed after a space; empty for plain ratios.
    pub unit: &'static str,
}

impl Bound {
    /// Creates a bound with an upper limit only.
    pub const fn at_most(most: f64, unit: &'static str) -> Self {
        Self { least: f64::NEG_INFINITY, most, unit }
    }

    /// Judges a figure by its whole interval: the median alone decides nothing.
    pub fn judge(self, found: Estimate) -> Verdict {
        if self.least <= found.low && found.high <= self.most {
            Verdict::Met
        } else if found.low <= self.most && found.high >= self.least {
            Verdict::Undecided
        } else {
            Verdict::Missed
        }
    }

    /// Parses the text of a bound in a record: "at most 1.00 ×", "0.90 to 1.10". The unit is not parsed.
    pub fn parse(text: &str) -> Option<Self> {
        let number = |text: &str| text.split(' ').next()?.parse::<f64>().ok();
        let (least, most) = match text.strip_prefix("at most ") {
            Some(most) => (f64::NEG_INFINITY, number(most)?),
            None => {
                let (least, most) = text.split_once(" to ")?;
                (number(least)?, number(most)?)
            }
        };
        Some(Self { least, most, unit: "" })
    }

    fn text(self) -> String {
        let Self { least, most, unit } = self;
        let text = if least == f64::NEG_INFINITY {
            format!("at most {most:.2}")
        } else {
            format!("{least:.2} to {most:.2}")
        };
        with_unit(text, unit)
    }
}

fn with_unit(text: String, unit: &str) -> String {
    if unit.is_empty() { text } else { format!("{text} {unit}") }
}

/// A target and its verdict.
#[derive(Debug, Clone)]
pub struct Target {
    /// Its name in records. The name of an aim, which may be missed without failure, ends in
    /// `-aim`.
    pub id: String,
    /// The target's text.
    pub text: String,
    /// `None` if the target is not about a figure.
    pub bound: Option<Bound>,
    /// The measurement, or the reason why there is none.
    pub found: Result<Estimate, String>,
    /// The verdict.
    pub verdict: Verdict,
}

impl Target {
    /// Creates a target for a figure, judged by [`Bound::judge`].
    pub fn new(id: &str, text: String, bound: Bound, found: Result<Estimate, String>) -> Self {
        let verdict = found.as_ref().map_or(Verdict::NotJudged, |found| bound.judge(*found));
        Self { id: id.to_owned(), text, bound: Some(bound), found, verdict }
    }

    /// Returns the claim for the raw record.
    pub fn claim(&self) -> Claim {
        Claim {
            id: self.id.clone(),
            source: Claim::OF_TARGETS,
            text: match self.bound {
                Some(bound) => format!("{}: {}", self.text, bound.text()),
                None => self.text.clone(),
            },
            verdict: self.verdict.of_claim().name(),
            evidence: match &self.found {
                Ok(found) => json!({"median": found.median, "ci95": [found.low, found.high]}),
                Err(text) => json!({"found": text}),
            },
        }
    }
}

/// Formats a table of the targets.
pub fn target_table(targets: &[Target], decimals: usize) -> String {
    let titles = ["target", "bound", "found [95 %]", "verdict"];
    let mut rows = vec![titles.map(str::to_owned).to_vec()];
    for target in targets {
        let found = match &target.found {
            Ok(found) => {
                with_unit(interval(*found, decimals), target.bound.map_or("", |bound| bound.unit))
            }
            Err(reason) => reason.clone(),
        };
        let aim = if target.id.ends_with("-aim") { " (an aim)" } else { "" };
        rows.push(vec![
            target.text.clone(),
            target.bound.map_or_else(String::new, Bound::text),
            found,
            format!("{}{aim}", target.verdict.name()),
        ]);
    }
    table(&rows, 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(low: f64, median: f64, high: f64) -> Estimate {
        Estimate { median, low, high }
    }

    #[test]
    fn a_target_is_met_or_missed_by_its_whole_interval() {
        let bound = Bound::at_most(1.0, "×");
        assert_eq!(bound.judge(found(0.9, 0.95, 1.0)), Verdict::Met);
        assert_eq!(bound.judge(found(0.74, 0.98, 2.07)), Verdict::Undecided);
        assert_eq!(bound.judge(found(0.9, 1.1, 9.0)), Verdict::Undecided);
        assert_eq!(bound.judge(found(1.01, 1.1, 9.0)), Verdict::Missed);
    }

    #[test]
    fn an_interval_below_zero_meets_a_bound_above_it() {
        for bound in [Bound::at_most(2.0, "%"), Bound::parse("at most 2.00 %").unwrap()] {
            assert_eq!(bound.judge(found(-0.5, 0.1, 0.9)), Verdict::Met);
            assert_eq!(bound.judge(found(-0.9, -0.5, -0.1)), Verdict::Met);
            assert_eq!(bound.judge(found(-0.5, 0.1, 2.1)), Verdict::Undecided);
        }
    }

    #[test]
    fn a_figure_can_be_too_small() {
        let bound = Bound { least: 0.9, most: 1.1, unit: "" };
        assert_eq!(bound.judge(found(0.95, 1.0, 1.05)), Verdict::Met);
        assert_eq!(bound.judge(found(0.85, 1.0, 1.05)), Verdict::Undecided);
        assert_eq!(bound.judge(found(0.5, 0.6, 0.95)), Verdict::Undecided);
        assert_eq!(bound.judge(found(0.5, 0.6, 0.7)), Verdict::Missed);
        assert_eq!(bound.text(), "0.90 to 1.10");
    }

    #[test]
    fn a_bound_is_read_as_it_is_written() {
        for bound in [Bound::at_most(2.5, "×"), Bound { least: 0.9, most: 1.1, unit: "" }] {
            assert_eq!(Bound::parse(&bound.text()), Some(Bound { unit: "", ..bound }));
        }
        assert_eq!(Bound::parse("at most 5.00 MiB"), Some(Bound::at_most(5.0, "")));
        for none in ["", "3 or more", "at most", "fast"] {
            assert_eq!(Bound::parse(none), None, "{none}");
        }
    }

    #[test]
    fn a_target_says_in_records_what_was_wanted() {
        let claim =
            Target::new("a", "a ÷ b".into(), Bound::at_most(1.0, "×"), Err("no peer".into()))
                .claim();
        assert_eq!((claim.text.as_str(), claim.verdict), ("a ÷ b: at most 1.00 ×", "inconclusive"));
        assert_eq!(claim.evidence, json!({"found": "no peer"}));
    }
}
