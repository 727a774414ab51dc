//! Calls by the values that they were grouped by (`--by`).
//!
//! Computed by `group_call` in `crates/observe/src/bpf/by.bpf.h` and `crates/observe/src/grouping.rs`.

use std::cmp::Reverse;

use iotomy_record::{Group, Groups, Key, SortKey, Trace};

use super::{USUAL_ROWS, print_hidden, rows};
use crate::numbers::{bytes, counted, decimals_for, figure, fixed, thousands};
use crate::page::{Ink, Page, columns};
use crate::sheet::{Cell, Field, Sheet, name};
use crate::table::{Column, Row, Table};

/// Columns a text may take.
const TEXT: usize = 60;
/// Columns that the numbers need beside the texts.
const NUMBERS: usize = 46;

/// The record's order, unless another was requested.
fn sorted(record: &Trace, groups: &Groups) -> Vec<Group> {
    let mut all = groups.rows.clone();
    match record.view.sort {
        SortKey::CALLS => all.sort_by_key(|row| Reverse(row.calls)),
        SortKey::ERRORS => all.sort_by_key(|row| Reverse(row.errors)),
        SortKey::BYTES => all.sort_by_key(|row| Reverse(row.bytes)),
        SortKey::NAME => all.sort_by(|a, b| a.key.cmp(&b.key)),
        _ => {}
    }
    all
}

/// A value in words; those of bytes and durations stand for a power of two.
fn value(page: &Page<'_>, by: &str, key: &Key, width: usize) -> String {
    match key {
        Key::Text(text) if text.is_empty() => "-".to_owned(),
        Key::Text(text) => page.name(text, width),
        Key::Number(low) if is_range(by) && *low > 1 => {
            let high = low.saturating_mul(2).saturating_sub(1);
            let [low, high] = [*low, high].map(|end| thousands(end.max(0).unsigned_abs().into()));
            format!("{low} … {high}")
        }
        Key::Number(number) => number.to_string(),
    }
}

/// The widths of the values' columns: short ones have what they need, and the others share the rest, so that
/// there is room for the numbers.
fn widths(page: &Page<'_>, heads: &[String], shown: &[Vec<String>]) -> Vec<usize> {
    let longest = |at: usize| {
        let values = shown.iter().filter_map(|row| row.get(at)).map(|text| columns(text));
        values.max().unwrap_or(0).max(columns(&heads[at]))
    };
    let mut widths: Vec<usize> = (0..heads.len()).map(longest).collect();
    let mut order: Vec<usize> = (0..heads.len()).collect();
    order.sort_by_key(|at| widths[*at]);
    let mut room = page.width().saturating_sub(NUMBERS + 2 * heads.len());
    for (nth, at) in order.into_iter().enumerate() {
        let share = room / (heads.len() - nth);
        widths[at] = widths[at].min(share.max(columns(&heads[at])));
        room = room.saturating_sub(widths[at]);
    }
    widths
}

fn is_range(by: &str) -> bool {
    matches!(by, "bytes" | "duration")
}

fn head(by: &str) -> &str {
    if by == "duration" { "duration ns" } else { by }
}

pub(super) fn print(page: &mut Page<'_>, record: &Trace) {
    let Some(groups) = &record.by else { return };
    page.blank();
    if groups.rows.is_empty() {
        page.line(&[(Ink::Dim, "  no call was counted by a group")]);
        return;
    }
    let heads: Vec<String> = groups.by.iter().map(|by| page.name(head(by), 20)).collect();
    let mut heading: Vec<Column<'_>> = heads.iter().map(|head| Column::text(head, 9)).collect();
    heading.extend([
        Column::number("calls", "", 8),
        Column::number("errors", "", 2),
        Column::number("bytes", "", 4),
        Column::number("wall", "ms", 7),
        Column::number("mean", "µs", 5),
        Column::number("max", "µs", 3),
    ]);
    let all = sorted(record, groups);
    let most = all.iter().map(|row| row.wall_ns).max().unwrap_or(0);
    let decimals = decimals_for(most as f64 / 1e6);
    let shown = rows(record, USUAL_ROWS).min(all.len());
    let mut table = Table::new(&heading);
    let values = |row: &Group, widths: &[usize]| -> Vec<String> {
        let columns = groups.by.iter().zip(widths).enumerate();
        let text = |(at, (by, width)): (usize, (&String, &usize))| {
            row.key.get(at).map_or_else(String::new, |key| value(page, by, key, *width))
        };
        columns.map(text).collect()
    };
    let whole: Vec<Vec<String>> =
        all[..shown].iter().map(|row| values(row, &vec![TEXT; heads.len()])).collect();
    let widths = widths(page, &heads, &whole);
    for row in &all[..shown] {
        let mut cells = values(row, &widths);
        let some = |number: u64, text: String| if number > 0 { text } else { String::new() };
        cells.extend([
            thousands(row.calls.into()),
            some(row.errors, thousands(row.errors.into())),
            some(row.bytes, bytes(row.bytes.into())),
            fixed(row.wall_ns as f64 / 1e6, decimals),
            figure(row.wall_ns as f64 / row.calls.max(1) as f64 / 1e3),
            figure(row.max_ns as f64 / 1e3),
        ]);
        table.push(Row { cells, ..Row::default() });
    }
    table.print(page);
    print_hidden(page, shown, all.len(), "");
    if groups.by.iter().any(|by| by == "group") {
        let text = "  a call of several groups is in the row of each";
        page.line(&[(Ink::Dim, text)]);
    }
}

/// What found no room.
pub(super) fn lost(record: &Trace) -> Option<String> {
    let lost = record.by.as_ref().map(|groups| groups.lost_calls).filter(|lost| *lost > 0)?;
    Some(format!(
        "the groups of {} did not fit: raise --max-rows, or group by less",
        counted(lost.into(), "call", "calls")
    ))
}

/// All of them, for a page; nothing where calls were not grouped.
pub(super) fn sheet(page: &Page<'_>, record: &Trace) -> Option<Sheet> {
    let groups = record.by.as_ref().filter(|groups| !groups.rows.is_empty())?;
    let mut fields: Vec<Field> = (groups.by.iter().zip(1..))
        .map(|(by, at)| Field::text(&format!("key_{at}"), &page.name(head(by), 40)))
        .collect();
    fields.extend([
        Field::number("calls", "calls", ""),
        Field::number("errors", "errors", ""),
        Field::number("bytes", "bytes", ""),
        Field::number("wall_ns", "time", "ms"),
        Field::number("max_ns", "max", "µs"),
    ]);
    let mut sheet = Sheet::new("groups", "Calls by group", fields);
    for row in sorted(record, groups) {
        let mut cells: Vec<Cell> = groups
            .by
            .iter()
            .enumerate()
            .map(|(at, by)| match row.key.get(at) {
                Some(Key::Text(text)) => Cell::text(name(page, text)),
                Some(key) => Cell::text(value(page, by, key, TEXT)),
                None => Cell::absent(),
            })
            .collect();
        cells.extend([
            Cell::count(row.calls),
            Cell::count(row.errors),
            Cell::size(row.bytes),
            Cell::whole(row.wall_ns, figure(row.wall_ns as f64 / 1e6)),
            Cell::whole(row.max_ns, figure(row.max_ns as f64 / 1e3)),
        ]);
        sheet.push(cells);
    }
    sheet.folded = true;
    Some(sheet)
}
