//! Updates the verdicts in the target tables on the benches' own pages.
//!
//! A page is written when its bench runs. The criteria of a verdict may have become stricter since
//! then; the figures are those of the record.

use iotomy_record::Claim;

use crate::summary::{Row, text_of_verdict};
use crate::tables::table;

/// Returns the page with the verdicts in its target tables taken from `rows` and `claims`; the rest is unchanged.
pub(crate) fn judged_anew(page: &str, rows: &[Row], claims: &[&Claim]) -> String {
    let mut text = String::new();
    let mut lines = page.lines().peekable();
    while let Some(line) = lines.next() {
        if !line.starts_with("| target") {
            text += line;
            text.push('\n');
            continue;
        }
        let mut cells = vec![cells_of(line)];
        // The line of dashes is regenerated.
        lines.next();
        while let Some(row) = lines.next_if(|line| line.starts_with('|')) {
            cells.push(with_verdict(cells_of(row), rows, claims));
        }
        text += &table(&cells, 1);
    }
    text
}

fn cells_of(line: &str) -> Vec<String> {
    let inner = line.trim().trim_start_matches('|').trim_end_matches('|');
    inner.split('|').map(|cell| cell.trim().to_owned()).collect()
}

fn with_verdict(mut cells: Vec<String>, rows: &[Row], claims: &[&Claim]) -> Vec<String> {
    let verdict = if let Some((wanted, _)) = cells[0].split_once("; they are: ") {
        // The overall row lists the routes that are far ahead.
        let Some(row) = rows.iter().find(|row| row.record.is_empty()) else { return cells };
        let (_, names) = row.what.split_once(": ").unwrap_or(("", ""));
        let names = if names.is_empty() { "none" } else { names };
        cells[0] = format!("{wanted}; they are: {names}");
        let at = cells.len() - 2;
        cells[at].clone_from(&row.found);
        row.verdict_text()
    } else if let Some(row) = rows.iter().find(|row| row.verdict.is_some() && row.what == cells[0])
    {
        row.verdict_text()
    } else {
        let subject =
            |claim: &Claim| claim.text.rsplit_once(": ").map(|(subject, _)| subject.to_owned());
        let is_it = |claim: &&&Claim| subject(claim).as_deref() == Some(&cells[0]);
        let Some(claim) = claims.iter().rfind(is_it) else { return cells };
        text_of_verdict(Some(claim.verdict), claim.id.ends_with("-aim"))
    };
    if let Some(last) = cells.last_mut() {
        *last = verdict;
    }
    cells
}

#[cfg(test)]
mod tests {
    use iotomy_record::ClaimVerdict;

    use super::*;

    fn row(what: &str, record: &str, verdict: ClaimVerdict) -> Row {
        Row {
            what: what.to_owned(),
            peer: String::new(),
            figure: None,
            found: "1 of 15".to_owned(),
            bound: String::new(),
            verdict: Some(verdict),
            is_aim: false,
            record: record.to_owned(),
        }
    }

    #[test]
    fn verdicts_are_those_of_the_rows_and_nothing_else_changes() {
        let page = "# A page\n\n| route | verdict |\n| ----- | ------: |\n| a     |     met |\n\n\
            | target                     |     bound |          found | verdict |\n\
            | -------------------------- | --------: | -------------: | ------: |\n\
            | a: iotomy copy ÷ cat       | at most 1 | 0.9 [0.5, 1.5] |     met |\n\
            | b: iotomy copy ÷ cat       | at most 1 | 0.9 [0.8, 0.9] |     met |\n\
            | 3 or more; they are: a, b  |           |        3 of 15 |     met |\n\nThe end.\n";
        let rows = [row("routes: b", "", ClaimVerdict::Fails)];
        let claim = Claim {
            id: "a-aim".to_owned(),
            source: "targets".to_owned(),
            text: "a: iotomy copy ÷ cat: at most 1".to_owned(),
            verdict: ClaimVerdict::Inconclusive,
            evidence: Default::default(),
            because: String::new(),
        };
        let should_be = "# A page\n\n| route | verdict |\n| ----- | ------: |\n| a     |     met |\n\n\
            | target                 |     bound |          found |            verdict |\n\
            | ---------------------- | --------: | -------------: | -----------------: |\n\
            | a: iotomy copy ÷ cat   | at most 1 | 0.9 [0.5, 1.5] | undecided (an aim) |\n\
            | b: iotomy copy ÷ cat   | at most 1 | 0.9 [0.8, 0.9] |                met |\n\
            | 3 or more; they are: b |           |        1 of 15 |             missed |\n\nThe end.\n";
        assert_eq!(judged_anew(page, &rows, &[&claim]), should_be);
        assert_eq!(judged_anew(should_be, &rows, &[&claim]), should_be);
    }
}
