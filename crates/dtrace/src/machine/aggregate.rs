//! Aggregations: their values by key, and the bound on keys.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use super::Value;
use crate::form::{Aggregating, Form};
use crate::program::Options;

/// What a value of an aggregation is made of.
#[derive(Debug, Clone, PartialEq)]
pub enum Data {
    /// `count()` and `sum()`
    Sum(i64),
    /// `min()` and `max()`; nothing behind a `clear()`.
    Extreme(Option<i64>),
    /// `avg()` and `stddev()`
    Moments {
        /// How many.
        count: i64,
        /// Their sum.
        sum: i64,
        /// The sum of their squares.
        squares: u128,
    },
    /// A distribution: how many by bin.
    Bins(Vec<i64>),
}

/// A key's value.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    /// The value.
    pub data: Data,
    /// By what it is divided when it is printed.
    pub normal: i64,
}

/// The values of all aggregations.
#[derive(Debug)]
pub struct Aggregations {
    functions: Vec<Aggregating>,
    entries: BTreeMap<(u16, Vec<Value>), Entry>,
    bytes: u64,
    most: u64,
    strsize: u64,
}

/// The bins of `quantize()`, and that of zero.
pub(crate) const QUANTIZE_BINS: usize = 127;
pub(crate) const ZERO_BIN: usize = 63;

/// The lower bound of a bin of `quantize()`, or the upper one of a negative.
pub(crate) fn quantize_value(bin: usize) -> i64 {
    match bin.cmp(&ZERO_BIN) {
        Ordering::Less => -(1i64 << (ZERO_BIN - 1 - bin)),
        Ordering::Equal => 0,
        Ordering::Greater => 1i64 << (bin - ZERO_BIN - 1),
    }
}

fn quantize_bin(value: i64) -> usize {
    let power = |size: u64| size.checked_ilog2().unwrap_or(0).min(62) as usize;
    match value.cmp(&0) {
        Ordering::Less => ZERO_BIN - 1 - power(value.unsigned_abs()),
        Ordering::Equal => ZERO_BIN,
        Ordering::Greater => ZERO_BIN + 1 + power(value.unsigned_abs()),
    }
}

/// The steps within a power of `llquantize()`: how many of the power `next` have bins of their own.
pub(crate) fn steps_of_power(next: i64, steps: u16) -> i64 {
    next.min(i64::from(steps))
}

fn log_linear_bin(value: i64, factor: u16, low: u16, high: u16, steps: u16) -> usize {
    let factor = i64::from(factor);
    let mut last = factor.saturating_pow(u32::from(low));
    if value < last {
        return 0;
    }
    let mut base = 1;
    for _ in low..=high {
        let next = last.saturating_mul(factor);
        let bins = steps_of_power(next, steps);
        if value < next {
            return (base + (value - last) / (next / bins)) as usize;
        }
        base += bins - bins / factor;
        last = next;
    }
    base as usize
}

/// How many bins a distribution has; none if it is not a distribution.
pub(crate) fn bins(function: Aggregating) -> usize {
    match function {
        Aggregating::Quantize => QUANTIZE_BINS,
        Aggregating::Linear { lower, upper, step } => {
            let levels = (i64::from(upper) - i64::from(lower)) / i64::from(step);
            levels as usize + 2
        }
        Aggregating::LogLinear { factor, low, high, steps } => {
            log_linear_bin(i64::MAX, factor, low, high, steps) + 1
        }
        _ => 0,
    }
}

fn empty(function: Aggregating) -> Data {
    match function {
        Aggregating::Count | Aggregating::Sum => Data::Sum(0),
        Aggregating::Minimum | Aggregating::Maximum => Data::Extreme(None),
        Aggregating::Average | Aggregating::StandardDeviation => {
            Data::Moments { count: 0, sum: 0, squares: 0 }
        }
        function => Data::Bins(vec![0; bins(function)]),
    }
}

impl Aggregations {
    /// With no keys.
    pub fn new(form: &Form, options: &Options) -> Self {
        Self {
            functions: form.aggregations.iter().map(|one| one.function).collect(),
            entries: BTreeMap::new(),
            bytes: 0,
            most: options.aggsize,
            strsize: u64::from(options.strsize),
        }
    }

