//! The runner under a scripted clock.

use std::collections::HashSet;
use std::time::Duration;

use iotomy_host::folder::Folder;
use iotomy_record::{AxisValue, Case, ClaimVerdict, Machine, Sweep};

use super::fake::{Fake, FakeAround, Shared, run_in};
use super::*;

fn case(sweep: &Sweep, n: u64) -> &Case {
    let is = |case: &&Case| case.params["n"] == AxisValue::Number(n);
    sweep.cases.iter().find(is).unwrap()
}

#[test]
fn cases_are_repeated_until_they_are_tight() {
    let world = Shared::default();
    world.lock().unwrap().is_quiet = true;
    let sweep = run_in(&world, Size::Quick, None, None).unwrap();
    for n in [1, 2] {
        let case = case(&sweep, n);
        assert_eq!(case.samples, vec![100.0 * n as f64; 6]);
        assert_eq!((case.median, case.extra["twice"]), (Some(100.0 * n as f64), 200.0 * n as f64));
    }
    assert_eq!((sweep.run.rounds, sweep.run.loose, sweep.run.is_partial), (3, 0, false));
    assert_eq!(sweep.run.wall_ns, 12_000_000_000);
    assert_eq!(sweep.claims[0].verdict, ClaimVerdict::Holds);
    let slope = sweep.claims[0].evidence["slope"].as_f64().unwrap();
    assert!((slope - 100.0).abs() < 1e-9, "{slope}");
    let bytes = iotomy_record::store::RecordRef::Sweep(&sweep).json().unwrap();
    assert_eq!(iotomy_record::store::parse_sweep(&bytes).unwrap(), sweep);
}

#[test]
fn noise_ends_with_the_most_samples() {
    let world = Shared::default();
    let sweep = run_in(&world, Size::Quick, None, None).unwrap();
    assert!(sweep.cases.iter().all(|case| case.samples.len() == 20), "{sweep:?}");
}

#[test]
fn what_does_not_fit_or_work_is_skipped_with_its_reason() {
    let world = Shared::default();
    let sweep = run_in(&world, Size::Default, None, None).unwrap();
    assert_eq!(case(&sweep, 13).skipped.as_deref(), Some("unlucky"));
    let reason = "needs 50 processes; 30 are free: x is 40; set it to 60";
    assert_eq!(case(&sweep, 50).skipped.as_deref(), Some(reason));
    assert!(!world.lock().unwrap().visits.iter().any(|n| [13, 50].contains(n)));
}

#[test]
fn the_order_is_random_anew_each_round_and_a_seed_repeats_it() {
    let visits = || {
        let world = Shared::default();
        run_in(&world, Size::Default, None, None).unwrap();
        let world = world.lock().unwrap();
        world.visits.clone()
    };
    let first = visits();
    assert_eq!(first, visits());
    let rounds: HashSet<&[u64]> = first.chunks(3).collect();
    assert!(rounds.len() > 2, "{first:?}");
    for round in first.chunks(3) {
        assert_eq!(round.iter().sum::<u64>(), 6, "each once: {first:?}");
    }
}

#[test]
fn the_time_is_kept_and_what_had_no_turn_says_so() {
    let world = Shared::default();
    // Each sample takes a second, so there is no time for a third.
    let sweep = run_in(&world, Size::Default, Some(2), None).unwrap();
    assert_eq!(world.lock().unwrap().now, Duration::from_secs(2));
    let without: Vec<&Case> = [1, 2, 3]
        .map(|n| case(&sweep, n))
        .into_iter()
        .filter(|case| case.samples.is_empty())
        .collect();
    assert_eq!(without.len(), 1);
    assert!(without[0].skipped.as_ref().unwrap().contains("--max-time"));
    assert_eq!(sweep.run.loose, 2);
}

