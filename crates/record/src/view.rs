//! The view of a record: which rows are printed, and in which order; it is kept with the run.

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::statistic::{Statistic, Statistics, Unit};
use crate::{
    Call, Connection, Exchange, FileUse, Group, Histogram, LedgerRow, PathUse, RingOperation,
    TcpFigures, Thread,
};

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
    /// Whether the latency of requests was requested.
    #[serde(skip_serializing_if = "crate::absent::is_false")]
    pub requests: bool,
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

/// The key by which rows are sorted, the largest first: a statistic of the tables that have its column, by the head of
/// that; or the name. Other tables keep their usual order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SortKey(&'static str);

impl SortKey {
    /// Time from entry to return.
    pub const WALL: Self = Self("wall");
    /// Time on a CPU.
    pub const ON_CPU: Self = Self("on-cpu");
    /// Blocked time.
    pub const BLOCKED: Self = Self("blocked");
    /// Number of calls.
    pub const CALLS: Self = Self("calls");
    /// Number of errors.
    pub const ERRORS: Self = Self("errors");
    /// Bytes moved.
    pub const BYTES: Self = Self("bytes");
    /// The longest one.
    pub const MAX: Self = Self("max");
    /// Name, alphabetically.
    pub const NAME: Self = Self("name");

    /// Every key, in the order the help lists them: those of calls first, and the name.
    pub fn all() -> Vec<Self> {
        let usual =
            [Self::WALL, Self::ON_CPU, Self::BLOCKED, Self::CALLS, Self::ERRORS, Self::BYTES];
        let mut all = usual.to_vec();
        for (key, _) in declared() {
            if !all.iter().any(|known| known.0 == key) {
                all.push(Self(key));
            }
        }
        all.push(Self::NAME);
        all
    }

    /// The key of this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::all().into_iter().find(|key| key.0 == name)
    }

    /// Its name on the command line and in the record.
    pub fn name(self) -> &'static str {
        self.0
    }

    /// The statistic of such a row that it stands for, if one.
    pub fn statistic<R: Statistics>(self) -> Option<&'static Statistic<R>> {
        R::shown().find(|(_, column)| column.key == self.0).map(|(statistic, _)| statistic)
    }

    /// The names of all statistics that it stands for.
    pub fn names(self) -> Vec<&'static str> {
        declared().filter(|(key, _)| *key == self.0).map(|(_, name)| name).collect()
    }

    /// The order of calls: by this key if they have it, or else the usual one.
    pub fn of_calls(self) -> Self {
        let is_known =
            [Self::NAME, Self::MAX].contains(&self) || self.statistic::<Call>().is_some();
        if is_known { self } else { Self::WALL }
    }

    /// Whether what it sorts by is a sum of times.
    pub fn is_time(self) -> bool {
        self.statistic::<Call>().is_some_and(|statistic| statistic.shape.unit == Unit::Time)
    }
}

/// The key and the name of each statistic that tables show.
fn declared() -> impl Iterator<Item = (&'static str, &'static str)> {
    fn of<R: Statistics>() -> impl Iterator<Item = (&'static str, &'static str)> {
        R::shown().map(|(statistic, column)| (column.key, statistic.name))
    }
    of::<Call>()
        .chain(of::<LedgerRow>())
        .chain(of::<Thread>())
        .chain(of::<FileUse>())
        .chain(of::<Connection>())
        .chain(of::<TcpFigures>())
        .chain(of::<PathUse>())
        .chain(of::<RingOperation>())
        .chain(of::<Exchange>())
        .chain(of::<Group>())
}

impl Default for SortKey {
    fn default() -> Self {
        Self::WALL
    }
}

impl Serialize for SortKey {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(self.0)
    }
}

/// A key that is not known, as of a statistic that was added later, leaves rows in their usual order.
impl<'de> Deserialize<'de> for SortKey {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        Ok(Self::named(&String::deserialize(from)?).unwrap_or_default())
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
    fn every_key_but_the_name_is_a_statistic() {
        for key in SortKey::all() {
            assert_eq!(key.names().is_empty(), key == SortKey::NAME, "{key:?}");
        }
        assert!(SortKey::named("runq").is_some_and(SortKey::is_time));
        let written = SortKey::named("written").unwrap();
        assert_eq!((written.names(), written.of_calls()), (vec!["write_bytes"], SortKey::WALL));
        assert_eq!(SortKey::named("involuntary").unwrap().names(), ["involuntary_switches"]);
    }

    #[test]
    fn names_are_those_the_record_writes() {
        for key in SortKey::all() {
            assert_eq!(serde_json::to_value(key).unwrap(), key.name());
            let read = serde_json::from_value::<SortKey>(key.name().into());
            assert_eq!(read.unwrap(), key);
        }
        assert_eq!(serde_json::from_str::<SortKey>(r#""colour""#).unwrap(), SortKey::WALL);
        for quantity in Quantity::ALL {
            assert_eq!(serde_json::to_value(quantity).unwrap(), quantity.name());
        }
    }
}
