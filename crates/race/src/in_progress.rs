//! A race in progress: the next run, the end condition, and the record.

use std::sync::Arc;
use std::time::{Duration, Instant};

use iotomy_record::{
    Comparison, Harness, Machine, Metric, Race, RaceCommand, RaceVerdict, Round, Run, Spread,
};
use iotomy_stats::order::{Random, round};
use iotomy_stats::sequential::next_look;

use super::caches::{self, Cache};
use super::compare::{Rules, compare, counting, spread, value};
use super::deny::{self, Denial};
use super::runner::{Outcome, Runnable, Runner};
use super::sweep::{self, Filled};
use super::traced::Traced;
use super::{Options, RaceError, RaceHost, alone, attribution, plan, price, state};

/// Without a number of runs, a race ends when it is decided; or after as many rounds, one of the
/// numbers at which it looks; or after this time, if it had a look by then.
const MOST_ROUNDS: usize = 64;
const USUAL_TIME: Duration = Duration::from_secs(60);

/// A race in progress.
pub(super) struct RaceInProgress<'a> {
    options: &'a Options,
    filled: &'a [Filled],
    pairs: Vec<(usize, usize)>,
    pub(super) runner: &'a mut Runner,
    deadline: Option<Instant>,
    pub(super) runnables: Vec<Runnable>,
    /// What runs before each run (`--prepare`), by command of the race; empty for none.
    prepare: Vec<Runnable>,
    files: Vec<Vec<std::path::PathBuf>>,
    pub(super) runs: Vec<Vec<Run>>,
    pub(super) rounds: Vec<Round>,
    order: Vec<usize>,
    /// Processes left behind, by command.
    strays: Vec<usize>,
    cpus: u32,
    /// The signal that ended it, once there were runs to keep.
    interrupted: Option<i32>,
}

pub(super) fn label(at: usize) -> String {
    // At most 26 of them.
    char::from(b'A' + u8::try_from(at).unwrap_or(25)).to_string()
}

pub(super) fn run_script(runner: &mut Runner, script: &mut Runnable) -> Result<(), RaceError> {
    let outcome = runner.run(script)?;
    failure(script, &outcome).map_or(Ok(()), Err)
}

fn failure(what: &Runnable, outcome: &Outcome) -> Option<RaceError> {
    let exit = outcome.run.exit;
    let hint = if what.who.starts_with('-') {
        ""
    } else {
        "; use --ignore-failure to race it \
        anyway"
    };
    (exit.status() != 0).then(|| RaceError::Failed {
        who: what.who.clone(),
        command: what.text.clone(),
        exit,
        stderr: outcome.stderr.clone(),
        hint,
    })
}

impl<'a> RaceInProgress<'a> {
    pub(super) fn new(
        options: &'a Options,
        filled: &'a [Filled],
        runner: &'a mut Runner,
        deadline: Option<Instant>,
        cpus: u32,
    ) -> Result<Self, RaceError> {
        runner.deadline = deadline;
        let labels: Vec<String> = (0..filled.len()).map(label).collect();
        for meant in options.denials.iter().filter_map(|denial| denial.label.as_ref()) {
            if !labels.contains(meant) {
                let there_are = match labels.last() {
                    Some(last) if labels.len() > 1 => format!("they are A to {last}"),
                    _ => "there is only A".to_owned(),
                };
                return Err(RaceError::Options(format!(
                    "--deny {meant}:…: unknown command {meant}; {there_are}"
                )));
            }
        }
        if let Some(text) = &options.setup {
            let mut script = runner.script("--setup", text)?;
            run_script(runner, &mut script)?;
        }
        let mut runnables = Vec::new();
        for (one, label) in filled.iter().zip(&labels) {
            // A filter costs every call a little: where one command has one, all have.
            let mine = options.denials.iter().filter(|denial| denial.is_for(label));
            let filter = match options.denials.is_empty() {
                true => None,
                false => Some(Arc::new(deny::filter(mine).map_err(RaceError::Options)?)),
            };
            runnables.push(runner.command(label, &one.text, filter)?);
        }
        let mut prepare = Vec::new();
        for (text, one) in
            options.prepare.iter().flat_map(|text| filled.iter().map(move |one| (text, one)))
        {
            let text = sweep::text_at(text, &options.axes, one);
            prepare.push(runner.script("--prepare", &text)?);
        }
        let cold = options.cache == Cache::Cold;
        let files = runnables.iter().map(|one| match cold {
            true => caches::files(&one.text, one.program()),
            false => Vec::new(),
        });
        let count = filled.len();
        Ok(Self {
            options,
            filled,
            pairs: sweep::pairs(filled),
            files: files.collect(),
            runner,
            deadline,
            runnables,
            prepare,
            runs: vec![Vec::new(); count],
            rounds: Vec::new(),
            order: Vec::new(),
            strays: vec![0; count],
            cpus,
            interrupted: None,
        })
    }

