//! What io_uring did for a program image, by operation.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{Histogram, Times};

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
    pub submitted: u64,
    /// Of these, the ones that ended.
    pub completed: u64,
    /// Results that are errors, also those of requests with many.
    pub errors: u64,
    /// Errors by name.
    #[serde(deserialize_with = "crate::store::unique_keys")]
    pub error_kinds: BTreeMap<String, u64>,
    /// Of the errors, `ECANCELED`.
    pub cancelled: u64,
    /// Requests that had not ended when the watch did.
    pub in_flight: u64,
    /// Sum of the results that are no errors, where they are counts of bytes; else 0.
    pub bytes: u64,
    /// The distribution of these results.
    #[serde(default, skip_serializing_if = "is_empty")]
    pub result_log2: Histogram,
    /// From submission to completion, summed over the completions that were seen.
    pub wall_ns: u64,
    /// The longest.
    pub max_ns: u64,
    /// In a record of an interval: whether the longest is not known, and none took longer than this.
    #[serde(default, skip_serializing_if = "crate::absent::is_false")]
    pub max_is_bound: bool,
    /// Its distribution.
    pub wall_log2: Histogram,
    /// The same in finer buckets, with quantiles.
    #[serde(default, skip_serializing_if = "Times::is_empty")]
    pub wall_times: Times,
    /// Of `completed`, those that the submitting thread carried out, without a wait for their file to be ready.
    pub inline: u64,
    /// Those that waited until their file was ready.
    pub polled: u64,
    /// Those that a worker thread carried out.
    pub worker: u64,
    /// Of `worker`, those that an unbounded worker carried out: one for work that may wait for ever.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub worker_unbounded: u64,
    /// Those that the ring's submission thread carried out, without a wait for their file to be ready.
    pub sqpoll: u64,
    /// Results of requests that have many, each request's last not among them.
    pub multishot_completions: u64,
    /// Results that found the completion queue full.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub overflows: u64,
    /// Requests that were submitted before the watch and ended in it; they are in none of the other counts.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub before: u64,
    /// Of `submitted`, those whose file is one of the ring's registered files.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub registered_files: u64,
    /// Of `submitted`, those that are for a worker without an attempt to carry them out at once: as the program
    /// asked (`IOSQE_ASYNC`), or as the kernel does with each of this operation.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub forced_async: u64,
    /// Requests that were not carried out, because one that they were linked to failed.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub unlinked: u64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
fn is_zero(number: &u64) -> bool {
    *number == 0
}

fn is_empty(histogram: &Histogram) -> bool {
    *histogram == Histogram::default()
}

impl RingOperation {
    /// Adds what another row of the same operation counts.
    pub fn merge(&mut self, other: &Self) {
        for (sum, one) in [
            (&mut self.submitted, other.submitted),
            (&mut self.completed, other.completed),
            (&mut self.errors, other.errors),
            (&mut self.cancelled, other.cancelled),
            (&mut self.in_flight, other.in_flight),
            (&mut self.bytes, other.bytes),
            (&mut self.wall_ns, other.wall_ns),
            (&mut self.inline, other.inline),
            (&mut self.polled, other.polled),
            (&mut self.worker, other.worker),
            (&mut self.sqpoll, other.sqpoll),
            (&mut self.multishot_completions, other.multishot_completions),
            (&mut self.overflows, other.overflows),
            (&mut self.worker_unbounded, other.worker_unbounded),
            (&mut self.before, other.before),
            (&mut self.registered_files, other.registered_files),
            (&mut self.forced_async, other.forced_async),
            (&mut self.unlinked, other.unlinked),
        ] {
            *sum = sum.saturating_add(one);
        }
        for (kind, count) in &other.error_kinds {
            let sum = self.error_kinds.entry(kind.clone()).or_default();
            *sum = sum.saturating_add(*count);
        }
        self.max_is_bound = match other.max_ns.cmp(&self.max_ns) {
            Ordering::Less => self.max_is_bound,
            Ordering::Equal => self.max_is_bound && other.max_is_bound,
            Ordering::Greater => other.max_is_bound,
        };
        self.max_ns = self.max_ns.max(other.max_ns);
        self.result_log2.merge(&other.result_log2);
        self.wall_log2.merge(&other.wall_log2);
        self.wall_times.merge(&other.wall_times);
    }
}
