//! An axis of a chart: the position of a value along it, and the ticks.
//!
//! It is logarithmic where its largest value is twenty times its smallest or more.

use crate::numbers::{bytes, duration, three_digits};

/// From this quotient of the largest and the smallest on an axis is logarithmic.
const WIDE_RANGE: f64 = 20.0;

/// The unit of an axis.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unit {
    /// Nanoseconds.
    Time,
    /// Bytes.
    Size,
    /// Bytes a second.
    Rate,
    /// Anything else.
    Count,
}

impl Unit {
    /// Of a record's unit.
    pub(crate) fn for_unit(unit: &str) -> Self {
        match unit {
            "ns" => Self::Time,
            "bytes" => Self::Size,
            "bytes/s" => Self::Rate,
            _ => Self::Count,
        }
    }

    /// A value as people read it, with its unit.
    pub(crate) fn shown(self, value: f64) -> String {
        let size = value.abs();
        let text = match self {
            _ if size == 0.0 => "0".to_owned(),
            Self::Time if size < 0.1 => format!("{} ns", small(size)),
            Self::Time => duration(size),
            Self::Size => bytes(size as u128),
            Self::Rate => rate(size),
            Self::Count if size < 0.01 && size > 0.0 => format!("{size:.1e}"),
            Self::Count => three_digits(size),
        };
        if value < 0.0 { format!("−{text}") } else { text }
    }
}

/// Three digits of a value far below 1, such as the time of a byte.
fn small(value: f64) -> String {
    match value.log10().floor() {
        place if place >= -6.0 => format!("{value:.*}", (2.0 - place) as usize),
        _ => format!("{value:.2e}"),
    }
}

/// A rate in bytes a second as people read it: `11.2 GB/s`.
pub(crate) fn rate(bytes_per_second: f64) -> String {
    const UNITS: [&str; 5] = ["B/s", "kB/s", "MB/s", "GB/s", "TB/s"];
    let (mut value, mut unit) = (bytes_per_second, 0);
    while value >= 999.5 && unit + 1 < UNITS.len() {
        value /= 1000.0;
        unit += 1;
    }
    format!("{} {}", three_digits(value), UNITS[unit])
}

/// From a lowest to a highest value.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Axis {
    pub(crate) low: f64,
    pub(crate) high: f64,
    pub(crate) is_log: bool,
}

impl Axis {
    /// From the least to the largest of the values; none without any.
    pub(crate) fn from_values(values: impl Iterator<Item = f64> + Clone) -> Option<Self> {
        let low = values.clone().fold(f64::INFINITY, f64::min);
        let high = values.fold(f64::NEG_INFINITY, f64::max);
        let is_log = low > 0.0 && high / low >= WIDE_RANGE;
        (low.is_finite() && high.is_finite()).then_some(Self { low, high, is_log })
    }

    /// With room at both ends, from 0 where it is not logarithmic and nothing is below that.
    pub(crate) fn roomy(self) -> Self {
        if self.is_log {
            let beyond = (self.high / self.low).powf(0.06).min(1.5);
            let (low, high) = (self.low / beyond, self.high * beyond);
            return if low > 0.0 && high.is_finite() { Self { low, high, ..self } } else { self };
        }
        let high = self.high + (self.high - self.low.min(0.0)) * 0.06;
        Self {
            low: self.low.min(0.0),
            high: if high.is_finite() { high } else { self.high },
            ..self
        }
    }

    /// Where a value stands, from 0 at the lowest to 1 at the highest.
    pub(crate) fn share(&self, value: f64) -> f64 {
        let along = |x: f64| if self.is_log { x.max(self.low).ln() } else { x / 2.0 };
        let range = along(self.high) - along(self.low);
        let share = if range > 0.0 { (along(value) - along(self.low)) / range } else { 0.5 };
        if share.is_finite() { share.clamp(0.0, 1.0) } else { 0.5 }
    }

    /// The place of a value among `count`, 0 for the lowest.
    pub(crate) fn place(&self, value: f64, count: usize) -> usize {
        (self.share(value) * (count - 1) as f64).round() as usize
    }

