//! A table in a page.

use std::io::{self, Write};

use crate::escape::markup;
use crate::numbers::thousands;
use crate::page::columns;
use crate::sheet::{Align, Cell, Field, MOST_ROWS, Sheet, Value};

pub(super) fn write(to: &mut dyn Write, id: &str, sheet: &Sheet) -> io::Result<()> {
    let (name, title) = (format!("{id}-{}", sheet.id), markup(&sheet.title));
    if sheet.folded {
        let long = if sheet.rows.len() > ON_PAPER { " long" } else { "" };
        writeln!(to, "<details class=\"table{long}\" id=\"{name}\"><summary>{title}</summary>")?;
        writeln!(to, "<div class=\"head\"></div>")?;
    } else {
        writeln!(
            to,
            "<div class=\"table\" id=\"{name}\"><div class=\"head\"><h2>{title}</h2></div>"
        )?;
    }
    write!(
        to,
        "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"{title}\"><table><caption>{title}\
         </caption><thead><tr>"
    )?;
    let classes = classes(sheet);
    for (field, class) in sheet.fields.iter().zip(&classes) {
        let class = if class.is_empty() { "" } else { " class=\"w\"" };
        let unit = match field.unit.as_str() {
            "" => String::new(),
            unit => format!("<small>{}</small>", markup(unit)),
        };
        write!(to, "<th scope=\"col\"{class}>{}{unit}</th>", markup(&field.head))?;
    }
    writeln!(to, "</tr></thead>\n<tbody>")?;
    for row in sheet.rows.iter().take(MOST_ROWS) {
        cells(to, &classes, row, true)?;
    }
    write!(to, "</tbody>")?;
    if let Some(total) = &sheet.total {
        write!(to, "<tfoot>")?;
        cells(to, &classes, total, false)?;
        write!(to, "</tfoot>")?;
    }
    writeln!(to, "</table></div>")?;
    let hidden = sheet.hidden + sheet.rows.len().saturating_sub(MOST_ROWS);
    if hidden > 0 {
        let all = thousands((hidden + sheet.rows.len().min(MOST_ROWS)) as u128);
        let hidden = thousands(hidden as u128);
        writeln!(
            to,
            "<p class=\"note hidden-rows\">{hidden} of {all} rows are not on this page; they are in the record, \
             and in <code>--csv --part {}</code></p>",
            markup(&sheet.id)
        )?;
    }
    for note in &sheet.notes {
        writeln!(to, "<p class=\"note\">{}</p>", markup(note))?;
    }
    writeln!(to, "{}", if sheet.folded { "</details>" } else { "</div>" })
}

/// Rows up to which a table that is folded is printed, too: a sheet of paper.
const ON_PAPER: usize = 60;

/// Columns of words up to which they stand on one line.
const ONE_LINE: usize = 26;

/// The class of each column: none for figures; for words one that permits or forbids line breaks.
fn classes(sheet: &Sheet) -> Vec<&'static str> {
    let rows = || sheet.rows.iter().take(MOST_ROWS).chain(&sheet.total);
    let of = |(at, field): (usize, &Field)| {
        let short = |row: &Vec<Cell>| columns(&row[at].text) <= ONE_LINE;
        match field.align {
            Align::Number => "",
            Align::Text if rows().all(short) => "w one",
            Align::Text => "w",
        }
    };
    sheet.fields.iter().enumerate().map(of).collect()
}

fn cells(to: &mut dyn Write, classes: &[&str], row: &[Cell], sorts: bool) -> io::Result<()> {
    write!(to, "<tr>")?;
    for (at, (class, cell)) in classes.iter().zip(row).enumerate() {
        let text = markup(&cell.text);
        let value = match cell.value {
            Value::Text => String::new(),
            _ if !sorts => String::new(),
            Value::Absent => " data-v=\"\"".to_owned(),
            Value::Whole(value) => format!(" data-v=\"{value}\""),
            Value::Real(value) if value.is_finite() => format!(" data-v=\"{value}\""),
            Value::Real(_) => " data-v=\"\"".to_owned(),
        };
        match (at, *class) {
            (_, "") => write!(to, "<td{value}>{text}</td>")?,
            (0, class) => write!(to, "<th scope=\"row\" class=\"{class}\"{value}>{text}</th>")?,
            (_, class) => write!(to, "<td class=\"{class}\"{value}>{text}</td>")?,
        }
    }
    writeln!(to, "</tr>")
}
