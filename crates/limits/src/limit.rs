//! What a limit is: its declaration, and what its function is given and returns.

use iotomy_host::Skip;

use crate::storage_under_test::Storage;

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
    pub(crate) measure: fn(&Context<'_>) -> Result<Figure, Skip>,
}

/// What a measurement may depend on.
#[derive(Debug)]
pub(crate) struct Context<'a> {
    pub(crate) storage: Option<&'a Storage<'a>>,
}

/// What was measured.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Figure {
    pub(crate) value: f64,
    pub(crate) spread: f64,
}
