//! Connections of a program image, by peer.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::absent::is_zero;
use crate::statistic::{Cell, Joins, Kind, Value};
use crate::{Socket, statistic, statistics};

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
        /// Of accepts of TCP: the most connections that were in the listener's queue when one returned, the one
        /// that it returned included.
        #[serde(default, skip_serializing_if = "is_zero")]
        pub max_queued: u64 => most(Count).column("queue", 0).key("queued").blank(),
        /// The limit of that queue at the last of these accepts (`ss -lt` has it as Send-Q), or the largest of
        /// several queues: a queue takes one more.
        #[serde(default, skip_serializing_if = "is_zero")]
        pub queue_limit: u64 => most(Count).column("queue limit", 0).key("queue-limit").blank(),
        /// Requests for a connection that the listener dropped, as when its queue was full: since it began, or
        /// since the first counted accept, if the watch began later. Each is in one row: that of the next
        /// counted accept, or that of the first. Absent where it is not known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub dropped: Option<u64> => sum(Count).column("dropped", 0).blank(),
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

statistics! {
    /// What the kernel had of TCP connections when they, or the watch, ended (`TCP_INFO`). Counts and times are
    /// since the connection was made or first met, sums over the connections.
    #[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
    #[serde(default)]
    pub struct TcpFigures {
        /// Connections that these are of.
        pub measured: u64 => gauge(Count),
        /// Of these, those whose round-trip time the kernel knew.
        pub rtts: u64 => gauge(Count),
        /// The sum of their smoothed round-trip times, in µs.
        pub rtt_us: u64 => gauge(Count),
        /// The sum of the mean deviations of these, in µs.
        pub rttvar_us: u64 => gauge(Count),
        /// The least of the round-trip times.
        pub min_rtt_us: u64 => least(Count),
        /// The largest.
        pub max_rtt_us: u64 => most(Count),
        /// Segments with data that were sent, retransmitted ones included.
        pub segments: u64 => sum(Count),
        /// Segments that were retransmitted.
        pub retransmits: u64 => sum(Count),
        /// Bytes that the other end acknowledged.
        pub acked_bytes: u64 => sum(Count),
        /// Bytes that were received.
        pub received_bytes: u64 => sum(Count),
        /// The sum of their congestion windows, in segments; absent, as the figures below, where the kernel or an
        /// older record does not have it.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub cwnd_segments: Option<u64> => gauge(Count),
        /// The smallest of the congestion windows.
        #[serde(skip_serializing_if = "is_zero")]
        pub min_cwnd_segments: u64 => least(Count),
        /// The largest.
        #[serde(skip_serializing_if = "is_zero")]
        pub max_cwnd_segments: u64 => most(Count),
        /// The sum of the receive windows that the other ends had announced.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub snd_wnd_bytes: Option<u64> => gauge(Bytes),
        /// The sum of the receive windows that this end had announced.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub rcv_wnd_bytes: Option<u64> => gauge(Bytes),
        /// The time in which there was something to send, or to be acknowledged.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub busy_ns: Option<u64> => sum(Time).column("busy", 0),
        /// Of this, the time in which the other end's receive window kept TCP from sending.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub rwnd_limited_ns: Option<u64> => sum(Time).column("rwnd limited", 0).key("rwnd-limited"),
        /// Of this, the time in which the send buffer was full of bytes that were not acknowledged, and kept the
        /// program from writing more.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub sndbuf_limited_ns: Option<u64> => sum(Time).column("sndbuf limited", 0).key("sndbuf-limited"),
    }
}

impl Value for Option<TcpFigures> {
    const KIND: Kind = Kind::Row;

    fn cell(&self) -> Cell<'_> {
        Cell::Row
    }

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
        statistic::add(self, one);
    }

    /// The mean congestion window, in segments.
    pub fn mean_cwnd(&self) -> Option<f64> {
        self.mean(self.cwnd_segments)
    }

    /// The mean of the receive windows that the other ends had announced, in bytes.
    pub fn mean_snd_wnd(&self) -> Option<f64> {
        self.mean(self.snd_wnd_bytes)
    }

    /// The mean of the receive windows that this end had announced, in bytes.
    pub fn mean_rcv_wnd(&self) -> Option<f64> {
        self.mean(self.rcv_wnd_bytes)
    }

    fn mean(&self, sum: Option<u64>) -> Option<f64> {
        sum.filter(|_| self.measured > 0).map(|sum| sum as f64 / self.measured as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Role;

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
    fn windows_are_means_of_those_that_were_measured_and_unknown_in_older_records() {
        let older: TcpFigures = serde_json::from_str(r#"{"measured": 2, "rtts": 2}"#).unwrap();
        let text = serde_json::to_string(&older).unwrap();
        assert!(!text.contains("wnd") && !text.contains("busy"), "{text}");
        assert_eq!((older.mean_cwnd(), older.mean_snd_wnd()), (None, None));
        let with = |cwnd, window| TcpFigures {
            measured: 1,
            cwnd_segments: Some(cwnd),
            min_cwnd_segments: cwnd,
            max_cwnd_segments: cwnd,
            snd_wnd_bytes: Some(window),
            ..TcpFigures::default()
        };
        let mut sum = with(10, 0);
        sum.merge(&with(3, 4096));
        assert_eq!((sum.mean_cwnd(), sum.mean_snd_wnd()), (Some(6.5), Some(2048.0)));
        assert_eq!((sum.min_cwnd_segments, sum.max_cwnd_segments), (3, 10));
        assert_eq!((sum.mean_rcv_wnd(), sum.busy_ns), (None, None));
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
