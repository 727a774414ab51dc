//! The requests of a program image over its connections, by peer.

use serde::{Deserialize, Serialize};

use crate::absent::is_zero;
use crate::{Socket, Times, is_bound, statistic, statistics};

statistics! {
    /// Requests and their answers over the connections of one program image with one peer. Of connections that the
    /// image accepted, those that it served: from the arrival of a request's first byte until the last byte of its
    /// answer is written, before the next read. Of those that it made, those that it asked: from the first byte
    /// written until the last one is read before the next write.
    #[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
    pub struct Exchange {
        /// Process id of the image whose thread read the request, or wrote it.
        pub pid: u32,
        /// Program image.
        pub exec: String,
        /// Which of the process's images of this name it is, in the order they began; 0 where there is but one.
        #[serde(default, skip_serializing_if = "crate::absent::is_alone")]
        pub image: u32,
        /// The protocol, the two ends, and the role: `accept` for requests that were served, `connect` for those that
        /// were asked.
        #[serde(flatten)]
        pub ends: Socket,
        /// Requests that were answered.
        pub requests: u64 => sum(Count).column("requests", 12),
        /// The longest of them.
        pub max_ns: u64 => most(Time),
        /// In a record of an interval: whether the longest is not known, and none took longer than this.
        #[serde(default, skip_serializing_if = "crate::absent::is_false")]
        pub max_is_bound: bool,
        /// Requests without an answer when their connection ended; served ones may not have been read either.
        #[serde(default, skip_serializing_if = "is_zero")]
        pub unanswered: u64 => sum(Count).column("unanswered", 0).blank(),
        /// Requests without an answer when the watch ended, in no other count.
        #[serde(default, skip_serializing_if = "is_zero")]
        pub in_flight: u64 => gauge(Count),
        /// Of `requests`, those whose first byte had arrived before the answer to the one before was written; of
        /// requests that were asked, those that were written before that answer was read to its end.
        #[serde(default, skip_serializing_if = "is_zero")]
        pub pipelined: u64 => sum(Count).column("pipelined", 0).blank(),
        /// Of `requests`, those that went on in another thread than the first: its time is in `elsewhere_ns`.
        #[serde(default, skip_serializing_if = "is_zero")]
        pub moved: u64 => sum(Count).column("moved", 0).blank(),
        /// Of `requests`, those whose arrival was not seen: they begin when they were first read.
        #[serde(default, skip_serializing_if = "is_zero")]
        pub unseen_arrivals: u64 => sum(Count).compared(),
        /// Their time, summed over the requests.
        pub wall_ns: u64 => sum(Time).compared(),
        /// Its distribution, with quantiles.
        #[serde(default, skip_serializing_if = "Times::is_empty")]
        pub wall_times: Times => sum(Count),
        /// Of `wall_ns`: from the arrival until the first read had returned; of requests that were served.
        pub unread_ns: u64 => sum(Time).column("unread", 8).mean("unread_mean_ns"),
        /// From then on, what the thread was on a CPU, also for other connections.
        pub on_cpu_ns: u64 => sum(Time).column("on-CPU", 7).key("on-cpu").mean("on_cpu_mean_ns"),
        /// Its run queue delay.
        pub runnable_ns: u64 => sum(Time).column("runq", 5).mean("runnable_mean_ns"),
        /// What it was blocked for files and disks: in calls on these, and in page faults.
        pub disk_ns: u64 => sum(Time).column("disk", 5).blank().mean("disk_mean_ns"),
        /// What it was blocked for another peer: in connects, in calls on connections that it made, and in waits for
        /// events while it had asked and was not answered.
        pub peer_ns: u64 => sum(Time).column("upstream", 5).key("upstream").blank().mean("peer_mean_ns"),
        /// What it was blocked for locks: futexes, locks of files, semaphores.
        pub lock_ns: u64 => sum(Time).column("lock", 5).blank().mean("lock_mean_ns"),
        /// What it was blocked for anything else: timers, the other end of the same connection, other processes.
        pub other_ns: u64 => sum(Time).column("other", 6).blank().mean("other_mean_ns"),
        /// What is in none of these: the time in other threads.
        pub elsewhere_ns: u64 => sum(Time).column("elsewhere", 4).blank().mean("elsewhere_mean_ns"),
    }
}

impl Exchange {
    /// Adds the requests of another row of the same ends.
    pub fn merge(&mut self, one: &Self) {
        let maxima = [(self.max_ns, self.max_is_bound), (one.max_ns, one.max_is_bound)];
        self.max_is_bound = is_bound(maxima[0], maxima[1]);
        statistic::add(self, one);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Role;
    use crate::statistic::{Joins, Statistics, Unit};

    #[test]
    fn the_parts_of_the_latency_are_compared_by_request() {
        let times = Exchange::statistics().filter(|one| one.shape.unit == Unit::Time);
        for sum in times.filter(|one| one.shape.joins == Joins::Sum && one.name != "wall_ns") {
            let name = sum.name.replace("_ns", "_mean_ns");
            assert_eq!((sum.shape.compared, sum.shape.mean), (false, Some(&*name)));
        }
    }

    #[test]
    fn a_row_keeps_the_name_of_its_role_and_its_ends_side_by_side() {
        let ends = Socket {
            role: Some(Role::Accept),
            protocol: "tcp".to_owned(),
            local: Some("127.0.0.1:80".to_owned()),
            ..Socket::default()
        };
        let mut row = Exchange { ends, requests: 2, ..Exchange::default() };
        row.wall_times.add(1_000);
        row.merge(&row.clone());
        let value = serde_json::to_value(&row).unwrap();
        assert_eq!((&value["role"], &value["requests"]), (&"accept".into(), &4.into()));
        assert!(value.get("unanswered").is_none());
        assert_eq!(serde_json::from_value::<Exchange>(value).unwrap(), row);
    }
}
