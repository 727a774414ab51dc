//! Power-of-two distributions.

use std::fmt;
use std::ops::{Index, IndexMut};

use serde::de::{SeqAccess, Visitor};
use serde::ser::SerializeSeq;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::Factor;

/// Buckets of a [`Histogram`]: one for each value of floor(log2(v)) of a 64-bit v.
pub const BUCKETS: usize = 64;

/// How often values fell between powers of two: `buckets[k]` counts values in [2^k, 2^(k+1)), and
/// zero is counted apart.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Default)]
pub struct Histogram {
    /// How many values were zero.
    pub zero: u64,
    /// How many values v had floor(log2(v)) equal to the index.
    pub buckets: Buckets,
}

impl Histogram {
    /// Counts one value.
    pub fn add(&mut self, value: u64) {
        self.add_slot(value.checked_ilog2().map_or(0, |power| power as usize + 1), 1);
    }

    /// Adds `count` to slot `slot`, where slot 0 is for zeroes and slot k + 1 for bucket k
    /// (saturating). A slot beyond the last is the last.
    pub fn add_slot(&mut self, slot: usize, count: u64) {
        match slot.min(BUCKETS).checked_sub(1) {
            _ if count == 0 => {}
            None => self.zero = self.zero.saturating_add(count),
            Some(k) => self.buckets[k] = self.buckets[k].saturating_add(count),
        }
    }

    /// Adds every count of `other` (saturating).
    pub fn merge(&mut self, other: &Self) {
        self.zero = self.zero.saturating_add(other.zero);
        for (k, count) in other.buckets.iter().enumerate() {
            self.add_slot(k + 1, *count);
        }
    }

    /// The same values, so many times as often.
    #[must_use]
    pub fn scaled(&self, factor: Factor) -> Self {
        let mut scaled = Self { zero: factor.of(self.zero), ..Self::default() };
        for (k, count) in self.buckets.iter().enumerate() {
            scaled.add_slot(k + 1, factor.of(*count));
        }
        scaled
    }

    /// How many values were counted (saturating).
    pub fn total(&self) -> u64 {
        self.buckets.iter().fold(self.zero, |sum, n| sum.saturating_add(*n))
    }
}

/// The [`BUCKETS`] counts of a [`Histogram`]; an array in the record, and in memory only as long as
/// from the first to the last that is not zero: thousands of processes have many of them.
#[derive(Clone, Default)]
pub struct Buckets {
    first: u8,
    counts: Box<[u64]>,
}

const NONE: u64 = 0;

impl Buckets {
    /// Every count, those that are zero included.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &u64> + ExactSizeIterator {
        (0..BUCKETS).map(|k| &self[k])
    }

    /// Always [`BUCKETS`].
    pub fn len(&self) -> usize {
        BUCKETS
    }

    /// Never: a bucket without values is still there.
    pub fn is_empty(&self) -> bool {
        false
    }
}

impl Index<usize> for Buckets {
    type Output = u64;

    fn index(&self, k: usize) -> &u64 {
        assert!(k < BUCKETS, "there are {BUCKETS} buckets, not {k}");
        k.checked_sub(usize::from(self.first)).and_then(|at| self.counts.get(at)).unwrap_or(&NONE)
    }
}

impl IndexMut<usize> for Buckets {
    fn index_mut(&mut self, k: usize) -> &mut u64 {
        assert!(k < BUCKETS, "there are {BUCKETS} buckets, not {k}");
        let (first, end) = (usize::from(self.first), usize::from(self.first) + self.counts.len());
        if self.counts.is_empty() {
            *self = Self { first: k as u8, counts: Box::new([0]) };
        } else if k < first || k >= end {
            let from = first.min(k);
            let mut counts = vec![0; end.max(k + 1) - from];
            counts[first - from..end - from].copy_from_slice(&self.counts);
            *self = Self { first: from as u8, counts: counts.into() };
        }
        &mut self.counts[k - usize::from(self.first)]
    }
}

impl PartialEq for Buckets {
    fn eq(&self, other: &Self) -> bool {
        self.iter().eq(other.iter())
    }
}

impl Eq for Buckets {}

impl fmt::Debug for Buckets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

impl From<[u64; BUCKETS]> for Buckets {
    fn from(counts: [u64; BUCKETS]) -> Self {
        let mut buckets = Self::default();
        for (k, count) in counts.into_iter().enumerate().filter(|(_, count)| *count > 0) {
            buckets[k] = count;
        }
        buckets
    }
}

impl Serialize for Buckets {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let mut array = to.serialize_seq(Some(BUCKETS))?;
        for count in self.iter() {
            array.serialize_element(count)?;
        }
        array.end()
    }
}

impl<'de> Deserialize<'de> for Buckets {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_seq(Exactly64)
    }
}

struct Exactly64;

impl<'de> Visitor<'de> for Exactly64 {
    type Value = Buckets;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{BUCKETS} buckets")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut array: A) -> Result<Buckets, A::Error> {
        let mut counts = [0; BUCKETS];
        for (k, count) in counts.iter_mut().enumerate() {
            let next = array.next_element()?;
            *count = next.ok_or_else(|| serde::de::Error::invalid_length(k, &self))?;
        }
        if array.next_element::<u64>()?.is_some() {
            return Err(serde::de::Error::invalid_length(BUCKETS + 1, &self));
        }
        Ok(Buckets::from(counts))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_value_falls_between_its_powers_of_two(value in 1u64..) {
            let mut h = Histogram::default();
            h.add(value);
            let k = h.buckets.iter().position(|n| *n == 1).unwrap();
            prop_assert!(value >= 1 << k);
            prop_assert!(k == 63 || value < 1 << (k + 1));
            prop_assert_eq!((h.total(), h.zero), (1, 0));
        }

        #[test]
        fn merging_adds_totals(a in prop::collection::vec(any::<u64>(), 0..50),
                               b in prop::collection::vec(any::<u64>(), 0..50)) {
            let (mut x, mut y) = (Histogram::default(), Histogram::default());
            a.iter().for_each(|v| x.add(*v));
            b.iter().for_each(|v| y.add(*v));
            x.merge(&y);
            prop_assert_eq!(x.total(), (a.len() + b.len()) as u64);
        }

        #[test]
        fn buckets_hold_what_an_array_holds(writes in prop::collection::vec((0usize..64, 1u64..9), 0..20)) {
            let (mut buckets, mut array) = (Buckets::default(), [0; BUCKETS]);
            for (k, count) in writes {
                buckets[k] += count;
                array[k] += count;
            }
            prop_assert_eq!(buckets.iter().copied().collect::<Vec<_>>(), array.to_vec());
            let text = serde_json::to_string(&buckets).unwrap();
            prop_assert_eq!(serde_json::from_str::<Buckets>(&text).unwrap(), buckets);
        }
    }

    #[test]
    fn another_number_of_buckets_is_refused() {
        for (n, word) in [(2, "length 2"), (65, "length 65")] {
            let text = format!(r#"{{"zero": 0, "buckets": {:?}}}"#, vec![1; n]);
            let error = serde_json::from_str::<Histogram>(&text).unwrap_err().to_string();
            assert!(error.contains(word) && error.contains("64 buckets"), "{error}");
        }
    }

    #[test]
    fn the_largest_value_and_zero_have_their_slots() {
        let mut h = Histogram::default();
        h.add(0);
        h.add(u64::MAX);
        h.add_slot(99, 1);
        assert_eq!((h.zero, h.buckets[63], h.total()), (1, 2, 3));
    }
}
