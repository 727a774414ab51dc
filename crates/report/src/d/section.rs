//! A run of a D program as the parts of a report: each distribution as a picture, each aggregation as a
//! table, the output and the program.

use iotomy_record::{DRow, DRun};

use super::{Group, buckets, groups, key_text, keys_text, losses, title};
use crate::chart::{Chart, Drawing, LETTER, WIDE, fit};
use crate::histogram::SMALL;
use crate::numbers::{counted, duration, share, thousands};
use crate::page::Page;
use crate::section::{Answer, Block, Section, Tile, machine_facts};
use crate::sheet::{Cell, Field, Sheet, name, wide_style};

/// Distributions of an aggregation that are drawn, and bars of another one.
const MOST_CHARTS: usize = 24;
const MOST_BARS: usize = 30;

/// Buckets that a picture has at most.
const MOST_BUCKETS: usize = 130;

/// Lines of the output that are on the page.
const MOST_LINES: usize = 400;

const FLOOR: f64 = 132.0;
const TOP: f64 = 20.0;

/// The parts of a record.
pub(crate) fn section(record: &DRun) -> Section {
    let style = wide_style();
    let page = Page::new(&style);
    let groups = groups(record);
    let keys = record.aggregations.len();
    let says = match groups.len() {
        0 => "no aggregation has a value".to_owned(),
        many => format!(
            "{} with {}",
            counted(many as u128, "aggregation", "aggregations"),
            counted(keys as u128, "key", "keys")
        ),
    };
    let rest = format!("probes attached for {}", duration(record.wall_ns as f64));
    let mut answers = vec![Answer::new("plain", says, rest)];
    answers.extend(
        losses(&page, record).into_iter().map(|(word, text)| Answer::new("doubt", word, text)),
    );
    let mut facts = vec![("command", page.name(&title(record), 2_000))];
    facts.push(("started", name(&page, &record.started)));
    facts.extend(machine_facts(&page, &record.machine));
    let mut blocks = Vec::new();
    for (number, group) in (1..).zip(&groups) {
        match group.rows[0].is_distribution() {
            true => distributions(&page, number, group, &mut blocks),
            false => values(&page, number, group, &mut blocks),
        }
    }
    blocks.extend(lines(&page, "output", "Output", &record.output).map(Block::Sheet));
    blocks.extend(lines(&page, "program", "Program", &record.program).map(|mut sheet| {
        sheet.folded = !groups.is_empty();
        Block::Sheet(sheet)
    }));
    let mut tiles = vec![Tile {
        label: "time",
        value: duration(record.wall_ns as f64),
        note: "with its probes attached".to_owned(),
    }];
    tiles.push(Tile { label: "keys", value: thousands(keys as u128), note: String::new() });
    if let Some(status) = record.status {
        tiles.push(Tile { label: "exit()", value: status.to_string(), note: String::new() });
    }
    Section {
        kind: "d",
        title: page.name(title(record).trim_start_matches("d "), 120),
        answers,
        tiles,
        findings: Vec::new(),
        blocks,
        facts,
    }
}

fn heading(page: &Page<'_>, group: &Group<'_>) -> String {
    let first = &group.rows[0];
    page.name(&format!("@{} {}", first.name, first.kind), 120)
}

fn key_fields(group: &Group<'_>) -> Vec<Field> {
    let field = |key: usize| Field::text(&format!("key{key}"), &format!("key {key}"));
    (1..=group.keys).map(field).collect()
}

fn key_cells(page: &Page<'_>, group: &Group<'_>, row: &DRow) -> Vec<Cell> {
    let mut cells: Vec<Cell> =
        row.keys.iter().take(group.keys).map(|key| Cell::text(key_text(page, key))).collect();
    cells.resize(group.keys, Cell::text(""));
    cells
}

/// A bar for each of the largest values, and all of them in a table.
fn values(page: &Page<'_>, number: usize, group: &Group<'_>, blocks: &mut Vec<Block>) {
    if group.keys > 0 {
        blocks.push(Block::Chart(bars(page, number, group)));
    }
    let mut fields = key_fields(group);
    fields.push(Field::number("value", "value", ""));
    let mut sheet = Sheet::new(&format!("aggregation-{number}"), &heading(page, group), fields);
    for row in group.rows.iter().rev() {
        let mut cells = key_cells(page, group, row);
        let value = row.shown_value().unwrap_or(0);
        cells.push(Cell::whole(value, grouped(value)));
        sheet.push(cells);
    }
    blocks.push(Block::Sheet(sheet));
}

fn grouped(value: i64) -> String {
    let sign = if value < 0 { "-" } else { "" };
    format!("{sign}{}", thousands(value.unsigned_abs().into()))
}

