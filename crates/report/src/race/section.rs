//! A race as the parts of a report.

use std::collections::BTreeMap;

use iotomy_record::{Limits, Metric, Race, Verdict};

use super::{charts, commands, doubts, headline, how, is_told, terms};
use crate::ceilings;
use crate::numbers::{decimals_for, duration, figure, fixed, thousands};
use crate::page::Page;
use crate::section::{Answer, Block, Conclusion, Section, Tile, machine_facts};
use crate::sheet::{Cell, Field, Sheet, name, tone, wide_style};
use crate::trace::CallSum;

/// The parts of a record; with limits of its machine, its rates beside them.
pub(crate) fn section(record: &Race, limits: Option<&Limits>) -> Section {
    let style = wide_style();
    let page = Page::new(&style);
    let commands = record.commands.iter().take(12);
    let commands: Vec<String> = commands.map(|one| page.name(&one.command, 80)).collect();
    let mut facts = vec![("started", name(&page, &record.started))];
    facts.extend(machine_facts(&page, &record.machine));
    facts.push(("how", how(&page, record).join(" · ")));
    let told = [
        ("prepare", &record.plan.prepare),
        ("setup", &record.plan.setup),
        ("cleanup", &record.plan.cleanup),
    ];
    facts.extend(
        told.into_iter().filter_map(|(key, text)| Some((key, name(&page, text.as_ref()?)))),
    );
    Section {
        kind: "race",
        title: commands.join("  ·  "),
        answers: answers(&page, record),
        tiles: tiles(&page, record),
        findings: Conclusion::all(&page, &record.findings),
        blocks: blocks(&page, record, limits),
        facts,
    }
}

fn answers(page: &Page<'_>, record: &Race) -> Vec<Answer> {
    let impossible = record.findings.iter().filter(|found| found.verdict == Verdict::Impossible);
    let mut answers: Vec<Answer> = impossible
        .map(|found| {
            let text = page.name(&found.text, crate::findings::TEXT);
            let text = if record.comparisons.is_empty() {
                text
            } else {
                format!("{text}; {}", headline::NOT_THE_SAME)
            };
            Answer::new("bad", "IMPOSSIBLE", text)
        })
        .collect();
    answers.extend(
        headline::answers(page, record)
            .into_iter()
            .map(|said| Answer::new(tone(said.ink), said.answer, said.rest)),
    );
    let doubts = doubts(page, record).into_iter();
    answers.extend(doubts.map(|one| Answer::new(tone(one.ink), one.says, one.text)));
    answers
}

fn tiles(page: &Page<'_>, record: &Race) -> Vec<Tile> {
    let mut tiles: Vec<Tile> = record
        .commands
        .iter()
        .take(4)
        .map(|one| Tile {
            label: "median wall time",
            value: duration(one.wall.median_ns),
            note: format!("{}  {}", page.name(&one.label, 20), page.name(&one.command, 60)),
        })
        .collect();
    tiles.push(Tile {
        label: "timed runs",
        value: thousands(record.order.len() as u128),
        note: format!("in {} rounds", thousands(record.rounds.len() as u128)),
    });
    tiles
}

/// Comparisons and differences that are drawn, at most.
const PAIRS: usize = 8;

fn blocks(page: &Page<'_>, record: &Race, limits: Option<&Limits>) -> Vec<Block> {
    let mut blocks = vec![Block::Sheet(table(page, record))];
    let against = record.against.iter();
    let against = against.flat_map(|against| crate::history::sheets_against(page, against));
    blocks.extend(against.map(Block::Sheet));
    blocks.extend(charts::runs(page, record).map(Block::Chart));
    let compared = record.comparisons.iter().filter(|found| {
        found.metric == Metric::Wall
            && !headline::is_impossible(record, &found.base)
            && !headline::is_impossible(record, &found.other)
    });
    let pairs = compared.take(PAIRS).filter_map(|found| charts::pairs(page, record, found));
    blocks.extend(pairs.map(Block::Chart));
    for found in record.attributions.iter().filter(|found| is_told(record, found)).take(2 * PAIRS) {
        blocks.extend(terms::chart(page, record, found).map(Block::Chart));
        if !found.terms.is_empty() {
            blocks.push(Block::Sheet(terms::sheet(page, found)));
        }
    }
    let results: Vec<_> = record
        .commands
        .iter()
        .filter_map(|one| Some((one, one.trace.as_ref()?)))
        .flat_map(|(one, trace)| {
            crate::trace::results(page, Some(&one.label), trace, one.wall.median_ns)
                .into_iter()
                .take(2)
        })
        .take(12)
        .collect();
    blocks.extend(ceilings::chart(&results, &record.findings, limits).map(Block::Chart));
    blocks.extend(charts::times(page, record).map(Block::Chart));
    blocks.extend(side_by_side(page, record).map(Block::Sheet));
    blocks.push(Block::Sheet(runs(page, record)));
    blocks
}

