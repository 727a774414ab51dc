//! Distributions of times that are fine enough for quantiles.

use serde::de::Error;
use serde::ser::SerializeStruct;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::{Factor, Histogram};

/// A distribution of times in ns. A bucket is so narrow that every time in it is within 2.6 % of
/// the one that stands for it; only below 64 ns and from 2^40 ns (18 minutes) on, a bucket is a
/// power of two.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Times {
    /// The longest time.
    pub max_ns: u64,
    /// The buckets that are not empty, with their counts, in order.
    counts: Vec<(u16, u64)>,
}

/// Buckets of [`Times`].
pub const TIME_BUCKETS: u16 = FIRST_FINE + 16 * (PAST_FINE - FIRST_FINE) + 65 - PAST_FINE;

/// The first power of two, and the one behind the last, that are divided; as 1 + floor(log2).
const FIRST_FINE: u16 = 7;
const PAST_FINE: u16 = 41;

/// Where each sixteenth of a power of two begins, in 256ths of it: as nearly of equal ratio as these
/// allow.
const STARTS: [u16; 17] =
    [0, 11, 23, 36, 48, 62, 76, 91, 106, 122, 139, 156, 175, 194, 214, 234, 256];

/// The quantiles that records and reports show.
pub const QUANTILES: [(&str, f64); 4] =
    [("p50", 0.5), ("p90", 0.9), ("p99", 0.99), ("p99.9", 0.999)];

impl Times {
    /// Counts a time.
    pub fn add(&mut self, ns: u64) {
        self.max_ns = self.max_ns.max(ns);
        self.add_bucket(bucket_of(ns), 1);
    }

    /// Adds `count` to a bucket (saturating). One beyond the last is the last.
    pub fn add_bucket(&mut self, bucket: u16, count: u64) {
        if count == 0 {
            return;
        }
        let bucket = bucket.min(TIME_BUCKETS - 1);
        match self.counts.binary_search_by_key(&bucket, |(bucket, _)| *bucket) {
            Ok(at) => self.counts[at].1 = self.counts[at].1.saturating_add(count),
            Err(at) => {
                // Most calls of most processes have a bucket or two: thousands of rows are to be small.
                self.counts.reserve_exact(1 + self.counts.len() / 4);
                self.counts.insert(at, (bucket, count));
            }
        }
    }

    /// Adds every count of another.
    pub fn merge(&mut self, other: &Self) {
        self.max_ns = self.max_ns.max(other.max_ns);
        other.counts.iter().for_each(|(bucket, count)| self.add_bucket(*bucket, *count));
    }

    /// What was counted since `earlier`; an apparent decrease is 0.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        let before = |bucket: u16| {
            let at = earlier.counts.binary_search_by_key(&bucket, |(bucket, _)| *bucket);
            at.map_or(0, |at| earlier.counts[at].1)
        };
        let more =
            self.counts.iter().map(|(bucket, now)| (*bucket, now.saturating_sub(before(*bucket))));
        Self { max_ns: self.max_ns, counts: more.filter(|(_, count)| *count > 0).collect() }
    }

    /// The same times, so many times as often.
    #[must_use]
    pub fn scaled(&self, factor: Factor) -> Self {
        let counts = self.counts.iter().map(|(bucket, count)| (*bucket, factor.of(*count)));
        Self { max_ns: self.max_ns, counts: counts.collect() }
    }

    /// How many times were counted (saturating).
    pub fn total(&self) -> u64 {
        self.counts.iter().fold(0, |sum, (_, count)| sum.saturating_add(*count))
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.counts.is_empty()
    }

    /// The buckets that are not empty: their number and count.
    pub fn buckets(&self) -> &[(u16, u64)] {
        &self.counts
    }

    /// How many times lie between these, as far as the buckets tell: those that are wholly between them.
    pub fn count_between(&self, low_ns: u64, high_ns: u64) -> u64 {
        let is_between = |bucket: u16| {
            let (low, high) = bounds(bucket);
            low >= low_ns && high <= high_ns
        };
        let those = self.counts.iter().filter(|(bucket, _)| is_between(*bucket));
        those.fold(0, |sum, (_, count)| sum.saturating_add(*count))
    }

    /// The time that a share of all times does not exceed, within 2.6 %; 0 without times.
    pub fn quantile(&self, share: f64) -> u64 {
        let rank = (share * self.total() as f64).ceil().max(1.0) as u64;
        let mut seen = 0u64;
        for (bucket, count) in &self.counts {
            seen = seen.saturating_add(*count);
            if seen >= rank {
                return middle(*bucket).min(self.max_ns);
            }
        }
        self.max_ns
    }

    /// The largest time that its last bucket may hold; 0 without times.
    pub fn highest(&self) -> u64 {
        self.counts.last().map_or(0, |(bucket, _)| bounds(*bucket).1)
    }

    /// The sum of all times lies between these.
    pub fn sum_bounds(&self) -> (u128, u128) {
        self.counts.iter().fold((0, 0), |(least, most), (bucket, count)| {
            let (low, high) = bounds(*bucket);
            let times = |ns: u64| u128::from(ns) * u128::from(*count);
            (least + times(low), most + times(high.min(self.max_ns)))
        })
    }

    /// The same by powers of two.
    pub fn log2(&self) -> Histogram {
        let mut histogram = Histogram::default();
        for (bucket, count) in &self.counts {
            histogram.add_slot(usize::from(slot(*bucket).0), *count);
        }
        histogram
    }
}

