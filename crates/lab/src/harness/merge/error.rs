//! Why records do not make one.

use iotomy_record::Volume;

use super::{Given, Share};

/// The reason why records cannot be merged.
#[derive(Debug, thiserror::Error)]
pub enum MergeError {
    /// There is no record.
    #[error("there is no record to merge")]
    Nothing,
    /// One of them cannot be part of a merged record.
    #[error("cannot merge {name}: {reason}")]
    Unfit {
        /// Its name.
        name: String,
        /// The reason, and what to do.
        reason: String,
    },
    /// Two of them do not go together.
    #[error("cannot merge {one} with {other}: {reason}")]
    Apart {
        /// The name of the first.
        one: String,
        /// The name of the second.
        other: String,
        /// The reason, and what to do.
        reason: String,
    },
    /// Some shards are not there.
    #[error("{}", listed(missing))]
    Missing {
        /// Which.
        missing: Vec<Share>,
    },
}

/// Shards that are named, at most.
const NAMED: usize = 20;

fn listed(shards: &[Share]) -> String {
    let names: Vec<String> =
        shards.iter().take(NAMED).map(|Share { index, of }| format!("{index}/{of}")).collect();
    let (noun, verb) = if shards.len() == 1 { ("shard", "is") } else { ("shards", "are") };
    match shards.len() - names.len() {
        0 => format!("{noun} {} {verb} missing", names.join(", ")),
        more => format!("{noun} {} and {more} more {verb} missing", names.join(", ")),
    }
}

impl MergeError {
    pub(super) fn unfit(one: &Given, reason: impl Into<String>) -> Self {
        Self::Unfit { name: one.name.clone(), reason: reason.into() }
    }

    pub(super) fn apart(one: &Given, other: &Given, reason: impl Into<String>) -> Self {
        Self::Apart { one: one.name.clone(), other: other.name.clone(), reason: reason.into() }
    }

    /// Two different records of the same shard, or of the whole on the same machine.
    pub(super) fn twice(one: &Given, other: &Given) -> Self {
        let reason = match &one.sweep.run.shard {
            Some(shard) => format!(
                "both are shard {}/{}, with different measurements; leave one of them out",
                shard.index, shard.of
            ),
            None => format!(
                "both are whole records of the machine {}; leave one of them out, or run each with \
                 a name of its own, by --machine",
                one.sweep.machine.name
            ),
        };
        Self::apart(one, other, reason)
    }

    /// Two machines of one name.
    pub(super) fn namesakes(
        (one, other): (&Given, &Given),
        what: &str,
        (a, b): (&str, &str),
    ) -> Self {
        let name = &one.sweep.machine.name;
        let reason = format!(
            "both name their machine {name}, with different {what}: {a} and {b}; run each with a \
             name of its own, by --machine"
        );
        Self::apart(one, other, reason)
    }

    /// Two file systems of one machine.
    pub(super) fn volumes((one, other): (&Given, &Given), (a, b): (&Volume, &Volume)) -> Self {
        let shown = |of: &Volume| format!("{} ({})", of.path, of.file_system);
        let reason = format!(
            "they ran on one machine in directories of different file systems, {} and {}; run them \
             again with the same --path",
            shown(a),
            shown(b)
        );
        Self::apart(one, other, reason)
    }
}
