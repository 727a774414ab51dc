//! Verdicts that may be looked for while the measurements still come in.
//!
//! Who looks again and again at an interval of 95 %, and stops when it shows a difference, is wrong
//! far more often than 5 times in 100. Here each look has a share of those 5 of its own, and the
//! shares of all looks there can ever be add up to them; so whenever one stops, the interval then
//! shown, and all shown before it, hold together with 95 %.
//!
//! The measurements are logarithms of ratios, one a block of runs in mirrored order (see
//! [`crate::order::block`]). When two commands are the same, a coin decided each one's sign, so the
//! intervals (signed ranks) hold under steps, drifts and heavy tails.
//!
//! Several comparisons of one race share its error evenly (Bonferroni), at each look and for a fixed
//! number of runs. That holds however they depend on each other, which they do by the contender they
//! have in common, and for all intervals at once, which stepwise methods such as Holm's do not give.

use crate::{Interval, shift_interval};

/// How often a whole race may be wrong.
pub const ALPHA: f64 = 0.05;

/// The first look, in blocks: the fewest that can be sure enough.
pub const FIRST_LOOK: usize = 8;

/// The share of [`ALPHA`] the first look has; each later one has [`DECAY`] of the one before.
const FIRST_SHARE: f64 = 0.2;
const DECAY: f64 = 1.0 - FIRST_SHARE;

/// What is known of how two commands compare.
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
        /// About how many more blocks it would take, if it goes on like this; `None` when that
        /// cannot be foreseen.
        more: Option<usize>,
    },
}

/// A look at the measurements so far.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Look {
    /// What is known.
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

/// What is wanted of a comparison.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Wanted {
    /// The smallest difference worth telling: 0.01 is 1 %.
    pub min_effect: f64,
    /// How many comparisons share [`ALPHA`], this one included.
    pub among: usize,
}

impl Wanted {
    fn alpha(&self) -> f64 {
        ALPHA / self.among.max(1) as f64
    }
}

/// Looks at logarithms of ratios (other ÷ base), one a block; to be called at the numbers of blocks
/// [`next_look`] gives.
pub fn look(log_ratios: &[f64], wanted: Wanted) -> Look {
    let share = alpha_at(log_ratios.len()) / ALPHA;
    judge(log_ratios, wanted, wanted.alpha() * share)
}

/// The one look of a race whose number of runs was fixed beforehand.
pub fn only_look(log_ratios: &[f64], wanted: Wanted) -> Look {
    judge(log_ratios, wanted, wanted.alpha())
}

/// The fewest blocks that can be sure enough where their number is fixed beforehand: all of them for
/// one side come by chance in 2 of 2ⁿ races.
fn fewest_blocks(alpha: f64) -> usize {
    (2.0 / alpha).log2().ceil() as usize
}

fn judge(log_ratios: &[f64], wanted: Wanted, alpha: f64) -> Look {
    let Some(shift) = shift_interval(log_ratios, alpha) else {
        let more = fewest_blocks(wanted.alpha()).saturating_sub(log_ratios.len()).max(1);
        return Look { verdict: Verdict::Undecided { more: Some(more) }, ratio: None };
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
        Verdict::Undecided { more: more_blocks(log_ratios.len(), shift, least) }
    };
    Look { verdict, ratio: Some(shift.map(f64::exp)) }
}

