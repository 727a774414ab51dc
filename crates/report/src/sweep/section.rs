//! A sweep as the parts of a report.

use iotomy_record::{AxisValue, Case, ClaimVerdict, Sweep};

use super::chart::{Fit, chart};
use super::dots::dots;
use super::grid::Grid;
use super::scale::Scale;
use super::{folder, label, merged, seed};
use crate::axis::Unit;
use crate::numbers::{counted, duration, thousands};
use crate::page::Page;
use crate::section::{Answer, Block, Conclusion, Section, Tile, evidence, machine_facts};
use crate::sheet::{Cell, Field, Sheet, name, wide_style};

/// Grids that are drawn, at most.
const GRIDS: usize = 16;

/// The parts of a record.
pub(crate) fn section(record: &Sweep) -> Section {
    let style = wide_style();
    let page = Page::new(&style);
    let about = &record.about;
    let mut answers = Vec::new();
    if record.run.is_partial {
        let rest = "these are the cases measured so far; --resume continues";
        answers.push(Answer::new("doubt", "interrupted", rest));
    }
    answers.push(verdicts(record));
    let merged = merged::parts(record);
    if !merged.is_empty() {
        answers.push(Answer::new("plain", merged.join(" · "), String::new()));
    }
    let mut facts = vec![("experiment", name(&page, &record.experiment))];
    let texts = [("hypothesis", &about.hypothesis), ("refuted by", &about.refuted_by)];
    facts.extend(texts.map(|(key, text)| (key, page.name(text, 2_000))));
    let controls = about.controls.iter().take(40).map(|text| page.name(text, 400));
    facts.push(("controls", controls.collect::<Vec<String>>().join("; ")));
    facts.push(("started", name(&page, &record.started)));
    facts.extend(machine_facts(&page, &record.machine));
    facts.extend(folder(&page, record).map(|folder| ("folder", folder)));
    if record.run.rounds > 0 {
        let rounds = counted(record.run.rounds.into(), "round", "rounds");
        let size = page.name(&record.run.size, 20);
        let parts = [Some(size), Some(rounds), seed(record)];
        facts.push(("run", parts.into_iter().flatten().collect::<Vec<_>>().join(" · ")));
    }
    facts.retain(|(_, text)| !text.is_empty());
    let summary = page.name(&about.summary, 300);
    let experiment = page.name(&record.experiment, 60);
    Section {
        kind: "sweep",
        title: if summary.is_empty() { experiment } else { format!("{experiment}: {summary}") },
        answers,
        tiles: tiles(record),
        findings: record.claims.iter().map(|claim| conclusion(&page, claim)).collect(),
        blocks: blocks(&page, record),
        facts,
    }
}

/// How many of the claims hold.
fn verdicts(record: &Sweep) -> Answer {
    let of = |verdict| record.claims.iter().filter(|claim| claim.verdict == verdict).count();
    let (holds, fails) = (of(ClaimVerdict::Holds), of(ClaimVerdict::Fails));
    let open = record.claims.len() - holds - fails;
    let says = match record.claims.len() {
        0 => "no claim was judged".to_owned(),
        all => {
            let on = match record.machines.len() {
                0 => "on this machine".to_owned(),
                _ => format!("over {}", merged::machines(record)),
            };
            format!("{holds} of {} hold {on}", counted(all as u128, "claim", "claims"))
        }
    };
    let mut rest = Vec::new();
    if fails > 0 {
        rest.push(format!("{fails} fail"));
    }
    if open > 0 {
        rest.push(format!("{open} inconclusive"));
    }
    Answer::new("plain", says, rest.join(" · "))
}

fn conclusion(page: &Page<'_>, claim: &iotomy_record::Claim) -> Conclusion {
    let (tone, word) = match claim.verdict {
        ClaimVerdict::Holds => ("good", "holds"),
        ClaimVerdict::Fails => ("bad", "fails"),
        ClaimVerdict::Inconclusive => ("doubt", "inconclusive"),
    };
    let id = format!("{} ({})", page.name(&claim.id, 60), page.name(&claim.source, 30));
    Conclusion {
        tone,
        word,
        id,
        text: page.name(&claim.text, 2_000),
        more: (!claim.because.is_empty()).then(|| ("because", page.name(&claim.because, 2_000))),
        evidence: evidence(page, &claim.evidence),
    }
}

fn tiles(record: &Sweep) -> Vec<Tile> {
    let measured = record.cases.iter().filter(|case| !case.samples.is_empty()).count();
    let late = record.cases.iter().filter(|case| case.had_no_time()).count();
    let skipped = record.cases.iter().filter(|case| case.skipped.is_some()).count() - late;
    let samples: usize = record.cases.iter().map(|case| case.samples.len()).sum();
    let loose = match record.run.loose {
        0 => "all intervals tight".to_owned(),
        n => format!("{} with wide intervals", thousands(n.into())),
    };
    let mut tiles = vec![
        Tile {
            label: "cases",
            value: thousands(measured as u128),
            note: match late {
                0 => format!("{skipped} skipped"),
                late => format!("{skipped} skipped, {late} had no time"),
            },
        },
        Tile { label: "samples", value: thousands(samples as u128), note: loose },
    ];
    if record.run.wall_ns > 0 {
        let value = duration(record.run.wall_ns as f64);
        tiles.push(Tile { label: "took", value, note: String::new() });
    }
    tiles
}

