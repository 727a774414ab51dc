//! A record on one screen: what happened, where the time went, the gravest findings, and what is left
//! out. The one rule: no more lines than a terminal of 24 has above the prompt, whatever the record.

use iotomy_record::{Finding, Trace};

use super::call_sum::CallSum;
use super::{call_columns, headline, images, ledger, sample};
use crate::Style;
use crate::columns::Extent;
use crate::findings::{TEXT, grade};
use crate::numbers::{counted, share};
use crate::page::{Ink, Page};

/// The width of the smallest usual terminal.
const COLUMNS: usize = 80;

/// The most lines of each part: 23 with the lines between them.
const HEADLINE: usize = 4;
const LEDGER: usize = 2;
/// Rows of the table, which has two lines of heads.
pub(crate) const ROWS: usize = 5;
const TABLE: usize = ROWS + 2;
const FINDINGS: usize = 4;
const LEFT_OUT: usize = 2;

/// A trace on one screen.
pub fn trace_brief(record: &Trace, style: &Style) -> String {
    let record = &*record.scaled();
    let mut calls = CallSum::by_name(&record.calls, record.view.sort);
    let mut total = CallSum::total("", &record.calls);
    sample::note_margins(record, &mut calls, &mut total);
    let shown = calls.len().min(ROWS);
    let table = |page: &mut Page<'_>| print_calls(page, &calls[..shown], &total);
    let rest = calls.len() - shown;
    let hidden = (rest > 0).then(|| counted(rest as u128, "call", "calls"));
    brief(record, style, table, hidden)
}

/// The frame of a brief report, with a table of at most [`ROWS`] rows in it and what that leaves out.
pub(crate) fn brief(
    record: &Trace,
    style: &Style,
    table: impl Fn(&mut Page<'_>),
    hidden: Option<String>,
) -> String {
    let style = Style { width: style.width.min(COLUMNS), table_width: 0, ..style.clone() };
    let images = images::list(record);
    let part = |most: usize, print: &dyn Fn(&mut Page<'_>)| -> Vec<String> {
        let mut page = Page::new(&style);
        print(&mut page);
        let mut lines: Vec<String> = page.finish().lines().map(str::to_owned).collect();
        if lines.len() > most {
            let mut page = Page::new(&style);
            let more =
                format!("  … {} more", counted((lines.len() + 1 - most) as u128, "line", "lines"));
            page.line(&[(Ink::Dim, &more)]);
            lines.truncate(most - 1);
            lines.push(page.finish().trim_end().to_owned());
        }
        lines
    };
    let mut findings: Vec<&Finding> = record.findings.iter().collect();
    findings.sort_by_key(|finding| grade(finding.verdict).0);
    let mut parts = vec![
        part(HEADLINE, &|page| headline::print_brief(page, record, &images, HEADLINE)),
        part(LEDGER, &|page| print_ledger(page, record, &images)),
        part(TABLE, &table),
    ];
    let (lines, left) = print_findings(&style, &findings);
    parts.push(lines);
    let others = [
        hidden,
        (images.len() > 1).then(|| counted(images.len() as u128, "process", "processes")),
        (left > 0).then(|| counted(left as u128, "finding", "findings")),
        Some("distributions and files".to_owned()),
    ];
    let others: Vec<String> = others.into_iter().flatten().collect();
    let text = format!("left out: {} (without --brief)", others.join(", "));
    parts.push(part(LEFT_OUT, &|page| page.wrapped(&[(Ink::Plain, "  ")], Ink::Dim, &text)));
    parts.retain(|lines| !lines.is_empty());
    let parts: Vec<String> = parts.into_iter().map(|lines| lines.join("\n")).collect();
    parts.join("\n\n") + "\n"
}

/// The largest parts of the time in a sentence.
fn print_ledger(page: &mut Page<'_>, record: &Trace, images: &[images::Image<'_>]) {
    const PARTS: usize = 6;
    let Some(account) = ledger::account(page, record, images) else { return };
    let parts = account.parts.iter().filter(|part| part.ns > 0).take(PARTS);
    let parts: Vec<String> =
        parts.map(|part| format!("{} {}", part.label, share(part.ns, account.whole))).collect();
    if !parts.is_empty() {
        let lead = format!("  {}: ", account.sum);
        page.wrapped(&[(Ink::Bold, &lead)], Ink::Plain, &parts.join(" · "));
    }
}

/// The columns of the brief table: those that are worth most in any.
const SHOWN: [&str; 8] =
    ["call", "calls", "calls_margin", "errors", "bytes", "wall_ns", "wall_percent", "mean_ns"];

fn print_calls(page: &mut Page<'_>, calls: &[CallSum<'_>], total: &CallSum<'_>) {
    if calls.is_empty() {
        return;
    }
    let extent = Extent { rows: calls.len(), name: 28 };
    let sheet = call_columns::columns(page, total, extent)
        .only(|field| SHOWN.contains(&&*field.key))
        .sheet("calls", "Calls", calls, None, extent);
    sheet.print(page, "");
}

/// The gravest findings with their advice in as many lines as there are, the first cut where it has more, and the number
/// of those left out.
fn print_findings(style: &Style, findings: &[&Finding]) -> (Vec<String>, usize) {
    let mut lines: Vec<String> = Vec::new();
    for (at, finding) in findings.iter().enumerate() {
        let most = if at == 0 { FINDINGS } else { usize::MAX };
        let own = finding_lines(style, finding, most);
        if lines.len() + own.len() > FINDINGS {
            return (lines, findings.len() - at);
        }
        lines.extend(own);
    }
    (lines, 0)
}

/// A finding in at most so many lines, of which its advice has half at most.
fn finding_lines(style: &Style, finding: &Finding, most: usize) -> Vec<String> {
    const WORD: usize = 12;
    let mut page = Page::new(style);
    let (_, word, ink) = grade(finding.verdict);
    let space = " ".repeat(WORD.saturating_sub(word.len()));
    let text = format!("{}: {}", page.name(&finding.id, 40), page.name(&finding.text, TEXT));
    let advice: Vec<String> = finding
        .advice
        .iter()
        .flat_map(|advice| {
            let mut page = page.another();
            let lead = format!("{}try: ", " ".repeat(WORD + 2));
            let lead = [(Ink::Dim, &*lead)];
            let advice = page.clipped(&lead, &page.name(advice, TEXT), most / 2);
            page.wrapped(&lead, Ink::Green, &advice);
            page.finish().lines().map(str::to_owned).collect::<Vec<_>>()
        })
        .collect();
    let lead = [(Ink::Plain, "  "), (ink, word), (Ink::Plain, &*space)];
    let text = page.clipped(&lead, &text, most - advice.len());
    page.wrapped(&lead, Ink::Plain, &text);
    advice.iter().for_each(|line| page.put(line));
    page.finish().lines().map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use iotomy_record::arbitrary;
    use proptest::prelude::*;

    use super::*;
    use crate::looks;

    proptest! {
        #[test]
        fn any_trace_fits_on_a_screen(record in arbitrary::trace(), unicode: bool) {
            let style = Style { unicode, width: 100, ..Style::default() };
            let text = trace_brief(&record, &style);
            prop_assert!(text.lines().count() <= 24, "{}", text);
            looks::keeps_to(80, unicode, |style| trace_brief(&record, style));
        }
    }
}
