//! The contract of every experiment.

use std::collections::HashSet;

use iotomy_record::ClaimVerdict;

use super::size::watched_time;
use super::*;

#[test]
fn every_experiment_is_declared_whole_and_once() {
    let (mut names, mut claims) = (HashSet::new(), HashSet::new());
    for one in EXPERIMENTS {
        let declared = one.declaration();
        let name = declared.name;
        assert!(names.insert(name), "{name} stands twice");
        assert!(std::ptr::eq(experiment(name).unwrap().declaration(), declared));
        let is_name = |c: char| c.is_ascii_lowercase() || c == '-';
        assert!(name.chars().all(is_name) && name.len() <= 24, "{name}");
        for text in [declared.summary, declared.hypothesis, declared.refuted_by, declared.metric] {
            assert!(!text.is_empty() && !text.ends_with('.') && !text.contains("  "), "{text:?}");
        }
        assert!(!declared.controls.is_empty() && !declared.claims.is_empty(), "{name}");
        let axis = |name: &str| declared.axes.iter().find(|axis| axis.name == name);
        assert!(axis(declared.along).is_some() && axis(declared.lines).is_some(), "{name}");
        assert_ne!(declared.along, declared.lines, "{name}");
        assert!(["ns", "bytes/s", "1/s"].contains(&declared.unit), "{name}");
        let Sampling { a_visit, least, most, tight } = declared.sampling;
        assert!(1 <= a_visit && a_visit <= least && least <= most && tight > 0.0, "{name}");
        // Below six there is no interval.
        assert!(least >= 6, "{name}");
        let page = |page: &&str| page.ends_with(')') && page.contains('(');
        assert!(!declared.man.is_empty() && declared.man.iter().all(page), "{name}");
        for claim in declared.claims {
            assert!(claims.insert(claim.id), "{} stands twice", claim.id);
            assert!(!claim.text.ends_with('.') && !claim.text.contains("  "), "{}", claim.text);
            let is_article = |part: &str| part.len() == 3 && part.parse::<u32>().is_ok();
            assert!(claim.source.split(", ").all(is_article), "{}", claim.id);
        }
        let extras: HashSet<&str> = declared.extras.iter().map(|extra| extra.name).collect();
        assert_eq!(extras.len(), declared.extras.len(), "{name}");
    }
}

#[test]
fn what_is_promised_of_a_size_is_more_than_its_parts_take() {
    for size in [Size::Quick, Size::Default] {
        let (promised, timed) = (size.promised().unwrap(), size.max_time().unwrap());
        let spare = promised.checked_sub(timed + watched_time(timed)).unwrap();
        // For what had begun when the time was up, and for what is taken down.
        assert!(10 * spare >= promised, "{size:?}: {spare:?} of {promised:?}");
    }
    assert_eq!((Size::Full.promised(), Size::Full.max_time()), (None, None));
}

#[test]
fn every_axis_takes_its_own_values_and_every_size_makes_cases() {
    for one in EXPERIMENTS {
        let declared = one.declaration();
        for size in [Size::Quick, Size::Default, Size::Full] {
            for axis in declared.axes {
                let values = axis.values(size);
                assert!(!values.is_empty(), "{} {}", declared.name, axis.name);
                for value in values {
                    let fits = match (axis.takes, value) {
                        (Takes::Names(names), Value::S(name)) => names.contains(name),
                        (Takes::Numbers(least, most), Value::N(n)) => (least..=most).contains(n),
                        _ => false,
                    };
                    assert!(fits, "{} {}: {value:?}", declared.name, axis.name);
                }
            }
            let cases = cases_of(*one, size);
            assert!(cases.len() >= 2, "{}", declared.name);
            // What a quick run needs is there on a small machine.
            let most = cases.iter().map(|case| one.needs(case).memory_bytes).max().unwrap();
            assert!(size != Size::Quick || most <= 512 << 20, "{}: {most}", declared.name);
        }
    }
}

fn cases_of(one: &dyn Experiment, size: Size) -> Vec<Params> {
    let axes: Vec<_> = one
        .declaration()
        .axes
        .iter()
        .map(|axis| iotomy_record::SweepAxis {
            name: axis.name.into(),
            unit: axis.unit.into(),
            values: axis.values(size).iter().map(|value| (*value).into()).collect(),
        })
        .collect();
    one.cases(&axes)
}

#[test]
fn a_claim_without_its_cases_is_inconclusive_and_says_why() {
    for one in EXPERIMENTS {
        let declared = one.declaration();
        for case in cases_of(*one, Size::Quick) {
            let metric = (declared.metric, declared.unit);
            let alone = [figures::case_of(case.0, metric, vec![5.0], Default::default())];
            for claim in declared.claims {
                let found = (claim.judge)(&Cases::of(&alone));
                assert_eq!(found.verdict, ClaimVerdict::Inconclusive, "{}", claim.id);
                assert!(!found.because.is_empty(), "{}", claim.id);
            }
        }
    }
}
