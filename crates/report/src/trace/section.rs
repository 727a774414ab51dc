//! A trace as the parts of a report.

use iotomy_record::{FileKind, Limits, Trace};

use super::call_sum::CallSum;
use super::files::by_file;
use super::images::{self, Image};
use super::overhead::Overhead;
use super::{
    calls, charts, files, groups, headline, ledger, listeners, overhead, paths, peers, processes,
    requests, rings, slowest, threads, times, until,
};
use crate::ceilings::{self, Outcome};
use crate::columns::Extent;
use crate::numbers::{bytes, counted, duration, duration_range, share, thousands};
use crate::page::Page;
use crate::section::{Answer, Block, Conclusion, Section, Tile, machine_facts};
use crate::sheet::{name, tone, wide_style};

/// The parts of a record; with limits of its machine, its rates beside them.
pub(crate) fn section(record: &Trace, limits: Option<&Limits>) -> Section {
    let record = &*record.scaled();
    let style = wide_style();
    let page = Page::new(&style);
    let images = images::list(record);
    let mut answers = vec![Answer::new(
        "plain",
        headline::subject(&page, record, &images),
        headline::parts(&page, record).join(" · "),
    )];
    answers.extend(
        headline::warnings(&page, record)
            .into_iter()
            .map(|warning| Answer::new(tone(warning.ink), warning.word, warning.text)),
    );
    Section {
        kind: "trace",
        title: title(&page, record),
        answers,
        tiles: tiles(&page, record, &images),
        findings: Conclusion::all(&page, &record.findings),
        blocks: blocks(&page, record, &images, limits),
        facts: facts(&page, record),
    }
}

/// Where it comes from.
pub(crate) fn facts(page: &Page<'_>, record: &Trace) -> Vec<(&'static str, String)> {
    let mut facts = vec![("command", command(page, record))];
    facts.push(("started", name(page, &record.started)));
    facts.extend(machine_facts(page, &record.machine));
    facts.push(("observer", observer(page, record)));
    facts
}

/// The command.
fn command(page: &Page<'_>, record: &Trace) -> String {
    match record.command.is_empty() {
        true if record.view.machine => "none: the machine was watched".to_owned(),
        true => "none: running processes were watched".to_owned(),
        false => images::command_line(page, &record.command, 0, 2_000),
    }
}

/// The title of its page.
pub(crate) fn title(page: &Page<'_>, record: &Trace) -> String {
    match record.command.is_empty() {
        true => headline::subject(page, record, &images::list(record)),
        false => images::command_line(page, &record.command, 0, 160),
    }
}

fn observer(page: &Page<'_>, record: &Trace) -> String {
    let of = &record.observer;
    format!(
        "{}, {} a call; ready after {}",
        page.name(&of.name, 40),
        duration_range(of.cost_range_ns()),
        duration(of.startup_ns as f64)
    )
}

fn tiles(page: &Page<'_>, record: &Trace, images: &[Image<'_>]) -> Vec<Tile> {
    let total = CallSum::total("", &record.calls);
    let mut tiles = vec![Tile {
        label: "wall",
        value: duration(record.wall_ns as f64),
        note: match images.len() {
            0 | 1 => String::new(),
            n => counted(n as u128, "program image", "program images"),
        },
    }];
    if let Some(account) = ledger::account(page, record, images)
        && let Some(part) = account.parts.iter().max_by_key(|part| part.ns)
    {
        tiles.push(Tile {
            label: "largest part",
            value: share(part.ns, account.whole),
            note: part.label.clone(),
        });
    }
    if let Some(cpu) = headline::cpu_use(record) {
        let (value, note) = cpu.split_once(" of ").unwrap_or((&cpu, ""));
        let value = value.trim_start_matches("CPU ").to_owned();
        tiles.push(Tile { label: "CPUs", value, note: format!("of {note}") });
    }
    tiles.push(Tile {
        label: "calls",
        value: thousands(total.calls()),
        note: match total.errors() {
            0 => "none failed".to_owned(),
            n => format!("{} failed", thousands(n)),
        },
    });
    if total.bytes() > 0 {
        tiles.push(Tile { label: "bytes", value: bytes(total.bytes()), note: "by calls".into() });
    }
    if let Some(share) = Overhead::from_record(record, total.calls()) {
        tiles.push(Tile {
            label: "overhead",
            value: share.text(),
            note: format!(
                "of its {}, {}{}",
                share.of,
                overhead::of_calls(record, total.calls()),
                overhead::not_in_it(record)
            ),
        });
    }
    tiles
}

