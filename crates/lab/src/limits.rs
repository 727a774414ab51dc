//! A machine's floors and ceilings: what the smallest things cost at least, and how many bytes move
//! at most.
//!
//! A limit is a line in its group's table with the function that measures it; limits that share a
//! set-up share a file, and a file is a line in [`GROUPS`]. Help, lists, the guide's table and the
//! tests come from these declarations. This module owns the order of a run and what is taken from an
//! earlier one; where that is kept is the business of [`kept`].
//!
//! The one invariant: a figure is the median of many short batches, each long against the clock and
//! short against whatever else the machine does, so that an interrupt spoils one of them and not the
//! figure. What cannot be measured is skipped with its reason, and never a number.

mod calls;
mod channels;
mod cpus;
pub mod kept;
mod memory;
mod page_cache;
mod pages;
mod rings;
pub(crate) mod room;
mod sampling;
mod starts;
pub mod storage;
mod wakes;

use std::io;

use iotomy_record::{Limit, Limits, Volume};
use iotomy_sys::errno::said;

use storage::Folder;

/// What a limit is counted in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// Of a floor.
    Ns,
    /// Of a ceiling.
    BytesPerSecond,
}

impl Unit {
    /// As the record has it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Ns => "ns",
            Self::BytesPerSecond => "bytes/s",
        }
    }
}

/// What has a limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// The machine with its kernel.
    Machine,
    /// A file system on it.
    FileSystem,
}

/// A limit that can be measured.
#[derive(Debug)]
pub struct Declaration {
    /// Its name, unique among all.
    pub name: &'static str,
    /// What it is counted in.
    pub unit: Unit,
    /// What it is of.
    pub scope: Scope,
    /// What it is, in a few words.
    pub summary: &'static str,
    /// What is done and what is counted. A change of it makes the values kept so far worthless.
    pub method: &'static str,
    /// Where the calls it makes are described.
    pub man: &'static [&'static str],
    /// Measures it, in some tenths of a second.
    measure: fn(&Context<'_>) -> Result<Figure, Skip>,
}

/// Limits of one kind.
#[derive(Debug)]
pub struct Group {
    /// What they have in common.
    pub name: &'static str,
    /// In the order to measure them.
    pub limits: &'static [Declaration],
}

/// Every limit there is.
pub static GROUPS: &[Group] = &[
    Group { name: "calls", limits: calls::LIMITS },
    Group { name: "rings", limits: rings::LIMITS },
    Group { name: "pages", limits: pages::LIMITS },
    Group { name: "memory", limits: memory::LIMITS },
    Group { name: "page cache", limits: page_cache::LIMITS },
    Group { name: "channels", limits: channels::LIMITS },
    Group { name: "wake-ups", limits: wakes::LIMITS },
    Group { name: "starts", limits: starts::LIMITS },
    Group { name: "storage", limits: storage::LIMITS },
];

/// Every limit, in order.
pub fn declarations() -> impl Iterator<Item = &'static Declaration> {
    GROUPS.iter().flat_map(|group| group.limits)
}

/// The limit called `name`.
pub fn declaration(name: &str) -> Option<&'static Declaration> {
    declarations().find(|declaration| declaration.name == name)
}

/// What a measurement may depend on.
#[derive(Debug)]
struct Context<'a> {
    folder: Option<&'a Folder>,
}

/// What was measured.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Figure {
    value: f64,
    spread: f64,
}

/// Why something was not measured.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Skip(pub String);

impl Skip {
    /// A refusal by the kernel: `io_uring_setup: EPERM, operation not permitted`.
    pub fn refused(call: &str, error: impl Into<io::Error>) -> Self {
        Self(format!("{call}: {}", said(&error.into())))
    }
}

/// What is to be measured.
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
    /// What was skipped before is tried again: the reason may be gone.
    pub fn run(
        &self,
        kept: Option<&Limits>,
        started: &str,
        progress: &mut dyn FnMut(Progress),
    ) -> Vec<Limit> {
        let items = self.items();
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
    fn items(&self) -> Vec<Item<'_>> {
        let asked = |declaration: &Declaration| {
            self.only.is_empty() || self.only.iter().any(|one| one.name == declaration.name)
        };
        let of = |scope| declarations().filter(move |d| d.scope == scope && asked(d));
        let of_machine = of(Scope::Machine).map(|declaration| Item { declaration, folder: None });
        let of_folders = self.folders.iter().flat_map(|folder| {
            of(Scope::FileSystem).map(move |declaration| Item { declaration, folder: Some(folder) })
        });
        of_machine.chain(of_folders).collect()
    }
}

/// A limit of the machine or of one of the file systems.
struct Item<'a> {
    declaration: &'static Declaration,
    folder: Option<&'a Folder>,
}

impl Item<'_> {
    fn volume(&self) -> Option<Volume> {
        self.folder.map(|folder| folder.volume().clone())
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
        let outcome = (declaration.measure)(&Context { folder: self.folder });
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

#[cfg(test)]
mod tests;
