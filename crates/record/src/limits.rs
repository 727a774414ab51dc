//! `iotomy.limits/1`: a machine's floors and ceilings.

use serde::{Deserialize, Serialize};

use crate::Machine;

/// The least cost of small operations on a machine, and its highest throughput.
///
/// A measured limit has a `value` and a `spread`, a skipped one only a reason: a 0 never means
/// "unknown".
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Limits {
    /// [`Limits::SCHEMA`].
    pub schema: String,
    /// When the run began, RFC 3339.
    pub started: String,
    /// The machine that was measured.
    pub machine: Machine,
    /// In the order of the request.
    pub limits: Vec<Limit>,
}

impl Limits {
    /// The record's kind and version.
    pub const SCHEMA: &'static str = "iotomy.limits/1";

    /// The limit called `name` of the machine itself, if it was measured.
    pub fn of_machine(&self, name: &str) -> Option<&Limit> {
        let named = |limit: &&Limit| limit.name == name && limit.volume.is_none();
        self.limits.iter().find(named).filter(|limit| limit.value.is_some())
    }
}

/// One floor or ceiling.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Limit {
    /// Its name, unique among those of the machine, and among those of a volume.
    pub name: String,
    /// `ns` of a floor, `bytes/s` of a ceiling.
    pub unit: String,
    /// The median, in the unit; above 0. `None` when it was skipped.
    pub value: Option<f64>,
    /// The distance between the quartiles, in the unit. `None` when it was skipped.
    pub spread: Option<f64>,
    /// The method: what is done, and what is counted.
    pub method: String,
    /// Why it was not measured.
    pub skipped: Option<String>,
    /// When it was measured, RFC 3339: before [`Limits::started`] for one that was kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub measured: Option<String>,
    /// The file system it belongs to; `None` for a limit of the machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub volume: Option<Volume>,
}

/// A file system, as a limit of it names it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Volume {
    /// The directory it was measured in.
    pub path: String,
    /// The kind of file system, as `ext4`.
    pub file_system: String,
    /// Its identity among others of its kind on this machine.
    pub id: String,
}
