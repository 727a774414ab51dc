//! The contract of every experiment.

use std::collections::{BTreeMap, HashSet};

use iotomy_record::{Case, ClaimVerdict};
use iotomy_stats::order::Random;

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
        // With fewer than six there is no interval.
        assert!(least >= 6, "{name}");
        let page = |page: &&str| page.ends_with(')') && page.contains('(');
        assert!(!declared.man.is_empty() && declared.man.iter().all(page), "{name}");
        for claim in declared.claims {
            assert!(claims.insert(claim.id), "{} stands twice", claim.id);
            assert!(!claim.text.ends_with('.') && !claim.text.contains("  "), "{}", claim.text);
            let is_article = |part: &str| part.len() == 3 && part.parse::<u32>().is_ok();
            let is_ours = claim.source == "iotomy";
            assert!(is_ours || claim.source.split(", ").all(is_article), "{}", claim.id);
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
        // Spare time for an operation in progress when the time was up, and for taking down.
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
                    let is_allowed = axis.takes.allows(&value.into());
                    assert!(is_allowed, "{} {}: {value:?}", declared.name, axis.name);
                }
            }
            let cases = cases_of(*one, size);
            assert!(cases.len() >= 2, "{}", declared.name);
            // A small machine has what a quick run needs.
            let most = cases.iter().map(|case| one.needs(case).memory_bytes).max().unwrap();
            assert!(size != Size::Quick || most <= 512 << 20, "{}: {most}", declared.name);
        }
    }
}

#[test]
fn every_waiter_that_can_take_part_does() {
    use iotomy_waiters::{Kind, Model, WAITERS};
    for (name, axis, quick) in [
        ("wait", "waiter", false),
        ("enter-leave", "waiter", false),
        ("models", "model", true),
        ("accept", "strategy", false),
    ] {
        let axes = experiment(name).unwrap().declaration().axes;
        let axis = axes.iter().find(|one| one.name == axis).unwrap();
        let (all, usual) = (axis.takes.names().unwrap(), axis.values(Size::Default));
        for waiter in WAITERS.iter().filter(|waiter| !waiter.calls.wait.is_empty()) {
            let of = waiter.capabilities;
            let can_share = of.sleeps && !of.receives && of.model != Model::Signals;
            let can = name != "accept" || can_share && of.serves.contains(&Kind::Listener);
            assert_eq!(all.contains(&waiter.name), can, "{name}: {}", waiter.name);
            let is_usual = can && (of.sleeps || name == "models");
            assert_eq!(usual.contains(&Value::S(waiter.name)), is_usual, "{name}: {}", waiter.name);
        }
        assert_eq!(axis.values(Size::Quick) == usual, quick, "{name}");
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
            values: axis.values(size).into_iter().map(Into::into).collect(),
        })
        .collect();
    one.cases(&axes)
}

/// Returns a case with very noisy times from the same distribution for all cases, so that there is
/// nothing to find.
fn noisy(one: &dyn Experiment, params: Params, visits: usize, random: &mut Random) -> Case {
    let declared = one.declaration();
    let mut times = || (0..visits).map(|_| 1e6 * (3.0 * random.unit()).exp()).collect::<Vec<f64>>();
    let samples = times();
    let timed = declared.extras.iter().filter(|extra| extra.unit == "ns");
    let extra_samples: BTreeMap<String, Vec<f64>> =
        timed.map(|extra| (extra.name.to_owned(), times())).collect();
    let metric = (declared.metric, declared.unit);
    let case = figures::case_of(params.0, metric, samples, BTreeMap::new());
    figures::with_figures(declared, Case { extra_samples, ..case })
}

#[test]
fn nothing_that_was_timed_is_decided_by_fewer_than_three_visits() {
    let mut random = Random::new(11);
    for one in EXPERIMENTS {
        for visits in [1, 2] {
            let of = |params| noisy(*one, params, visits, &mut random);
            let cases: Vec<Case> = cases_of(*one, Size::Default).into_iter().map(of).collect();
            for claim in one.declaration().claims {
                let found = (claim.judge)(&Cases::new(&cases));
                let verdict = found.verdict;
                assert_eq!(verdict, ClaimVerdict::Inconclusive, "{}: {found:?}", claim.id);
            }
        }
    }
}

#[test]
fn noise_of_three_visits_rarely_decides_a_claim() {
    const RUNS: usize = 60;
    const REFUTED_BY_NOTHING: [&str; 5] =
        ["null-sink-pipe", "enter-leave", "herd-linear", "directory-size", "shadow-ram"];
    let mut random = Random::new(12);
    for one in EXPERIMENTS {
        let params = cases_of(*one, Size::Quick);
        let mut decided: BTreeMap<&str, usize> = BTreeMap::new();
        for _ in 0..RUNS {
            let of = |params: &Params| noisy(*one, params.clone(), 3, &mut random);
            let cases: Vec<Case> = params.iter().map(of).collect();
            for claim in one.declaration().claims {
                let found = (claim.judge)(&Cases::new(&cases));
                // The absence of growth, or of a tenfold growth, refutes a claim that requires it.
                let is_decided = match REFUTED_BY_NOTHING.contains(&claim.id) {
                    true => found.verdict == ClaimVerdict::Holds,
                    false => found.verdict != ClaimVerdict::Inconclusive,
                };
                *decided.entry(claim.id).or_default() += usize::from(is_decided);
            }
        }
        // An interval is wrong 5 times in 100, and a claim may rest on several of them.
        let often: Vec<_> = decided.iter().filter(|(_, of)| 5 * **of > RUNS).collect();
        assert!(often.is_empty(), "of {RUNS} runs: {often:?}");
    }
}

#[test]
fn a_claim_fails_by_no_case_that_had_no_time() {
    let mut random = Random::new(13);
    for one in EXPERIMENTS {
        // Without any times no claim is judged, whatever it would be judged by if they were known.
        let of = |params: Params| {
            let case = noisy(*one, params, 0, &mut random);
            Case { skipped: Some(Case::NO_TIME.to_owned()), ..case }
        };
        let cases: Vec<Case> = cases_of(*one, Size::Quick).into_iter().map(of).collect();
        for claim in one.declaration().claims {
            let found = (claim.judge)(&Cases::new(&cases));
            assert_eq!(found.verdict, ClaimVerdict::Inconclusive, "{}: {found:?}", claim.id);
        }
    }
}

#[test]
fn a_claim_without_its_cases_is_inconclusive_and_says_why() {
    for one in EXPERIMENTS {
        let declared = one.declaration();
        for case in cases_of(*one, Size::Quick) {
            let metric = (declared.metric, declared.unit);
            let alone = [figures::case_of(case.0, metric, vec![5.0], Default::default())];
            for claim in declared.claims {
                let found = (claim.judge)(&Cases::new(&alone));
                assert_eq!(found.verdict, ClaimVerdict::Inconclusive, "{}", claim.id);
                assert!(!found.because.is_empty(), "{}", claim.id);
            }
        }
    }
}
