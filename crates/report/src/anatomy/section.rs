//! An anatomy as the parts of a report: its trace's, with the layers below the calls in front.

use iotomy_record::store::Record;
use iotomy_record::{Anatomy, Limits};

use super::{
    difference, doubts, functions, icicle, named, requests, sampling, stacks, timeline_charts,
};
use crate::chart::Chart;
use crate::numbers::{duration, thousands};
use crate::page::Page;
use crate::section::{Answer, Block, Section, Tile};
use crate::sheet::{tone, wide_style};
use crate::trace;

/// The part that the icicle shows better.
const NOT_OF_THE_TRACE: &str = "ledger";

/// The parts of a record. `all` are the records of the page: the others are compared with the first
/// anatomy among them.
pub(crate) fn section(record: &Anatomy, limits: Option<&Limits>, all: &[&Record]) -> Section {
    let style = wide_style();
    let page = Page::new(&style);
    let mut section = trace::section(&record.trace, limits);
    section.kind = "anatomy";
    let doubts = doubts(&record.sampling, &record.calls).into_iter();
    section.answers.extend(doubts.map(|one| Answer::new(tone(one.ink), one.says, one.text)));
    section.tiles.push(Tile {
        label: "samples",
        value: thousands(record.sampling.samples.into()),
        note: format!("{} each", duration(record.sampling.price_ns_per_sample)),
    });
    section.facts.push(("sampling", sampling(&page, record)));
    let is_of_trace =
        |block: &Block| !matches!(block, Block::Chart(Chart { id, .. }) if id == NOT_OF_THE_TRACE);
    section.blocks.retain(is_of_trace);
    section.blocks.splice(0..0, blocks(&page, record, first(record, all)));
    section
}

/// The first anatomy among the records, unless this is it.
fn first<'r>(record: &Anatomy, all: &[&'r Record]) -> Option<&'r Anatomy> {
    let first = all.iter().find_map(|one| match one {
        Record::Anatomy(anatomy) => Some(anatomy.as_ref()),
        _ => None,
    });
    first.filter(|first| !std::ptr::eq(*first, record))
}

fn blocks(page: &Page<'_>, record: &Anatomy, before: Option<&Anatomy>) -> Vec<Block> {
    let mut blocks: Vec<Block> =
        icicle::chart(page, record).map(Block::Chart).into_iter().collect();
    blocks.push(Block::Sheet(icicle::sheet(page, record)));
    if let Some(before) = before
        && let Some(chart) = difference::difference_chart(page, before, record)
    {
        blocks.push(Block::Chart(chart));
        blocks.push(Block::Sheet(difference::differences(before, record, page)));
    }
    if let Some(chart) = stacks::flame_chart(page, record) {
        blocks.push(Block::Chart(chart));
        blocks.push(Block::Sheet(functions::functions(page, record)));
    }
    let (block, timelines) = (named::block(record), named::timelines(record));
    blocks.extend(block.iter().flat_map(|io| requests::blocks(page, io)));
    blocks.extend(timelines.iter().flat_map(|timelines| timeline_charts::blocks(page, timelines)));
    blocks
}
