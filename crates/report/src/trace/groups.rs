//! Calls by the values that they were grouped by (`--by`).
//!
//! Computed by `group_call` in `crates/observe/src/bpf/by.bpf.h` and `crates/observe/src/grouping.rs`.

use iotomy_record::{Group, Groups, Key, SortKey, Trace};

use super::extent;
use crate::columns::{self, Columns, Extent};
use crate::numbers::{counted, decimals_for, figure, thousands};
use crate::page::{Ink, Page, columns as width};
use crate::sheet::{Cell, Field, Sheet};

/// Columns a text may take.
const TEXT: usize = 60;
/// Columns that the numbers need beside the texts.
const NUMBERS: usize = 46;

/// The record's order, unless another was requested.
fn sorted(record: &Trace, groups: &Groups) -> Vec<Group> {
    let mut all = groups.rows.clone();
    if record.view.sort == SortKey::NAME {
        all.sort_by(|a, b| a.key.cmp(&b.key));
    } else {
        columns::sort(&mut all, record.view.sort, |group| group, |_| ());
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

/// The table, with so many columns for each value.
fn table(
    page: &Page<'_>,
    groups: &Groups,
    rows: &[Group],
    widths: &[usize],
    extent: Extent,
) -> Sheet {
    let most = rows.iter().map(|row| row.wall_ns).max().unwrap_or(0);
    let mut columns = Columns::new();
    for (at, (by, width)) in groups.by.iter().zip(widths).enumerate() {
        let head = page.name(head(by), if extent.is_page() { 40 } else { 20 });
        let field = Field::text(&format!("key_{}", at + 1), &head).worth(9);
        columns = columns.text(field, move |row: &Group| match row.key.get(at) {
            Some(Key::Text(text)) if text.is_empty() && extent.is_page() => String::new(),
            Some(key) => value(page, by, key, *width),
            None => String::new(),
        });
    }
    let mean = Field::number("mean_ns", "mean", "µs").worth(5);
    columns
        .declared(decimals_for(most as f64 / 1e6), |row| Some(row))
        .behind("wall_ns", mean, |row| {
            let mean = row.wall_ns as f64 / row.calls.max(1) as f64;
            Cell::real(mean, figure(mean / 1e3))
        })
        .sheet("groups", "Calls by group", rows, None, extent)
}

/// The widths of the values' columns: short ones have what they need, and the others share the rest, so that
/// there is room for the numbers.
fn widths(page: &Page<'_>, heads: &[String], shown: &[Vec<String>]) -> Vec<usize> {
    let longest = |at: usize| {
        let values = shown.iter().filter_map(|row| row.get(at)).map(|text| width(text));
        values.max().unwrap_or(0).max(width(&heads[at]))
    };
    let mut widths: Vec<usize> = (0..heads.len()).map(longest).collect();
    let mut order: Vec<usize> = (0..heads.len()).collect();
    order.sort_by_key(|at| widths[*at]);
    let mut room = page.table_width().saturating_sub(NUMBERS + 2 * heads.len());
    for (nth, at) in order.into_iter().enumerate() {
        let share = room / (heads.len() - nth);
        widths[at] = widths[at].min(share.max(width(&heads[at])));
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
    let all = sorted(record, groups);
    let extent = extent(record, TEXT);
    let values = |row: &Group| -> Vec<String> {
        let known = groups.by.iter().zip(&row.key);
        known.map(|(by, key)| value(page, by, key, TEXT)).collect()
    };
    let shown: Vec<Vec<String>> = all.iter().take(extent.rows).map(values).collect();
    let widths = widths(page, &heads, &shown);
    table(page, groups, &all, &widths, extent).print(page, "");
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
    let widths = vec![Extent::PAGE.name; groups.by.len()];
    let mut sheet = table(page, groups, &sorted(record, groups), &widths, Extent::PAGE);
    sheet.folded = true;
    Some(sheet)
}
