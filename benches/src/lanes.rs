//! Contenders that make rounds on request: one turn of each in every block, in random order. Ratios are computed within
//! a block, so that drift from block to block is in both figures.

use anyhow::{Context, Result};

use crate::child::Signals;
use crate::order::Order;
use crate::run::progress;

/// Blocks after which all contenders are restarted, in random order: the memory placement of a process changes the
/// times by a few hundredths, which says nothing about the contender.
const BLOCKS_A_LIFE: u32 = 3;

/// The times of one contender per round, one figure per block.
#[derive(Debug, Clone, Default)]
pub struct Lane {
    /// The contender's name.
    pub name: String,
    /// CPU time.
    pub cpu_ns: Vec<f64>,
    /// Wall time.
    pub wall_ns: Vec<f64>,
}

/// Runs `blocks` turns of the contenders with these names. `start` starts a contender by its index; `turn` runs its
/// rounds and returns their CPU time and wall time.
///
/// # Errors
/// When a contender cannot be started or fails, or when a signal has arrived.
pub fn lanes<Running>(
    about: &str,
    names: impl Iterator<Item = String>,
    blocks: u32,
    (order, signals): (&mut Order, &Signals),
    start: impl Fn(usize) -> Result<Running>,
    turn: impl Fn(&mut Running) -> Result<(f64, f64)>,
) -> Result<Vec<Lane>> {
    let mut lanes: Vec<Lane> = names.map(|name| Lane { name, ..Lane::default() }).collect();
    let mut running: Vec<Option<Running>> = lanes.iter().map(|_| None).collect();
    let mut turns: Vec<usize> = (0..lanes.len()).collect();
    for block in 0..blocks {
        progress(&format!("{about}block {} of {blocks}", block + 1));
        if block % BLOCKS_A_LIFE == 0 {
            running.fill_with(|| None);
            order.shuffle(&mut turns);
            for at in &turns {
                running[*at] = Some(start(*at)?);
            }
        }
        order.shuffle(&mut turns);
        for at in &turns {
            signals.check()?;
            let (cpu, wall) = turn(running[*at].as_mut().context("all were started")?)?;
            lanes[*at].cpu_ns.push(cpu);
            lanes[*at].wall_ns.push(wall);
        }
    }
    Ok(lanes)
}
