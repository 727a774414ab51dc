use std::collections::{BTreeMap, BTreeSet};

use iotomy_record::AxisValue;
use proptest::prelude::*;

use super::*;
use crate::{EXPERIMENTS, Size};

/// Returns the axes of a run of this size.
fn axes(declared: &ExperimentDeclaration, size: Size) -> Vec<SweepAxis> {
    let axis = |axis: &crate::Axis| SweepAxis {
        name: axis.name.into(),
        unit: axis.unit.into(),
        values: axis.values(size).into_iter().map(Into::into).collect(),
    };
    declared.axes.iter().map(axis).collect()
}

/// A plan's cases: points on two axes, each with some of the lines.
fn plans() -> impl Strategy<Value = Vec<Params>> {
    let points = prop::collection::btree_set((0..4_u64, 0..6_u64, 0..5_u64), 0..60);
    points.prop_map(|points| {
        let number = |name: &str, value| (name.to_owned(), AxisValue::Number(value));
        let case = |(a, b, line): (u64, u64, u64)| {
            Params(BTreeMap::from([number("a", a), number("b", b), number("line", line)]))
        };
        points.into_iter().map(case).collect()
    })
}

/// The cases of each share.
fn all_shares(lines: &str, cases: &[Params], of: u64) -> Vec<Vec<Params>> {
    (1..=of).map(|index| Share { index, of }.select(lines, cases.to_vec())).collect()
}

fn check(lines: &str, cases: &[Params], of: u64) {
    let shares = all_shares(lines, cases, of);
    let mut met = BTreeSet::new();
    for case in shares.iter().flatten() {
        assert!(met.insert(case.clone()), "{case} is in two shares");
    }
    assert_eq!(met, cases.iter().cloned().collect(), "all cases, and no others");
    // In the plan's order.
    let places: BTreeMap<&Params, usize> = cases.iter().zip(0..).collect();
    for share in &shares {
        let places: Vec<_> = share.iter().map(|case| places[case]).collect();
        assert!(places.is_sorted(), "{share:?}");
    }
    let point = |case: &Params| {
        let mut point = case.0.clone();
        point.remove(lines);
        point
    };
    let mut home = BTreeMap::new();
    let mut groups: BTreeMap<_, usize> = BTreeMap::new();
    for (at, share) in shares.iter().enumerate() {
        for case in share {
            assert_eq!(*home.entry(point(case)).or_insert(at), at, "{case} is not with its point");
            *groups.entry(point(case)).or_default() += 1;
        }
    }
    let sizes: Vec<usize> = shares.iter().map(Vec::len).collect();
    let largest = groups.values().max().copied().unwrap_or(0);
    let (most, least) = (sizes.iter().max().unwrap(), sizes.iter().min().unwrap());
    assert!(most - least <= largest, "{sizes:?}");
    let used = sizes.iter().filter(|size| **size > 0).count();
    assert_eq!(used as u64, of.min(groups.len() as u64), "none is empty while others have two");
}

proptest! {
    #[test]
    fn shares_of_any_plan_are_disjoint_complete_and_balanced(cases in plans(), of in 1..70_u64) {
        check("line", &cases, of);
    }

    #[test]
    fn a_share_is_written_as_it_is_read(index in 1..MOST, more in 0..MOST) {
        let of = (index + more).min(MOST);
        prop_assert_eq!(format!("{index}/{of}").parse::<Share>(), Ok(Share { index, of }));
    }

    #[test]
    fn no_text_makes_a_share_that_is_not_one_of_its_number(text in "[0-9/ +-]{0,12}|\\PC{0,8}") {
        if let Ok(Share { index, of }) = text.parse::<Share>() {
            prop_assert!(1 <= index && index <= of && of <= MOST);
        }
    }
}

#[test]
fn shares_of_every_experiment_are_disjoint_complete_and_balanced() {
    for one in EXPERIMENTS {
        let declared = one.declaration();
        for size in [Size::Quick, Size::Default, Size::Full] {
            let cases = one.cases(&axes(declared, size));
            for of in [1, 2, 7] {
                check(declared.lines, &cases, of);
            }
            if size == Size::Quick {
                check(declared.lines, &cases, cases.len() as u64 + 3);
            }
            let first = all_shares(declared.lines, &cases, 1);
            assert_eq!(first, [cases], "{}", declared.name);
        }
    }
}

#[test]
fn a_bad_share_is_refused_with_what_is_expected() {
    for (text, said) in [
        ("", "invalid shard: expected I/N, as in 2/5"),
        ("2", "expected I/N"),
        ("2/", "expected I/N"),
        ("/5", "expected I/N"),
        ("+1/5", "expected I/N"),
        ("1/2/3", "expected I/N"),
        ("a/b", "expected I/N"),
        ("-1/5", "expected I/N"),
        ("99999999999999999999/5", "expected I/N"),
        ("0/5", "invalid shard 0 of 5: expected 1 to 5"),
        ("6/5", "invalid shard 6 of 5: expected 1 to 5"),
        ("1/0", "invalid number of shards 0: expected 1 to 100000"),
        ("1/100001", "invalid number of shards 100001"),
    ] {
        let error = text.parse::<Share>().unwrap_err();
        assert!(error.contains(said), "{text:?}: {error}");
    }
}

/// The share that a case is in must never change for a plan that another version may have begun.
#[test]
fn shares_are_the_same_in_every_version() {
    let number = |name: &str, value| (name.to_owned(), AxisValue::Number(value));
    let mut cases = Vec::new();
    for (a, lines) in [(1, 1), (2, 3), (3, 1), (4, 2), (5, 3)] {
        for line in 0..lines {
            cases.push(Params(BTreeMap::from([number("a", a), number("line", line)])));
        }
    }
    // 2 and 5 first, then 4, then 1 and 3 where there are the fewest.
    assert_eq!(shards("line", &cases, 3), [3, 1, 1, 1, 1, 3, 3, 2, 2, 2]);
}

#[test]
fn a_digest_tells_plans_apart() {
    let declared = crate::experiment("copy").unwrap().declaration();
    let of = |size: Size, max| {
        let axes = axes(declared, size);
        let cases = crate::experiment("copy").unwrap().cases(&axes);
        digest(declared, &axes, &cases, (size.name(), max))
    };
    let all = [of(Size::Quick, None), of(Size::Quick, Some(1)), of(Size::Default, None)];
    assert_eq!(all.iter().collect::<BTreeSet<_>>().len(), 3, "{all:?}");
    assert_eq!(of(Size::Quick, None), all[0]);
}
