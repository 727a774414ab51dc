//! The records that the words of a command line mean: files, or runs of the history.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use anyhow::{Context, Result, bail};
use iotomy_history::{Filter, HistoryError, Pick, Store, store_file};
use iotomy_record::store::{self, Record};
use iotomy_record::{lossless, printable};

/// A record, before it is read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    /// A file; `-` is standard input.
    File(OsString),
    /// A run of the history, by its number.
    Run(u64),
}

impl Source {
    /// Its name in messages.
    pub fn name(&self) -> String {
        match self {
            Self::File(word) if word == "-" => "standard input".to_owned(),
            Self::File(word) => printable(&lossless(word.as_bytes()), true),
            Self::Run(id) => format!("run {id} of the history"),
        }
    }

    /// Reads the record, and its bytes.
    ///
    /// # Errors
    /// It cannot be read, or is not a whole record: the error names it and the place.
    pub fn load(&self) -> Result<(Record, Vec<u8>)> {
        match self {
            Self::File(word) => Ok(store::load_with_bytes(word)?),
            Self::Run(id) => {
                let bytes = history()?.json(*id)?;
                let record = store::parse_record(&bytes)
                    .with_context(|| format!("cannot read {}", self.name()))?;
                Ok((record, bytes))
            }
        }
    }
}

/// The records that a word means: those of a file, of a run of the history by its number or `last`, or of all runs of a
/// name there. A file goes before a name.
///
/// # Errors
/// There is neither.
pub fn sources(word: &OsStr) -> Result<Vec<Source>> {
    let bytes = word.as_bytes();
    if bytes.is_empty() {
        bail!("cannot read a record without a name: give a file, or a run of the history");
    }
    // What looks like a path is one, and its error is that of a file.
    let is_path = word == "-" || bytes.contains(&b'/') || bytes.ends_with(b".json");
    let Some(name) = word.to_str().filter(|_| !is_path && !Path::new(word).exists()) else {
        return Ok(vec![Source::File(word.to_owned())]);
    };
    kept(name).with_context(|| {
        format!("cannot read {}: there is no such file, and no such run", printable(name, true))
    })
}

fn kept(word: &str) -> Result<Vec<Source>> {
    let history = history()?;
    let pick = Pick::from_text(word);
    let newest = history.find(&pick)?;
    let Pick::Name(name) = pick else { return Ok(vec![Source::Run(newest.id)]) };
    let runs = history.list(&Filter { name: Some(name), ..Filter::default() })?;
    Ok(runs.into_iter().map(|run| Source::Run(run.id)).collect())
}

fn history() -> Result<Store> {
    let path = store_file().ok_or(HistoryError::NoPlace)?;
    Ok(Store::open(&path)?.ok_or(HistoryError::Nothing { path })?)
}
