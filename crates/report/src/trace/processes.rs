//! One row a program image, when there is more than one.
//!
//! Computed by `outcome` in `crates/observe/src/bpf/outcome.rs`.

use iotomy_record::Trace;

use super::images::{self, Image, residual};
use super::shown_images;
use crate::columns::{Columns, Extent};
use crate::numbers::{decimals_for, fixed};
use crate::page::Page;
use crate::sheet::{Cell, Field, Sheet};

pub(super) fn print(page: &mut Page<'_>, record: &Trace, images: &[Image<'_>]) {
    if images.len() < 2 {
        return;
    }
    let extent = Extent { rows: shown_images(record, images).len(), name: 24 };
    page.blank();
    sheet(page, record, images, extent).print(page, "");
}

pub(super) fn sheet(
    page: &Page<'_>,
    record: &Trace,
    images: &[Image<'_>],
    extent: Extent,
) -> Sheet {
    let total = Image {
        // Less than the rows add up to: a thread that executes a program is in both images.
        threads: record.thread_count(),
        calls: record.calls.iter().collect(),
        ledger: images::ledger(images),
        ..Image::default()
    };
    let whole = total.ledger.as_ref().map_or(0, |row| row.thread_ns);
    let decimals = decimals_for(whole as f64 / 1e6);
    // In one column with its name: the table has to fit on paper.
    let name = |image: &Image<'_>| {
        let binary = image.binary(page).filter(|_| extent.is_page());
        image.label(page) + &binary.map(|binary| format!(" [{binary}]")).unwrap_or_default()
    };
    let arguments = |image: &Image<'_>| match image.process {
        Some(process) => images::arguments(page, process, 200),
        None => String::new(),
    };
    Columns::new()
        .text(Field::text("process", "process").worth(9), name)
        .text(Field::text("command", "arguments"), arguments)
        .number(Field::number("threads", "threads", "").worth(2), |image| {
            Cell::count(image.threads).if_any()
        })
        .declared(decimals, |image: &Image<'_>| image.ledger.as_ref())
        .number(Field::number("residual_ns", "residual", "ms").worth(3), |image| {
            Cell::from_option(image.ledger.as_ref().map(residual), |ns| {
                Cell::whole(ns, fixed(ns as f64 / 1e6, decimals))
            })
        })
        .number(Field::number("calls", "calls", "").worth(8), |image| {
            Cell::count(image.sum().calls())
        })
        .number(Field::number("bytes", "bytes", "").worth(5), |image| {
            Cell::size(image.sum().bytes()).if_any()
        })
        .number(Field::number("max_rss_bytes", "resident", ""), |image| {
            Cell::from_option(image.process, |process| Cell::size(process.max_rss_bytes))
        })
        .sheet("processes", "Processes", images, Some(&total), extent)
}
