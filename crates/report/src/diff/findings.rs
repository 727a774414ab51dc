//! Findings that came and went.

use iotomy_record::{Diff, FindingRuns};

use crate::findings::TEXT;
use crate::numbers::counted;
use crate::page::{Ink, Page};
use crate::sheet::{Cell, Field, Sheet};

/// The findings that not all runs have.
fn changed(record: &Diff) -> Vec<&FindingRuns> {
    let (a, b) = (record.a.sources.len() as u64, record.b.sources.len() as u64);
    record.findings.iter().filter(|one| one.a < a || one.b < b).collect()
}

fn word(one: &FindingRuns) -> (&'static str, Ink) {
    match (one.a, one.b) {
        (0, _) => ("new", Ink::Yellow),
        (_, 0) => ("gone", Ink::Green),
        _ => ("partly", Ink::Dim),
    }
}

/// How many runs of each side have it, where there are several.
fn runs(record: &Diff, one: &FindingRuns) -> String {
    let (a, b) = (record.a.sources.len(), record.b.sources.len());
    if a == 1 && b == 1 {
        return String::new();
    }
    let of = |has: u64, all: usize, side: &str| {
        format!("{has} of {} of {side}", counted(all as u128, "run", "runs"))
    };
    format!(" (in {}, {})", of(one.a, a, "A"), of(one.b, b, "B"))
}

pub(super) fn print(page: &mut Page<'_>, record: &Diff) {
    let changed = changed(record);
    if changed.is_empty() {
        return;
    }
    page.blank();
    page.line(&[(Ink::Plain, "  "), (Ink::Bold, "findings")]);
    for one in changed {
        let (word, ink) = word(one);
        let text = format!(
            "{}: {}{}",
            page.name(&one.id, 40),
            page.name(&one.text, TEXT),
            runs(record, one)
        );
        let space = " ".repeat(8 - word.len());
        page.wrapped(&[(Ink::Plain, "  "), (ink, word), (Ink::Plain, &space)], Ink::Plain, &text);
    }
}

/// The same as a table.
pub(super) fn sheet(page: &Page<'_>, record: &Diff) -> Option<Sheet> {
    let heads = [("finding", "finding"), ("is", "is"), ("text", "in words")];
    let fields = heads.map(|(key, head)| Field::text(key, head));
    let mut sheet = Sheet::new("findings", "findings", fields.into());
    for one in changed(record) {
        let text = page.name(&one.text, TEXT) + &runs(record, one);
        sheet.push([page.name(&one.id, 40), word(one).0.to_owned(), text].map(Cell::text).into());
    }
    (!sheet.rows.is_empty()).then_some(sheet)
}