fn bars(page: &Page<'_>, number: usize, group: &Group<'_>) -> Chart {
    let mut rows: Vec<&DRow> = group.rows.iter().collect();
    rows.sort_by_key(|row| std::cmp::Reverse(row.shown_value()));
    rows.truncate(MOST_BARS);
    let values = rows.iter().map(|row| row.shown_value().unwrap_or(0));
    let most = values.map(i64::unsigned_abs).max().unwrap_or(1).max(1) as f64;
    let mut drawing = Drawing::new(WIDE, rows.len() as f64 * 22.0 + 8.0);
    let mut says = Vec::new();
    for (at, row) in rows.iter().enumerate() {
        let y = 4.0 + 22.0 * at as f64;
        let (label, value) = (keys_text(page, row), row.shown_value().unwrap_or(0));
        let tip = format!("{label}: {}", grouped(value));
        drawing.text(296.0, y + 12.0, "end", &fit(&label, 292.0));
        let long = (value.unsigned_abs() as f64 / most * 320.0).max(1.0);
        drawing.rect([306.0, y, long, 14.0], "t-call", &tip);
        drawing.text(WIDE - 8.0, y + 12.0, "end num", &grouped(value));
        says.push(tip);
    }
    let left_out = group.rows.len() - rows.len();
    let note = (left_out > 0)
        .then(|| format!("The table has {} more.", counted(left_out as u128, "key", "keys")));
    Chart {
        id: format!("bars-{number}"),
        title: heading(page, group),
        says: says.join("; "),
        legend: Vec::new(),
        notes: note.into_iter().collect(),
        drawing,
    }
}

/// A picture for each of the first keys, and all buckets in a table.
fn distributions(page: &Page<'_>, number: usize, group: &Group<'_>, blocks: &mut Vec<Block>) {
    let charts: Vec<Chart> = (1..)
        .zip(group.rows.iter().rev().take(MOST_CHARTS))
        .filter_map(|(key, row)| picture(page, (number, key), &heading(page, group), row))
        .collect();
    match charts.len() {
        0 => {}
        1 => blocks.extend(charts.into_iter().map(Block::Chart)),
        _ => blocks.push(Block::Few(charts)),
    }
    let mut fields = key_fields(group);
    fields.push(Field::number("low", "from", ""));
    fields.push(Field::number("high", "to", ""));
    fields.push(Field::number("count", "count", ""));
    let mut sheet = Sheet::new(&format!("aggregation-{number}"), &heading(page, group), fields);
    for row in group.rows {
        for bucket in &row.buckets {
            let mut cells = key_cells(page, group, row);
            let bound = |bound: Option<i64>| {
                Cell::from_option(bound, |value| Cell::whole(value, grouped(value)))
            };
            cells.extend([bound(bucket.low), bound(bucket.high)]);
            let count = row.divided(bucket.count);
            cells.push(Cell::whole(count, grouped(count)));
            sheet.push(cells);
        }
    }
    blocks.push(Block::Sheet(sheet));
}

/// A distribution: a bar for each bucket.
fn picture(
    page: &Page<'_>,
    (number, key): (usize, usize),
    heading: &str,
    row: &DRow,
) -> Option<Chart> {
    let mut rows = buckets(row);
    let all = rows.len();
    rows.truncate(MOST_BUCKETS);
    let size = |count: &Option<i64>| count.map_or(0, i64::unsigned_abs);
    let total: u128 = rows.iter().map(|(_, count)| u128::from(size(count))).sum();
    let most = rows.iter().map(|(_, count)| size(count)).max().filter(|most| *most > 0)?;
    let mut drawing = Drawing::new(SMALL, FLOOR + 26.0);
    let step = (SMALL - 24.0) / rows.len() as f64;
    let thick = (step - 3.0).clamp(1.5, 46.0);
    let every = (9.0 * LETTER / step).ceil().max(1.0) as usize;
    let mut says = Vec::new();
    for (at, (label, count)) in rows.iter().enumerate() {
        let x = 12.0 + step * at as f64;
        if let Some(number) = count {
            let part = share(i128::from(size(count)), total);
            let tip = format!("from {label}: {}, {part}", grouped(*number));
            let high = (size(count) as f64 / most as f64 * (FLOOR - TOP)).max(2.0);
            drawing.rect([x + (step - thick) / 2.0, FLOOR - high, thick, high], "t-call", &tip);
            if size(count) == most {
                drawing.text(x + step / 2.0, FLOOR - high - 5.0, "mid num", &grouped(*number));
            }
            says.push(tip);
        }
        if at % every == every / 2 {
            drawing.line([x, FLOOR, x, FLOOR + 4.0], "axis");
            let x = x.clamp(4.0 * LETTER, SMALL - 4.0 * LETTER);
            drawing.text(x, FLOOR + 17.0, "mid dim", label);
        }
    }
    drawing.line([12.0, FLOOR, SMALL - 12.0, FLOOR], "axis");
    let keys = keys_text(page, row);
    let title = if keys.is_empty() { heading.to_owned() } else { format!("{heading}: {keys}") };
    let note = (all > rows.len()).then(|| "The table has more buckets.".to_owned());
    Some(Chart {
        id: format!("distribution-{number}-{key}"),
        title: page.name(&title, 120),
        says: says.join("; "),
        legend: Vec::new(),
        notes: note.into_iter().collect(),
        drawing,
    })
}

/// A text by its lines; none of an empty one.
fn lines(page: &Page<'_>, id: &str, title: &str, text: &str) -> Option<Sheet> {
    let fields = vec![Field::number("line", "line", ""), Field::text("text", "text")];
    let mut sheet = Sheet::new(id, title, fields);
    for (number, line) in (1_u64..).zip(text.lines()).take(MOST_LINES) {
        sheet.push(vec![Cell::count(number), Cell::text(page.name(line, 1_000))]);
    }
    sheet.hidden = text.lines().count().saturating_sub(MOST_LINES);
    (!sheet.rows.is_empty()).then_some(sheet)
}
