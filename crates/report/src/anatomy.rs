//! An [`Anatomy`] as text: the calls, most time first, each with its layers and their hottest
//! functions.

mod block;
mod flame;
#[cfg(test)]
mod inside_tests;
mod story;
mod tree;

use iotomy_record::Anatomy;

use crate::numbers::{counted, duration, share, thousands};
use crate::page::{Ink, Page};
use crate::section::{self, Section};
use crate::sheet::{name, wide_style};
use crate::{Style, findings, trace};

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

/// The parts of a record for a page: no pictures yet, its text.
pub(crate) fn section(record: &Anatomy) -> Section {
    let style = wide_style();
    let page = Page::new(&style);
    let trace = &record.trace;
    let text = anatomy(record, &style);
    let mut section = section::plain("anatomy", trace::title(&page, trace), text, &trace.machine);
    let facts =
        [("command", trace::command(&page, trace)), ("started", name(&page, &record.started))];
    section.facts.splice(0..0, facts);
    section
}

/// How it was sampled, at what price, and what the samples lack.
fn print_sampling(page: &mut Page<'_>, record: &Anatomy) {
    let sampling = &record.sampling;
    let on_cpu: u128 = record.calls.iter().map(|call| u128::from(call.on_cpu_ns)).sum();
    let price = sampling.price_ns_per_sample * sampling.samples as f64;
    let price = if price > 0.0 {
        let each = duration(sampling.price_ns_per_sample);
        format!(": {each} each, {} of the time on a CPU", share(price as i128, on_cpu.max(1)))
    } else if sampling.samples > 0 {
        String::from("; what one costs could not be measured")
    } else {
        String::new()
    };
    let text = format!(
        "{} by {} at {} Hz{price}",
        counted(sampling.samples.into(), "sample", "samples"),
        page.name(&sampling.event, 20),
        thousands(sampling.hz.into()),
    );
    page.wrapped(&[(Ink::Plain, "  ")], Ink::Plain, &text);
    if record.block.is_some() {
        let text = "watching sleeps and the block layer comes on top: see the rows observer";
        page.wrapped(&[(Ink::Plain, "  ")], Ink::Plain, text);
    }
    let lacks = [
        (sampling.lost, "sample", "samples", "found no room in a bounded table"),
        (sampling.lost_stacks, "stack", "stacks", "had no place of their own and are unknown"),
        (sampling.lost_sleeps, "sleep", "sleeps", "found no room in a bounded table"),
        (sampling.lost_names, "mapped file", "mapped files", "found no room for the name"),
    ];
    for (n, one, many, what) in lacks {
        if n > 0 {
            let text = format!("{} {what}", counted(n.into(), one, many));
            page.wrapped(&[(Ink::Plain, "  "), (Ink::Red, "lost  ")], Ink::Plain, &text);
        }
    }
    print_missed(page, record, on_cpu);
}

/// Samples that did not come tell of time in which the kernel took none.
fn print_missed(page: &mut Page<'_>, record: &Anatomy, on_cpu: u128) {
    let sampling = &record.sampling;
    let expected = on_cpu as f64 * f64::from(sampling.hz) / 1e9;
    let missing = expected - sampling.samples as f64;
    if sampling.event == "cpu-clock" && missing > 0.1 * expected + 4.0 * expected.sqrt() {
        let text = format!(
            "{} of {} samples came: the kernel slowed the sampling down, or a hypervisor held this \
             machine back",
            thousands(sampling.samples.into()),
            thousands(expected as u128),
        );
        page.wrapped(&[(Ink::Plain, "  "), (Ink::Yellow, "few  ")], Ink::Plain, &text);
    }
}

#[cfg(test)]
mod tests;
