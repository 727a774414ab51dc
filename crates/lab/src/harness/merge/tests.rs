use std::time::Duration;

use iotomy_host::folder::Folder;
use iotomy_record::{Claim, ClaimVerdict, Visit};
use proptest::prelude::*;

use super::*;
use crate::harness::figures::{judged, with_figures};
use crate::{EXPERIMENTS, ExperimentPlan, FreeRoom, Size, Start, experiment, planned};

/// A plan of this share, on this machine.
fn plan_of(one: &dyn Experiment, size: Size, share: Option<Share>, machine: &str) -> Sweep {
    let folder = Folder::open(&std::env::temp_dir()).unwrap();
    let plan = ExperimentPlan {
        size,
        given: Vec::new(),
        max_time: Some(Duration::from_secs(9)),
        seed: 7,
        folder: &folder,
        room: FreeRoom::default(),
        json: None,
        share,
    };
    let machine =
        Machine { name: machine.into(), kernel: "Linux 6.1".into(), ..Machine::default() };
    let started = "2025-03-01T10:20:30Z".to_owned();
    planned(one, &plan, Start { started, machine, before: None })
}

/// The record of a run of it: the times of a case follow from its place in the whole plan, so that
/// shards measure what a run in one piece does. One case in eight is skipped.
fn run_of(one: &dyn Experiment, size: Size, share: Option<Share>, machine: &str) -> Sweep {
    let whole = plan_of(one, size, None, machine);
    let mut sweep = plan_of(one, size, share, machine);
    for case in &mut sweep.cases {
        let at = whole.cases.iter().position(|other| other.params == case.params).unwrap();
        if at % 8 == 5 {
            case.skipped = Some("unlucky".to_owned());
            continue;
        }
        let noise = |visit: usize| ((7 * at + 3 * visit) % 11) as f64;
        case.samples = (0..6).map(|visit| 1e6 + 1e5 * at as f64 + 1e3 * noise(visit)).collect();
        case.visits = (1..=6).map(|round| Visit { round, samples: 1, wall_ns: 5 }).collect();
        for extra in one.declaration().extras {
            case.extra_samples.insert(extra.name.to_owned(), case.samples.clone());
        }
        *case = with_figures(one.declaration(), case.clone());
    }
    sweep.run.is_partial = false;
    (sweep.run.wall_ns, sweep.run.rounds, sweep.run.loose) = (100, 6, 1);
    if share.is_none() {
        sweep.claims = judged(one.declaration(), &sweep.cases);
    }
    sweep
}

fn given(name: &str, sweep: Sweep) -> Given {
    Given { name: name.to_owned(), sweep }
}

/// The shards of a run on these machines, one after the other.
fn shards_of(one: &dyn Experiment, size: Size, of: u64, machines: &[&str]) -> Vec<Given> {
    let of_one = |index: u64| {
        let machine = machines[(index as usize - 1) % machines.len()];
        given(&format!("{index}.json"), run_of(one, size, Some(Share { index, of }), machine))
    };
    (1..=of).map(of_one).collect()
}

fn copy() -> &'static dyn Experiment {
    experiment("copy").unwrap()
}

/// The three shards of `copy` on one machine, of which a test changes some.
fn three() -> Vec<Given> {
    shards_of(copy(), Size::Quick, 3, &["a"])
}

fn refused(records: &[Given]) -> String {
    merged(copy(), records).unwrap_err().to_string()
}

#[test]
fn shards_of_one_machine_make_the_record_of_a_run_in_one_piece() {
    for one in EXPERIMENTS {
        let whole = run_of(*one, Size::Quick, None, "a");
        for of in [1, 2, 5, whole.cases.len() as u64 + 4] {
            let mut shards = shards_of(*one, Size::Quick, of, &["a"]);
            // Whatever the order they are named in.
            shards.reverse();
            let mut found = merged(*one, &shards).unwrap();
            let listed = std::mem::take(&mut found.run.shards);
            let indices: Vec<u64> = listed.iter().map(|shard| shard.index).collect();
            assert_eq!(indices, (1..=of).collect::<Vec<_>>());
            let cases: u64 = listed.iter().map(|shard| shard.cases).sum();
            assert_eq!(cases, whole.cases.len() as u64);
            assert_eq!((found.run.wall_ns, found.run.loose), (100 * of, of));
            (found.run.wall_ns, found.run.loose) = (whole.run.wall_ns, whole.run.loose);
            assert_eq!(found, whole, "{} in {of}", whole.experiment);
        }
    }
}