    pub(super) fn run(
        mut self,
        began: Instant,
        started: String,
        machine: Machine,
        around: &mut dyn RaceHost,
    ) -> Result<Race, RaceError> {
        let mut harness = Harness::default();
        if self.runnables.iter().any(|one| one.shell) {
            harness.shell_startup_ns = self.shell_startup()?;
        }
        for _ in 0..self.warmups() {
            for at in 0..self.runnables.len() {
                self.once(at)?;
            }
        }
        let timed = self.timed_runs(began, around);
        self.unless_interrupted(timed)?;
        let mut traced = vec![Traced::default(); self.runnables.len()];
        if self.options.trace && self.interrupted.is_none() {
            harness.fault_ns = price::of_a_fault();
            harness.call_ns = price::of_a_call();
            let done = self.traced_runs(&mut traced, around);
            self.unless_interrupted(done)?;
        }
        if self.options.trace && self.interrupted.is_some() {
            traced.iter_mut().for_each(|one| one.missed("the race was interrupted".to_owned()));
        }
        let mut race = self.record(started, machine, harness, traced);
        race.attributions = attribution::attributions(&race);
        Ok(race)
    }

    /// After a signal has asked for the end, the runs made so far are kept, provided that each
    /// command has run.
    fn unless_interrupted(&mut self, done: Result<(), RaceError>) -> Result<(), RaceError> {
        match done {
            Err(RaceError::Interrupted(signal))
                if self.runs.iter().all(|runs| !runs.is_empty()) =>
            {
                self.interrupted = Some(signal);
                Ok(())
            }
            done => done,
        }
    }

    fn warmups(&self) -> u64 {
        let usual = u64::from(self.options.cache == Cache::Warm);
        self.options.warmup.unwrap_or(usual)
    }

    /// The median of a few runs of a shell with nothing to do.
    fn shell_startup(&mut self) -> Result<Option<u64>, RaceError> {
        let mut empty = self.runner.script("sh", ":")?;
        let mut times = Vec::new();
        for _ in 0..9 {
            times.push(self.runner.run(&mut empty)?.run.wall_ns as f64);
        }
        Ok(iotomy_stats::median(&times).map(|ns| ns as u64))
    }

    /// The preparation of a run, timed or not.
    pub(super) fn prepare(&mut self, at: usize) -> Result<(), RaceError> {
        if let Some(script) = self.prepare.get_mut(at) {
            run_script(self.runner, script)?;
        }
        caches::drop_files(&self.files[at]);
        if self.options.drop_caches {
            caches::drop_all()?;
        }
        Ok(())
    }

    fn once(&mut self, at: usize) -> Result<Run, RaceError> {
        self.prepare(at)?;
        let outcome = self.runner.run(&mut self.runnables[at])?;
        self.strays[at] += outcome.strays;
        match failure(&self.runnables[at], &outcome) {
            Some(error) if !self.options.ignore_failure => Err(error),
            _ => Ok(outcome.run),
        }
    }

    /// Runs rounds until there are enough.
    fn timed_runs(&mut self, began: Instant, around: &mut dyn RaceHost) -> Result<(), RaceError> {
        let mut random = Random::new(self.options.seed);
        let mut redone = 0;
        let first = Instant::now();
        loop {
            let good = self.rounds.iter().filter(|round| !round.redone).count();
            let enough = match self.options.runs {
                Some(runs) => 2 * good as u64 >= runs,
                None => self.is_enough(good, began, first),
            };
            // Where the next round would be cut off, what there is counts.
            let spent = first.elapsed() / u32::try_from(self.rounds.len().max(1)).unwrap_or(1);
            let no_room =
                good > 0 && self.deadline.is_some_and(|end| Instant::now() + spent * 5 / 4 >= end);
            if enough || no_room {
                return Ok(());
            }
            let mut order = round(self.runnables.len(), &mut random);
            if self.options.runs.is_some_and(|runs| runs - 2 * good as u64 == 1) {
                order.truncate(self.runnables.len());
            }
            if !self.one_block(&order)? {
                return Ok(());
            }
            if self.rounds.last().is_some_and(|round| !round.disturbed.is_empty())
                && redone < self.options.redo
            {
                redone += 1;
                self.rounds.iter_mut().last().into_iter().for_each(|round| round.redone = true);
            }
            around.progress(&self.news());
        }
    }

