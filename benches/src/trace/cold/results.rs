//! The overheads as text, as a record, and as rows.

use super::subject::{DESCRIPTORS, THREADS, TIMED};
use super::{BARE, Cold, ColdObserver, PEER};
use crate::record::Case;
use crate::services::costs::ratio_of_costs;
use crate::stats::{Estimate, estimate, median, ratio};
use crate::summary::raw::Raw;
use crate::summary::{Row, on, samples, shown};
use crate::tables::{digits, interval, table};

const SUBJECT: &str = "cold";
const TIME: &str = "time_per_cold_call";
const COST: &str = "cost_per_cold_call";

impl Cold {
    fn named(&self, name: &str) -> Option<&ColdObserver> {
        self.0.iter().find(|one| one.name == name)
    }

    /// Returns the overheads of two observers in the blocks in which both were measured.
    fn costs(&self, one: &ColdObserver, other: &ColdObserver) -> [Vec<f64>; 2] {
        let bare = self.named(BARE).map_or(&[][..], |bare| &bare.times);
        let blocks = bare.iter().zip(&one.times).zip(&other.times);
        let both = blocks.filter_map(|((bare, one), other)| {
            let bare = (*bare)?;
            Some(((*one)? - bare, (*other)? - bare))
        });
        let (costs, others) = both.unzip();
        [costs, others]
    }

    /// Returns a table of the observers; the skipped ones are listed below it.
    pub(crate) fn text(&self) -> String {
        let titles = ["observer", "ns a call", "cost, ns a call [95 %]", "÷ bpftrace [95 %]"];
        let mut rows = vec![titles.map(str::to_owned).to_vec()];
        let mut skipped = String::new();
        let formatted = |samples: &[f64], decimals| {
            estimate(samples).map_or_else(String::new, |found| interval(found, decimals))
        };
        for one in &self.0 {
            if let Some(reason) = &one.skipped {
                skipped += &format!("\nskipped: {} on cold calls: {reason}\n", one.name);
            }
            let times: Vec<f64> = one.times.iter().flatten().copied().collect();
            let Some(time) = median(&times) else { continue };
            let (mut cost, mut to_peer) = (String::new(), String::new());
            if one.name != BARE {
                let [costs, _] = self.costs(one, one);
                cost = formatted(&costs, 0);
                to_peer = formatted(&self.to_peer(one), 2);
            }
            rows.push(vec![one.name.to_owned(), digits(time, 0), cost, to_peer]);
        }
        table(&rows, 1) + &skipped
    }

    fn to_peer(&self, one: &ColdObserver) -> Vec<f64> {
        let Some(peer) = self.named(PEER).filter(|_| one.name != PEER) else {
            return Vec::new();
        };
        let [costs, others] = self.costs(one, peer);
        costs.iter().zip(others).map(|(cost, other)| ratio_of_costs(*cost, other)).collect()
    }

    /// Returns every figure of the raw record.
    pub(crate) fn cases(&self) -> Vec<Case> {
        let mut cases = Vec::new();
        for one in &self.0 {
            let params = [("subject", SUBJECT), ("observer", one.name)];
            if let Some(reason) = &one.skipped {
                cases.push(Case::new(&params, TIME, "ns", &[]).skipped_for(reason));
            }
            let times: Vec<f64> = one.times.iter().flatten().copied().collect();
            cases.push(Case::new(&params, TIME, "ns", &times));
            if one.name != BARE {
                let [costs, _] = self.costs(one, one);
                cases.push(Case::new(&params, COST, "ns", &costs));
            }
        }
        cases
    }
}

