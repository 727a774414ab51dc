//! The observer of a [`Trace`](crate::Trace): what watching cost, what was lost, and what could not be seen.

use serde::{Deserialize, Serialize};

use crate::absent::is_zero;

/// The observer of a run.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct ObserverUse {
    /// Its registered name.
    pub name: String,
    /// The overhead that watching added to one system call of this run: the middle of the range
    /// below.
    pub cost_ns_per_call: f64,
    /// The least it added, from prices measured on this machine at start and the run's own counts of calls and of
    /// switches between threads. In records from before there was a range, both ends are 0.
    #[serde(default)]
    pub cost_ns_low: f64,
    /// The most.
    #[serde(default)]
    pub cost_ns_high: f64,
    /// Events that could not be counted because a bounded map was full or an update failed.
    pub lost_events: u64,
    /// Calls of which only one end was seen: entered before the watch, or never returned because
    /// the thread died in them or the watch ended. `exit` and `exit_group`, which never return, are
    /// not among them.
    pub incomplete_calls: u64,
    /// Files for which a bounded table had no room for the row or the name.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub lost_files: u64,
    /// Calls that are in no row of `paths`, for which a bounded table had no room.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub lost_paths: u64,
    /// Connections, or failures of such, that are in no row of `connections`, or in it without what came
    /// of them, for which a bounded table had no room.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub lost_connections: u64,
    /// Requests that are in no row of `requests`, and calls that moved bytes through connections whose requests are in
    /// none, for which a bounded table had no room.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub lost_exchanges: u64,
    /// Connections of TCP from before the watch of which it could not be told which end asks: their requests are in no
    /// row of `requests`.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub unclear_connections: u64,
    /// Whether what io_uring did is in `ring_operations`. `None` in records from before there were any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sees_rings: Option<bool>,
    /// Requests of rings that are in no row of `ring_operations`, or in it without what came of them, for which a
    /// bounded table had no room.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub lost_requests: u64,
    /// Calls that were left out because the condition of the filter divided by zero for them.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub divided_by_zero: u64,
    /// Calls for which the condition that ends the watch divided by zero.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub end_divided_by_zero: u64,
    /// Calls that a restriction did not count: of watched threads, and slowed by watching as others are. `None`
    /// without a restriction, and where it is not known: in records of a part of a watch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub calls_left_out: Option<u64>,
    /// The least that watching added to each of these, from prices measured at start. Both ends are 0 without a
    /// restriction, and in older records.
    #[serde(default, skip_serializing_if = "is_no_time")]
    pub cost_left_out_ns_low: f64,
    /// The most.
    #[serde(default, skip_serializing_if = "is_no_time")]
    pub cost_left_out_ns_high: f64,
    /// Of the calls left out, those that were let pass at their entry: their time on a CPU is in `user_ns` of the
    /// ledger, not in `calls_on_cpu_ns`.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub calls_passed: u64,
    /// The least that the watch added to each call of every process that it did not watch, measured at start. Both
    /// ends are 0 where it adds nothing to them, and in older records.
    #[serde(default, skip_serializing_if = "is_no_time")]
    pub unwatched_ns_low: f64,
    /// The most.
    #[serde(default, skip_serializing_if = "is_no_time")]
    pub unwatched_ns_high: f64,
    /// Whether watching slowed the calls so much that times cannot be taken at face value.
    #[serde(default)]
    pub times_inflated: bool,
    /// Why a preferred observer could not watch, so that this one did; absent where it was the first choice.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fallback: Option<String>,
    /// Tasks that a watched one made in such a way that this observer could not follow them (CLONE_UNTRACED).
    #[serde(default, skip_serializing_if = "is_zero")]
    pub untraced_tasks: u64,
    /// The time of attaching and calibrating, before the command was released.
    #[serde(default)]
    pub startup_ns: u64,
    /// What the kernel refused, and what this record lacks because of that.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub missing: Vec<MissingFeature>,
}

/// A feature of the kernel that was refused.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MissingFeature {
    /// Its name, as in docs/kernels.md.
    pub feature: String,
    /// The kernel's answer: the name of an error, or the reason.
    pub reason: String,
    /// What is not in the record.
    pub lost: String,
}

impl ObserverUse {
    /// The least and the most that watching added to a call, in ns. A record without a range has one price.
    pub fn cost_range_ns(&self) -> [f64; 2] {
        match self.cost_ns_high > 0.0 {
            true => [self.cost_ns_low, self.cost_ns_high],
            false => [self.cost_ns_per_call; 2],
        }
    }

    /// The least and the most that watching added to a call that was left out, in ns. A record without this range has
    /// that of the others.
    pub fn left_out_range_ns(&self) -> [f64; 2] {
        match self.cost_left_out_ns_high > 0.0 {
            true => [self.cost_left_out_ns_low, self.cost_left_out_ns_high],
            false => self.cost_range_ns(),
        }
    }

    /// The least and the most that the watch added to each call of the processes it did not watch, in ns, where that
    /// is known.
    pub fn unwatched_range_ns(&self) -> Option<[f64; 2]> {
        (self.unwatched_ns_high > 0.0).then_some([self.unwatched_ns_low, self.unwatched_ns_high])
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
fn is_no_time(ns: &f64) -> bool {
    *ns == 0.0
}
