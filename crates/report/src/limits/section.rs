//! Limits as the parts of a report: floors, ceilings, and the results of other records compared
//! with them.

use iotomy_record::store::Record;
use iotomy_record::{Finding, Limit, Limits};

use super::{by_volume, counts, rounded, title};
use crate::axis::{Axis, Unit};
use crate::ceilings::{self, Outcome};
use crate::chart::{Chart, Drawing, Key, WIDE, fit, labels_below};
use crate::numbers::figure;
use crate::page::Page;
use crate::section::{Answer, Block, Section, Tile, machine_facts};
use crate::sheet::{Cell, Field, Sheet, name, wide_style};

/// The most important limits.
const FIRST: [(&str, &str); 4] = [
    ("syscall", "a system call"),
    ("minor-fault", "a page fault"),
    ("memory-read-all", "memory is read"),
    ("memory-copy-all", "memory is copied"),
];

/// The parts of a record; the results of the others of this machine are compared with it.
pub(crate) fn section(record: &Limits, all: &[&Record]) -> Section {
    let style = wide_style();
    let page = Page::new(&style);
    let (head, kept) = counts(&page, record);
    let mut answers = vec![Answer::new("plain", head, kept.unwrap_or_default())];
    let (results, findings) = results(&page, record, all);
    let against = ceilings::chart(&results, &findings, Some(record));
    let says = |finding: &Finding| page.name(&finding.text, crate::findings::TEXT);
    answers.extend(
        findings
            .iter()
            .filter(|finding| finding.verdict == iotomy_record::Verdict::Impossible)
            .map(|finding| Answer::new("bad", "IMPOSSIBLE", says(finding))),
    );
    let mut facts = vec![("started", name(&page, &record.started))];
    facts.extend(machine_facts(&page, &record.machine));
    facts.push((
        "figures",
        "a figure is the median of many short batches; its spread is the interquartile range"
            .into(),
    ));
    let tile = |(key, label): (&str, &'static str)| {
        let limit = record.of_machine(key)?;
        let value = ceilings::shown(&limit.unit, limit.value?);
        Some(Tile { label, value, note: page.name(&limit.name, 40) })
    };
    let mut blocks: Vec<Block> = against.map(Block::Chart).into_iter().collect();
    blocks.extend(tables(&page, record));
    Section {
        kind: "limits",
        title: format!("Limits of {}", machine(&page, record)),
        answers,
        tiles: FIRST.into_iter().filter_map(tile).collect(),
        findings: Vec::new(),
        blocks,
        facts,
    }
}

fn machine(page: &Page<'_>, record: &Limits) -> String {
    match record.machine.cpu.as_str() {
        "" => "this machine".to_owned(),
        cpu => page.name(cpu, 100),
    }
}

/// The rates in the other records of this machine, and the findings about them.
fn results(page: &Page<'_>, record: &Limits, all: &[&Record]) -> (Vec<Outcome>, Vec<Finding>) {
    let (mut results, mut findings) = (Vec::new(), Vec::new());
    for other in all {
        match other {
            Record::Trace(trace) if ceilings::are_of(record, &trace.machine) => {
                let wall = trace.wall_ns as f64;
                results.extend(crate::trace::results(page, None, trace, wall).into_iter().take(3));
                findings.extend(trace.findings.iter().cloned());
            }
            Record::Race(race) if ceilings::are_of(record, &race.machine) => {
                for one in &race.commands {
                    let Some(trace) = &one.trace else { continue };
                    let found =
                        crate::trace::results(page, Some(&one.label), trace, one.wall.median_ns);
                    results.extend(found.into_iter().take(2));
                }
                findings.extend(race.findings.iter().cloned());
            }
            Record::Copy(copy) if ceilings::are_of(record, &copy.machine) => {
                results.extend(crate::copy::results(page, copy));
                findings.extend(copy.findings.iter().cloned());
            }
            _ => {}
        }
    }
    results.truncate(24);
    findings.retain(|finding| finding.verdict == iotomy_record::Verdict::Impossible);
    (results, findings)
}

