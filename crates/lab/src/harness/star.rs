//! Cases that differ from a base in a few axes, for experiments where all combinations of many axes
//! would be far too many and show nothing more.
//!
//! The base is the usual value of each axis, or the first given value if the usual one is not among
//! those given. A [`VariedAxes`] names axes that may differ from the base together.

use std::collections::{BTreeMap, BTreeSet};

use iotomy_record::{AxisValue, Case, SweepAxis};

use super::{Cases, Params, Value, points};

/// The usual value of each axis.
pub(crate) type UsualValues = &'static [(&'static str, Value)];

/// Axes that are varied together, with a filter for their combinations.
#[derive(Debug)]
pub(crate) struct VariedAxes {
    /// Their names.
    pub(crate) axes: &'static [&'static str],
    /// Whether a combination is a case, given the base.
    pub(crate) only: fn(&Params, &Params) -> bool,
}

/// Returns the base and the cases on the rays, each once, in the order of the axes' values.
pub(crate) fn star(axes: &[SweepAxis], base: UsualValues, rays: &[VariedAxes]) -> Vec<Params> {
    let usual = |axis: &SweepAxis| {
        let declared = base.iter().find(|(name, _)| *name == axis.name);
        let declared = declared.map(|(_, value)| AxisValue::from(*value));
        declared.filter(|value| axis.values.contains(value)).or(axis.values.first().cloned())
    };
    let mut center = Params(BTreeMap::new());
    for axis in axes {
        // An axis without values makes no case at all.
        let Some(value) = usual(axis) else { return Vec::new() };
        center.0.insert(axis.name.clone(), value);
    }
    let on_ray = |ray: &VariedAxes| {
        let one = |axis: &SweepAxis| {
            let is_varied = ray.axes.contains(&axis.name.as_str());
            let usual = || usual(axis).into_iter().collect();
            SweepAxis {
                values: if is_varied { axis.values.clone() } else { usual() },
                ..axis.clone()
            }
        };
        let all = points(&axes.iter().map(one).collect::<Vec<_>>());
        all.into_iter().filter(|case| (ray.only)(case, &center)).collect::<Vec<_>>()
    };
    let found: BTreeSet<Params> = rays.iter().flat_map(on_ray).chain([center.clone()]).collect();
    let place = |case: &Params| -> Vec<usize> {
        let at =
            |axis: &SweepAxis| axis.values.iter().position(|v| Some(v) == case.0.get(&axis.name));
        axes.iter().map(|axis| at(axis).unwrap_or(usize::MAX)).collect()
    };
    let mut found: Vec<Params> = found.into_iter().collect();
    found.sort_by_cached_key(place);
    found
}

/// Returns the case with the base's values except for these.
pub(crate) fn at<'a>(
    cases: &Cases<'a>,
    base: UsualValues,
    but: &[(&'static str, Value)],
) -> Option<&'a Case> {
    let mut wanted: BTreeMap<&str, AxisValue> = BTreeMap::new();
    for (name, usual) in base {
        let usual = AxisValue::from(*usual);
        let is_there = cases.iter().any(|case| case.params.get(*name) == Some(&usual));
        // If the usual value was not run, the value that most cases have is the base.
        let value = if is_there { Some(usual) } else { most_frequent(cases, name) };
        wanted.insert(name, value?);
    }
    wanted.extend(but.iter().map(|(name, value)| (*name, AxisValue::from(*value))));
    let is_it =
        |case: &&Case| wanted.iter().all(|(name, value)| case.params.get(*name) == Some(value));
    cases.iter().find(is_it)
}

fn most_frequent(cases: &Cases<'_>, axis: &str) -> Option<AxisValue> {
    let mut counts: BTreeMap<&AxisValue, usize> = BTreeMap::new();
    for value in cases.iter().filter_map(|case| case.params.get(axis)) {
        *counts.entry(value).or_default() += 1;
    }
    counts.into_iter().max_by_key(|(_, count)| *count).map(|(value, _)| value.clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    const BASE: UsualValues = &[("a", Value::N(2)), ("b", Value::S("x")), ("c", Value::N(0))];
    const RAYS: &[VariedAxes] = &[
        VariedAxes { axes: &["a"], only: |_, _| true },
        VariedAxes { axes: &["b", "c"], only: |case, _| case.number("c") != 9 },
    ];

    fn axes(a: &[u64], b: &[&str], c: &[u64]) -> Vec<SweepAxis> {
        let numbers = |name: &str, of: &[u64]| SweepAxis {
            name: name.into(),
            unit: String::new(),
            values: of.iter().map(|n| AxisValue::Number(*n)).collect(),
        };
        let names = SweepAxis {
            name: "b".into(),
            unit: String::new(),
            values: b.iter().map(|name| AxisValue::Name((*name).into())).collect(),
        };
        vec![numbers("a", a), names, numbers("c", c)]
    }

    fn shown(cases: &[Params]) -> Vec<String> {
        cases.iter().map(Params::to_string).collect()
    }

    #[test]
    fn axes_leave_the_base_only_along_a_ray() {
        let found = star(&axes(&[1, 2], &["x", "y"], &[0, 9]), BASE, RAYS);
        assert_eq!(shown(&found), ["a 1, b x, c 0", "a 2, b x, c 0", "a 2, b y, c 0"]);
        let found = star(&axes(&[1, 2], &["x", "y"], &[0, 5]), BASE, RAYS);
        assert_eq!(found.len(), 5, "{:?}", shown(&found));
    }

    #[test]
    fn without_its_usual_value_an_axis_stays_at_the_first_one_given() {
        let found = star(&axes(&[7, 8], &["y"], &[0]), BASE, RAYS);
        assert_eq!(shown(&found), ["a 7, b y, c 0", "a 8, b y, c 0"]);
    }

    #[test]
    fn a_case_is_found_by_what_it_has_besides_the_base() {
        let cases: Vec<Case> = star(&axes(&[1, 2], &["y", "z"], &[0, 5]), BASE, RAYS)
            .into_iter()
            .map(|params| {
                super::super::figures::case_of(params.0, ("t", "ns"), vec![1.0], BTreeMap::new())
            })
            .collect();
        let cases = Cases::new(&cases);
        // "x" is not among the values: most cases have "y".
        let found = at(&cases, BASE, &[("c", Value::N(5))]).unwrap();
        assert_eq!(Params(found.params.clone()).to_string(), "a 2, b y, c 5");
        assert!(at(&cases, BASE, &[("a", Value::N(3))]).is_none());
    }
}
