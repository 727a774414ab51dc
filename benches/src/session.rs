//! A separate session for a bench, so that the scheduler serves it before all other work of the
//! machine.
//!
//! Linux distributes the CPUs first among sessions and only then by nice values (`autogroup` in
//! sched(7)): nice −20 gives no advantage over a build in another terminal. A session also has a
//! nice value, but the user's session would retain it. The bench therefore runs again as its own
//! child, in a session that ends with it. The parent stays in the foreground, forwards signals, and
//! takes the child down with it when it dies.

use std::process::{Command, ExitCode};

use anyhow::{Context, Result};

use crate::child::{Signals, die_with_parent, go_first, own_path};
use crate::options::Options;

/// The variable that marks the child.
const INSIDE: &str = "IOTOMY_BENCH_INSIDE";

/// Starts this program again in a new session and returns its exit status, or `None` if this
/// process already is the one in that session. The child continues there, at nice −20 where that is
/// permitted.
///
/// # Errors
/// When the child cannot be started or waited for.
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

/// Makes this process the leader of a session with the highest priority, where that is permitted.
pub fn lead_session() {
    // None of these calls is required: without them the run is only less quiet, which the record
    // shows.
    let is_nice = rustix::process::getpriority_process(None).is_ok_and(|nice| nice > 0);
    if rustix::process::setsid().is_ok() && !is_nice {
        let _ = std::fs::write("/proc/self/autogroup", "-20");
    }
    go_first();
}
