//! The parts of a limit: its declaration, and the input and result of its function.

use iotomy_host::Skip;

use crate::storage_under_test::Storage;

/// The unit of a limit.
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

/// The scope of a limit: the machine or a place.
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
    /// Its unit.
    pub unit: Unit,
    /// Its scope.
    pub scope: Scope,
    /// A summary of a few words.
    pub summary: &'static str,
    /// The method: what is done and what is counted. A change of this text invalidates the saved
    /// values.
    pub method: &'static str,
    /// Where the calls it makes are described.
    pub man: &'static [&'static str],
    /// Measures it, in some tenths of a second.
    pub(crate) measure: fn(&Context<'_>) -> Result<Figure, Skip>,
}

/// The facts a measurement may depend on.
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
