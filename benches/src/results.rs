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
    /// The directory of the bench within the run's directory.
    pub folder: &'static str,
    /// The heading of its tables.
    pub title: &'static str,
    /// The complete results, as text that is also Markdown.
    pub text: String,
    /// The description of the method.
    pub method: String,
    /// Every sample and every verdict.
    pub record: Sweep,
    /// Whether the record has no line breaks: with many samples, this halves its size.
    pub is_on_one_line: bool,
}

impl Results {
    /// Prints the results, and stores them if they are of the whole bench or if storing was requested. Returns the
    /// directory.
    ///
    /// # Errors
    /// When the results cannot be stored completely.
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
        // Written by hand and preserved; every run rewrites all other files.
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

    /// Returns the exit status: 1 if a check was requested and a target was missed.
    pub fn status(&self, options: &Options) -> ExitCode {
        let is_missed = self.record.claims.iter().any(|claim| {
            // An aim is not a target, and a claim of an article is not a failure of the bench.
            claim.verdict == "fails" && !claim.id.ends_with("-aim") && claim.is_target()
        });
        ExitCode::from(u8::from(options.check && is_missed))
    }
}
