//! Rounds over more descriptors than one process may have: the pairs are divided among processes,
//! each with its own waiter for its part.
//!
//! The processes share the machine. A byte is sent on to the next pair of the same process; the
//! active descriptors are spaced evenly over all pairs, and writes are assigned to processes in
//! proportion to their active descriptors. Processes make their parts of a round one after another,
//! and a process without active descriptors makes none: the figure is the sum of their times, as if
//! no descriptor of another process were in a set.

use std::io;
use std::os::unix::net::UnixStream;
use std::time::Duration;

use iotomy_host::Skip;
use iotomy_sys::crew::Crew;
use iotomy_waiters::Events;
use iotomy_waiters::rounds::Ring;

use crate::harness::Params;
use crate::harness::bounds::SoftLimit;
use crate::wait::line::{answer, ask};
use crate::wait::round::{count, open, refused, round};
use crate::wait::{BATCH, processes};

/// Only a guard against hanging: opening and registering thousands takes some time on a loaded
/// machine.
const PATIENCE: Duration = Duration::from_secs(120);

/// The processes of a case.
pub(super) struct Crews {
    crew: Crew,
    /// The number of pairs of each process.
    shares: Vec<usize>,
}

/// Returns how many of `all` the member at `at` of `members` has: an even share, with one more for
/// the first members.
fn share(all: usize, members: usize, at: usize) -> usize {
    all / members + usize::from(at < all % members)
}

/// Returns each process's part of a round: active pairs, which are spaced evenly over all, and
/// writes.
fn parts(shares: &[usize], active: usize, writes: usize) -> Vec<(usize, usize)> {
    let all: usize = shares.iter().sum();
    let (space, mut end, mut before) = (all / active.clamp(1, all), 0, 0);
    let mut parts = Vec::new();
    for own in shares {
        end += own;
        // The places 0, space, 2 × space … below the end.
        let so_far = end.div_ceil(space).min(active);
        let written = |active_so_far: usize| writes * active_so_far / active.max(1);
        parts.push((so_far - before, written(so_far) - written(before)));
        before = so_far;
    }
    parts
}

impl Crews {
    pub(super) fn start(case: &Params) -> Result<Self, Skip> {
        let (pairs, members) = (count(case.number("descriptors")), count(processes(case)));
        let shares: Vec<usize> = (0..members).map(|at| share(pairs, members, at)).collect();
        let (waiter, by_partner) = (case.name("waiter"), case.name("loop") == "block");
        let work = |at: usize, mut line: UnixStream| {
            // The requester is gone, or has received the reason why there is no answer.
            let _ = serve(&mut line, waiter, shares[at], by_partner);
        };
        let crew = Crew::start(members, &work).map_err(|e| Skip::refused("fork", e))?;
        for line in crew.lines() {
            line.set_read_timeout(Some(PATIENCE)).map_err(|e| Skip::refused("setsockopt", e))?;
        }
        Ok(Self { crew, shares })
    }

    /// Makes a round; returns the sums of its parts' CPU time and wall time.
    pub(super) fn round(&mut self, of: (usize, usize)) -> Result<(f64, f64), Skip> {
        let (mut cpu, mut wall) = (0.0, 0.0);
        let parts = parts(&self.shares, of.0, of.1);
        for (line, part) in self.crew.lines().iter().zip(parts).filter(|(_, part)| part.0 > 0) {
            let took = ask(line, [part.0 as u64, part.1 as u64])
                .map_err(|e| Skip(format!("a part of a round: {e}")))?;
            (cpu, wall) = (cpu + took.0, wall + took.1);
        }
        Ok((cpu, wall))
    }
}

/// The member's side: opens its pairs, and makes a round for each request.
fn serve(line: &mut UnixStream, waiter: &str, pairs: usize, by_partner: bool) -> io::Result<()> {
    let prepare = || {
        let limit = SoftLimit::raise()?;
        let mut ring = Ring::new(pairs).map_err(refused)?;
        ring.set_partner(by_partner).map_err(refused)?;
        Ok((ring, open(waiter, pairs)?, Events::with_capacity(BATCH), limit))
    };
    answer(line, prepare, |(ring, waiter, events, _), [active, writes]| {
        round(ring, waiter.as_mut(), events, (count(active), count(writes)))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_all_there_is_and_as_even_as_the_descriptors() {
        let shares: Vec<usize> = (0..4).map(|at| share(10, 4, at)).collect();
        assert_eq!(shares, [3, 3, 2, 2]);
        assert_eq!(parts(&shares, 1, 100), [(1, 100), (0, 0), (0, 0), (0, 0)]);
        // Places 0, 2, 4, 6 and 8.
        assert_eq!(parts(&shares, 5, 10), [(2, 4), (1, 2), (1, 2), (1, 2)]);
        assert_eq!(parts(&shares, 10, 7), [(3, 2), (3, 2), (2, 1), (2, 2)]);
        assert_eq!(parts(&shares, 3, 0).iter().map(|part| part.0).sum::<usize>(), 3);
    }
}
