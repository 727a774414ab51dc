//! Each verdict, and a case just short of it.

use std::collections::BTreeMap;

use iotomy_record::AxisValue;

use super::*;
use crate::harness::figures::case_of;

/// Returns the usual case except for these values, with samples around `ns`.
fn case(but: &[(&str, AxisValue)], ns: f64) -> Case {
    let usual = BASE.iter().map(|(name, value)| ((*name).to_owned(), (*value).into()));
    let mut params: BTreeMap<String, AxisValue> = usual.collect();
    params.extend(but.iter().map(|(name, value)| ((*name).to_owned(), value.clone())));
    let samples: Vec<f64> = (0..10).map(|at| ns * (1.0 + f64::from(at % 3) / 1e3)).collect();
    let mut case = case_of(params, ("time", "ns"), samples.clone(), BTreeMap::new());
    case.extra_samples.insert("cpu_ns".into(), samples);
    case
}

fn name(axis: &'static str, value: &str) -> (&'static str, AxisValue) {
    (axis, AxisValue::Name(value.into()))
}

fn number(axis: &'static str, value: u64) -> (&'static str, AxisValue) {
    (axis, AxisValue::Number(value))
}

fn verdict(judge: fn(&Cases<'_>) -> Judgement, cases: &[Case]) -> ClaimVerdict {
    let found = judge(&Cases::new(cases));
    println!("{:?}: {}", found.verdict, found.because);
    found.verdict
}

use ClaimVerdict::{Fails, Holds, Inconclusive};

#[test]
fn a_library_that_costs_less_than_the_harness_may_is_no_measurable_tax() {
    let usual = case(&[], 100.0);
    let raw = |ns| case(&[name("way", "raw")], ns);
    assert_eq!(verdict(libc_tax, &[usual.clone(), raw(80.0)]), Holds);
    assert_eq!(verdict(libc_tax, &[usual.clone(), raw(99.0)]), Fails);
    assert_eq!(verdict(libc_tax, &[usual]), Inconclusive);
}

#[test]
fn static_linking_helps_marginally_or_much_or_not_at_all() {
    let usual = case(&[], 100.0);
    let of = |ns| [usual.clone(), case(&[name("way", "static")], ns)];
    assert_eq!(verdict(static_link, &of(97.0)), Holds);
    assert_eq!(verdict(static_link, &of(70.0)), Fails);
    assert_eq!(verdict(static_link, &of(101.0)), Fails);
}

#[test]
fn what_is_faster_in_real_time_or_in_memory_is_by_pairs() {
    let usual = case(&[], 100.0);
    let realtime = |ns| [usual.clone(), case(&[name("sched", "realtime")], ns)];
    assert_eq!(verdict(super::realtime, &realtime(90.0)), Holds);
    assert_eq!(verdict(super::realtime, &realtime(110.0)), Fails);
    let disk = |fs: &str, ns| case(&[name("fs", fs)], ns);
    assert_eq!(verdict(tmpfs, &[usual.clone(), disk("here", 200.0)]), Holds);
    // --path may name a directory in memory: an image decides if there is one.
    let both = [usual.clone(), disk("here", 99.0), disk("ext4", 200.0)];
    assert_eq!(verdict(tmpfs, &both), Holds);
    assert_eq!(verdict(tmpfs, &[usual, disk("xfs", 50.0)]), Fails);
}

#[test]
fn the_first_run_is_held_against_the_third_of_the_same_process() {
    let fresh = |but: &[(&str, AxisValue)], first: f64| {
        let mut case = case(but, 100.0);
        case.extra_samples.insert("first_ns".into(), vec![first; 8]);
        case.extra_samples.insert("third_ns".into(), vec![100.0; 8]);
        case
    };
    let cold = [name("fs", "ext4"), name("op", "back"), name("cache", "cold")];
    assert_eq!(verdict(three_runs, &[fresh(&[], 90.0), fresh(&cold, 900.0)]), Holds);
    // A machine where nothing can be mounted.
    let mut refused = case(&cold, 100.0);
    (refused.median, refused.skipped) = (None, Some("it takes root".to_owned()));
    assert_eq!(verdict(three_runs, &[fresh(&[], 90.0), refused.clone()]), Fails);
    assert_eq!(verdict(three_runs, &[case(&[], 100.0), refused]), Inconclusive);
    // A case left out by `-L` shows nothing about the machine.
    let left_out = three_runs(&Cases::new(&[fresh(&[], 900.0)]));
    assert_eq!(left_out.verdict, Inconclusive);
    assert!(left_out.because.contains("needs files read back"), "{}", left_out.because);
}

#[test]
fn long_names_are_held_against_those_of_fourteen_on_the_same_file_system() {
    let of = |fs: &str, length, ns| case(&[name("fs", fs), number("name", length)], ns);
    let pair = [of("tmpfs", 14, 100.0), of("tmpfs", 255, 130.0)];
    assert_eq!(verdict(name_length, &pair), Holds);
    let ext4 = [of("ext4", 14, 100.0), of("ext4", 255, 98.0)];
    assert_eq!(verdict(name_length, &[pair.clone(), ext4].concat()), Fails);
    assert_eq!(verdict(name_length, &pair[..1]), Inconclusive);
}

#[test]
fn a_directory_that_grows_has_to_slow_both_rounds_and_listing() {
    let cases = |power: f64, slower: f64| -> Vec<Case> {
        let sizes = [10, 1_000, 100_000];
        let one = |files: u64| {
            let n = files as f64;
            let list = case(&[name("op", "ls-l"), number("files", files)], n.powf(power));
            let ns = if files == 100_000 { 100.0 * slower } else { 100.0 };
            [list, case(&[number("files", files)], ns)]
        };
        sizes.into_iter().flat_map(one).collect()
    };
    assert_eq!(verdict(directory_size, &cases(2.0, 1.5)), Holds);
    assert_eq!(verdict(directory_size, &cases(1.0, 1.5)), Fails);
    assert_eq!(verdict(directory_size, &cases(2.0, 0.99)), Fails);
    assert_eq!(verdict(directory_size, &cases(2.0, 1.5)[..3]), Inconclusive);
}

#[test]
fn names_are_kept_until_memory_is_short() {
    let names = |bytes: f64, left: Option<f64>| {
        let mut case = case(&[name("op", "names"), name("fs", "here")], 1_000.0);
        case.extra.insert("dentry_bytes".into(), bytes);
        case.extra.extend(left.map(|left| ("left_bytes".to_owned(), left)));
        [case]
    };
    assert_eq!(verdict(name_cache, &names(192.0, Some(3.0))), Holds);
    assert_eq!(verdict(name_cache, &names(4.0, Some(3.0))), Fails);
    assert_eq!(verdict(name_cache, &names(192.0, Some(190.0))), Inconclusive);
    assert_eq!(verdict(name_cache, &names(192.0, None)), Inconclusive);
}

#[test]
fn a_layout_has_little_effect_when_no_round_is_a_tenth_off() {
    let of = |layout: &str, ns| case(&[name("fs", "ext4"), name("layout", layout)], ns);
    let usual = of("default", 100.0);
    let pair = |ns| [usual.clone(), of("large-inodes", ns)];
    assert_eq!(verdict(inode_layout, &pair(105.0)), Holds);
    assert_eq!(verdict(inode_layout, &pair(130.0)), Fails);
    assert_eq!(verdict(inode_layout, &pair(110.0)), Inconclusive);
}
