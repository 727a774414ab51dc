//! `iotomy.doctor/1`: what a machine supports. It is written, and never loaded.

use serde::Serialize;

use crate::Machine;

/// What a machine supports, found by trying.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct DoctorRun {
    /// [`DoctorRun::SCHEMA`].
    pub schema: &'static str,
    /// When the trials began, RFC 3339.
    pub started: String,
    /// Where they were made.
    pub machine: Machine,
    /// Group by group; the observers first, best first.
    #[serde(rename = "abilities")]
    pub checks: Vec<TriedCheck>,
}

/// A check that was tried: with a `detail` when it is ready, with `reason` and `remedy` when it is not.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TriedCheck {
    /// Its name.
    pub name: &'static str,
    /// Its group's.
    pub group: &'static str,
    /// The parts of iotomy that need it.
    pub purpose: &'static str,
    /// Whether it works.
    pub ready: bool,
    /// An amount or a method; may be empty.
    pub detail: Option<String>,
    /// The attempt and the kernel's error.
    pub reason: Option<String>,
    /// What to do about it.
    pub remedy: Option<String>,
}

impl DoctorRun {
    /// The record's kind and version.
    pub const SCHEMA: &'static str = "iotomy.doctor/1";

    /// The group of the observers.
    pub const OBSERVERS: &'static str = "observers";

    /// The observer that a trace uses by default: the first that is ready.
    pub fn observer(&self) -> Option<&str> {
        let is_usable = |tried: &&TriedCheck| tried.group == Self::OBSERVERS && tried.ready;
        self.checks.iter().find(is_usable).map(|tried| tried.name)
    }
}
