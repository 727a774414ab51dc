//! Random order from a seed that is printed, so that a run can be repeated in the same order.

/// A source of orders: splitmix64, which needs no more state than its seed.
#[derive(Debug)]
pub struct Order(u64);

impl Order {
    /// The order that `seed` stands for.
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// From 0 up to, but not, 1.
    #[cfg(test)]
    pub fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Heads or tails.
    pub fn coin(&mut self) -> bool {
        self.next() >> 63 == 1
    }

    /// Puts the items into a random order (Fisher and Yates).
    pub fn shuffle<Item>(&mut self, items: &mut [Item]) {
        for last in (1..items.len()).rev() {
            let other = (self.next() % (last as u64 + 1)) as usize;
            items.swap(last, other);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_repeats_its_order() {
        let shuffled = |seed| {
            let mut items: Vec<u32> = (0..20).collect();
            Order::new(seed).shuffle(&mut items);
            items
        };
        assert_eq!(shuffled(1), shuffled(1));
        assert_ne!(shuffled(1), shuffled(2));
        let mut sorted = shuffled(1);
        sorted.sort_unstable();
        assert_eq!(sorted, (0..20).collect::<Vec<u32>>());
    }

    #[test]
    fn every_item_comes_first_about_as_often() {
        let mut order = Order::new(3);
        let mut first = [0; 5];
        for _ in 0..5_000 {
            let mut items = [0, 1, 2, 3, 4];
            order.shuffle(&mut items);
            first[items[0]] += 1;
        }
        assert!(first.iter().all(|times| (850..1150).contains(times)), "{first:?}");
    }
}
