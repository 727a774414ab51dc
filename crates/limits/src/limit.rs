//! A limit: its declaration, and the input and output of its measuring function.

use iotomy_host::Skip;

use crate::storage_under_test::Storage;

/// The unit of a limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// For a floor.
    Ns,
    /// For a ceiling.
    BytesPerSecond,
}

impl Unit {
    /// The name in the record.
    pub fn name(self) -> &'static str {
        match self {
            Self::Ns => "ns",
            Self::BytesPerSecond => "bytes/s",
        }
    }
}

/// What a limit belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// The machine with its kernel.
    Machine,
    /// A file system on it.
    FileSystem,
}

/// A limit that can be measured.
#[derive(Debug)]
pub struct LimitDeclaration {
    /// Its name, unique among all.
    pub name: &'static str,
    /// Its unit.
    pub unit: Unit,
    /// What it belongs to.
    pub scope: Scope,
    /// A summary in a few words.
    pub summary: &'static str,
    /// How it is measured and counted. A change of this text invalidates the saved values.
    pub method: &'static str,
    /// The man pages of the calls it makes.
    pub man: &'static [&'static str],
    /// Measures it, in some tenths of a second.
    pub(crate) measure: fn(&Context<'_>) -> Result<Figure, Skip>,
}

/// The environment that a measurement may depend on.
#[derive(Debug)]
pub(crate) struct Context<'a> {
    pub(crate) storage: Option<&'a Storage<'a>>,
}

/// The result of a measurement.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Figure {
    pub(crate) value: f64,
    pub(crate) spread: f64,
}
