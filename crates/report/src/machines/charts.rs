//! The pictures of a group: a figure with a row a machine, and small multiples, one a machine, all on one scale.

use super::figures::{Figure, RATIO, Value};
use super::group::{Group, Member};
use crate::axis::{Axis, Unit};
use crate::chart::{Chart, Drawing, Key, WIDE, fit, labels_below, series_class};
use crate::histogram::SMALL;
use crate::numbers::thousands;
use crate::page::Page;
use crate::race::ratio;

/// Machines that are drawn, at most.
const MACHINES: usize = 64;

/// Figures in a small multiple, at most.
const FIGURES: usize = 12;

/// The series of the mark of a machine that is among the others, and of an outlier: another shape and colour.
const USUAL: usize = 0;
const APART: usize = 1;

/// A quotient beyond these is drawn at the edge.
const FURTHEST: f64 = 100.0;

/// The least stretch of a scale of quotients, so that no noise looks like a difference.
const LEAST_STRETCH: f64 = 1.25;

/// Where labels end, marks begin and end, and figures end.
const LABELS: f64 = 196.0;
const MARKS: f64 = 206.0;
const MARKS_END: f64 = 650.0;
const ROW: f64 = 22.0;

const SMALL_LABELS: f64 = 116.0;
const SMALL_MARKS: f64 = 126.0;
const SMALL_MARKS_END: f64 = 284.0;
const SMALL_ROW: f64 = 17.0;

fn series_of(is_outlier: bool) -> usize {
    if is_outlier { APART } else { USUAL }
}

/// The bar of an interval.
fn error_bar(drawing: &mut Drawing, [from, to]: [f64; 2], y: f64, series: usize) {
    let class = format!("{} error", series_class(series));
    drawing.line([from, y, to, y], &class);
    drawing.line([from, y - 3.0, from, y + 3.0], &class);
    drawing.line([to, y - 3.0, to, y + 3.0], &class);
}

/// A place on an axis, as people read it.
fn tick_label(unit: &str, value: f64) -> String {
    Unit::for_unit(unit).shown(value)
}

/// A figure as people read it, with its unit.
pub(super) fn shown(figure: &Figure, value: f64) -> String {
    match figure.unit.as_str() {
        RATIO => ratio(value),
        unit => Unit::for_unit(unit).shown(value),
    }
}

/// How it compares with the median of all.
pub(super) fn compared(figure: &Figure, value: f64) -> String {
    match figure.ratio(value) {
        quotient if quotient.is_finite() => format!("{} × the median", ratio(quotient)),
        _ => "the median is 0".to_owned(),
    }
}

/// The signs of the marks; nothing where there is no outlier.
fn legend(has_outlier: bool) -> Vec<Key> {
    let key = |series, label: &str| Key { series: Some(series), ..Key::new("", label) };
    match has_outlier {
        true => vec![key(USUAL, "among the others"), key(APART, "outlier")],
        false => Vec::new(),
    }
}

