//! The contract of a server: its declaration, and what a running one can be asked for.

use std::fs::{self, File};
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, bail};

use crate::child::{Signals, guarded};

/// The length of a run.
pub(crate) const TIME: Duration = Duration::from_secs(1);

/// A kind of server, with the load generator that asks it.
#[derive(Debug)]
pub(crate) struct Service {
    pub(crate) name: &'static str,
    /// What it is, and who asks it: a part of a sentence.
    pub(crate) summary: &'static str,
    /// The call by which it answers: one a request, or more.
    pub(crate) answer: Call,
    /// The kernel's name of its processes, where those that answer are started while it is watched.
    pub(crate) comm: Option<&'static str>,
    /// A call that it makes seldom, or for about a hundredth of its calls.
    pub(crate) rare_call: &'static str,
    /// The most CPU time that a request takes under `iotomy trace`, in that of a bare one.
    pub(crate) most: f64,
    /// The aim, where it is another figure.
    pub(crate) aim: Option<f64>,
    /// Returns the versions of the server and of the load generator.
    pub(crate) versions: fn() -> Vec<String>,
    /// Starts it, with its files in a directory; the error is the reason why it cannot be started.
    pub(crate) start: fn(&Signals, &Path) -> Result<Box<dyn Running>>,
}

/// A system call.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Call {
    pub(crate) name: &'static str,
    pub(crate) number: u32,
}

pub(crate) const WRITE: Call = Call { name: "write", number: 1 };
pub(crate) const WRITEV: Call = Call { name: "writev", number: 20 };
pub(crate) const SENDTO: Call = Call { name: "sendto", number: 44 };
pub(crate) const SENDMSG: Call = Call { name: "sendmsg", number: 46 };

/// A running server; it ends when this value is dropped.
pub(crate) trait Running {
    /// Returns the process that is watched; others of the server are its children.
    fn pid(&self) -> u32;

    /// Runs the load generator for [`TIME`], its output in a directory, and returns what it reports.
    ///
    /// # Errors
    /// When it fails, or a signal has arrived.
    fn load(&self, signals: &Signals, folder: &Path) -> Result<Served>;
}

/// What a load generator reports.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Served {
    pub(crate) requests: f64,
    pub(crate) per_second: f64,
}

/// Runs a load generator that ends by itself, and returns what `parse` reads of its output.
///
/// # Errors
/// When it fails or has made no request, or a signal has arrived.
pub(crate) fn generated(
    signals: &Signals,
    folder: &Path,
    argv: &[String],
    parse: fn(&str) -> Option<Served>,
) -> Result<Served> {
    let (output, errors) = (folder.join("load"), folder.join("load-errors"));
    let create = |path: &Path| File::create(path).context("cannot create a file");
    let mut command = guarded(argv, create(&errors)?)?;
    command.stdout(create(&output)?);
    let mut child = command.spawn().with_context(|| format!("cannot start {}", argv[0]))?;
    let status = signals.wait(&mut child)?;
    let text = fs::read_to_string(&output).context("cannot read a report")?;
    match parse(&text).filter(|served| status.success() && served.requests > 0.0) {
        Some(served) => Ok(served),
        None => bail!("{} ended with {status}; its last line: {}", argv[0], last_line(&errors)),
    }
}

/// Returns the last line of a file that is not empty.
pub(crate) fn last_line(file: &Path) -> String {
    let text = fs::read_to_string(file).unwrap_or_default();
    text.lines().rfind(|line| !line.is_empty()).unwrap_or("nothing").to_owned()
}
