//! A run: which limits are measured, and what is taken from an earlier run.

use iotomy_host::Skip;
use iotomy_host::folder::Folder;
use iotomy_record::{Limit, Limits, Volume};

use crate::limit::{Context, Declaration, Scope};
use crate::registry::declarations;
use crate::storage_under_test::Storage;

/// The limits to measure.
#[derive(Debug, Default)]
pub struct Plan {
    /// The limits asked for; empty for all.
    pub only: Vec<&'static Declaration>,
    /// The file systems to measure; without any, no limit of a file system is.
    pub folders: Vec<Folder>,
}

/// How far a run has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    /// Limits done with.
    pub done: usize,
    /// Of how many.
    pub all: usize,
    /// The one about to be measured.
    pub name: &'static str,
}

impl Plan {
    /// Takes what `kept` has of the limits asked for and measures the rest, telling `progress` before
    /// each measurement. `started` is when the run began.
    ///
    /// A limit that was skipped before is tried again: the reason may be gone.
    pub fn run(
        &self,
        kept: Option<&Limits>,
        started: &str,
        progress: &mut dyn FnMut(Progress),
    ) -> Vec<Limit> {
        let storages: Vec<Storage<'_>> = self.folders.iter().map(Storage::new).collect();
        let items = self.items(&storages);
        let known = |item: &Item<'_>| kept.and_then(|kept| item.kept_in(kept));
        let all = items.iter().filter(|item| known(item).is_none()).count();
        let mut done = 0;
        let take = |item: &Item<'_>| {
            known(item).unwrap_or_else(|| {
                progress(Progress { done, all, name: item.declaration.name });
                done += 1;
                item.measure(started)
            })
        };
        items.iter().map(take).collect()
    }

    /// The limits asked for: those of the machine, then those of each file system.
    fn items<'a>(&self, storages: &'a [Storage<'a>]) -> Vec<Item<'a>> {
        let asked = |declaration: &Declaration| {
            self.only.is_empty() || self.only.iter().any(|one| one.name == declaration.name)
        };
        let of = |scope| declarations().filter(move |d| d.scope == scope && asked(d));
        let of_machine = of(Scope::Machine).map(|declaration| Item { declaration, storage: None });
        let of_folders = storages.iter().flat_map(|storage| {
            of(Scope::FileSystem)
                .map(move |declaration| Item { declaration, storage: Some(storage) })
        });
        of_machine.chain(of_folders).collect()
    }
}

/// A limit of the machine or of one of the file systems.
struct Item<'a> {
    declaration: &'static Declaration,
    storage: Option<&'a Storage<'a>>,
}

impl Item<'_> {
    fn volume(&self) -> Option<Volume> {
        self.storage.map(|storage| storage.folder.volume().clone())
    }

    /// The value of an earlier run, if there is one.
    fn kept_in(&self, kept: &Limits) -> Option<Limit> {
        let volume = self.volume();
        let id = volume.as_ref().map(|volume| &volume.id);
        let same = |limit: &&Limit| {
            limit.name == self.declaration.name
                && limit.volume.as_ref().map(|volume| &volume.id) == id
                && limit.value.is_some()
        };
        let found = kept.limits.iter().find(same)?.clone();
        // The same file system may have been reached by another path then.
        Some(Limit { volume, ..found })
    }

    fn measure(&self, started: &str) -> Limit {
        let declaration = self.declaration;
        let outcome = (declaration.measure)(&Context { storage: self.storage });
        // Such a figure would be refused by every reader of the record.
        let outcome = outcome.and_then(|figure| match figure.value.is_finite() {
            true if figure.value > 0.0 && figure.spread.is_finite() => Ok(figure),
            _ => Err(Skip(format!("invalid measurement {}", figure.value))),
        });
        Limit {
            name: declaration.name.to_owned(),
            unit: declaration.unit.name().to_owned(),
            value: outcome.as_ref().ok().map(|figure| figure.value),
            spread: outcome.as_ref().ok().map(|figure| figure.spread),
            method: declaration.method.to_owned(),
            skipped: outcome.err().map(|skip| skip.0),
            measured: Some(started.to_owned()),
            volume: self.volume(),
        }
    }
}
