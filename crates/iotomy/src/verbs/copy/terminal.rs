//! What `iotomy copy` prints while it runs: progress, errors, and the text of `--explain`, piece by piece as it becomes
//! known; a saved record prints the same.

use std::sync::Arc;

use anyhow::anyhow;
use iotomy_copy::{CopyError, Progress, Watcher};
use iotomy_record::store::{OutputFile, StoreError};
use iotomy_record::{CopyPart, CopyRun};
use iotomy_report::{Style, copy_end, copy_outcome, copy_plan};

use super::options::CopyArgs;
use super::progress::Meter;
use crate::errors::print_error;
use crate::screen::OutputStyle;

/// Standard error, as the copy is shown there.
pub(super) struct Terminal {
    pub(super) meter: Meter,
    explains: bool,
    /// Whether all of the explanation was written: a failure costs the status, and no copy.
    explained: Result<(), StoreError>,
}

impl Terminal {
    pub(super) fn new(args: &CopyArgs) -> Self {
        Self { meter: Meter::new(args.progress), explains: args.explain, explained: Ok(()) }
    }

    /// Explains the whole copy.
    ///
    /// # Errors
    /// The first piece of the explanation that was not written.
    pub(super) fn ended(mut self, record: &CopyRun) -> Result<(), StoreError> {
        self.explain(|style| copy_end(record, style));
        self.explained
    }

    fn explain(&mut self, text: impl FnOnce(&Style) -> String) {
        if !self.explains {
            return;
        }
        let style = OutputStyle::default().on(&std::io::stderr());
        let written = OutputFile::standard_error().put(text(&style).as_bytes());
        if self.explained.is_ok() {
            self.explained = written;
        }
    }
}

impl Watcher for Terminal {
    fn planned(&mut self, contract: &str, part: &CopyPart) {
        self.explain(|style| copy_plan(contract, part, style));
    }

    fn begins(&mut self, progress: &Arc<Progress>, is_on_terminal: &dyn Fn() -> bool) {
        self.meter.begin(progress, is_on_terminal);
    }

    fn carried(&mut self, part: &CopyPart) {
        self.explain(|style| copy_outcome(part, style));
    }

    fn failed(&mut self, error: &CopyError) {
        self.meter.clear();
        print_error(&anyhow!("{error}"));
    }
}
