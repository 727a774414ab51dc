//! A trace as the parts of a report.

use iotomy_record::{FileKind, Limits, Socket, SortKey, Trace};

use super::call_columns::{self, CallColumn, Whole};
use super::call_sum::CallSum;
use super::calls::remarks;
use super::files::{by_file, users};
use super::images::{self, Image};
use super::overhead::Overhead;
use super::{
    charts, groups, headline, ledger, overhead, paths, peers, rings, slowest, threads, times, until,
};
use crate::ceilings::{self, Outcome};
use crate::numbers::{
    bytes, counted, decimals_for, duration, duration_range, fixed, share, thousands,
};
use crate::page::Page;
use crate::section::{Answer, Block, Conclusion, Section, Tile, machine_facts};
use crate::sheet::{Cell, Field, Sheet, name, tone, wide_style};

/// The parts of a record; with limits of its machine, its rates beside them.
pub(crate) fn section(record: &Trace, limits: Option<&Limits>) -> Section {
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
    blocks.push(Block::Sheet(calls(page, "calls", "Calls", record, None)));
    blocks.extend(rings::sheet(page, record).map(Block::Sheet));
    if images.len() > 1 {
        blocks.push(Block::Sheet(calls(
            page,
            "calls-of-processes",
            "Calls of each process",
            record,
            Some(images),
        )));
        blocks.push(Block::Sheet(processes(page, images)));
    }
    blocks.extend(threads::sheet(page, record).map(Block::Sheet));
    blocks.extend(times::sheet(page, record).map(Block::Sheet));
    let few = charts::distributions(page, record, images);
    if !few.is_empty() {
        blocks.push(Block::Head("Distributions".into()));
        blocks.push(Block::Few(few));
    }
    if !record.files.is_empty() {
        blocks.push(Block::Sheet(files(page, record, images)));
    }
    blocks.extend(peers::sheet(page, record).map(Block::Sheet));
    blocks.extend(paths::sheet(page, record).map(Block::Sheet));
    let slowest = slowest::sheet(page, record, "slowest", "The slowest calls", &record.slowest);
    blocks.extend(slowest.map(Block::Sheet));
    blocks.extend(groups::sheet(page, record).map(Block::Sheet));
    blocks
}

/// Bytes from which on a rate is meaningful.
const ENOUGH: u128 = 1 << 20;

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
        .filter(|((_, kind), _)| kinds.contains(kind))
        .filter_map(|((path, _), used)| {
            let moved = used.read_bytes.max(used.write_bytes);
            let way = if used.read_bytes >= used.write_bytes { "read from" } else { "written to" };
            let rate = moved as f64 / (wall_ns.max(1.0) / 1e9);
            let lead = label.map_or_else(String::new, |label| format!("{label}: "));
            (moved >= ENOUGH).then(|| Outcome {
                label: format!("{lead}{way} {}", page.name(path, 200)),
                path: Some((*path).to_owned()),
                contender: label.map(str::to_owned),
                rate,
            })
        })
        .collect();
    results.sort_by(|a, b| b.rate.total_cmp(&a.rate));
    results.truncate(RESULTS);
    results
}

/// The calls, summed over the processes, or of each.
pub(crate) fn calls(
    page: &Page<'_>,
    id: &str,
    title: &str,
    record: &Trace,
    images: Option<&[Image<'_>]>,
) -> Sheet {
    let total = CallSum::total("all", &record.calls);
    let wall = total.wall();
    let whole = Whole { wall, decimals: decimals_for(wall as f64 / 1e6) };
    let mut fields = vec![Field::text("call", "call")];
    if images.is_some() {
        fields.insert(0, Field::text("process", "process"));
    }
    fields.extend(call_columns::all().into_iter().map(CallColumn::field));
    fields.push(Field::text("remarks", "remarks"));
    let mut sheet = Sheet::new(id, title, fields);
    match images {
        None => {
            for sum in CallSum::by_name(&record.calls, record.view.sort) {
                sheet.push(row(page, None, &sum, whole));
            }
            if sheet.rows.len() > 1 {
                sheet.total = Some(row(page, None, &total, whole));
            }
        }
        Some(images) => {
            let of = |image: &Image<'_>| {
                let calls = CallSum::by_name(image.calls.iter().copied(), SortKey::WALL);
                let label = image.label(page);
                calls
                    .into_iter()
                    .map(|sum| row(page, Some(&label), &sum, whole))
                    .collect::<Vec<_>>()
            };
            sheet.rows = images.iter().flat_map(of).collect();
            sheet.folded = true;
        }
    }
    sheet.without_empty_columns()
}

