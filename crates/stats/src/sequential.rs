//! Verdicts that may be tested repeatedly while measurements still come in.
//!
//! A test that looks again and again at a 95 % interval, and stops when it shows a difference, is
//! wrong far more often than 5 times in 100. Here each interim test has its own share of those 5,
//! and the shares of all possible tests add up to them; so whenever a run stops, the interval shown
//! then, and all shown before, hold together with 95 %.
//!
//! The measurements are logarithms of ratios, one a round of runs in mirrored order (see
//! [`crate::order::round`]). When two commands are the same, a coin decided each one's sign, so the
//! intervals (signed ranks) hold under steps, drifts and heavy tails.
//!
//! With a fixed number of runs there may be too few rounds for signed ranks to be significant. Then
//! rank sums of all runs are used (Mann and Whitney's exact test), for which 4 runs of each
//! suffice. They assume more: that consecutive runs are at least as similar as others. Bursts and
//! drifts are like that, and the mirrored order makes errors rarer still.
//!
//! Several comparisons of one race share its error evenly (Bonferroni), at each interim test and
//! for a fixed number of runs. That holds for any dependence between them, which they have through
//! their common command, and for all intervals at once, unlike stepwise methods such as Holm's.

use crate::unpaired::fewest_each;
use crate::{Interval, shift_between, shift_interval};

/// How often a whole race may be wrong.
pub const ALPHA: f64 = 0.05;

/// The first interim test, in rounds: the fewest that can be significant.
pub const FIRST_LOOK: usize = 8;

/// The share of [`ALPHA`] for the first interim test; each later one has [`DECAY`] of the one
/// before.
const FIRST_SHARE: f64 = 0.2;
const DECAY: f64 = 1.0 - FIRST_SHARE;

/// The result of comparing two commands.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Verdict {
    /// The other takes less than the base.
    Faster,
    /// The other takes more than the base.
    Slower,
    /// The ratio is nearer to 1 than the smallest relevant effect.
    NoDifference,
    /// No verdict yet.
    Undecided {
        /// About how many more runs of each it would take, if it goes on like this; `None` when that
        /// cannot be foreseen.
        more: Option<usize>,
    },
}

/// An interim test.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct InterimTest {
    /// The result.
    pub verdict: Verdict,
    /// The ratio, other ÷ base, and its interval at this test; `None` with too few rounds, for
    /// which the verdict then forecasts the fewest that could be significant.
    pub ratio: Option<Interval>,
}

/// The number of rounds of the test after one at `rounds`; the first for 0.
pub fn next_look(rounds: usize) -> usize {
    let mut look = FIRST_LOOK;
    while look <= rounds {
        look += look.div_ceil(3);
    }
    look
}

/// The error rate of the test at `rounds`: that of the last one due by then.
fn alpha_at(rounds: usize) -> f64 {
    let (mut look, mut share) = (FIRST_LOOK, FIRST_SHARE);
    while next_look(look) <= rounds {
        look = next_look(look);
        share *= DECAY;
    }
    ALPHA * share
}

/// The requirements of a comparison.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Requirements {
    /// The smallest relevant difference: 0.01 is 1 %.
    pub min_effect: f64,
    /// How many comparisons share [`ALPHA`], this one included.
    pub among: usize,
}

impl Requirements {
    fn alpha(&self) -> f64 {
        ALPHA / self.among.max(1) as f64
    }
}

/// The measurements of a race, as logarithms.
#[derive(Debug, Clone, Copy)]
pub struct Measured<'a> {
    /// Ratios (other ÷ base), one a round.
    pub ratios: &'a [f64],
    /// Every run of the base in these rounds.
    pub base: &'a [f64],
    /// As many of the other.
    pub other: &'a [f64],
}

/// Tests the measurements so far; to be called at the numbers of rounds that [`next_look`] returns.
/// Earlier it is the last test of a race that was cut short, with the share of the first.
pub fn interim_test(measured: Measured<'_>, wanted: Requirements) -> InterimTest {
    let rounds = measured.ratios.len();
    let share = alpha_at(rounds) / ALPHA;
    judge(measured, wanted, wanted.alpha() * share, rounds < FIRST_LOOK)
}

/// The only test of a race whose number of runs was fixed beforehand.
pub fn single_test(measured: Measured<'_>, wanted: Requirements) -> InterimTest {
    judge(measured, wanted, wanted.alpha(), true)
}

fn judge(
    measured: Measured<'_>,
    wanted: Requirements,
    alpha: f64,
    may_be_few: bool,
) -> InterimTest {
    let runs = measured.base.len();
    let by_blocks = shift_interval(measured.ratios, alpha);
    let by_runs = || shift_between(measured.base, measured.other, alpha);
    let Some(shift) = by_blocks.or_else(|| by_runs().filter(|_| may_be_few)) else {
        let fewest = fewest_each(wanted.alpha());
        let more = fewest.map(|fewest| fewest.saturating_sub(runs).max(1));
        return InterimTest { verdict: Verdict::Undecided { more }, ratio: None };
    };
    let min_effect = wanted.min_effect;
    let least = min_effect.ln_1p();
    let verdict = if shift.low >= -least && shift.high <= least {
        Verdict::NoDifference
    } else if shift.high < 0.0 {
        Verdict::Faster
    } else if shift.low > 0.0 {
        Verdict::Slower
    } else {
        Verdict::Undecided { more: more_runs(runs, shift, least) }
    };
    InterimTest { verdict, ratio: Some(shift.map(f64::exp)) }
}

/// An interval narrows with the square root of the runs: the number of further runs until it
/// excludes 1, or lies within the smallest relevant effect, whichever is nearer; rounds have two.
fn more_runs(runs: usize, shift: Interval, least: f64) -> Option<usize> {
    let half = (shift.high - shift.low) / 2.0;
    let wanted = shift.point.abs().max(least - shift.point.abs());
    let times = (half / wanted).powi(2);
    // A forecast of a thousand times the present length is none.
    (wanted > 0.0 && times < 1_000.0).then(|| {
        let more = ((runs as f64 * times).ceil() as usize).saturating_sub(runs).max(1);
        more.next_multiple_of(2)
    })
}

#[cfg(test)]
#[path = "sequential_tests.rs"]
mod tests;
