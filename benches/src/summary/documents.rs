//! The documents with figures of the benches: the page of each run, the verdicts on its benches' pages, and the tables
//! of the guide, between marks of this form, each on a separate line:
//!
//! ```text
//! <!-- bench: copy -->
//! <!-- /bench -->
//! ```
//!
//! The name is that of a bench, or `targets` for the verdicts on all targets. The figures are those of the newest run
//! of each bench.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use iotomy_record::Claim;
use iotomy_record::store::OutputFile;

use crate::summary::kept::{Run, newest, runs};
use crate::summary::page::{counts, page};
use crate::summary::verdicts::judged_anew;

const OPEN: &str = "<!-- bench: ";
const CLOSE: &str = "<!-- /bench -->";

/// A document with its current and its expected text.
pub struct Document {
    /// Its path.
    pub path: PathBuf,
    is: String,
    should_be: String,
}

impl Document {
    /// Returns whether the document matches the records.
    pub fn is_current(&self) -> bool {
        self.is == self.should_be
    }

    /// Returns the first line that differs, and its expected text.
    pub fn difference(&self) -> String {
        let (is, should_be) = (self.is.lines(), self.should_be.lines());
        let pairs = is.map(Some).chain([None]).zip(should_be.map(Some).chain([None]));
        let found = pairs.enumerate().find(|(_, (is, should_be))| is != should_be);
        let Some((at, (is, should_be))) = found else { return "a line break".to_owned() };
        let line = |line: Option<&str>| line.unwrap_or("the end").to_owned();
        format!("line {}: {}\n  by the records: {}", at + 1, line(is), line(should_be))
    }

    /// Writes the expected text.
    ///
    /// # Errors
    /// When the document cannot be written completely.
    pub fn write(&self) -> Result<()> {
        let here = std::env::current_dir().context("cannot tell the current folder")?;
        OutputFile::write(&self.path, &here, self.should_be.as_bytes())?;
        Ok(())
    }
}

/// Returns the pages of the runs below `results`, and their benches' pages with current target tables.
///
/// # Errors
/// When a record or a page cannot be read.
pub fn pages(results: &Path) -> Result<Vec<Document>> {
    let mut documents = Vec::new();
    for run in runs(results)? {
        let path = run.path.join("README.md");
        let is = fs::read_to_string(&path).unwrap_or_default();
        documents.push(Document { path, is, should_be: page(&run) });
        for kept in &run.benches {
            let path = run.path.join(kept.bench.name).join("README.md");
            let Ok(is) = fs::read_to_string(&path) else { continue };
            let claims: Vec<&Claim> = kept.raws.iter().flat_map(|raw| &raw.sweep.claims).collect();
            let should_be = judged_anew(&is, &kept.rows(), &claims);
            documents.push(Document { path, is, should_be });
        }
    }
    Ok(documents)
}

/// Returns the pages of docs/ in the project's directory `root`, which also contains the results.
///
/// # Errors
/// When a mark names no table or is not closed, or when there is no run of a bench.
pub fn guide(root: &Path) -> Result<Vec<Document>> {
    let mut paths = Vec::new();
    markdown_below(&root.join("docs"), &mut paths)?;
    let runs = runs(&root.join("results"))?;
    let mut documents = Vec::new();
    for path in paths {
        let is =
            fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
        if !is.contains(OPEN) {
            continue;
        }
        let depth = path.strip_prefix(root).unwrap_or(&path).components().count() - 1;
        let up = "../".repeat(depth);
        let should_be = filled(&is, |name| table(&runs, name, &up))
            .with_context(|| format!("cannot write the tables of {}", path.display()))?;
        documents.push(Document { path, is, should_be });
    }
    Ok(documents)
}

fn markdown_below(folder: &Path, paths: &mut Vec<PathBuf>) -> Result<()> {
    let place = || format!("cannot read the folder {}", folder.display());
    let mut entries: Vec<PathBuf> = Vec::new();
    for entry in fs::read_dir(folder).with_context(place)? {
        entries.push(entry.with_context(place)?.path());
    }
    entries.sort();
    for path in entries {
        if path.is_dir() {
            markdown_below(&path, paths)?;
        } else if path.extension().is_some_and(|ending| ending == "md") {
            paths.push(path);
        }
    }
    Ok(())
}

/// Returns the text with the content between its marks regenerated.
fn filled(text: &str, table: impl Fn(&str) -> Result<String>) -> Result<String> {
    let mut new = String::new();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        new += line;
        new.push('\n');
        let Some(rest) = line.strip_prefix(OPEN) else { continue };
        let name =
            rest.strip_suffix(" -->").with_context(|| format!("the mark {line} has no end"))?;
        if !lines.any(|line| line == CLOSE) {
            bail!("after {line} there is no {CLOSE}");
        }
        new += &format!("{}\n{CLOSE}\n", table(name)?.trim_end());
    }
    Ok(new)
}

fn table(runs: &[Run], name: &str, up: &str) -> Result<String> {
    let newest = newest(runs)?;
    let folder = |run: &Run| format!("{up}results/{}/", run.name);
    if name == "targets" {
        let benches = newest.into_iter().map(|(run, kept)| (kept, folder(run)));
        return Ok(format!(
            "Targets of every bench, in its newest run (`make bench` repeats them):\n\n{}",
            counts(benches)
        ));
    }
    let found = newest.into_iter().find(|(_, kept)| kept.bench.name == name);
    let (run, kept) = found.with_context(|| format!("there is no bench {name}"))?;
    let block =
        kept.bench.block.with_context(|| format!("the bench {name} has no table for this"))?;
    let link = format!("[results]({}{name}/README.md)", folder(run));
    Ok(block(&kept.raws, &kept.rows(), &link))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "before\n<!-- bench: copy -->\nold\n\nold\n<!-- /bench -->\nafter\n";

    #[test]
    fn what_is_between_marks_is_made_anew_and_the_rest_is_kept() {
        let new = filled(TEXT, |name| Ok(format!("table of {name}\n"))).unwrap();
        assert_eq!(new, "before\n<!-- bench: copy -->\ntable of copy\n<!-- /bench -->\nafter\n");
        assert_eq!(filled(&new, |name| Ok(format!("table of {name}\n"))).unwrap(), new);
    }

    #[test]
    fn a_mark_that_is_not_closed_is_an_error() {
        let open = TEXT.replace("<!-- /bench -->\n", "");
        let error = filled(&open, |_| Ok(String::new())).unwrap_err();
        assert_eq!(error.to_string(), "after <!-- bench: copy --> there is no <!-- /bench -->");
    }

    #[test]
    fn the_first_line_that_differs_is_told() {
        let document = |is: &str, should_be: &str| Document {
            path: PathBuf::new(),
            is: is.to_owned(),
            should_be: should_be.to_owned(),
        };
        let found = document("a\nb\n", "a\nc\n");
        assert!(!found.is_current());
        assert_eq!(found.difference(), "line 2: b\n  by the records: c");
        assert_eq!(document("", "a\n").difference(), "line 1: the end\n  by the records: a");
        assert!(document("a\n", "a\n").is_current());
    }
}
