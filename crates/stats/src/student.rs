//! Student's distribution, as far as it is needed.

use crate::signed_rank::tail;

/// The 97.5 % point: from the tables up to 10 degrees of freedom, then a little above it; without any,
/// nothing is far enough.
pub fn t975(freedom: usize) -> f64 {
    const TABLE: [f64; 10] =
        [12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228];
    match freedom.checked_sub(1) {
        None => f64::INFINITY,
        Some(row) => TABLE.get(row).copied().unwrap_or(1.96 + 2.7 / freedom as f64),
    }
}

/// The share above `t`, by Wallace's normal deviate, which is good to a few hundredths of one.
pub(crate) fn share_above(t: f64, freedom: usize) -> f64 {
    let freedom = freedom as f64;
    let deviate = (freedom * (t * t / freedom).ln_1p()).sqrt();
    tail(deviate * (8.0 * freedom + 1.0) / (8.0 * freedom + 3.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Points of printed tables.
    #[test]
    fn points_and_shares_are_those_of_the_tables() {
        let table = [
            (1, 12.706),
            (10, 2.228),
            (12, 2.179),
            (15, 2.131),
            (20, 2.086),
            (30, 2.042),
            (60, 2.000),
            (120, 1.980),
            (1_000, 1.962),
        ];
        for (freedom, wanted) in table {
            let found = t975(freedom);
            assert!(found >= wanted && found < 1.006 * wanted, "{freedom}: {found}");
        }
        assert_eq!(t975(0), f64::INFINITY);
        for (freedom, t) in &table[1..] {
            let share = share_above(*t, *freedom);
            assert!((share - 0.025).abs() < 5e-4, "{freedom}: {share}");
        }
        // The 99.9 % point of 7 degrees.
        assert!((share_above(4.785, 7) - 0.001).abs() < 1e-4);
    }
}
