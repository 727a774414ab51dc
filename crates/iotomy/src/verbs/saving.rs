//! Saves records in the history: with `--save`, or by the configuration for every run.
//!
//! The one rule: the run is over by then. An error here is printed and changes nothing that the run
//! did. With `--save` the status reports it as well, as for any other output; a user who keeps all
//! runs does not have one of them fail for it.

use std::io::Write;
use std::path::Path;

use anyhow::{Result, anyhow};
use iotomy_history::{Filter, HistoryError, Identity, Pick, Store, set_aside, store_file};
use iotomy_record::store::RecordRef;

use crate::config::keeps_always;
use crate::errors::print_error;
use crate::screen::path_text;

/// The version that a record is kept with.
pub(super) const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Whether a run is kept; every verb that makes a record has this.
#[derive(Debug, Clone, Default, clap::Args)]
pub(crate) struct SaveArgs {
    /// Keep the record in the history, under NAME if given; see `iotomy history -h`
    #[arg(long, value_name = "NAME", num_args = 0..=1, require_equals = true, value_parser = run_name)]
    save: Option<Option<String>>,
}

/// A name that a run may have.
pub(super) fn run_name(text: &str) -> Result<String, String> {
    Store::check_name(text).map_err(|error| error.to_string())?;
    Ok(text.to_owned())
}

impl SaveArgs {
    /// Whether saving was requested for this run.
    pub(super) fn is_given(&self) -> bool {
        self.save.is_some()
    }

    /// The name that it is to be kept by.
    pub(super) fn name(&self) -> Option<&str> {
        self.save.as_ref().and_then(Option::as_deref)
    }

    /// Whether the run is to be saved: by request, or by configuration.
    pub(super) fn is_wanted(&self) -> bool {
        self.is_given()
            || keeps_always().unwrap_or_else(|error| {
                print_error(&error);
                false
            })
    }

    /// Saves the record of a run that [`SaveArgs::is_wanted`]; `false` if it was requested and
    /// failed, which is printed.
    pub(super) fn keep(&self, record: RecordRef<'_>, quiet: bool) -> bool {
        match self.kept(record) {
            Ok((id, namesakes)) if self.is_given() && !quiet => {
                let set = match self.name() {
                    Some(name) if namesakes > 1 => {
                        format!("; the baseline {name} now has {namesakes} sessions")
                    }
                    _ => String::new(),
                };
                // If standard error is closed, nothing can be reported.
                let _ = writeln!(std::io::stderr(), "iotomy: kept as run {id} of the history{set}");
            }
            Ok(_) => {}
            Err(error) => {
                print_error(&error.context("the run was not kept"));
                return !self.is_given();
            }
        }
        true
    }

    /// As [`SaveArgs::keep`], if the run is to be kept.
    pub(super) fn keep_if_wanted(&self, record: RecordRef<'_>, quiet: bool) -> bool {
        !self.is_wanted() || self.keep(record, quiet)
    }

    /// Its number, and how many runs of its kind have its name.
    fn kept(&self, record: RecordRef<'_>) -> Result<(u64, usize)> {
        let path = store_file().ok_or(HistoryError::NoPlace)?;
        keep_in(&path, |store| {
            let id = store.keep(record, self.name(), VERSION)?;
            let namesakes = match self.name() {
                Some(name) => {
                    let kind = store.find(&Pick::Number(id)).ok().map(|kept| kept.kind);
                    let filter = Filter { name: Some(name.to_owned()), kind, ..Filter::default() };
                    store.list(&filter).map_or(0, |runs| runs.len())
                }
                None => 0,
            };
            Ok((id, namesakes))
        })
    }
}

/// Saves something in the history, which is created if there is none. A damaged one is set aside
/// with a message, and a new one is created.
pub(super) fn keep_in<T>(path: &Path, keep: impl Fn(&mut Store) -> Result<T>) -> Result<T> {
    let kept = || {
        let mut store = Store::make(path)?;
        let done = keep(&mut store)?;
        store.close()?;
        Ok(done)
    };
    let opened = Identity::read(path);
    kept().or_else(|error: anyhow::Error| {
        let Some(HistoryError::Damaged { said, .. }) = error.downcast_ref() else {
            return Err(error);
        };
        if let Some(aside) = set_aside(path, opened)? {
            let aside = path_text(aside);
            print_error(&anyhow!(
                "the history was damaged ({said}) and is {aside} now; `sqlite3 {aside} .recover` \
                 prints what can be read of it, and starting a new history"
            ));
        }
        kept()
    })
}