fn table(page: &Page<'_>, record: &Race) -> Sheet {
    let largest = record.commands.iter().map(|one| one.wall.median_ns).fold(0.0, f64::max);
    let decimals = decimals_for(largest / 1e6);
    let ms = |ns: f64| Cell::real(ns, fixed(ns / 1e6, decimals));
    let mut sheet = Sheet::new(
        "commands",
        "Commands",
        vec![
            Field::text("label", ""),
            Field::text("command", "command"),
            Field::number("wall_ns", "wall", "ms"),
            Field::number("wall_low_ns", "95 % CI from", "ms"),
            Field::number("wall_high_ns", "to", "ms"),
            Field::number("wall_min_ns", "min", "ms"),
            Field::number("wall_max_ns", "max", "ms"),
            Field::number("cpu_ns", "CPU", "ms"),
            Field::number("runs", "runs", ""),
            Field::text("remarks", "remarks"),
        ],
    );
    for one in &record.commands {
        let [low, high] = Cell::ends(one.wall.ci95, ms);
        sheet.push(vec![
            Cell::text(page.name(&one.label, 20)),
            Cell::text(name(page, &one.command)),
            ms(one.wall.median_ns),
            low,
            high,
            ms(one.wall.min_ns),
            ms(one.wall.max_ns),
            ms(one.cpu.median_ns),
            Cell::count(one.wall.runs),
            Cell::text(commands::remarks(page, record, one).join(", ")),
        ]);
    }
    sheet.without_empty_columns()
}

/// The calls of all commands side by side, the most time first.
fn side_by_side(page: &Page<'_>, record: &Race) -> Option<Sheet> {
    let traced: Vec<_> =
        record.commands.iter().filter_map(|one| Some((one, one.trace.as_ref()?))).take(6).collect();
    if traced.is_empty() {
        return None;
    }
    let mut fields = vec![Field::text("call", "call")];
    let mut rows: BTreeMap<&str, Vec<Option<CallSum<'_>>>> = BTreeMap::new();
    let mut largest = 0.0f64;
    for (at, (one, trace)) in traced.iter().enumerate() {
        let label = page.name(&one.label, 8);
        fields.extend([
            Field::number(&format!("calls_{label}"), &format!("{label} calls"), ""),
            Field::number(&format!("bytes_{label}"), &format!("{label} bytes"), ""),
            Field::number(&format!("wall_ns_{label}"), &format!("{label} wall"), "ms"),
            Field::number(&format!("mean_ns_{label}"), &format!("{label} mean"), "µs"),
        ]);
        for sum in CallSum::by_name(&trace.calls, iotomy_record::SortKey::WALL) {
            largest = largest.max(sum.wall() as f64 / 1e6);
            let row = rows.entry(sum.name).or_insert_with(|| vec![None; traced.len()]);
            row[at] = Some(sum);
        }
    }
    let decimals = decimals_for(largest);
    let mut sheet = Sheet::new("calls", "Calls side by side", fields);
    let wall =
        |sums: &[Option<CallSum<'_>>]| sums.iter().flatten().map(|sum| sum.wall()).sum::<u128>();
    let mut rows: Vec<_> = rows.into_iter().collect();
    rows.sort_by_key(|(_, sums)| std::cmp::Reverse(wall(sums)));
    for (call, sums) in rows {
        let mut cells = vec![Cell::text(page.name(call, 60))];
        for sum in sums {
            let Some(sum) = sum else {
                cells.extend([(); 4].map(|()| Cell::absent()));
                continue;
            };
            let mean = sum.mean_us().map(|us| us * 1e3);
            cells.extend([
                Cell::count(sum.calls()),
                Cell::size(sum.bytes()).if_any(),
                Cell::whole(sum.wall(), fixed(sum.wall() as f64 / 1e6, decimals)),
                Cell::from_option(mean, |mean| Cell::real(mean, figure(mean / 1e3))),
            ]);
        }
        sheet.push(cells);
    }
    sheet.notes.push("of the traced runs, not of the timed ones".to_owned());
    Some(sheet.without_empty_columns())
}

/// All timed runs.
fn runs(page: &Page<'_>, record: &Race) -> Sheet {
    let mut sheet = Sheet::new(
        "runs",
        "All timed runs",
        vec![
            Field::number("run", "run", ""),
            Field::text("label", "of"),
            Field::number("round", "round", ""),
            Field::number("counts", "counts", ""),
            Field::number("wall_ns", "wall", "ms"),
            Field::number("user_ns", "user", "ms"),
            Field::number("system_ns", "system", "ms"),
            Field::number("startup_ns", "start-up", "ms"),
            Field::number("max_rss_bytes", "resident", ""),
            Field::number("minor_faults", "faults", ""),
            Field::number("status", "status", ""),
        ],
    );
    let ms = |ns: u64| Cell::whole(ns, fixed(ns as f64 / 1e6, 3));
    for (number, (at, _, run)) in charts::in_order(record).into_iter().enumerate() {
        let counts = !charts::is_redone(record, run);
        sheet.push(vec![
            Cell::count(number as u128 + 1),
            Cell::text(page.name(&record.commands[at].label, 20)),
            Cell::whole(run.round, thousands(u128::from(run.round) + 1)),
            Cell::whole(u8::from(counts), if counts { "yes" } else { "no" }),
            ms(run.wall_ns),
            ms(run.user_ns),
            ms(run.system_ns),
            ms(run.startup_ns),
            Cell::size(run.max_rss_bytes),
            Cell::count(run.minor_faults),
            Cell::whole(run.exit.status(), run.exit.status().to_string()),
        ]);
    }
    sheet.folded = true;
    sheet
}
