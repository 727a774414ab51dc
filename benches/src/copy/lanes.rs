//! Rounds of runs: every contender runs once in each block, in random order, followed by the
//! evaluation of their times. Ratios are computed within a block, and their median is computed
//! afterwards, so that drift from block to block is in both figures and cancels out.

use std::time::{Duration, Instant};

use anyhow::Result;

use crate::child::Interrupted;
use crate::order::Order;
use crate::stats::{Estimate, FEWEST, estimate, median};

/// Number of failures after which a contender is no longer measured.
const PATIENCE: usize = 2;

/// A race that exceeds this duration ends with the fewest blocks that allow an interval.
const LONG: Duration = Duration::from_secs(100);

/// One run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Run {
    pub(crate) wall_ns: f64,
    /// User and system time of the contender.
    pub(crate) cpu_ns: f64,
}

/// The role of a contender.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Role {
    /// `iotomy copy` with its defaults.
    #[default]
    Ours,
    /// `iotomy copy` with a requested mover.
    Mover,
    /// Another program.
    Peer,
    /// No contender: the far ends connected directly.
    Floor,
}

/// All runs of a contender, by block.
#[derive(Debug, Clone, Default)]
pub(crate) struct Lane {
    pub(crate) name: String,
    pub(crate) role: Role,
    pub(crate) runs: Vec<Option<Run>>,
    /// The reason why the contender is not, or no longer, measured.
    pub(crate) skipped: Option<String>,
}

impl Lane {
    pub(crate) fn walls(&self) -> Vec<f64> {
        self.runs.iter().flatten().map(|run| run.wall_ns).collect()
    }

    pub(crate) fn cpus(&self) -> Vec<f64> {
        self.runs.iter().flatten().map(|run| run.cpu_ns).collect()
    }

    pub(crate) fn new(name: String, role: Role) -> Self {
        Self { name, role, ..Self::default() }
    }

    /// Returns the median wall time, unless the contender is no longer measured.
    pub(crate) fn wall(&self) -> Option<f64> {
        if self.skipped.is_some() { None } else { median(&self.walls()) }
    }

    /// Returns the ratio of this lane's figure to another lane's, block by block.
    pub(crate) fn ratio(&self, to: &Self, figure: fn(&Run) -> f64) -> Option<Estimate> {
        let pairs = self.runs.iter().zip(&to.runs);
        let ratios: Vec<f64> = pairs
            .filter_map(|(run, other)| Some(figure(run.as_ref()?) / figure(other.as_ref()?)))
            .collect();
        estimate(&ratios)
    }
}

/// Returns the fastest peer, by its median.
pub(crate) fn best_peer(lanes: &[Lane]) -> Option<&Lane> {
    let timed = |lane: &&Lane| lane.role == Role::Peer && lane.wall().is_some();
    let wall = |lane: &Lane| lane.wall().unwrap_or(f64::INFINITY);
    lanes.iter().filter(timed).min_by(|a, b| wall(a).total_cmp(&wall(b)))
}

/// Makes up to `blocks` blocks after a first round that is checked and not counted. `run` makes the run of a lane,
/// given its number and whether to check the result.
///
/// # Errors
/// Only [`Interrupted`]: a contender that fails is skipped, with the reason.
pub(crate) fn race(
    lanes: &mut [Lane],
    blocks: u32,
    order: &mut Order,
    mut run: impl FnMut(usize, bool) -> Result<Run>,
) -> Result<()> {
    let mut sequence: Vec<usize> = (0..lanes.len()).collect();
    for &number in &sequence {
        if lanes[number].skipped.is_none()
            && let Err(error) = run(number, true)
        {
            lanes[number].skipped = Some(reason(error)?);
        }
    }
    let began = Instant::now();
    for block in 0..blocks as usize {
        if block >= FEWEST && began.elapsed() > LONG {
            break;
        }
        order.shuffle(&mut sequence);
        for &number in &sequence {
            let lane = &mut lanes[number];
            if lane.skipped.is_some() {
                continue;
            }
            match run(number, false) {
                Ok(run) => lane.runs.push(Some(run)),
                Err(error) => {
                    let reason = reason(error)?;
                    lane.runs.push(None);
                    if lane.runs.iter().filter(|run| run.is_none()).count() >= PATIENCE {
                        lane.skipped = Some(reason);
                    }
                }
            }
        }
    }
    Ok(())
}

fn reason(error: anyhow::Error) -> Result<String> {
    if error.is::<Interrupted>() { Err(error) } else { Ok(format!("{error:#}")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lane(name: &str, role: Role, walls: &[f64]) -> Lane {
        let run = |wall_ns: &f64| Some(Run { wall_ns: *wall_ns, cpu_ns: 1.0 });
        Lane { name: name.to_owned(), role, runs: walls.iter().map(run).collect(), skipped: None }
    }

    #[test]
    fn ratios_are_those_of_the_block() {
        let mut ours = lane("ours", Role::Ours, &[10.0, 20.0, 30.0]);
        let peer = lane("peer", Role::Peer, &[20.0, 20.0, 60.0]);
        ours.runs[1] = None;
        let found = ours.ratio(&peer, |run| run.wall_ns).unwrap();
        assert_eq!((found.median, found.low, found.high), (0.5, 0.5, 0.5));
    }

    #[test]
    fn the_best_peer_is_none_of_ours_and_was_measured() {
        let mut broken = lane("broken", Role::Peer, &[1.0]);
        broken.skipped = Some("it broke".to_owned());
        let lanes = [lane("ours", Role::Ours, &[2.0]), lane("slow", Role::Peer, &[9.0]), broken];
        assert_eq!(best_peer(&lanes).unwrap().name, "slow");
        assert!(best_peer(&lanes[..1]).is_none());
    }

    #[test]
    fn who_fails_is_skipped_and_the_others_go_on() {
        let mut lanes = vec![lane("good", Role::Ours, &[]), lane("bad", Role::Peer, &[])];
        lanes.push(lane("tired", Role::Peer, &[]));
        let mut tired = 0;
        let done = race(&mut lanes, 5, &mut Order::new(1), |number, checked| match number {
            1 => anyhow::bail!("no such file"),
            2 if !checked && {
                tired += 1;
                tired > 3
            } =>
            {
                anyhow::bail!("tired")
            }
            _ => Ok(Run { wall_ns: 1.0, cpu_ns: 1.0 }),
        });
        done.unwrap();
        assert_eq!(lanes[0].runs.len(), 5);
        assert_eq!(lanes[1].skipped.as_deref(), Some("no such file"));
        assert!(lanes[1].runs.is_empty());
        assert_eq!(lanes[2].runs.iter().flatten().count(), 3);
        assert_eq!(lanes[2].skipped.as_deref(), Some("tired"));
    }

    #[test]
    fn a_signal_ends_the_race() {
        let mut lanes = [lane("one", Role::Ours, &[])];
        let interrupted = |_, _| Err(Interrupted(2).into());
        assert!(race(&mut lanes, 1, &mut Order::new(1), interrupted).is_err());
    }
}
