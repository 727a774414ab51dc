//! The results of a bench: printed, and stored in the directory of the run as tables and a raw
//! record.

use std::fs;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result};
use iotomy_record::store::OutputFile;

use crate::conditions::Conditions;
use crate::options::Options;
use crate::record::Sweep;

const NOTES: &str = "\n## Notes\n\nWhat to make of it is in [notes.md](notes.md).\n";

/// The results of the bench.
#[derive(Debug)]
pub struct Results {
    /// Its folder in that of the run.
    pub folder: &'static str,
    /// The heading of its tables.
    pub title: &'static str,
    /// Everything a reader wants, as text that is also Markdown.
    pub text: String,
    /// How it was measured.
    pub method: String,
    /// Every sample, and what was judged.
    pub record: Sweep,
    /// Whether the record has no line breaks: where samples are many it is half as long.
    pub is_on_one_line: bool,
}

impl Results {
    /// Prints it, and keeps it when it is the whole of the bench, or wherever it was asked to. The folder
    /// is returned.
    ///
    /// # Errors
    /// When it cannot be kept whole.
    pub fn publish(
        &self,
        options: &Options,
        conditions: &Conditions,
        is_whole: bool,
    ) -> Result<Option<PathBuf>> {
        print!("{}", self.text);
        let Some(below) = options.below(is_whole) else { return Ok(None) };
        let folder = conditions.folder(&below).join(self.folder);
        fs::create_dir_all(&folder)
            .with_context(|| format!("cannot create the folder {}", folder.display()))?;
        let here = std::env::current_dir().context("cannot tell the current folder")?;
        // Written by hand, and kept: all else is written anew by every run.
        let notes = if folder.join("notes.md").exists() { NOTES } else { "" };
        let readme = format!("# {}\n\n{}{}{notes}", self.title, self.text, self.method);
        OutputFile::write(&folder.join("README.md"), &here, readme.as_bytes())?;
        let raw = folder.join("raw.json");
        if self.is_on_one_line {
            self.record.write_on_one_line(&raw)?;
        } else {
            self.record.write(&raw)?;
        }
        println!("\nkept in {}", folder.display());
        Ok(Some(folder))
    }

    /// The status to leave with: 1 when it was asked to check and missed a target.
    pub fn status(&self, options: &Options) -> ExitCode {
        let is_missed = self.record.claims.iter().any(|claim| {
            // An aim is no target, and what an article says is no failure of the bench.
            claim.verdict == "fails" && !claim.id.ends_with("-aim") && claim.is_target()
        });
        ExitCode::from(u8::from(options.check && is_missed))
    }
}
