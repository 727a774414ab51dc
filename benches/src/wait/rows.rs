//! The rows for the overhead of waiting.

use crate::stats::{Estimate, ratio};
use crate::summary::raw::Raw;
use crate::summary::{Row, names, of_target, samples, shown, targets};
use crate::tables::table;

const OURS: &str = "iotomy epoll";

/// Returns the CPU times compared with every peer's, and the targets.
pub(crate) fn rows(raw: &Raw) -> Vec<Row> {
    let mut rows: Vec<Row> = targets(&raw.sweep).map(|claim| of_target(claim, 3, raw)).collect();
    for rounds in names(&raw.sweep, "rounds") {
        let what = format!("{rounds}: epoll");
        for peer in names(&raw.sweep, "contender").iter().filter(|peer| *peer != OURS) {
            if rows.iter().all(|row| row.what != what || row.peer != *peer) {
                let found = over(raw, &rounds, peer);
                rows.push(Row::beside(what.clone(), peer, found, 3, raw));
            }
        }
    }
    rows
}

/// Returns the ratio of iotomy's CPU time to a peer's, block by block.
fn over(raw: &Raw, rounds: &str, peer: &str) -> Option<Estimate> {
    let cpu = |contender: &str| {
        samples(&raw.sweep, &[("rounds", rounds), ("contender", contender)], "cpu")
    };
    ratio(cpu(OURS)?, cpu(peer)?)
}

/// Formats a table of the ratios of iotomy's CPU time to each peer's.
pub(crate) fn block(raws: &[Raw], link: &str) -> String {
    let Some(raw) = raws.last() else { return String::new() };
    let mut peers = names(&raw.sweep, "contender");
    peers.retain(|peer| peer != OURS);
    let titles = peers.iter().map(|peer| format!("÷ {peer}"));
    let mut lines = vec![["rounds".to_owned()].into_iter().chain(titles).collect::<Vec<_>>()];
    for rounds in names(&raw.sweep, "rounds") {
        let found = peers.iter().map(|peer| over(raw, &rounds, peer));
        let found = found.map(|found| found.map_or_else(String::new, |found| shown(found, 2)));
        lines.push([rounds.clone()].into_iter().chain(found).collect());
    }
    format!(
        "CPU time of the `epoll` waiter ÷ each peer's, median and 95 % interval ({link}), with n descriptors of which \
         a are active and w writes a round:\n\n{}",
        table(&lines, 1)
    )
}
