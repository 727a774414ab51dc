//! The history as text: its list, the comparison of two records, the trend of a measure.

mod against;
mod trend;

use std::collections::BTreeSet;

use iotomy_record::KeptRun;

use crate::Style;
use crate::numbers::{bytes, counted, duration, figure, three_digits};
use crate::page::{Ink, Page};
use crate::table::{Column, Row, Table};

pub use against::against;
pub(crate) use against::{print as print_against, sheets as sheets_against};
pub use trend::trends;

/// Columns a command may take in front of a list's other columns.
const SUBJECT: usize = 60;

/// Columns a machine may take.
const MACHINE: usize = 30;

/// The runs as terminal text, ending in a line break; `older` ones are left out, and `kept` are
/// kept, listed or not.
pub fn history(runs: &[KeptRun], older: u64, kept: u64, style: &Style) -> String {
    let mut page = Page::new(style);
    if runs.is_empty() && kept > 0 {
        let text = format!(
            "{}, and none of them matches",
            counted(kept.into(), "run is kept", "runs are kept")
        );
        page.wrapped(&[], Ink::Plain, &text);
        return page.finish();
    }
    if runs.is_empty() {
        page.wrapped(&[], Ink::Plain, "the history is empty; keep a run with --save");
        return page.finish();
    }
    let machine_of = |run: &KeptRun| (run.machine.clone(), run.hardware.clone());
    let machines: BTreeSet<(String, String)> = runs.iter().map(machine_of).collect();
    let mut columns = vec![
        Column::text("run", 9),
        Column::text("kind", 6),
        Column::text("name", 8),
        Column::text("started (UTC)", 5),
        Column::text("", 7),
        Column::number("record", "", 1),
    ];
    // Where all are of one, it is told by nothing.
    if machines.len() > 1 {
        columns.insert(3, Column::text("machine", 8));
    }
    let mut table = Table::new(&columns);
    let wide = runs.iter().map(|run| run.id.to_string().len()).max().unwrap_or(1);
    for run in runs {
        let subject = page.name(&run.subject, SUBJECT);
        let name = run.name.as_ref().map_or_else(String::new, |name| page.name(name, 30));
        let measure = run.measure.as_ref().map_or_else(String::new, |one| {
            // Of several, the first represents all only where it is distinguishable from the
            // others.
            match run.kind.as_str() {
                "limits" | "sweep" => String::new(),
                _ => format!("{} {}", page.name(&one.name, 20), amount(one.value, &one.unit)),
            }
        });
        let mut cells = vec![
            format!("{:wide$}  {subject}", run.id),
            page.name(&run.kind, 12),
            name,
            when(&page, &run.started),
            measure,
            bytes(u128::from(run.bytes)),
        ];
        if machines.len() > 1 {
            let machine = if run.machine.is_empty() { &run.hardware } else { &run.machine };
            cells.insert(3, page.name(machine, MACHINE));
        }
        table.push(Row { cells, ..Row::default() });
    }
    table.print(&mut page);
    if older > 0 {
        let text = format!(
            "{} before these not shown (--last 0)",
            counted(older.into(), "run kept", "runs kept")
        );
        page.wrapped(&[(Ink::Plain, "  ")], Ink::Dim, &text);
    }
    page.finish()
}

/// A time to the minute: `2026-01-02 03:04`.
fn when(page: &Page<'_>, started: &str) -> String {
    let minute = started.get(..16).map(|text| text.replace('T', " "));
    match minute.filter(|_| started.ends_with('Z')) {
        Some(minute) => page.name(&minute, 20),
        None => page.name(started, 30),
    }
}

/// A figure with its unit.
fn amount(value: f64, unit: &str) -> String {
    match unit {
        "ns" => duration(value),
        "bytes/s" => format!("{} MB/s", figure(value * 1e-6)),
        "bytes" => bytes(value.max(0.0) as u128),
        "1/s" => format!("{} /s", three_digits(value)),
        _ => three_digits(value),
    }
}

#[cfg(test)]
pub(crate) mod tests;