    /// Takes a value; whether its key had, or found, room.
    pub(super) fn update(
        &mut self,
        aggregation: u16,
        keys: Vec<Value>,
        value: i64,
        times: i64,
    ) -> bool {
        let Some(&function) = self.functions.get(usize::from(aggregation)) else {
            return true;
        };
        let key = (aggregation, keys);
        if !self.entries.contains_key(&key) {
            let size = self.size(&key.1, function);
            if self.bytes + size > self.most {
                return false;
            }
            self.bytes += size;
            self.entries.insert(key.clone(), Entry { data: empty(function), normal: 1 });
        }
        if let Some(entry) = self.entries.get_mut(&key) {
            entry.data.take(function, value, times);
        }
        true
    }

    fn size(&self, keys: &[Value], function: Aggregating) -> u64 {
        let keys = keys.iter().map(|key| match key {
            Value::Text(_) => self.strsize,
            Value::Stack(frames) => 8 * frames.len() as u64 + 8,
            _ => 8,
        });
        keys.sum::<u64>() + 16 + 8 * bins(function).max(1) as u64
    }

    /// The entries of an aggregation, by their keys.
    pub fn of(&self, aggregation: u16) -> impl Iterator<Item = (&[Value], &Entry)> {
        let from = (aggregation, Vec::new());
        let entries = self.entries.range(from..);
        entries
            .take_while(move |((one, _), _)| *one == aggregation)
            .map(|((_, keys), entry)| (keys.as_slice(), entry))
    }

    /// The value of a key.
    pub fn get(&self, aggregation: u16, keys: &[Value]) -> Option<&Entry> {
        self.entries.get(&(aggregation, keys.to_vec()))
    }

    /// Gives a key its value; what is there already keeps by what it is divided.
    pub fn set(&mut self, aggregation: u16, keys: Vec<Value>, data: Data) {
        let size = self.size(&keys, self.function(aggregation));
        let entry = self.entries.entry((aggregation, keys));
        if matches!(entry, std::collections::btree_map::Entry::Vacant(_)) {
            self.bytes += size;
        }
        entry.and_modify(|entry| entry.data = data.clone()).or_insert(Entry { data, normal: 1 });
    }

    /// The value of a key without any.
    pub fn nothing(&self, aggregation: u16) -> Data {
        empty(self.function(aggregation))
    }

    /// An entry as a new one is.
    pub(crate) fn empty(&self, aggregation: u16) -> Entry {
        let function = self.functions[usize::from(aggregation)];
        Entry { data: empty(function), normal: 1 }
    }

    /// What an aggregation does with values.
    pub fn function(&self, aggregation: u16) -> Aggregating {
        self.functions[usize::from(aggregation)]
    }

    pub(crate) fn clear(&mut self, aggregation: u16) {
        let function = self.function(aggregation);
        for ((one, _), entry) in &mut self.entries {
            if *one == aggregation {
                entry.data = empty(function);
            }
        }
    }

    pub(crate) fn normalize(&mut self, aggregation: u16, by: i64) {
        for ((one, _), entry) in &mut self.entries {
            if *one == aggregation {
                entry.normal = by;
            }
        }
    }

    /// Keeps so many of the largest, or of the smallest if the number is negative.
    pub(crate) fn truncate(&mut self, aggregation: u16, keep: i64) {
        let mut all: Vec<_> = self.of(aggregation).map(|(keys, _)| keys.to_vec()).collect();
        all.sort_by(|one, other| {
            let ascending = self.order(aggregation, one, other);
            if keep < 0 { ascending } else { ascending.reverse() }
        });
        let kept = usize::try_from(keep.unsigned_abs()).unwrap_or(usize::MAX);
        let function = self.function(aggregation);
        for keys in all.into_iter().skip(kept) {
            self.bytes -= self.size(&keys, function);
            self.entries.remove(&(aggregation, keys));
        }
    }

    /// By value, then by key.
    pub(crate) fn order(&self, aggregation: u16, one: &[Value], other: &[Value]) -> Ordering {
        let function = self.function(aggregation);
        let data = |keys: &[Value]| self.get(aggregation, keys).map(|entry| &entry.data);
        let by_value = match (data(one), data(other)) {
            (Some(one), Some(other)) => compared(function, one, other),
            (one, other) => one.is_some().cmp(&other.is_some()),
        };
        by_value.then_with(|| one.cmp(other))
    }
}

