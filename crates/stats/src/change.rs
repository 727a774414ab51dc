//! Where a series of measurements changed its level for good.
//!
//! Two tests detect it. One uses ranks alone, so neither an outlier nor the shape of the noise
//! matters, and its error rate comes from shuffling the series itself: whatever the noise, a series
//! whose order means nothing is called changed at the requested rate. Where neighbours are
//! correlated, as on a machine that wanders, it requires more. A few measurements cannot be
//! significant by ranks, however far apart they are: three of nine are the lowest by chance in 1 of
//! 84 series. So the other test uses the distance: a step that is many times the variation on its
//! sides is a change.

use crate::order::Random;
use crate::student::share_above;

/// The fewest measurements on each side of a change: one outlier, or two, are not a new level.
const LEAST: usize = 3;

/// Shuffles of a series. With 1,999 a chance of 1 in 100 is distinguishable from 2 in 100.
const SHUFFLES: usize = 1_999;

/// The least step that is called far, and its share of the chance of a change that is none: a step that
/// is far is so by many times.
const FAR: f64 = 0.05;
const FAR_SHARE: f64 = 0.1;

/// The places of the first measurement of each new level, in order. A series that has only one level
/// is given a change with a chance of `alpha`. `seed` repeats the answer. The work grows with the square
/// of the length.
pub fn changes(series: &[f64], alpha: f64, seed: u64) -> Vec<usize> {
    let mut random = Random::new(seed);
    let mut found = Vec::new();
    let mut open = vec![(0, series.len())];
    while let Some((start, end)) = open.pop() {
        // A stretch, and not one split: that a series rose and fell again shows in no split of it.
        let part = &series[start..end];
        let Some((from, to)) = changed(part, &stretches(part.len()), alpha, &mut random) else {
            continue;
        };
        let ends = [start, start + from, start + to, end];
        found.extend(ends[1..3].iter().filter(|at| **at > start && **at < end));
        open.extend(ends.windows(2).map(|pair| (pair[0], pair[1])).filter(|(a, b)| a < b));
    }
    found.sort_unstable();
    found.dedup();
    confirmed(series, found, alpha, &mut random)
}

/// Those that are changes between their neighbours too, each where it divides these best.
fn confirmed(series: &[f64], mut found: Vec<usize>, alpha: f64, random: &mut Random) -> Vec<usize> {
    let mut at = 0;
    while at < found.len() {
        let start = at.checked_sub(1).map_or(0, |before| found[before]);
        let end = found.get(at + 1).copied().unwrap_or(series.len());
        let part = &series[start..end];
        match changed(part, &splits(part.len()), alpha, random) {
            Some((place, _)) => {
                found[at] = start + place;
                at += 1;
            }
            None => {
                found.remove(at);
            }
        }
    }
    found
}

/// A part of a series, from its first place to behind its last.
type Segment = (usize, usize);

/// The part that has a level of its own, by either test.
fn changed(series: &[f64], parts: &[Segment], alpha: f64, random: &mut Random) -> Option<Segment> {
    let by_ranks = beyond_chance(series, parts, alpha, random);
    by_ranks.or_else(|| far_beyond(series, parts, alpha))
}

/// The part that differs most, if it does so more than chance would make it.
fn beyond_chance(
    series: &[f64],
    parts: &[Segment],
    alpha: f64,
    random: &mut Random,
) -> Option<Segment> {
    if parts.is_empty() {
        return None;
    }
    let mut ranks = ranks(series);
    let (part, apart) = furthest(&ranks, parts);
    let apart = apart / alike(&ranks, part).sqrt();
    let may = (alpha * (SHUFFLES + 1) as f64).floor() as usize;
    let mut as_far = 1;
    for _ in 0..SHUFFLES {
        if as_far > may {
            return None;
        }
        random.shuffle(&mut ranks);
        // A difference by rounding alone counts as equally far.
        as_far += usize::from(furthest(&ranks, parts).1 >= apart * (1.0 - 1e-9));
    }
    (as_far <= may).then_some(part)
}

/// The factor by which the variance of a mean exceeds that of independent measurements, since
/// neighbours are correlated (after the part gets a level of its own).
fn alike(ranks: &[f64], (from, to): Segment) -> f64 {
    let is_in = |at: usize| (from..to).contains(&at);
    let level = |inside: bool| {
        let mine: Vec<f64> =
            (0..ranks.len()).filter(|at| is_in(*at) == inside).map(|at| ranks[at]).collect();
        mine.iter().sum::<f64>() / mine.len().max(1) as f64
    };
    let levels = [level(false), level(true)];
    let off: Vec<f64> =
        ranks.iter().enumerate().map(|(at, rank)| rank - levels[usize::from(is_in(at))]).collect();
    let all: f64 = off.iter().map(|one| one * one).sum();
    let near: f64 = off.windows(2).map(|pair| pair[0] * pair[1]).sum();
    if near <= 0.0 {
        return 1.0;
    }
    let together = near / all;
    // It is found too low, the more so in short series and since the part was chosen to fit.
    let together = (together + 4.0 * (1.0 + 3.0 * together) / ranks.len() as f64).min(0.9);
    (1.0 + together) / (1.0 - together)
}

