//! A [`Sweep`] as text: the claims first, which are the answer, then the figures with their error
//! bars, a chart, the other measurements, and the skipped cases.
//!
//! Computed by `judged` in `crates/lab/src/harness/figures.rs` and
//! `case_of` in `crates/lab/src/harness/figures.rs`.

mod chart;
mod claims;
mod details;
mod dots;
mod grid;
mod merged;
mod plot;
mod scale;
mod section;
mod skipped;

use std::collections::BTreeMap;

use iotomy_record::{AxisValue, Sweep, SweepAxis, Volume};

use crate::Style;
use crate::numbers::{bytes, counted, duration, thousands};
use crate::page::{Ink, Page};

use grid::Grid;
pub(crate) use scale::Scale;
pub(crate) use section::section;

/// Columns a name of a record may take in a table's head or row.
const NAME: usize = 18;

/// The record as the text a terminal shows, ending in a line break. Any record renders, a hostile one
/// included.
pub fn sweep(record: &Sweep, style: &Style) -> String {
    let mut page = Page::new(style);
    headline(&mut page, record);
    merged::print_share(&mut page, record);
    claims::print(&mut page, record);
    let (alone, grids): (Vec<Grid<'_>>, Vec<_>) =
        Grid::all(record).into_iter().partition(Grid::is_one_case);
    // A single case needs no table of its own, and several share one.
    let (alone, grids) = match alone.len() {
        0 | 1 => (Vec::new(), Grid::all(record)),
        _ => (alone, grids),
    };
    for grid in grids {
        grid.print(&mut page, record);
        plot::print(&mut page, &grid);
    }
    grid::print_alone(&mut page, record, &alone);
    details::print(&mut page, record);
    skipped::print(&mut page, record);
    advice(&mut page, record);
    how(&mut page, record);
    page.finish()
}

fn headline(page: &mut Page<'_>, record: &Sweep) {
    let measured = record.cases.iter().filter(|case| !case.samples.is_empty()).count();
    let late = record.cases.iter().filter(|case| case.had_no_time()).count();
    let without = record.cases.iter().filter(|case| case.skipped.is_some()).count() - late;
    let mut parts = vec![counted(measured as u128, "case", "cases")];
    if without > 0 {
        parts.push(format!("{} skipped", thousands(without as u128)));
    }
    if late > 0 {
        parts.push(format!("{} had no time", thousands(late as u128)));
    }
    if record.run.loose > 0 {
        parts.push(format!("{} with wide intervals", thousands(record.run.loose.into())));
    }
    if record.run.wall_ns > 0 {
        parts.push(duration(record.run.wall_ns as f64));
    }
    parts.extend(merged::parts(record));
    if record.run.is_partial {
        parts.push("interrupted".to_owned());
    }
    let name = page.name(&record.experiment, 40);
    let summary = page.sentence(&record.about.summary);
    let lead = [(Ink::Bold, name.as_str()), (Ink::Plain, " · ")];
    page.wrapped(&lead, Ink::Plain, &summary);
    page.wrapped(&[(Ink::Plain, "  ")], Ink::Plain, &parts.join(" · "));
}

/// The advice for wide intervals.
fn advice(page: &mut Page<'_>, record: &Sweep) {
    if record.run.loose == 0 {
        return;
    }
    let longer = match (record.run.size.as_str(), record.run.max_time_ns) {
        ("quick", _) => "drop --quick or raise --max-time, and ",
        ("full", None) => "",
        ("full", _) => "raise --max-time, and ",
        _ => "use --full or raise --max-time, and ",
    };
    let narrowed = match record.run.loose {
        1 => "the wide interval".to_owned(),
        many => format!("the {} wide intervals", thousands(many.into())),
    };
    let text = format!("{longer}use an idle machine to narrow {narrowed}");
    page.blank();
    page.wrapped(&[(Ink::Dim, "  try: ")], Ink::Green, &text);
}

/// The command to run it again, and the controlled variables.
fn how(page: &mut Page<'_>, record: &Sweep) {
    let mut parts = vec![page.name(&record.machine.kernel, 60)];
    if !record.machine.cpu.is_empty() {
        parts.push(format!("{} x {}", record.machine.cpus, page.name(&record.machine.cpu, 60)));
    }
    parts.extend(folder(page, record));
    if record.run.rounds > 0 {
        parts.push(counted(record.run.rounds.into(), "round", "rounds"));
    }
    parts.extend(seed(record));
    parts.retain(|part| !part.is_empty());
    page.blank();
    page.wrapped(&[(Ink::Plain, "  ")], Ink::Dim, &parts.join(" · "));
    merged::print_machines(page, record);
    for control in &record.about.controls {
        let text = page.sentence(control);
        page.wrapped(&[(Ink::Dim, "  - ")], Ink::Dim, &text);
    }
}

/// The seed of the order, unless there were several.
fn seed(record: &Sweep) -> Option<String> {
    let run = &record.run;
    let is_one =
        record.machines.is_empty() && run.shards.iter().all(|shard| shard.seed == run.seed);
    (is_one && run.rounds > 0).then(|| format!("seed {}", run.seed))
}

/// Where it was run: the directory, and its file system.
fn folder(page: &Page<'_>, record: &Sweep) -> Option<String> {
    Some(volume(page, record.run.volume.as_ref()?))
}

fn volume(page: &Page<'_>, volume: &Volume) -> String {
    format!("{} ({})", page.name(&volume.path, 60), page.name(&volume.file_system, 20))
}

/// A further measurement as tables head it: without its unit, and in the words of the other reports.
fn extra_head(name: &str) -> String {
    match name {
        "waiting_ns" => "runq".to_owned(),
        name => name.trim_end_matches("_ns").trim_end_matches("_bytes").replace('_', " "),
    }
}

/// A value as tables and lists show it.
fn value(page: &Page<'_>, axis: &SweepAxis, value: &AxisValue) -> String {
    match value {
        AxisValue::Number(number) if axis.unit == "bytes" => bytes((*number).into()),
        AxisValue::Number(number) => thousands((*number).into()),
        AxisValue::Name(name) => page.name(name, NAME),
    }
}

/// Axes with several values up to which each is named in a label: of more, which are changed a few
/// at a time, only those that differ from the defaults.
const NAMED: usize = 5;

/// The value of an axis that is not named in a label, as most cases have it; `None` where all are.
fn usual<'a>(record: &'a Sweep, axis: &str) -> Option<&'a AxisValue> {
    let several = record.axes.iter().filter(|axis| axis.values.len() > 1).count();
    if several <= NAMED {
        return None;
    }
    let mut counts: BTreeMap<&AxisValue, usize> = BTreeMap::new();
    for value in record.cases.iter().filter_map(|case| case.params.get(axis)) {
        *counts.entry(value).or_default() += 1;
    }
    counts.into_iter().max_by_key(|(_, count)| *count).map(|(value, _)| value)
}

