//! An [`Anatomy`] as text: the calls, most time first, each with its layers and their hottest
//! functions.

mod block;
mod flame;
mod icicle;
#[cfg(test)]
mod inside_tests;
mod moments;
mod requests;
mod section;
mod stacks;
mod story;
mod timeline;
mod tree;

use iotomy_record::Anatomy;

use crate::numbers::{counted, duration, share, thousands};
use crate::page::{Ink, Page};
use crate::{Style, findings, trace};

pub(crate) use section::section;

pub use flame::{FlameError, difference, flame, folded};

/// The record as the text a terminal shows, ending in a line break. Any record renders.
pub fn anatomy(record: &Anatomy, style: &Style) -> String {
    let mut page = Page::new(style);
    trace::print_headline(&mut page, &record.trace);
    print_sampling(&mut page, record);
    tree::print(&mut page, record);
    if let Some(block) = &record.block {
        block::print(&mut page, block, record.trace.view.top);
    }
    if let Some(stories) = &record.stories {
        story::print(&mut page, stories);
    }
    findings::print(&mut page, &record.trace.findings);
    page.finish()
}

/// Time on CPUs.
fn on_cpu(record: &Anatomy) -> u128 {
    record.calls.iter().map(|call| u128::from(call.on_cpu_ns)).sum()
}

/// How it was sampled, and at what price.
fn sampling(page: &Page<'_>, record: &Anatomy) -> String {
    let sampling = &record.sampling;
    let price = sampling.price_ns_per_sample * sampling.samples as f64;
    let price = if price > 0.0 {
        let each = duration(sampling.price_ns_per_sample);
        format!(
            ": {each} each, {} of the time on a CPU",
            share(price as i128, on_cpu(record).max(1))
        )
    } else if sampling.samples > 0 {
        String::from("; what one costs could not be measured")
    } else {
        String::new()
    };
    format!(
        "{} by {} at {} Hz{price}",
        counted(sampling.samples.into(), "sample", "samples"),
        page.name(&sampling.event, 20),
        thousands(sampling.hz.into()),
    )
}

/// What the samples lack.
fn lacks(record: &Anatomy) -> Vec<String> {
    let sampling = &record.sampling;
    let lacks = [
        (sampling.lost, "sample", "samples", "found no room in a bounded table"),
        (sampling.lost_stacks, "stack", "stacks", "had no place of their own and are unknown"),
        (sampling.lost_sleeps, "sleep", "sleeps", "found no room in a bounded table"),
        (sampling.lost_names, "mapped file", "mapped files", "found no room for the name"),
    ];
    let lacks = lacks.into_iter().filter(|(n, ..)| *n > 0);
    lacks.map(|(n, one, many, what)| format!("{} {what}", counted(n.into(), one, many))).collect()
}

/// Samples that did not come tell of time in which the kernel took none.
fn missed(record: &Anatomy) -> Option<String> {
    let sampling = &record.sampling;
    let expected = on_cpu(record) as f64 * f64::from(sampling.hz) / 1e9;
    let missing = expected - sampling.samples as f64;
    let are_few = sampling.event == "cpu-clock" && missing > 0.1 * expected + 4.0 * expected.sqrt();
    are_few.then(|| {
        format!(
            "{} of {} samples came: the kernel slowed the sampling down, or a hypervisor held this \
             machine back",
            thousands(sampling.samples.into()),
            thousands(expected as u128),
        )
    })
}

fn print_sampling(page: &mut Page<'_>, record: &Anatomy) {
    let text = sampling(page, record);
    page.wrapped(&[(Ink::Plain, "  ")], Ink::Plain, &text);
    if record.block.is_some() {
        let text = "watching sleeps and the block layer comes on top: see the rows observer";
        page.wrapped(&[(Ink::Plain, "  ")], Ink::Plain, text);
    }
    for text in lacks(record) {
        page.wrapped(&[(Ink::Plain, "  "), (Ink::Red, "lost  ")], Ink::Plain, &text);
    }
    if let Some(text) = missed(record) {
        page.wrapped(&[(Ink::Plain, "  "), (Ink::Yellow, "few  ")], Ink::Plain, &text);
    }
}

#[cfg(test)]
mod tests;
