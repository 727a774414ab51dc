//! docs/export.md lists the tables and columns as they are declared.

use iotomy_export::{ColumnFacts, TABLES, Table};
use iotomy_test_requirements::guide;

/// The columns that every table has.
const COMMON: usize = 4;

fn row(column: &ColumnFacts) -> Vec<String> {
    vec![format!("`{}`", column.name), column.of.name().to_owned(), column.meaning.clone()]
}

fn own(table: &Table) -> Vec<ColumnFacts> {
    (table.columns)().split_off(COMMON)
}

#[test]
fn the_guide_has_every_table_and_column() {
    let mut common = (TABLES[0].columns)();
    common.truncate(COMMON);
    let header = ["column", "type", "content"];
    guide::check("docs/export.md", "common", &guide::table(&header, common.iter().map(row)));
    let tables = TABLES
        .iter()
        .map(|one| vec![format!("[{}](#{})", one.name, one.name), format!("{}.", one.row)]);
    guide::check("docs/export.md", "tables", &guide::table(&["table", "a row is"], tables));
    let mut lines = Vec::new();
    for table in TABLES {
        lines.extend([format!("### {}", table.name), String::new()]);
        lines.extend(guide::table(&header, own(table).iter().map(row)));
        lines.push(String::new());
    }
    lines.pop();
    guide::check("docs/export.md", "columns", &lines);
}

#[test]
fn a_name_of_a_column_stands_once_and_is_sql() {
    for table in TABLES {
        let columns = (table.columns)();
        for (at, column) in columns.iter().enumerate() {
            let is_plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
            assert!(column.name.chars().all(is_plain), "{}.{}", table.name, column.name);
            let before = &columns[..at];
            assert!(before.iter().all(|one| one.name != column.name), "{}", column.name);
            // These are the columns of the directories.
            assert!(!["date", "machine"].contains(&&*column.name), "{}", table.name);
            assert!(!column.meaning.is_empty() && !column.meaning.contains('|'), "{}", column.name);
        }
    }
}