/// Whether an axis is named in the label of a case that has this value.
fn is_named(record: &Sweep, axis: &SweepAxis, value: Option<&AxisValue>) -> bool {
    axis.values.len() > 1
        && (usual(record, &axis.name).is_none() || usual(record, &axis.name) != value)
}

/// The values of a case alone, of the axes that have several.
fn values(page: &Page<'_>, record: &Sweep, params: &BTreeMap<String, AxisValue>) -> String {
    if usual_of(record).next().is_some() {
        return label(page, record, params);
    }
    let several = record.axes.iter().filter(|axis| axis.values.len() > 1);
    let shown = several.filter_map(|axis| Some(value(page, axis, params.get(&axis.name)?)));
    shown.collect::<Vec<String>>().join(", ")
}

/// The axes that labels leave out where they have their default value, with that value.
fn usual_of(record: &Sweep) -> impl Iterator<Item = (&SweepAxis, &AxisValue)> {
    let several = record.axes.iter().filter(|axis| axis.values.len() > 1);
    several.filter_map(|axis| Some((axis, usual(record, &axis.name)?)))
}

/// The values of a case, of the axes that have several.
fn label(page: &Page<'_>, record: &Sweep, params: &BTreeMap<String, AxisValue>) -> String {
    let part = |axis: &SweepAxis| {
        let shown = value(page, axis, params.get(&axis.name)?);
        Some(match params.get(&axis.name)? {
            AxisValue::Name(_) => shown,
            AxisValue::Number(_) => format!("{} {shown}", page.name(&axis.name, NAME)),
        })
    };
    let named = record.axes.iter().filter(|axis| is_named(record, axis, params.get(&axis.name)));
    let mut parts: Vec<String> = named.filter_map(part).collect();
    if parts.is_empty() && usual_of(record).next().is_some() {
        return "defaults".to_owned();
    }
    if parts.is_empty() {
        // For a single case all parameters are shown, as nothing distinguishes it from others.
        parts = record.axes.iter().filter_map(part).collect();
    }
    if parts.is_empty() { "the case".to_owned() } else { parts.join(", ") }
}

#[cfg(test)]
mod tests;