/// A figure of all machines, the largest on top.
pub(super) fn overview(page: &Page<'_>, group: &Group, figure: &Figure, id: &str) -> Option<Chart> {
    let each = group.members.iter().zip(&figure.values).zip(&figure.apart);
    let mut rows: Vec<(&Member, Value, bool)> =
        each.filter_map(|((member, value), apart)| Some((member, (*value)?, *apart))).collect();
    rows.sort_by(|one, other| other.1.value.total_cmp(&one.1.value));
    let all = rows.len();
    rows.truncate(MACHINES);
    let values = rows.iter().map(|(_, one, _)| one.value).chain([figure.median]);
    let least = values.clone().fold(f64::INFINITY, f64::min);
    // The end of an interval far below all would stretch the axis without end.
    let ends = rows.iter().filter_map(|(_, one, _)| one.interval).flatten();
    let ends = ends.filter(|end| *end > least / 10.0);
    let axis = Axis::from_values(values.chain(ends).collect::<Vec<f64>>().into_iter())?.roomy();
    let place = |value: f64| MARKS + axis.share(value) * (MARKS_END - MARKS);
    let floor = 8.0 + ROW * rows.len() as f64;
    let mut drawing = Drawing::new(WIDE, floor + 24.0);
    let ticks = axis.ticks(6);
    for tick in &ticks {
        drawing.line([place(*tick), 4.0, place(*tick), floor], "grid");
    }
    let labels = ticks.iter().map(|tick| (place(*tick), tick_label(&figure.unit, *tick)));
    labels_below(&mut drawing, floor + 16.0, labels);
    drawing.line([place(figure.median), 4.0, place(figure.median), floor], "s7 fit");
    let y = |at: usize| 17.0 + ROW * at as f64;
    let mut tips = Vec::new();
    for (at, (member, one, apart)) in rows.iter().enumerate() {
        let title = page.name(&member.title, 100);
        let class = if *apart { "end bold" } else { "end" };
        drawing.text(LABELS, y(at) + 4.0, class, &fit(&title, LABELS - 4.0));
        let text = shown(figure, one.value);
        let class = if *apart { "end num bold" } else { "end num" };
        drawing.text(WIDE - 8.0, y(at) + 4.0, class, &text);
        let interval = one.interval.map(|[low, high]| {
            format!(" (95 % CI: {} … {})", shown(figure, low), shown(figure, high))
        });
        let compared = compared(figure, one.value);
        tips.push(format!("{title}: {text}, {compared}{}", interval.unwrap_or_default()));
    }
    for series in [USUAL, APART] {
        drawing.group(series, |drawing| {
            let of_series = rows.iter().enumerate();
            let of_series = of_series.filter(|(_, (.., apart))| series_of(*apart) == series);
            for (at, (_, one, _)) in of_series {
                if let Some(ends) = one.interval {
                    error_bar(drawing, ends.map(place), y(at), series);
                }
                drawing.mark(series, place(one.value), y(at), &tips[at]);
            }
        });
    }
    let mut notes = vec![format!(
        "the dashed line is the median of all machines, {}{}{}",
        shown(figure, figure.median),
        if rows.iter().any(|(_, one, _)| one.interval.is_some()) {
            "; bars are 95 % confidence intervals"
        } else {
            ""
        },
        if axis.is_log { "; the axis is logarithmic" } else { "" }
    )];
    if all > rows.len() {
        let more = thousands((all - rows.len()) as u128);
        notes.push(format!("{more} machines with less are in the table"));
    }
    Some(Chart {
        id: id.to_owned(),
        title: format!("{} of each machine", page.name(&figure.name, 60)),
        says: tips.join("; "),
        legend: legend(rows.iter().any(|(_, _, apart)| *apart)),
        notes,
        drawing,
    })
}

/// The figures that small multiples have: those in which machines differ at all.
fn drawn(figures: &[Figure]) -> Vec<&Figure> {
    let differs = |figure: &&Figure| {
        let known = || figure.values.iter().flatten();
        known().count() > 1 && known().any(|one| one.value != figure.median)
    };
    figures.iter().filter(differs).take(FIGURES).collect()
}

/// The common scale of the small multiples.
fn scale(figures: &[&Figure]) -> Axis {
    let each = figures
        .iter()
        .flat_map(|figure| figure.values.iter().flatten().map(|one| figure.ratio(one.value)));
    let within = |ratio: f64| ratio.clamp(1.0 / FURTHEST, FURTHEST);
    let mut all: Vec<f64> = each.map(within).collect();
    all.extend([1.0 / LEAST_STRETCH, LEAST_STRETCH]);
    let low = all.iter().copied().fold(1.0, f64::min);
    let high = all.iter().copied().fold(1.0, f64::max);
    let beyond = (high / low).powf(0.05);
    Axis { low: low / beyond, high: high * beyond, is_log: true }
}

/// The common ticks: round quotients, 1 among them.
fn ticks(axis: &Axis) -> Vec<f64> {
    let ticks = axis.ticks(3);
    match ticks.len() {
        0..=2 => Axis { is_log: false, ..*axis }.ticks(4),
        _ => ticks,
    }
}

