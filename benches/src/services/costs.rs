//! Conversion of runs to ratios: quotients and differences are of runs of the same block, and their median is computed
//! afterwards.

use crate::services::registry::SERVICES;
use crate::services::turns::{Measured, Sample, ServiceName};
use crate::services::watcher::Watcher;

/// Stands for every larger ratio, and for a ratio to a cost that was not above zero in its block: such a block says that
/// the floor was too small to be measured, and counts against the target.
pub(crate) const LARGEST: f64 = 99.0;

/// What a server pays under an observer, block by block.
#[derive(Debug)]
pub(crate) struct Cost {
    pub(crate) service: ServiceName,
    pub(crate) watcher: Watcher,
    pub(crate) samples: Vec<Sample>,
    /// The bare runs of the same blocks.
    pub(crate) bare: Vec<Sample>,
    /// The server's CPU time a request above the bare one, divided by that of two empty programs.
    pub(crate) to_floor: Vec<f64>,
    /// The same, divided by that of bpftrace.
    pub(crate) to_bpftrace: Vec<f64>,
}

impl Cost {
    /// Returns the ratio of a figure to the bare one.
    pub(crate) fn to_bare(&self, of: fn(&Sample) -> f64) -> Vec<f64> {
        self.samples.iter().zip(&self.bare).map(|(sample, bare)| of(sample) / of(bare)).collect()
    }

    /// Returns the share of the throughput that is lost, in percent.
    pub(crate) fn lost(&self) -> Vec<f64> {
        self.to_bare(|sample| sample.rate).iter().map(|ratio| (1.0 - ratio) * 100.0).collect()
    }

    /// Returns one figure of all samples.
    pub(crate) fn all(&self, of: fn(&Sample) -> f64) -> Vec<f64> {
        self.samples.iter().map(of).collect()
    }
}

/// Returns what every server paid under every observer.
pub(crate) fn costs(measured: &Measured) -> Vec<Cost> {
    let of =
        |name: ServiceName| measured.samples.keys().filter(move |(service, _)| *service == name);
    let keys = SERVICES.into_iter().flat_map(|service| of(service.name));
    keys.map(|key| cost(measured, *key)).collect()
}

fn cost(measured: &Measured, (service, watcher): (ServiceName, Watcher)) -> Cost {
    let sample = |watcher, block: usize| {
        measured.samples.get(&(service, watcher)).and_then(|all| *all.get(block)?)
    };
    let mut cost = Cost {
        service,
        watcher,
        samples: Vec::new(),
        bare: Vec::new(),
        to_floor: Vec::new(),
        to_bpftrace: Vec::new(),
    };
    let blocks = measured.samples.get(&(service, watcher)).map_or(0, Vec::len);
    for block in 0..blocks {
        let (Some(own), Some(bare)) = (sample(watcher, block), sample(Watcher::Bare, block)) else {
            continue;
        };
        cost.samples.push(own);
        cost.bare.push(bare);
        let to = |other| {
            let other = sample(other, block)?;
            Some(ratio_of_costs(own.server - bare.server, other.server - bare.server))
        };
        cost.to_floor.extend(to(Watcher::Empty));
        cost.to_bpftrace.extend(to(Watcher::Bpftrace));
    }
    cost
}

pub(crate) fn ratio_of_costs(cost: f64, floor: f64) -> f64 {
    if floor > 0.0 { (cost / floor).min(LARGEST) } else { LARGEST }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn samples(server: [f64; 2]) -> Vec<Option<Sample>> {
        let sample = |server: f64| Sample {
            server,
            all: server,
            machine: server,
            rate: 1e3 / server,
            seen: None,
        };
        server.map(|ns| Some(sample(ns))).to_vec()
    }

    #[test]
    fn ratios_are_of_the_same_block() {
        let of = |watcher| ("go", watcher);
        let all = [
            (of(Watcher::Bare), samples([100.0, 200.0])),
            (of(Watcher::Empty), samples([110.0, 190.0])),
            (of(Watcher::Trace), samples([125.0, 250.0])),
            (of(Watcher::Bpftrace), samples([150.0, 300.0])),
        ];
        let measured = Measured { samples: all.into_iter().collect(), ..Measured::default() };
        let costs = costs(&measured);
        let trace = costs.iter().find(|cost| cost.watcher == Watcher::Trace).unwrap();
        assert_eq!(trace.to_floor, [2.5, LARGEST]);
        assert_eq!(trace.to_bpftrace, [0.5, 0.5]);
        assert_eq!(trace.to_bare(|sample| sample.server), [1.25, 1.25]);
        assert_eq!(trace.lost().iter().map(|lost| lost.round()).collect::<Vec<_>>(), [20.0, 20.0]);
    }
}