#[test]
fn every_case_has_its_turn_before_one_has_all_it_could_take() {
    let world = Shared::default();
    // The first round may take 2 of the 6 s, which is less than two samples per case.
    let sweep = run_in(&world, Size::Default, Some(6), None).unwrap();
    let cases = [1, 2, 3].map(|n| case(&sweep, n));
    let visits = cases.map(|case| {
        case.visits.iter().map(|visit| (visit.round, visit.samples)).collect::<Vec<_>>()
    });
    assert!(visits.iter().all(|visits| visits[0] == (1, 1)), "{visits:?}");
    assert!(visits.iter().all(|visits| visits[1].0 == 2), "{visits:?}");
    assert_eq!(world.lock().unwrap().now, Duration::from_secs(6));
    for case in cases {
        let wall: u64 = case.visits.iter().map(|visit| visit.wall_ns).sum();
        assert_eq!(wall, case.samples.len() as u64 * 1_000_000_000, "{case:?}");
        assert_eq!(case.visits.iter().map(|of| of.samples).sum::<u64>(), wall / 1_000_000_000);
    }
}

#[test]
fn a_visit_that_would_not_fit_is_not_begun_and_shorter_ones_are() {
    let world = Shared::default();
    world.lock().unwrap().set_up = vec![(3, Duration::from_secs(9))];
    // 9 s and a sample for case 3, four samples for cases 1 and 2, and no time to repeat case 3.
    let sweep = run_in(&world, Size::Default, Some(17), None).unwrap();
    assert_eq!(case(&sweep, 3).visits.len(), 1);
    assert!(case(&sweep, 1).visits.len() > 1 && case(&sweep, 2).visits.len() > 1);
    assert!(world.lock().unwrap().now <= Duration::from_secs(17));
}

#[test]
fn what_is_watched_has_its_time_too_and_the_ends_of_the_axis_come_first() {
    let world = Shared::default();
    world.lock().unwrap().watch_takes = Duration::from_secs(2);
    // At least 5 s are for watching: a third watched run would not fit.
    let sweep = run_in(&world, Size::Default, Some(3), None).unwrap();
    assert_eq!(world.lock().unwrap().now, Duration::from_secs(3 + 4));
    let note = |n| case(&sweep, n).note.clone().unwrap_or_default();
    assert_eq!((note(3).as_str(), note(1).as_str()), ("not watched: no observer", ""));
    assert!(note(2).starts_with("not watched: the time was up"), "{}", note(2));
}

#[test]
fn what_is_watched_is_ended_with_the_time_of_the_run() {
    let world = Shared::default();
    world.lock().unwrap().watch_takes = Duration::from_secs(600);
    run_in(&world, Size::Default, Some(3), None).unwrap();
    assert_eq!(world.lock().unwrap().now, Duration::from_secs(3 + 5));
}

#[test]
fn timing_that_was_late_leaves_less_time_to_watch_and_not_a_later_end() {
    let world = Shared::default();
    world.lock().unwrap().set_up = vec![(1, Duration::from_secs(9)), (2, Duration::from_secs(9))];
    world.lock().unwrap().watch_takes = Duration::from_secs(600);
    // 9 s and a sample; a second case would take as long and end too late.
    let sweep = run_in(&world, Size::Quick, Some(10), None).unwrap();
    assert_eq!(world.lock().unwrap().now, Duration::from_secs(10 + 5));
    let without = sweep.cases.iter().filter(|case| case.had_no_time()).count();
    assert_eq!((without, sweep.run.loose), (1, 1));
}

#[test]
fn a_case_that_was_never_visited_may_take_of_the_time_to_watch() {
    let world = Shared::default();
    world.lock().unwrap().set_up = [1, 2].map(|n| (n, Duration::from_secs(5))).into();
    world.lock().unwrap().watch_takes = Duration::from_secs(600);
    // 6 s each: the second begins at 6 s of 9, and ends at 12 s of 14.
    let sweep = run_in(&world, Size::Quick, Some(9), None).unwrap();
    assert!(sweep.cases.iter().all(|case| case.samples.len() == 1), "{sweep:?}");
    assert_eq!(world.lock().unwrap().now, Duration::from_secs(9 + 5));
}