fn blocks(page: &Page<'_>, record: &Sweep) -> Vec<Block> {
    let fits = Fit::all(page, record);
    // Cases that stand alone have no line to be a point of.
    let (alone, grids): (Vec<Grid<'_>>, Vec<_>) =
        Grid::all(record).into_iter().partition(|grid| grid.rows().len() < 2);
    let mut blocks = Vec::new();
    for (at, grid) in grids.iter().take(GRIDS).enumerate() {
        let id = |what: &str| {
            if grids.len() == 1 { what.to_owned() } else { format!("{what}-{}", at + 1) }
        };
        blocks.extend(chart(page, record, grid, &fits, &id("chart")).map(Block::Chart));
        blocks.push(Block::Sheet(medians(page, record, grid, &id("medians"))));
    }
    if grids.len() > GRIDS {
        let text = format!("{} more combinations are in the table of cases", grids.len() - GRIDS);
        blocks.push(Block::Notes(vec![text]));
    }
    let id = |what: &str| {
        if grids.is_empty() { what.to_owned() } else { format!("{what}-others") }
    };
    blocks.extend(dots(page, record, &alone, &id("chart")).map(Block::Chart));
    blocks.extend(medians_alone(page, record, &alone, &id("medians")).map(Block::Sheet));
    if !fits.is_empty() {
        blocks.push(Block::Sheet(fitted(record, &fits)));
    }
    blocks.push(Block::Sheet(cases(page, record)));
    blocks.extend(merged::verdicts(page, record).map(Block::Sheet));
    blocks.extend(merged::machine_sheet(page, record).map(Block::Sheet));
    blocks.extend(skipped(page, record).map(Block::Sheet));
    blocks
}

/// A row each value along, a column each line.
fn medians(page: &Page<'_>, record: &Sweep, grid: &Grid<'_>, id: &str) -> Sheet {
    let scale = grid.scale();
    let along = grid.along.map_or(String::new(), |axis| page.name(&axis.name, 60));
    let columns = grid.columns();
    let mut fields = vec![Field::number(&along, &along, "")];
    for column in &columns {
        let head = grid.head(page, *column);
        let head = if head.is_empty() { "median".to_owned() } else { head };
        fields.push(Field::number(&head, &head, scale.unit));
    }
    let mut sheet = Sheet::new(id, &format!("{}, medians", grid.title(page, record)), fields);
    for row in grid.rows() {
        let mut cells = vec![axis_cell(page, grid, row)];
        for column in &columns {
            let median = grid.case(row, *column).and_then(|case| Some((case.median?, case.ci95)));
            cells.push(Cell::from_option(median, |(median, ends)| {
                let half = ends.map_or_else(String::new, |[low, high]| {
                    format!(" ± {}", scale.shown((high - low) / 2.0))
                });
                Cell::real(median, scale.shown(median) + &half)
            }));
        }
        sheet.push(cells);
    }
    sheet.notes.push("median and half of its 95 % confidence interval".to_owned());
    sheet.folded = true;
    sheet
}

/// A row a case of grids that have no line.
fn medians_alone(page: &Page<'_>, record: &Sweep, grids: &[Grid<'_>], id: &str) -> Option<Sheet> {
    let cases = || grids.iter().flat_map(|grid| grid.cases.iter().copied());
    let first = cases().next()?;
    let scale = Scale::for_figures(&first.unit, cases().filter_map(|case| case.median));
    let fields = vec![
        Field::text("case", "case"),
        Field::number("median", "median", scale.unit),
        Field::number("half", "±", scale.unit),
    ];
    let mut sheet = Sheet::new(id, &format!("{}, medians", page.name(&first.metric, 60)), fields);
    for case in cases().filter(|case| case.unit == first.unit) {
        let real = |value: f64| Cell::real(value, scale.shown(value));
        let half = case.ci95.map(|[low, high]| (high - low) / 2.0);
        sheet.push(vec![
            Cell::text(label(page, record, &case.params)),
            case.median.map_or_else(Cell::absent, real),
            half.map_or_else(Cell::absent, real),
        ]);
    }
    sheet.notes.push("median and half of its 95 % confidence interval".to_owned());
    sheet.folded = true;
    Some(sheet)
}

fn axis_cell(page: &Page<'_>, grid: &Grid<'_>, value: &AxisValue) -> Cell {
    let text = grid.row_name(page, value);
    match value {
        AxisValue::Number(number) => Cell::whole(*number, text),
        AxisValue::Name(_) => Cell::text(text),
    }
}

