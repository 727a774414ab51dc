//! A closer comparison of `raw` with the bare loop than the one among all contenders: the difference is one or two
//! hundredths, less than a CPU varies from one second to the next.
//!
//! Two processes on one CPU make short batches in turns, mirrored (raw, bare, bare, raw), so that slow changes affect
//! both equally. Each group of four gives a ratio of CPU times; each life of the two processes gives the median of its
//! ratios. The memory placement of a process alone changes the result by a few hundredths, so the samples are lives,
//! not batches.

use std::path::Path;

use anyhow::{Context, Result};

use crate::child::Signals;
use crate::files::contender::{Contender, Lineup, Running};
use crate::order::Order;
use crate::run::progress;
use crate::stats::median_or_nan;

/// Number of lives of the two processes.
const LIVES: usize = 80;

/// Mirrored groups of four in a life, after one that does not count.
const FOURS: usize = 5;

/// Rounds in a batch: about 10 ms.
const ROUNDS: u32 = 640;

/// Returns the ratio of the CPU time of `raw` to that of the bare loop, one figure per life.
pub(crate) fn raw_over_bare(
    lineup: &Lineup,
    is_quick: bool,
    order: &mut Order,
    signals: &Signals,
    folder: &Path,
) -> Result<Vec<f64>> {
    let find = |name: &str| lineup.iter().find(|one| one.name == name);
    let (Some(raw), Some(bare)) = (find("raw"), find("bare")) else { return Ok(Vec::new()) };
    let cpus = std::thread::available_parallelism().map_or(1, usize::from);
    let lives = if is_quick { 8 } else { LIVES };
    (0..lives)
        .map(|life| {
            signals.check()?;
            progress(&format!("raw beside bare, life {} of {lives}", life + 1));
            one_life([raw, bare], life % cpus, order, folder)
        })
        .collect()
}

fn one_life(pair: [&Contender; 2], cpu: usize, order: &mut Order, folder: &Path) -> Result<f64> {
    let mut started = [0, 1];
    order.shuffle(&mut started);
    let mut running: [Option<Running>; 2] = [None, None];
    for at in started {
        let one = pair[at].start(&folder.join(format!("pair-{at}")))?;
        // Pinning may fail where the machine offers other CPUs than the first ones; the comparison
        // works without it.
        let _ = one.pin(cpu);
        running[at] = Some(one);
    }
    let mut ratios = Vec::new();
    for four in 0..=FOURS {
        // The order within a pair alternates, too.
        let [first, second] = if order.coin() { [0, 1] } else { [1, 0] };
        let mut sums = [0.0; 2];
        for at in [first, second, second, first] {
            let one = running[at].as_mut().context("both were started")?;
            sums[at] += one.batch(ROUNDS)?.0;
        }
        if four > 0 {
            ratios.push(sums[0] / sums[1]);
        }
    }
    Ok(median_or_nan(&ratios))
}
