//! The output files of a run, opened before it: an output that cannot be written is reported before
//! anything runs, and the run cannot redirect any of them.

use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use anyhow::{Result, bail};
use iotomy_record::store::{OutputFile, StoreError, same_output};
use iotomy_record::{lossless, printable};
use iotomy_report::Style;
use iotomy_sys::startup::was_closed;

use crate::errors::print_error;
use crate::screen::OutputStyle;

/// The name of the current directory, for messages; empty if it was removed.
pub(super) fn here() -> PathBuf {
    std::env::current_dir().unwrap_or_default()
}

/// The outputs of a run by the options that name them, each at its place.
pub(super) struct Outputs(Vec<(&'static str, OutputFile)>);

impl Outputs {
    /// The output requested by an option, if any.
    pub(super) fn take(&mut self, option: &str) -> Option<OutputFile> {
        let at = self.0.iter().position(|(of, _)| *of == option)?;
        Some(self.0.swap_remove(at).1)
    }

    /// Refuses those to which no more than one text can be written, for an option that writes several.
    ///
    /// # Errors
    /// One is a FIFO: its reader takes the end of the first text for the end of all.
    pub(super) fn refuse_fifos(&self, option: &str) -> Result<()> {
        let Some((of, fifo)) = self.0.iter().find(|(_, output)| output.is_fifo()) else {
            return Ok(());
        };
        bail!(
            "cannot write more than one text to {}: it is a FIFO, and {option} writes one after \
             another; give {of} a file, or - with a pipe behind it",
            fifo.name()
        )
    }

    /// Gives outputs back that were taken.
    pub(super) fn give_back(&mut self, outputs: Vec<(&'static str, OutputFile)>) {
        self.0.extend(outputs);
    }
}

/// Opens outputs, each with the option that names it; an option that was not given has none.
///
/// # Errors
/// One that cannot be written, or two that lead to one place: the first of them, by its option.
pub(super) fn open(outputs: &[(&'static str, Option<&Path>)], here: &Path) -> Result<Outputs> {
    let wanted: Vec<(&'static str, &Path)> =
        outputs.iter().filter_map(|(option, path)| Some((*option, (*path)?))).collect();
    for (at, (option, path)) in wanted.iter().enumerate() {
        for (earlier, other) in &wanted[..at] {
            if same_output(path, other, here) {
                let path = printable(&lossless(path.as_os_str().as_bytes()), true);
                bail!("{earlier} and {option} both write to {path}; name two files");
            }
        }
    }
    let each = wanted.into_iter().map(|(option, path)| Ok((option, open_one(option, path, here)?)));
    Ok(Outputs(each.collect::<Result<_>>()?))
}

/// Opens the output that an option names.
///
/// # Errors
/// It cannot be written.
pub(super) fn open_one(option: &str, path: &Path, here: &Path) -> Result<OutputFile> {
    if path == Path::new("-") && was_closed(std::io::stdout().as_fd()) {
        bail!("cannot write {option} to standard output: it is closed; name a file");
    }
    Ok(OutputFile::open(path, here)?)
}

/// Writes the report of a command's run: to the requested file, or to standard error.
pub(super) fn report(
    to: Option<OutputFile>,
    looks: OutputStyle,
    text: impl FnOnce(&Style) -> String,
) -> Result<(), StoreError> {
    let Some(to) = to else {
        let text = text(&looks.on(&std::io::stderr()));
        return OutputFile::standard_error().put(text.as_bytes());
    };
    let style = match to.is_standard() {
        true => looks.on(&std::io::stdout()),
        false => looks.in_a_file(),
    };
    to.put(text(&style).as_bytes())
}

/// Runs all of these, also after a failure: an output that fails must not prevent the others.
/// Errors after the first are printed here.
///
/// # Errors
/// The first there was.
pub(super) fn all(each: impl IntoIterator<Item = Result<()>>) -> Result<()> {
    let mut first = Ok(());
    for one in each {
        first = match (first, one) {
            (Ok(()), one) => one,
            (first, Ok(())) => first,
            (first, Err(error)) => {
                print_error(&error);
                first
            }
        };
    }
    first
}