/// The part whose mean is far from that of the rest, compared with the variation within both
/// (Student's t, corrected for the number of examined parts), if there is one. Ratios are used, so
/// that it does not matter on which side the larger figures are.
fn far_beyond(series: &[f64], parts: &[Segment], alpha: f64) -> Option<Segment> {
    if series.iter().any(|one| *one <= 0.0 || !one.is_finite()) {
        return None;
    }
    // Around the first, so that equals differ by nothing.
    let logs: Vec<f64> = series.iter().map(|one| (one / series[0]).ln()).collect();
    let (sums, squares) =
        (sums(&logs), self::sums(&logs.iter().map(|x| x * x).collect::<Vec<_>>()));
    let (count, all, all_squares) = (logs.len(), sums[logs.len()], squares[logs.len()]);
    let mut most = ((0, 0), 0.0, 0.0);
    for (from, to) in parts.iter().copied() {
        let (inside, outside) = ((to - from) as f64, (count - (to - from)) as f64);
        let sum = sums[to] - sums[from];
        let step = (sum / inside - (all - sum) / outside).abs();
        let between = sum * sum / inside + (all - sum).powi(2) / outside;
        let spread = (all_squares - between).max(0.0) / (count - 2) as f64;
        // Values that differ by rounding alone are equal.
        let spread = spread.max(1e-12).sqrt();
        let apart = step / (spread * (1.0 / inside + 1.0 / outside).sqrt());
        if apart > most.2 {
            most = ((from, to), step, apart);
        }
    }
    let (part, step, apart) = most;
    let chance = 2.0 * parts.len() as f64 * share_above(apart, count.saturating_sub(2));
    (step > FAR.ln_1p() && chance <= alpha * FAR_SHARE).then_some(part)
}

/// The parts that may have a level of their own, each with two ends or at one of the series'.
fn stretches(count: usize) -> Vec<Segment> {
    let mut found = Vec::new();
    for from in (0..=count).filter(|from| *from == 0 || *from >= LEAST) {
        for to in from + LEAST..=count {
            let rest = count - to;
            if from + rest >= LEAST && (rest == 0 || rest >= LEAST) {
                found.push((from, to));
            }
        }
    }
    found
}

/// The second parts of all splits.
fn splits(count: usize) -> Vec<Segment> {
    (LEAST..(count + 1).saturating_sub(LEAST)).map(|at| (at, count)).collect()
}

/// The part whose ranks are furthest from the others'.
fn furthest(ranks: &[f64], parts: &[Segment]) -> (Segment, f64) {
    let count = ranks.len();
    let sums = sums(ranks);
    let spreads: Vec<f64> = (0..=count).map(|length| spread(length, count)).collect();
    let mut most = ((0, count), -1.0);
    for (from, to) in parts.iter().copied() {
        let apart = off(sums[to] - sums[from], to - from, count) / spreads[to - from];
        if apart > most.1 {
            most = ((from, to), apart);
        }
    }
    most
}

/// The sums of the first 0, 1, 2… ranks.
fn sums(ranks: &[f64]) -> Vec<f64> {
    let mut sum = 0.0;
    let rest = ranks.iter().map(|rank| {
        sum += rank;
        sum
    });
    std::iter::once(0.0).chain(rest).collect()
}

/// The distance of a sum of ranks from that of as many random ranks.
fn off(sum: f64, length: usize, count: usize) -> f64 {
    (sum - length as f64 * (count as f64 + 1.0) / 2.0).abs()
}

/// The standard deviation of the sum of this many random ranks.
fn spread(length: usize, count: usize) -> f64 {
    let (length, count) = (length as f64, count as f64);
    (length * (count - length) * (count + 1.0) / 12.0).sqrt()
}

/// The rank of each, from 1; equals share the middle one of theirs.
fn ranks(series: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..series.len()).collect();
    order.sort_by(|a, b| series[*a].total_cmp(&series[*b]));
    let mut ranks = vec![0.0; series.len()];
    let mut at = 0;
    while at < order.len() {
        let equal = order[at..].iter().take_while(|one| series[**one] == series[order[at]]);
        let end = at + equal.count().max(1);
        for one in &order[at..end] {
            ranks[*one] = (at + end + 1) as f64 / 2.0;
        }
        at = end;
    }
    ranks
}

#[cfg(test)]
#[path = "change_tests.rs"]
mod tests;
