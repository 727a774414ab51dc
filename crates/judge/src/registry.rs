//! The list of all findings.

use crate::finding::Declaration;
use crate::{
    blocked_on, by_reference, cpu_saturation, ctl_per_event, different_output, disturbed,
    errors_as_work, failures, few_ready, filtered, herd, holes, impossible_rate, left_behind,
    mapped_untouched, noise, null_sink, open_not_read, page_cache, pipeline_limit, relay,
    ring_files, ring_links, ring_overflow, ring_polling, ring_unbatched, ring_workers, shell,
    small_requests, stat_storm, still_dirty, sync_per_write, too_short, traced_otherwise, untraced,
};

/// Every finding, the gravest first.
pub static FINDINGS: &[&Declaration] = &[
    &impossible_rate::DECLARATION,
    &mapped_untouched::DECLARATION,
    &errors_as_work::DECLARATION,
    &ring_links::DECLARATION,
    &failures::DECLARATION,
    &left_behind::DECLARATION,
    &traced_otherwise::DECLARATION,
    &different_output::DECLARATION,
    &too_short::DECLARATION,
    &noise::DECLARATION,
    &small_requests::DECLARATION,
    &relay::DECLARATION,
    &sync_per_write::DECLARATION,
    &ring_workers::DECLARATION,
    &ring_unbatched::DECLARATION,
    &ring_polling::DECLARATION,
    &ring_files::DECLARATION,
    &ring_overflow::DECLARATION,
    &few_ready::DECLARATION,
    &ctl_per_event::DECLARATION,
    &herd::DECLARATION,
    &null_sink::DECLARATION,
    &holes::DECLARATION,
    &by_reference::DECLARATION,
    &page_cache::DECLARATION,
    &still_dirty::DECLARATION,
    &blocked_on::DECLARATION,
    &pipeline_limit::DECLARATION,
    &cpu_saturation::DECLARATION,
    &stat_storm::DECLARATION,
    &open_not_read::DECLARATION,
    &untraced::DECLARATION,
    &shell::DECLARATION,
    &disturbed::DECLARATION,
    &filtered::DECLARATION,
];
