//! `iotomy lab run`: experiments run one after the other, each shown when it is done.

use std::path::Path;
use std::process::ExitCode;

use anyhow::Result;
use iotomy_lab::{LeftBehind, RunError, RunHost, State, remove_left_behind, run as run_experiment};
use iotomy_record::Sweep;
use iotomy_record::store::{OutputFile, RecordRef};

use super::given::given;
use super::host::CommandHost;
use super::run_args::RunArgs;
use super::shard;
use super::turns::{RunRequest, Turn, check_outputs, chosen, locks, turns};
use crate::errors::{COULD_NOT_RUN, print_error};
use crate::manual::Manual;
use crate::screen::{OutputStyle, path_text};
use crate::verbs::outputs;

pub(super) const MANUAL: Manual = Manual {
    examples: &[
        ("iotomy lab run copy --quick", "Run an experiment in some 20 seconds:"),
        (
            "iotomy lab run null-sink --path /home -L size=64M,256M,1G --json sweep.json",
            "Choose the file system and the values of an axis, and keep the record:",
        ),
        ("iotomy lab run --resume", "Resume interrupted runs:"),
        (
            "iotomy lab run copy --full --shard 2/5 --json records",
            "Run the second of five shares of the cases, or resume it:",
        ),
    ],
    status: &[
        (
            "0",
            "Every experiment ended, with any verdict on its claims, and its record was written.",
        ),
        (
            "2",
            "The command line is wrong; an experiment could not be run, or all of its cases were skipped; \
             or a record could not be written or kept.",
        ),
        ("128 + n", "Signal n interrupted the run; --resume goes on with it."),
    ],
    see_also: &["iotomy-lab-list(1)", "iotomy-lab-merge(1)", "iotomy-report(1)"],
};

/// Runs them.
pub(super) fn run(args: &RunArgs) -> Result<ExitCode> {
    let here = outputs::here();
    let mut around = CommandHost::new(args.quiet)?;
    let chosen = chosen(args, around.state())?;
    let given = given(&args.axes, &chosen)?;
    let ask = RunRequest { args, given: &given, here: &here };
    let (_locks, turns) = match args.shard {
        Some(share) => {
            check_outputs(&ask, &chosen)?;
            shard::turns(&ask, (&chosen, share), &mut around)?
        }
        None => {
            let locks = locks(&chosen, around.state())?;
            check_outputs(&ask, &chosen)?;
            (locks, turns(&ask, &chosen, &mut around)?)
        }
    };
    around.state().into_iter().flat_map(remove_left_behind).for_each(|left| tell_of(&left));
    let (mut code, mut done) = (ExitCode::SUCCESS, Vec::new());
    for mut turn in turns {
        let (name, to) = (turn.experiment.declaration().name, turn.json.take());
        let error = match run_one(&ask, turn, &mut around) {
            Ok(mut record) => {
                // A record that cannot be written now, or is interrupted by the next one, is not
                // measured again by --resume.
                around.keep(&record);
                record.run.json = None;
                around.clear();
                let written = write_out((args.quiet, args.looks), &record, to);
                if !args.save.keep_if_wanted(RecordRef::Sweep(&record), args.quiet) {
                    code = ExitCode::from(COULD_NOT_RUN);
                }
                written?;
                if let Some(error) = nothing_measured(&record) {
                    print_error(&error);
                    code = ExitCode::from(COULD_NOT_RUN);
                }
                done.push(State::name_of(&record));
                continue;
            }
            Err(error) => error,
        };
        around.clear();
        if let Some(RunError::Interrupted(signal)) = error.downcast_ref() {
            say_how_to_go_on(args, name, around.state());
            return Ok(ExitCode::from(u8::try_from(128 + signal).unwrap_or(COULD_NOT_RUN)));
        }
        // The others may be possible.
        print_error(&error);
        code = ExitCode::from(COULD_NOT_RUN);
    }
    // Only now: until all are done, --resume is to know which have been.
    done.iter().for_each(|name| _ = around.state().inspect(|state| state.forget(name)));
    Ok(code)
}