fn blocks(
    page: &Page<'_>,
    record: &Trace,
    images: &[Image<'_>],
    limits: Option<&Limits>,
) -> Vec<Block> {
    let mut blocks = Vec::new();
    blocks.extend(until::sheet(page, record).map(Block::Sheet));
    blocks.extend(charts::ledger(page, record, images).map(Block::Chart));
    blocks.extend(charts::processes(page, images).map(Block::Chart));
    let results = results(page, None, record, record.wall_ns as f64);
    blocks.extend(ceilings::chart(&results, &record.findings, limits).map(Block::Chart));
    blocks.push(Block::Sheet(calls::sheet(page, record)));
    blocks.extend(rings::sheet(page, record, images).map(Block::Sheet));
    if images.len() > 1 {
        blocks.push(Block::Sheet(calls::sheet_of_processes(page, record, images)));
        let processes = processes::sheet(page, record, images, Extent::PAGE);
        blocks.push(Block::Sheet(processes.without_empty_columns()));
    }
    if !record.threads.is_empty() {
        let threads = threads::sheet(page, record, images, Extent::PAGE);
        blocks.push(Block::Sheet(threads.without_empty_columns()));
    }
    blocks.extend(times::sheet(page, record).map(Block::Sheet));
    let few = charts::distributions(page, record, images);
    if !few.is_empty() {
        blocks.push(Block::Head("Distributions".into()));
        blocks.push(Block::Few(few));
    }
    if !record.files.is_empty() {
        let files = files::sheet(page, record, images, Extent::PAGE);
        blocks.push(Block::Sheet(files.without_empty_columns()));
    }
    blocks.extend(peers::sheet(page, record).map(Block::Sheet));
    blocks.extend(listeners::sheet(page, record).map(Block::Sheet));
    blocks.extend(requests::sheet(page, record).map(Block::Sheet));
    blocks.extend(paths::sheet(page, record).map(Block::Sheet));
    let slowest = slowest::sheet(page, record, "slowest", "The slowest calls", &record.slowest);
    blocks.extend(slowest.map(Block::Sheet));
    blocks.extend(groups::sheet(page, record).map(Block::Sheet));
    blocks
}

/// Bytes from which on a rate is meaningful.
const ENOUGH: u64 = 1 << 20;

/// Results of a run, at most.
const RESULTS: usize = 5;

/// The traffic through its files during the run. Pipes and sockets are left out: bytes through them
/// stay in the CPU's caches.
pub(crate) fn results(
    page: &Page<'_>,
    label: Option<&str>,
    record: &Trace,
    wall_ns: f64,
) -> Vec<Outcome> {
    let kinds = [FileKind::File, FileKind::Block, FileKind::Char];
    let (files, _) = by_file(record);
    let mut results: Vec<Outcome> = files
        .iter()
        .map(|used| &used.sum)
        .filter(|file| kinds.contains(&file.kind))
        .filter_map(|file| {
            let moved = file.read_bytes.max(file.write_bytes);
            let way = if file.read_bytes >= file.write_bytes { "read from" } else { "written to" };
            let rate = moved as f64 / (wall_ns.max(1.0) / 1e9);
            let lead = label.map_or_else(String::new, |label| format!("{label}: "));
            (moved >= ENOUGH).then(|| Outcome {
                label: format!("{lead}{way} {}", page.name(&file.path, 200)),
                path: Some(file.path.clone()),
                command: label.map(str::to_owned),
                rate,
            })
        })
        .collect();
    results.sort_by(|a, b| b.rate.total_cmp(&a.rate));
    results.truncate(RESULTS);
    results
}
