//! A Chromium that opens one page and reports how long that took.

use std::fs::{self, File};
use std::path::Path;

use anyhow::{Context, Result};

use crate::child::{Signals, guarded};
use crate::report::chromium::{ALONE, OPTIONS, missing};
use crate::report::command::contents;

/// The attribute that the page sets on its root element when its script has finished, in ms.
const READY: &str = " data-ready=\"";

/// Returns the seconds from the start of opening the page until it is usable, or the reason why there is no browser.
pub(crate) fn ready(signals: &Signals, page: &Path, folder: &Path) -> Result<Result<f64, String>> {
    if let Some(missing) = missing(&[ALONE[0], "chromium"]).first() {
        return Ok(Err(format!("there is no {missing}; see `scripts/setup bench`")));
    }
    let profile = tempfile::tempdir_in(folder).context("cannot make a folder for the browser")?;
    let options = [
        format!("--user-data-dir={}", profile.path().join("profile").display()),
        "--dump-dom".to_owned(),
        format!("file://{}", page.display()),
    ];
    let words = ALONE.into_iter().chain(["chromium"]).chain(OPTIONS).map(str::to_owned);
    let words: Vec<String> = words.chain(options).collect();
    let dump = profile.path().join("dump");
    let mut errors = tempfile::tempfile().context("cannot make a temporary file")?;
    let mut command = guarded(&words, errors.try_clone().context("cannot share a file")?)?;
    command.env("HOME", profile.path()).env("TMPDIR", profile.path());
    command.stdout(File::create(&dump).context("cannot make a temporary file")?);
    let mut child = command.spawn().context("cannot start the browser")?;
    let status = signals.wait(&mut child)?;
    let text = fs::read(&dump).context("cannot read what the browser wrote")?;
    let text = String::from_utf8_lossy(&text);
    Ok(milliseconds(&text).map(|ms| ms / 1e3).ok_or_else(|| {
        let said = contents(&mut errors);
        let last = said.lines().last().unwrap_or("and said nothing").to_owned();
        format!("the page was not ready; chromium ended with {status}: {last}")
    }))
}

/// Returns the time that the page reports.
fn milliseconds(dump: &str) -> Option<f64> {
    let (_, rest) = dump.split_once(READY)?;
    rest.split_once('"')?.0.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_that_is_ready_says_when_it_was() {
        let page = r#"<html lang="en" data-theme="light" data-ready="321"><head>"#;
        assert_eq!(milliseconds(page), Some(321.0));
        assert_eq!(milliseconds(r#"<html lang="en"><head>"#), None);
    }
}
