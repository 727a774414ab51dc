//! Aggregations as rows for programs to read: the keys, the value, and the bounds of buckets.

use super::{Printer, text};
use crate::form::Aggregating;
use crate::machine::aggregate::{ZERO_BIN, quantize_value, steps_of_power};
use crate::machine::{Aggregations, Data, Value};
use crate::types::Type;

/// The value of an aggregation for one key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    /// The aggregation's name, empty for `@`.
    pub name: String,
    /// The name of its function.
    pub function: &'static str,
    /// The keys.
    pub keys: Vec<Key>,
    /// The value, not divided by `normal`; `None` of a distribution.
    pub value: Option<i64>,
    /// The buckets of a distribution that are not empty, the lowest first.
    pub buckets: Vec<Bucket>,
    /// By what it is divided when it is printed.
    pub normal: i64,
    /// Whether `printa()` printed the aggregation.
    pub is_printed: bool,
}

/// A key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Key {
    /// An integer of any type.
    Integer(i128),
    /// A string, the name of an address, or the frames of a stack, a line each.
    Text(Vec<u8>),
}

/// A bucket: the lowest and the highest value in it, `None` where there is no bound, and how many.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bucket {
    /// The lowest value.
    pub low: Option<i64>,
    /// The highest value.
    pub high: Option<i64>,
    /// How many.
    pub count: i64,
}

impl Printer<'_> {
    /// All aggregations, each in the order in which it is printed.
    pub fn rows(&self, aggregations: &Aggregations) -> Vec<Row> {
        let mut rows = Vec::new();
        for (number, own) in (0_u16..).zip(&self.form.aggregations) {
            for keys in self.sorted(&[number], aggregations) {
                let Some(entry) = aggregations.get(number, &keys) else { continue };
                let function = aggregations.function(number);
                let buckets = match &entry.data {
                    Data::Bins(bins) => buckets(function, bins),
                    _ => Vec::new(),
                };
                let of_key = |(key, of): (&Value, &Type)| self.row_key(key, *of);
                rows.push(Row {
                    name: own.name.clone(),
                    function: function.name(),
                    keys: keys.iter().zip(&own.keys).map(of_key).collect(),
                    value: match &entry.data {
                        Data::Bins(_) => None,
                        data => Some(data.number(function, 1)),
                    },
                    buckets,
                    normal: entry.normal,
                    is_printed: self.printed[usize::from(number)],
                });
            }
        }
        rows
    }

    fn row_key(&self, key: &Value, of: Type) -> Key {
        match (key, of) {
            (Value::Stack(frames), of) => {
                Key::Text(self.frames(frames, of).join("\n").into_bytes())
            }
            (Value::Text(bytes), _) => Key::Text(bytes.clone()),
            (key, Type::Symbol) => Key::Text(self.symbol(key.integer()).into_bytes()),
            (key, of) => Key::Integer(text::signed(key.integer(), of)),
        }
    }
}

/// The buckets with values in them.
fn buckets(function: Aggregating, bins: &[i64]) -> Vec<Bucket> {
    let bounds = bounds(function, bins.len());
    let filled = bins.iter().zip(bounds).filter(|(count, _)| **count != 0);
    filled.map(|(count, (low, high))| Bucket { low, high, count: *count }).collect()
}

/// Of each bin, the lowest and the highest value.
fn bounds(function: Aggregating, bins: usize) -> Vec<(Option<i64>, Option<i64>)> {
    if function == Aggregating::Quantize {
        return (0..bins).map(quantize_bounds).collect();
    }
    // The lowest value of each bin but the first, which is below all.
    let starts: Vec<i64> = match function {
        Aggregating::Linear { lower, step, .. } => {
            (1..bins as i64).map(|bin| i64::from(lower) + (bin - 1) * i64::from(step)).collect()
        }
        Aggregating::LogLinear { factor, low, high, steps } => {
            log_linear_starts([factor, low, high, steps], bins)
        }
        _ => Vec::new(),
    };
    let low = |bin: usize| bin.checked_sub(1).and_then(|at| starts.get(at).copied());
    (0..bins).map(|bin| (low(bin), low(bin + 1).map(|next| next - 1))).collect()
}

fn quantize_bounds(bin: usize) -> (Option<i64>, Option<i64>) {
    let value = quantize_value(bin);
    match bin.cmp(&ZERO_BIN) {
        std::cmp::Ordering::Equal => (Some(0), Some(0)),
        std::cmp::Ordering::Less => {
            let low = value.checked_mul(2).map(|next| next + 1);
            (low.filter(|_| bin > 0), Some(value))
        }
        std::cmp::Ordering::Greater => (Some(value), value.checked_mul(2).map(|next| next - 1)),
    }
}

pub(super) fn log_linear_starts([factor, low, high, steps]: [u16; 4], bins: usize) -> Vec<i64> {
    let factor = i64::from(factor);
    let mut value = factor.saturating_pow(u32::from(low));
    let mut starts = Vec::new();
    for _ in low..=high {
        let next = value.saturating_mul(factor);
        let step = next / steps_of_power(next, steps);
        while value < next && starts.len() + 2 < bins {
            starts.push(value);
            value += step;
        }
        value = next;
    }
    starts.push(value);
    starts
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::aggregate::bins;

    fn of(function: Aggregating) -> Vec<(Option<i64>, Option<i64>)> {
        bounds(function, bins(function))
    }

    #[test]
    fn bounds_follow_one_another_without_a_gap() {
        let functions = [
            Aggregating::Quantize,
            Aggregating::Linear { lower: -5, upper: 20, step: 5 },
            Aggregating::LogLinear { factor: 10, low: 0, high: 3, steps: 20 },
        ];
        for function in functions {
            let all = of(function);
            for pair in all.windows(2) {
                assert_eq!(pair[0].1.map(|high| high + 1), pair[1].0, "{function:?} {pair:?}");
            }
            assert_eq!((all[0].0, all[all.len() - 1].1), (None, None), "{function:?}");
        }
        let all = of(Aggregating::Quantize);
        assert!(all.contains(&(Some(0), Some(0))) && all.contains(&(Some(4), Some(7))));
        assert!(all.contains(&(Some(-7), Some(-4))));
        let all = of(Aggregating::Linear { lower: 0, upper: 20, step: 10 });
        let expected =
            [(None, Some(-1)), (Some(0), Some(9)), (Some(10), Some(19)), (Some(20), None)];
        assert_eq!(all, expected);
    }
}
