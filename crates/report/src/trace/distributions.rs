//! The choice of distributions, and their titles.
//!
//! If the run requested quantities, each of them for every call in a table and every ring operation.
//! Otherwise the return values of the calls that move bytes and matter: made 16 times or more, or 5 %
//! of the time of all calls. Of these the four with the most time.
//!
//! Computed by `count_return` in `crates/observe/src/bpf/calls.bpf.h`, `complete` in
//! `crates/observe/src/bpf/rings.bpf.h`.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};

use iotomy_record::calls::RING_PREFIX;
use iotomy_record::{Call, Histogram, Quantity, Trace};

use super::call_sum::CallSum;
use super::images::Image;
use super::{USUAL_ROWS, rows, shown_images};
use crate::page::{Ink, Page};
use crate::quantize;

/// Distributions shown unasked, at most.
const USUAL: usize = 4;

/// Calls from which on a distribution is more informative than a list.
pub(super) const OFTEN: u128 = 16;

pub(super) fn print(page: &mut Page<'_>, record: &Trace, images: &[Image<'_>]) {
    if record.view.quantize.is_empty() {
        for (image, name) in that_matter(record, images) {
            let calls = image.calls.iter().copied().filter(|call| call.syscall == name);
            print_one(page, image, name, &calls.collect::<Vec<_>>(), Quantity::Return);
        }
        return;
    }
    let mut quantities = record.view.quantize.clone();
    quantities.sort();
    quantities.dedup();
    let mut absent = quantities.clone();
    for image in shown_images(record, images) {
        let mut by_name: HashMap<&str, Vec<&Call>> = HashMap::new();
        for call in &image.calls {
            by_name.entry(&call.syscall).or_default().push(call);
        }
        let sums = CallSum::by_name(image.calls.iter().copied(), record.view.sort);
        for sum in sums.iter().take(rows(record, USUAL_ROWS)) {
            let calls = by_name.get(sum.name).map(Vec::as_slice).unwrap_or_default();
            for quantity in &quantities {
                if print_one(page, image, sum.name, calls, *quantity) {
                    absent.retain(|other| other != quantity);
                }
            }
        }
        for (op, _) in ring_operations(image).into_iter().take(rows(record, USUAL_ROWS)) {
            for quantity in &quantities {
                if print_ring_operation(page, image, op, *quantity) {
                    absent.retain(|other| other != quantity);
                }
            }
        }
    }
    for quantity in absent {
        page.blank();
        let why = match record.calls.is_empty() {
            true => "no call was counted".to_owned(),
            false => format!("the observer {} records none", page.name(&record.observer.name, 20)),
        };
        let text = format!("no distribution of {}: {why}", what(quantity));
        page.wrapped(&[(Ink::Plain, "  ")], Ink::Dim, &text);
    }
}

pub(super) fn that_matter<'a, 'r>(
    record: &'r Trace,
    images: &'a [Image<'r>],
) -> Vec<(&'a Image<'r>, &'r str)> {
    let all = CallSum::total("", &record.calls).wall();
    let mut found: Vec<(u128, &Image<'_>, &str)> = Vec::new();
    for image in shown_images(record, images) {
        for sum in CallSum::by_name(image.calls.iter().copied(), record.view.sort) {
            let matters = sum.calls() >= OFTEN || sum.wall() > 0 && sum.wall() * 20 >= all;
            if sum.bytes() > 0 && matters {
                found.push((sum.wall(), image, sum.name));
            }
        }
    }
    found.sort_by_key(|(wall, ..)| std::cmp::Reverse(*wall));
    found.into_iter().take(USUAL).map(|(_, image, name)| (image, name)).collect()
}

/// One of the calls of this name; returns whether there was anything to print.
fn print_one(
    page: &mut Page<'_>,
    image: &Image<'_>,
    name: &str,
    calls: &[&Call],
    quantity: Quantity,
) -> bool {
    let histogram = merged(calls.iter(), quantity);
    if histogram.total() == 0 {
        return false;
    }
    let name = format!("{} {}", page.name(name, 28), what(quantity));
    draw(page, image, &name, &histogram, quantity);
    true
}

/// One of a ring operation; returns whether there was anything to print.
fn print_ring_operation(
    page: &mut Page<'_>,
    image: &Image<'_>,
    op: &str,
    quantity: Quantity,
) -> bool {
    let histogram = of_ring_operation(image, op, quantity);
    if histogram.total() == 0 {
        return false;
    }
    let name = ring_title(page, op, quantity);
    draw(page, image, &name, &histogram, quantity);
    true
}

fn draw(
    page: &mut Page<'_>,
    image: &Image<'_>,
    name: &str,
    histogram: &Histogram,
    quantity: Quantity,
) {
    let of = format!(" — {}", image.label(page));
    page.blank();
    page.line(&[(Ink::Plain, "  "), (Ink::Bold, name), (Ink::Plain, &of)]);
    quantize::print(page, histogram, quantity.unit());
}

/// The operations of an image's rings with how many requests ended, most first.
pub(super) fn ring_operations<'r>(image: &Image<'r>) -> Vec<(&'r str, u128)> {
    let mut sums: BTreeMap<&str, u128> = BTreeMap::new();
    for row in &image.ring_operations {
        *sums.entry(&row.op).or_default() += u128::from(row.completed);
    }
    let mut sums: Vec<_> = sums.into_iter().collect();
    sums.sort_by_key(|(_, completed)| Reverse(*completed));
    sums
}

pub(super) fn of_ring_operation(image: &Image<'_>, op: &str, quantity: Quantity) -> Histogram {
    let mut histogram = Histogram::default();
    let rows = image.ring_operations.iter().filter(|row| row.op == op);
    rows.filter_map(|row| quantity.of_ring(row)).for_each(|one| histogram.merge(one));
    histogram
}

/// `ring:read results`.
pub(super) fn ring_title(page: &Page<'_>, op: &str, quantity: Quantity) -> String {
    let what = match quantity {
        Quantity::Return => "results",
        Quantity::Wall => "time to completion",
        Quantity::OnCpu | Quantity::Blocked => what(quantity),
    };
    format!("{RING_PREFIX}{} {what}", page.name(op, 28))
}

pub(super) fn what(quantity: Quantity) -> &'static str {
    match quantity {
        Quantity::Return => "returns",
        Quantity::Wall => "wall time",
        Quantity::OnCpu => "on-CPU time",
        Quantity::Blocked => "blocked time",
    }
}

pub(super) fn merged<'a>(
    calls: impl Iterator<Item = &'a &'a Call>,
    quantity: Quantity,
) -> Histogram {
    let mut histogram = Histogram::default();
    calls.filter_map(|call| quantity.histogram(call)).for_each(|one| histogram.merge(one));
    histogram
}
