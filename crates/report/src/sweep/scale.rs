//! One unit for a table of figures.

use crate::numbers::{figure, three_digits};

/// A unit, and the factor that converts a figure of the record to it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Scale {
    pub(crate) unit: &'static str,
    pub(crate) factor: f64,
}

/// The units of times and sizes, the smallest first, each with its size in the smallest.
const TIMES: [(&str, f64); 4] = [("ns", 1.0), ("µs", 1e3), ("ms", 1e6), ("s", 1e9)];
const SIZES: [(&str, f64); 5] = [
    ("B", 1.0),
    ("KiB", 1024.0),
    ("MiB", 1_048_576.0),
    ("GiB", 1_073_741_824.0),
    ("TiB", 1_099_511_627_776.0),
];

impl Scale {
    /// The largest unit in which the smallest figure above 0 is not below 1.
    pub(crate) fn for_figures(unit: &str, figures: impl Iterator<Item = f64>) -> Self {
        let smallest = figures.filter(|figure| *figure > 0.0).fold(f64::INFINITY, f64::min);
        let fits = |units: &[(&'static str, f64)]| {
            let fit =
                units.iter().rev().find(|(_, size)| smallest.is_finite() && smallest >= *size);
            let (unit, size) = *fit.unwrap_or(&units[0]);
            Self { unit, factor: 1.0 / size }
        };
        match unit {
            "ns" => fits(&TIMES),
            "bytes" => fits(&SIZES),
            "bytes/s" => Self { unit: "MB/s", factor: 1e-6 },
            // Counts and rates are named by their metric and need no unit.
            _ => Self { unit: "", factor: 1.0 },
        }
    }

    /// A figure of the record in this unit.
    pub(crate) fn shown(self, value: f64) -> String {
        let value = value * self.factor;
        let size = value.abs();
        // Counts have no fraction where they are whole.
        let shown = if self.unit.is_empty() { three_digits(size) } else { figure(size) };
        if value < 0.0 { format!("-{shown}") } else { shown }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_smallest_figure_sets_the_unit() {
        let unit =
            |unit: &str, figures: &[f64]| Scale::for_figures(unit, figures.iter().copied()).unit;
        assert_eq!(unit("ns", &[48_000.0, 33.6e6]), "µs");
        assert_eq!(unit("ns", &[0.0, 12.0]), "ns");
        assert_eq!(unit("ns", &[0.5]), "ns");
        assert_eq!(unit("bytes", &[5e6, 1e9]), "MiB");
        assert_eq!(unit("ns", &[]), "ns");
        assert_eq!(unit("bananas", &[1.0]), "");
        assert_eq!(Scale::for_figures("ns", [2_000.0].into_iter()).shown(33.6e6), "33,600");
        assert_eq!(Scale::for_figures("", [2.0].into_iter()).shown(-2.0), "-2");
    }
}
