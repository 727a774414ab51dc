//! `iotomy lab run`: experiments run one after the other, each shown when it is done.

use std::collections::HashSet;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result, bail};
use iotomy_lab::experiments::{
    Around, EXPERIMENTS, Experiment, LeftBehind, Plan, Room, RunError, Size, Start, State,
    remove_left_behind, run as run_experiment,
};
use iotomy_lab::limits::storage::Folder;
use iotomy_lab::race::Axis;
use iotomy_observe::{machine, rfc3339};
use iotomy_record::{AxisValue, Sweep, store};

use super::around::Surroundings;
use super::named;
use crate::screen::Looks;
use crate::verbs::copy::sizes::size;
use crate::verbs::keeping::SaveArgs;
use crate::verbs::trace::seconds;
use crate::{COULD_NOT_RUN, complain};

/// Run experiments and judge their claims on this machine
#[derive(Debug, clap::Args)]
pub(super) struct RunArgs {
    /// Experiments, as `iotomy lab list` has them
    #[arg(value_name = "NAME", required_unless_present_any = ["all", "resume"], conflicts_with = "all")]
    names: Vec<String>,

    /// Run every experiment
    #[arg(long)]
    all: bool,

    /// Give an axis these values, as in size=64M,1G; may be given again
    #[arg(short = 'L', long = "axis", value_name = "AXIS=V,…", conflicts_with = "resume")]
    axes: Vec<Axis>,

    /// Few values, over in 20 s: enough to see the shape
    #[arg(long, conflicts_with_all = ["full", "resume"])]
    quick: bool,

    /// The values the article had, however long they take
    #[arg(long, conflicts_with = "resume")]
    full: bool,

    /// How long to measure each experiment at most [default: 12 with --quick, 150 otherwise, no end
    /// with --full]
    #[arg(long, value_name = "SECONDS", value_parser = seconds, conflicts_with = "resume")]
    max_time: Option<Duration>,

    /// Go on with interrupted runs: of these experiments, or without names of all there are; one that
    /// had come to its end is shown again, and not run
    #[arg(long)]
    resume: bool,

    /// Repeat the random order of an earlier run
    #[arg(long, value_name = "N", conflicts_with = "resume")]
    seed: Option<u64>,

    /// The folder whose file system is used
    #[arg(long, value_name = "DIR", default_value = "/var/tmp")]
    path: PathBuf,

    /// Write the record to FILE, or of several experiments each to NAME.json in this folder; `-` is
    /// standard output
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,

    #[command(flatten)]
    save: SaveArgs,

    /// Print no report and no progress
    #[arg(short, long)]
    quiet: bool,

    #[command(flatten)]
    looks: Looks,
}

/// Runs them.
pub(super) fn run(args: &RunArgs) -> Result<ExitCode> {
    let here = std::env::current_dir().context("cannot tell the current folder")?;
    let mut around = Surroundings::new(args.quiet)?;
    let chosen = chosen(args, around.state())?;
    let given = given(&args.axes, &chosen)?;
    if chosen.len() > 1 && args.json.as_ref().is_some_and(|path| !here.join(path).is_dir()) {
        bail!("several experiments make several records; name a folder that exists with --json");
    }
    let folder = Folder::open(&args.path)?;
    around.state().into_iter().flat_map(remove_left_behind).for_each(|left| tell_of(&left));
    let size = size_of(args, &chosen, around.state());
    let (mut code, mut done) = (ExitCode::SUCCESS, Vec::new());
    for experiment in &chosen {
        let error = match run_one(args, *experiment, (size, &given), &folder, &mut around) {
            Ok(record) => {
                // What cannot be written now, or is interrupted by the next one, is not measured again
                // by --resume.
                around.keep(&record);
                let written = write_out(args, &record, &here, &mut around);
                if args.save.is_wanted() {
                    args.save.keep(store::RecordRef::Sweep(&record), args.quiet);
                }
                written?;
                if record.cases.iter().all(|case| case.skipped.is_some()) {
                    code = ExitCode::from(COULD_NOT_RUN);
                }
                done.push(record.experiment);
                continue;
            }
            Err(error) => error,
        };
        around.clear();
        if let Some(RunError::Interrupted(signal)) = error.downcast_ref() {
            say_how_to_go_on(args, *experiment, around.state());
            return Ok(ExitCode::from(u8::try_from(128 + signal).unwrap_or(COULD_NOT_RUN)));
        }
        // The others may be possible.
        complain(&error);
        code = ExitCode::from(COULD_NOT_RUN);
    }
    // Only now: until all are done, --resume is to know which have been.
    done.iter().for_each(|name| _ = around.state().inspect(|state| state.forget(name)));
    Ok(code)
}

/// A folder that a killed run had left has gone, or could not.
fn tell_of(left: &LeftBehind) {
    let path = left.path.display();
    complain(&match &left.error {
        None => anyhow::anyhow!("removed {path}, which a run that was killed had left"),
        Some(error) => anyhow::anyhow!(
            "cannot remove {path}, which a run that was killed had left: {error}; remove it by hand"
        ),
    });
}

fn say_how_to_go_on(args: &RunArgs, experiment: &dyn Experiment, state: Option<&State>) {
    if state.is_some_and(|state| state.file(experiment.declaration().name).exists()) {
        let those = match (args.all, args.names.is_empty()) {
            (true, _) => "--all ".to_owned(),
            (false, true) => String::new(),
            (false, false) => args.names.join(" ") + " ",
        };
        let text = format!("interrupted; iotomy lab run {those}--resume goes on with it");
        complain(&anyhow::Error::msg(text));
    }
}