/// Describes how cold calls are made.
pub(crate) fn method() -> String {
    format!(
        "Cold calls are those of a process with {threads} threads and {DESCRIPTORS} descriptors of UNIX sockets on one CPU, under \
         `chrt --fifo 1`. A request is handed on from thread to thread, each of which asks the next one, and the answers come \
         back. Before each write the thread walks through twice as much memory as the CPU's own caches hold, of a piece that \
         is twice as large as the last-level cache; in the time between two uses of a thread's row, most often several times \
         that cache is walked through, and eight times as much between two uses of a descriptor's. What is between two walks \
         is timed: a write, a read that blocks, and the switch to the next thread. A run first hands requests on without walks, \
         which makes the rows. Its figure is half the median of {TIMED} such times; a block has one run of each observer. An \
         observer that counted fewer writes than there were, or lost anything, has failed. `iotomy trace` counts by file \
         also without `--files`, which only shows it.",
        threads = THREADS + 1
    )
}

/// Returns the rows of the observers that were measured.
pub(crate) fn rows(raw: &Raw) -> Vec<Row> {
    let beside = |name: &str| {
        let found = costs(raw, name).zip(costs(raw, PEER));
        let found = found.and_then(|(cost, peer)| ratio(cost, peer));
        Row::beside(format!("cold calls: cost of {name}"), PEER, found, 2, raw)
    };
    observers(raw).into_iter().filter(|name| *name != PEER).map(beside).collect()
}

/// Formats a table of the overheads; empty if they were not measured.
pub(crate) fn block(raw: &Raw) -> String {
    let observers = observers(raw);
    if observers.is_empty() {
        return String::new();
    }
    let params = [("subject", SUBJECT), ("observer", BARE)];
    let bare = samples(&raw.sweep, &params, TIME).and_then(median);
    let titles = ["observer", "cold call", "÷ bpftrace"];
    let mut rows = vec![titles.map(str::to_owned).to_vec()];
    let text = |found: Option<Estimate>, decimals| {
        found.map_or_else(String::new, |found| shown(found, decimals))
    };
    for name in observers {
        let own = costs(raw, name);
        let over = own.zip(costs(raw, PEER)).filter(|_| name != PEER);
        let over = over.and_then(|(cost, peer)| ratio(cost, peer));
        let shown_name =
            if name.starts_with("iotomy") { format!("`{name}`") } else { name.to_owned() };
        rows.push(vec![shown_name, text(own.and_then(estimate), 0), text(over, 2)]);
    }
    format!(
        "\nThe same where a call finds what the observer keeps out of the caches: of a process with {} threads and {DESCRIPTORS} \
         descriptors that walks through memory between its calls, which take {} ns untraced, with their switches.\n\n{}",
        THREADS + 1,
        bare.map_or_else(|| "?".to_owned(), |ns| format!("{ns:.0}")),
        table(&rows, 1)
    )
}

fn costs<'a>(raw: &'a Raw, observer: &str) -> Option<&'a [f64]> {
    samples(&raw.sweep, &[("subject", SUBJECT), ("observer", observer)], COST)
}

fn observers(raw: &Raw) -> Vec<&str> {
    let cases = raw.sweep.cases.iter();
    let measured = cases.filter(|case| case.metric == COST && !case.samples.is_empty());
    measured.map(|case| on(case, "observer")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(name: &'static str, times: &[Option<f64>]) -> ColdObserver {
        ColdObserver { name, times: times.to_vec(), skipped: None }
    }

    #[test]
    fn costs_and_ratios_are_those_of_the_block() {
        let cold = Cold(vec![
            one(BARE, &[Some(1000.0), Some(1200.0), Some(1100.0)]),
            one(PEER, &[Some(1100.0), Some(1300.0), None]),
            one("iotomy trace", &[Some(1400.0), Some(1500.0), Some(1700.0)]),
        ]);
        let [costs, _] = cold.costs(&cold.0[2], &cold.0[2]);
        assert_eq!(costs, [400.0, 300.0, 600.0]);
        assert_eq!(cold.to_peer(&cold.0[2]), [4.0, 3.0]);
        assert!(cold.to_peer(&cold.0[1]).is_empty());
        assert_eq!(cold.cases().len(), 5);
    }
}