#[test]
fn a_shard_has_no_verdicts_and_what_is_merged_can_be_read_again() {
    let shards = three();
    assert!(shards.iter().all(|one| one.sweep.claims.is_empty()));
    for machines in [&["a"][..], &["a", "b"]] {
        let found = merged(copy(), &shards_of(copy(), Size::Quick, 3, machines)).unwrap();
        let bytes = iotomy_record::store::RecordRef::Sweep(&found).json().unwrap();
        assert_eq!(iotomy_record::store::parse_sweep(&bytes).unwrap(), found);
    }
}

#[test]
fn whole_records_of_machines_have_the_machine_as_an_axis_and_verdicts_each() {
    let (a, b) = (run_of(copy(), Size::Quick, None, "a"), run_of(copy(), Size::Quick, None, "b"));
    let mut slow = b.clone();
    slow.machine.kernel = "Linux 6.18".into();
    let found = merged(copy(), &[given("a", a.clone()), given("b", slow)]).unwrap();
    assert_eq!(found.axes[0].name, "machine");
    assert_eq!(found.cases.len(), 2 * a.cases.len());
    assert_eq!((found.machine.kernel.as_str(), found.machine.name.as_str()), ("", ""));
    let names: Vec<_> = found.machines.iter().map(|one| one.machine.name.as_str()).collect();
    assert_eq!(names, ["a", "b"]);
    for machine in &found.machines {
        assert_eq!(machine.claims, a.claims, "from its own cases");
    }
    for (at, case) in found.cases.iter().enumerate() {
        let name = if at < a.cases.len() { "a" } else { "b" };
        assert_eq!(case.params["machine"], AxisValue::Name(name.into()));
    }
    // Those of one machine alone are itself.
    assert_eq!(merged(copy(), &[given("a", a.clone())]).unwrap(), a);
    // Shards that were merged are a whole record.
    let parts = merged(copy(), &shards_of(copy(), Size::Quick, 3, &["b"])).unwrap();
    let found = merged(copy(), &[given("a", a), given("b", parts)]).unwrap();
    let shards: Vec<_> = found.run.shards.iter().map(|one| one.machine.as_str()).collect();
    assert_eq!(shards, ["b"; 3]);
}

#[test]
fn over_all_machines_a_claim_is_what_it_is_on_each() {
    use ClaimVerdict::{Fails, Holds, Inconclusive};
    let whole = run_of(copy(), Size::Quick, None, "a");
    let record = given("a", whole.clone());
    let plan = plan::common(copy(), std::slice::from_ref(&record)).unwrap();
    let all = plan.cases.len();
    let machine = |name: &str, verdict| SweepMachine {
        machine: Machine { name: name.into(), ..Machine::default() },
        started: whole.started.clone(),
        volume: None,
        claims: whole.claims.iter().map(|claim| Claim { verdict, ..claim.clone() }).collect(),
    };
    for (verdicts, expected, because) in [
        (&[(Holds, all), (Holds, all)][..], Holds, "holds on m0, m1"),
        (&[(Fails, all), (Fails, 2)], Fails, "fails on m0, m1"),
        (&[(Holds, all), (Fails, all)], Inconclusive, "holds on m0; fails on m1"),
        (&[(Holds, all), (Inconclusive, all)], Inconclusive, "holds on m0; inconclusive on m1"),
        (&[(Holds, 1), (Inconclusive, 2)], Holds, "holds on m0; not decided on m1 (2 of 8 cases)"),
        (&[(Inconclusive, 3), (Inconclusive, 2)], Inconclusive, "not decided on m0 (3 of 8 cases)"),
        (&[(Holds, all); 8], Holds, "holds on m0, m1, m2, m3, m4, m5 and 2 more"),
    ] {
        let names = (0..).map(|at| format!("m{at}"));
        let of = |(name, (verdict, _)): (String, &(ClaimVerdict, usize))| machine(&name, *verdict);
        let machines: Vec<_> = names.zip(verdicts).map(of).collect();
        let counts: Vec<usize> = verdicts.iter().map(|(_, count)| *count).collect();
        for claim in verdicts::over_all(&plan, &machines, &counts) {
            assert_eq!(claim.verdict, expected, "{verdicts:?}");
            let because = because.replace("of 8", &format!("of {all}"));
            assert!(claim.because.starts_with(&because), "{}", claim.because);
        }
    }
}

