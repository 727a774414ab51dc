//! The runner of all experiments: which cases fit, in which order they are measured and how often,
//! and what is kept of them meanwhile.
//!
//! Rounds: each goes once through the cases that are not done, in a new random order, so that what
//! changes on the machine meanwhile falls on all of them alike and samples of one round can be
//! compared in pairs. A case is done when its interval is tight, or with the most samples.

use std::collections::BTreeMap;
use std::time::Duration;

use iotomy_record::{AxisValue, Case, Claim, Machine, Sweep};
use iotomy_stats::order::Random;
use iotomy_stats::{Summary, mean, median, median_interval};

use super::beginning::{check_before, fresh};
use super::{
    Bench, Cases, Declaration, Experiment, Fold, Go, Judgement, Params, Room, Sample, Size, Watch,
};
use crate::limits::Skip;
use crate::limits::storage::Folder;

/// What is to be run.
#[derive(Debug)]
pub struct Plan<'a> {
    /// Which values the axes have that none are given for.
    pub size: Size,
    /// Values given for axes, in the order they are shown.
    pub given: Vec<(String, Vec<AxisValue>)>,
    /// How long measuring goes on at most, whatever is not tight then.
    pub max_time: Option<Duration>,
    /// What the order of the cases is made from.
    pub seed: u64,
    /// Where files are made.
    pub folder: &'a Folder,
    /// What there is of the machine.
    pub room: Room,
}

/// What a run begins with.
#[derive(Debug)]
pub struct Start {
    /// When it began, RFC 3339.
    pub started: String,
    /// Where it runs.
    pub machine: Machine,
    /// What an interrupted run had measured, to go on from; its axes count, and not the plan's.
    pub before: Option<Sweep>,
}

/// What a run cannot do itself.
pub trait Around: Watch {
    /// The time since some moment that stays the same.
    fn now(&self) -> Duration;

    /// The number of a signal that asks for the end, if one has come.
    fn interrupted(&mut self) -> Option<i32>;

    /// Hears how far the run is.
    fn progress(&mut self, progress: &Progress<'_>);

    /// Keeps what there is so far.
    fn keep(&mut self, so_far: &Sweep);
}

/// How far a run is.
#[derive(Debug, PartialEq, Eq)]
pub struct Progress<'a> {
    /// The experiment.
    pub experiment: &'a str,
    /// The round, from 1; 0 when what is counted is watched, after the rounds.
    pub round: u64,
    /// Cases of the round that are behind.
    pub done: usize,
    /// Of how many.
    pub all: usize,
    /// The case about to be measured.
    pub case: &'a Params,
    /// How long it still takes at most; `None` when that is not known.
    pub left: Option<Duration>,
}

/// Why a run came to no end of its own.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// A signal asked for the end; what there was has been kept.
    #[error("interrupted")]
    Interrupted(i32),
    /// No case could be measured.
    #[error("cannot run {experiment}: {reason}")]
    Prepare {
        /// The experiment.
        experiment: &'static str,
        /// Why.
        reason: String,
    },
    /// What was to be gone on with is of another machine or version.
    #[error(
        "cannot go on with the interrupted run of {experiment}: {reason}; start it anew without --resume"
    )]
    Resume {
        /// The experiment.
        experiment: &'static str,
        /// What is different.
        reason: String,
    },
}

/// Runs an experiment.
///
/// # Errors
/// What ended it early. Nothing it made is left.
pub fn run(
    experiment: &dyn Experiment,
    plan: &Plan<'_>,
    start: Start,
    around: &mut dyn Around,
) -> Result<Sweep, RunError> {
    let declared = experiment.declaration();
    let mut track = Track::new(experiment, plan, start, around.now())?;
    if track.sweep.cases.is_empty() {
        let reason = "these values make no case".to_owned();
        return Err(RunError::Prepare { experiment: declared.name, reason });
    }
    let open: Vec<Params> = track.open().map(|at| track.params(at)).collect();
    if !open.is_empty() {
        let prepared = experiment.prepare(&open, plan.folder);
        let mut bench = prepared
            .map_err(|Skip(reason)| RunError::Prepare { experiment: declared.name, reason })?;
        track.rounds(&mut *bench, around)?;
        track.watch(&mut *bench, around)?;
    }
    Ok(track.end(around.now()))
}

/// A case of a sweep with these samples.
pub(super) fn case_of(
    params: BTreeMap<String, AxisValue>,
    (metric, unit): (&str, &str),
    samples: Vec<f64>,
    extra: BTreeMap<String, f64>,
) -> Case {
    let summary = Summary::of(&samples);
    Case {
        params,
        metric: metric.to_owned(),
        unit: unit.to_owned(),
        median: summary.map(|of| of.median),
        mean: summary.map(|of| of.mean),
        stddev: summary.map(|of| of.stddev),
        min: summary.map(|of| of.min),
        ci95: median_interval(&samples),
        samples,
        extra,
        skipped: None,
        extra_samples: BTreeMap::new(),
        note: None,
    }
}

