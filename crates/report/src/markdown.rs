//! A report as Markdown: the answers, the findings, the tables and where it comes from.

use std::fmt::Write as _;

use crate::escape::markdown;
use crate::section::{Answer, Block};
use crate::sections::PlacedSection;
use crate::sheet::{Align, Cell, Sheet};

/// Rows of a table unless it was requested by itself.
const ROWS: usize = 25;

/// Text being written. Writing to a String cannot fail.
#[derive(Debug, Default)]
pub(crate) struct Writer(String);

impl Writer {
    pub(crate) fn placed(&mut self, placed: &PlacedSection) {
        let PlacedSection { section, is_brief, .. } = placed;
        if !self.0.is_empty() {
            self.0.push('\n');
        }
        let (kind, title) = (markdown(&placed.kind()), markdown(&section.title));
        let _ = writeln!(self.0, "# {kind} · {title}\n");
        for Answer { says, rest, .. } in &section.answers {
            let rest = if rest.is_empty() { String::new() } else { format!(" {}", markdown(rest)) };
            let _ = writeln!(self.0, "- **{}**{rest}", markdown(says));
        }
        if !section.findings.is_empty() {
            let _ = writeln!(
                self.0,
                "\n## {}\n",
                if section.kind == "sweep" { "Claims" } else { "Findings" }
            );
        }
        for found in &section.findings {
            let _ = writeln!(
                self.0,
                "- **{}** {}: {}",
                found.word,
                markdown(&found.id),
                markdown(&found.text)
            );
            if let Some((label, text)) = &found.more {
                let _ = writeln!(self.0, "  - {label}: {}", markdown(text));
            }
        }
        for block in section.blocks.iter().filter(|_| !is_brief) {
            match block {
                Block::Sheet(sheet) if sheet.folded && sheet.rows.len() > ROWS => {}
                Block::Sheet(sheet) => self.sheet(sheet, ROWS),
                Block::Notes(notes) => {
                    for note in notes {
                        let _ = writeln!(self.0, "\n{}", markdown(note));
                    }
                }
                Block::Head(_) | Block::Chart(_) | Block::Few(_) => {}
            }
        }
        let _ = writeln!(self.0, "\n## Record\n");
        for (label, text) in &section.facts {
            let _ = writeln!(self.0, "- {label}: {}", markdown(text));
        }
    }

    /// Items of a list.
    pub(crate) fn lines(&mut self, lines: &[String]) {
        if !self.0.is_empty() {
            self.0.push('\n');
        }
        for line in lines {
            let _ = writeln!(self.0, "- {}", markdown(line));
        }
    }

    pub(crate) fn sheet(&mut self, sheet: &Sheet, most: usize) {
        if !self.0.is_empty() {
            let _ = writeln!(self.0, "\n## {}\n", markdown(&sheet.title));
        }
        let heads = sheet.fields.iter().map(|field| match field.unit.as_str() {
            "" => markdown(&field.head),
            unit => format!("{} {}", markdown(&field.head), markdown(unit)).trim().to_owned(),
        });
        let _ = writeln!(self.0, "| {} |", heads.collect::<Vec<String>>().join(" | "));
        let rules = sheet.fields.iter().map(|field| match field.align {
            Align::Text => "---",
            Align::Number => "---:",
        });
        let _ = writeln!(self.0, "| {} |", rules.collect::<Vec<&str>>().join(" | "));
        for row in sheet.rows.iter().take(most) {
            self.row(row);
        }
        if let Some(total) = &sheet.total {
            self.row(total);
        }
        if sheet.rows.len() > most {
            let _ = writeln!(self.0, "\n{} more rows", sheet.rows.len() - most);
        }
        for note in &sheet.notes {
            let _ = writeln!(self.0, "\n{}", markdown(note));
        }
    }

    fn row(&mut self, cells: &[Cell]) {
        let cells: Vec<String> = cells.iter().map(|cell| markdown(&cell.text)).collect();
        let _ = writeln!(self.0, "| {} |", cells.join(" | "));
    }

    pub(crate) fn finish(self) -> String {
        self.0
    }
}