#[test]
fn cases_of_two_machines_decide_nothing_together() {
    for one in EXPERIMENTS {
        let whole = run_of(*one, Size::Quick, None, "a");
        let found = merged(*one, &shards_of(*one, Size::Quick, 2, &["a", "b"])).unwrap();
        for (at, claim) in whole.claims.iter().enumerate() {
            for machine in &found.machines {
                let verdict = machine.claims[at].verdict;
                // What the cases of one machine decide, all cases decide alike, or not at all.
                let is_so = verdict == ClaimVerdict::Inconclusive || verdict == claim.verdict;
                assert!(is_so, "{}: {verdict:?} of {:?}", claim.id, claim.verdict);
            }
        }
        let text = &found.machines[0].claims[0].because;
        let inconclusive = found.machines[0].claims[0].verdict == ClaimVerdict::Inconclusive;
        assert!(!inconclusive || text.contains("cases of two machines are not compared"), "{text}");
    }
}

#[test]
fn the_same_record_twice_counts_once_and_another_of_its_shard_is_refused() {
    let mut shards = three();
    shards.push(given("again.json", shards[1].sweep.clone()));
    let found = merged(copy(), &shards).unwrap();
    assert_eq!(found.run.shards.len(), 3);
    shards[3].sweep.run.wall_ns += 1;
    assert_eq!(
        refused(&shards),
        "cannot merge 2.json with again.json: both are shard 2/3, with different measurements; leave \
         one of them out"
    );
    let whole = run_of(copy(), Size::Quick, None, "a");
    let other = Sweep { started: "2025-03-02T10:20:30Z".into(), ..whole.clone() };
    let error = refused(&[given("a.json", whole), given("b.json", other)]);
    assert!(error.contains("both are whole records of the machine a; leave one"), "{error}");
}

#[test]
fn missing_shards_are_named() {
    let shards = three();
    let refused = |records: &[Given]| merged(copy(), records).unwrap_err();
    assert_eq!(refused(&shards[..2]).to_string(), "shard 3/3 is missing");
    let error = refused(&shards[1..2]);
    assert_eq!(error.to_string(), "shards 1/3, 3/3 are missing");
    let MergeError::Missing { missing } = error else { panic!("{error:?}") };
    assert_eq!(missing, [Share { index: 1, of: 3 }, Share { index: 3, of: 3 }]);
    let many = run_of(copy(), Size::Quick, Some(Share { index: 1, of: 100 }), "a");
    let error = merged(copy(), &[given("1", many)]).unwrap_err().to_string();
    assert!(error.ends_with("21/100 and 79 more are missing"), "{error}");
}

