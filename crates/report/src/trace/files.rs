//! The files that bytes went through, summed over the images that used them.
//!
//! Computed by `count_transfer` in `crates/observe/src/bpf/files.bpf.h`.

use std::collections::{BTreeMap, BTreeSet};

use iotomy_record::{FileKind, FileUse, Trace, statistic};

use super::extent;
use super::images::{Image, Names};
use crate::columns::{self, Columns, Extent};
use crate::numbers::counted;
use crate::page::{Ink, Page};
use crate::sheet::{Field, Sheet};

/// Columns a path may take on the widest line.
const PATH: usize = 60;

/// A file, and the images that used it.
#[derive(Default)]
pub(super) struct Use<'r> {
    pub(super) sum: FileUse,
    by: BTreeSet<(u32, &'r str)>,
}

impl<'r> Use<'r> {
    fn add(&mut self, file: &'r FileUse) {
        statistic::add(&mut self.sum, file);
        self.by.insert((file.pid, &file.exec));
        if self.sum.socket.is_none() {
            self.sum.socket.clone_from(&file.socket);
        }
    }
}

pub(super) fn print(page: &mut Page<'_>, record: &Trace, images: &[Image<'_>]) {
    if !record.view.files {
        return;
    }
    page.blank();
    if record.files.is_empty() {
        page.line(&[(Ink::Dim, "  no counted call read, wrote or mapped a file")]);
        return;
    }
    // A path keeps both ends: the widest the page may show, the table takes off the rest.
    let extent = extent(record, PATH.min(page.width()));
    sheet(page, record, images, extent).print(page, "");
}

pub(super) fn sheet(
    page: &Page<'_>,
    record: &Trace,
    images: &[Image<'_>],
    extent: Extent,
) -> Sheet {
    let (files, total) = by_file(record);
    let names = Names::from_record(record);
    let path = |Use { sum, .. }: &Use<'_>| match &sum.socket {
        Some(socket) => page.name(&socket.text(), extent.name),
        None => page.name(&sum.path, extent.name),
    };
    Columns::new()
        .text(Field::text("file", "file").worth(9), path)
        .text(Field::text("kind", "kind").worth(4), |used| used.sum.kind.name().to_owned())
        .declared(0, |used| Some(&used.sum))
        .text(Field::text("by", "by").worth(1), |used| match images.len() > 1 {
            true => users(page, &names, used),
            false => String::new(),
        })
        .sheet("files", "Files", &files, Some(&total), extent)
}

/// The bytes through each file, most bytes first unless another order was requested, and through all of them.
pub(super) fn by_file(record: &Trace) -> (Vec<Use<'_>>, Use<'_>) {
    let mut by_file: BTreeMap<(&str, FileKind), Use<'_>> = BTreeMap::new();
    for file in &record.files {
        by_file.entry((&file.path, file.kind)).or_default().add(file);
    }
    let named = by_file.into_iter().map(|((path, kind), mut used)| {
        (used.sum.path, used.sum.kind) = (path.to_owned(), kind);
        used
    });
    let mut files: Vec<Use<'_>> = named.collect();
    let bytes = |file: &FileUse| file.read_bytes.saturating_add(file.write_bytes);
    columns::sort(&mut files, record.view.sort, |used| &used.sum, bytes);
    (files, Use { sum: statistic::total(&record.files), by: BTreeSet::new() })
}

fn users(page: &Page<'_>, names: &Names<'_>, used: &Use<'_>) -> String {
    match used.by.first() {
        Some((pid, exec)) if used.by.len() == 1 => names.label(page, exec, *pid),
        // The record does not tell how many of the images of an entry used it.
        _ if used.by.iter().any(|(pid, exec)| names.is_several(exec, *pid)) => {
            counted(used.by.len() as u128, "program", "programs")
        }
        _ => counted(used.by.len() as u128, "process", "processes"),
    }
}
