//! Conversion of runs to overheads and ratios: differences and quotients are computed within a
//! block, and their median is computed afterwards.

use crate::stats::{Estimate, estimate, median};
use crate::trace::observer::{Length, Observer};
use crate::trace::rounds::{Item, Measured, Sample};
use crate::trace::subject::Subject;

/// The overhead of observing a subject.
#[derive(Debug, Clone)]
pub(crate) struct Cost {
    pub(crate) subject: Subject,
    pub(crate) observer: Observer,
    pub(crate) length: Length,
    pub(crate) calls: u64,
    /// ns per call of all runs.
    pub(crate) all_runs: Vec<f64>,
    /// ns per call of the fastest run of each block, and of the bare runs beside them.
    pub(crate) times: Vec<f64>,
    pub(crate) bare: Vec<f64>,
    /// ns per call above the bare run.
    pub(crate) costs: Vec<f64>,
    pub(crate) to_empty: Vec<f64>,
    pub(crate) to_bpftrace: Vec<f64>,
    /// The smallest share of the actual calls that the observer counted.
    pub(crate) seen: Option<f64>,
    /// iotomy's own figures: ns from entry to return of a call, and its measured overhead per call.
    pub(crate) inside: Vec<f64>,
    pub(crate) prices: Vec<f64>,
}

impl Cost {
    /// Returns the slowdown compared with bare runs, as the median over the blocks.
    pub(crate) fn slower(&self) -> Option<f64> {
        let ratios: Vec<f64> =
            self.times.iter().zip(&self.bare).map(|(time, bare)| time / bare).collect();
        median(&ratios)
    }

    pub(crate) fn cost(&self) -> Option<Estimate> {
        estimate(&self.costs)
    }
}

/// Returns the overheads of every measured observer, and those of the bare runs, which are 0.
pub(crate) fn costs(measured: &Measured) -> Vec<Cost> {
    let mut costs: Vec<Cost> = measured.samples.keys().map(|item| cost(measured, *item)).collect();
    costs.retain(|cost| !cost.times.is_empty());
    costs.sort_by_key(|cost| (cost.subject, cost.observer, cost.length));
    costs
}

/// Returns the sample of an item in a block, if the run succeeded.
fn sample(measured: &Measured, item: Item, block: usize) -> Option<Sample> {
    measured.samples.get(&item)?.get(block).copied()?
}

/// Returns the overhead per call of an item in a block.
fn in_block(measured: &Measured, item: Item, block: usize) -> Option<f64> {
    let bare = Item { observer: Observer::Bare, ..item };
    let bare = sample(measured, bare, block)?;
    Some(sample(measured, item, block)?.ns_per_call - bare.ns_per_call)
}

fn cost(measured: &Measured, item: Item) -> Cost {
    let Item { subject, observer, length } = item;
    let calls = measured.calls.get(&(subject, length)).copied().unwrap_or(0);
    let mut cost = Cost {
        subject,
        observer,
        length,
        calls,
        all_runs: measured.all_runs.get(&item).cloned().unwrap_or_default(),
        times: Vec::new(),
        bare: Vec::new(),
        costs: Vec::new(),
        to_empty: Vec::new(),
        to_bpftrace: Vec::new(),
        seen: None,
        inside: Vec::new(),
        prices: Vec::new(),
    };
    let (_, _, expected) = subject.counted(calls);
    let other = |observer: Observer| Item { subject, observer, length: observer.length() };
    for block in 0..measured.samples.get(&item).map_or(0, Vec::len) {
        let bare = Item { observer: Observer::Bare, ..item };
        let (Some(run), Some(bare)) =
            (sample(measured, item, block), sample(measured, bare, block))
        else {
            continue;
        };
        cost.times.push(run.ns_per_call);
        cost.bare.push(bare.ns_per_call);
        let own = run.ns_per_call - bare.ns_per_call;
        cost.costs.push(own);
        let ratio = |to: Observer| in_block(measured, other(to), block).map(|cost| own / cost);
        cost.to_empty.extend(ratio(Observer::Empty));
        cost.to_bpftrace.extend(ratio(Observer::Bpftrace));
        if let Some(seen) = run.seen {
            let share = seen.calls as f64 / expected.max(1) as f64;
            cost.seen = Some(cost.seen.map_or(share, |least: f64| least.min(share)));
            if let Some(by_iotomy) = seen.by_iotomy {
                cost.inside.push(by_iotomy.ns_per_call);
                cost.prices.push(by_iotomy.price_ns);
            }
        }
    }
    cost
}

#[cfg(test)]
mod tests {
    use super::*;

    fn measured(observer: Observer, times: &[Option<f64>]) -> (Item, Vec<Option<Sample>>) {
        let item = Item { subject: Subject::Getppid, observer, length: observer.length() };
        let sample =
            |time: &Option<f64>| time.map(|ns_per_call| Sample { ns_per_call, seen: None });
        (item, times.iter().map(sample).collect())
    }

    #[test]
    fn costs_and_ratios_are_those_of_the_block() {
        let samples = [
            measured(Observer::Bare, &[Some(100.0), Some(200.0), Some(150.0)]),
            measured(Observer::Empty, &[Some(200.0), Some(300.0), Some(250.0)]),
            measured(Observer::Trace, &[Some(300.0), None, Some(450.0)]),
        ];
        let measured = Measured { samples: samples.into_iter().collect(), ..Measured::default() };
        let costs = costs(&measured);
        let trace = costs.iter().find(|cost| cost.observer == Observer::Trace).unwrap();
        assert_eq!(trace.costs, [200.0, 300.0]);
        assert_eq!(trace.to_empty, [2.0, 3.0]);
        assert!(trace.to_bpftrace.is_empty());
        assert_eq!(trace.slower(), Some(3.0));
    }
}