/// How much is run: with --resume, of those that had not begun as much as of those that had.
fn size_of(args: &RunArgs, chosen: &[&'static dyn Experiment], state: Option<&State>) -> Size {
    let asked = match (args.quick, args.full) {
        (true, _) => Size::Quick,
        (_, true) => Size::Full,
        _ => Size::Default,
    };
    let kept = |one: &&dyn Experiment| {
        let sweep = state?.load(one.declaration().name).ok()??;
        [Size::Quick, Size::Default, Size::Full].into_iter().find(|of| of.name() == sweep.run.size)
    };
    let before = chosen.iter().find_map(kept).filter(|_| args.resume);
    before.unwrap_or(asked)
}

/// The experiments asked for.
fn chosen(args: &RunArgs, state: Option<&State>) -> Result<Vec<&'static dyn Experiment>> {
    if args.all {
        return Ok(EXPERIMENTS.to_vec());
    }
    if !args.names.is_empty() {
        return named(&args.names);
    }
    let has_state = |one: &&&'static dyn Experiment| {
        state.is_some_and(|state| state.file(one.declaration().name).exists())
    };
    let found: Vec<_> = EXPERIMENTS.iter().filter(has_state).copied().collect();
    if found.is_empty() {
        bail!("there is no interrupted run to go on with; start one with iotomy lab run NAME");
    }
    Ok(found)
}

/// The values given for axes: a name may be an axis of several experiments.
type Given = Vec<(String, Vec<String>)>;

fn given(axes: &[Axis], chosen: &[&'static dyn Experiment]) -> Result<Given> {
    let mut given: Given = Vec::new();
    for axis in axes {
        if given.iter().any(|(name, _)| *name == axis.name) {
            bail!("-L {} is given twice", axis.name);
        }
        let has = |one: &&dyn Experiment| {
            one.declaration().axes.iter().any(|declared| declared.name == axis.name)
        };
        if !chosen.iter().any(has) {
            let names: HashSet<&str> =
                chosen.iter().flat_map(|one| one.declaration().axes).map(|one| one.name).collect();
            let mut names: Vec<&str> = names.into_iter().collect();
            names.sort_unstable();
            bail!("-L {}: there is no such axis; there are {}", axis.name, names.join(", "));
        }
        given.push((axis.name.clone(), axis.values.clone()));
    }
    // What is wrong with a value is said before anything is run.
    for one in chosen {
        values(*one, &given)?;
    }
    Ok(given)
}

/// The given values as those of an experiment's axes.
fn values(experiment: &dyn Experiment, given: &Given) -> Result<Vec<(String, Vec<AxisValue>)>> {
    let number = |text: &str| {
        let number = text.parse::<u64>();
        number.map_err(|_| format!("{text:?} is no number"))
    };
    let mut values = Vec::new();
    for axis in experiment.declaration().axes {
        let Some((_, texts)) = given.iter().find(|(name, _)| name == axis.name) else { continue };
        let mut parsed: Vec<AxisValue> = Vec::new();
        for text in texts {
            let value = match axis.unit {
                "bytes" => axis.value(text, size),
                _ => axis.value(text, number),
            };
            let value = value.map_err(|what| anyhow::anyhow!("-L {what}"))?;
            if !parsed.contains(&value) {
                parsed.push(value);
            }
        }
        values.push((axis.name.to_owned(), parsed));
    }
    Ok(values)
}

fn run_one(
    args: &RunArgs,
    experiment: &'static dyn Experiment,
    (size, given): (Size, &Given),
    folder: &Folder,
    around: &mut Surroundings,
) -> Result<Sweep> {
    let name = experiment.declaration().name;
    let before = match (args.resume, around.state()) {
        (true, Some(state)) => state.load(name)?,
        _ => None,
    };
    // One that had come to its end is shown again, and not measured.
    if let Some(whole) = before.as_ref().filter(|before| !before.run.is_partial) {
        return Ok(whole.clone());
    }
    let by_clock = || {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        // Short enough to be typed again.
        u64::from(now.subsec_nanos()) ^ (now.as_secs() & 0xfff) << 20
    };
    let plan = Plan {
        size,
        given: values(experiment, given).unwrap_or_default(),
        max_time: args.max_time.or(size.max_time()),
        seed: args.seed.unwrap_or_else(by_clock),
        folder,
        room: Room::with(folder),
    };
    let start = Start { started: rfc3339(SystemTime::now()), machine: machine(), before };
    Ok(run_experiment(experiment, &plan, start, around)?)
}

/// The report first: a record that cannot be written must not cost it.
fn write_out(args: &RunArgs, record: &Sweep, here: &Path, around: &mut Surroundings) -> Result<()> {
    around.clear();
    let dash = Path::new("-");
    let mut failed = Ok(());
    if !args.quiet && args.json.as_deref() == Some(dash) {
        let text = iotomy_report::sweep(record, &args.looks.on(&std::io::stderr()));
        // With standard error gone there is nobody left to tell.
        let _ = std::io::stderr().write_all(text.as_bytes());
    } else if !args.quiet {
        let text = iotomy_report::sweep(record, &args.looks.on(&std::io::stdout()));
        failed = store::OutputFile::write(dash, here, (text + "\n").as_bytes());
    }
    if let Some(path) = &args.json {
        let folder = here.join(path);
        match path != dash && folder.is_dir() {
            true => {
                let file = folder.join(format!("{}.json", record.experiment));
                store::save_sweep(record, &file, here)?;
            }
            false => store::save_sweep(record, path, here)?,
        }
    }
    Ok(failed?)
}
