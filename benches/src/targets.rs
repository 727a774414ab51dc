//! Figures to reach, and whether they were.

use serde_json::json;

use crate::record::Claim;
use crate::stats::Estimate;
use crate::tables::{interval, table};

/// What became of a target.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// The median is inside of the bound.
    Met,
    /// It is outside, and the interval reaches into it.
    WithinNoise,
    /// All of the interval is outside.
    Missed,
    /// There was nothing to compare.
    NotJudged,
}

impl Verdict {
    /// What it is called.
    pub fn name(self) -> &'static str {
        match self {
            Self::Met => "met",
            Self::WithinNoise => "within noise",
            Self::Missed => "missed",
            Self::NotJudged => "not judged",
        }
    }
}

/// The least and the most a figure may be.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bound {
    /// 0 where only the most matters.
    pub least: f64,
    /// Included.
    pub most: f64,
    /// With a space before it is printed; empty for plain ratios.
    pub unit: &'static str,
}

impl Bound {
    /// At most so much.
    pub const fn at_most(most: f64, unit: &'static str) -> Self {
        Self { least: 0.0, most, unit }
    }

    /// What a figure comes to: within noise where the interval alone reaches the bound.
    pub fn judge(self, found: Estimate) -> Verdict {
        match found {
            found if (self.least..=self.most).contains(&found.median) => Verdict::Met,
            found if found.low <= self.most && found.high >= self.least => Verdict::WithinNoise,
            _ => Verdict::Missed,
        }
    }

    fn text(self) -> String {
        let Self { least, most, unit } = self;
        let text = if least == 0.0 {
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

/// A figure to reach.
#[derive(Debug, Clone)]
pub struct Target {
    /// Its name in records. That of an aim, which to miss is no failure, ends in `-aim`.
    pub id: String,
    /// What is wanted.
    pub text: String,
    /// `None` where something else than a figure is wanted.
    pub bound: Option<Bound>,
    /// What was measured; the reason when nothing was.
    pub found: Result<Estimate, String>,
    /// What that comes to.
    pub verdict: Verdict,
}

impl Target {
    /// A figure, judged by [`Bound::judge`].
    pub fn new(id: &str, text: String, bound: Bound, found: Result<Estimate, String>) -> Self {
        let verdict = found.as_ref().map_or(Verdict::NotJudged, |found| bound.judge(*found));
        Self { id: id.to_owned(), text, bound: Some(bound), found, verdict }
    }

    /// A figure judged by its median alone, however wide the interval.
    pub fn by_median(
        id: &str,
        text: String,
        bound: Bound,
        found: Result<Estimate, String>,
    ) -> Self {
        let mut target = Self::new(id, text, bound, found);
        if target.verdict == Verdict::WithinNoise {
            target.verdict = Verdict::Missed;
        }
        target
    }

    /// A figure of which the whole interval has to be inside.
    pub fn by_interval(
        id: &str,
        text: String,
        bound: Bound,
        found: Result<Estimate, String>,
    ) -> Self {
        let is_inside = |found: &Estimate| bound.least <= found.low && found.high <= bound.most;
        let is_met = found.as_ref().is_ok_and(is_inside);
        let mut target = Self::new(id, text, bound, found);
        if target.verdict == Verdict::Met && !is_met {
            target.verdict = Verdict::WithinNoise;
        }
        target
    }

    /// For the raw record.
    pub fn claim(&self) -> Claim {
        Claim {
            id: self.id.clone(),
            source: Claim::OF_TARGETS,
            text: match self.bound {
                Some(bound) => format!("{}: {}", self.text, bound.text()),
                None => self.text.clone(),
            },
            verdict: match self.verdict {
                Verdict::Met => "holds",
                Verdict::Missed => "fails",
                Verdict::WithinNoise | Verdict::NotJudged => "inconclusive",
            },
            evidence: match &self.found {
                Ok(found) => json!({"median": found.median, "ci95": [found.low, found.high]}),
                Err(text) => json!({"found": text}),
            },
        }
    }
}

/// A table of them.
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
    fn noise_is_told_from_a_miss() {
        let bound = Bound::at_most(1.0, "×");
        assert_eq!(bound.judge(found(0.9, 1.0, 9.0)), Verdict::Met);
        assert_eq!(bound.judge(found(0.9, 1.1, 9.0)), Verdict::WithinNoise);
        assert_eq!(bound.judge(found(1.01, 1.1, 9.0)), Verdict::Missed);
    }

    #[test]
    fn a_figure_can_be_too_small() {
        let bound = Bound { least: 0.9, most: 1.1, unit: "" };
        assert_eq!(bound.judge(found(0.5, 0.6, 0.95)), Verdict::WithinNoise);
        assert_eq!(bound.judge(found(0.5, 0.6, 0.7)), Verdict::Missed);
        assert_eq!(bound.text(), "0.90 to 1.10");
    }

    #[test]
    fn where_the_median_alone_counts_noise_is_no_excuse() {
        let bound = Bound::at_most(2.5, "×");
        let target = Target::by_median("a", "a".to_owned(), bound, Ok(found(2.3, 2.7, 2.9)));
        assert_eq!(target.verdict, Verdict::Missed);
    }

    #[test]
    fn where_the_interval_counts_all_of_it_has_to_be_inside() {
        let of = |low, high| {
            let bound = Bound { least: 0.9, most: 1.1, unit: "" };
            Target::by_interval("a", "a".to_owned(), bound, Ok(found(low, 1.0, high))).verdict
        };
        assert_eq!(of(0.95, 1.05), Verdict::Met);
        assert_eq!(of(0.85, 1.05), Verdict::WithinNoise);
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