/// An interval narrows with the root of the blocks: how many until it excludes 1, or is within the
/// least effect, whichever is nearer.
fn more_blocks(blocks: usize, shift: Interval, least: f64) -> Option<usize> {
    let half = (shift.high - shift.low) / 2.0;
    let wanted = shift.point.abs().max(least - shift.point.abs());
    let times = (half / wanted).powi(2);
    // What is foreseen to take a thousandfold is not foreseen.
    (wanted > 0.0 && times < 1_000.0)
        .then(|| ((blocks as f64 * times).ceil() as usize).saturating_sub(blocks).max(1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::order::{Random, block};

    const ALONE: Wanted = Wanted { min_effect: 0.01, among: 1 };

    /// Races two commands whose run number `at` takes what `time` says of it and of who runs, until
    /// a verdict or `most` blocks. Returns the verdict and the blocks it took.
    fn race(
        random: &mut Random,
        most: usize,
        time: &mut dyn FnMut(&mut Random, usize, usize) -> f64,
    ) -> (Verdict, usize) {
        let (mut logs, mut at, mut due) = (Vec::new(), 0, next_look(0));
        loop {
            let mut log = 0.0;
            for who in block(2, random) {
                let sign = if who == 0 { -0.5 } else { 0.5 };
                log += sign * time(random, at, who).ln();
                at += 1;
            }
            logs.push(log);
            if logs.len() == due || logs.len() == most {
                let verdict = look(&logs, ALONE).verdict;
                if logs.len() == most || !matches!(verdict, Verdict::Undecided { .. }) {
                    return (verdict, logs.len());
                }
                due = next_look(due);
            }
        }
    }

    fn differences(races: usize, time: &mut dyn FnMut(&mut Random, usize, usize) -> f64) -> usize {
        let mut random = Random::new(17);
        (0..races)
            .filter(|_| {
                let (verdict, _) = race(&mut random, 64, time);
                matches!(verdict, Verdict::Faster | Verdict::Slower)
            })
            .count()
    }

    /// A command against itself, 1,000 times under each kind of noise: at most 5 in 100 may find a
    /// difference.
    #[test]
    fn a_command_is_no_faster_than_itself() {
        type Noise = dyn FnMut(&mut Random, usize, usize) -> f64;
        let mut quiet = |r: &mut Random, _, _| 1.0 + 0.01 * r.normal();
        let mut noisy = |r: &mut Random, _, _| (0.3 * r.normal()).exp();
        let mut step = |r: &mut Random, at: usize, _| {
            let load = if at < 21 { 1.0 } else { 1.4 };
            load * (1.0 + 0.02 * r.normal())
        };
        let mut drift =
            |r: &mut Random, at: usize, _| (1.0 + 0.005 * at as f64) * (1.0 + 0.01 * r.normal());
        let mut heavy = |r: &mut Random, _, _| (0.02 * r.heavy()).exp();
        let mut bursts =
            |r: &mut Random, at: usize, _| if at % 4 < 2 { 1.5 } else { 1.0 } + 0.01 * r.normal();
        let noises: [(&str, &mut Noise); 6] = [
            ("quiet", &mut quiet),
            ("noisy", &mut noisy),
            ("step", &mut step),
            ("drift", &mut drift),
            ("heavy", &mut heavy),
            ("bursts", &mut bursts),
        ];
        for (name, noise) in noises {
            let wrong = differences(1_000, noise);
            assert!(wrong <= 50, "{name}: {wrong} of 1000");
        }
    }

    #[test]
    fn a_difference_of_3_percent_is_found_in_1_percent_of_noise_within_30_pairs() {
        let mut random = Random::new(23);
        let mut time = |r: &mut Random, _, who: usize| {
            (1.0 + 0.01 * r.normal()) * if who == 1 { 1.03 } else { 1.0 }
        };
        let found =
            (0..1_000).filter(|_| race(&mut random, 15, &mut time).0 == Verdict::Slower).count();
        assert!(found >= 900, "{found} of 1000");
    }

    #[test]
    fn what_is_the_same_is_said_to_be() {
        let mut random = Random::new(29);
        let mut time = |r: &mut Random, _, _| 1.0 + 0.005 * r.normal();
        let same = (0..200)
            .filter(|_| race(&mut random, 64, &mut time).0 == Verdict::NoDifference)
            .count();
        assert!(same >= 180, "{same} of 200");
    }

    #[test]
    fn all_looks_together_have_the_error_of_one() {
        let mut looks = vec![next_look(0)];
        while looks.len() < 100 {
            looks.push(next_look(*looks.last().unwrap_or(&0)));
        }
        assert_eq!(looks[..6], [8, 11, 15, 20, 27, 36]);
        let shares: f64 = looks.iter().map(|blocks| alpha_at(*blocks)).sum();
        assert!(shares <= ALPHA && shares > 0.999 * ALPHA, "{shares}");
        // Blocks between two looks do not make the earlier one cheaper.
        assert!((alpha_at(10) - alpha_at(8)).abs() < f64::EPSILON);
    }

    /// Races `others` against a base, each of which takes what `time` says, for `most` blocks; the
    /// verdicts of every look. `among` share the error.
    fn field(
        random: &mut Random,
        [others, most, among]: [usize; 3],
        time: &mut dyn FnMut(&mut Random, usize) -> f64,
    ) -> Vec<Vec<Verdict>> {
        let mut seen = Vec::new();
        let mut logs = vec![Vec::new(); others];
        let mut due = next_look(0);
        loop {
            let mut sums = vec![0.0; others + 1];
            for who in block(others + 1, random) {
                sums[who] += time(random, who).ln() / 2.0;
            }
            logs.iter_mut().zip(&sums[1..]).for_each(|(logs, sum)| logs.push(sum - sums[0]));
            let blocks = logs[0].len();
            if blocks != due && blocks != most {
                continue;
            }
            due = next_look(blocks);
            let wanted = Wanted { min_effect: 0.01, among };
            seen.push(logs.iter().map(|logs| look(logs, wanted).verdict).collect());
            if blocks == most {
                return seen;
            }
        }
    }

    fn is_difference(verdict: &Verdict) -> bool {
        matches!(verdict, Verdict::Faster | Verdict::Slower)
    }

    /// Eight commands that are the same as the first: in at most 5 of 100 races may any of the eight
    /// be said to differ, at any look. Were each allowed 5 of its own, it would be more.
    #[test]
    fn the_comparisons_of_a_race_are_wrong_together_as_seldom_as_one_alone() {
        type Noise = dyn FnMut(&mut Random, usize) -> f64;
        let mut quiet = |r: &mut Random, _| 1.0 + 0.03 * r.normal();
        let mut heavy = |r: &mut Random, _| (0.1 * r.heavy()).exp();
        let noises: [&mut Noise; 2] = [&mut quiet, &mut heavy];
        for noise in noises {
            let mut wrong = |among| {
                let mut random = Random::new(31);
                (0..300)
                    .filter(|_| {
                        let seen = field(&mut random, [8, 27, among], noise);
                        seen.iter().flatten().any(is_difference)
                    })
                    .count()
            };
            let (shared, each) = (wrong(8), wrong(1));
            assert!(shared <= 15, "{shared} of 300");
            assert!(each > 30, "{each} of 300");
        }
    }

    #[test]
    fn what_differs_is_found_among_others() {
        let mut random = Random::new(37);
        let mut time =
            |r: &mut Random, who: usize| (1.0 + 0.01 * r.normal()) * [1.0, 1.03, 1.0, 0.9][who];
        let found = (0..200)
            .filter(|_| {
                let seen = field(&mut random, [3, 15, 3], &mut time);
                let verdicts = &seen[seen.len() - 1];
                verdicts[0] == Verdict::Slower && verdicts[2] == Verdict::Faster
            })
            .count();
        assert!(found >= 180, "{found} of 200");
    }

    #[test]
    fn too_few_blocks_decide_nothing_and_more_are_foreseen() {
        let too_few = look(&[0.1; 7], ALONE);
        assert_eq!(too_few.ratio, None);
        let logs: Vec<f64> = (0..8).map(|n| 0.02 + if n % 2 == 0 { 0.05 } else { -0.05 }).collect();
        let Verdict::Undecided { more: Some(more) } = look(&logs, ALONE).verdict else {
            panic!("{:?}", look(&logs, ALONE))
        };
        assert!((8..200).contains(&more), "{more}");
        assert_eq!(look(&[0.0; 8], ALONE).verdict, Verdict::NoDifference);
        assert_eq!(only_look(&[0.1; 6], ALONE).verdict, Verdict::Slower);
    }

    #[test]
    fn the_fewest_blocks_that_can_tell_are_those_that_are_foreseen() {
        for among in 1..=25 {
            let wanted = Wanted { min_effect: 0.01, among };
            let Verdict::Undecided { more: Some(more) } = only_look(&[0.1; 2], wanted).verdict
            else {
                panic!("{among}")
            };
            assert_eq!(only_look(&vec![0.1; 1 + more], wanted).ratio, None, "{among}");
            assert_eq!(only_look(&vec![0.1; 2 + more], wanted).verdict, Verdict::Slower);
        }
    }
}
