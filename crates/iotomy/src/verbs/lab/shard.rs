//! Shards of experiments, asked for by `--shard`.
//!
//! The invariant: asking again completes the work and repeats none of it. A shard whose record is
//! there is not run; an interrupted one is resumed if it can be, and starts again otherwise; and a
//! file that is something else is never written over.

use std::path::Path;

use anyhow::{Result, bail};
use iotomy_lab::{Experiment, Lock, Share, State, check_resume, is_same_share, planned};
use iotomy_record::Sweep;
use iotomy_record::store::load_sweep;

use super::host::CommandHost;
use super::turns::{DASH, RunRequest, Turn};
use crate::errors::print_error;
use crate::screen::path_text;
use crate::verbs::outputs;

/// The shards to run, with the locks that keep others from running the same ones.
///
/// # Errors
/// An output that cannot be written or holds something else, or a shard that is being run.
pub(super) fn turns(
    ask: &RunRequest<'_>,
    (chosen, share): (&[&'static dyn Experiment], Share),
    around: &mut CommandHost,
) -> Result<(Vec<Lock>, Vec<Turn>)> {
    let state = around.state().cloned();
    let (mut locks, mut turns) = (Vec::new(), Vec::new());
    for experiment in chosen.iter().copied() {
        let file = ask.file_of(experiment.declaration().name);
        let folder = ask.folder()?;
        let plan = ask.plan(experiment, ask.kept_as(file.as_deref()), &folder);
        let fresh = planned(experiment, &plan, ask.start(None));
        let name = State::name_of(&fresh);
        if let Some(state) = &state {
            locks.extend(Lock::take(state, &name)?);
        }
        if let Some(file) = &file
            && file != Path::new(DASH)
            && is_there(&ask.here.join(file), &fresh)?
        {
            around.clear();
            print_note(&format!("{} is complete in {}", shown(&fresh, share), path_text(file)));
            if let Some(state) = &state {
                state.forget(&name);
            }
            continue;
        }
        let json = file.map(|path| outputs::open_one("--json", &path, ask.here)).transpose()?;
        let kept = state.as_ref().and_then(|state| state.load(&name).transpose());
        let before = match kept {
            None => fresh,
            Some(kept) => {
                // One that has ended, and was not written, may be of any machine.
                let fit = kept.map_err(anyhow::Error::from).and_then(|kept| {
                    if !is_same_share(&kept, &fresh) {
                        bail!("what was kept of it is of another plan");
                    }
                    if kept.run.is_partial {
                        check_resume(experiment, &plan, (&kept, &fresh.machine))?;
                    }
                    Ok(kept)
                });
                match fit {
                    Ok(mut kept) => {
                        kept.run.json.clone_from(&fresh.run.json);
                        kept
                    }
                    Err(reason) => {
                        around.clear();
                        let from = format!("{} starts from its beginning", shown(&fresh, share));
                        print_error(&reason.context(from));
                        fresh
                    }
                }
            }
        };
        turns.push(Turn { experiment, before: Ok(before), json });
    }
    Ok((locks, turns))
}

/// Whether a file has the record of this shard.
///
/// # Errors
/// It has something else.
fn is_there(file: &Path, wanted: &Sweep) -> Result<bool> {
    let is_record_file = file.metadata().is_ok_and(|facts| facts.is_file() && facts.len() > 0);
    if !is_record_file {
        return Ok(false);
    }
    let reason = match load_sweep(file) {
        Ok(found) if is_same_share(&found, wanted) && !found.run.is_partial => return Ok(true),
        Ok(found) => match &found.run.shard {
            Some(shard) => format!(
                "it has shard {}/{} of another plan of {}",
                shard.index, shard.of, found.experiment
            ),
            None => format!("it has a record of {} that is no shard", found.experiment),
        },
        Err(_) => "it has something else than the record of a shard".to_owned(),
    };
    bail!("cannot write --json {}: {reason}; move it away, or name another file", path_text(file))
}

fn shown(sweep: &Sweep, share: Share) -> String {
    format!("shard {}/{} of {}", share.index, share.of, sweep.experiment)
}

/// Says what is no error. If standard error is closed, nothing can be said.
fn print_note(text: &str) {
    print_error(&anyhow::Error::msg(text.to_owned()));
}
