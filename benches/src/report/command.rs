//! Commands that run to completion, and their standard error.

use std::fs::File;
use std::io::{Read, Seek};

use anyhow::{Context, Result, bail};

use crate::child::{Signals, guarded};

/// Runs a command to completion.
pub(crate) fn run_to_end(signals: &Signals, words: &[&str]) -> Result<()> {
    let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
    let mut errors = tempfile::tempfile().context("cannot make a temporary file")?;
    let copy = errors.try_clone().context("cannot share a file")?;
    let mut command = guarded(&words, copy)?;
    // A measured run is not saved in the history.
    command.env("IOTOMY_HISTORY", "never");
    let mut child = command.spawn().with_context(|| format!("cannot start {}", words[0]))?;
    let status = signals.wait(&mut child)?;
    if !status.success() {
        bail!("{} ended with {status}: {}", words.join(" "), contents(&mut errors));
    }
    Ok(())
}

/// Returns the content of a file that was shared with a child.
pub(crate) fn contents(file: &mut File) -> String {
    let mut text = Vec::new();
    let read = file.rewind().and_then(|()| file.read_to_end(&mut text));
    read.map_or_else(
        |error| error.to_string(),
        |_| String::from_utf8_lossy(&text).trim().to_owned(),
    )
}
