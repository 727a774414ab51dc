//! The rounds of `wait` in this process, and the other results measured with them.

use std::collections::HashMap;
use std::ops::ControlFlow;
use std::os::fd::{AsRawFd, OwnedFd};

use iotomy_host::Skip;
use iotomy_waiters::Events;
use iotomy_waiters::rounds::Ring;

use crate::harness::bounds::SoftLimit;
use crate::harness::{Params, PreparedExperiment, Sample, Watch};
use crate::wait::crew::Crews;
use crate::wait::peers::Peer;
use crate::wait::round::{count, open, refused, round};
use crate::wait::threads::{Shares, share_out};
use crate::wait::{BATCH, SOFT_LIMIT, is_peer, processes};

/// Counts how many descriptors this process can have under a soft limit, by opening them.
fn under(soft_limit: u64) -> Result<f64, Skip> {
    let limit = SoftLimit::set(soft_limit)?;
    let mut opened: Vec<OwnedFd> = Vec::new();
    while opened.len() < 2 * count(soft_limit) {
        match rustix::event::eventfd(0, rustix::event::EventfdFlags::CLOEXEC) {
            Ok(fd) => opened.push(fd),
            Err(_) => break,
        }
    }
    drop(limit);
    // The kernel returns the lowest free number.
    let highest = opened.iter().map(|fd| fd.as_raw_fd()).max().unwrap_or(-1);
    Ok(f64::from(highest + 1))
}

/// The state that the cases share.
pub(super) struct Rounds {
    ring: Ring,
    /// Its number of pairs.
    most: usize,
    /// How many descriptors the process could have under [`SOFT_LIMIT`].
    ceiling: f64,
    _limit: SoftLimit,
    /// How many of them each waiter can watch, once tested.
    watchable: HashMap<String, f64>,
}

impl Rounds {
    /// Opens pairs for the largest of the cases for which one process is enough.
    pub(super) fn new(cases: &[Params]) -> Result<Self, Skip> {
        let ceiling = under(SOFT_LIMIT)?;
        let limit = SoftLimit::raise()?;
        let own = cases.iter().filter(|case| processes(case) == 1 && !is_peer(case));
        let most = count(own.map(|case| case.number("descriptors")).max().unwrap_or(1));
        let ring = Ring::new(most).map_err(refused)?;
        Ok(Self { ring, most, ceiling, watchable: HashMap::new(), _limit: limit })
    }

    /// Returns how many descriptors a waiter can watch; tests it once.
    fn watchable(&mut self, name: &str) -> Result<f64, Skip> {
        if let Some(found) = self.watchable.get(name) {
            return Ok(*found);
        }
        self.ring.take_first(self.most);
        let mut waiter = open(name, self.most)?;
        let found = match self.ring.register(waiter.as_mut()) {
            Ok(()) => self.most,
            Err((watched, _)) => watched,
        };
        self.ring.leave(waiter.as_mut(), found).map_err(refused)?;
        self.watchable.insert(name.to_owned(), found as f64);
        Ok(found as f64)
    }

    /// Makes rounds over the pairs of this process.
    fn own(
        &mut self,
        case: &Params,
        keep: &mut dyn FnMut(Sample) -> ControlFlow<()>,
    ) -> Result<(), Skip> {
        let watchable = self.watchable(case.name("waiter"))?;
        let pairs = count(case.number("descriptors"));
        self.ring.take_first(pairs);
        self.ring.set_partner(case.name("loop") == "block").map_err(refused)?;
        let mut waiter = open(case.name("waiter"), pairs)?;
        let mut events = Events::with_capacity(BATCH);
        let more = vec![("watchable", watchable), ("ceiling", self.ceiling)];
        let ring = &mut self.ring;
        samples(case, more, keep, &mut |of| round(ring, waiter.as_mut(), &mut events, of))
    }
}

/// A function that makes a round with the given numbers of active descriptors and writes, and
/// returns its CPU time and wall time, in ns.
type Round<'a> = &'a mut dyn FnMut((usize, usize)) -> Result<(f64, f64), Skip>;

/// Makes rounds of a case; the first one does not count.
fn samples(
    case: &Params,
    more: Vec<(&'static str, f64)>,
    keep: &mut dyn FnMut(Sample) -> ControlFlow<()>,
    round: Round<'_>,
) -> Result<(), Skip> {
    let of = (count(case.number("active")), count(case.number("writes")));
    round(of)?;
    loop {
        let (cpu, wall) = round(of)?;
        let mut extra = vec![("wall_ns", wall), ("event_ns", cpu / (of.0 + of.1) as f64)];
        extra.push(("processes", processes(case) as f64));
        extra.extend(&more);
        if keep(Sample { value: cpu, extra }).is_break() {
            return Ok(());
        }
    }
}

impl PreparedExperiment for Rounds {
    fn visit(
        &mut self,
        case: &Params,
        keep: &mut dyn FnMut(Sample) -> ControlFlow<()>,
    ) -> Result<(), Skip> {
        if is_peer(case) {
            let mut peer = Peer::start(case.name("waiter"), case.number("descriptors"))?;
            return samples(case, Vec::new(), keep, &mut |of| peer.round(of));
        }
        if processes(case) > 1 {
            let mut crews = Crews::start(case)?;
            return samples(case, Vec::new(), keep, &mut |of| crews.round(of));
        }
        let done = self.own(case, keep);
        let ended = self.ring.set_partner(false);
        if done.is_err() {
            // The next case must not find bytes that were not received.
            self.ring = Ring::new(self.most).map_err(refused)?;
        }
        done.and(ended.map_err(refused))
    }

    fn watch(
        &mut self,
        case: &Params,
        _: &mut dyn Watch,
    ) -> Result<Vec<(&'static str, f64)>, Skip> {
        // The distribution of events depends neither on the loop nor on the other active
        // descriptors.
        let is_here = !is_peer(case) && processes(case) == 1;
        if !is_here || case.name("loop") != "spin" || case.number("active") != 1 {
            return Ok(Vec::new());
        }
        let pairs = count(case.number("descriptors"));
        self.ring.take_first(pairs);
        let waiter = open(case.name("waiter"), pairs)?;
        let Shares { threads, least, most, lost, empty } = share_out(&self.ring, waiter, pairs)?;
        if threads < 2.0 {
            return Ok(vec![("shares", threads)]);
        }
        Ok(vec![
            ("shares", threads),
            ("share_least", least),
            ("share_most", most),
            ("share_lost", lost),
            ("share_empty", empty),
        ])
    }
}
