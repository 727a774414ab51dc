//! The rows for the speed of copying.

use crate::copy::targets::{FAR, FAR_ROUTES, far_ahead};
use crate::stats::{Estimate, ratio};
use crate::summary::raw::Raw;
use crate::summary::{Row, of_target, on, samples, shown, targets};
use crate::tables::table;

const OURS: &str = "iotomy copy";
/// The run that copies nothing.
const FLOOR: &str = "far ends alone";
const FAR_ID: &str = "far";

/// Returns the times compared with every peer's; the targets are the best peer's time and, at
/// start-up, cp's.
pub(crate) fn rows(raw: &Raw) -> Vec<Row> {
    let mut rows = Vec::new();
    for claim in targets(&raw.sweep).filter(|claim| claim.id != FAR_ID) {
        let target = of_target(claim, 2, raw);
        let route = claim.id.as_str();
        let walls = |contender: &str| {
            samples(&raw.sweep, &[("route", route), ("contender", contender)], "wall")
        };
        let (what, best) = (target.what.clone(), target.peer.clone());
        rows.push(target);
        let Some(ours) = walls(OURS) else { continue };
        let cases = raw.sweep.cases.iter().filter(|case| case.metric == "wall");
        for case in cases.filter(|case| on(case, "route") == route) {
            let peer = on(case, "contender");
            if [OURS, FLOOR, best.as_str()].contains(&peer) {
                continue;
            }
            if let Some(theirs) = walls(peer) {
                rows.push(Row::beside(what.clone(), peer, ratio(ours, theirs), 2, raw));
            }
        }
    }
    rows
}

/// Returns the name of the route of a row.
fn route(row: &Row) -> &str {
    row.what.split(": ").next().unwrap_or_default()
}

/// Returns whether the row is of a route; many small files and start-up are not routes.
fn is_route(row: &Row) -> bool {
    route(row) != "start-up" && !route(row).contains(" files ")
}

/// Returns the number of routes on which iotomy is far ahead, from all records together.
pub(crate) fn overall(rows: &[Row]) -> Vec<Row> {
    let judged: Vec<&Row> =
        rows.iter().filter(|row| row.verdict.is_some() && is_route(row)).collect();
    if judged.is_empty() {
        return Vec::new();
    }
    let figures: Vec<(&str, Option<Estimate>)> =
        judged.iter().map(|row| (route(row), row.figure)).collect();
    let (far, verdict) = far_ahead(&figures);
    vec![Row {
        what: format!("routes at {FAR} × the best peer's time or less: {}", far.join(", ")),
        peer: "the best of each".to_owned(),
        figure: None,
        found: format!("{} of {}", far.len(), judged.len()),
        bound: format!("{FAR_ROUTES} or more"),
        verdict: Some(verdict.of_claim()),
        is_aim: false,
        record: String::new(),
    }]
}

/// Returns a route in words: `file-pipe-tmpfs` is "file to pipe: tmpfs".
fn in_words(route: &str) -> String {
    let parts: Vec<&str> = route.split('-').collect();
    match parts[..] {
        ["start", "up"] => "start-up, one small file".to_owned(),
        [from, to] => format!("{from} to {to}"),
        [from, to, on] => format!("{from} to {to}: {on}"),
        [from, to, on, "shared"] => format!("{from} to {to} that shares extents: {on}"),
        _ => route.to_owned(),
    }
}

/// Formats a table of every route compared with its best peer.
pub(crate) fn block(rows: &[Row], link: &str) -> String {
    let mut lines =
        vec![["route", "best peer", "÷ its time [95 %]", "at most 1"].map(str::to_owned).to_vec()];
    for row in rows.iter().filter(|row| row.verdict.is_some() && !row.record.is_empty()) {
        let found = row.figure.map_or_else(|| row.found.clone(), |found| shown(found, 2));
        lines.push(vec![in_words(route(row)), row.peer.clone(), found, row.verdict_text()]);
    }
    format!(
        "What `iotomy copy` takes beside the best of GNU cat, cp, dd, pv and uutils on each route, 1 GiB, \
         cached, in interleaved runs ({link}, with every peer and CPU time; `make bench-copy` \
         repeats it). The peer at start-up is cp; \"undecided\" is an interval that reaches across 1.\n\n{}",
        table(&lines, 2)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn routes_are_said_in_words() {
        assert_eq!(in_words("pipe-pipe"), "pipe to pipe");
        assert_eq!(in_words("file-pipe-tmpfs"), "file to pipe: tmpfs");
        assert_eq!(in_words("file-file-xfs-shared"), "file to file that shares extents: xfs");
        assert_eq!(in_words("10000 files ext4"), "10000 files ext4");
        assert_eq!(in_words("start-up"), "start-up, one small file");
    }
}
