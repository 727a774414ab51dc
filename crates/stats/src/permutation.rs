//! Which of many measures differ between two groups of runs (Westfall and Young's step-down
//! permutation test).
//!
//! It rests on one thing: where nothing differs, every assignment of the runs to the two groups is
//! as likely as the one there was. For any number of measures, however they depend on each other and
//! whatever their distribution, the chance that even one of those that do not differ is called
//! different is at most the level.

use crate::order::Random;

/// Up to this many assignments all are tried; beyond, as many random ones.
const MOST: usize = 5_000;

/// Rounding of equal figures.
const ROUNDING: f64 = 1e-9;

/// For each measure, the adjusted p-value of the difference between its first `first` values and the
/// others. Every measure has the same number of values, one of each run in the same order. A measure
/// without variation, or without a finite value for every run, has 1.
pub fn adjusted(measures: &[Vec<f64>], first: usize, seed: u64) -> Vec<f64> {
    let runs = measures.first().map_or(0, Vec::len);
    let mut adjusted = vec![1.0; measures.len()];
    let usable = |values: &Vec<f64>| values.len() == runs && values.iter().all(|x| x.is_finite());
    let mut prepared: Vec<Prepared> = measures
        .iter()
        .enumerate()
        .filter(|(_, values)| usable(values))
        .filter_map(|(at, values)| Prepared::new(at, values, first))
        .collect();
    if prepared.is_empty() || first == 0 || first >= runs {
        return adjusted;
    }
    // The least first: the running maximum below is over a measure and those that differ less.
    prepared.sort_by(|a, b| a.observed.total_cmp(&b.observed));
    let (groups, is_complete) = groups(runs, first, seed);
    let mut exceeded = vec![0usize; prepared.len()];
    for group in &groups {
        let mut most = 0.0f64;
        for (one, count) in prepared.iter().zip(&mut exceeded) {
            most = most.max(one.separation(group));
            *count += usize::from(most >= one.observed - ROUNDING);
        }
    }
    // Of all assignments, the observed one is among them; of random ones it is added.
    let (more, all) = if is_complete { (0, groups.len()) } else { (1, groups.len() + 1) };
    let mut least = 0.0f64;
    for (one, count) in prepared.iter().zip(&exceeded).rev() {
        // What differs less is never more certain.
        least = least.max((count + more) as f64 / all as f64);
        adjusted[one.at] = least;
    }
    adjusted
}

/// Whether so many runs of either group can differ at this level at all.
pub fn can_differ(first: usize, second: usize, level: f64) -> bool {
    let ways = assignments(first + second, first);
    // Of equal groups, the exchanged assignment separates as well.
    let best = if first == second { 2.0 } else { 1.0 };
    first > 0 && second > 0 && best / ways <= level
}

/// A measure, centred.
struct Prepared {
    /// Its place among the measures.
    at: usize,
    values: Vec<f64>,
    /// The sum of squares.
    whole: f64,
    first: usize,
    observed: f64,
}

impl Prepared {
    fn new(at: usize, values: &[f64], first: usize) -> Option<Self> {
        let mean = values.iter().sum::<f64>() / values.len() as f64;
        let largest = values.iter().fold(0.0f64, |most, x| most.max(x.abs()));
        let values: Vec<f64> = values.iter().map(|x| x - mean).collect();
        let whole: f64 = values.iter().map(|x| x * x).sum();
        if whole <= (largest * ROUNDING).powi(2) {
            return None;
        }
        let mut prepared = Self { at, values, whole, first, observed: 0.0 };
        prepared.observed = prepared.separation(&(0..first).collect::<Vec<usize>>());
        Some(prepared)
    }

    /// The share of the variation that is between the groups: it rises with Student's t, and is 1
    /// where neither group varies.
    fn separation(&self, group: &[usize]) -> f64 {
        let sum: f64 = group.iter().map(|run| self.values[*run]).sum();
        let (first, all) = (self.first as f64, self.values.len() as f64);
        sum * sum * all / (first * (all - first)) / self.whole
    }
}

/// The number of ways to choose `of` runs.
fn assignments(runs: usize, of: usize) -> f64 {
    (0..of).map(|k| (runs - k) as f64 / (k + 1) as f64).product::<f64>().round()
}

