//! Commands that are run to their end, and what they wrote of errors.

use std::fs::File;
use std::io::{Read, Seek};

use anyhow::{Context, Result, bail};

use crate::child::{Signals, guarded};

/// Runs a command to its end.
pub(crate) fn run_to_end(signals: &Signals, words: &[&str]) -> Result<()> {
    let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
    let mut errors = tempfile::tempfile().context("cannot make a temporary file")?;
    let copy = errors.try_clone().context("cannot share a file")?;
    let mut command = guarded(&words, copy)?;
    // A measured run is nobody's to keep.
    command.env("IOTOMY_HISTORY", "never");
    let mut child = command.spawn().with_context(|| format!("cannot start {}", words[0]))?;
    let status = signals.wait(&mut child)?;
    if !status.success() {
        bail!("{} ended with {status}: {}", words.join(" "), contents(&mut errors));
    }
    Ok(())
}

/// The content of a file that a child shared.
pub(crate) fn contents(file: &mut File) -> String {
    let mut text = Vec::new();
    let read = file.rewind().and_then(|()| file.read_to_end(&mut text));
    read.map_or_else(
        |error| error.to_string(),
        |_| String::from_utf8_lossy(&text).trim().to_owned(),
    )
}
