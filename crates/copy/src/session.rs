//! A copy in progress: what its steps share, and add to.

use std::sync::Arc;
use std::time::Duration;

use iotomy_movers::Moved;
use iotomy_record::CopyPart;

use crate::error::Result;
use crate::source::FileSystems;
use crate::{Account, CopyError, Detail, Options, Progress, Watcher};

/// The options of a copy, and its results so far.
pub(crate) struct CopySession<'a> {
    pub(crate) options: &'a Options,
    pub(crate) systems: FileSystems,
    pub(crate) watcher: &'a mut dyn Watcher,
    pub(crate) progress: Arc<Progress>,
    pub(crate) account: Account,
}

impl<'a> CopySession<'a> {
    /// `has_more`: there may be several targets.
    pub(crate) fn new(options: &'a Options, watcher: &'a mut dyn Watcher, has_more: bool) -> Self {
        let has_parts = options.detail >= Detail::Parts;
        let account = Account {
            fsync: options.fsync.then_some(Duration::ZERO),
            contract: if has_parts { options.contract() } else { String::new() },
            ..Account::default()
        };
        let progress = Progress::new(has_more);
        Self { options, systems: FileSystems::default(), watcher, progress, account }
    }

    /// Notes and tells an error.
    pub(crate) fn failed(&mut self, error: CopyError) {
        self.watcher.failed(&error);
        if let Some(part) = self.account.parts.last_mut().filter(|part| part.mover.is_none()) {
            part.error.get_or_insert_with(|| error.to_string());
        }
        self.account.errors.push(error);
    }

    /// Notes the result of comparing a part.
    pub(crate) fn verified<T>(&mut self, outcome: Result<T>) -> Result<T> {
        let before = self.account.verified.unwrap_or(true);
        self.account.verified = Some(before && outcome.is_ok());
        outcome
    }

    pub(crate) fn synced(&mut self, took: Duration) {
        *self.account.fsync.get_or_insert_default() += took;
    }

    /// Notes that a source has been carried, a mover has failed, or every mover was refused.
    pub(crate) fn carried(&mut self, moved: Moved, part: Option<CopyPart>) {
        self.account.moved = self.account.moved + moved;
        if let Some(part) = part {
            self.watcher.carried(&part);
            self.account.parts.push(part);
        }
    }
}