impl Data {
    fn take(&mut self, function: Aggregating, value: i64, times: i64) {
        match self {
            Self::Sum(sum) => *sum = sum.wrapping_add(value),
            Self::Extreme(extreme) => {
                let best = extreme.map_or(value, |own| match function {
                    Aggregating::Minimum => own.min(value),
                    _ => own.max(value),
                });
                *extreme = Some(best);
            }
            Self::Moments { count, sum, squares } => {
                *count += 1;
                *sum = sum.wrapping_add(value);
                let size = u128::from(value.unsigned_abs());
                *squares = squares.wrapping_add(size * size);
            }
            Self::Bins(bins) => {
                let bin = match function {
                    Aggregating::Linear { lower, step, .. } => {
                        let above = i128::from(value) - i128::from(lower);
                        match above {
                            ..0 => 0,
                            _ => {
                                (above / i128::from(step) + 1).min(bins.len() as i128 - 1) as usize
                            }
                        }
                    }
                    Aggregating::LogLinear { factor, low, high, steps } => {
                        log_linear_bin(value, factor, low, high, steps)
                    }
                    _ => quantize_bin(value),
                };
                if let Some(bin) = bins.get_mut(bin) {
                    *bin = bin.wrapping_add(times);
                }
            }
        }
    }

    /// Adds what another part of the same key has.
    pub fn add(&mut self, function: Aggregating, other: &Self) {
        match (self, other) {
            (Self::Sum(sum), Self::Sum(more)) => *sum = sum.wrapping_add(*more),
            (Self::Extreme(one), Self::Extreme(Some(other))) => {
                let best = one.map_or(*other, |own| match function {
                    Aggregating::Minimum => own.min(*other),
                    _ => own.max(*other),
                });
                *one = Some(best);
            }
            (
                Self::Moments { count, sum, squares },
                Self::Moments { count: more, sum: more_sum, squares: more_squares },
            ) => {
                *count = count.wrapping_add(*more);
                *sum = sum.wrapping_add(*more_sum);
                *squares = squares.wrapping_add(*more_squares);
            }
            (Self::Bins(bins), Self::Bins(more)) => {
                for (bin, more) in bins.iter_mut().zip(more) {
                    *bin = bin.wrapping_add(*more);
                }
            }
            _ => {}
        }
    }

    /// The number that is printed; 0 for a distribution.
    pub fn number(&self, function: Aggregating, normal: i64) -> i64 {
        let divided = |value: i64| value.checked_div(normal).unwrap_or(value);
        match self {
            Self::Sum(sum) => divided(*sum),
            Self::Extreme(extreme) => divided(extreme.unwrap_or(0)),
            Self::Moments { count: 0, .. } | Self::Bins(_) => 0,
            Self::Moments { count, sum, .. } if function == Aggregating::Average => {
                divided(*sum) / count
            }
            Self::Moments { count, sum, squares } => {
                let size = u128::from(normal.unsigned_abs().max(1));
                let mean_of_squares = squares / (size * size) / u128::from(count.unsigned_abs());
                let mean = u128::from((divided(*sum) / count).unsigned_abs());
                mean_of_squares.saturating_sub(mean * mean).isqrt() as i64
            }
        }
    }
}

/// Orders two values of a function.
fn compared(function: Aggregating, one: &Data, other: &Data) -> Ordering {
    let weight = |data: &Data| -> (f64, i64) {
        match data {
            Data::Bins(bins) => weighed(function, bins),
            _ => (0.0, 0),
        }
    };
    match (one, other) {
        (Data::Bins(_), Data::Bins(_)) => {
            let ((one, one_zero), (other, other_zero)) = (weight(one), weight(other));
            one.total_cmp(&other).then(one_zero.cmp(&other_zero))
        }
        (Data::Moments { count: a, sum: x, .. }, Data::Moments { count: b, sum: y, .. })
            if function == Aggregating::Average =>
        {
            let mean = |sum: i64, count: i64| sum as f64 / count.max(1) as f64;
            mean(*x, *a).total_cmp(&mean(*y, *b))
        }
        _ => one.number(function, 1).cmp(&other.number(function, 1)),
    }
}

/// The sum of a distribution's values as its bins have them, and how many were zero.
fn weighed(function: Aggregating, bins: &[i64]) -> (f64, i64) {
    let mut total = 0.0;
    let mut zeros = 0;
    for (bin, &count) in bins.iter().enumerate() {
        let value = match function {
            Aggregating::Linear { lower, step, .. } => {
                let at = i64::from(lower) + (bin as i64 - 1) * i64::from(step);
                match bin {
                    0 => i64::from(lower) - 1,
                    bin if bin + 1 == bins.len() => at + 1,
                    _ => at,
                }
            }
            Aggregating::LogLinear { .. } => bin as i64,
            _ => quantize_value(bin),
        };
        if value == 0 {
            zeros = count;
        }
        total += value as f64 * count as f64;
    }
    (total, zeros)
}
