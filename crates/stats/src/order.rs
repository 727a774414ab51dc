//! The order of runs: random from a printed seed, so that a run can be repeated in the same order,
//! and mirrored within each round, so that a linear drift cancels out.

/// A source of chance: splitmix64, which needs no more state than its seed.
#[derive(Debug, Clone)]
pub struct Random(u64);

impl Random {
    /// The source of this seed.
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// 64 random bits.
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// From 0 up to, but not, 1.
    pub fn unit(&mut self) -> f64 {
        (self.bits() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Heads or tails.
    pub fn coin(&mut self) -> bool {
        self.bits() >> 63 == 1
    }

    /// A whole number below `end`, which is not 0.
    pub fn below(&mut self, end: usize) -> usize {
        // The bias is below end / 2⁶⁴.
        (self.bits() % end as u64) as usize
    }

    /// Puts the items into a random order (Fisher and Yates).
    pub fn shuffle<Item>(&mut self, items: &mut [Item]) {
        for last in (1..items.len()).rev() {
            items.swap(last, self.below(last + 1));
        }
    }

    /// A standard normal deviate (Box and Muller).
    #[cfg(test)]
    pub(crate) fn normal(&mut self) -> f64 {
        let radius = (-2.0 * (1.0 - self.unit()).ln()).sqrt();
        radius * (2.0 * std::f64::consts::PI * self.unit()).cos()
    }

    /// A deviate with tails so heavy that it has no variance: Student's t of 2 degrees of freedom.
    #[cfg(test)]
    pub(crate) fn heavy(&mut self) -> f64 {
        let chi = -2.0 * (1.0 - self.unit()).ln();
        self.normal() / (chi / 2.0).sqrt()
    }
}

/// One round: every command (numbered from 0) once in random order, then once more in the reverse
/// of it. Of two commands that is ABBA or BAAB, by the toss of a coin.
pub fn round(commands: usize, random: &mut Random) -> Vec<usize> {
    let mut there: Vec<usize> = (0..commands).collect();
    random.shuffle(&mut there);
    let back = there.clone();
    there.extend(back.into_iter().rev());
    there
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_repeats_its_order() {
        let rounds = |seed| {
            let mut random = Random::new(seed);
            (0..20).flat_map(|_| round(3, &mut random)).collect::<Vec<usize>>()
        };
        assert_eq!(rounds(1), rounds(1));
        assert_ne!(rounds(1), rounds(2));
    }

    #[test]
    fn a_block_is_its_own_mirror_and_starts_with_each_as_often() {
        let mut random = Random::new(3);
        let mut first = [0; 4];
        for _ in 0..4_000 {
            let round = round(4, &mut random);
            assert!(round.iter().eq(round.iter().rev()));
            let mut half = round[..4].to_vec();
            half.sort_unstable();
            assert_eq!(half, [0, 1, 2, 3]);
            first[round[0]] += 1;
        }
        assert!(first.iter().all(|times| (900..1_100).contains(times)), "{first:?}");
    }

    #[test]
    fn deviates_are_distributed_as_they_say() {
        let mut random = Random::new(5);
        let normal: Vec<f64> = (0..20_000).map(|_| random.normal()).collect();
        let (mean, stddev) = (crate::mean(&normal).unwrap(), crate::stddev(&normal).unwrap());
        assert!(mean.abs() < 0.03 && (stddev - 1.0).abs() < 0.03, "{mean} {stddev}");
        let heavy: Vec<f64> = (0..20_000).map(|_| random.heavy()).collect();
        // Upper quartile and 97.5 % point of t with 2 degrees of freedom.
        let at = |share| crate::quantile(&heavy, share).unwrap();
        assert!((at(0.75) - 0.816).abs() < 0.05 && (at(0.975) - 4.303).abs() < 0.5);
    }
}
