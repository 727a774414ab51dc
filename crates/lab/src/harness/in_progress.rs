//! The progress of a run through its cases: in which order and how often they are measured, how
//! long each visit may take, and what is saved meanwhile.
//!
//! Each round visits the cases that are not done once, in a new random order, so that changes of
//! the machine affect all of them alike and visits of one round can be compared in pairs. A case is
//! done when its interval is tight, or when it has the maximum number of samples.
//!
//! The invariant on time: a run has two deadlines, one for timing and a later one for everything
//! except taking down. A visit ends with the first sample past its share. No visit is begun that
//! would not fit, judged by the duration of the last visit of the case, or by the mean of all
//! visits for a case never visited. Watched runs end with the second deadline, however late timing
//! was. Waits get a time limit, and running processes are killed. Each of the first rounds may use
//! a part of the time, since a ratio compares visits: many samples of one visit are worth less than
//! a few samples of three visits.

use std::ops::ControlFlow;
use std::time::Duration;

use iotomy_host::Skip;
use iotomy_record::{Case, Sweep, Visit};
use iotomy_stats::order::Random;

use super::beginning::{begun, planned, resumed};
use super::claims::number;
use super::figures::{folded, judged, nanos, with_figures};
use super::plan::{ExperimentPlan, Progress, RunError, RunHost, Start};
use super::size::watched_time;
use super::{Experiment, ExperimentDeclaration, Params, PreparedExperiment, Sample};

/// The number of rounds that all cases should get, whatever each of them takes.
const FIRST_ROUNDS: u32 = 3;

/// A run in progress.
pub(crate) struct RunInProgress {
    declared: &'static ExperimentDeclaration,
    pub(crate) sweep: Sweep,
    /// When timing ends.
    deadline: Option<Duration>,
    /// When everything ends.
    end: Option<Duration>,
    /// Visits so far.
    visits: u32,
    /// When this part of the run began.
    here: Duration,
    /// When this run would have begun without the interruption.
    began: Duration,
    /// Samples so far, and the time of their visits.
    taken: (u32, Duration),
}

impl RunInProgress {
    pub(crate) fn new(
        experiment: &dyn Experiment,
        plan: &ExperimentPlan<'_>,
        mut start: Start,
        now: Duration,
    ) -> Result<Self, RunError> {
        let declared = experiment.declaration();
        let sweep = match start.before.take() {
            Some(before) => resumed(experiment, plan, (before, start))?,
            None => begun(experiment, plan, planned(experiment, plan, start)),
        };
        let before = Duration::from_nanos(sweep.run.wall_ns);
        let max_time = sweep.run.max_time_ns.map(Duration::from_nanos);
        let deadline = max_time.map(|most| now + most.saturating_sub(before));
        let began = now.saturating_sub(before);
        let end = deadline.zip(max_time).map(|(deadline, most)| deadline + watched_time(most));
        let (taken, visits) = ((0, Duration::ZERO), 0);
        Ok(Self { declared, sweep, deadline, end, visits, here: now, began, taken })
    }

    /// The indices of the cases that are not done.
    pub(crate) fn open(&self) -> impl Iterator<Item = usize> + '_ {
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

    pub(crate) fn params(&self, at: usize) -> Params {
        Params(self.sweep.cases[at].params.clone())
    }

    fn is_late(&self, around: &dyn RunHost) -> bool {
        self.deadline.is_some_and(|deadline| around.now() >= deadline)
    }

    /// Whether there is time for another visit of a case, if it takes as long as the last one. The
    /// first visit may use the time reserved for watched runs: a first result for a case is worth
    /// more.
    fn fits(&self, at: usize, around: &dyn RunHost) -> bool {
        let (takes, end) = match self.sweep.cases[at].visits.last() {
            Some(last) => (Duration::from_nanos(last.wall_ns), self.deadline),
            None => (self.taken.1.checked_div(self.visits).unwrap_or_default(), self.end),
        };
        end.is_none_or(|end| around.now() + takes <= end)
    }

    /// How long an operation that begins now may wait.
    fn patience(&self, now: Duration) -> Option<Duration> {
        self.end.map(|end| end.saturating_sub(now))
    }

