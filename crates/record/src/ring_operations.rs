//! What io_uring did for a program image, by operation.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::absent::is_zero;
use crate::trace::is_bound;
use crate::{Histogram, Times, statistic, statistics};

statistics! {
    /// The requests of one program image by one operation of io_uring.
    #[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
    pub struct RingOperation {
        /// Process id of the image that submitted them.
        pub pid: u32,
        /// Program image.
        pub exec: String,
        /// Which of the process's images of this name it is, in the order they began; 0 where there is but one.
        #[serde(default, skip_serializing_if = "crate::absent::is_alone")]
        pub image: u32,
        /// The operation's name, lower case, as in liburing: `read`, `send_zc`, `poll_add`.
        pub op: String,
        /// Requests that were submitted.
        pub submitted: u64 => sum(Count).column("requests", 12).live(15, 9).in_all(2, 9),
        /// Of these, the ones that ended.
        pub completed: u64 => sum(Count).column("ended", 0),
        /// Results that are errors, also those of requests with many.
        pub errors: u64 => sum(Count).column("failed", 11).live(10, 6).blank(),
        /// Errors by name.
        #[serde(deserialize_with = "crate::store::unique_keys")]
        pub error_kinds: BTreeMap<String, u64> => sum(Count),
        /// Of the errors, `ECANCELED`.
        pub cancelled: u64 => sum(Count),
        /// Sum of the results that are no errors, where they are counts of bytes; else 0.
        pub bytes: u64 => sum(Bytes).column("bytes", 10).live(14, 8).in_all(1, 8).blank(),
        /// The distribution of these results.
        #[serde(default, skip_serializing_if = "is_empty")]
        pub result_log2: Histogram => sum(Count),
        /// Results of requests that have many, each request's last not among them.
        pub multishot_completions: u64 => sum(Count).column("results", 4).live(5, 7).blank(),
        /// Requests that had not ended when the watch did.
        pub in_flight: u64 => gauge(Count).column("in flight", 0).key("in-flight").live(13, 9).blank(),
        /// From submission to completion, summed over the completions that were seen.
        pub wall_ns: u64 => sum(Time).compared(),
        /// The longest.
        pub max_ns: u64 => most(Time),
        /// In a record of an interval: whether the longest is not known, and none took longer than this.
        #[serde(default, skip_serializing_if = "crate::absent::is_false")]
        pub max_is_bound: bool,
        /// Its distribution.
        pub wall_log2: Histogram => sum(Count),
        /// The same in finer buckets, with quantiles.
        #[serde(default, skip_serializing_if = "Times::is_empty")]
        pub wall_times: Times => sum(Count),
        /// Of `completed`, those that the submitting thread carried out, without a wait for their file to be ready.
        pub inline: u64 => sum(Count).column("inline", 6).live(9, 7).blank(),
        /// Those that waited until their file was ready.
        pub polled: u64 => sum(Count).column("polled", 6).live(7, 7).blank(),
        /// Those that a worker thread carried out.
        pub worker: u64 => sum(Count).column("worker", 6).live(8, 7).blank(),
        /// Of `worker`, those that an unbounded worker carried out: one for work that may wait for ever.
        #[serde(default, skip_serializing_if = "is_zero")]
        pub worker_unbounded: u64 => sum(Count),
        /// Those that the ring's submission thread carried out, without a wait for their file to be ready.
        pub sqpoll: u64 => sum(Count).column("sqpoll", 6).live(6, 7).blank(),
        /// Results that found the completion queue full.
        #[serde(default, skip_serializing_if = "is_zero")]
        pub overflows: u64 => sum(Count).compared(),
        /// Requests that were submitted before the watch and ended in it; they are in none of the other counts.
        #[serde(default, skip_serializing_if = "is_zero")]
        pub before: u64 => sum(Count),
        /// Of `submitted`, those whose file is one of the ring's registered files.
        #[serde(default, skip_serializing_if = "is_zero")]
        pub registered_files: u64 => sum(Count),
        /// Of `submitted`, those that are for a worker without an attempt to carry them out at once: as the program
        /// asked (`IOSQE_ASYNC`), or as the kernel does with each of this operation.
        #[serde(default, skip_serializing_if = "is_zero")]
        pub forced_async: u64 => sum(Count),
        /// Requests that were not carried out, because one that they were linked to failed.
        #[serde(default, skip_serializing_if = "is_zero")]
        pub unlinked: u64 => sum(Count),
    }
}

fn is_empty(histogram: &Histogram) -> bool {
    *histogram == Histogram::default()
}

impl RingOperation {
    /// Adds what another row of the same operation counts.
    pub fn merge(&mut self, other: &Self) {
        let maxima = [(self.max_ns, self.max_is_bound), (other.max_ns, other.max_is_bound)];
        self.max_is_bound = is_bound(maxima[0], maxima[1]);
        statistic::add(self, other);
    }
}
