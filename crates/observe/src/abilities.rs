//! What this machine lets iotomy do, found by trying and never by a version.
//!
//! A group is a file and a line in [`GROUPS`]; an ability is a line in its group's table, with the
//! function that tries it. This module owns the tables and the words of an outcome; how a list
//! looks is for the command, and whether a command can do without is for the command too.
//!
//! The one invariant: a trial leaves nothing behind, neither a file, a mount, a process, a
//! program in the kernel nor a changed limit. What cannot be undone is done by a child that ends.

mod engines;
mod experiments;
mod files;
mod limits;
mod memory;
mod privilege;
mod processor;
mod watching;

use std::fmt;
use std::path::{Path, PathBuf};

use iotomy_sys::errno;
use iotomy_sys::probe::Refusal;

use crate::{OBSERVERS, Probe};

/// Something a part of iotomy needs.
#[derive(Debug)]
pub struct Ability {
    /// Its name, unique among all.
    pub name: &'static str,
    /// What in iotomy needs it.
    pub purpose: &'static str,
    /// Tries it, without effects that last.
    pub try_it: fn(&Context) -> Outcome,
}

/// Abilities of one kind.
#[derive(Debug)]
pub struct Group {
    /// What they have in common.
    pub name: &'static str,
    /// In the order to show them.
    pub abilities: &'static [Ability],
}

/// Every ability but the observers, which declare themselves in [`OBSERVERS`].
pub static GROUPS: &[Group] = &[
    Group { name: "watching", abilities: watching::ABILITIES },
    Group { name: "engines", abilities: engines::ABILITIES },
    Group { name: "files", abilities: files::ABILITIES },
    Group { name: "memory", abilities: memory::ABILITIES },
    Group { name: "limits", abilities: limits::ABILITIES },
    Group { name: "experiments", abilities: experiments::ABILITIES },
    Group { name: "processor", abilities: processor::ABILITIES },
];

/// The name of the group that [`OBSERVERS`] make.
pub const OBSERVER_GROUP: &str = "observers";

/// What a trial may depend on.
#[derive(Debug, Clone)]
pub struct Context {
    /// The folder whose file system is tried.
    pub folder: PathBuf,
}

impl Default for Context {
    /// The current folder.
    fn default() -> Self {
        // Its name is for messages; where it has none (it was removed) the short one does.
        Self { folder: std::env::current_dir().unwrap_or_else(|_| PathBuf::from(".")) }
    }
}

/// What came of a trial.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// It works; the text says how much or how, and may be empty.
    Ready(String),
    /// It does not.
    Missing {
        /// What was tried and what the kernel said.
        reason: String,
        /// What would help.
        remedy: String,
    },
}

impl Outcome {
    fn ready(detail: impl Into<String>) -> Self {
        Self::Ready(detail.into())
    }

    fn missing(reason: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self::Missing { reason: reason.into(), remedy: remedy.into() }
    }

    fn refused(refusal: &Refusal, remedy: impl Into<String>) -> Self {
        Self::missing(said(refusal), remedy)
    }

    /// Whether it works.
    pub fn is_ready(&self) -> bool {
        matches!(self, Self::Ready(_))
    }
}

impl From<Probe> for Outcome {
    fn from(probe: Probe) -> Self {
        match probe {
            Probe::Ready => Self::Ready(String::new()),
            Probe::Unsupported { reason, remedy } => Self::Missing { reason, remedy },
        }
    }
}

/// An ability that was tried.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tried {
    /// Its name.
    pub name: &'static str,
    /// Its group's.
    pub group: &'static str,
    /// What in iotomy needs it.
    pub purpose: &'static str,
    /// What came of it.
    pub outcome: Outcome,
}

/// Tries everything: the observers first, then the groups in their order.
pub fn try_all(context: &Context) -> Vec<Tried> {
    let observers = OBSERVERS.iter().map(|observer| Tried {
        name: observer.declaration().name,
        group: OBSERVER_GROUP,
        purpose: "trace",
        outcome: with_detail(observer.probe().into(), observer.declaration().summary),
    });
    let others = GROUPS.iter().flat_map(|group| {
        group.abilities.iter().map(|ability| Tried {
            name: ability.name,
            group: group.name,
            purpose: ability.purpose,
            outcome: (ability.try_it)(context),
        })
    });
    observers.chain(others).collect()
}

/// A ready outcome without a detail gets this one.
fn with_detail(outcome: Outcome, detail: &str) -> Outcome {
    match outcome {
        Outcome::Ready(none) if none.is_empty() => Outcome::ready(detail),
        other => other,
    }
}

/// `io_uring_setup: EPERM, operation not permitted`.
fn said(refusal: &Refusal) -> String {
    format!("{}: {}", refusal.call, errno::said(&refusal.source))
}

/// The number a file of `/proc` or `/sys` holds.
fn number_in(path: impl AsRef<Path>) -> Option<u64> {
    std::fs::read_to_string(path).ok()?.trim().parse().ok()
}

/// A number with its thousands separated.
struct Grouped(u64);

impl fmt::Display for Grouped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digits = self.0.to_string();
        for (at, digit) in digits.chars().enumerate() {
            if at > 0 && (digits.len() - at).is_multiple_of(3) {
                f.write_str(",")?;
            }
            write!(f, "{digit}")?;
        }
        Ok(())
    }
}

/// A size in the largest binary unit that leaves it a whole number.
struct Size(u64);

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let units = [(30, "GiB"), (20, "MiB"), (10, "KiB")];
        match units.iter().find(|(bits, _)| self.0 != 0 && self.0.trailing_zeros() >= *bits) {
            Some((bits, unit)) => write!(f, "{} {unit}", Grouped(self.0 >> bits)),
            None => write!(f, "{} bytes", Grouped(self.0)),
        }
    }
}

#[cfg(test)]
#[path = "abilities/tests.rs"]
mod tests;