    /// When the first of `left` remaining visits of a round must end.
    fn share(&self, now: Duration, round: u32, left: usize) -> Option<Duration> {
        let deadline = self.deadline?;
        let all = deadline.saturating_sub(self.here);
        let end = (self.here + all * round.min(FIRST_ROUNDS) / FIRST_ROUNDS).min(deadline);
        Some(now + end.saturating_sub(now) / u32::try_from(left.max(1)).unwrap_or(u32::MAX))
    }

    pub(crate) fn rounds(
        &mut self,
        bench: &mut dyn PreparedExperiment,
        around: &mut dyn RunHost,
    ) -> Result<(), RunError> {
        let (mut is_over, mut round) = (false, 0);
        while !is_over {
            let mut order: Vec<usize> = self.open().collect();
            if order.is_empty() || self.is_late(around) {
                break;
            }
            // Each round has its own seed, so that a resumed run does not repeat the orders of its
            // first rounds.
            Random::new(self.sweep.run.seed.wrapping_add(self.sweep.run.rounds))
                .shuffle(&mut order);
            self.sweep.run.rounds += 1;
            round += 1;
            for (done, at) in order.iter().enumerate() {
                if self.is_late(around) {
                    break;
                }
                if !self.fits(*at, around) {
                    // Shorter visits may still fit; but a further round would consist of these
                    // alone.
                    is_over = true;
                    continue;
                }
                self.report_progress(around, (done, order.len()), *at);
                let end = self.share(around.now(), round, order.len() - done);
                self.visit((*at, end), bench, around)?;
            }
        }
        self.tell_of_open_ones();
        Ok(())
    }

    /// Records for the cases that are not done why they are not.
    fn tell_of_open_ones(&mut self) {
        for at in self.open().collect::<Vec<_>>() {
            if self.sweep.cases[at].samples.is_empty() {
                self.sweep.cases[at].skipped = Some(Case::NO_TIME.to_owned());
            } else {
                self.sweep.run.loose += 1;
            }
        }
    }