/// The bucket of a time. As `bucket_of` of the BPF programs has it.
fn bucket_of(ns: u64) -> u16 {
    let slot = ns.checked_ilog2().map_or(0, |power| power as u16 + 1);
    if slot < FIRST_FINE {
        return slot;
    }
    if slot >= PAST_FINE {
        return FIRST_FINE + 16 * (PAST_FINE - FIRST_FINE) + slot - PAST_FINE;
    }
    let bits = if slot > 9 { ns >> (slot - 9) } else { ns << (9 - slot) };
    let part = STARTS.partition_point(|start| u64::from(*start) <= bits & 0xff) - 1;
    FIRST_FINE + 16 * (slot - FIRST_FINE) + part as u16
}

/// The power of two of a bucket, as 1 + floor(log2), and its sixteenth, if it is one.
fn slot(bucket: u16) -> (u16, Option<usize>) {
    let fine = 16 * (PAST_FINE - FIRST_FINE);
    match bucket.checked_sub(FIRST_FINE) {
        None => (bucket, None),
        Some(at) if at < fine => (FIRST_FINE + at / 16, Some(usize::from(at % 16))),
        Some(at) => (PAST_FINE + at - fine, None),
    }
}

/// The least time in a bucket, and the largest.
fn bounds(bucket: u16) -> (u64, u64) {
    let (slot, part) = slot(bucket.min(TIME_BUCKETS - 1));
    let Some(low) = slot.checked_sub(1).map(|power| 1u64 << power) else { return (0, 0) };
    match part {
        None => (low, low + (low - 1)),
        Some(part) => {
            let at = |start: u16| low + (low * u64::from(start)).div_ceil(256);
            (at(STARTS[part]), at(STARTS[part + 1]) - 1)
        }
    }
}

/// The time that is, as a ratio, as far from the least as from the largest.
fn middle(bucket: u16) -> u64 {
    let (low, high) = bounds(bucket);
    let (low, high) = (low as f64, high as f64);
    if high == 0.0 { 0 } else { (2.0 * low * high / (low + high)).round() as u64 }
}

impl Serialize for Times {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let mut object = to.serialize_struct("Times", QUANTILES.len() + 2)?;
        for (name, share) in QUANTILES {
            object.serialize_field(name, &self.quantile(share))?;
        }
        object.serialize_field("max", &self.max_ns)?;
        object.serialize_field("buckets", &self.counts)?;
        object.end()
    }
}

impl<'de> Deserialize<'de> for Times {
    /// The quantiles follow from the buckets.
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        struct Object {
            max: u64,
            buckets: Vec<(u16, u64)>,
        }
        let Object { max, buckets } = Object::deserialize(from)?;
        let is_known = |(bucket, _): &(u16, u64)| *bucket < TIME_BUCKETS;
        if !buckets.iter().all(is_known) {
            return Err(D::Error::custom(format!("a bucket is below {TIME_BUCKETS}")));
        }
        let mut times = Self { max_ns: max, counts: Vec::new() };
        buckets.into_iter().for_each(|(bucket, count)| times.add_bucket(bucket, count));
        Ok(times)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn buckets_follow_each_other_without_a_gap() {
        let mut next = 0;
        for bucket in 0..TIME_BUCKETS {
            let (low, high) = bounds(bucket);
            assert_eq!(low, next, "bucket {bucket}");
            assert!(high >= low, "bucket {bucket}: {low} … {high}");
            assert_eq!((bucket_of(low), bucket_of(high)), (bucket, bucket));
            next = high.wrapping_add(1);
        }
        assert_eq!(next, 0, "the last bucket ends with the last number");
    }