/// The runs of the first group in each assignment, and whether these are all.
fn groups(runs: usize, of: usize, seed: u64) -> (Vec<Vec<usize>>, bool) {
    if assignments(runs, of) > MOST as f64 {
        let mut random = Random::new(seed);
        let mut order: Vec<usize> = (0..runs).collect();
        let draw = |_| {
            random.shuffle(&mut order);
            order[..of].to_vec()
        };
        return ((0..MOST).map(draw).collect(), false);
    }
    let mut all = vec![(0..of).collect::<Vec<usize>>()];
    let mut next = all[0].clone();
    while let Some(place) = (0..of).rev().find(|place| next[*place] < runs - of + place) {
        next[place] += 1;
        for later in place + 1..of {
            next[later] = next[later - 1] + 1;
        }
        all.push(next.clone());
    }
    (all, true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_assignments_are_tried_while_they_are_few() {
        for (runs, of, count) in [(2, 1, 2), (8, 4, 70), (7, 3, 35), (14, 7, 3432)] {
            let (found, is_complete) = groups(runs, of, 1);
            let distinct: std::collections::BTreeSet<_> = found.iter().collect();
            assert_eq!((found.len(), distinct.len(), is_complete), (count, count, true));
        }
        let (found, is_complete) = groups(30, 15, 1);
        assert_eq!((found.len(), is_complete), (MOST, false));
    }

    #[test]
    fn three_and_four_runs_can_differ_and_three_and_three_cannot() {
        for (first, second, can) in [
            (1, 1, false),
            (3, 3, false),
            (3, 4, true),
            (4, 4, true),
            (1, 18, false),
            (1, 19, true),
        ] {
            assert_eq!(can_differ(first, second, 0.05), can, "{first} {second}");
        }
    }

    #[test]
    fn a_count_that_never_varies_and_differs_is_as_certain_as_can_be() {
        let measures = vec![
            vec![10.0, 10.0, 10.0, 10.0, 11.0, 11.0, 11.0, 11.0],
            vec![5.0; 8],
            vec![1.0, 2.0, 3.0, 4.0, 2.0, 3.0, 1.0, 4.0],
            vec![1.0, f64::NAN, 3.0, 4.0, 20.0, 30.0, 10.0, 40.0],
        ];
        let found = adjusted(&measures, 4, 1);
        assert!((found[0] - 2.0 / 70.0).abs() < 1e-12, "{found:?}");
        assert!(found[1] == 1.0 && found[2] > 0.3 && found[3] == 1.0, "{found:?}");
        assert_eq!(adjusted(&[], 4, 1), Vec::<f64>::new());
        assert_eq!(adjusted(&[vec![1.0]], 0, 1), [1.0]);
    }

    /// Sixty measures of noise whose runs share a disturbance, some heavy-tailed, some counts that take
    /// two values.
    fn noise(random: &mut Random, runs: usize) -> Vec<Vec<f64>> {
        let shared: Vec<f64> = (0..runs).map(|_| random.heavy()).collect();
        let draw = |kind: usize, random: &mut Random| match kind {
            0 => random.normal(),
            1 => random.heavy(),
            _ => f64::from(u8::from(random.coin())),
        };
        let mut measures = vec![vec![0.0; runs]; 60];
        for (at, values) in measures.iter_mut().enumerate() {
            for (value, shared) in values.iter_mut().zip(&shared) {
                *value = draw(at % 3, random) + shared * (at % 2) as f64;
            }
        }
        measures
    }

    #[test]
    fn of_sixty_measures_that_do_not_differ_one_is_called_different_at_most_five_times_in_a_hundred()
     {
        let mut random = Random::new(3);
        for (first, second) in [(4, 4), (3, 5), (10, 10)] {
            let rounds = if first + second > 15 { 100 } else { 600 };
            let wrong = (0..rounds)
                .filter(|_| {
                    let measures = noise(&mut random, first + second);
                    adjusted(&measures, first, 7).iter().any(|p| *p <= 0.05)
                })
                .count();
            assert!(wrong * 100 <= rounds * 8, "{wrong} of {rounds} at {first} and {second}");
        }
    }

    #[test]
    fn real_differences_are_found_among_noise() {
        let mut random = Random::new(11);
        let found = (0..100)
            .filter(|_| {
                let mut measures = noise(&mut random, 10);
                measures.push(
                    (0..10).map(|run| random.normal() + if run < 5 { 0.0 } else { 30.0 }).collect(),
                );
                adjusted(&measures, 5, 7)[60] <= 0.05
            })
            .count();
        assert!(found > 80, "{found} of 100");
    }
}