/// A run under way.
struct Track {
    declared: &'static Declaration,
    sweep: Sweep,
    /// When measuring ends.
    deadline: Option<Duration>,
    /// When this run would have begun, had it not been interrupted.
    began: Duration,
    /// What visits took so far.
    visits: (u32, Duration),
}

impl Track {
    fn new(
        experiment: &dyn Experiment,
        plan: &Plan<'_>,
        start: Start,
        now: Duration,
    ) -> Result<Self, RunError> {
        let declared = experiment.declaration();
        let sweep = match start.before {
            Some(before) => {
                check_before(declared, &before, &start.machine)
                    .map_err(|reason| RunError::Resume { experiment: declared.name, reason })?;
                before
            }
            None => fresh(experiment, plan, start),
        };
        let taken = Duration::from_nanos(sweep.run.wall_ns);
        let max_time = sweep.run.max_time_ns.map(Duration::from_nanos);
        let deadline = max_time.map(|most| now + most.saturating_sub(taken));
        let began = now.saturating_sub(taken);
        let visits = (0, Duration::ZERO);
        Ok(Self { declared, sweep, deadline, began, visits })
    }

    /// The places of the cases that are not done.
    fn open(&self) -> impl Iterator<Item = usize> + '_ {
        let is_open = |case: &Case| case.skipped.is_none() && !self.is_done(case);
        (0..self.sweep.cases.len()).filter(move |at| is_open(&self.sweep.cases[*at]))
    }

    fn is_done(&self, case: &Case) -> bool {
        let sampling = &self.declared.sampling;
        case.note.is_some() || case.samples.len() >= sampling.most || self.is_tight(case)
    }

    fn is_tight(&self, case: &Case) -> bool {
        let sampling = &self.declared.sampling;
        let (Some(median), Some([low, high])) = (case.median, case.ci95) else { return false };
        case.samples.len() >= sampling.least && (high - low) / 2.0 <= sampling.tight * median.abs()
    }

    fn params(&self, at: usize) -> Params {
        Params(self.sweep.cases[at].params.clone())
    }

    fn is_late(&self, around: &dyn Around) -> bool {
        self.deadline.is_some_and(|deadline| around.now() >= deadline)
    }

    fn rounds(&mut self, bench: &mut dyn Bench, around: &mut dyn Around) -> Result<(), RunError> {
        loop {
            let mut order: Vec<usize> = self.open().collect();
            if order.is_empty() || self.is_late(around) {
                break;
            }
            // A round of its own seed, so that a resumed run is none of its beginning again.
            Random::new(self.sweep.run.seed.wrapping_add(self.sweep.run.rounds))
                .shuffle(&mut order);
            self.sweep.run.rounds += 1;
            for (done, at) in order.iter().enumerate() {
                if self.is_late(around) {
                    break;
                }
                self.tell(around, (done, order.len()), *at);
                self.visit(*at, bench, around)?;
            }
        }
        for at in self.open().collect::<Vec<_>>() {
            if self.sweep.cases[at].samples.is_empty() {
                let reason = "the time was up before its turn; give it more with --max-time";
                self.sweep.cases[at].skipped = Some(reason.to_owned());
            } else {
                self.sweep.run.loose += 1;
            }
        }
        Ok(())
    }

    fn visit(
        &mut self,
        at: usize,
        bench: &mut dyn Bench,
        around: &mut dyn Around,
    ) -> Result<(), RunError> {
        let (params, begun) = (self.params(at), around.now());
        let mut samples: Vec<Sample> = Vec::new();
        let mut signal = None;
        let a_visit = self.declared.sampling.a_visit;
        let room = self.declared.sampling.most - self.sweep.cases[at].samples.len();
        let outcome = bench.visit(&params, &mut |sample| {
            samples.push(sample);
            signal = signal.or_else(|| around.interrupted());
            let is_enough = samples.len() >= a_visit.min(room) || signal.is_some();
            // What has begun is finished as long as there is time, so that pairs stay pairs.
            let is_late = self.deadline.is_some_and(|deadline| around.now() >= deadline);
            if is_enough || is_late { Go::Back } else { Go::On }
        });
        self.visits.0 += 1;
        self.visits.1 += around.now().saturating_sub(begun);
        self.take(at, samples, outcome);
        self.sweep.run.wall_ns = nanos(around.now().saturating_sub(self.began));
        self.sweep.run.is_partial = true;
        around.keep(&self.sweep);
        match signal.or_else(|| around.interrupted()) {
            Some(signal) => Err(RunError::Interrupted(signal)),
            None => Ok(()),
        }
    }

    /// Adds samples to a case, and what went wrong.
    fn take(&mut self, at: usize, samples: Vec<Sample>, outcome: Result<(), Skip>) {
        let case = &mut self.sweep.cases[at];
        let mut outcome = outcome;
        for sample in samples {
            let extra = sample.extra.iter().map(|(_, value)| *value);
            if !extra.chain([sample.value]).all(f64::is_finite) {
                outcome = Err(Skip(format!("{} is no measurement", sample.value)));
                break;
            }
            case.samples.push(sample.value);
            for (name, value) in sample.extra {
                case.extra_samples.entry(name.to_owned()).or_default().push(value);
            }
        }
        if let Err(Skip(reason)) = outcome {
            match case.samples.is_empty() {
                true => case.skipped = Some(reason),
                false => case.note = Some(reason),
            }
        }
        let extra = folded(self.declared, case);
        *case = Case {
            skipped: case.skipped.take(),
            note: case.note.take(),
            extra_samples: std::mem::take(&mut case.extra_samples),
            ..case_of(
                std::mem::take(&mut case.params),
                (self.declared.metric, self.declared.unit),
                std::mem::take(&mut case.samples),
                extra,
            )
        };
    }

    /// What is counted and not timed, once a case.
    fn watch(&mut self, bench: &mut dyn Bench, around: &mut dyn Around) -> Result<(), RunError> {
        let all = self.sweep.cases.len();
        for at in 0..all {
            if self.sweep.cases[at].samples.is_empty() {
                continue;
            }
            let params = self.params(at);
            let experiment = self.declared.name;
            let case = &params;
            around.progress(&Progress { experiment, round: 0, done: at, all, case, left: None });
            let found = bench.watch(&params, around);
            if let Some(signal) = around.interrupted() {
                return Err(RunError::Interrupted(signal));
            }
            let case = &mut self.sweep.cases[at];
            match found {
                Ok(found) => {
                    for (name, value) in found.into_iter().filter(|(_, value)| value.is_finite()) {
                        case.extra_samples.entry(name.to_owned()).or_default().push(value);
                    }
                    case.extra = folded(self.declared, case);
                }
                Err(Skip(reason)) => case.note = Some(format!("not watched: {reason}")),
            }
        }
        Ok(())
    }

    fn tell(&self, around: &mut dyn Around, (done, all): (usize, usize), at: usize) {
        let left = self.left(around.now(), all - done);
        let (experiment, round) = (self.declared.name, self.sweep.run.rounds);
        let case = &self.params(at);
        around.progress(&Progress { experiment, round, done, all, case, left });
    }

    /// How long it still takes at most: until the deadline, or until every case has the most samples
    /// at the pace so far, whichever is sooner.
    fn left(&self, now: Duration, in_round: usize) -> Option<Duration> {
        let until = self.deadline.map(|deadline| deadline.saturating_sub(now));
        let (visits, took) = self.visits;
        let pace = took.checked_div(visits);
        let sampling = &self.declared.sampling;
        let missing = |at: usize| sampling.most - self.sweep.cases[at].samples.len();
        let visits: usize = self.open().map(|at| missing(at).div_ceil(sampling.a_visit)).sum();
        let visits = u32::try_from(visits.max(in_round)).unwrap_or(u32::MAX);
        let by_pace = pace.map(|pace| pace.saturating_mul(visits));
        until.into_iter().chain(by_pace).min()
    }

    /// Judges the claims.
    fn end(mut self, now: Duration) -> Sweep {
        self.sweep.run.wall_ns = nanos(now.saturating_sub(self.began));
        self.sweep.run.is_partial = false;
        self.sweep.claims = judged(self.declared, &self.sweep.cases);
        self.sweep
    }
}

/// What the cases say of each claim.
fn judged(declared: &Declaration, cases: &[Case]) -> Vec<Claim> {
    let cases = Cases::of(cases);
    let judge = |claim: &super::Claim| {
        let Judgement { verdict, because, evidence } = match cases.first() {
            Some(_) => (claim.judge)(&cases),
            None => Judgement::inconclusive("no case was measured"),
        };
        Claim {
            id: claim.id.to_owned(),
            source: claim.source.to_owned(),
            text: claim.text.to_owned(),
            verdict,
            evidence: evidence.into_iter().map(|(name, of)| (name.to_owned(), of)).collect(),
            because,
        }
    };
    declared.claims.iter().map(judge).collect()
}

fn folded(declared: &Declaration, case: &Case) -> BTreeMap<String, f64> {
    let fold_of = |name: &str| declared.extras.iter().find(|extra| extra.name == name);
    let folded = |(name, samples): (&String, &Vec<f64>)| {
        let value = match fold_of(name)?.fold {
            Fold::Mean => mean(samples),
            Fold::Median => median(samples),
            Fold::Least => Summary::of(samples).map(|of| of.min),
        };
        Some((name.clone(), value?))
    };
    case.extra_samples.iter().filter_map(folded).collect()
}

pub(super) fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}