#[test]
fn what_waits_in_vain_is_given_up_at_the_end_and_its_case_had_no_time() {
    for from in [0, 1, 3] {
        let world = Shared::default();
        world.lock().unwrap().stuck_from = Some(Duration::from_secs(from));
        let sweep = run_in(&world, Size::Default, Some(5), None).unwrap();
        assert_eq!(world.lock().unwrap().now, Duration::from_secs(5 + 5), "stuck from {from}");
        let is_missing = |case: &&Case| case.samples.is_empty() && case.had_no_time();
        let missing = sweep.cases.iter().filter(is_missing).count();
        assert_eq!(missing, 3 - usize::try_from(from).unwrap(), "{sweep:?}");
        let is_open = sweep.claims[0].verdict == ClaimVerdict::Inconclusive;
        assert!(is_open || missing == 0, "{:?}", sweep.claims);
        // Earlier measurements remain valid.
        let is_noted = |case: &Case| case.note.as_ref().is_some_and(|of| !of.contains("watched"));
        assert!(!sweep.cases.iter().any(is_noted), "{sweep:?}");
    }
}

#[test]
fn a_claim_without_its_time_says_how_many_cases_had_none() {
    let world = Shared::default();
    let sweep = run_in(&world, Size::Default, Some(2), None).unwrap();
    let claim = &sweep.claims[0];
    assert_eq!(claim.verdict, ClaimVerdict::Inconclusive);
    assert!(claim.because.contains("1 case had no time"), "{claim:?}");
}

#[test]
fn the_time_left_is_never_above_the_deadline_and_falls() {
    let world = Shared::default();
    run_in(&world, Size::Quick, Some(30), None).unwrap();
    let told = world.lock().unwrap().told.clone();
    // Watching afterwards has a time of its own.
    let left: Vec<Duration> = told.iter().filter(|one| one.0 > 0).filter_map(|one| one.3).collect();
    assert_eq!(left.first(), Some(&Duration::from_secs(30)));
    assert!(left.is_sorted_by(|a, b| a >= b), "{left:?}");
    assert!(told.iter().all(|(_, done, all, _)| done < all));
}

#[test]
fn an_interrupted_run_keeps_what_it_has_and_goes_on_from_there() {
    let world = Shared::default();
    world.lock().unwrap().interrupted_after = Some(9);
    let error = run_in(&world, Size::Quick, None, None).unwrap_err();
    assert!(matches!(error, RunError::Interrupted(2)));
    let kept = world.lock().unwrap().kept.pop().unwrap();
    assert!(kept.run.is_partial);
    let before: usize = kept.cases.iter().map(|case| case.samples.len()).sum();
    assert_eq!(before, 9, "no sample is lost");
    world.lock().unwrap().interrupted_after = None;
    // The axes of the saved run apply, not those of the requested size.
    let sweep = run_in(&world, Size::Full, None, Some(kept.clone())).unwrap();
    assert_eq!(sweep.cases.len(), 2);
    for (after, before) in sweep.cases.iter().zip(&kept.cases) {
        assert!(after.samples.starts_with(&before.samples));
        assert_eq!(after.samples.len(), 20);
        assert_eq!(after.extra_samples["twice"].len(), 20);
    }
    let all: u64 = sweep.cases.iter().map(|case| case.samples.len() as u64).sum();
    assert_eq!(sweep.run.wall_ns, all * 1_000_000_000, "both parts together");
    assert_eq!(sweep.started, kept.started);
}

#[test]
fn what_was_interrupted_elsewhere_is_not_gone_on_with() {
    let world = Shared::default();
    world.lock().unwrap().interrupted_after = Some(1);
    run_in(&world, Size::Quick, None, None).unwrap_err();
    let kept = world.lock().unwrap().kept.pop().unwrap();
    let refused = |change: &dyn Fn(&mut Sweep)| {
        let mut changed = kept.clone();
        change(&mut changed);
        run_in(&Shared::default(), Size::Quick, None, Some(changed)).unwrap_err().to_string()
    };
    assert!(refused(&|sweep| sweep.machine.kernel = "other".into()).contains("another machine"));
    assert!(refused(&|sweep| sweep.experiment = "herd".into()).contains("it is of herd"));
    assert!(refused(&|sweep| sweep.axes[0].name = "m".into()).contains("its axes differ"));
    let other = refused(&|sweep| sweep.axes[0].values = vec![AxisValue::Number(1_000)]);
    assert!(other.contains("n has other values") && other.contains("without --resume"), "{other}");
    let moved = refused(&|sweep| sweep.run.volume.as_mut().unwrap().path = "/nowhere".into());
    assert!(moved.contains("it used /nowhere; leave out --path"), "{moved}");
    let formatted = refused(&|sweep| {
        let volume = sweep.run.volume.as_mut().unwrap();
        (volume.file_system, volume.id) = ("ufs".into(), "ufs 1 2 3".into());
    });
    assert!(formatted.contains("is on another file system: "), "{formatted}");
    assert!(formatted.contains(", and was ufs;"), "{formatted}");
}

