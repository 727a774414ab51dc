//! Contenders that make rounds when they are told to: a turn of each in every block, in random order.
//! A ratio is one of the same block, so that what drifts from block to block is in both.

use anyhow::{Context, Result};

use crate::child::Signals;
use crate::order::Order;
use crate::run::progress;

/// Blocks after which all are started anew, in random order: where a process has its memory makes some
/// hundredths of difference, which are nobody's merit.
const BLOCKS_A_LIFE: u32 = 3;

/// The time of one contender per round, a figure a block.
#[derive(Debug, Clone, Default)]
pub struct Lane {
    /// The contender's name.
    pub name: String,
    /// On the CPU.
    pub cpu_ns: Vec<f64>,
    /// By the clock.
    pub wall_ns: Vec<f64>,
}

/// Lets the contenders of these names make `blocks` turns. `start` starts one by its place, `turn` has
/// it make rounds and returns their time on the CPU and by the clock.
///
/// # Errors
/// When one cannot be started or fails, or a signal has come.
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
