use super::*;
use crate::machines::{MACHINES, Machine, Sessions, held_to_the_guide};
use crate::order::Random;

/// The setting of a trend.
const ALPHA: f64 = 0.01;

#[test]
fn a_steady_series_has_a_change_at_most_five_times_in_a_hundred() {
    let mut random = Random::new(29);
    for (count, is_heavy) in [(8, false), (12, true), (30, false), (60, true)] {
        let wrong = (0..500)
            .filter(|seed| {
                let mut draw = || if is_heavy { random.heavy() } else { random.normal() };
                let series: Vec<f64> = (0..count).map(|_| draw()).collect();
                // The setting of a trend, so that 5 in 100 hold with a margin.
                !changes(&series, ALPHA, *seed).is_empty()
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
        let series: Vec<f64> =
            (0..24).map(|n| if n < 14 { 100.0 } else { 110.0 } + 3.0 * random.normal()).collect();
        let changes = changes(&series, ALPHA, seed);
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
    assert_eq!(changes(&series, ALPHA, 3), [15, 30]);
    series = (0..30).map(|n| 100.0 + wave(n)).collect();
    series[11] = 900.0;
    series[12] = 900.0;
    assert_eq!(changes(&series, ALPHA, 3), Vec::<usize>::new());
}

#[test]
fn three_of_nine_are_a_level_of_their_own_once_they_are_far() {
    let wave = |n: usize| 1.0 + 0.01 * f64::from(u32::try_from(n * 7 % 5).unwrap());
    let series = |before: usize, after: usize, step: f64| -> Vec<f64> {
        let level = |n| if n < before { 14.0 } else { 14.0 * step };
        (0..before + after).map(|n| level(n) * wave(n)).collect()
    };
    assert_eq!(changes(&series(3, 6, 7.4), ALPHA, 1), [3]);
    assert_eq!(changes(&series(3, 3, 7.4), ALPHA, 1), [3]);
    assert_eq!(changes(&series(3, 30, 7.4), ALPHA, 1), [3]);
    assert_eq!(changes(&series(3, 3, 1.02), ALPHA, 1), Vec::<usize>::new());
    assert_eq!(changes(&series(3, 2, 7.4), ALPHA, 1), Vec::<usize>::new());
    // Equals around two levels, which differ by nothing among themselves.
    assert_eq!(changes(&[14.0, 14.0, 14.0, 103.0, 103.0, 103.0], ALPHA, 1), [3]);
}

/// The percentage of simulated series with a step in which a change is found.
fn found(machine: Machine, [before, after]: [usize; 2], step: f64) -> f64 {
    let mut random = Random::new(47);
    let times = 300;
    let found = (0..times).filter(|seed| {
        let mut sessions = Sessions::new(machine, &mut random);
        let series: Vec<f64> = (0..before + after)
            .map(|at| sessions.next(if at < before { 0.0 } else { step.ln() }, 20).level.exp())
            .collect();
        !changes(&series, ALPHA, *seed).is_empty()
    });
    100.0 * found.count() as f64 / times as f64
}

#[test]
fn a_trend_is_wrong_as_seldom_as_the_guide_says_and_misses_no_step_of_ten_times() {
    let mut rows = Vec::new();
    for (name, machine) in MACHINES {
        for sizes in [[3, 6], [6, 3], [3, 30], [12, 12]] {
            let shares = [1.0, 1.03, 1.3, 10.0].map(|step| found(machine, sizes, step));
            assert!(shares[0] <= 5.5, "{name} {sizes:?}: {shares:?}");
            // A factor of ten is within the variation of the wild machine's sessions.
            assert!(shares[3] >= 99.0 || machine == Machine::Wild, "{name} {sizes:?}: {shares:?}");
            rows.push((format!("{name} | {} + {}", sizes[0], sizes[1]), shares));
        }
    }
    held_to_the_guide("trend", &rows, 3.0);
}
