//! Rounds over more descriptors than one process may have: the pairs are divided among processes,
//! each with its own waiter for its part.
//!
//! The processes share the machine. A byte is sent on to the next pair of the same process; the
//! active descriptors are spaced evenly over all pairs, and writes are assigned to processes in
//! proportion to their active descriptors. Processes make their parts of a round one after another,
//! and a process without active descriptors makes none: the figure is the sum of their times, as if
//! no descriptor of another process were in a set.

use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use iotomy_host::Skip;
use iotomy_sys::crew::Crew;
use iotomy_waiters::Events;
use iotomy_waiters::rounds::Ring;

use crate::harness::Params;
use crate::harness::bounds::SoftLimit;
use crate::wait::rounds::{count, open, refused, round};
use crate::wait::{BATCH, processes};

/// Only a guard against hanging: opening and registering thousands takes some time on a loaded
/// machine.
const PATIENCE: Duration = Duration::from_secs(120);

/// Bytes of a request, and of an answer: two words.
const WORDS: usize = 16;

/// The first word of an answer if the round failed; the second word is the length of the reason,
/// which follows.
const FAILED: u64 = u64::MAX;

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
            let took = ask(line, part).map_err(|e| Skip(format!("a part of a round: {e}")))?;
            (cpu, wall) = (cpu + took.0, wall + took.1);
        }
        Ok((cpu, wall))
    }
}

fn ask(mut line: &UnixStream, part: (usize, usize)) -> io::Result<(f64, f64)> {
    line.write_all(&words([part.0 as u64, part.1 as u64]))?;
    match read(&mut line)? {
        [FAILED, length] => {
            let mut reason = String::new();
            line.take(length).read_to_string(&mut reason)?;
            Err(io::Error::other(reason))
        }
        [cpu, wall] => Ok((f64::from_bits(cpu), f64::from_bits(wall))),
    }
}

fn words(of: [u64; 2]) -> [u8; WORDS] {
    let mut bytes = [0; WORDS];
    bytes[..8].copy_from_slice(&of[0].to_ne_bytes());
    bytes[8..].copy_from_slice(&of[1].to_ne_bytes());
    bytes
}

fn read(line: &mut impl Read) -> io::Result<[u64; 2]> {
    let mut bytes = [[0; 8]; 2];
    line.read_exact(bytes.as_flattened_mut())?;
    Ok(bytes.map(u64::from_ne_bytes))
}

/// The member's side: opens its pairs, and makes a round for each request.
fn serve(line: &mut UnixStream, waiter: &str, pairs: usize, by_partner: bool) -> io::Result<()> {
    let made = |line: &mut UnixStream| -> Result<io::Result<()>, Skip> {
        let _limit = SoftLimit::raise()?;
        let mut ring = Ring::new(pairs).map_err(refused)?;
        ring.set_partner(by_partner).map_err(refused)?;
        let mut waiter = open(waiter, pairs)?;
        let mut events = Events::with_capacity(BATCH);
        loop {
            let [active, writes] = match read(line) {
                Ok(asked) => asked,
                Err(error) => return Ok(Err(error)),
            };
            let of = (count(active), count(writes));
            let (cpu, wall) = round(&mut ring, waiter.as_mut(), &mut events, of)?;
            if let Err(error) = line.write_all(&words([cpu.to_bits(), wall.to_bits()])) {
                return Ok(Err(error));
            }
        }
    };
    match made(line) {
        Ok(ended) => ended,
        Err(Skip(reason)) => {
            line.write_all(&words([FAILED, reason.len() as u64]))?;
            line.write_all(reason.as_bytes())
        }
    }
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
