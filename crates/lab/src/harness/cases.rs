//! The cases of a sweep: every combination of the axes' values.

use std::collections::BTreeMap;
use std::fmt;

use iotomy_record::{AxisValue, SweepAxis};

/// A value of each axis.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Params(pub(crate) BTreeMap<String, AxisValue>);

impl Params {
    /// Returns the value of an axis of numbers.
    ///
    /// # Panics
    /// Panics if there is no such axis, or if it has names.
    pub fn number(&self, axis: &str) -> u64 {
        match self.0.get(axis) {
            Some(AxisValue::Number(number)) => *number,
            other => panic!("{axis} is an axis of numbers, not {other:?}"),
        }
    }

    /// Returns the value of an axis of names.
    ///
    /// # Panics
    /// Panics if there is no such axis, or if it has numbers.
    pub fn name(&self, axis: &str) -> &str {
        match self.0.get(axis) {
            Some(AxisValue::Name(name)) => name,
            other => panic!("{axis} is an axis of names, not {other:?}"),
        }
    }

    /// Iterates over the axes and their values.
    pub fn values(&self) -> impl Iterator<Item = (&str, &AxisValue)> {
        self.0.iter().map(|(axis, value)| (axis.as_str(), value))
    }
}

impl fmt::Display for Params {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, (name, value)) in self.0.iter().enumerate() {
            write!(to, "{}{name} {value}", if at > 0 { ", " } else { "" })?;
        }
        Ok(())
    }
}

/// Returns every combination of the axes' values; the last axis varies fastest.
pub fn points(axes: &[SweepAxis]) -> Vec<Params> {
    let mut points = vec![BTreeMap::new()];
    for axis in axes {
        let longer = |point: &BTreeMap<String, AxisValue>| {
            let point = point.clone();
            axis.values.iter().map(move |value| {
                let mut point = point.clone();
                point.insert(axis.name.clone(), value.clone());
                point
            })
        };
        points = points.iter().flat_map(longer).collect();
    }
    points.into_iter().map(Params).collect()
}

/// Returns the reasons why a combination is not a case: the conditions that do not hold.
pub(crate) fn unmet(conditions: &[(bool, &'static str)]) -> Vec<&'static str> {
    conditions.iter().filter(|(holds, _)| !holds).map(|(_, why)| *why).collect()
}

/// Returns the reasons that all of these invalid combinations have in common, or all reasons if
/// there is none.
pub(crate) fn in_common(reasons: &[Vec<&'static str>]) -> Vec<&'static str> {
    let mut all: Vec<&str> = Vec::new();
    for reason in reasons.iter().flatten() {
        if !all.contains(reason) {
            all.push(reason);
        }
    }
    let is_common = |reason: &&&str| reasons.iter().all(|of| of.contains(reason));
    let common: Vec<&str> = all.iter().filter(is_common).copied().collect();
    if common.is_empty() { all } else { common }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_that_all_have_is_the_reason() {
        let (one, other) = (unmet(&[(false, "a"), (true, "b")]), unmet(&[(false, "b")]));
        let both = unmet(&[(false, "b"), (false, "a")]);
        assert_eq!(in_common(&[one.clone(), both.clone()]), ["a"]);
        assert_eq!(in_common(&[one, both, other]), ["a", "b"]);
        assert!(in_common(&[]).is_empty());
    }

    #[test]
    fn every_combination_is_there_once() {
        let axis = |name: &str, values: &[u64]| SweepAxis {
            name: name.into(),
            unit: String::new(),
            values: values.iter().map(|n| AxisValue::Number(*n)).collect(),
        };
        let found: Vec<String> = points(&[axis("a", &[1, 2]), axis("b", &[3, 4])])
            .iter()
            .map(Params::to_string)
            .collect();
        assert_eq!(found, ["a 1, b 3", "a 1, b 4", "a 2, b 3", "a 2, b 4"]);
        assert_eq!(points(&[axis("a", &[])]), []);
        assert_eq!(points(&[]).len(), 1);
    }
}
