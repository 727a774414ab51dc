//! The experiments of a run, one after the other: their selection, and the start of each.
//!
//! The invariant: before any experiment runs, the plan of each is saved, so that `--resume`
//! completes the request however this process ends, including experiments that had not started.

use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::{Result, bail};
use iotomy_host::folder::Folder;
use iotomy_host::{named_machine, rfc3339};
use iotomy_lab::{
    EXPERIMENTS, Experiment, ExperimentPlan, FreeRoom, Lock, RunError, RunHost, Share, Size, Start,
    State, experiment, planned,
};
use iotomy_record::Sweep;
use iotomy_record::store::OutputFile;

use super::given::{AxisArguments, values};
use super::host::CommandHost;
use super::named;
use super::run_args::RunArgs;
use crate::screen::path_text;
use crate::verbs::outputs;
use crate::verbs::this_machine::given_name;

/// The default directory.
pub(super) const FOLDER: &str = "/var/tmp";

/// Standard output.
pub(super) const DASH: &str = "-";

/// The requested experiments.
///
/// # Errors
/// A name that is none, or nothing to go on with.
pub(super) fn chosen(
    args: &RunArgs,
    state: Option<&State>,
) -> Result<Vec<&'static dyn Experiment>> {
    let has_state = |one: &&'static dyn Experiment| {
        state.is_some_and(|state| state.file(one.declaration().name).exists())
    };
    let all = EXPERIMENTS.iter().copied();
    let (found, names): (Vec<_>, String) = match (args.all, args.names.is_empty()) {
        (true, _) => (all.collect(), "--all".to_owned()),
        (_, false) => (named(&args.names)?, args.names.join(" ")),
        _ => (all.filter(has_state).collect(), "NAME".to_owned()),
    };
    if args.resume && !found.iter().any(has_state) {
        let of = if args.names.is_empty() { String::new() } else { format!(" of {names}") };
        bail!("there is no interrupted run{of} to resume; start one with iotomy lab run {names}");
    }
    Ok(found)
}

/// Several experiments have several records.
///
/// # Errors
/// When there is one place for them.
pub(super) fn check_outputs(
    ask: &RunRequest<'_>,
    chosen: &[&'static dyn Experiment],
) -> Result<()> {
    let json = ask.args.json.as_ref();
    if chosen.len() > 1 && json.is_some_and(|path| !ask.here.join(path).is_dir()) {
        bail!("several experiments write several records; name an existing directory with --json");
    }
    Ok(())
}

/// Keeps others from running these.
///
/// # Errors
/// One that runs one of them.
pub(super) fn locks(
    chosen: &[&'static dyn Experiment],
    state: Option<&State>,
) -> Result<Vec<Lock>> {
    let mut locks = Vec::new();
    for (state, one) in state.iter().flat_map(|state| chosen.iter().map(move |one| (state, one))) {
        locks.extend(Lock::take(state, one.declaration().name)?);
    }
    Ok(locks)
}

/// An experiment to run.
pub(super) struct Turn {
    pub(super) experiment: &'static dyn Experiment,
    /// The plan, or the measurements of an earlier run.
    pub(super) before: Result<Sweep>,
    /// Where its record goes.
    pub(super) json: Option<OutputFile>,
}

/// The request on the command line.
pub(super) struct RunRequest<'a> {
    pub(super) args: &'a RunArgs,
    pub(super) given: &'a AxisArguments,
    pub(super) here: &'a Path,
}

impl RunRequest<'_> {
    /// The plan of an experiment that has not begun.
    pub(super) fn plan<'a>(
        &self,
        experiment: &dyn Experiment,
        json: Option<String>,
        folder: &'a Folder,
    ) -> ExperimentPlan<'a> {
        let size = match (self.args.quick, self.args.full) {
            (true, _) => Size::Quick,
            (_, true) => Size::Full,
            _ => Size::Default,
        };
        let by_clock = || {
            let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
            // Short enough to be typed again.
            u64::from(now.subsec_nanos()) ^ (now.as_secs() & 0xfff) << 20
        };
        ExperimentPlan {
            size,
            given: values(experiment, self.given).unwrap_or_default(),
            max_time: self.args.max_time.or(size.max_time()),
            seed: self.args.seed.unwrap_or_else(by_clock),
            folder,
            room: FreeRoom::with(folder),
            json,
            share: self.args.shard,
        }
    }

    /// Begun now.
    pub(super) fn start(&self, before: Option<Sweep>) -> Start {
        let machine = named_machine(self.args.machine.clone().or_else(given_name).as_deref());
        Start { started: rfc3339(SystemTime::now()), machine, before }
    }

    /// The directory for a run that has not begun.
    pub(super) fn folder(&self) -> Result<Folder> {
        Ok(Folder::open(self.args.path.as_deref().unwrap_or(Path::new(FOLDER)))?)
    }

    /// The directory to resume in: that of `--path` if given, which may be refused later, or the
    /// earlier run's own.
    pub(super) fn folder_of(&self, before: &Sweep) -> Result<Folder> {
        let own = before.run.volume.as_ref().map(|volume| Path::new(&volume.path));
        if let (None, Some(own)) = (&self.args.path, own)
            && !own.is_dir()
            && let Some(one) = experiment(&before.experiment)
        {
            let (experiment, gone) = (one.declaration().name, path_text(own));
            let reason = format!("its directory {gone} no longer exists");
            return Err(RunError::Resume { experiment, reason }.into());
        }
        let path = self.args.path.as_deref().or(own).unwrap_or(Path::new(FOLDER));
        Ok(Folder::open(path)?)
    }

    /// The file for an experiment's record: in a directory, under the experiment's name.
    pub(super) fn file_of(&self, experiment: &str) -> Option<PathBuf> {
        let given = self.args.json.as_ref()?;
        let name = match self.args.shard {
            Some(Share { index, of }) => format!("{experiment}-{index}-of-{of}.json"),
            None => format!("{experiment}.json"),
        };
        Some(match given != Path::new(DASH) && self.here.join(given).is_dir() {
            true => given.join(name),
            false => given.clone(),
        })
    }

    /// The absolute form that is saved. A name that is not text is not saved.
    pub(super) fn kept_as(&self, json: Option<&Path>) -> Option<String> {
        match json?.to_str()? {
            DASH => Some(DASH.to_owned()),
            _ => self.here.join(json?).to_str().map(str::to_owned),
        }
    }
}

