//! The view of a record: which rows are printed, and in which order; it is kept with the run.

use serde::{Deserialize, Serialize};

use crate::{Call, Histogram, RingOperation};

/// The view of a record.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Default)]
#[serde(default)]
pub struct View {
    /// The key by which rows are sorted.
    pub sort: SortKey,
    /// Rows of a table; `None` for the usual number, 0 for all.
    pub top: Option<usize>,
    /// Distributions to show; empty for those that matter.
    pub quantize: Vec<Quantity>,
    /// The calls and groups (`%file`) the run was restricted to; empty for all.
    pub calls: Vec<String>,
    /// The condition that calls were to fulfil; empty for none.
    #[serde(rename = "where", skip_serializing_if = "String::is_empty")]
    pub r#where: String,
    /// The condition that was to end the watch; empty for none.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub until: String,
    /// Whether files were requested.
    pub files: bool,
    /// Whether peers were requested.
    #[serde(skip_serializing_if = "crate::absent::is_false")]
    pub peers: bool,
    /// Whether paths were requested.
    #[serde(skip_serializing_if = "crate::absent::is_false")]
    pub paths: bool,
    /// Whether threads were requested.
    #[serde(skip_serializing_if = "crate::absent::is_false")]
    pub threads: bool,
    /// How many of the slowest calls were to be kept whole.
    #[serde(skip_serializing_if = "is_none")]
    pub slowest: u32,
    /// Whether the watch was to go on until all that the command left behind had ended.
    #[serde(skip_serializing_if = "crate::absent::is_false")]
    pub wait: bool,
    /// Whether every process of the machine was watched.
    #[serde(skip_serializing_if = "crate::absent::is_false")]
    pub machine: bool,
    /// Whether identical program images were to be kept apart.
    #[serde(skip_serializing_if = "crate::absent::is_false")]
    pub each: bool,
    /// Whether the processes that the watched ones created were left out.
    #[serde(skip_serializing_if = "crate::absent::is_false")]
    pub only: bool,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
fn is_none(count: &u32) -> bool {
    *count == 0
}

/// The key by which rows are sorted; the largest comes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Default)]
#[serde(rename_all = "kebab-case")]
pub enum SortKey {
    /// Time from entry to return.
    #[default]
    Wall,
    /// Time on a CPU.
    OnCpu,
    /// Blocked time.
    Blocked,
    /// Number of calls.
    Calls,
    /// Number of errors.
    Errors,
    /// Bytes moved.
    Bytes,
    /// Name, alphabetically.
    Name,
}

impl SortKey {
    /// Every key, in the order the help lists them.
    pub const ALL: [Self; 7] = [
        Self::Wall,
        Self::OnCpu,
        Self::Blocked,
        Self::Calls,
        Self::Errors,
        Self::Bytes,
        Self::Name,
    ];

    /// Its name on the command line and in the record.
    pub fn name(self) -> &'static str {
        match self {
            Self::Wall => "wall",
            Self::OnCpu => "on-cpu",
            Self::Blocked => "blocked",
            Self::Calls => "calls",
            Self::Errors => "errors",
            Self::Bytes => "bytes",
            Self::Name => "name",
        }
    }
}

/// The quantity of a distribution.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Quantity {
    /// The value returned.
    Return,
    /// Time from entry to return.
    Wall,
    /// Time on a CPU.
    OnCpu,
    /// Blocked time.
    Blocked,
}

impl Quantity {
    /// Every quantity, in the order the help lists them.
    pub const ALL: [Self; 4] = [Self::Return, Self::Wall, Self::OnCpu, Self::Blocked];

    /// Its name on the command line and in the record.
    pub fn name(self) -> &'static str {
        match self {
            Self::Return => "return",
            Self::Wall => "wall",
            Self::OnCpu => "on-cpu",
            Self::Blocked => "blocked",
        }
    }

    /// The distribution of this quantity in `call`, where the observer knew it.
    pub fn histogram(self, call: &Call) -> Option<&Histogram> {
        match self {
            Self::Return => Some(&call.return_log2),
            Self::Wall => Some(&call.wall_log2),
            Self::OnCpu => call.on_cpu_log2.as_ref(),
            Self::Blocked => call.blocked_log2.as_ref(),
        }
    }

    /// The distribution of this quantity in a ring operation: of its results, or of the time from
    /// submission to completion. It has no other.
    pub fn of_ring(self, operation: &RingOperation) -> Option<&Histogram> {
        match self {
            Self::Return => Some(&operation.result_log2),
            Self::Wall => Some(&operation.wall_log2),
            Self::OnCpu | Self::Blocked => None,
        }
    }

    /// The unit of its values.
    pub fn unit(self) -> &'static str {
        match self {
            Self::Return => "value",
            Self::Wall | Self::OnCpu | Self::Blocked => "ns",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_the_record_writes() {
        for key in SortKey::ALL {
            assert_eq!(serde_json::to_value(key).unwrap(), key.name());
        }
        for quantity in Quantity::ALL {
            assert_eq!(serde_json::to_value(quantity).unwrap(), quantity.name());
        }
    }
}
