//! An experiment for the tests of the runner, with a clock that advances by one second per sample.

use std::ffi::OsString;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use iotomy_host::Skip;
use iotomy_host::folder::Folder;
use iotomy_record::{Machine, Sweep, Trace};

use super::*;

/// The state and the settings of the fake experiment.
#[derive(Default)]
pub(crate) struct FakeState {
    pub(crate) now: Duration,
    /// The cases visited, in order.
    pub(crate) visits: Vec<u64>,
    pub(crate) samples: u64,
    /// Whether every sample is the same.
    pub(crate) is_quiet: bool,
    /// The number of samples after which a signal arrives.
    pub(crate) interrupted_after: Option<u64>,
    pub(crate) kept: Vec<Sweep>,
    pub(crate) told: Vec<(u64, usize, usize, Option<Duration>)>,
    pub(crate) is_set_up: bool,
    pub(crate) watched: usize,
    /// How long setup takes for each of these cases.
    pub(crate) set_up: Vec<(u64, Duration)>,
    pub(crate) watch_takes: Duration,
    /// When watched runs must end.
    pub(crate) end: Option<Duration>,
    /// The time limit that each visit and watched run received.
    pub(crate) waits: Vec<Option<Duration>>,
    /// The time from which on every wait uses up its limit in vain.
    pub(crate) stuck_from: Option<Duration>,
}

pub(crate) type Shared = Arc<Mutex<FakeState>>;

pub(crate) struct Fake(pub(crate) Shared);

static FAKE: ExperimentDeclaration = ExperimentDeclaration {
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
        Some(line) => Judgement::from_bool(line.slope > 0.0, "a line").with("slope", line.slope),
        None => Judgement::inconclusive("too few cases"),
    }
}

impl Experiment for Fake {
    fn declaration(&self) -> &'static ExperimentDeclaration {
        &FAKE
    }

    fn probe(&self, case: &Params) -> Result<(), Skip> {
        if case.number("n") == 13 { Err(Skip("unlucky".into())) } else { Ok(()) }
    }

    fn needs(&self, case: &Params) -> Needs {
        Needs { processes: case.number("n"), ..Needs::default() }
    }

    fn prepare(&self, _: &[Params], _: &Folder) -> Result<Box<dyn PreparedExperiment>, Skip> {
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

impl PreparedExperiment for FakeBench {
    fn wait_at_most(&mut self, left: Option<Duration>) {
        self.0.lock().unwrap().waits.push(left);
    }

    fn visit(
        &mut self,
        case: &Params,
        keep: &mut dyn FnMut(Sample) -> ControlFlow<()>,
    ) -> Result<(), Skip> {
        let n = case.number("n");
        {
            let mut world = self.0.lock().unwrap();
            world.visits.push(n);
            let takes = world.set_up.iter().find(|(of, _)| *of == n).map(|(_, takes)| *takes);
            world.now += takes.unwrap_or_default();
        }
        if n == 99 {
            return Err(Skip("broken".into()));
        }
        {
            let mut world = self.0.lock().unwrap();
            if world.stuck_from.is_some_and(|from| world.now >= from) {
                let may = world.waits.last().copied().flatten();
                world.now += may.expect("a run without end waits for ever");
                return Err(Skip(iotomy_record::Case::NO_TIME.into()));
            }
        }
        loop {
            let value = {
                let mut world = self.0.lock().unwrap();
                world.now += Duration::from_secs(1);
                world.samples += 1;
                let noise = if world.is_quiet { 0 } else { 100 * (world.samples % 7) };
                (100 * n + noise) as f64
            };
            if keep(Sample { value, extra: vec![("twice", 2.0 * value)] }).is_break() {
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

pub(crate) struct FakeAround(pub(crate) Shared);

impl Watch for FakeAround {
    fn iotomy(&mut self, _: &[OsString]) -> Result<Trace, String> {
        let mut world = self.0.lock().unwrap();
        world.watched += 1;
        let takes = world.watch_takes;
        // The run is killed when its time is up.
        let end = world.end.unwrap_or(Duration::MAX);
        world.now = (world.now + takes).min(end);
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

    fn run_watch(&mut self) -> Result<Box<dyn iotomy_ports::RunWatch>, String> {
        Err("no observer".into())
    }
}

const TRACE: &[u8] = include_bytes!("../../../race/src/attribution/trace.json");

impl RunHost for FakeAround {
    fn now(&self) -> Duration {
        self.0.lock().unwrap().now
    }

    fn interrupted(&mut self) -> Option<i32> {
        let world = self.0.lock().unwrap();
        world.interrupted_after.filter(|after| world.samples >= *after).map(|_| 2)
    }

    fn end_at(&mut self, end: Option<Duration>) {
        self.0.lock().unwrap().end = end;
    }

    fn progress(&mut self, progress: &Progress<'_>) {
        let told = (progress.round, progress.done, progress.all, progress.left);
        self.0.lock().unwrap().told.push(told);
    }

    fn keep(&mut self, so_far: &Sweep) {
        // The saved state is a record that can be read again.
        let bytes = iotomy_record::store::RecordRef::Sweep(so_far).json().unwrap();
        let read = iotomy_record::store::parse_sweep(&bytes).unwrap();
        self.0.lock().unwrap().kept.push(read);
    }
}

/// Runs the fake experiment in the given world.
pub(crate) fn run_in(
    world: &Shared,
    size: Size,
    max_time: Option<u64>,
    before: Option<Sweep>,
) -> Result<Sweep, RunError> {
    let folder = Folder::open(&std::env::temp_dir()).unwrap();
    let processes = Some(bounds::Bound {
        free: 30,
        most: 40,
        by: "x is 40".into(),
        raise: "set it to #".into(),
    });
    let plan = ExperimentPlan {
        size,
        given: Vec::new(),
        max_time: max_time.map(Duration::from_secs),
        seed: 7,
        folder: &folder,
        room: FreeRoom { processes, ..FreeRoom::default() },
        json: None,
        share: None,
    };
    let started = "2025-03-01T10:20:30Z".to_owned();
    let start = Start { started, machine: Machine::default(), before };
    let found = run(&Fake(world.clone()), &plan, start, &mut FakeAround(world.clone()));
    assert!(!world.lock().unwrap().is_set_up, "what was set up is taken down");
    found
}