/// Why a run measured nothing, if it did not: it is an error also where no report is printed.
pub(super) fn nothing_measured(record: &Sweep) -> Option<anyhow::Error> {
    let mut reasons: Vec<&str> = Vec::new();
    // Another machine, or another shard, may have measured what this one could not.
    if record.run.shard.is_some() {
        return None;
    }
    for case in &record.cases {
        let reason = case.skipped.as_deref()?;
        if !reasons.contains(&reason) {
            reasons.push(reason);
        }
    }
    let name = &record.experiment;
    let help = format!("see iotomy lab list {name} for the values of -L");
    Some(match (record.cases.len(), reasons.as_slice()) {
        (_, []) => anyhow::anyhow!(
            "{name} measured nothing: these values give no valid case; \
            {help}"
        ),
        (1, [reason, ..]) => anyhow::anyhow!("{name} measured nothing: {reason}; {help}"),
        (cases, [reason]) => {
            anyhow::anyhow!(
                "{name} measured nothing: all {cases} cases were skipped: {reason}; {help}"
            )
        }
        (cases, [reason, others @ ..]) => anyhow::anyhow!(
            "{name} measured nothing: all {cases} cases were skipped, the first because {reason}; \
             the report has all {} reasons; {help}",
            others.len() + 1
        ),
    })
}

/// Reports that the leftovers of a killed run were removed, or could not be.
fn tell_of(left: &LeftBehind) {
    let path = path_text(&left.path);
    print_error(&match &left.error {
        None => anyhow::anyhow!("removed {path}, left by a killed run"),
        Some(error) => anyhow::anyhow!(
            "cannot remove {path}, left by a killed run: {error}; remove it by hand"
        ),
    });
}

fn say_how_to_go_on(args: &RunArgs, experiment: &str, state: Option<&State>) {
    if args.shard.is_some() {
        print_error(&anyhow::anyhow!("interrupted; to resume, run the same command again"));
        return;
    }
    if state.is_some_and(|state| state.file(experiment).exists()) {
        let those = match (args.all, args.names.is_empty()) {
            (true, _) => "--all ".to_owned(),
            (false, true) => String::new(),
            (false, false) => args.names.join(" ") + " ",
        };
        let text = format!("interrupted; to resume: iotomy lab run {those}--resume");
        print_error(&anyhow::Error::msg(text));
    }
}

fn run_one(ask: &RunRequest<'_>, turn: Turn, around: &mut CommandHost) -> Result<Sweep> {
    let (experiment, before) = (turn.experiment, turn.before?);
    // A finished run is printed again, and not measured.
    if !before.run.is_partial {
        return Ok(before);
    }
    let folder = ask.folder_of(&before)?;
    let (plan, name) =
        (ask.plan(experiment, before.run.json.clone(), &folder), State::name_of(&before));
    let found = run_experiment(experiment, &plan, ask.start(Some(before)), around);
    if let (Err(RunError::Prepare { .. }), Some(state)) = (&found, around.state())
        && state.load(&name).is_ok_and(|kept| kept.is_some_and(|kept| kept.run.rounds == 0))
    {
        // A run that could not be started cannot be resumed.
        state.forget(&name);
    }
    Ok(found?)
}

/// The report first: a record that cannot be written must not cost it.
pub(super) fn write_out(
    (quiet, looks): (bool, OutputStyle),
    record: &Sweep,
    json: Option<OutputFile>,
) -> Result<()> {
    let mut failed = Ok(());
    if !quiet && json.as_ref().is_some_and(OutputFile::is_standard) {
        failed = outputs::report(None, looks, |style| iotomy_report::sweep(record, style));
    } else if !quiet {
        let text = iotomy_report::sweep(record, &looks.on(&std::io::stdout()));
        failed = OutputFile::write(Path::new("-"), Path::new(""), (text + "\n").as_bytes());
    }
    let saved = json.map_or(Ok(()), |to| RecordRef::Sweep(record).save(to));
    outputs::all([failed, saved].map(|one| one.map_err(Into::into)))
}
