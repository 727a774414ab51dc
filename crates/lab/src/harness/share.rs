//! Shares of a plan: which of N shards runs a case, computed from the plan alone, so that every
//! machine computes the same.
//!
//! The invariant: cases that differ only in the axis of lines (the waiters at one number of
//! descriptors) are in one shard. Claims compare these visit by visit, and only visits of one shard
//! are made soon after each other.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::str::FromStr;

use iotomy_record::{Shard, Sweep, SweepAxis};
use serde_json::json;

use super::{ExperimentDeclaration, Params};

/// Shards of a plan, at most: far more than there are jobs in an array.
const MOST: u64 = 100_000;

/// One of a number of shares, as `--shard` accepts it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Share {
    /// Which, from 1.
    pub index: u64,
    /// The number of shares.
    pub of: u64,
}

impl FromStr for Share {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let numbers = text.split_once('/').and_then(|(index, of)| {
            let number = |text: &str| match text.bytes().all(|byte| byte.is_ascii_digit()) {
                true => text.parse::<u64>().ok(),
                false => None,
            };
            Some((number(index)?, number(of)?))
        });
        let Some((index, of)) = numbers else {
            return Err("invalid shard: expected I/N, as in 2/5".to_owned());
        };
        if !(1..=MOST).contains(&of) {
            return Err(format!("invalid number of shards {of}: expected 1 to {MOST}"));
        }
        if !(1..=of).contains(&index) {
            return Err(format!("invalid shard {index} of {of}: expected 1 to {of}"));
        }
        Ok(Self { index, of })
    }
}

impl Share {
    /// Returns the share's cases, in their order.
    pub(crate) fn select(self, lines: &str, cases: Vec<Params>) -> Vec<Params> {
        let shards = shards(lines, &cases, self.of);
        let mine = cases.into_iter().zip(shards).filter(|(_, shard)| *shard == self.index);
        mine.map(|(case, _)| case).collect()
    }
}

/// Returns the number of the shard of each case, from 1 to `of`. The next largest group goes to the
/// shard that has the fewest cases, so that two shards differ by one group at most.
pub(crate) fn shards(lines: &str, cases: &[Params], of: u64) -> Vec<u64> {
    let mut points: BTreeMap<Params, Vec<usize>> = BTreeMap::new();
    for (at, case) in cases.iter().enumerate() {
        let mut point = case.clone();
        point.0.remove(lines);
        points.entry(point).or_default().push(at);
    }
    let mut groups: Vec<Vec<usize>> = points.into_values().collect();
    // Of two groups of one size the one that the plan has first.
    groups.sort_by_key(|members| (Reverse(members.len()), members.first().copied()));
    let used = usize::try_from(of).unwrap_or(usize::MAX).min(groups.len());
    let mut loads = vec![0; used];
    let mut shards = vec![0; cases.len()];
    for members in groups {
        let least = loads.iter().enumerate().min_by_key(|(_, load)| **load);
        let shard = least.map_or(0, |(shard, _)| shard);
        loads[shard] += members.len();
        for at in members {
            shards[at] = shard as u64 + 1;
        }
    }
    shards
}

/// Returns a digest of a plan: of the experiment, its cases, and the options that bound them. Two
/// shards with the same digest are of the same plan.
pub(crate) fn digest(
    declared: &ExperimentDeclaration,
    axes: &[SweepAxis],
    cases: &[Params],
    (size, max_time_ns): (&str, Option<u64>),
) -> String {
    let cases: Vec<_> = cases.iter().map(|case| &case.0).collect();
    let plan = json!({
        "schema": Sweep::SCHEMA, "experiment": declared.name, "metric": declared.metric,
        "unit": declared.unit, "lines": declared.lines, "axes": axes, "cases": cases, "size": size,
        "max_time_ns": max_time_ns,
    });
    // FNV-1a: it tells plans apart by mistake, not by malice.
    let hash = plan.to_string().bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    format!("{hash:016x}")
}

/// Whether two records are of the same share of the same plan.
pub fn is_same_share(one: &Sweep, other: &Sweep) -> bool {
    fn plan(of: &Sweep) -> (&str, &[SweepAxis], &str, Option<u64>, Option<&Shard>) {
        (&of.experiment, &of.axes, &of.run.size, of.run.max_time_ns, of.run.shard.as_ref())
    }
    let params = |of: &Sweep| of.cases.iter().map(|case| case.params.clone()).collect::<Vec<_>>();
    plan(one) == plan(other) && params(one) == params(other)
}

#[cfg(test)]
#[path = "share_tests.rs"]
mod tests;
