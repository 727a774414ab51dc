//! A difference as a picture and a table: its terms one behind the other, from nothing to all of it.
//!
//! Computed by `attributions` in `crates/race/src/attribution.rs`.

use iotomy_record::{Attribution, Metric, Race, Term};

use super::charts::part_name;
use super::waterfall::{
    counts, head, is_inflated, name, notes, remarks, replaced, rows, timed, title,
};
use crate::axis::Axis;
use crate::chart::{Chart, Drawing, Key, WIDE, fit};
use crate::numbers::{decimals_for, fixed, share};
use crate::page::Page;
use crate::sheet::{Cell, Field, Sheet};

const LABELS: f64 = 226.0;
const BARS: f64 = 236.0;
const END: f64 = 590.0;
const FIGURES: f64 = 676.0;
const SHARES: f64 = 748.0;
const ROW: f64 = 26.0;

/// A step of the waterfall.
struct Step {
    label: String,
    from: i128,
    to: i128,
    is_whole: bool,
}

/// The picture of a difference of wall time; that of CPU time is much the same.
pub(super) fn chart(page: &Page<'_>, record: &Race, found: &Attribution) -> Option<Chart> {
    if found.terms.is_empty() || is_inflated(record, found) || found.metric == Metric::Cpu {
        return None;
    }
    let alone = found.base == found.other;
    let steps = steps(page, found, alone);
    let ends = steps.iter().flat_map(|step| [step.from as f64, step.to as f64]).chain([0.0]);
    let axis = Axis::from_values(ends.collect::<Vec<f64>>().into_iter())?;
    let axis = Axis { is_log: false, ..axis };
    let place = |ns: i128| BARS + axis.share(ns as f64) * (END - BARS);
    let largest = steps.iter().map(|step| (step.to - step.from).unsigned_abs()).max()?;
    let decimals = decimals_for(largest as f64 / 1e6);
    let floor = 22.0 + ROW * steps.len() as f64;
    let mut drawing = Drawing::new(WIDE, floor + 6.0);
    drawing.text(FIGURES, 12.0, "end dim", if alone { "ms" } else { "Δ ms" });
    drawing.text(SHARES, 12.0, "end dim", "share");
    drawing.line([place(0), 18.0, place(0), floor], "axis");
    let whole = u128::from(found.delta_ns.unsigned_abs());
    let mut says = Vec::new();
    for (at, step) in steps.iter().enumerate() {
        let y = 22.0 + ROW * at as f64;
        let delta = step.to - step.from;
        let figure = fixed(delta as f64 / 1e6, decimals);
        let figure =
            if !alone && delta > 0 { format!("+{figure}") } else { figure.replace('-', "−") };
        let part = delta * i128::from(found.delta_ns.signum());
        // A share of a difference near zero means nothing.
        let shared = match part.unsigned_abs() > whole.saturating_mul(10) {
            true => String::new(),
            false => share(part, whole).replace('-', "−"),
        };
        let class = match (step.is_whole, delta < 0) {
            (true, _) => "t-whole",
            (false, true) => "t-less",
            (false, false) => "t-more",
        };
        let (left, right) = (place(step.from.min(step.to)), place(step.from.max(step.to)));
        let tip = format!(
            "{}: {figure} ms{}",
            step.label,
            if shared.is_empty() { String::new() } else { format!(", {shared}") }
        );
        let bold = if step.is_whole { " bold" } else { "" };
        drawing.text(LABELS, y + 12.5, &format!("end{bold}"), &fit(&step.label, LABELS - 4.0));
        drawing.rect([left, y, (right - left).max(1.5), 16.0], class, &tip);
        if !step.is_whole {
            drawing.line([place(step.to), y + 16.0, place(step.to), y + ROW], "axis");
        }
        drawing.text(FIGURES, y + 12.5, &format!("end num{bold}"), &figure);
        drawing.text(SHARES, y + 12.5, "end num dim", &shared);
        says.push(tip);
    }
    let mut notes = notes(page, found, alone);
    notes.extend(replaced(page, found, decimals));
    Some(Chart {
        id: id("waterfall", found),
        title: crate::trace::capital(&title(page, found, alone, decimals).replace(" -", " −")),
        says: says.join("; "),
        legend: match alone {
            true => Vec::new(),
            false => vec![
                Key::new("t-less", &format!("less in {}", page.name(&found.other, 20))),
                Key::new("t-more", &format!("more in {}", page.name(&found.other, 20))),
                Key::new("t-whole", "the difference of the untraced medians"),
            ],
        },
        notes,
        drawing,
    })
}