    /// Visits the case at this index, until the end of its share or until it has enough samples.
    fn visit(
        &mut self,
        (at, end): (usize, Option<Duration>),
        bench: &mut dyn PreparedExperiment,
        around: &mut dyn RunHost,
    ) -> Result<(), RunError> {
        let (params, begun) = (self.params(at), around.now());
        let mut samples: Vec<Sample> = Vec::new();
        let mut signal = None;
        let a_visit = self.declared.sampling.a_visit;
        let room = self.declared.sampling.most - self.sweep.cases[at].samples.len();
        bench.wait_at_most(self.patience(begun));
        if bench.needs_run_watch(&params) {
            bench.take_run_watch(around.run_watch());
        }
        let outcome = bench.visit(&params, &mut |sample| {
            samples.push(sample);
            signal = signal.or_else(|| around.interrupted());
            let is_enough = samples.len() >= a_visit.min(room) || signal.is_some();
            let is_late = end.is_some_and(|end| around.now() >= end);
            if is_enough || is_late { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        let took = around.now().saturating_sub(begun);
        self.visits += 1;
        self.taken.0 += u32::try_from(samples.len()).unwrap_or(u32::MAX);
        self.taken.1 += took;
        self.take((at, took), samples, outcome);
        self.sweep.run.wall_ns = nanos(around.now().saturating_sub(self.began));
        self.sweep.run.is_partial = true;
        around.keep(&self.sweep);
        match signal.or_else(|| around.interrupted()) {
            Some(signal) => Err(RunError::Interrupted(signal)),
            None => Ok(()),
        }
    }

    /// Adds the samples of a visit to a case, and the error if there was one.
    fn take(
        &mut self,
        (at, took): (usize, Duration),
        samples: Vec<Sample>,
        outcome: Result<(), Skip>,
    ) {
        let mut case = self.sweep.cases[at].clone();
        let (mut outcome, before) = (outcome, case.samples.len());
        for sample in samples {
            let extra = sample.extra.iter().map(|(_, value)| *value);
            if !extra.chain([sample.value]).all(f64::is_finite) {
                outcome = Err(Skip(format!("invalid measurement {}", sample.value)));
                break;
            }
            case.samples.push(sample.value);
            for (name, value) in sample.extra {
                case.extra_samples.entry(name.to_owned()).or_default().push(value);
            }
        }
        let samples = (case.samples.len() - before) as u64;
        // An older record does not say to which visit a sample belongs.
        let known: u64 = case.visits.iter().map(|visit| visit.samples).sum();
        if samples > 0 && known == before as u64 {
            let round = self.sweep.run.rounds;
            case.visits.push(Visit { round, samples, wall_ns: nanos(took) });
        }
        if let Err(Skip(reason)) = outcome {
            match case.samples.is_empty() {
                true => case.skipped = Some(reason),
                // The case is as if the visit had not begun.
                false if reason == Case::NO_TIME => {}
                false => case.note = Some(reason),
            }
        }
        self.sweep.cases[at] = with_figures(self.declared, case);
    }

    /// Watches each case once, for the extras that are counted rather than timed.
    pub(crate) fn watch(
        &mut self,
        bench: &mut dyn PreparedExperiment,
        around: &mut dyn RunHost,
    ) -> Result<(), RunError> {
        let order = self.order_to_watch();
        let (end, all) = (self.end, order.len());
        around.end_at(end);
        let mut longest = Duration::ZERO;
        for (done, at) in order.into_iter().enumerate() {
            let params = self.params(at);
            let (experiment, begun) = (self.declared.name, around.now());
            let left = self.patience(begun);
            let case = &params;
            around.progress(&Progress { experiment, round: 0, done, all, case, left });
            bench.wait_at_most(left);
            let found = match end.is_some_and(|end| begun >= end || begun + longest > end) {
                true => Err(Skip(Case::NO_TIME.to_owned())),
                false => bench.watch(&params, around),
            };
            longest = longest.max(around.now().saturating_sub(begun));
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

    /// The measured cases, those at the ends of the axis first, because claims are judged by these.
    fn order_to_watch(&self) -> Vec<usize> {
        let all = 0..self.sweep.cases.len();
        let mut rest: std::collections::VecDeque<usize> =
            all.filter(|at| !self.sweep.cases[*at].samples.is_empty()).collect();
        rest.make_contiguous().sort_by_key(|at| {
            std::cmp::Reverse(number(&self.sweep.cases[*at], self.declared.along))
        });
        let mut order = Vec::with_capacity(rest.len());
        while let Some(most) = rest.pop_front() {
            order.push(most);
            order.extend(rest.pop_back());
        }
        order
    }

    fn report_progress(&self, around: &mut dyn RunHost, (done, all): (usize, usize), at: usize) {
        let left = self.left(around.now(), all - done);
        let (experiment, round) = (self.declared.name, self.sweep.run.rounds);
        let case = &self.params(at);
        around.progress(&Progress { experiment, round, done, all, case, left });
    }

    /// Upper bound of the remaining time: until the deadline, or until every case has the maximum
    /// number of samples at the pace so far, whichever is sooner.
    fn left(&self, now: Duration, in_round: usize) -> Option<Duration> {
        let until = self.deadline.map(|deadline| deadline.saturating_sub(now));
        let (samples, took) = self.taken;
        let pace = took.checked_div(samples);
        let missing = |at: usize| self.declared.sampling.most - self.sweep.cases[at].samples.len();
        let missing: usize = self.open().map(missing).sum();
        let missing = u32::try_from(missing.max(in_round)).unwrap_or(u32::MAX);
        let by_pace = pace.map(|pace| pace.saturating_mul(missing));
        until.into_iter().chain(by_pace).min()
    }

    /// Ends the run and judges the claims.
    pub(crate) fn end(mut self, now: Duration) -> Sweep {
        self.sweep.run.wall_ns = nanos(now.saturating_sub(self.began));
        self.sweep.run.is_partial = false;
        // A claim needs the whole plan: merging judges it.
        if self.sweep.run.shard.is_none() {
            self.sweep.claims = judged(self.declared, &self.sweep.cases);
        }
        self.sweep
    }
}
