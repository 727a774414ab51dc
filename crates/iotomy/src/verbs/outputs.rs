//! The files a run is to write, looked at before it: what cannot be written is told while nothing has
//! been run yet.

use std::io::Write;
use std::os::fd::AsFd;
use std::path::Path;

use anyhow::{Result, bail};
use iotomy_record::printable;
use iotomy_record::store::{OutputFile, StoreError, same_output};
use iotomy_report::Style;
use iotomy_sys::startup::was_closed;

use crate::screen::Looks;

/// Refuses outputs that cannot be written, and two that lead to one place. Each has the option that
/// names it; one that was not asked for is no output.
///
/// # Errors
/// The first of them, by its option.
pub(super) fn check(outputs: &[(&str, Option<&Path>)], here: &Path) -> Result<()> {
    let wanted: Vec<(&str, &Path)> =
        outputs.iter().filter_map(|(option, path)| Some((*option, (*path)?))).collect();
    for (at, (option, path)) in wanted.iter().enumerate() {
        for (earlier, other) in &wanted[..at] {
            if same_output(path, other, here) {
                let path = printable(&path.to_string_lossy(), true);
                bail!("{earlier} and {option} both lead to {path}; give them two files");
            }
        }
    }
    for (option, path) in wanted {
        if path == Path::new("-") && was_closed(std::io::stdout().as_fd()) {
            bail!("cannot write {option} to standard output: it is closed; name a file");
        }
        OutputFile::check(path, here)?;
    }
    Ok(())
}

/// Writes the report of a command's run: to the file that was asked for, or to standard error.
pub(super) fn report(
    to: Option<&Path>,
    here: &Path,
    looks: Looks,
    text: impl FnOnce(&Style) -> String,
) -> Result<(), StoreError> {
    let Some(path) = to else {
        // With standard error gone there is nobody left to tell.
        let _ = std::io::stderr().write_all(text(&looks.on(&std::io::stderr())).as_bytes());
        return Ok(());
    };
    let style = match path == Path::new("-") {
        true => looks.on(&std::io::stdout()),
        false => looks.in_a_file(),
    };
    OutputFile::write(path, here, text(&style).as_bytes())
}

/// Does each of these, whatever became of those before: what cannot be written must not cost what
/// can.
///
/// # Errors
/// The first there was.
pub(super) fn all(each: impl IntoIterator<Item = Result<()>>) -> Result<()> {
    let mut first = Ok(());
    for one in each {
        first = first.and(one);
    }
    first
}
