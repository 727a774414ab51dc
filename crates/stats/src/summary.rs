//! Figures of one sample of measurements.

/// The usual figures of a sample.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Summary {
    /// How many measurements.
    pub count: usize,
    /// The least.
    pub min: f64,
    /// The most.
    pub max: f64,
    /// The middle.
    pub median: f64,
    /// The arithmetic mean.
    pub mean: f64,
    /// The standard deviation of the sample's population (divided by n − 1); 0 for one sample.
    pub stddev: f64,
}

impl Summary {
    /// Of these measurements; `None` without any.
    pub fn from_samples(samples: &[f64]) -> Option<Self> {
        Some(Self {
            count: samples.len(),
            min: samples.iter().copied().min_by(f64::total_cmp)?,
            max: samples.iter().copied().max_by(f64::total_cmp)?,
            median: median(samples)?,
            mean: mean(samples)?,
            stddev: stddev(samples)?,
        })
    }
}

/// The arithmetic mean; `None` without samples.
pub fn mean(samples: &[f64]) -> Option<f64> {
    (!samples.is_empty()).then(|| samples.iter().sum::<f64>() / samples.len() as f64)
}

/// The standard deviation, divided by n − 1; 0 of one sample, `None` of none.
pub fn stddev(samples: &[f64]) -> Option<f64> {
    let mean = mean(samples)?;
    let squares: f64 = samples.iter().map(|sample| (sample - mean).powi(2)).sum();
    Some((squares / (samples.len() as f64 - 1.0).max(1.0)).sqrt())
}

/// The middle of the samples; `None` without any.
pub fn median(samples: &[f64]) -> Option<f64> {
    quantile(samples, 0.5)
}

/// The sample below which a share of `at` (0 to 1) lies, between two of them in proportion (the
/// definition R calls type 7); `None` without samples.
pub fn quantile(samples: &[f64], at: f64) -> Option<f64> {
    let mut sorted = samples.to_vec();
    sorted.sort_by(f64::total_cmp);
    let place = at.clamp(0.0, 1.0) * (sorted.len().checked_sub(1)? as f64);
    let lower = *sorted.get(place.floor() as usize)?;
    let upper = *sorted.get(place.ceil() as usize)?;
    Some(lower + (upper - lower) * place.fract())
}

/// The median distance from the median, times 1.4826 so that it is a normal distribution's standard
/// deviation: a spread that no outlier moves. `None` without samples.
pub fn mad(samples: &[f64]) -> Option<f64> {
    let middle = median(samples)?;
    let distances: Vec<f64> = samples.iter().map(|sample| (sample - middle).abs()).collect();
    Some(1.4826 * median(&distances)?)
}

/// Two samples that enclose the median but for 5 in 100, whatever the distribution: the number of n
/// samples below the median is binomial. `None` with fewer than six.
pub fn median_interval(samples: &[f64]) -> Option<[f64; 2]> {
    let n = samples.len();
    let mut sorted = samples.to_vec();
    sorted.sort_by(f64::total_cmp);
    // Logarithms, as 2⁻ⁿ is soon too small to hold.
    let (mut log_chance, mut tail, mut left_out) = (-(n as f64) * std::f64::consts::LN_2, 0.0, 0);
    while left_out < n {
        tail += log_chance.exp();
        if tail > 0.025 {
            break;
        }
        left_out += 1;
        log_chance += ((n - left_out + 1) as f64 / left_out as f64).ln();
    }
    let low = left_out.checked_sub(1)?;
    Some([*sorted.get(low)?, *sorted.get(n - 1 - low)?])
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The ranks printed in tables of the sign test's intervals for a median.
    #[test]
    fn the_medians_interval_has_the_ranks_of_the_tables() {
        for (count, low) in [(6, 1), (8, 1), (9, 2), (10, 2), (12, 3), (15, 4), (20, 6), (30, 10)] {
            let samples: Vec<f64> = (1..=count).map(f64::from).collect();
            let wanted = [f64::from(low), f64::from(count + 1 - low)];
            assert_eq!(median_interval(&samples), Some(wanted), "{count}");
        }
        assert_eq!(median_interval(&[1.0; 5]), None);
        assert!(median_interval(&vec![1.0; 5_000]).is_some());
    }

    /// The sorted samples of R's documentation of `quantile`, with its answers for type 7.
    #[test]
    fn quantiles_are_those_of_type_7() {
        let samples = [10.0, 1.0, 2.0, 4.0, 3.0, 5.0];
        let close = |at, wanted: f64| {
            let found = quantile(&samples, at).unwrap();
            assert!((found - wanted).abs() < 1e-12, "{at}: {found}");
        };
        close(0.0, 1.0);
        close(0.25, 2.25);
        close(0.5, 3.5);
        close(0.75, 4.75);
        close(0.9, 7.5);
        close(1.0, 10.0);
        assert_eq!(quantile(&[], 0.5), None);
    }

    #[test]
    fn the_figures_of_a_sample() {
        let found = Summary::from_samples(&[2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0]).unwrap();
        assert_eq!((found.count, found.min, found.max), (8, 2.0, 9.0));
        assert_eq!((found.median, found.mean), (4.5, 5.0));
        assert!((found.stddev - 2.138_089_935_299_395).abs() < 1e-12, "{found:?}");
        assert_eq!(Summary::from_samples(&[3.0]).map(|one| one.stddev), Some(0.0));
        assert_eq!(Summary::from_samples(&[]), None);
    }

    #[test]
    fn an_outlier_does_not_move_the_median_distance() {
        assert_eq!(mad(&[1.0, 2.0, 3.0, 4.0, 1e9]), Some(1.4826));
    }
}