/// The name of a part that belongs to a pair and a metric.
fn id(what: &str, found: &Attribution) -> String {
    let metric = if found.metric == Metric::Cpu { "-cpu" } else { "" };
    format!("{what}-{}-{}{metric}", part_name(&found.base), part_name(&found.other))
}

/// Each term behind the one before it; the small ones together, then the residual and the whole.
fn steps(page: &Page<'_>, found: &Attribution, alone: bool) -> Vec<Step> {
    let moved: u128 = found.terms.iter().map(|term| u128::from(term.delta_ns.unsigned_abs())).sum();
    let moved = moved + u128::from(found.residual_ns.unsigned_abs());
    let terms = timed(found);
    let shown = rows(&terms, moved);
    let mut parts: Vec<(String, i128)> =
        terms[..shown].iter().map(|term| (name(page, term), i128::from(term.delta_ns))).collect();
    if shown < terms.len() {
        let rest = terms[shown..].iter().map(|term| i128::from(term.delta_ns)).sum();
        parts.push((format!("other terms ({})", terms.len() - shown), rest));
    }
    parts.push(("residual".to_owned(), i128::from(found.residual_ns)));
    let mut at = 0;
    let mut steps: Vec<Step> = parts
        .into_iter()
        .map(|(label, delta)| {
            at += delta;
            Step { label, from: at - delta, to: at, is_whole: false }
        })
        .collect();
    let label = if alone { "total" } else { "difference" };
    steps.push(Step {
        label: label.to_owned(),
        from: 0,
        to: i128::from(found.delta_ns),
        is_whole: true,
    });
    steps
}

/// Every term with both sides' figures.
pub(super) fn sheet(page: &Page<'_>, found: &Attribution) -> Sheet {
    let alone = found.base == found.other;
    let (base, other) = (head(&found.base, "base"), head(&found.other, "other"));
    let metric = if found.metric == Metric::Cpu { " of CPU time" } else { "" };
    let name_of = match alone {
        true => format!("Terms{metric}"),
        false => format!(
            "Terms{metric}, {} → {}",
            page.name(&found.base, 20),
            page.name(&found.other, 20)
        ),
    };
    // Alone there is no base: the difference to nothing is all there is.
    let figures = match alone {
        true => vec![Field::number("calls", "calls", ""), Field::number("time_ns", "time", "ms")],
        false => vec![
            Field::number("calls_base", &format!("{base} calls"), ""),
            Field::number("calls_other", &format!("{other} calls"), ""),
            Field::number("base_ns", base, "ms"),
            Field::number("other_ns", other, "ms"),
            Field::number("delta_ns", "Δ", "ms"),
        ],
    };
    let last = figures.len();
    let mut fields = vec![Field::text("term", "term")];
    fields.extend(figures);
    fields.push(Field::text("remarks", "remarks"));
    let mut sheet = Sheet::new(&id("terms", found), &name_of, fields);
    let largest = found.terms.iter().flat_map(|term| [term.base_ns, term.other_ns, term.delta_ns]);
    let largest = largest.map(i64::unsigned_abs).max().unwrap_or(0);
    let decimals = decimals_for(largest as f64 / 1e6);
    let ms = |ns: i64| Cell::whole(ns, fixed(ns as f64 / 1e6, decimals).replace('-', "−"));
    let count = |term: &Term, n: u64| match counts(term) {
        true => Cell::count(n),
        false => Cell::absent(),
    };
    for term in &found.terms {
        let mut row = vec![Cell::text(name(page, term))];
        if alone {
            row.push(count(term, term.calls_other));
        } else {
            row.extend([count(term, term.calls_base), count(term, term.calls_other)]);
            row.extend([ms(term.base_ns), ms(term.other_ns)]);
        }
        row.extend([ms(term.delta_ns), Cell::text(remarks(found, term, alone).join(", "))]);
        sheet.push(row);
    }
    let end = |label: &str, ns: i64| {
        let mut row = vec![Cell::default(); last + 2];
        (row[0], row[last]) = (Cell::text(label), ms(ns));
        row
    };
    sheet.push(end("residual", found.residual_ns));
    sheet.total = Some(end(if alone { "total" } else { "difference" }, found.delta_ns));
    sheet.folded = true;
    sheet.without_empty_columns()
}
