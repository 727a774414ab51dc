//! The rates that `iotomy race` must reach, and the number of races needed to judge them.

use iotomy_record::ClaimVerdict;

use crate::stats::wilson;

/// The default number of races of each racer in each field: the target is still met with two false positives. With
/// fewer than 73 races, no result can meet it.
pub(crate) const RACES: u32 = 150;

/// The expected result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ExpectedResult {
    /// False-positive rate: a difference is found between a command and itself at most this often.
    FalseAlarms,
    /// Detection rate: an existing difference is found at least this often.
    Power,
}

impl ExpectedResult {
    /// Returns the expected result for the target with this name in records.
    pub(crate) fn of_claim(id: &str) -> Self {
        if id == Self::POWER { Self::Power } else { Self::FalseAlarms }
    }

    /// The name of the one target of [`ExpectedResult::Power`].
    pub(crate) const POWER: &str = "power";

    fn share(self) -> f64 {
        match self {
            Self::FalseAlarms => 0.05,
            Self::Power => 0.9,
        }
    }

    /// Returns the rate in percent.
    pub(crate) fn percent(self) -> String {
        format!("{:.0} %", 100.0 * self.share())
    }

    /// Returns the text for the column of bounds.
    pub(crate) fn bound(self) -> String {
        match self {
            Self::FalseAlarms => format!("at most {}", self.percent()),
            Self::Power => format!("{} or more", self.percent()),
        }
    }

    /// Judges by the whole interval of the rate.
    pub(crate) fn judge(self, hits: usize, races: usize) -> ClaimVerdict {
        let [low, high] = wilson(hits, races);
        let [is_inside, is_outside] = match self {
            Self::FalseAlarms => [high <= self.share(), low > self.share()],
            Self::Power => [low >= self.share(), high < self.share()],
        };
        match (is_inside, is_outside) {
            (true, _) => ClaimVerdict::Holds,
            (_, true) => ClaimVerdict::Fails,
            _ => ClaimVerdict::Inconclusive,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_many_races_as_are_made_by_default_can_meet_each_target() {
        let races = RACES as usize;
        let alarms = |hits, races| ExpectedResult::FalseAlarms.judge(hits, races);
        assert_eq!(alarms(2, races), ClaimVerdict::Holds);
        assert_eq!(alarms(5, races), ClaimVerdict::Inconclusive);
        assert_eq!(alarms(20, races), ClaimVerdict::Fails);
        assert_eq!(
            [alarms(0, 72), alarms(0, 73)],
            [ClaimVerdict::Inconclusive, ClaimVerdict::Holds]
        );
        let power = |hits| ExpectedResult::Power.judge(hits, races);
        assert_eq!(
            [power(races - 6), power(races - 15), power(races / 2)],
            [ClaimVerdict::Holds, ClaimVerdict::Inconclusive, ClaimVerdict::Fails]
        );
        assert_eq!(ExpectedResult::FalseAlarms.bound(), "at most 5 %");
        assert_eq!(ExpectedResult::Power.bound(), "90 % or more");
    }
}
