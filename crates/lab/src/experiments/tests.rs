//! The contract of every experiment, and the runner under a scripted clock.

use std::collections::HashSet;
use std::sync::{Arc, Mutex};

use iotomy_record::{Case, ClaimVerdict, Machine, Sweep};

use super::*;
use crate::limits::Skip;

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
            let alone = [runner::case_of(case.0, metric, vec![5.0], Default::default())];
            for claim in declared.claims {
                let found = (claim.judge)(&Cases::of(&alone));
                assert_eq!(found.verdict, ClaimVerdict::Inconclusive, "{}", claim.id);
                assert!(!found.because.is_empty(), "{}", claim.id);
            }
        }
    }
}

/// What the fake experiment does and is done to.
#[derive(Default)]
struct World {
    now: Duration,
    /// The cases visited, in order.
    visits: Vec<u64>,
    samples: u64,
    /// Whether every sample is the same.
    is_quiet: bool,
    /// After so many samples a signal comes.
    interrupted_after: Option<u64>,
    kept: Vec<Sweep>,
    told: Vec<(u64, usize, usize, Option<Duration>)>,
    is_set_up: bool,
    watched: usize,
}

type Shared = Arc<Mutex<World>>;

struct Fake(Shared);

static FAKE: Declaration = Declaration {
    name: "fake",
    summary: "s",
    hypothesis: "h",
    refuted_by: "r",
    controls: &["c"],
    metric: "time",
    unit: "ns",
    extras: &[
        Extra { name: "twice", unit: "ns", summary: "double", fold: Fold::Mean },
        Extra { name: "calls", unit: "", summary: "watched", fold: Fold::Least },
    ],
    axes: &[Axis {
        name: "n",
        unit: "",
        summary: "n",
        takes: Takes::Numbers(1, 100),
        quick: &[Value::N(1), Value::N(2)],
        default: &[Value::N(1), Value::N(2), Value::N(3), Value::N(13), Value::N(50)],
        full: &[Value::N(1)],
    }],
    along: "n",
    lines: "n",
    claims: &[Claim { id: "rises", source: "000", text: "it rises", judge: rises }],
    sampling: Sampling { a_visit: 2, least: 6, most: 20, tight: 0.1 },
    man: &["x(1)"],
};

fn rises(cases: &Cases<'_>) -> Judgement {
    match cases.line("n") {
        Some(line) => Judgement::of(line.slope > 0.0, "a line").with("slope", line.slope),
        None => Judgement::inconclusive("too few cases"),
    }
}

impl Experiment for Fake {
    fn declaration(&self) -> &'static Declaration {
        &FAKE
    }

    fn probe(&self, case: &Params) -> Result<(), Skip> {
        if case.number("n") == 13 { Err(Skip("unlucky".into())) } else { Ok(()) }
    }

    fn needs(&self, case: &Params) -> Needs {
        Needs { processes: case.number("n"), ..Needs::default() }
    }

    fn prepare(&self, _: &[Params], _: &Folder) -> Result<Box<dyn Bench>, Skip> {
        self.0.lock().unwrap().is_set_up = true;
        Ok(Box::new(FakeBench(self.0.clone())))
    }
}

struct FakeBench(Shared);

impl Drop for FakeBench {
    fn drop(&mut self) {
        self.0.lock().unwrap().is_set_up = false;
    }
}

impl Bench for FakeBench {
    fn visit(&mut self, case: &Params, keep: &mut dyn FnMut(Sample) -> Go) -> Result<(), Skip> {
        let n = case.number("n");
        self.0.lock().unwrap().visits.push(n);
        if n == 99 {
            return Err(Skip("broken".into()));
        }
        loop {
            let value = {
                let mut world = self.0.lock().unwrap();
                world.now += Duration::from_secs(1);
                world.samples += 1;
                let noise = if world.is_quiet { 0 } else { 100 * (world.samples % 7) };
                (100 * n + noise) as f64
            };
            if keep(Sample { value, extra: vec![("twice", 2.0 * value)] }) == Go::Back {
                return Ok(());
            }
        }
    }

    fn watch(
        &mut self,
        _: &Params,
        watch: &mut dyn Watch,
    ) -> Result<Vec<(&'static str, f64)>, Skip> {
        watch.iotomy(&[]).map_err(Skip).map(|_| vec![("calls", 3.0), ("calls", 2.0)])
    }
}

struct FakeAround(Shared);

impl Watch for FakeAround {
    fn iotomy(&mut self, _: &[OsString]) -> Result<Trace, String> {
        let mut world = self.0.lock().unwrap();
        world.watched += 1;
        match world.watched {
            1 => Err("no observer".into()),
            _ => Ok(iotomy_record::store::parse_trace(TRACE).unwrap()),
        }
    }

