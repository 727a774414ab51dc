//! The work of the block layer, for a page: a table of its causes, and distributions by cause.

use std::collections::BTreeMap;

use iotomy_record::{BlockIo, Histogram, Requests};

use super::block::{by_cause, cause, headline, lost, read_ahead, remarks, whose};
use crate::chart::{Chart, Key, series_class};
use crate::histogram::{self, BarSegment};
use crate::numbers::{bytes, counted, duration, figure, percent, thousands};
use crate::page::Page;
use crate::section::Block;
use crate::sheet::{Cell, Field, Sheet};

/// Devices and operations whose distributions are drawn, and requests from which on one is more
/// informative than the table; but always the most frequent.
const KINDS: usize = 6;
const OFTEN: u128 = 8;

/// Causes that have a colour of their own; the last is that of all others.
const CAUSES: usize = 6;

/// The parts of a page; none where nothing went to a device or came from the page cache.
pub(super) fn blocks(page: &Page<'_>, io: &BlockIo) -> Vec<Block> {
    let mut blocks = Vec::new();
    if let Some(text) = headline(io) {
        blocks.push(Block::Head("Block I/O".into()));
        let mut notes = vec![text];
        notes.extend(lost(io).into_iter().map(|text| format!("lost: {text}")));
        blocks.push(Block::Notes(notes));
        blocks.extend(distributions(page, io).into_iter().map(Block::Few));
    }
    if !io.requests.is_empty() {
        blocks.push(Block::Sheet(causes(page, io)));
    }
    blocks.extend(found_ahead(page, io).map(Block::Sheet));
    blocks
}

fn causes(page: &Page<'_>, io: &BlockIo) -> Sheet {
    let mut sheet = Sheet::new(
        "block-io",
        "Requests and their causes",
        vec![
            Field::text("caused_by", "caused by"),
            Field::text("device", "device"),
            Field::text("operation", "does"),
            Field::number("requests", "requests", ""),
            Field::number("bytes", "bytes", ""),
            Field::number("merged", "merged", ""),
            Field::number("mean_bytes", "mean size", ""),
            Field::number("mean_queue_ns", "queued, mean", "µs"),
            Field::number("mean_device_ns", "in device, mean", "µs"),
            Field::number("errors", "errors", ""),
            Field::text("remarks", "remarks"),
        ],
    );
    let some = |n: u128, shown: String| Cell::whole(n, if n > 0 { shown } else { String::new() });
    for (row, pids, exec) in by_cause(&io.requests) {
        let merged = u128::from(row.merged_bios) + u128::from(row.merged_requests);
        let mean = |ns: u64, of: u64| match of {
            0 => Cell::absent(),
            of => {
                let mean = ns as f64 / of as f64;
                Cell::real(mean, figure(mean / 1e3))
            }
        };
        let size = match row.bytes.checked_div(row.requests) {
            Some(mean) if row.bytes > 0 => Cell::whole(mean, bytes(mean.into())),
            _ => Cell::absent(),
        };
        sheet.push(vec![
            Cell::text(format!("{}: {}", whose(page, &pids, exec), cause(page, &row))),
            Cell::text(page.name(&row.device, 20)),
            Cell::text(page.name(&row.operation, 20)),
            Cell::whole(row.requests, thousands(row.requests.into())),
            some(row.bytes.into(), bytes(row.bytes.into())),
            some(merged, thousands(merged)),
            size,
            mean(row.queue_ns, row.requests),
            mean(row.device_ns, row.finished),
            some(row.errors.into(), thousands(row.errors.into())),
            Cell::text(remarks(&row).join(", ")),
        ]);
    }
    sheet.without_empty_columns()
}

/// The benefit of read-ahead, a row per program.
fn found_ahead(page: &Page<'_>, io: &BlockIo) -> Option<Sheet> {
    let by = read_ahead(&io.read_ahead);
    let mut sheet = Sheet::new(
        "read-ahead",
        "Read-ahead",
        vec![
            Field::text("program", "program"),
            Field::number("asked_pages", "pages requested", ""),
            Field::number("missed_pages", "fetched on demand", ""),
            Field::number("ahead_pages", "read ahead", ""),
            Field::number("hit_pages", "of these, requested later", ""),
            Field::number("hit_percent", "share", "%"),
        ],
    );
    for (exec, [asked, missed, hits, ahead]) in &by {
        let n = |n: u128| Cell::whole(n, thousands(n));
        let hit = i128::try_from(*hits).unwrap_or(i128::MAX);
        let share = match percent(hit, *ahead) {
            text if text.is_empty() => Cell::absent(),
            text => Cell::real(*hits as f64 / *ahead as f64 * 100.0, text),
        };
        let pages = [*asked, *missed, *ahead, *hits].map(n);
        let row = std::iter::once(Cell::text(page.name(exec, 40))).chain(pages).chain([share]);
        sheet.push(row.collect());
    }
    (!by.is_empty()).then_some(sheet)
}