    /// The value at a share of the length.
    pub(crate) fn at(&self, share: f64) -> f64 {
        if self.is_log {
            (self.low.ln() + share * (self.high.ln() - self.low.ln())).exp()
        } else {
            self.low * (1.0 - share) + self.high * share
        }
    }

    /// Round values along it, `most` at most.
    pub(crate) fn ticks(&self, most: usize) -> Vec<f64> {
        let ticks = if self.is_log { self.decades(most) } else { self.steps(most) };
        ticks.into_iter().filter(|tick| *tick >= self.low && *tick <= self.high).collect()
    }

    /// Powers of ten, each with its double and fivefold where they are few.
    fn decades(&self, most: usize) -> Vec<f64> {
        let (first, last) = (self.low.log10().ceil() as i32, self.high.log10().floor() as i32);
        let inside = usize::try_from(last - first + 1).unwrap_or(0);
        let ticks: Vec<f64> = if inside > 2 {
            let step = inside.div_ceil(most.max(1));
            (first..=last).step_by(step).map(|power| 10f64.powi(power)).collect()
        } else {
            let powers = (first - 1..=last).map(|power| 10f64.powi(power));
            powers.flat_map(|power| [power, 2.0 * power, 5.0 * power]).collect()
        };
        ticks.into_iter().filter(|tick| tick.is_finite()).collect()
    }

    /// Multiples of 1, 2 or 5 times a power of ten.
    fn steps(&self, most: usize) -> Vec<f64> {
        let range = self.high - self.low;
        if !range.is_finite() || range <= 0.0 {
            return vec![self.low];
        }
        let raw = range / most.max(1) as f64;
        let power = 10f64.powf(raw.log10().floor());
        let step = [1.0, 2.0, 5.0, 10.0].into_iter().map(|by| by * power).find(|by| *by >= raw);
        let Some(step) = step.filter(|step| *step > 0.0 && step.is_finite()) else {
            return vec![self.low];
        };
        let first = (self.low / step).ceil();
        (0..=most + 1).map(|n| (first + n as f64) * step).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn axis(low: f64, high: f64) -> Axis {
        Axis::from_values([low, high].into_iter()).unwrap()
    }

    #[test]
    fn ticks_are_round() {
        assert_eq!(axis(0.0, 42.0).ticks(5), [0.0, 10.0, 20.0, 30.0, 40.0]);
        assert_eq!(axis(1.0, 20_000.0).ticks(6), [1.0, 10.0, 100.0, 1_000.0, 10_000.0]);
        assert_eq!(axis(3.0, 70.0).ticks(6), [5.0, 10.0, 20.0, 50.0]);
        assert_eq!(axis(15.0, 3e6).ticks(6), [100.0, 1e3, 1e4, 1e5, 1e6]);
        assert_eq!(axis(1.0, 1e9).ticks(6), [1.0, 100.0, 1e4, 1e6, 1e8]);
        assert_eq!(axis(7.0, 7.0).ticks(6), [7.0]);
    }

    #[test]
    fn values_have_their_units() {
        assert_eq!(Unit::for_unit("bytes/s").shown(11.2e9), "11.2 GB/s");
        assert_eq!(Unit::for_unit("ns").shown(-1_500.0), "−1.50 µs");
        assert_eq!(Unit::for_unit("ns").shown(0.000_632_8), "0.000633 ns");
        assert_eq!(Unit::for_unit("ns").shown(-0.0632), "−0.0632 ns");
        assert_eq!(Unit::for_unit("ns").shown(6.328e-9), "6.33e-9 ns");
        assert_eq!(Unit::for_unit("bytes").shown(4096.0), "4 KiB");
        assert_eq!(Unit::for_unit("").shown(1_000.0), "1,000");
    }

    proptest! {
        #[test]
        fn any_axis_places_everything_on_it(a: f64, b: f64, value: f64, most in 0usize..12) {
            if let Some(axis) = Axis::from_values([a, b].into_iter()) {
                for axis in [axis, axis.roomy()] {
                    prop_assert!((0.0..=1.0).contains(&axis.share(value)));
                    let ticks = axis.ticks(most);
                    prop_assert!(ticks.len() <= 3 * (most + 4), "{ticks:?}");
                    prop_assert!(ticks.iter().all(|tick| tick.is_finite()));
                }
            }
        }
    }
}
