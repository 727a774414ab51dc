//! A grid as a picture: a line per series, a mark per case with its interval, and the fits of the
//! claims.

use iotomy_record::{AxisValue, Case, Sweep};

use super::grid::Grid;
use crate::axis::{Axis, Unit};
use crate::chart::{Chart, Drawing, Key, WIDE, labels_below, series_class};
use crate::page::Page;

const LEFT: f64 = 84.0;
const RIGHT: f64 = WIDE - 20.0;
const TOP: f64 = 14.0;
const FLOOR: f64 = 320.0;
const HIGH: f64 = 366.0;

/// Lines of a picture, at most.
const LINES: usize = 16;

/// Room at both ends of the axis along, for marks beside their place.
const ROOM: f64 = 24.0;

/// How far apart marks of one place stand, at most: on an axis of numbers they stay near it.
const ASIDE: f64 = 4.0;
const ASIDE_NAMES: f64 = 9.0;

/// Points a fit is drawn through: on a logarithmic axis it is not a straight line.
const FINE: usize = 32;

/// A line that a claim fitted: value = intercept + slope × place.
pub(super) struct Fit {
    pub(super) claim: String,
    pub(super) name: String,
    pub(super) intercept: f64,
    pub(super) slope: f64,
    pub(super) slope_ci95: Option<[f64; 2]>,
    pub(super) r2: Option<f64>,
    /// Whether it states that it was weighted by shares.
    pub(super) is_weighted: bool,
}

impl Fit {
    /// Those the claims of a record rest on.
    pub(super) fn all(page: &Page<'_>, record: &Sweep) -> Vec<Self> {
        let mut fits = Vec::new();
        for claim in &record.claims {
            for (name, value) in &claim.evidence {
                let number = |key: &str| value.get(key).and_then(serde_json::Value::as_f64);
                let (Some(intercept), Some(slope)) = (number("intercept"), number("slope")) else {
                    continue;
                };
                let ends = value
                    .get("slope_ci95")
                    .and_then(|ends| Some([ends.get(0)?.as_f64()?, ends.get(1)?.as_f64()?]));
                fits.push(Self {
                    claim: page.name(&claim.id, 60),
                    name: page.name(name, 60),
                    intercept,
                    slope,
                    slope_ci95: ends,
                    r2: number("r2"),
                    is_weighted: value.get("weighted").is_some_and(|is| is == true),
                });
            }
        }
        fits
    }

    fn at(&self, place: f64) -> f64 {
        self.intercept + self.slope * place
    }

    /// Whether it belongs to a line: it has its name, and fits its points.
    fn is_of(&self, line: &str, points: &[(f64, &Case)]) -> bool {
        let named = self.name == line
            || self.name.strip_prefix(line).is_some_and(|rest| rest.starts_with('_'));
        let near = |(place, case): &&(f64, &Case)| {
            let (found, fitted) = (case.median.unwrap_or(0.0), self.at(*place));
            found > 0.0 && (found / 2.0..=found * 2.0).contains(&fitted)
        };
        named && 2 * points.iter().filter(near).count() >= points.len() && points.len() > 2
    }
}

/// Where the values of the axis along stand: by their numbers, or as names side by side.
enum AxisPositions {
    Numbers(Axis),
    Names(usize),
}

impl AxisPositions {
    fn from_rows(rows: &[&AxisValue]) -> Option<Self> {
        let numbers: Vec<f64> = rows.iter().filter_map(|row| number(row)).collect();
        if numbers.len() == rows.len() && rows.len() > 1 {
            return Axis::from_values(numbers.into_iter()).map(Self::Numbers);
        }
        (!rows.is_empty()).then_some(Self::Names(rows.len()))
    }

    fn place(&self, row: &AxisValue, at: usize) -> f64 {
        match self {
            Self::Numbers(axis) => on_floor(axis, number(row).unwrap_or(0.0)),
            Self::Names(count) => LEFT + (at as f64 + 0.5) / *count as f64 * (RIGHT - LEFT),
        }
    }

