//! One source carried to the target's position: the plan, its trial, and the run.

use std::sync::Arc;
use std::time::Instant;

use iotomy_movers::chooser::{self, Failed, MoverPlan, Report};
use iotomy_movers::{End, Job, Kind, MOVERS, Moved, Reflink};

use crate::error::{Result, number, unsuited};
use crate::fault::{SMALLER, Stop, all_refused, failed};
use crate::rehearsal::rehearse;
use crate::session::CopySession;
use crate::source::Source;
use crate::target::Target;
use crate::{CopyError, Detail, Options, account};

/// Copies one of this many sources to the target's position.
pub(crate) fn carry(
    session: &mut CopySession<'_>,
    source: &Source,
    target: &Target<'_>,
    (count, before, sources): (Option<u64>, u64, usize),
) -> Result<Moved, Stop> {
    let (from, to) = (source.end(), target.end());
    let (options, progress) = (session.options, Arc::clone(&session.progress));
    let job = options.job(count, &progress.moved);
    let plan = plan(options, source, target, &job)?;
    let has_part = options.detail >= Detail::Parts;
    let mut part = has_part.then(|| account::begin(options, source, target, &plan));
    if let Some(part) = &part {
        session.watcher.planned(&session.account.contract, part);
    }
    if target.has_what_goes() {
        chooser::has_memory(&plan, &from, &to, &job)
            .map_err(|bytes| no_memory(source, target, bytes))?;
    }
    rehearse(options, source, target, &plan, sources)?;
    target.begin()?;
    session.watcher.begins(&progress, &|| [from, to].iter().any(is_terminal));
    let begun = has_part.then(Instant::now);
    let outcome = chooser::run_and_tell(&plan, &from, &to, &job, &|name| progress.at_work(name));
    let took = begun.map(|begun| begun.elapsed());
    let (report, error) = match outcome {
        Ok(report) => (report, None),
        Err(Failed { error, refused }) => {
            (Report { mover: Some(error.mover), moved: error.moved, refused }, Some(error))
        }
    };
    if let (Some(part), Some(took)) = (&mut part, took) {
        account::settle(part, &report, took);
        part.error = error.as_ref().map(ToString::to_string);
    }
    session.carried(report.moved, part);
    if let Some(error) = error {
        return Err(failed(error, source, target, before));
    }
    if report.mover.is_none() {
        return Err(all_refused(source, target, &report, before).into());
    }
    Ok(report.moved)
}

fn is_terminal(end: &End<'_>) -> bool {
    end.kind() == Kind::Char && rustix::termios::isatty(end.fd())
}

/// The movers for this pair.
fn plan(
    options: &Options,
    source: &Source,
    target: &Target<'_>,
    job: &Job<'_>,
) -> Result<MoverPlan> {
    let (from, to) = (source.end(), target.end());
    let must_share = job.reflink == Reflink::Always;
    let pair = || format!("cannot copy {} to {}", source.name, target.name);
    let Some(mover) = options.mover else {
        if options.detail < Detail::Reasons {
            let plan = chooser::choose_only(&from, &to, job);
            if !plan.steps.is_empty() {
                return Ok(plan);
            }
        }
        let plan = chooser::choose(&from, &to, job);
        if plan.steps.is_empty() {
            let why = plan.unsuited.first().map_or("no mover serves", |first| &first.reason);
            let hint = if must_share { "; use --reflink auto" } else { "" };
            return unsuited(format!("{}: {why}{hint}", pair()));
        }
        return Ok(plan);
    };
    let name = mover.declaration().name;
    let refused = match chooser::only(mover, &from, &to, job) {
        Ok(_) if must_share && name != "reflink" => {
            "it copies, and extents must be shared".to_owned()
        }
        Ok(_) if mover.declaration().calls.is_empty() && target.replaces_something() => {
            "it moves nothing, and the target would lose its content".to_owned()
        }
        Ok(plan) => return Ok(plan),
        Err(reason) => reason,
    };
    let others: Vec<&str> = MOVERS
        .iter()
        .filter(|other| !other.declaration().calls.is_empty())
        .filter(|other| chooser::only(**other, &from, &to, job).is_ok())
        .map(|other| other.declaration().name)
        .filter(|other| *other != name && (!must_share || *other == "reflink"))
        .collect();
    let can = if others.is_empty() {
        "no other mover can".to_owned()
    } else {
        format!("these can: {}", others.join(", "))
    };
    unsuited(format!("{} by {name}: {refused}; {can}", pair()))
}

/// No mover of the plan could have its buffers.
fn no_memory(source: &Source, target: &Target<'_>, bytes: u64) -> CopyError {
    CopyError::Unsuited(format!(
        "cannot copy {} to {}: there is no memory for buffers of {} bytes; {SMALLER}",
        source.name,
        target.name,
        number(bytes)
    ))
}
