//! Where a series of measurements changed its level for good.
//!
//! Ranks alone are looked at, so neither an outlier nor the shape of the noise matters, and chance is
//! dealt out by shuffling the series itself: whatever the noise is like, a series whose order means
//! nothing is called changed with the chance that was asked for. A series that wanders, each value near
//! the one before, is not such a series.

use crate::order::Random;

/// The fewest measurements on each side of a change: one outlier, or two, are no new level.
const LEAST: usize = 3;

/// Shuffles of a series. With 1,999 a chance of 1 in 100 is told from 2 in 100.
const SHUFFLES: usize = 1_999;

/// The places of the first measurement of each new level, in order. A series that has only one level
/// is given a change with a chance of `alpha`. `seed` repeats the answer. The work grows with the square
/// of the length.
pub fn changes(series: &[f64], alpha: f64, seed: u64) -> Vec<usize> {
    let mut random = Random::new(seed);
    let mut found = Vec::new();
    let mut open = vec![(0, series.len())];
    while let Some((start, end)) = open.pop() {
        // A stretch, and not one split: that a series rose and fell again shows in no split of it.
        let Some((from, to)) = beyond_chance(&series[start..end], stretch, alpha, &mut random)
        else {
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
        match beyond_chance(&series[start..end], split, alpha, random) {
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

/// A part of a series, from its first place to behind its last, and how far its ranks lie from the
/// others', in standard deviations.
type Part = ((usize, usize), f64);

/// The part that differs most, if it does so more than chance would make it.
fn beyond_chance(
    series: &[f64],
    most: fn(&[f64]) -> Part,
    alpha: f64,
    random: &mut Random,
) -> Option<(usize, usize)> {
    if series.len() < 2 * LEAST {
        return None;
    }
    let mut ranks = ranks(series);
    let (part, apart) = most(&ranks);
    let may = (alpha * (SHUFFLES + 1) as f64).floor() as usize;
    let mut as_far = 1;
    for _ in 0..SHUFFLES {
        if as_far > may {
            return None;
        }
        random.shuffle(&mut ranks);
        // What differs by rounding alone is as far.
        as_far += usize::from(most(&ranks).1 >= apart * (1.0 - 1e-9));
    }
    (as_far <= may).then_some(part)
}

/// The stretch that differs most from what is around it.
fn stretch(ranks: &[f64]) -> Part {
    let count = ranks.len();
    let sums = sums(ranks);
    let spreads: Vec<f64> = (0..=count).map(|length| spread(length, count)).collect();
    let mut most = ((0, 0), -1.0);
    for from in (0..=count).filter(|from| *from == 0 || *from >= LEAST) {
        for to in from + LEAST..=count {
            let rest = count - to;
            if from + rest < LEAST || (rest > 0 && rest < LEAST) {
                continue;
            }
            let apart = off(sums[to] - sums[from], to - from, count) / spreads[to - from];
            if apart > most.1 {
                most = ((from, to), apart);
            }
        }
    }
    most
}

/// The split whose halves lie furthest apart; the part is the second of them.
fn split(ranks: &[f64]) -> Part {
    let count = ranks.len();
    let sums = sums(ranks);
    let mut most = ((0, count), -1.0);
    for (at, sum) in sums.iter().enumerate().take(count - LEAST + 1).skip(LEAST) {
        let apart = off(*sum, at, count) / spread(at, count);
        if apart > most.1 {
            most = ((at, count), apart);
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

/// How far the sum of some ranks is from that of as many taken by chance.
fn off(sum: f64, length: usize, count: usize) -> f64 {
    (sum - length as f64 * (count as f64 + 1.0) / 2.0).abs()
}

/// The standard deviation of the sum of so many ranks taken by chance.
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
mod tests {
    use super::*;

    #[test]
    fn a_steady_series_has_a_change_at_most_five_times_in_a_hundred() {
        let mut random = Random::new(29);
        for (count, is_heavy) in [(8, false), (12, true), (30, false), (60, true)] {
            let wrong = (0..500)
                .filter(|seed| {
                    let mut draw = || if is_heavy { random.heavy() } else { random.normal() };
                    let series: Vec<f64> = (0..count).map(|_| draw()).collect();
                    // As a trend asks for it, so that 5 in 100 hold with room to spare.
                    !changes(&series, 0.02, *seed).is_empty()
                })
                .count();
            assert!(wrong <= 25, "{wrong} of 500 at {count}");
        }
    }

    #[test]
    fn a_series_of_equals_has_no_change() {
        assert_eq!(changes(&[7.0; 40], 0.05, 1), Vec::<usize>::new());
        assert_eq!(changes(&[1.0, 1.0, 9.0, 9.0], 0.05, 1), Vec::<usize>::new());
        assert_eq!(changes(&[], 0.05, 1), Vec::<usize>::new());
    }

    #[test]
    fn a_step_of_a_tenth_is_found_where_it_is() {
        let mut random = Random::new(31);
        let (mut found, mut near) = (0, 0);
        for seed in 0..300 {
            let series: Vec<f64> = (0..24)
                .map(|n| if n < 14 { 100.0 } else { 110.0 } + 3.0 * random.normal())
                .collect();
            let changes = changes(&series, 0.02, seed);
            found += usize::from(!changes.is_empty());
            near += usize::from(changes.iter().any(|at| at.abs_diff(14) <= 1));
        }
        assert!(found >= 294 && near >= 264, "{found} and {near} of 300");
    }

    #[test]
    fn outliers_are_no_levels_and_a_rise_that_is_taken_back_is_two_changes() {
        let wave = |n: usize| f64::from(u32::try_from(n * 7 % 5).unwrap()) / 10.0;
        let mut series: Vec<f64> =
            (0..45).map(|n| if (15..30).contains(&n) { 120.0 } else { 100.0 } + wave(n)).collect();
        assert_eq!(changes(&series, 0.02, 3), [15, 30]);
        series = (0..30).map(|n| 100.0 + wave(n)).collect();
        series[11] = 900.0;
        series[12] = 900.0;
        assert_eq!(changes(&series, 0.02, 3), Vec::<usize>::new());
    }
}