    fn program(&mut self, _: &Path, arguments: &[OsString]) -> Result<Trace, String> {
        self.iotomy(arguments)
    }

    fn wakeups(&mut self) -> Result<Box<dyn Wakeups>, String> {
        Err("no observer".into())
    }
}

const TRACE: &[u8] = include_bytes!("../race/attribution/trace.json");

impl Around for FakeAround {
    fn now(&self) -> Duration {
        self.0.lock().unwrap().now
    }

    fn interrupted(&mut self) -> Option<i32> {
        let world = self.0.lock().unwrap();
        world.interrupted_after.filter(|after| world.samples >= *after).map(|_| 2)
    }

    fn progress(&mut self, progress: &Progress<'_>) {
        let told = (progress.round, progress.done, progress.all, progress.left);
        self.0.lock().unwrap().told.push(told);
    }

    fn keep(&mut self, so_far: &Sweep) {
        // What is kept is a record that can be read again.
        let mut bytes = Vec::new();
        iotomy_record::store::write_sweep(so_far, &mut bytes).unwrap();
        let read = iotomy_record::store::parse_sweep(&bytes).unwrap();
        self.0.lock().unwrap().kept.push(read);
    }
}

/// Runs the fake experiment in a world.
fn run_in(
    world: &Shared,
    size: Size,
    max_time: Option<u64>,
    before: Option<Sweep>,
) -> Result<Sweep, RunError> {
    let place = tempfile::tempdir().unwrap();
    let folder = Folder::open(place.path()).unwrap();
    let processes = Some(bounds::Bound { free: 30, by: "x is 30".into() });
    let plan = Plan {
        size,
        given: Vec::new(),
        max_time: max_time.map(Duration::from_secs),
        seed: 7,
        folder: &folder,
        room: Room { processes, ..Room::default() },
    };
    let started = "2025-03-01T10:20:30Z".to_owned();
    let start = Start { started, machine: Machine::default(), before };
    let found = run(&Fake(world.clone()), &plan, start, &mut FakeAround(world.clone()));
    assert!(!world.lock().unwrap().is_set_up, "what was set up is taken down");
    found
}

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
    assert_eq!(sweep.claims[0].evidence["slope"], 100.0);
    let mut bytes = Vec::new();
    iotomy_record::store::write_sweep(&sweep, &mut bytes).unwrap();
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
    let reason = "needs 50 processes, and 30 are free: x is 30";
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
    // Two visits of two samples, a second each.
    let sweep = run_in(&world, Size::Default, Some(4), None).unwrap();
    assert_eq!(world.lock().unwrap().now, Duration::from_secs(4));
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
fn the_time_left_is_never_above_the_deadline_and_falls() {
    let world = Shared::default();
    run_in(&world, Size::Quick, Some(30), None).unwrap();
    let told = world.lock().unwrap().told.clone();
    let left: Vec<Duration> = told.iter().filter_map(|one| one.3).collect();
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
    // Its own axes count, and not those of the size asked for.
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
    assert!(refused(&|sweep| sweep.axes[0].name = "m".into()).contains("its axes are others"));
    let other = refused(&|sweep| sweep.axes[0].values = vec![AxisValue::Number(1_000)]);
    assert!(other.contains("n has other values") && other.contains("without --resume"), "{other}");
}

#[test]
fn what_is_watched_is_added_and_what_cannot_be_is_noted() {
    let world = Shared::default();
    let sweep = run_in(&world, Size::Quick, None, None).unwrap();
    let first = case(&sweep, 1);
    assert_eq!(first.note.as_deref(), Some("not watched: no observer"));
    assert!(!first.extra.contains_key("calls"));
    let second = case(&sweep, 2);
    assert_eq!((second.extra["calls"], &second.extra_samples["calls"]), (2.0, &vec![3.0, 2.0]));
}

#[test]
fn a_case_that_breaks_is_skipped_and_the_others_go_on() {
    let place = tempfile::tempdir().unwrap();
    let folder = Folder::open(place.path()).unwrap();
    let world = Shared::default();
    let given = vec![("n".to_owned(), vec![AxisValue::Number(99), AxisValue::Number(2)])];
    let room = Room::default();
    let plan = Plan { size: Size::Quick, given, max_time: None, seed: 1, folder: &folder, room };
    let started = "2025-03-01T10:20:30Z".to_owned();
    let start = Start { started, machine: Machine::default(), before: None };
    let sweep = run(&Fake(world.clone()), &plan, start, &mut FakeAround(world)).unwrap();
    assert_eq!(case(&sweep, 99).skipped.as_deref(), Some("broken"));
    assert_eq!(case(&sweep, 2).samples.len(), 20);
    assert_eq!(sweep.claims[0].verdict, ClaimVerdict::Inconclusive);
}
