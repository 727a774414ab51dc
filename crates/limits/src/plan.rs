//! A run: which limits are measured, and which are reused from an earlier run.

use iotomy_host::Skip;
use iotomy_host::folder::Folder;
use iotomy_record::{Limit, Limits, Volume};

use crate::limit::{Context, LimitDeclaration, Scope};
use crate::registry::declarations;
use crate::storage_under_test::Storage;

/// The plan of a run.
#[derive(Debug, Default)]
pub struct LimitsPlan {
    /// The requested limits; empty for all.
    pub only: Vec<&'static LimitDeclaration>,
    /// The file systems to measure; if empty, no limit of a file system is measured.
    pub folders: Vec<Folder>,
}

/// The progress of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    /// Limits that are done.
    pub done: usize,
    /// All limits.
    pub all: usize,
    /// The limit about to be measured.
    pub name: &'static str,
}

impl LimitsPlan {
    /// Takes the requested limits from `kept` where it has them and measures the rest, calling
    /// `progress` before each measurement. `started` is when the run began.
    ///
    /// Limits that were skipped before are tried again: the reason may be gone.
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

    /// Returns the requested limits: those of the machine, then those of each file system.
    fn items<'a>(&self, storages: &'a [Storage<'a>]) -> Vec<Item<'a>> {
        let asked = |declaration: &LimitDeclaration| {
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
    declaration: &'static LimitDeclaration,
    storage: Option<&'a Storage<'a>>,
}

impl Item<'_> {
    fn volume(&self) -> Option<Volume> {
        self.storage.map(|storage| storage.folder.volume().clone())
    }

    /// Returns the value of an earlier run, if there is one.
    fn kept_in(&self, kept: &Limits) -> Option<Limit> {
        let volume = self.volume();
        let id = volume.as_ref().map(|volume| &volume.id);
        let same = |limit: &&Limit| {
            limit.name == self.declaration.name
                && limit.volume.as_ref().map(|volume| &volume.id) == id
                && limit.value.is_some()
        };
        let found = kept.limits.iter().find(same)?.clone();
        // The earlier run may have reached the same file system by another path.
        Some(Limit { volume, ..found })
    }

    fn measure(&self, started: &str) -> Limit {
        let declaration = self.declaration;
        let outcome = (declaration.measure)(&Context { storage: self.storage });
        // Every reader of the record would reject such a value.
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