fn row(page: &Page<'_>, image: Option<&str>, sum: &CallSum<'_>, whole: Whole) -> Vec<Cell> {
    let mut cells: Vec<Cell> = image.map(Cell::text).into_iter().collect();
    cells.push(Cell::text(page.name(sum.name, 60)));
    cells.extend(call_columns::all().into_iter().map(|column| column.cell(page, sum, whole)));
    cells.push(Cell::text(remarks(page, sum).join(", ")));
    cells
}

fn processes(page: &Page<'_>, images: &[Image<'_>]) -> Sheet {
    let largest = images.first().map_or(0.0, |image| image.time() as f64 / 1e6);
    let decimals = decimals_for(largest);
    let mut sheet = Sheet::new(
        "processes",
        "Processes",
        vec![
            Field::text("process", "process"),
            Field::text("command", "arguments"),
            Field::number("threads", "threads", ""),
            Field::number("thread_ns", "time", "ms"),
            Field::number("user_ns", "user", "ms"),
            Field::number("calls_on_cpu_ns", "in calls", "ms"),
            Field::number("blocked_ns", "blocked", "ms"),
            Field::number("runnable_ns", "runq", "ms"),
            Field::number("residual_ns", "residual", "ms"),
            Field::number("calls", "calls", ""),
            Field::number("bytes", "bytes", ""),
            Field::number("max_rss_bytes", "resident", ""),
        ],
    );
    for image in images {
        let of = image.ledger;
        let ms = |part: fn(&images::Ledger) -> i128| {
            Cell::from_option(of, |of| {
                Cell::whole(part(&of), fixed(part(&of) as f64 / 1e6, decimals))
            })
        };
        let calls = CallSum::total("", image.calls.iter().copied());
        let process = image.process;
        let argv = process.map(|p| images::command_line(page, &p.argv, p.argv_words, 200));
        // In one column with its name: the table has to fit on paper.
        let binary = image.binary(page).map(|binary| format!(" [{binary}]")).unwrap_or_default();
        sheet.push(vec![
            Cell::text(image.label(page) + &binary),
            Cell::text(argv.unwrap_or_default()),
            Cell::from_option(process, |_| Cell::count(image.threads)),
            ms(|of| of.thread),
            ms(|of| of.user),
            ms(|of| of.calls),
            ms(|of| of.blocked),
            ms(|of| of.runnable),
            ms(images::Ledger::residual),
            Cell::count(calls.calls()),
            Cell::size(calls.bytes()).if_any(),
            Cell::from_option(process, |p| Cell::size(p.max_rss_bytes)),
        ]);
    }
    sheet.without_empty_columns()
}

fn files(page: &Page<'_>, record: &Trace, images: &[Image<'_>]) -> Sheet {
    let mut sheet = Sheet::new(
        "files",
        "Files",
        vec![
            Field::text("file", "file"),
            Field::text("kind", "kind"),
            Field::number("read_calls", "reads", ""),
            Field::number("read_bytes", "read", ""),
            Field::number("write_calls", "writes", ""),
            Field::number("write_bytes", "written", ""),
            Field::number("mapped_bytes", "mapped", ""),
            Field::text("by", "by"),
        ],
    );
    let (files, total) = by_file(record);
    let names = images::Names::from_record(record);
    let cells = |path: String, kind: &str, of: &super::files::Use<'_>, by: String| {
        let n = |n: u128| Cell::count(n).if_any();
        let size = |calls: u128, n: u128| match calls {
            0 => Cell::size(n).if_any(),
            _ => Cell::size(n),
        };
        vec![
            Cell::text(path),
            Cell::text(kind),
            n(of.read_calls),
            size(of.read_calls, of.read_bytes),
            n(of.write_calls),
            size(of.write_calls, of.write_bytes),
            size(of.map_calls, of.mapped_bytes),
            Cell::text(by),
        ]
    };
    for ((path, kind), used) in &files {
        let by = if images.len() > 1 { users(page, &names, used) } else { String::new() };
        let path = used.socket.map_or_else(|| (*path).to_owned(), Socket::text);
        sheet.push(cells(name(page, &path), kind.name(), used, by));
    }
    if files.len() > 1 {
        sheet.total = Some(cells("all".into(), "", &total, String::new()));
    }
    sheet.without_empty_columns()
}
