//! A copy as the parts of a report.

use iotomy_record::{CopyPart, CopyRun, Limits};

use super::refused;
use crate::ceilings::{self, Outcome};
use crate::chart::{Chart, Drawing, WIDE, fit};
use crate::numbers::{bytes, counted, duration, thousands};
use crate::page::Page;
use crate::section::{Answer, Block, Conclusion, Section, Tile, machine_facts};
use crate::sheet::{Cell, Field, Sheet, name, wide_style};

/// The parts of a record; with limits of its machine, its rates beside them.
pub(crate) fn section(record: &CopyRun, limits: Option<&Limits>) -> Section {
    let style = wide_style();
    let page = Page::new(&style);
    let mut answers = vec![answer(&page, record)];
    for message in record.messages.iter().take(20) {
        answers.push(Answer::new("bad", "error", page.name(message, 2_000)));
    }
    let mut facts = vec![("started", name(&page, &record.started))];
    facts.push(("contract", page.name(&record.contract, 2_000)));
    facts.extend(machine_facts(&page, &record.machine));
    facts.retain(|(_, text)| !text.is_empty());
    let sources = match record.sources.as_slice() {
        [one] => page.name(one, 120),
        many => counted(many.len() as u128, "source", "sources"),
    };
    let mut blocks = vec![Block::Chart(figures(record))];
    let results = results(&page, record);
    blocks.extend(ceilings::chart(&results, &record.findings, limits).map(Block::Chart));
    blocks.push(Block::Sheet(copies(&page, record)));
    blocks.push(Block::Sheet(movers(&page, record)));
    Section {
        kind: "copy",
        title: format!("{sources} → {}", page.name(&record.target, 120)),
        answers,
        tiles: tiles(&page, record),
        findings: Conclusion::all(&page, &record.findings),
        blocks,
        facts,
    }
}

fn answer(page: &Page<'_>, record: &CopyRun) -> Answer {
    let says = format!("{} in {}", bytes(record.bytes.into()), duration(record.wall_ns as f64));
    let mut rest = Vec::new();
    rest.extend(record.mover.as_ref().map(|mover| format!("by {}", page.name(mover, 40))));
    rest.extend(record.fsync_ns.map(|ns| format!("{} of it in syncs", duration(ns as f64))));
    rest.extend(record.verified.map(|same| match same {
        true => "read back: identical".to_owned(),
        false => "read back: different".to_owned(),
    }));
    let tone = if record.errors > 0 { "bad" } else { "good" };
    Answer::new(tone, says, rest.join(" · "))
}

/// Bytes over the time of the moving, of each source.
pub(crate) fn results(page: &Page<'_>, record: &CopyRun) -> Vec<Outcome> {
    let of = |part: &CopyPart| Outcome {
        label: page.name(&part.source, 200),
        path: Some(part.source.clone()),
        command: None,
        rate: part.bytes as f64 / (part.wall_ns.max(1) as f64 / 1e9),
    };
    record.copies.iter().filter(|part| part.bytes >= 1 << 20).take(8).map(of).collect()
}

fn tiles(page: &Page<'_>, record: &CopyRun) -> Vec<Tile> {
    let rate = record.bytes as f64 / (record.wall_ns.max(1) as f64 / 1e9);
    let mover = record.mover.as_deref().map_or("several".to_owned(), |mover| page.name(mover, 40));
    vec![
        Tile {
            label: "bytes",
            value: bytes(record.bytes.into()),
            note: thousands(record.bytes.into()),
        },
        Tile { label: "time", value: duration(record.wall_ns as f64), note: String::new() },
        Tile { label: "rate", value: crate::axis::rate(rate), note: "over the whole time".into() },
        Tile { label: "mover", value: mover, note: String::new() },
    ]
}

/// The traffic of the bytes: three figures, never one.
fn figures(record: &CopyRun) -> Chart {
    let rows = [
        ("reached the target", record.bytes, "t-whole"),
        ("referenced", record.referenced_bytes, "t-user"),
        ("copied, each copy counted", record.copied_bytes, "t-call"),
        ("touched in user space", record.touched_bytes, "t-waiting"),
    ];
    let largest = rows.iter().map(|(_, n, _)| *n).max().unwrap_or(1).max(1) as f64;
    let mut drawing = Drawing::new(WIDE, 4.0 * 26.0 + 8.0);
    let mut says = Vec::new();
    for (at, (label, n, class)) in rows.into_iter().enumerate() {
        let y = 4.0 + 26.0 * at as f64;
        let tip = format!("{label}: {} bytes", thousands(n.into()));
        drawing.text(196.0, y + 12.5, "end", &fit(label, 192.0));
        drawing.rect([206.0, y, (n as f64 / largest * 410.0).max(1.0), 16.0], class, &tip);
        drawing.text(WIDE - 8.0, y + 12.5, "end num", &bytes(n.into()));
        says.push(tip);
    }
    Chart {
        id: "bytes".into(),
        title: "Bytes by how they moved".into(),
        says: says.join("; "),
        legend: Vec::new(),
        notes: Vec::new(),
        drawing,
    }
}

fn copies(page: &Page<'_>, record: &CopyRun) -> Sheet {
    let mut sheet = Sheet::new(
        "copies",
        "Sources",
        vec![
            Field::text("source", "source"),
            Field::text("source_is", "which is"),
            Field::text("target", "target"),
            Field::text("mover", "mover"),
            Field::number("bytes", "bytes", ""),
            Field::number("referenced_bytes", "referenced", ""),
            Field::number("copied_bytes", "copied", ""),
            Field::number("touched_bytes", "touched", ""),
            Field::number("wall_ns", "time", ""),
            Field::text("error", "error"),
        ],
    );
    for part in &record.copies {
        sheet.push(vec![
            Cell::text(name(page, &part.source)),
            Cell::text(page.name(&part.source_is, 300)),
            Cell::text(name(page, &part.target)),
            Cell::text(
                part.mover.as_deref().map_or_else(String::new, |mover| page.name(mover, 40)),
            ),
            Cell::size(part.bytes),
            Cell::size(part.referenced_bytes),
            Cell::size(part.copied_bytes),
            Cell::size(part.touched_bytes),
            Cell::whole(part.wall_ns, duration(part.wall_ns as f64)),
            Cell::text(
                part.error.as_deref().map_or_else(String::new, |error| page.name(error, 400)),
            ),
        ]);
    }
    sheet.without_empty_columns()
}

/// How the mover of each source was chosen.
fn movers(page: &Page<'_>, record: &CopyRun) -> Sheet {
    let fields = vec![
        Field::text("source", "source"),
        Field::text("mover", "mover"),
        Field::text("place", "place"),
        Field::text("reason", "reason"),
    ];
    let mut sheet = Sheet::new("movers", "How the mover was chosen", fields);
    for part in &record.copies {
        let source = name(page, &part.source);
        let mut push = |mover: &str, place: &str, reason: String| {
            let mover = page.name(mover, 40);
            sheet.push(vec![
                Cell::text(&source),
                Cell::text(mover),
                Cell::text(place),
                Cell::text(reason),
            ]);
        };
        for tried in &part.plan.tried {
            match &tried.refused {
                Some(refusal) => push(&tried.mover, "refused", refused(page, refusal)),
                None => push(&tried.mover, "chosen", page.name(&tried.reason, 400)),
            }
        }
        for (place, all) in [("next", &part.plan.spare), ("unsuited", &part.plan.unsuited)] {
            all.iter().for_each(|one| push(&one.mover, place, page.name(&one.reason, 400)));
        }
    }
    sheet
}