#[test]
fn what_was_planned_is_run_as_it_was_planned_and_held_against_what_there_is_then() {
    let place = std::env::temp_dir();
    let folder = &Folder::open(&place).unwrap();
    let given = vec![("n".to_owned(), [3, 13, 50].map(AxisValue::Number).to_vec())];
    let (max_time, room) = (Some(Duration::from_secs(6)), FreeRoom::default());
    let json = Some("/x.json".to_owned());
    let plan = ExperimentPlan {
        size: Size::Quick,
        given,
        max_time,
        seed: 5,
        folder,
        room,
        json,
        share: None,
    };
    let started = "2025-03-01T08:00:00Z".to_owned();
    let start = Start { started, machine: Machine::default(), before: None };
    let planned = planned(&Fake(Shared::default()), &plan, start);
    assert!(planned.cases.iter().all(|case| case.skipped.is_none()), "{planned:?}");
    assert!(planned.run.is_partial);
    // The saved plan applies, not the one given.
    let sweep = run_in(&Shared::default(), Size::Full, None, Some(planned.clone())).unwrap();
    assert_eq!((&sweep.axes, sweep.started.as_str()), (&planned.axes, "2025-03-01T10:20:30Z"));
    let run = &sweep.run;
    assert_eq!((run.seed, run.max_time_ns, run.is_partial), (5, Some(6_000_000_000), false));
    assert_eq!((&run.json, &run.volume), (&planned.run.json, &planned.run.volume));
    assert_eq!(case(&sweep, 3).samples.len(), 6);
    let reasons = [13, 50].map(|n| case(&sweep, n).skipped.clone().unwrap());
    assert_eq!(reasons[0], "unlucky");
    assert!(reasons[1].starts_with("needs 50 processes"), "{reasons:?}");
}

#[test]
fn what_is_watched_is_added_and_what_cannot_be_is_noted() {
    let world = Shared::default();
    let sweep = run_in(&world, Size::Quick, None, None).unwrap();
    // The larger case is watched first.
    let first = case(&sweep, 2);
    assert_eq!(first.note.as_deref(), Some("not watched: no observer"));
    assert!(!first.extra.contains_key("calls"));
    let second = case(&sweep, 1);
    assert_eq!((second.extra["calls"], &second.extra_samples["calls"]), (2.0, &vec![3.0, 2.0]));
}

#[test]
fn a_case_that_breaks_is_skipped_and_the_others_go_on() {
    let place = tempfile::tempdir().unwrap();
    let folder = Folder::open(place.path()).unwrap();
    let world = Shared::default();
    let given = vec![("n".to_owned(), vec![AxisValue::Number(99), AxisValue::Number(2)])];
    let room = FreeRoom::default();
    let plan = ExperimentPlan {
        size: Size::Quick,
        given,
        max_time: None,
        seed: 1,
        folder: &folder,
        room,
        json: None,
        share: None,
    };
    let started = "2025-03-01T10:20:30Z".to_owned();
    let start = Start { started, machine: Machine::default(), before: None };
    let sweep = run(&Fake(world.clone()), &plan, start, &mut FakeAround(world)).unwrap();
    assert_eq!(case(&sweep, 99).skipped.as_deref(), Some("broken"));
    assert_eq!(case(&sweep, 2).samples.len(), 20);
    assert_eq!(sweep.claims[0].verdict, ClaimVerdict::Inconclusive);
}
