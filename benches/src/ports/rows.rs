//! The table of event ports, `/dev/poll` and kqueue for readers.

use crate::ports::results::RATIOS;
use crate::stats::ratio;
use crate::summary::raw::Raw;
use crate::summary::{names, samples, shown};
use crate::tables::table;

/// Formats a table of the ratios that have targets.
pub(crate) fn block(raws: &[Raw], link: &str) -> String {
    let Some(raw) = raws.last() else { return String::new() };
    let cpu = |rounds: &str, contender: &str| {
        samples(&raw.sweep, &[("rounds", rounds), ("contender", contender)], "cpu")
    };
    let rounds = names(&raw.sweep, "rounds");
    let titles = ["loop ÷ bare one".to_owned(), "at most".to_owned()];
    let mut lines = vec![titles.into_iter().chain(rounds.iter().cloned()).collect::<Vec<_>>()];
    for (one, other, most) in RATIOS {
        let found = rounds.iter().map(|rounds| ratio(cpu(rounds, one)?, cpu(rounds, other)?));
        let found = found.map(|found| found.map_or_else(String::new, |found| shown(found, 2)));
        let named = [format!("{one} ÷ {other}"), format!("{most:.2}")];
        lines.push(named.into_iter().chain(found).collect());
    }
    format!(
        "CPU time of each loop ÷ that of the loop that is used alike, median and 95 % CI ({link}; `make bench-ports` \
         repeats it), with n pairs of sockets of which a are active and w writes a round. `counted` is bare epoll that \
         asks with each event how many bytes there are (`FIONREAD`), as kqueue has to.\n\n{}",
        table(&lines, 1)
    )
}