/// A picture a machine, of its figures over the medians of all: where a machine is as the others, its marks are on the line.
pub(super) fn multiples(page: &Page<'_>, group: &Group, figures: &[Figure]) -> Vec<Chart> {
    let figures = drawn(figures);
    if figures.is_empty() {
        return Vec::new();
    }
    let axis = scale(&figures);
    let members = group.members.iter().enumerate().take(MACHINES);
    members.map(|(at, member)| multiple(page, (at, member), &figures, &axis)).collect()
}

/// How to read them.
pub(super) fn how_to_read(drawn: usize, group: &Group, has_outlier: bool) -> String {
    let mut text = "each mark is a figure of the machine as a multiple of the median of all machines, which is the \
                    line at 1; the scale is logarithmic and the same for all"
        .to_owned();
    if has_outlier {
        text += "; squares are outliers";
    }
    if drawn < group.members.len() {
        let more = thousands((group.members.len() - drawn) as u128);
        text += &format!("; {more} more machines are in the table");
    }
    text
}

fn multiple(
    page: &Page<'_>,
    (at, member): (usize, &Member),
    figures: &[&Figure],
    axis: &Axis,
) -> Chart {
    let place = |quotient: f64| {
        let quotient = quotient.clamp(axis.low, axis.high);
        SMALL_MARKS + axis.share(quotient) * (SMALL_MARKS_END - SMALL_MARKS)
    };
    let floor = 6.0 + SMALL_ROW * figures.len() as f64;
    let mut drawing = Drawing::new(SMALL, floor + 22.0);
    let ticks = ticks(axis);
    for tick in &ticks {
        drawing.line([place(*tick), 2.0, place(*tick), floor], "grid");
    }
    drawing.line([place(1.0), 2.0, place(1.0), floor], "axis");
    labels_below(
        &mut drawing,
        floor + 15.0,
        ticks.iter().map(|tick| (place(*tick), tick_label(RATIO, *tick))),
    );
    let title = page.name(&member.title, 100);
    let mut says = Vec::new();
    for (row, figure) in figures.iter().enumerate() {
        let y = 6.0 + SMALL_ROW * (row as f64 + 0.5);
        let apart = figure.apart[at];
        let label = fit(&page.name(&figure.name, 60), SMALL_LABELS - 4.0);
        let class = if apart { "end small bold" } else { "end small" };
        drawing.text(SMALL_LABELS, y + 4.0, class, &label);
        let Some(one) = figure.values[at] else { continue };
        let text = shown(figure, one.value);
        let tip =
            format!("{}: {text}, {}", page.name(&figure.name, 60), compared(figure, one.value));
        drawing.mark(series_of(apart), place(figure.ratio(one.value)), y, &tip);
        let class = if apart { "end small num bold" } else { "end small num" };
        drawing.text(SMALL - 4.0, y + 4.0, class, &text);
        says.push(tip);
    }
    let is_outlier = figures.iter().any(|figure| figure.apart[at]);
    Chart {
        id: format!("machine-{}", at + 1),
        title: if is_outlier { format!("{title} (outlier)") } else { title.clone() },
        says: format!("{title}: {}", says.join("; ")),
        legend: Vec::new(),
        notes: Vec::new(),
        drawing,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figure(values: &[f64], median: f64) -> Figure {
        Figure {
            name: "wall".into(),
            unit: "ns".into(),
            values: values
                .iter()
                .map(|value| Some(Value { value: *value, interval: None }))
                .collect(),
            median,
            apart: vec![false; values.len()],
        }
    }

    #[test]
    fn the_scale_has_every_quotient_1_and_its_ticks_whatever_the_figures_are() {
        for values in [vec![1.0, 1.0], vec![1.0, 1e9], vec![0.0, 5.0], vec![3.0, 3.1, 9.0]] {
            let figure = figure(&values, values[0]);
            let axis = scale(&[&figure]);
            assert!(axis.low < 1.0 && axis.high > 1.0 && axis.low >= 0.005, "{axis:?}");
            assert!(ticks(&axis).len() >= 2, "{axis:?} {:?}", ticks(&axis));
        }
    }

    #[test]
    fn a_figure_in_which_no_machine_differs_is_not_drawn() {
        let figures = [figure(&[5.0, 5.0, 5.0], 5.0), figure(&[5.0, 6.0, 5.0], 5.0)];
        assert_eq!(drawn(&figures).len(), 1);
    }
}
