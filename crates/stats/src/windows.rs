//! A whole from windows of it: something is counted in short windows of time, and the count of all the time is estimated.
//!
//! The windows lie at random, one in each period. The estimate is the rate in the windows times the whole time. Its margin
//! comes from the differences of successive windows: what changes slowly hardly counts as chance then, as it hardly is,
//! for each period has its window. Both take memory that does not grow with the number of windows.

use crate::student::t975;

/// The windows: how long each was open.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Windows {
    count: u64,
    open: f64,
    last: f64,
    /// From the window before the last one to the last.
    step: f64,
    /// The sum of the squares of such steps.
    steps: f64,
}

/// What was counted in each window.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Series {
    seen: f64,
    last: f64,
    /// The sum of the squares of the steps between successive windows.
    steps: f64,
    /// That of their products with the steps of the open times.
    products: f64,
}

/// An estimate of the whole.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Estimate {
    /// What was counted.
    pub seen: f64,
    /// The estimate; what was counted where no window was open.
    pub point: f64,
    /// The true value is so near in 95 of 100 cases; `None` where there were fewer than two windows.
    pub margin: Option<f64>,
}

impl Estimate {
    /// The least it may be, which is not below what was counted.
    pub fn low(&self) -> f64 {
        self.margin.map_or(self.seen, |margin| (self.point - margin).max(self.seen))
    }
}

impl Windows {
    /// Adds a window that was open so long.
    pub fn add(&mut self, open: f64) {
        self.step = if self.count == 0 { 0.0 } else { open - self.last };
        self.steps += self.step * self.step;
        self.last = open;
        self.open += open;
        self.count += 1;
    }

    /// How many there were.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// How long they were open together.
    pub fn open(&self) -> f64 {
        self.open
    }

    /// How many times as long the whole is: at least 1; and 1 where no window was open.
    pub fn factor(&self, whole: f64) -> f64 {
        if self.open > 0.0 { (whole / self.open).max(1.0) } else { 1.0 }
    }

    /// The whole of a series: of so much time as the windows are part of.
    pub fn estimate(&self, series: &Series, whole: f64) -> Estimate {
        let factor = self.factor(whole);
        let margin = (self.count >= 2 && self.open > 0.0).then(|| {
            let rate = series.seen / self.open;
            // The steps of what the rate leaves over.
            let steps = series.steps - 2.0 * rate * series.products + rate * rate * self.steps;
            let windows = self.count as f64;
            let variance = windows / (2.0 * (windows - 1.0)) * steps.max(0.0);
            let unseen = 1.0 - 1.0 / factor;
            t975(freedom(self.count)) * factor * (unseen * variance).sqrt()
        });
        Estimate { seen: series.seen, point: factor * series.seen, margin }
    }
}

impl Series {
    /// Adds what was counted in the last window that was added to `windows`. A series may begin at any of them: it has
    /// nothing in those before.
    pub fn add(&mut self, windows: &Windows, seen: f64) {
        let step = if windows.count <= 1 { 0.0 } else { seen - self.last };
        self.steps += step * step;
        self.products += step * windows.step;
        self.last = seen;
        self.seen += seen;
    }
}

/// The variance of a sum of estimates that goes on for ever: of windows of one length, of which each stands for as many
/// as its period has. It only grows, so that the variance of any stretch is the difference of two moments.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct VarianceSum {
    variance: f64,
    /// What the window before had, and whether it was the first with such a factor.
    before: Option<(f64, bool)>,
}

impl VarianceSum {
    /// Of something that comes for the first time after so many windows with such a factor.
    pub fn after(windows: u64) -> Self {
        Self { variance: 0.0, before: (windows > 0).then_some((0.0, windows == 1)) }
    }

    /// Adds what was counted in a window, which counts `factor` times.
    pub fn add(&mut self, factor: f64, seen: f64) {
        let is_first = self.before.is_none();
        if let Some((before, was_first)) = self.before {
            let step = seen - before;
            // The first window has no step of its own: the next one's stands for both.
            let windows = if was_first { 2.0 } else { 1.0 };
            self.variance += windows * factor * (factor - 1.0) * step * step / 2.0;
        }
        self.before = Some((seen, is_first));
    }

    /// The factor changes: windows from now on are compared with none of those before.
    pub fn turn(&mut self) {
        self.before = None;
    }

    /// The variance of all of it.
    pub fn variance(&self) -> f64 {
        self.variance
    }
}

