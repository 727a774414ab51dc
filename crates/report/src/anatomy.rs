//! An [`Anatomy`] as text: the calls, most time first, each with its layers and their hottest
//! functions.

mod block;
mod brief;
mod callers;
mod difference;
mod doubts;
mod folded;
mod functions;
mod icicle;
#[cfg(test)]
mod inside_tests;
mod moments;
mod named;
mod requests;
mod section;
mod stacks;
mod timeline;
mod timeline_charts;
mod tree;

use iotomy_record::{Anatomy, DissectedCall};

use crate::numbers::{counted, duration, share, thousands};
use crate::page::{Ink, Page};
use crate::{Style, findings, trace};

pub(crate) use doubts::{SampleWarning, doubts};
pub(crate) use section::section;

pub use brief::anatomy_brief;
pub use difference::difference;
pub use folded::folded;
pub use stacks::flame;

/// The record as the text a terminal shows, ending in a line break. Any record renders.
pub fn anatomy(record: &Anatomy, style: &Style) -> String {
    let mut page = Page::new(style);
    trace::print_headline(&mut page, &record.trace);
    print_sampling(&mut page, record);
    tree::print(&mut page, record);
    if let Some(block) = named::block(record) {
        block::print(&mut page, &block, record.trace.view.top);
    }
    if let Some(timelines) = named::timelines(record) {
        timeline::print(&mut page, &timelines);
    }
    findings::print(&mut page, &record.trace.findings);
    page.finish()
}

/// Time on CPUs.
fn on_cpu(calls: &[DissectedCall]) -> u128 {
    calls.iter().map(|call| u128::from(call.on_cpu_ns)).sum()
}

/// The settings of sampling, and its overhead.
fn sampling(page: &Page<'_>, record: &Anatomy) -> String {
    let sampling = &record.sampling;
    let price = sampling.price_ns_per_sample * sampling.samples as f64;
    let price = if price > 0.0 {
        let each = duration(sampling.price_ns_per_sample);
        format!(
            ": overhead {each} each, {} of the on-CPU time",
            share(price as i128, on_cpu(&record.calls).max(1))
        )
    } else if sampling.samples > 0 {
        String::from("; overhead of a sample unknown")
    } else {
        String::new()
    };
    let left_out = match sampling.left_out {
        0 => String::new(),
        n => format!("; {} more in calls left out", thousands(n.into())),
    };
    format!(
        "{} by {} at {} Hz{price}{left_out}",
        counted(sampling.samples.into(), "sample", "samples"),
        page.name(&sampling.event, 20),
        thousands(sampling.hz.into()),
    )
}

fn print_sampling(page: &mut Page<'_>, record: &Anatomy) {
    let text = sampling(page, record);
    page.wrapped(&[(Ink::Plain, "  ")], Ink::Plain, &text);
    if record.block.is_some() {
        let text = "sleeps, and reads and writes of files, have more overhead: see the rows \
            `observer`";
        page.wrapped(&[(Ink::Plain, "  ")], Ink::Plain, text);
    }
    for doubt in doubts(&record.sampling, &record.calls) {
        let word = format!("{}  ", doubt.word);
        page.wrapped(&[(Ink::Plain, "  "), (doubt.ink, &word)], Ink::Plain, &doubt.text);
    }
}

#[cfg(test)]
mod tests;