/// The start of each experiment; those that had not begun are planned, and saved.
///
/// # Errors
/// When an output cannot be written, or a directory cannot be used.
pub(super) fn turns(
    ask: &RunRequest<'_>,
    chosen: &[&'static dyn Experiment],
    around: &mut CommandHost,
) -> Result<Vec<Turn>> {
    let state = around.state().filter(|_| ask.args.resume).cloned();
    let mut found = Vec::new();
    for experiment in chosen.iter().copied() {
        let name = experiment.declaration().name;
        let before = state.as_ref().and_then(|state| state.load(name).transpose()).transpose();
        let kept = before.as_ref().ok().and_then(|before| before.as_ref()?.run.json.as_ref());
        let json = ask.file_of(name).or_else(|| kept.map(PathBuf::from));
        let kept_as = ask.kept_as(json.as_deref());
        let json = json.map(|path| outputs::open_one("--json", &path, ask.here)).transpose()?;
        found.push((experiment, before, json, kept_as));
    }
    // An experiment that had not begun is run with the settings of those that had.
    let like = found.iter().find_map(|(_, before, ..)| before.as_ref().ok()?.clone());
    let mut turns = Vec::new();
    for (experiment, before, json, kept_as) in found {
        let before = match before {
            Ok(Some(mut before)) => {
                before.run.json = kept_as;
                Ok(before)
            }
            Ok(None) => {
                let sweep = planned_like(ask, (experiment, kept_as), like.as_ref())?;
                if !sweep.cases.is_empty() {
                    around.keep(&sweep);
                }
                Ok(sweep)
            }
            Err(error) => Err(error.into()),
        };
        turns.push(Turn { experiment, before, json });
    }
    Ok(turns)
}

/// An experiment that has not begun, with the size and the directory of one that has.
fn planned_like(
    ask: &RunRequest<'_>,
    (experiment, json): (&'static dyn Experiment, Option<String>),
    like: Option<&Sweep>,
) -> Result<Sweep> {
    let folder = match (&ask.args.path, like) {
        (None, Some(like)) => ask.folder_of(like)?,
        _ => ask.folder()?,
    };
    let mut plan = ask.plan(experiment, json, &folder);
    let sizes = [Size::Quick, Size::Default, Size::Full].into_iter();
    if let Some(size) = like.and_then(|like| sizes.clone().find(|of| of.name() == like.run.size)) {
        (plan.size, plan.max_time) = (size, size.max_time());
    }
    Ok(planned(experiment, &plan, ask.start(None)))
}