fn fitted(record: &Sweep, fits: &[Fit]) -> Sheet {
    let unit = Unit::for_unit(record.cases.first().map_or("", |case| case.unit.as_str()));
    let shown = |value: f64| Cell::real(value, unit.shown(value));
    let is_weighted = fits.iter().any(|fit| fit.is_weighted);
    let r2 = if is_weighted { "weighted R²" } else { "R²" };
    let mut sheet = Sheet::new(
        "fits",
        "Fits",
        vec![
            Field::text("claim", "claim"),
            Field::text("name", "of"),
            Field::number("intercept", "intercept", ""),
            Field::number("slope", "slope, each", ""),
            Field::number("slope_low", "95 % CI from", ""),
            Field::number("slope_high", "to", ""),
            Field::number("r2", r2, ""),
        ],
    );
    for fit in fits {
        let [low, high] = Cell::ends(fit.slope_ci95, shown);
        sheet.push(vec![
            Cell::text(&fit.claim),
            Cell::text(&fit.name),
            shown(fit.intercept),
            shown(fit.slope),
            low,
            high,
            Cell::from_option(fit.r2, |r2| Cell::real(r2, format!("{r2:.3}"))),
        ]);
    }
    sheet
}

/// A row a case that was measured.
fn cases(page: &Page<'_>, record: &Sweep) -> Sheet {
    let of: Vec<&Case> = record.cases.iter().filter(|case| !case.samples.is_empty()).collect();
    let unit = of.first().map_or("", |case| case.unit.as_str());
    let scale = Scale::for_figures(unit, of.iter().filter_map(|case| case.median));
    let suffix = unit.replace('/', "_per_");
    let key =
        |name: &str| if unit.is_empty() { name.to_owned() } else { format!("{name}_{suffix}") };
    let mut fields: Vec<Field> = record
        .axes
        .iter()
        .map(|axis| {
            let name = page.name(&axis.name, 60);
            match axis.values.first() {
                Some(AxisValue::Number(_)) => Field::number(&name, &name, ""),
                _ => Field::text(&name, &name),
            }
        })
        .collect();
    fields.push(Field::number("samples", "samples", ""));
    for (name, head) in [
        ("median", "median"),
        ("low", "95 % CI from"),
        ("high", "to"),
        ("min", "least"),
        ("mean", "mean"),
        ("stddev", "deviation"),
    ] {
        fields.push(Field::number(&key(name), head, scale.unit));
    }
    let extras = &record.about.extras;
    let of_extra = |name: &str| {
        let name = name.to_owned();
        of.iter().filter_map(move |case| case.extra.get(&name).copied())
    };
    let scales: Vec<Scale> =
        extras.iter().map(|extra| Scale::for_figures(&extra.unit, of_extra(&extra.name))).collect();
    for (extra, scale) in extras.iter().zip(&scales) {
        let head = page.name(&super::extra_head(&extra.name), 60);
        fields.push(Field::number(&page.name(&extra.name, 60), &head, scale.unit));
    }
    let mut sheet = Sheet::new("cases", "Each case", fields);
    let figure = |value: Option<f64>, scale: &Scale| {
        Cell::from_option(value, |value| Cell::real(value, scale.shown(value)))
    };
    for case in of {
        let mut cells: Vec<Cell> = record
            .axes
            .iter()
            .map(|axis| match case.params.get(&axis.name) {
                Some(value @ AxisValue::Number(number)) => {
                    Cell::whole(*number, super::value(page, axis, value))
                }
                Some(value) => Cell::text(super::value(page, axis, value)),
                None => Cell::absent(),
            })
            .collect();
        cells.push(Cell::count(case.samples.len() as u128));
        let [low, high] = case.ci95.map_or([None, None], |ends| ends.map(Some));
        let figures = [case.median, low, high, case.min, case.mean, case.stddev];
        cells.extend(figures.map(|value| figure(value, &scale)));
        let more = extras.iter().zip(&scales);
        cells
            .extend(more.map(|(extra, scale)| figure(case.extra.get(&extra.name).copied(), scale)));
        sheet.push(cells);
    }
    for extra in extras.iter().take(40) {
        sheet.notes.push(format!(
            "{}: {}",
            page.name(&super::extra_head(&extra.name), 60),
            page.name(&extra.summary, 400)
        ));
    }
    sheet.without_empty_columns()
}

/// The cases that were not measured, or not completely, and the reasons.
fn skipped(page: &Page<'_>, record: &Sweep) -> Option<Sheet> {
    let fields = vec![Field::text("case", "case"), Field::text("why", "why")];
    let mut sheet = Sheet::new("skipped", "Skipped", fields);
    for case in &record.cases {
        let Some(why) = case.skipped.as_ref().or(case.note.as_ref()) else { continue };
        let case = label(page, record, &case.params);
        sheet.push(vec![Cell::text(case), Cell::text(page.name(why, 400))]);
    }
    (!sheet.rows.is_empty()).then_some(sheet)
}
