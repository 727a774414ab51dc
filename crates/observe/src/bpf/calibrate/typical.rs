//! The arithmetic of a calibration: the typical time of a round of each kind, and what watching adds to it.

use crate::price::{Price, Range};

/// The time of each round, in ns, by kind.
#[derive(Debug, Clone, Default)]
pub(super) struct Rounds {
    /// A call.
    pub(super) tight: Vec<f64>,
    /// A write and a read, through one socket after another.
    pub(super) warm: Vec<f64>,
    /// The same, each of the two calls with cold caches.
    pub(super) cold: Vec<f64>,
    /// A write and a read on both sides, and two switches.
    pub(super) talk: Vec<f64>,
    pub(super) cold_talk: Vec<f64>,
}

impl Rounds {
    pub(super) fn are_complete(&self) -> bool {
        let all = [&self.tight, &self.warm, &self.cold, &self.talk, &self.cold_talk];
        all.iter().all(|times| !times.is_empty())
    }

    fn typical(&self) -> Typical {
        Typical {
            tight: median(&self.tight),
            warm: median(&self.warm),
            cold: median(&self.cold),
            talk: median(&self.talk),
            cold_talk: median(&self.cold_talk),
        }
    }
}

/// The median round of each kind.
#[derive(Debug, Clone, Copy)]
struct Typical {
    tight: f64,
    warm: f64,
    cold: f64,
    talk: f64,
    cold_talk: f64,
}

impl Typical {
    fn least(self, other: Self) -> Self {
        Self {
            tight: self.tight.min(other.tight),
            warm: self.warm.min(other.warm),
            cold: self.cold.min(other.cold),
            talk: self.talk.min(other.talk),
            cold_talk: self.cold_talk.min(other.cold_talk),
        }
    }
}

/// The rounds with nothing attached, made twice; of a thread that is not watched; of one that is; and of one whose calls are let
/// pass.
#[derive(Debug)]
pub(super) struct Phases {
    pub(super) bare: [Rounds; 2],
    pub(super) unwatched: Rounds,
    pub(super) watched: Rounds,
    pub(super) passed: Option<Rounds>,
}

/// The ends of a range are widened: two calibrations of one machine differ by a tenth.
const AT_LEAST: f64 = 0.9;
const AT_MOST: f64 = 1.25;

impl Phases {
    /// What the rounds took longer than the bare ones.
    pub(super) fn price(&self) -> Price {
        let [one, other] = &self.bare;
        let bare = one.typical().least(other.typical());
        let of = |rounds: &Rounds| call_and_switch(bare, rounds.typical());
        // A call that is let pass has what an unwatched one has, and one that is counted has what both have.
        let unwatched = of(&self.unwatched).0;
        let passed = self.passed.as_ref().map(|rounds| of(rounds).0.at_least(unwatched));
        let (call, switch) = of(&self.watched);
        let call = call.at_least(passed.unwrap_or(unwatched));
        Price { call, switch, passed: passed.unwrap_or(call), unwatched, bare_call_ns: bare.tight }
    }
}

fn call_and_switch(bare: Typical, seen: Typical) -> (Range, Range) {
    let (warm, cold) = ((seen.warm - bare.warm) / 2.0, (seen.cold - bare.cold) / 2.0);
    let tight = seen.tight - bare.tight;
    let range = |low, high| Range::between(AT_LEAST * low, AT_MOST * high);
    let switch = (seen.talk - bare.talk) / 2.0 - 2.0 * warm;
    // Three of the four calls find what the first has brought into the caches.
    let cold_switch = (seen.cold_talk - bare.cold_talk - cold - 3.0 * warm) / 2.0;
    (range(tight.min(warm), cold.max(warm)), range(switch, cold_switch))
}

fn median(times: &[f64]) -> f64 {
    let mut sorted = times.to_vec();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    match sorted.get(middle) {
        Some(upper) if sorted.len().is_multiple_of(2) => f64::midpoint(sorted[middle - 1], *upper),
        Some(middle) => *middle,
        None => f64::NAN,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rounds of which most take these times, and some were disturbed or lucky.
    fn rounds([tight, warm, cold, talk, cold_talk]: [f64; 5]) -> Rounds {
        let times = |ns: f64| vec![ns, 90.0 * ns, ns, 0.1 * ns, ns];
        Rounds {
            tight: times(tight),
            warm: times(warm),
            cold: times(cold),
            talk: times(talk),
            cold_talk: times(cold_talk),
        }
    }

    const BARE: [f64; 5] = [80.0, 1_500.0, 4_000.0, 4_000.0, 9_000.0];

    fn phases(watched: [f64; 5], passed: Option<[f64; 5]>) -> Price {
        let unwatched = [BARE[0] + 100.0, BARE[1] + 240.0, BARE[2] + 600.0, BARE[3], BARE[4]];
        let phases = Phases {
            bare: [rounds(BARE.map(|ns| 3.0 * ns)), rounds(BARE)],
            unwatched: rounds(unwatched),
            watched: rounds(watched),
            passed: passed.map(rounds),
        };
        phases.price()
    }

    #[test]
    fn what_is_added_to_typical_rounds_is_shared_out_among_their_calls_and_switches() {
        // 200 a tight call, 250 a warm one, 600 a cold one; a switch 300, or 700 with cold caches.
        let price = phases(
            [
                280.0,
                2_000.0,
                5_200.0,
                4_000.0 + 4.0 * 250.0 + 600.0,
                9_000.0 + 600.0 + 3.0 * 250.0 + 1_400.0,
            ],
            Some([BARE[0] + 120.0, BARE[1] + 260.0, BARE[2] + 800.0, BARE[3], BARE[4]]),
        );
        assert_eq!(price.call.ends(), [0.9 * 200.0, 1.25 * 600.0]);
        assert_eq!(price.switch.ends(), [0.9 * 300.0, 1.25 * 700.0]);
        assert_eq!(price.passed.ends(), [0.9 * 120.0, 1.25 * 400.0]);
        assert_eq!(price.unwatched.ends(), [0.9 * 100.0, 1.25 * 300.0]);
        assert_eq!(price.bare_call_ns, 80.0);
    }

    #[test]
    fn calls_left_out_cost_as_much_as_others_where_they_are_not_let_pass() {
        let price = phases([280.0, 2_000.0, 5_200.0, 5_600.0, 12_100.0], None);
        assert_eq!(price.passed, price.call);
    }

    #[test]
    fn a_disturbed_calibration_makes_no_overhead_negative_and_none_a_single_number() {
        let price = phases([70.0, 1_400.0, 3_000.0, 1_000.0, 2.0], None);
        for range in [price.call, price.switch, price.passed, price.unwatched] {
            let [low, high] = range.ends();
            assert!(0.0 <= low && low < high, "{range:?}");
        }
    }

    #[test]
    fn no_call_has_less_overhead_than_one_that_is_not_watched() {
        let disturbed = [BARE[0] + 1.0, BARE[1], BARE[2] + 2.0, BARE[3], BARE[4]];
        let price = phases(disturbed, Some(disturbed));
        assert_eq!(price.unwatched.ends(), [0.9 * 100.0, 1.25 * 300.0]);
        assert_eq!(price.passed, price.unwatched);
        assert_eq!(price.call, price.unwatched);
    }

    #[test]
    fn the_median_is_the_middle_or_the_mean_of_two() {
        assert_eq!(median(&[5.0, 1.0, 3.0]), 3.0);
        assert_eq!(median(&[5.0, 1.0, 3.0, 4.0]), 3.5);
    }
}
