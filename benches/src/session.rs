//! A session of its own for a bench, so that it is served before all other work of the machine.
//!
//! Linux shares the CPUs out between sessions first and only then by nice values (`autogroup` in
//! sched(7)): nice −20 gains nothing over a build in another terminal. A session has a nice value
//! too, but the user's would keep it. So the bench runs again as its own child, in a session that
//! ends with it; the parent stays in the foreground, passes signals on, and takes the child with
//! it when it dies.

use std::process::{Command, ExitCode};

use anyhow::{Context, Result};

use crate::child::{Signals, die_with_parent, own_path};
use crate::options::Options;

/// Tells the child that it is the child.
const INSIDE: &str = "IOTOMY_BENCH_INSIDE";

/// Starts this program again in a session of its own and returns how it ended, or nothing when
/// this is the one in that session. The rest goes on there, at nice −20 where that is allowed.
///
/// # Errors
/// When it cannot be started or waited for.
pub fn own_session(signals: &Signals, options: &Options) -> Result<Option<ExitCode>> {
    if std::env::var_os(INSIDE).is_some() {
        die_with_parent()?;
        lead_session();
        return Ok(None);
    }
    if options.end_with_parent {
        die_with_parent()?;
    }
    let mut command = Command::new(own_path()?);
    command.args(std::env::args_os().skip(1)).env(INSIDE, "1");
    let mut child = command.spawn().context("cannot start this program again")?;
    let status = signals.wait_passing_on(&mut child)?;
    let code = status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(2);
    Ok(Some(ExitCode::from(code)))
}

/// Makes this process the leader of a session that is served first, where that is allowed.
pub fn lead_session() {
    // None has to be: what is lost is quiet, which the record shows.
    if rustix::process::setsid().is_ok() {
        let _ = std::fs::write("/proc/self/autogroup", "-20");
    }
    let _ = rustix::process::setpriority_process(None, -20);
}