/// The three distributions of a cause.
type CauseHistograms = [Histogram; 3];

/// For each device and operation, the most frequent first, three pictures.
fn distributions(page: &Page<'_>, io: &BlockIo) -> Vec<Vec<Chart>> {
    let mut kinds: BTreeMap<(&str, &str), BTreeMap<String, CauseHistograms>> = BTreeMap::new();
    for row in &io.requests {
        let label = format!("{}: {}", page.name(&row.exec, 20), cause(page, row));
        let causes = kinds.entry((&row.device, &row.operation)).or_default();
        add(causes.entry(label).or_default(), row);
    }
    let count = |three: &CauseHistograms| three.iter().map(Histogram::total).max().unwrap_or(0);
    let all = |causes: &BTreeMap<String, CauseHistograms>| {
        causes.values().map(|three| u128::from(count(three))).sum::<u128>()
    };
    let mut kinds: Vec<_> = kinds.into_iter().filter(|(_, causes)| all(causes) > 0).collect();
    kinds.sort_by_key(|(_, causes)| std::cmp::Reverse(all(causes)));
    let often = kinds.iter().take_while(|(_, causes)| all(causes) >= OFTEN).count();
    kinds.truncate(often.clamp(1, KINDS));
    let mut rows = Vec::new();
    for (at, ((device, operation), causes)) in kinds.into_iter().enumerate() {
        let mut causes: Vec<(String, CauseHistograms)> =
            causes.into_iter().filter(|(_, three)| count(three) > 0).collect();
        causes.sort_by_key(|(_, three)| std::cmp::Reverse(count(three)));
        if causes.len() > CAUSES {
            let mut others = CauseHistograms::default();
            let n = causes.len() + 1 - CAUSES;
            for (_, three) in causes.drain(CAUSES - 1..) {
                others.iter_mut().zip(&three).for_each(|(sum, one)| sum.merge(one));
            }
            causes.push((counted(n as u128, "other cause", "other causes"), others));
        }
        let whose = format!("{} {}", page.name(device, 20), page.name(operation, 20));
        rows.push(three(&whose, at + 1, &causes));
    }
    rows
}

fn add(three: &mut CauseHistograms, row: &Requests) {
    three[0].merge(&row.size_log2);
    three[1].merge(&row.queue_log2);
    three[2].merge(&row.device_log2);
}

/// Writes the least value of a bar.
type ValueText<'a> = &'a dyn Fn(&str) -> String;

fn three(whose: &str, number: usize, causes: &[(String, CauseHistograms)]) -> Vec<Chart> {
    let size =
        |label: &str| label.parse::<u64>().map_or_else(|_| label.into(), |n| bytes(n.into()));
    let time =
        |label: &str| label.parse::<u64>().map_or_else(|_| label.into(), |n| duration(n as f64));
    let kinds: [(&str, &str, ValueText<'_>); 3] = [
        ("sizes", "size of a request", &size),
        ("queued", "time queued", &time),
        ("device", "time in the device", &time),
    ];
    let mut charts = Vec::new();
    for (at, (id, what, shown)) in kinds.into_iter().enumerate() {
        // One without values has its colour, too: a cause has the same in all three.
        let parts: Vec<BarSegment<'_>> = causes
            .iter()
            .map(|(label, three)| BarSegment { label, histogram: &three[at] })
            .collect();
        let Some((drawing, says)) = histogram::draw(&parts, shown, "requests") else { continue };
        let key = |(series, (label, _)): (usize, &(String, CauseHistograms))| Key {
            class: series_class(series),
            label: label.clone(),
            series: Some(series),
        };
        charts.push(Chart {
            id: format!("block-{number}-{id}"),
            title: format!("{whose} — {what}"),
            says: says.join("; "),
            legend: match causes {
                [(label, _)] => vec![Key::new("t-call", label)],
                many => many.iter().enumerate().map(key).collect(),
            },
            notes: Vec::new(),
            drawing,
        });
    }
    charts
}