    #[test]
    fn every_time_of_a_bucket_is_within_the_error_of_the_one_that_stands_for_it() {
        let fine = 16 * (PAST_FINE - FIRST_FINE);
        for bucket in FIRST_FINE..FIRST_FINE + fine {
            let (low, high) = bounds(bucket);
            for time in [low, high] {
                let error = (middle(bucket) as f64 / time as f64 - 1.0).abs();
                assert!(error < 0.026, "bucket {bucket}: {time} as {}: {error}", middle(bucket));
            }
        }
    }

    #[test]
    fn the_table_of_the_bpf_programs_is_this_one() {
        let source = include_str!("../../observe/src/bpf/slots.bpf.h");
        let (_, table) = source.split_once("sixteenth_of[256] = {").unwrap();
        let (table, _) = table.split_once('}').unwrap();
        let table: Vec<u16> = table
            .split(',')
            .map(str::trim)
            .filter(|word| !word.is_empty())
            .map(|word| word.parse().unwrap())
            .collect();
        assert_eq!(table.len(), 256);
        for (bits, part) in table.into_iter().enumerate() {
            let of_time = (bucket_of((256 + bits as u64) << 20) - FIRST_FINE) % 16;
            assert_eq!(of_time, part, "{bits}");
        }
    }

    #[test]
    fn a_record_has_quantiles_and_buckets() {
        let mut times = Times::default();
        (1..=1000).for_each(|ms| times.add(ms * 1_000_000));
        let json = serde_json::to_value(&times).unwrap();
        let within = |name: &str, ms: f64| {
            let ratio = json[name].as_f64().unwrap() / (ms * 1e6);
            assert!((0.975..1.025).contains(&ratio), "{name}: {ratio}");
        };
        within("p50", 500.0);
        within("p90", 900.0);
        within("p99", 990.0);
        within("p99.9", 999.0);
        assert_eq!(json["max"], 1_000_000_000);
        assert_eq!(serde_json::from_value::<Times>(json).unwrap(), times);
        let refused = serde_json::from_str::<Times>(r#"{"max": 1, "buckets": [[600, 1]]}"#);
        assert!(refused.unwrap_err().to_string().contains("below 575"));
    }

    proptest! {
        #[test]
        fn a_quantile_is_within_its_error(
            mut times in prop::collection::vec(prop_oneof![64u64..4_000, 64u64..1 << 40], 1..200),
            share in 0.001f64..=1.0,
        ) {
            let mut counted = Times::default();
            times.iter().for_each(|ns| counted.add(*ns));
            times.sort_unstable();
            let rank = ((share * times.len() as f64).ceil() as usize).max(1);
            let exact = times[rank - 1] as f64;
            let found = counted.quantile(share) as f64;
            prop_assert!((found / exact - 1.0).abs() < 0.026, "{} {}", found, exact);
            prop_assert_eq!(counted.total(), times.len() as u64);
        }

        #[test]
        fn what_came_since_is_what_was_added(a in prop::collection::vec(any::<u64>(), 0..50),
                                             b in prop::collection::vec(any::<u64>(), 0..50)) {
            let mut times = Times::default();
            a.iter().for_each(|ns| times.add(*ns));
            let earlier = times.clone();
            b.iter().for_each(|ns| times.add(*ns));
            let since = times.since(&earlier);
            let mut added = Times::default();
            b.iter().for_each(|ns| added.add(*ns));
            prop_assert_eq!(since.buckets(), added.buckets());
        }

        #[test]
        fn powers_of_two_are_those_of_the_values(times in prop::collection::vec(any::<u64>(), 0..50)) {
            let (mut fine, mut plain) = (Times::default(), Histogram::default());
            for ns in &times {
                fine.add(*ns);
                plain.add(*ns);
            }
            prop_assert_eq!(fine.log2(), plain);
        }

        #[test]
        fn merging_is_counting_together(a in prop::collection::vec(any::<u64>(), 0..50),
                                        b in prop::collection::vec(any::<u64>(), 0..50)) {
            let of = |all: &[u64]| {
                let mut times = Times::default();
                all.iter().for_each(|ns| times.add(*ns));
                times
            };
            let mut merged = of(&a);
            merged.merge(&of(&b));
            prop_assert_eq!(merged, of(&[a, b].concat()));
        }
    }
}