/// The degrees of freedom of a variance from successive differences, two thirds of those of the usual one: a difference
/// shares a window with the next (von Neumann, 1941).
fn freedom(windows: u64) -> usize {
    let (gaps, windows) = (windows - 1, windows as f64);
    let freedom = 2.0 * (gaps * gaps) as f64 / (3.0 * windows - 4.0);
    (freedom as usize).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::order::Random;

    /// What is counted in windows of one unit of time, or of these.
    fn estimate(counts: &[f64], open: impl Fn(usize) -> f64, whole: f64) -> Estimate {
        let (mut windows, mut series) = (Windows::default(), Series::default());
        for (at, count) in counts.iter().enumerate() {
            windows.add(open(at));
            series.add(&windows, *count);
        }
        windows.estimate(&series, whole)
    }

    #[test]
    fn what_is_the_same_in_every_window_has_no_margin() {
        let found = estimate(&[3.0; 20], |_| 10.0, 2_000.0);
        assert_eq!(found, Estimate { seen: 60.0, point: 600.0, margin: Some(0.0) });
        // At one rate, in windows of different length.
        let lengths: Vec<f64> = (0..20).map(|at| f64::from(at % 7 + 1)).collect();
        let counts: Vec<f64> = lengths.iter().map(|length| 3.0 * length).collect();
        let found = estimate(&counts, |at| lengths[at], 1_000.0);
        assert!((found.point - 3_000.0).abs() < 1e-6, "{found:?}");
        assert!(found.margin.unwrap() < 1e-4, "{found:?}");
    }

    #[test]
    fn windows_that_are_the_whole_leave_nothing_to_estimate() {
        let counts = [4.0, 900.0, 0.0, 17.0];
        let found = estimate(&counts, |_| 10.0, 40.0);
        assert_eq!(found, Estimate { seen: 921.0, point: 921.0, margin: Some(0.0) });
        // Clocks that differ make no whole smaller than its windows.
        assert_eq!(estimate(&counts, |_| 10.0, 39.9).point, 921.0);
    }

    #[test]
    fn of_fewer_than_two_windows_the_margin_is_not_known() {
        let found = estimate(&[5.0], |_| 10.0, 100.0);
        assert_eq!(found, Estimate { seen: 5.0, point: 50.0, margin: None });
        assert_eq!(found.low(), 5.0);
        let found = estimate(&[], |_| 10.0, 100.0);
        assert_eq!(found, Estimate { seen: 0.0, point: 0.0, margin: None });
    }

    #[test]
    fn nothing_is_estimated_below_what_was_counted() {
        let found = estimate(&[0.0, 0.0, 1.0, 0.0], |_| 1.0, 40.0);
        assert_eq!(found.point, 10.0);
        assert!(found.margin.unwrap() > 10.0);
        assert_eq!(found.low(), 1.0);
        let found = estimate(&[9.0, 11.0, 10.0, 9.0, 11.0, 10.0], |_| 1.0, 60.0);
        let margin = found.margin.unwrap();
        assert_eq!(found.low(), 600.0 - margin);
        // By hand: the steps are 2, -1, -1, 2 and -1, their squares 11 in all, and 2 × 25 ∕ 14 degrees of freedom are 3.
        let variance = 6.0 / 10.0 * 11.0;
        assert!((margin - t975(3) * 10.0 * (0.9f64 * variance).sqrt()).abs() < 1e-9, "{margin}");
    }

    #[test]
    fn a_series_that_begins_late_had_nothing_before() {
        let opens = [10.0, 12.0, 9.0, 10.0, 11.0];
        let counts = [0.0, 0.0, 7.0, 3.0, 5.0];
        let whole = estimate(&counts, |at| opens[at], 500.0);
        let (mut windows, mut series) = (Windows::default(), Series::default());
        for (open, count) in opens.into_iter().zip(counts) {
            windows.add(open);
            if series.seen > 0.0 || count > 0.0 {
                series.add(&windows, count);
            }
        }
        assert_eq!(windows.estimate(&series, 500.0), whole);
    }

    /// How the rate of calls goes on from slot to slot of time.
    #[derive(Debug, Clone, Copy, PartialEq)]
    enum Load {
        Steady,
        /// Four times as many at the end as in the beginning.
        Rising,
        /// A wave that takes 37 slots.
        Waves,
        /// Some twenty slots with ten times as many calls, now and then.
        Bursts,
    }

    /// Calls in every slot.
    fn slots(load: Load, slots: usize, random: &mut Random) -> Vec<f64> {
        let mut is_burst = false;
        let phase = random.unit();
        let of_slot = |at: usize| {
            is_burst ^= random.unit() < if is_burst { 0.05 } else { 0.01 };
            let level = match load {
                Load::Steady => 100.0,
                Load::Rising => 50.0 + 150.0 * at as f64 / slots as f64,
                Load::Waves => {
                    100.0 + 80.0 * (std::f64::consts::TAU * (at as f64 / 37.0 + phase)).sin()
                }
                Load::Bursts if is_burst => 500.0,
                Load::Bursts => 50.0,
            };
            (level + level.sqrt() * random.normal()).round().max(0.0)
        };
        (0..slots).map(of_slot).collect()
    }

    /// The percentage of watches of so many periods, of 10 slots each, whose estimate is within its margin.
    fn covered(load: Load, periods: usize) -> f64 {
        const PERIOD: usize = 10;
        let mut random = Random::new(38);
        let times = 1_000u32;
        let mut covered = 0u32;
        for _ in 0..times {
            let slots = slots(load, periods * PERIOD, &mut random);
            let windows: Vec<f64> =
                slots.chunks(PERIOD).map(|period| period[random.below(PERIOD)]).collect();
            let found = estimate(&windows, |_| 1.0, slots.len() as f64);
            let off = (found.point - slots.iter().sum::<f64>()).abs();
            covered += u32::from(off <= found.margin.unwrap());
        }
        100.0 * f64::from(covered) / f64::from(times)
    }

    /// The percentage of watches in which the sum of the windows times the factor is within 1.96 standard errors: of
    /// stretches of so many periods, whose factors differ.
    fn covered_by_sums(load: Load, periods: usize) -> f64 {
        let mut random = Random::new(39);
        let times = 1_000u32;
        let mut covered = 0u32;
        for _ in 0..times {
            let (mut sum, mut point, mut whole) = (VarianceSum::default(), 0.0, 0.0);
            for factor in [16, 1, 4] {
                sum.turn();
                let slots = slots(load, periods * factor, &mut random);
                whole += slots.iter().sum::<f64>();
                for period in slots.chunks(factor) {
                    let seen = period[random.below(factor)];
                    point += factor as f64 * seen;
                    sum.add(factor as f64, seen);
                }
            }
            covered += u32::from((point - whole).abs() <= 1.96 * sum.variance().sqrt());
        }
        100.0 * f64::from(covered) / f64::from(times)
    }

    #[test]
    fn sums_are_within_their_error_whatever_their_factors_were() {
        for load in [Load::Steady, Load::Rising, Load::Waves, Load::Bursts] {
            let covered = covered_by_sums(load, 200);
            // Bursts are few.
            let least = if load == Load::Bursts { 90.0 } else { 93.0 };
            assert!(covered >= least, "{load:?}: {covered}");
        }
        let covered = covered_by_sums(Load::Steady, 200);
        assert!((93.0..=97.0).contains(&covered), "{covered}");
    }

    #[test]
    fn a_variance_only_grows_and_all_of_the_time_has_none() {
        let mut sum = VarianceSum::default();
        sum.add(1.0, 5.0);
        sum.add(1.0, 900.0);
        assert_eq!(sum.variance(), 0.0);
        sum.turn();
        sum.add(4.0, 10.0);
        assert_eq!(sum.variance(), 0.0);
        // A step of 2 for the first two windows, one of 3 for the third: 4 × 3 ∕ 2 each.
        sum.add(4.0, 12.0);
        assert_eq!(sum.variance(), 2.0 * 6.0 * 4.0);
        sum.add(4.0, 9.0);
        assert_eq!(sum.variance(), 2.0 * 6.0 * 4.0 + 6.0 * 9.0);
        sum.turn();
        sum.add(2.0, 1_000.0);
        assert_eq!(sum.variance(), 2.0 * 6.0 * 4.0 + 6.0 * 9.0);
        // What comes late had nothing before.
        for windows in 0..4u64 {
            let mut whole = VarianceSum::default();
            (0..windows).for_each(|_| whole.add(4.0, 0.0));
            let mut late = VarianceSum::after(windows);
            for seen in [3.0, 5.0] {
                whole.add(4.0, seen);
                late.add(4.0, seen);
            }
            assert_eq!(late, whole);
        }
    }

    #[test]
    fn the_true_value_is_within_the_margin_in_95_of_100_watches() {
        for load in [Load::Steady, Load::Rising, Load::Waves, Load::Bursts] {
            for periods in [5, 20, 100, 400] {
                let covered = covered(load, periods);
                // Few periods meet few bursts, or none.
                let least = if load == Load::Bursts && periods < 100 { 85.0 } else { 93.0 };
                assert!(covered >= least, "{load:?} {periods}: {covered}");
            }
        }
        // Nor is it wider than chance asks for: of a steady load.
        let covered = covered(Load::Steady, 400);
        assert!((93.0..=97.0).contains(&covered), "{covered}");
    }
}