    /// The offset between the marks of one place, for this many lines: they would hide each other.
    fn aside(&self, rows: &[&AxisValue], lines: usize) -> f64 {
        let mut places: Vec<f64> =
            rows.iter().enumerate().map(|(at, row)| self.place(row, at)).collect();
        places.sort_by(f64::total_cmp);
        let gaps = places.windows(2).map(|pair| pair[1] - pair[0]);
        let gap = gaps.fold(RIGHT - LEFT, f64::min);
        let most = if matches!(self, Self::Names(_)) { ASIDE_NAMES } else { ASIDE };
        most.min(0.7 * gap / lines.max(1) as f64)
    }
}

/// Where a number stands along the floor.
fn on_floor(axis: &Axis, number: f64) -> f64 {
    LEFT + ROOM + axis.share(number) * (RIGHT - LEFT - 2.0 * ROOM)
}

fn number(value: &AxisValue) -> Option<f64> {
    match value {
        AxisValue::Number(number) => Some(*number as f64),
        AxisValue::Name(_) => None,
    }
}

/// The picture of a grid; none where nothing was measured.
pub(super) fn chart(
    page: &Page<'_>,
    record: &Sweep,
    grid: &Grid<'_>,
    fits: &[Fit],
    id: &str,
) -> Option<Chart> {
    let (rows, all) = (grid.rows(), grid.columns());
    let columns = &all[..all.len().min(LINES)];
    let cases =
        || rows.iter().flat_map(|row| columns.iter().filter_map(|column| grid.case(row, *column)));
    let unit = Unit::for_unit(cases().next()?.unit.as_str());
    let x = AxisPositions::from_rows(&rows)?;
    let mut heights: Vec<f64> = cases().filter_map(|case| case.median).collect();
    let least = heights.iter().copied().fold(f64::INFINITY, f64::min);
    // The end of an interval at or below 0 would stretch a logarithmic axis without end.
    let ends = cases().filter_map(|case| case.ci95).flatten();
    heights.extend(ends.filter(|end| *end > least / 10.0));
    let y = Axis::from_values(heights.into_iter())?.roomy();
    let mut drawing = Drawing::new(WIDE, HIGH);
    let up = |value: f64| FLOOR - y.share(value) * (FLOOR - TOP);
    for tick in y.ticks(6) {
        drawing.line([LEFT, up(tick), RIGHT, up(tick)], "grid");
        drawing.text(LEFT - 8.0, up(tick) + 4.0, "end dim num", &unit.shown(tick));
    }
    drawing.line([LEFT, TOP, LEFT, FLOOR], "axis");
    drawing.line([LEFT, FLOOR, RIGHT, FLOOR], "axis");
    floor(page, &mut drawing, grid, &x, &rows);
    let (mut legend, mut says, mut fitted) = (Vec::new(), Vec::new(), false);
    let aside = x.aside(&rows, columns.len());
    for (series, column) in columns.iter().enumerate() {
        let label = grid.head(page, *column);
        let points: Vec<(usize, &AxisValue, &Case)> = rows
            .iter()
            .enumerate()
            .filter_map(|(at, row)| Some((at, *row, grid.case(row, *column)?)))
            .collect();
        let of_fit: Vec<(f64, &Case)> =
            points.iter().filter_map(|(_, row, case)| Some((number(row)?, *case))).collect();
        let fit = fits.iter().find(|fit| fit.is_of(&label, &of_fit));
        fitted |= fit.is_some();
        let aside = (series as f64 - (columns.len() - 1) as f64 / 2.0) * aside;
        drawing.group(series, |drawing| {
            let way = Line { label: &label, series, points: &points, unit, aside };
            line(page, drawing, grid, way, (&x, &up));
            if let (Some(fit), AxisPositions::Numbers(axis)) = (fit, &x) {
                let places = of_fit.iter().map(|(place, _)| *place);
                let class = format!("{} fit", series_class(series));
                drawing.path(&fitted_line(fit, axis, places, (&y, &up)), &class);
            }
        });
        let ends: Vec<String> = points
            .iter()
            .filter_map(|(_, row, case)| {
                Some(format!("{} at {}", unit.shown(case.median?), grid.row_name(page, row)))
            })
            .collect();
        says.push(format!("{label}: {}", ends.join(", ")));
        if !label.is_empty() {
            legend.push(Key { class: series_class(series), label, series: Some(series) });
        }
    }
    Some(Chart {
        id: id.to_owned(),
        title: grid.title(page, record),
        says: says.join("; "),
        legend,
        notes: notes(&x, &y, all.len() - columns.len(), fitted),
        drawing,
    })
}

