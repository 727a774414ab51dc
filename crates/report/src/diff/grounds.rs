//! What is left out, and what the comparison rests on.

use iotomy_record::{Diff, DiffVerdict};

use super::DiffView;
use crate::numbers::{counted, thousands};

/// How many rows have no difference to show.
pub(super) fn equal(record: &Diff, view: DiffView) -> Vec<String> {
    if view.all {
        return Vec::new();
    }
    let count = |verdict: DiffVerdict| {
        let parts = record.tables().into_iter().filter_map(|(name, rows)| {
            let count = rows.iter().filter(|row| row.verdict == verdict).count();
            let name = match (name, count) {
                ("requests", 1) => "peer of requests",
                ("requests", _) => "peers of requests",
                (name, 1) => name.trim_end_matches('s'),
                _ => name,
            };
            (count > 0).then(|| format!("{} {name}", thousands(count as u128)))
        });
        parts.collect::<Vec<_>>().join(", ")
    };
    let says = [
        (DiffVerdict::Equal, "equal"),
        (
            DiffVerdict::BelowOverhead,
            "equal but for times that differ by less than the overhead of tracing",
        ),
        (DiffVerdict::TimesDiffer, "equal but for times, which differ in any two runs"),
        (DiffVerdict::WithinSampling, "within the error of sampling"),
        (DiffVerdict::WithinNoise, "not different beyond noise"),
    ];
    let mut lines: Vec<String> = says
        .into_iter()
        .filter_map(|(verdict, says)| {
            let rows = count(verdict);
            (!rows.is_empty()).then(|| format!("{says}: {rows}"))
        })
        .collect();
    if let Some(last) = lines.last_mut() {
        last.push_str(" (--all)");
    }
    lines
}

/// The reach of the comparison.
pub(super) fn grounds(record: &Diff) -> Vec<String> {
    let (a, b) = (record.a.sources.len(), record.b.sources.len());
    let mut lines: Vec<String> = record
        .left_out
        .iter()
        .map(|one| format!("{} are not compared: {}", one.table, one.why))
        .collect();
    if record.rows_of_several() {
        lines.push(
            "… in a name is a number or random letters that each run draws anew; names that differ in \
             nothing else are one row"
                .to_owned(),
        );
    }
    if record.per_second {
        lines.push(
            "sums are per second of the watch: running processes were watched, or a command was not \
             watched to its end"
                .to_owned(),
        );
    }
    lines.push(match (record.judged, a, b) {
        (true, ..) => format!(
            "{} of A and {b} of B: beyond noise is what differs by more than runs of one side do. All \
             measures are judged together: where nothing differs, 5 in 100 comparisons at most say that \
             something does{}",
            counted(a as u128, "run", "runs"),
            match are_in_turn(&record.a.started, &record.b.started) {
                true => "",
                false => {
                    ". The sides were not run in turn: a difference includes any change of the machine in \
                     between"
                }
            }
        ),
        (false, 1, 1) => "one run of each: these are differences of two runs; how much runs differ by \
                          themselves is not known (iotomy diff A… -- B…, with 4 runs of each or more)"
            .to_owned(),
        _ => format!(
            "{} of A and {b} of B are too few to tell a difference from noise; give 4 of each or more",
            counted(a as u128, "run", "runs")
        ),
    });
    if record.kind == "anatomy" {
        lines.push(
            "±: the error of sampling in the difference of these runs, 95 % for all rows of the table \
             together"
                .to_owned(),
        );
    }
    if record.a.times_inflated || record.b.times_inflated {
        lines.push(
            "times: watching slowed the calls so much that they cannot be taken at face value; counts \
             and bytes are exact"
                .to_owned(),
        );
    }
    let lost = record.a.lost.saturating_add(record.b.lost);
    if lost > 0 {
        lines.push(format!(
            "the observer's tables had no room for {}: a row that one side lacks may be among these",
            counted(lost.into(), "entry or call", "entries or calls")
        ));
    }
    lines
}

/// Whether the runs of two sides began in turn: in the order of their starts, each pair has one of either side, which
/// only a last single run lacks. Starts are RFC 3339 in UTC; runs of two sides that began at one time have no order.
fn are_in_turn(a: &[String], b: &[String]) -> bool {
    // Without the sign of the zone, times order as texts do, however many digits their seconds have.
    let of = |side: &'static str, runs: &[String]| -> Vec<(String, &'static str)> {
        runs.iter().map(|start| (start.trim_end_matches('Z').to_owned(), side)).collect()
    };
    let mut runs = of("a", a);
    runs.extend(of("b", b));
    runs.sort_unstable();
    let is_clear = runs.windows(2).all(|two| two[0].0 != two[1].0 || two[0].1 == two[1].1);
    is_clear && runs.len() > 2 && runs.chunks_exact(2).all(|pair| pair[0].1 != pair[1].1)
}

#[cfg(test)]
mod tests {
    use super::are_in_turn;

    /// Whether runs are in turn that began, a second after one another, in this order.
    fn is_in_turn(order: &str) -> bool {
        let starts = |side: char| -> Vec<String> {
            let seconds = order.chars().enumerate().filter(|(_, one)| *one == side);
            seconds.map(|(at, _)| format!("2026-01-01T00:00:{at:02}.000Z")).collect()
        };
        are_in_turn(&starts('A'), &starts('B'))
    }

    #[test]
    fn sides_are_in_turn_where_each_pair_of_runs_has_both() {
        for order in ["ABAB", "BABA", "ABBA", "ABABABAB", "ABABABA"] {
            assert!(is_in_turn(order), "{order}");
        }
        for order in ["AABB", "AAAABBBB", "BBBBAAAA", "ABABBBAA", "AAAB", "AAAA", "AB", "A", ""] {
            assert!(!is_in_turn(order), "{order}");
        }
    }

    #[test]
    fn runs_that_began_at_one_time_have_no_order() {
        let at = |seconds: [&str; 2]| seconds.map(|one| format!("2026-01-01T00:00:{one}Z"));
        assert!(!are_in_turn(&at(["01", "03"]), &at(["01", "03"])));
        assert!(!are_in_turn(&at(["01", "02"]), &at(["02", "03"])));
        assert!(are_in_turn(&at(["01", "02"]), &at(["01.5", "02.25"])));
    }
}
