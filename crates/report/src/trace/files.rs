//! The files that bytes went through, summed over the images that used them.
//!
//! Computed by `count_transfer` in `crates/observe/src/bpf/files.bpf.h`.

use std::collections::{BTreeMap, BTreeSet};

use iotomy_record::{FileKind, FileUse, Socket, Trace};

use super::images::{Image, Names};
use super::{USUAL_ROWS, print_hidden, rows};
use crate::numbers::{bytes, counted, thousands};
use crate::page::{Ink, Page};
use crate::table::{Column, Row, Table};

const COLUMNS: [Column; 8] = [
    Column::text("file", 9),
    Column::text("kind", 4),
    Column::number("reads", "", 6),
    Column::number("bytes", "", 8),
    Column::number("writes", "", 5),
    Column::number("bytes", "", 7),
    Column::number("mapped", "", 3),
    Column::text("by", 1),
];

/// Columns a path may take on the widest line.
const PATH: usize = 60;

#[derive(Default)]
pub(super) struct Use<'r> {
    pub(super) read_calls: u128,
    pub(super) read_bytes: u128,
    pub(super) write_calls: u128,
    pub(super) write_bytes: u128,
    pub(super) map_calls: u128,
    pub(super) mapped_bytes: u128,
    /// What it is connected to.
    pub(super) socket: Option<&'r Socket>,
    by: BTreeSet<(u32, &'r str)>,
}

impl<'r> Use<'r> {
    fn add(&mut self, file: &'r FileUse) {
        self.read_calls += u128::from(file.read_calls);
        self.read_bytes += u128::from(file.read_bytes);
        self.write_calls += u128::from(file.write_calls);
        self.write_bytes += u128::from(file.write_bytes);
        self.map_calls += u128::from(file.map_calls);
        self.mapped_bytes += u128::from(file.mapped_bytes);
        self.by.insert((file.pid, &file.exec));
        self.socket = self.socket.or(file.socket.as_ref());
    }
}

pub(super) fn print(page: &mut Page<'_>, record: &Trace, images: &[Image<'_>]) {
    if !record.view.files {
        return;
    }
    if record.files.is_empty() {
        page.blank();
        page.line(&[(Ink::Dim, "  no counted call read, wrote or mapped a file")]);
        return;
    }
    let (files, total) = by_file(record);
    let names = Names::from_record(record);
    let shown = rows(record, USUAL_ROWS).min(files.len());
    let mut table = Table::new(&COLUMNS);
    for ((path, kind), used) in &files[..shown] {
        let by = if images.len() > 1 { users(page, &names, used) } else { String::new() };
        let path = used.socket.map_or_else(|| (*path).to_owned(), Socket::text);
        // A path keeps both ends: the widest the page may show, the table takes off the rest.
        let path = page.name(&path, PATH.min(page.width()));
        table.push(Row { cells: cells(path, kind.name(), used, by), ..Row::default() });
    }
    if files.len() > 1 {
        let cells = cells("all".into(), "", &total, String::new());
        table.push(Row { cells, ink: Ink::Bold, ..Row::default() });
    }
    page.blank();
    table.print(page);
    print_hidden(page, shown, files.len(), "");
}

/// Files with their traffic.
type Files<'r> = Vec<((&'r str, FileKind), Use<'r>)>;

/// The bytes through each file, most bytes first, and through all of them.
pub(super) fn by_file(record: &Trace) -> (Files<'_>, Use<'_>) {
    let mut by_file: BTreeMap<(&str, FileKind), Use<'_>> = BTreeMap::new();
    let mut total = Use::default();
    for file in &record.files {
        by_file.entry((&file.path, file.kind)).or_default().add(file);
        total.add(file);
    }
    let mut files: Vec<_> = by_file.into_iter().collect();
    // Stable: equals stay in the order of their paths.
    files.sort_by_key(|(_, used)| std::cmp::Reverse(used.read_bytes + used.write_bytes));
    (files, total)
}

pub(super) fn users(page: &Page<'_>, names: &Names<'_>, used: &Use<'_>) -> String {
    match used.by.first() {
        Some((pid, exec)) if used.by.len() == 1 => names.label(page, exec, *pid),
        // The record does not tell how many of the images of an entry used it.
        _ if used.by.iter().any(|(pid, exec)| names.is_several(exec, *pid)) => {
            counted(used.by.len() as u128, "program", "programs")
        }
        _ => counted(used.by.len() as u128, "process", "processes"),
    }
}

fn cells(path: String, kind: &str, used: &Use<'_>, by: String) -> Vec<String> {
    let calls = |n: u128| if n > 0 { thousands(n) } else { String::new() };
    let moved = |calls: u128, n: u128| if calls > 0 || n > 0 { bytes(n) } else { String::new() };
    vec![
        path,
        kind.into(),
        calls(used.read_calls),
        moved(used.read_calls, used.read_bytes),
        calls(used.write_calls),
        moved(used.write_calls, used.write_bytes),
        moved(used.map_calls, used.mapped_bytes),
        by,
    ]
}