/// The points of a fit, from the first to the last place it was made of.
fn fitted_line(
    fit: &Fit,
    x: &Axis,
    places: impl Iterator<Item = f64> + Clone,
    (y, up): (&Axis, &dyn Fn(f64) -> f64),
) -> Vec<(f64, f64)> {
    let (first, last) =
        (places.clone().fold(f64::INFINITY, f64::min), places.fold(f64::NEG_INFINITY, f64::max));
    let (from, to) = (x.share(first), x.share(last));
    (0..=FINE)
        .map(|step| x.at(from + step as f64 / FINE as f64 * (to - from)))
        .filter(|place| (y.low..=y.high).contains(&fit.at(*place)))
        .map(|place| (on_floor(x, place), up(fit.at(place))))
        .collect()
}

fn notes(x: &AxisPositions, y: &Axis, hidden: usize, fitted: bool) -> Vec<String> {
    let mut note = "medians with their 95 % confidence intervals".to_owned();
    if fitted {
        note += "; the dashed lines are the fits of the claims";
    }
    note += match (matches!(x, AxisPositions::Numbers(axis) if axis.is_log), y.is_log) {
        (true, true) => "; both axes are logarithmic",
        (true, false) => "; the horizontal axis is logarithmic",
        (false, true) => "; the vertical axis is logarithmic",
        (false, false) => "",
    };
    let mut notes = vec![note];
    if hidden > 0 {
        notes.push(format!("{hidden} more lines are not drawn; they are in the table"));
    }
    notes
}

/// The values along the floor, as many as have room.
fn floor(
    page: &Page<'_>,
    drawing: &mut Drawing,
    grid: &Grid<'_>,
    x: &AxisPositions,
    rows: &[&AxisValue],
) {
    let places = || rows.iter().enumerate().map(|(at, row)| (x.place(row, at), *row));
    for (place, _) in places() {
        drawing.line([place, FLOOR, place, FLOOR + 4.0], "axis");
    }
    let labels = places().map(|(place, row)| (place, grid.row_name(page, row)));
    labels_below(drawing, FLOOR + 18.0, labels);
    let name = grid.along.map_or(String::new(), |axis| page.name(&axis.name, 60));
    drawing.text((LEFT + RIGHT) / 2.0, FLOOR + 38.0, "mid dim", &name);
}

/// A series, and its measurements.
struct Line<'a> {
    label: &'a str,
    series: usize,
    points: &'a [(usize, &'a AxisValue, &'a Case)],
    unit: Unit,
    /// How far its marks stand beside their places.
    aside: f64,
}

fn line(
    page: &Page<'_>,
    drawing: &mut Drawing,
    grid: &Grid<'_>,
    Line { label, series, points, unit, aside }: Line<'_>,
    (x, up): (&AxisPositions, &dyn Fn(f64) -> f64),
) {
    let class = series_class(series);
    // Names have no order that a line could show.
    if matches!(x, AxisPositions::Numbers(_)) {
        let mut path: Vec<(f64, f64)> = points
            .iter()
            .filter_map(|(at, row, case)| Some((x.place(row, *at) + aside, up(case.median?))))
            .collect();
        path.sort_by(|a, b| a.0.total_cmp(&b.0));
        drawing.path(&path, &class);
    }
    for (at, row, case) in points {
        let (place, Some(median)) = (x.place(row, *at), case.median) else { continue };
        let place = place + aside;
        let mut tip = format!("{label}, {}: {}", grid.row_name(page, row), unit.shown(median));
        if let Some([low, high]) = case.ci95 {
            let class = format!("{class} error");
            let (top, bottom) = (up(high), up(low));
            drawing.line([place, top, place, bottom], &class);
            drawing.line([place - 3.0, top, place + 3.0, top], &class);
            drawing.line([place - 3.0, bottom, place + 3.0, bottom], &class);
            tip += &format!(" (95 % CI: {} … {})", unit.shown(low), unit.shown(high));
        }
        tip += &format!(", {} samples", case.samples.len());
        drawing.mark(series, place, up(median), tip.trim_start_matches(", "));
    }
}
