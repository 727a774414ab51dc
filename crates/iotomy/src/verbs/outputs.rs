//! The files a run is to write, looked up before it: what cannot be written is told while nothing has
//! been run yet, and what runs then leads none of them elsewhere.

use std::io::Write;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};

use anyhow::{Result, bail};
use iotomy_record::printable;
use iotomy_record::store::{OutputFile, StoreError, same_output};
use iotomy_report::Style;
use iotomy_sys::startup::was_closed;

use crate::errors::print_error;
use crate::screen::OutputStyle;

/// The name of the current folder, for messages; empty where it has none any more.
pub(super) fn here() -> PathBuf {
    std::env::current_dir().unwrap_or_default()
}

/// The outputs of a run by the options that name them, each at its place.
pub(super) struct Outputs(Vec<(&'static str, OutputFile)>);

impl Outputs {
    /// The output that was asked for by an option, if it was.
    pub(super) fn take(&mut self, option: &str) -> Option<OutputFile> {
        let at = self.0.iter().position(|(of, _)| *of == option)?;
        Some(self.0.swap_remove(at).1)
    }
}

/// Looks outputs up. Each has the option that names it; one that was not asked for is no output.
///
/// # Errors
/// One that cannot be written, or two that lead to one place: the first of them, by its option.
pub(super) fn open(outputs: &[(&'static str, Option<&Path>)], here: &Path) -> Result<Outputs> {
    let wanted: Vec<(&'static str, &Path)> =
        outputs.iter().filter_map(|(option, path)| Some((*option, (*path)?))).collect();
    for (at, (option, path)) in wanted.iter().enumerate() {
        for (earlier, other) in &wanted[..at] {
            if same_output(path, other, here) {
                let path = printable(&path.to_string_lossy(), true);
                bail!("{earlier} and {option} both write to {path}; name two files");
            }
        }
    }
    let each = wanted.into_iter().map(|(option, path)| Ok((option, open_one(option, path, here)?)));
    Ok(Outputs(each.collect::<Result<_>>()?))
}

/// Looks up the output that an option names.
///
/// # Errors
/// It cannot be written.
pub(super) fn open_one(option: &str, path: &Path, here: &Path) -> Result<OutputFile> {
    if path == Path::new("-") && was_closed(std::io::stdout().as_fd()) {
        bail!("cannot write {option} to standard output: it is closed; name a file");
    }
    Ok(OutputFile::open(path, here)?)
}

/// Writes the report of a command's run: to the file that was asked for, or to standard error.
pub(super) fn report(
    to: Option<OutputFile>,
    looks: OutputStyle,
    text: impl FnOnce(&Style) -> String,
) -> Result<(), StoreError> {
    let Some(to) = to else {
        // With standard error gone there is nobody left to tell.
        let _ = std::io::stderr().write_all(text(&looks.on(&std::io::stderr())).as_bytes());
        return Ok(());
    };
    let style = match to.is_standard() {
        true => looks.on(&std::io::stdout()),
        false => looks.in_a_file(),
    };
    to.put(text(&style).as_bytes())
}

/// Does each of these, whatever became of those before: what cannot be written must not cost what
/// can. Errors behind the first are said here.
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