#[test]
fn records_that_do_not_go_together_are_refused_with_the_difference() {
    let of = |change: &dyn Fn(&mut Sweep)| {
        let mut shards = three();
        change(&mut shards[1].sweep);
        refused(&shards)
    };
    for (error, says) in [
        (
            of(&|one| one.experiment = "herd".into()),
            "cannot merge 2.json: it is of the experiment herd",
        ),
        (of(&|one| one.run.is_partial = true), "its run was interrupted; run it again"),
        (of(&|one| one.machine.name = String::new()), "it does not name its machine"),
        (
            of(&|one| one.run.size = "full".into()),
            "cannot merge 2.json: this iotomy makes other cases",
        ),
        (of(&|one| one.cases.truncate(1)), "this iotomy makes other cases of its axes"),
        (
            of(&|one| one.cases[0].unit = "bytes".into()),
            "this iotomy makes other cases of its axes",
        ),
        (of(&|one| one.axes.truncate(1)), "this iotomy makes other cases of its axes"),
        (of(&|one| one.axes.reverse()), "this iotomy makes other cases of its axes"),
        (
            of(&|one| one.axes[0].values[0] = AxisValue::Number(9)),
            "this iotomy makes other cases of its axes",
        ),
        (
            of(&|one| one.run.shard.as_mut().unwrap().plan = "0".into()),
            "this iotomy makes other cases of its axes",
        ),
        (
            of(&|one| one.machine.kernel = "Linux 6.18".into()),
            "cannot merge 1.json with 2.json: both name their machine a, with different kernels: \
             Linux 6.1 and Linux 6.18; run each with a name of its own, by --machine",
        ),
        (of(&|one| one.machine.cpu = "other".into()), "with different processors:  and other"),
        (
            of(&|one| {
                let volume = one.run.volume.as_mut().unwrap();
                (volume.path, volume.file_system, volume.id) =
                    ("/x".into(), "ufs".into(), "ufs 1 2 3".into());
            }),
            "directories of different file systems",
        ),
        (
            of(&|one| *one = run_of(copy(), Size::Quick, None, "a")),
            "one is a whole record, the other shard 1/3; merge the shards of each machine first",
        ),
        (
            of(&|one| *one = run_of(copy(), Size::Quick, Some(Share { index: 2, of: 4 }), "a")),
            "they are shards 1/3 and 2/4, of different numbers of shards",
        ),
        (
            of(&|one| *one = run_of(copy(), Size::Default, Some(Share { index: 2, of: 3 }), "a")),
            "the values of the axis ",
        ),
    ] {
        assert!(error.contains(says), "{error}\n{says}");
    }
    // Of whole records, which have no digest, the options differ alone.
    let of = |change: &dyn Fn(&mut Sweep)| {
        let mut both = ["a", "b"].map(|name| given(name, run_of(copy(), Size::Quick, None, name)));
        change(&mut both[1].sweep);
        refused(&both)
    };
    let error = of(&|one| one.run.size = "full".into());
    assert!(error.contains("their sizes differ: quick and full; give all runs"), "{error}");
    let error = of(&|one| one.run.max_time_ns = None);
    assert!(error.contains("their --max-time differs: 9 s and no limit; give all runs"), "{error}");
    let two = ["a", "b"].map(|name| given(name, run_of(copy(), Size::Quick, None, name)));
    let error = refused(&[given("ab", merged(copy(), &two).unwrap())]);
    assert!(error.contains("cannot merge ab: it was merged from several machines"), "{error}");
    assert_eq!(refused(&[]), "there is no record to merge");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// On any number of machines, each case is there once, under the machine that ran it.
    #[test]
    fn nothing_is_lost_between_machines(of in 1..9_u64, machines in 1..5_usize, at in 0..20_usize) {
        let one = EXPERIMENTS[at % EXPERIMENTS.len()];
        let names = &["a", "b", "c", "d"][..machines];
        let shards = shards_of(one, Size::Quick, of, names);
        let found = merged(one, &shards).unwrap();
        let many = names.len().min(of as usize);
        prop_assert_eq!(found.machines.len(), if many == 1 { 0 } else { many });
        prop_assert_eq!(found.cases.len(), plan_of(one, Size::Quick, None, "a").cases.len());
        for shard in &shards {
            for case in &shard.sweep.cases {
                let mut params = case.params.clone();
                if many > 1 {
                    let name = AxisValue::Name(shard.sweep.machine.name.clone());
                    params.insert("machine".into(), name);
                }
                let there: Vec<_> = found.cases.iter().filter(|one| one.params == params).collect();
                prop_assert_eq!(there.len(), 1);
                prop_assert_eq!(&there[0].samples, &case.samples);
            }
        }
    }
}
