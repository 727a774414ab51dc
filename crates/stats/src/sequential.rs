//! Verdicts that may be looked for while the measurements still come in.
//!
//! A test that looks again and again at a 95 % interval, and stops when it shows a difference, is
//! wrong far more often than 5 times in 100. Here each interim test has its own share of those 5,
//! and the shares of all possible tests add up to them; so whenever a run stops, the interval shown
//! then, and all shown before, hold together with 95 %.
//!
//! The measurements are logarithms of ratios, one a block of runs in mirrored order (see
//! [`crate::order::block`]). When two commands are the same, a coin decided each one's sign, so the
//! intervals (signed ranks) hold under steps, drifts and heavy tails.
//!
//! A fixed number of runs may be too few blocks for signed ranks to be that sure. Then rank sums of all runs
//! are asked (Mann and Whitney's exact test), which 4 runs of each can satisfy. They rest on more: that runs
//! which follow each other are no less alike than others. Noise that comes in bursts or drifts is like that,
//! and the mirrored order makes them wrong less often still.
//!
//! Several comparisons of one race share its error evenly (Bonferroni), at each look and for a fixed
//! number of runs. That holds however they depend on each other, which they do by the contender they
//! have in common, and for all intervals at once, which stepwise methods such as Holm's do not give.

use crate::unpaired::fewest_each;
use crate::{Interval, shift_between, shift_interval};

/// How often a whole race may be wrong.
pub const ALPHA: f64 = 0.05;

/// The first look, in blocks: the fewest that can be sure enough.
pub const FIRST_LOOK: usize = 8;

/// The share of [`ALPHA`] the first look has; each later one has [`DECAY`] of the one before.
const FIRST_SHARE: f64 = 0.2;
const DECAY: f64 = 1.0 - FIRST_SHARE;

/// The result of comparing two commands.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Verdict {
    /// The other takes less than the base.
    Faster,
    /// The other takes more than the base.
    Slower,
    /// The ratio is nearer to 1 than the least effect asked for.
    NoDifference,
    /// None of these can be said yet.
    Undecided {
        /// About how many more runs of each it would take, if it goes on like this; `None` when that
        /// cannot be foreseen.
        more: Option<usize>,
    },
}

/// A look at the measurements so far.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct InterimTest {
    /// The result.
    pub verdict: Verdict,
    /// The ratio, other ÷ base, and its interval at this look; `None` with too few blocks, of which
    /// the verdict then foresees the fewest that could tell.
    pub ratio: Option<Interval>,
}

/// How many blocks the look after one at `blocks` has; the first with 0.
pub fn next_look(blocks: usize) -> usize {
    let mut look = FIRST_LOOK;
    while look <= blocks {
        look += look.div_ceil(3);
    }
    look
}

/// The chance of error of the look at `blocks`: that of the last one due by then.
fn alpha_at(blocks: usize) -> f64 {
    let (mut look, mut share) = (FIRST_LOOK, FIRST_SHARE);
    while next_look(look) <= blocks {
        look = next_look(look);
        share *= DECAY;
    }
    ALPHA * share
}

/// The requirements of a comparison.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Requirements {
    /// The smallest difference worth telling: 0.01 is 1 %.
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
    /// Ratios (other ÷ base), one a block.
    pub ratios: &'a [f64],
    /// Every run of the base in these blocks.
    pub base: &'a [f64],
    /// As many of the other.
    pub other: &'a [f64],
}

/// Looks at the measurements so far; to be called at the numbers of blocks [`next_look`] gives. Earlier it
/// is the last look of a race that was cut short, and has the share of the first.
pub fn interim_test(measured: Measured<'_>, wanted: Requirements) -> InterimTest {
    let blocks = measured.ratios.len();
    let share = alpha_at(blocks) / ALPHA;
    judge(measured, wanted, wanted.alpha() * share, blocks < FIRST_LOOK)
}

/// The one look of a race whose number of runs was fixed beforehand.
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

/// An interval narrows with the root of the runs: how many more until it excludes 1, or is within the
/// least effect, whichever is nearer; blocks are of two.
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
