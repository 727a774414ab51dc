//! Parts of a report by themselves: a picture as SVG, a table as CSV, any of them as Markdown.
//!
//! A part is called by its name in the record, `calls`; with several records, by the record's place in
//! front, `2/calls`. The parts of many machines are called `machines/overview`.

use std::borrow::Cow;

use iotomy_record::store::Record;

use crate::chart::Chart;
use crate::escape::csv_field;
use crate::markdown::Writer;
use crate::section::{Block, Section};
use crate::sections::PlacedSection;
use crate::sheet::{Cell, Sheet, Value};
use crate::{Source, findings};

/// The kind of a part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PartKind {
    /// A picture.
    Chart,
    /// A table.
    Table,
}

/// A part that can be requested.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReportPart {
    /// Its name.
    pub name: String,
    /// The kind.
    pub kind: PartKind,
    /// The title.
    pub title: String,
}

/// Why there is no such part.
#[derive(Debug, PartialEq, Eq)]
pub enum PartError {
    /// No part has this name.
    Unknown {
        /// The name.
        name: String,
        /// Those there are.
        known: Vec<String>,
    },
    /// The records have none of this kind.
    None(PartKind),
}

impl std::error::Error for PartError {}

impl std::fmt::Display for PartError {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Unknown { name, known } => {
                let name = iotomy_record::printable(name, true);
                write!(
                    to,
                    "there is no part \"{name}\" of that kind; there are {}",
                    known.join(", ")
                )
            }
            Self::None(PartKind::Chart) => {
                to.write_str("the record has nothing to draw; try --markdown")
            }
            Self::None(PartKind::Table) => to.write_str("the record has no table; try --markdown"),
        }
    }
}

/// Every part of the records, in their order.
pub fn parts(sources: &[Source<'_>]) -> Vec<ReportPart> {
    let sections = sections(sources);
    named(&sections)
        .into_iter()
        .map(|(name, item)| match item {
            Item::Chart(chart, _) => {
                ReportPart { name, kind: PartKind::Chart, title: chart.title.clone() }
            }
            Item::Sheet(sheet) => {
                ReportPart { name, kind: PartKind::Table, title: sheet.title.clone() }
            }
        })
        .collect()
}

/// A picture; without a name, the first.
///
/// # Errors
/// When there is none, or none of this name.
pub fn svg(sources: &[Source<'_>], part: Option<&str>) -> Result<String, PartError> {
    let sections = sections(sources);
    let charts = named(&sections).into_iter().filter_map(|(name, item)| match item {
        Item::Chart(chart, section) => Some((name, (chart, section))),
        Item::Sheet(_) => None,
    });
    pick(charts.collect(), part, PartKind::Chart)
        .map(|(chart, section)| chart.file(&section.origin()))
}

/// A table, with all its rows; without a name, the first. Values are in the record's units.
///
/// # Errors
/// When there is none, or none of this name.
pub fn csv(sources: &[Source<'_>], part: Option<&str>) -> Result<String, PartError> {
    let sections = sections(sources);
    pick(sheets(&sections), part, PartKind::Table).map(|sheet| sheet_as_csv(&sheet))
}

/// The answers, findings and tables; or one table.
///
/// # Errors
/// When there is no table of this name.
pub fn markdown(sources: &[Source<'_>], part: Option<&str>) -> Result<String, PartError> {
    let sections = sections(sources);
    let mut to = Writer::default();
    if part.is_some() {
        to.sheet(pick(sheets(&sections), part, PartKind::Table)?.as_ref(), usize::MAX);
    } else {
        sections.iter().for_each(|placed| to.placed(placed));
    }
    Ok(to.finish())
}

enum Item<'a> {
    /// A picture, and the section it belongs to.
    Chart(&'a Chart, &'a Section),
    Sheet(Cow<'a, Sheet>),
}

fn sections(sources: &[Source<'_>]) -> Vec<PlacedSection> {
    let records: Vec<&Record> = sources.iter().map(|source| source.record).collect();
    crate::sections::all(&records)
}

fn named(sections: &[PlacedSection]) -> Vec<(String, Item<'_>)> {
    let mut items = Vec::new();
    for placed in sections {
        let section = &placed.section;
        let name = |id: &str| match sections.len() {
            1 => id.to_owned(),
            _ => format!("{}/{id}", placed.name),
        };
        for block in &section.blocks {
            match block {
                Block::Chart(chart) => items.push((name(&chart.id), Item::Chart(chart, section))),
                Block::Few(few) => {
                    let few = few.iter();
                    items.extend(few.map(|chart| (name(&chart.id), Item::Chart(chart, section))));
                }
                Block::Sheet(sheet) => {
                    items.push((name(&sheet.id), Item::Sheet(Cow::Borrowed(sheet))));
                }
                Block::Head(_) | Block::Notes(_) => {}
            }
        }
        // Last, so that the first table of a record stays the same without a name.
        let found = section.findings_sheet();
        items.extend(found.map(|sheet| (name(&sheet.id), Item::Sheet(Cow::Owned(sheet)))));
    }
    items
}

fn sheets<'a>(sections: &'a [PlacedSection]) -> Vec<(String, Cow<'a, Sheet>)> {
    let items = named(sections).into_iter();
    let sheets = items.filter_map(|(name, item)| match item {
        Item::Sheet(sheet) => Some((name, sheet)),
        Item::Chart(..) => None,
    });
    sheets.collect()
}

fn pick<T>(all: Vec<(String, T)>, wanted: Option<&str>, kind: PartKind) -> Result<T, PartError> {
    let mut known = Vec::new();
    for (name, one) in all {
        if wanted.is_none_or(|wanted| wanted == name) {
            return Ok(one);
        }
        known.push(name);
    }
    Err(match wanted {
        Some(wanted) => {
            known.truncate(findings::TEXT);
            PartError::Unknown { name: wanted.to_owned(), known }
        }
        None => PartError::None(kind),
    })
}

fn sheet_as_csv(sheet: &Sheet) -> String {
    let mut text = String::new();
    let mut line = |fields: &mut dyn Iterator<Item = String>| {
        text += &fields.collect::<Vec<String>>().join(",");
        text.push('\n');
    };
    line(&mut sheet.fields.iter().map(|field| csv_field(&field.key)));
    for row in &sheet.rows {
        line(&mut row.iter().map(csv_cell));
    }
    text
}

fn csv_cell(cell: &Cell) -> String {
    match cell.value {
        // A number is not a formula, whatever its sign.
        Value::Whole(_) | Value::Real(_) | Value::Absent => cell.raw(),
        Value::Text => csv_field(&cell.text),
    }
}

#[cfg(test)]
mod tests;
