//! When one command alone has been timed enough.

use std::time::Duration;

use super::compare::spread;

/// The fewest runs, the most, and the time after which no more are made.
const FEWEST: usize = 10;
const MOST: usize = 128;
const TIME: Duration = Duration::from_secs(3);

/// Whether the median is known to `min_effect` either way, or more runs would take too long.
pub(super) fn is_enough(walls: &[f64], min_effect: f64, spent: Duration) -> bool {
    if walls.len() < FEWEST {
        return false;
    }
    let figures = spread(walls);
    let is_known =
        figures.ci95.is_some_and(|[low, high]| high - low <= 2.0 * min_effect * figures.median_ns);
    is_known || walls.len() >= MOST || spent >= TIME
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steady_runs_are_few_and_unsteady_ones_bounded() {
        let second = Duration::from_secs(1);
        assert!(!is_enough(&[100.0; 8], 0.01, second));
        assert!(is_enough(&[100.0; 10], 0.01, second));
        let unsteady: Vec<f64> = (1..=128).map(f64::from).collect();
        assert!(!is_enough(&unsteady[..20], 0.01, second));
        assert!(is_enough(&unsteady[..20], 0.01, 3 * second));
        assert!(is_enough(&unsteady, 0.01, second));
    }
}
