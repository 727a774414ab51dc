//! `iotomy.copy/1`: the copied files, the movers, and the traffic of the bytes.

use serde::{Deserialize, Serialize};

use crate::{Finding, Machine};

/// One run of `iotomy copy`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CopyRun {
    /// Always [`CopyRun::SCHEMA`].
    pub schema: String,
    /// When it began, RFC 3339.
    pub started: String,
    /// Where it ran.
    pub machine: Machine,
    /// The sources as they were named.
    pub sources: Vec<String>,
    /// The target as it was named.
    pub target: String,
    /// The mover that did it; `null` when nothing was moved, or not all by the same.
    pub mover: Option<String>,
    /// Bytes that reached their target.
    pub bytes: u64,
    /// Bytes whose pages or extents the target received references to.
    pub referenced_bytes: u64,
    /// Bytes the kernel copied from memory to memory, each time counted.
    pub copied_bytes: u64,
    /// Bytes that passed through memory of iotomy.
    pub touched_bytes: u64,
    /// From the command line read to the last byte, attribute and sync.
    pub wall_ns: u64,
    /// The part of it spent in syncs, that of --verify among them; `null` where nothing was synced.
    pub fsync_ns: Option<u64>,
    /// Whether every target equalled its source when read back; `null` if it was not verified.
    pub verified: Option<bool>,
    /// The number of printed errors, of sources and of the whole.
    pub errors: u64,
    /// These errors, as printed.
    #[serde(default)]
    pub messages: Vec<String>,
    /// The guarantees about later writes, holes and extents.
    #[serde(default)]
    pub contract: String,
    /// An entry a source that was begun.
    pub copies: Vec<CopyPart>,
    /// The findings.
    #[serde(default)]
    pub findings: Vec<Finding>,
}

/// One source copied into its target.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CopyPart {
    /// The source as it was named.
    pub source: String,
    /// The source as found: kind, size, file system.
    #[serde(default)]
    pub source_is: String,
    /// The file it went to.
    pub target: String,
    /// The target as found before the copy.
    #[serde(default)]
    pub target_is: String,
    /// The mover that did it.
    pub mover: Option<String>,
    /// Bytes that reached the target.
    pub bytes: u64,
    /// As in [`CopyRun`]; for the bytes that had reached the target when an error cut it short.
    pub referenced_bytes: u64,
    /// As in [`CopyRun`]; for the bytes that had reached the target when an error cut it short.
    pub copied_bytes: u64,
    /// As in [`CopyRun`]; for the bytes that had reached the target when an error cut it short.
    pub touched_bytes: u64,
    /// The moving alone.
    pub wall_ns: u64,
    /// How the mover was chosen.
    pub plan: CopyPlan,
    /// The error.
    pub error: Option<String>,
    /// How much of a regular target was in memory only, still to be written, in the end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dirty_bytes: Option<u64>,
}

/// The movers of a choice.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct CopyPlan {
    /// Those that were tried, in this order. All but the last were refused.
    pub tried: Vec<TriedMover>,
    /// Those that would have been tried next.
    pub spare: Vec<MoverReason>,
    /// All others.
    pub unsuited: Vec<MoverReason>,
}

/// A mover that was tried.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TriedMover {
    /// Its name.
    pub mover: String,
    /// Why it stood where it stood.
    pub reason: String,
    /// Why it does not work here, according to a probe.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub probed: Option<String>,
    /// The refusal of the kernel before any byte moved; `null` for the mover that served.
    pub refused: Option<MoverRefusal>,
}

/// A call that was refused.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MoverRefusal {
    /// The call.
    pub call: String,
    /// The name of its error; `null` where it moved nothing without an error.
    pub errno: Option<String>,
    /// The kernel's error message.
    #[serde(default)]
    pub said: String,
}

/// A mover, and why it stands where it stands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MoverReason {
    /// Its name.
    pub mover: String,
    /// Why.
    pub reason: String,
    /// Why it does not work here, according to a probe.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub probed: Option<String>,
}

impl CopyRun {
    /// The schema this version writes and reads.
    pub const SCHEMA: &'static str = "iotomy.copy/1";
}
