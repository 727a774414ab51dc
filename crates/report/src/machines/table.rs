//! The table of a group: a row a machine, with its figures and those in which it is an outlier.

use iotomy_stats::outliers::{FEWEST, LEAST_SHARE, spreads};

use super::charts::shown;
use super::figures::{Figure, RATIO};
use super::group::{Group, Member};
use crate::numbers::fixed;
use crate::page::Page;
use crate::race::ratio;
use crate::sheet::{Cell, Field, Sheet};
use crate::sweep::Scale;

/// The figures of a group, as a table.
pub(super) fn sheet(page: &Page<'_>, group: &Group, figures: &[Figure]) -> Sheet {
    let mut fields = vec![
        Field::text("machine", "machine"),
        Field::text("outlier", "outlier in"),
        Field::text("kernel", "kernel"),
        Field::text("processor", "processor"),
        Field::number("records", "records", ""),
    ];
    let mut keys: Vec<String> = Vec::new();
    let columns: Vec<Column<'_>> = figures.iter().map(Column::new).collect();
    for column in &columns {
        let mut key = column.key();
        while keys.contains(&key) {
            key.push_str("_2");
        }
        fields.extend(column.fields(page, &key));
        keys.push(key);
    }
    let mut sheet = Sheet::new("machines", "Machines", fields);
    for (at, member) in group.members.iter().enumerate() {
        let outlier = figures.iter().filter(|figure| figure.apart[at]);
        let outlier: Vec<String> = outlier.map(|figure| page.name(&figure.name, 60)).collect();
        let mut row = about(page, member, outlier.join(", "));
        row.extend(columns.iter().flat_map(|column| column.cells(at)));
        sheet.push(row);
    }
    let mut total = vec![Cell::text("median"), Cell::text(""), Cell::text(""), Cell::text("")];
    total.push(Cell::absent());
    total.extend(columns.iter().flat_map(Column::total));
    sheet.total = Some(total);
    sheet.notes = notes(page, group, figures);
    if group.members.iter().all(|member| member.records.len() == 1) {
        without(&mut sheet, "records");
    }
    sheet.without_empty_columns()
}

fn about(page: &Page<'_>, member: &Member, outlier: String) -> Vec<Cell> {
    let machine = &member.machine;
    let processor = match machine.cpu.as_str() {
        "" => String::new(),
        cpu => format!("{} × {}", machine.cpus, page.name(cpu, 60)),
    };
    vec![
        Cell::text(page.name(&member.title, 100)),
        Cell::text(outlier),
        Cell::text(page.name(&machine.kernel, 60)),
        Cell::text(processor),
        Cell::count(member.records.len() as u128),
    ]
}

/// Takes a column off.
fn without(sheet: &mut Sheet, key: &str) {
    let Some(at) = sheet.fields.iter().position(|field| field.key == key) else { return };
    sheet.fields.remove(at);
    for row in sheet.rows.iter_mut().chain(&mut sheet.total) {
        row.remove(at);
    }
}

/// A figure as a column, and its interval as two more.
struct Column<'a> {
    figure: &'a Figure,
    scale: Scale,
    has_interval: bool,
}

impl<'a> Column<'a> {
    fn new(figure: &'a Figure) -> Self {
        let known = figure.values.iter().flatten();
        Self {
            figure,
            scale: Scale::for_figures(&figure.unit, known.clone().map(|one| one.value)),
            has_interval: known.clone().any(|one| one.interval.is_some()),
        }
    }

    /// Its name in CSV, with the record's unit.
    fn key(&self) -> String {
        let letter = |c: char| if c.is_alphanumeric() || c == '.' { c } else { '_' };
        let name: String = self.figure.name.chars().map(letter).collect();
        match self.figure.unit.as_str() {
            "ns" => name + "_ns",
            "bytes/s" => name + "_bytes_per_s",
            _ => name,
        }
    }

    fn fields(&self, page: &Page<'_>, key: &str) -> Vec<Field> {
        let head = page.name(&self.figure.name, 60);
        let mut fields = vec![Field::number(key, &head, self.scale.unit)];
        if self.has_interval {
            fields.push(Field::number(&format!("{key}_low"), "95 % CI from", ""));
            fields.push(Field::number(&format!("{key}_high"), "to", ""));
        }
        fields
    }

    fn cell(&self, value: f64) -> Cell {
        let text = match self.figure.unit.as_str() {
            RATIO => ratio(value),
            _ => self.scale.shown(value),
        };
        Cell::real(value, text)
    }

    fn cells(&self, at: usize) -> Vec<Cell> {
        let value = self.figure.values[at];
        let mut cells = vec![Cell::from_option(value, |one| self.cell(one.value))];
        if self.has_interval {
            cells.extend(Cell::ends(value.and_then(|one| one.interval), |end| self.cell(end)));
        }
        cells
    }

    /// The median of all.
    fn total(&self) -> Vec<Cell> {
        let mut cells = vec![self.cell(self.figure.median)];
        if self.has_interval {
            cells.extend([Cell::absent(), Cell::absent()]);
        }
        cells
    }
}

/// What an outlier is, said once.
fn notes(page: &Page<'_>, group: &Group, figures: &[Figure]) -> Vec<String> {
    let count = group.members.len();
    let mut notes = vec![match count < FEWEST {
        true => format!("outliers are looked for from {FEWEST} machines on"),
        false => format!(
            "an outlier is further from the median of all machines than {} times their spread (the median distance \
             from the median, × 1.4826) and than {} % of the median; a difference below 1 % of the wall time, or of at \
             most 10 calls or errors, makes none",
            spreads(count),
            fixed(100.0 * LEAST_SHARE, 0)
        ),
    }];
    if group.members.iter().any(|member| member.machine.name.is_empty()) {
        notes.push(
            "records without the name of their machine are one machine where processor, CPUs and kernel are equal"
                .to_owned(),
        );
    }
    if group.members.iter().any(|member| member.records.len() > 1) {
        notes.push("a figure of several records is their median".to_owned());
    }
    if let [first, ..] = figures
        && first.values.iter().any(Option::is_none)
    {
        notes.push(format!("some records have no {}", page.name(&first.name, 60)));
    }
    notes
}

/// How a machine differs from the others, in words: the largest difference first.
pub(super) fn differences(page: &Page<'_>, figures: &[Figure], at: usize) -> Vec<String> {
    let mut found: Vec<(i64, String)> = figures
        .iter()
        .filter(|figure| figure.apart[at])
        .filter_map(|figure| {
            let value = figure.values[at]?.value;
            let text = format!(
                "{} {}, {} ({})",
                page.name(&figure.name, 60),
                shown(figure, value),
                super::charts::compared(figure, value),
                shown(figure, figure.median)
            );
            // Those that are as large stay in the order of the figures.
            Some(((figure.ratio(value).ln().abs() * 10.0).round() as i64, text))
        })
        .collect();
    found.sort_by_key(|(size, _)| std::cmp::Reverse(*size));
    found.into_iter().map(|(_, text)| text).collect()
}
