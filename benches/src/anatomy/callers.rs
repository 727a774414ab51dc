//! The overhead that `--user-stacks` adds to samples, measured in turns of one process that two
//! watches observe: one unwinds user stacks, the other does not. In each turn one of the two takes
//! samples and the other is idle. Both are attached all the time, so their other costs are the same
//! in all turns.

use std::path::Path;

use anyhow::Result;
use iotomy_record::{Anatomy, StackKind};

use super::events::Watch;
use super::turns::{each_us, so_often};
use super::work::Work;
use crate::child::Signals;
use crate::order::Order;
use crate::run::progress;
use crate::stats::{Estimate, estimate};
use crate::tables::{digits, interval};

/// The highest rate that iotomy accepts.
const HIGHEST: u32 = 50_000;

/// The measurements.
pub(crate) struct Measured {
    /// On-CPU ns of one repetition, without and with user stacks, pair by pair.
    pub(crate) ns: [Vec<f64>; 2],
    pub(crate) stacks: Stacks,
}

/// The user stacks that were unwound; they determine the overhead.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Stacks {
    rate: u32,
    /// Mean number of functions in a stack.
    functions: f64,
    /// Share of the stacks that end after the innermost one or two functions.
    cut_short_percent: f64,
}

/// Returns ten times the rate, or the highest permitted rate if that is lower. The overhead of a sample stays the same,
/// and the time added by all samples becomes larger than the difference between turns.
pub(crate) fn dense(rate: u32) -> u32 {
    let most = std::fs::read_to_string("/proc/sys/kernel/perf_event_max_sample_rate");
    let most = most.ok().and_then(|text| text.trim().parse().ok()).unwrap_or(rate);
    rate.saturating_mul(10).min(most).min(HIGHEST).max(rate)
}

/// Measures this many pairs of turns, each in random order.
///
/// # Errors
/// When a watch fails to start, or the work ends.
pub(crate) fn measure(
    (iotomy, rate): (&Path, u32),
    signals: &Signals,
    folder: &Path,
    work: Work,
    (pairs, order): (u32, &mut Order),
) -> Result<Measured> {
    let mut worker = work.start_in_turns(folder)?;
    let records = ["without.json", "with.json"].map(|name| folder.join(name));
    let without = Watch::begin(iotomy, worker.pid(), (rate, &[]), &records[0])?;
    // Events that are enabled while others are being opened would not run alone.
    without.events.switch(false)?;
    let with = Watch::begin(iotomy, worker.pid(), (rate, &["--user-stacks"]), &records[1])?;
    with.events.switch(false)?;
    let watches = [without, with];
    let times = so_often(&mut worker)?;
    let mut ns: [Vec<f64>; 2] = Default::default();
    for pair in 0..pairs {
        progress(&format!("user stacks, {}: pair {} of {pairs}", work.name(), pair + 1));
        signals.check()?;
        let first = usize::from(order.coin());
        for side in [first, 1 - first] {
            let events = &watches[side].events;
            events.switch(true)?;
            let took = worker.turn(times);
            events.switch(false)?;
            ns[side].push(took? / times as f64);
        }
    }
    let [without, with] = watches;
    without.end()?;
    Ok(Measured { ns, stacks: Stacks::from_anatomy(&with.end()?, rate) })
}

impl Stacks {
    fn from_anatomy(record: &Anatomy, rate: u32) -> Self {
        let user = record.sampling.user_stacks.unwrap_or_default();
        let sampled = record.stacks.iter().filter(|stack| stack.kind == StackKind::OnCpu);
        let functions = sampled.map(|stack| stack.samples * stack.user.len() as u64);
        let unwound = user.samples.max(1) as f64;
        Self {
            rate,
            functions: functions.sum::<u64>() as f64 / unwound,
            cut_short_percent: user.cut_short as f64 / unwound * 100.0,
        }
    }

    /// Returns the figures by name.
    pub(crate) fn extra(self) -> [(&'static str, f64); 3] {
        [
            ("rate", f64::from(self.rate)),
            ("functions_a_stack", self.functions),
            ("cut_short_percent", self.cut_short_percent),
        ]
    }

    /// Describes the overhead of the stacks when they add this many percent.
    pub(crate) fn text(self, added_percent: &[f64]) -> String {
        let us = |percent| each_us(percent, self.rate);
        let found = estimate(added_percent).map_or_else(String::new, |found| {
            let Estimate { median, low, high } = found;
            interval(Estimate { median: us(median), low: us(low), high: us(high) }, 1)
        });
        format!(
            "at {} samples a second each costs {found} µs more; a stack has {} functions in the mean, \
             and {} % end after the innermost or two",
            self.rate,
            digits(self.functions, 1),
            digits(self.cut_short_percent, 0),
        )
    }
}
