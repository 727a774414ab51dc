//! Connections of a program image, by peer.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::absent::is_zero;
use crate::statistic::{Joins, Value};
use crate::{Socket, statistic, statistics};

/// How connections were made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// By a connect.
    Connect,
    /// By the connect of the other end.
    Accept,
}

statistics! {
    /// Connections of one program image with one peer. Of those that the image makes there is no local
    /// address, of those that it accepts no remote port: the kernel chooses these.
    #[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
    pub struct Connection {
        /// Process id.
        pub pid: u32,
        /// Program image.
        pub exec: String,
        /// Which of the process's images of this name it is, in the order they began; 0 where there is but one.
        #[serde(default, skip_serializing_if = "crate::absent::is_alone")]
        pub image: u32,
        /// The protocol, the two ends, and how they were made: without a role, before the watch or by calls
        /// that are not counted.
        #[serde(flatten)]
        pub ends: Socket,
        /// Connections that were made during the watch.
        pub opened: u64 => sum(Count).column("opened", 10).live(10, 6).in_all(12, 6).blank(),
        /// Connections that were open when a counted call first moved bytes through them.
        #[serde(default, skip_serializing_if = "is_zero")]
        pub before: u64 => sum(Count),
        /// Of both, those that TCP ended during the watch; absent of other protocols.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub closed: Option<u64> => sum(Count).compared(),
        /// Connects that had neither succeeded nor failed when their socket was closed or the watch ended.
        #[serde(default, skip_serializing_if = "is_zero")]
        pub unfinished: u64 => sum(Count).compared(),
        /// Failed connects or accepts by the name of the error.
        #[serde(default, deserialize_with = "crate::store::unique_keys")]
        pub errors: BTreeMap<String, u64> => sum(Count).compared(),
        /// The time of `timed` connections: from the call until the connection was made; of accepted ones,
        /// from then until they were accepted.
        pub connect_ns: u64 => sum(Time),
        /// The longest.
        #[serde(default, skip_serializing_if = "is_zero")]
        pub max_ns: u64 => most(Time),
        /// Of `opened`, those whose time is known.
        #[serde(default, skip_serializing_if = "is_zero")]
        pub timed: u64 => sum(Count),
        /// Calls that read from their sockets.
        pub read_calls: u64 => sum(Count),
        /// Bytes they returned.
        pub read_bytes: u64 => sum(Bytes),
        /// Calls that wrote to their sockets.
        pub write_calls: u64 => sum(Count),
        /// Bytes they returned.
        pub write_bytes: u64 => sum(Bytes),
        /// TCP's own figures.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub tcp: Option<TcpFigures> => sum(Count),
    }
}

/// What the kernel had of TCP connections when they, or the watch, ended (`TCP_INFO`). Counts are
/// since the connection was made or first met, sums over the connections.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct TcpFigures {
    /// Connections that these are of.
    pub measured: u64,
    /// Of these, those whose round-trip time the kernel knew.
    pub rtts: u64,
    /// The sum of their smoothed round-trip times, in µs.
    pub rtt_us: u64,
    /// The sum of the mean deviations of these, in µs.
    pub rttvar_us: u64,
    /// The least of the round-trip times.
    pub min_rtt_us: u64,
    /// The largest.
    pub max_rtt_us: u64,
    /// Segments with data that were sent, retransmitted ones included.
    pub segments: u64,
    /// Segments that were retransmitted.
    pub retransmits: u64,
    /// Bytes that the other end acknowledged.
    pub acked_bytes: u64,
    /// Bytes that were received.
    pub received_bytes: u64,
}

impl Value for Option<TcpFigures> {
    fn join(&mut self, other: &Self, _joins: Joins) {
        if let Some(other) = other {
            self.get_or_insert_default().merge(other);
        }
    }
}

impl Connection {
    /// Adds connections of the same role and the same ends.
    pub fn merge(&mut self, one: &Self) {
        statistic::add(self, one);
    }

    /// The mean time of a connection in ns: until it was made, or accepted.
    pub fn mean_ns(&self) -> Option<f64> {
        (self.timed > 0).then(|| self.connect_ns as f64 / self.timed as f64)
    }

    /// The mean round-trip time in µs.
    pub fn mean_rtt_us(&self) -> Option<f64> {
        let tcp = self.tcp.as_ref().filter(|tcp| tcp.rtts > 0)?;
        Some(tcp.rtt_us as f64 / tcp.rtts as f64)
    }

    /// How many connects and accepts failed.
    pub fn failed(&self) -> u64 {
        self.errors.values().fold(0, |sum, count| sum.saturating_add(*count))
    }

    /// Segments that were sent again.
    pub fn retransmits(&self) -> u64 {
        self.tcp.as_ref().map_or(0, |tcp| tcp.retransmits)
    }
}

impl TcpFigures {
    /// Adds those of other connections.
    pub fn merge(&mut self, one: &Self) {
        let known = [self.min_rtt_us, one.min_rtt_us].into_iter().filter(|rtt| *rtt > 0);
        self.min_rtt_us = known.min().unwrap_or(0);
        self.max_rtt_us = self.max_rtt_us.max(one.max_rtt_us);
        for (sum, more) in [
            (&mut self.measured, one.measured),
            (&mut self.rtts, one.rtts),
            (&mut self.rtt_us, one.rtt_us),
            (&mut self.rttvar_us, one.rttvar_us),
            (&mut self.segments, one.segments),
            (&mut self.retransmits, one.retransmits),
            (&mut self.acked_bytes, one.acked_bytes),
            (&mut self.received_bytes, one.received_bytes),
        ] {
            *sum = sum.saturating_add(more);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_round_trip_is_of_those_that_are_known() {
        let figures = |min_rtt_us, max_rtt_us| TcpFigures {
            rtts: 1,
            min_rtt_us,
            max_rtt_us,
            ..TcpFigures::default()
        };
        let mut sum = TcpFigures::default();
        for (min, max) in [(50, 50), (0, 0), (20, 90)] {
            sum.merge(&figures(min, max));
        }
        assert_eq!((sum.rtts, sum.min_rtt_us, sum.max_rtt_us), (3, 20, 90));
    }

    #[test]
    fn a_row_keeps_the_name_of_its_role_and_its_ends_side_by_side() {
        let ends = Socket {
            role: Some(Role::Connect),
            protocol: "tcp".to_owned(),
            remote: Some("[::1]:80".to_owned()),
            ..Socket::default()
        };
        let row = Connection { ends, ..Connection::default() };
        let value = serde_json::to_value(&row).unwrap();
        assert_eq!((&value["role"], &value["remote"]), (&"connect".into(), &"[::1]:80".into()));
        assert_eq!(serde_json::from_value::<Connection>(value).unwrap(), row);
    }
}