/// Floors and ceilings, of the machine and of each file system: a picture and a table each.
fn tables(page: &Page<'_>, record: &Limits) -> Vec<Block> {
    let of_machine: Vec<_> = record.limits.iter().filter(|limit| limit.volume.is_none()).collect();
    let mut groups = vec![("machine".to_owned(), "This machine".to_owned(), of_machine)];
    for (at, of_volume) in by_volume(record).into_iter().enumerate() {
        let name = title(page, of_volume[0]);
        groups.push((format!("volume-{}", at + 1), name, of_volume));
    }
    let mut blocks = Vec::new();
    for (id, head, limits) in groups {
        for (unit, kind, what) in
            [("ns", "floors", "floors (medians)"), ("bytes/s", "ceilings", "ceilings (medians)")]
        {
            let of: Vec<&Limit> = limits
                .iter()
                .copied()
                .filter(|limit| limit.unit == unit && limit.value.is_some())
                .collect();
            let title = format!("{head}: {what}");
            blocks
                .extend(chart(page, &of, &format!("{id}-{kind}-chart"), &title).map(Block::Chart));
            if !of.is_empty() {
                blocks.push(Block::Sheet(table(page, &of, &format!("{id}-{kind}"), &title)));
            }
        }
    }
    let fields =
        vec![Field::text("limit", "limit"), Field::text("of", "of"), Field::text("why", "why")];
    let mut skipped = Sheet::new("skipped", "Skipped", fields);
    for limit in &record.limits {
        let Some(why) = &limit.skipped else { continue };
        let of =
            limit.volume.as_ref().map_or_else(String::new, |volume| page.name(&volume.path, 100));
        skipped.push(vec![
            Cell::text(page.name(&limit.name, 60)),
            Cell::text(of),
            Cell::text(page.name(why, 400)),
        ]);
    }
    if !skipped.rows.is_empty() {
        blocks.push(Block::Sheet(skipped.without_empty_columns()));
    }
    blocks
}

fn table(page: &Page<'_>, limits: &[&Limit], id: &str, title: &str) -> Sheet {
    let (shown, factor, key) = match limits.first().map(|limit| limit.unit.as_str()) {
        Some("ns") => ("ns", 1.0, "value_ns"),
        _ => ("MB/s", 1e-6, "value_bytes_per_s"),
    };
    let mut sheet = Sheet::new(
        id,
        title,
        vec![
            Field::text("limit", "limit"),
            Field::number(key, "", shown),
            Field::number("spread", "spread", "%"),
            Field::text("method", "method"),
            Field::text("measured", "kept since"),
        ],
    );
    for limit in limits {
        let (value, spread) = (limit.value.unwrap_or(0.0), limit.spread.unwrap_or(0.0));
        let part = (spread / value * 100.0).min(1_000.0);
        sheet.push(vec![
            Cell::text(page.name(&limit.name, 60)),
            Cell::real(value, figure(rounded(value * factor))),
            Cell::real(spread, format!("{part:.1}")),
            Cell::text(page.name(&limit.method, 400)),
            Cell::text(
                limit.measured.as_deref().map_or_else(String::new, |time| page.name(time, 40)),
            ),
        ]);
    }
    sheet.folded = true;
    sheet.without_empty_columns()
}

/// Rows that are drawn, at most.
const ROWS: usize = 40;
const LABELS: f64 = 196.0;
const BARS: f64 = 206.0;
const END: f64 = 650.0;
const ROW: f64 = 22.0;

/// The figures on a logarithmic axis, each with its spread.
fn chart(page: &Page<'_>, limits: &[&Limit], id: &str, title: &str) -> Option<Chart> {
    let shown = &limits[..limits.len().min(ROWS)];
    let values = shown.iter().filter_map(|limit| limit.value).collect::<Vec<f64>>();
    let axis = Axis::from_values(values.into_iter())?.roomy();
    let place = |value: f64| BARS + axis.share(value) * (END - BARS);
    let floor = 8.0 + ROW * shown.len() as f64;
    let mut drawing = Drawing::new(WIDE, floor + 28.0);
    let unit = Unit::for_unit(&shown[0].unit);
    for tick in axis.ticks(6) {
        drawing.line([place(tick), 4.0, place(tick), floor], "grid");
    }
    let labels = axis.ticks(6).into_iter().map(|tick| (place(tick), unit.shown(tick)));
    labels_below(&mut drawing, floor + 16.0, labels);
    let mut says = Vec::new();
    for (at, limit) in shown.iter().enumerate() {
        let Some(value) = limit.value else { continue };
        let y = 8.0 + ROW * at as f64;
        let half = limit.spread.unwrap_or(0.0) / 2.0;
        let label = page.name(&limit.name, 60);
        drawing.text(LABELS, y + 13.0, "end", &fit(&label, LABELS - 4.0));
        drawing.line([BARS, y + 9.0, place(value), y + 9.0], "grid");
        let (low, high) = (place((value - half).max(axis.low)), place(value + half));
        drawing.line([low, y + 9.0, high, y + 9.0], "s0 error");
        let tip = format!(
            "{label}: {}, spread {}; {}",
            unit.shown(value),
            unit.shown(2.0 * half),
            page.name(&limit.method, 300)
        );
        drawing.mark(0, place(value), y + 9.0, &tip);
        drawing.text(WIDE - 8.0, y + 13.0, "end num", &unit.shown(value));
        says.push(format!("{label} {}", unit.shown(value)));
    }
    let mut notes = Vec::new();
    if axis.is_log {
        notes.push("the axis is logarithmic; the bars are the interquartile range".to_owned());
    }
    if limits.len() > shown.len() {
        notes.push(format!("{} more are in the table", limits.len() - shown.len()));
    }
    Some(Chart {
        id: id.to_owned(),
        title: title.to_owned(),
        says: says.join("; "),
        legend: Vec::<Key>::new(),
        notes,
        drawing,
    })
}