    /// One round; whether it was whole before the time was over.
    fn one_block(&mut self, order: &[usize]) -> Result<bool, RaceError> {
        let number = self.rounds.len() as u64;
        let before = state::read();
        let mut made: Vec<(usize, Run)> = Vec::new();
        let mut interrupted = None;
        for at in order {
            match self.once(*at) {
                Ok(run) => made.push((*at, Run { round: number, ..run })),
                Err(RaceError::TooLong { .. }) if number > 0 => return Ok(false),
                // The runs it has made count, as far as they are pairs.
                Err(RaceError::Interrupted(signal)) if !made.is_empty() => {
                    interrupted = Some(RaceError::Interrupted(signal));
                    break;
                }
                Err(error) => return Err(error),
            }
        }
        let own: u64 = made.iter().map(|(_, run)| run.cpu_ns()).sum();
        let state = state::between(&before, &state::read(), own);
        let disturbed = state::disturbances(&state, self.cpus);
        self.rounds.push(Round { disturbed, redone: false, state });
        for (at, run) in made {
            self.runs[at].push(run);
            self.order.push(at);
        }
        interrupted.map_or(Ok(true), Err)
    }

    fn is_enough(&self, rounds: usize, began: Instant, first: Instant) -> bool {
        let late = self.options.max_time.is_none() && began.elapsed() >= USUAL_TIME;
        if self.pairs.is_empty() {
            let walls: Vec<f64> = self.runs[0].iter().map(|run| value(run, Metric::Wall)).collect();
            return late && rounds > 0
                || alone::is_enough(&walls, self.options.min_effect, first.elapsed());
        }
        if rounds >= MOST_ROUNDS || (late && rounds >= next_look(0)) {
            return true;
        }
        // Looks are at certain numbers only: each has a share of the error there may be.
        let is_look = rounds > 0 && next_look(rounds - 1) == rounds;
        is_look && self.compared().all(|found| found.verdict != RaceVerdict::Undecided)
    }

    /// The pairs compared by wall time.
    fn compared(&self) -> impl Iterator<Item = Comparison> {
        self.pairs.iter().map(|pair| self.comparison(*pair, Metric::Wall))
    }

    fn comparison(&self, (base, other): (usize, usize), metric: Metric) -> Comparison {
        let rules = Rules {
            min_effect: self.options.min_effect,
            among: self.pairs.len(),
            // A user who interrupts a race has seen how it goes.
            fixed: self.options.runs.is_some() && self.interrupted.is_none(),
            seed: self.options.seed,
        };
        let (a, b) = (label(base), label(other));
        let sides = [(a.as_str(), &self.runs[base][..]), (b.as_str(), &self.runs[other][..])];
        compare(sides, &self.rounds, metric, rules)
    }

    /// How far it is, in a line.
    fn news(&self) -> String {
        let pairs = 2 * self.rounds.iter().filter(|round| !round.redone).count();
        let Some(pair) = self.pairs.first() else { return format!("{pairs} runs") };
        let found = self.comparison(*pair, Metric::Wall);
        let more = match (self.pairs.len(), found.more_runs) {
            (1, Some(more)) if found.ci95 != [0.0, 0.0] => format!(", about {more} more"),
            _ => String::new(),
        };
        format!("{pairs} pairs{more}: {} ÷ {} = {:.3}", found.other, found.base, found.ratio)
    }

    fn record(
        &self,
        started: String,
        machine: Machine,
        harness: Harness,
        traced: Vec<Traced>,
    ) -> Race {
        let of = |runs: &[Run], metric| -> Spread {
            let values: Vec<f64> =
                counting(runs, &self.rounds).map(|run| value(run, metric)).collect();
            spread(&values)
        };
        let commands = self.filled.iter().zip(traced).enumerate().map(|(at, (filled, traced))| {
            let denials = self.options.denials.iter().filter(|denial| denial.is_for(&label(at)));
            RaceCommand {
                label: label(at),
                command: filled.text.clone(),
                runs: self.runs[at].clone(),
                trace: traced.trace,
                shell: self.runnables[at].shell,
                denied: denials.map(Denial::shown).collect(),
                parameters: filled.values.clone(),
                failures: self.runs[at].iter().filter(|run| run.exit.status() != 0).count() as u64,
                left_behind: self.strays[at] as u64,
                untraced: traced.untraced,
                sampled: None,
                wall: of(&self.runs[at], Metric::Wall),
                cpu: of(&self.runs[at], Metric::Cpu),
            }
        });
        let metrics = [Metric::Wall, Metric::Cpu];
        let compared = self
            .pairs
            .iter()
            .flat_map(|pair| metrics.into_iter().map(|metric| self.comparison(*pair, metric)));
        Race {
            schema: Race::SCHEMA.to_owned(),
            started,
            machine,
            commands: commands.collect(),
            order: self.order.iter().map(|at| label(*at)).collect(),
            comparisons: compared.collect(),
            attributions: Vec::new(),
            findings: Vec::new(),
            plan: plan::plan(self.options, self.warmups()),
            rounds: self.rounds.clone(),
            harness,
            against: None,
            interrupted: self.interrupted.map(i32::cast_unsigned),
        }
    }
}
