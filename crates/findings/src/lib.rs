//! Judges the numbers of a record: whether they can be true, what explains them, and what to try.
//!
//! A finding is a file and a line in [`FINDINGS`]: its declaration, from which help, the catalogue
//! and the tests are made, and the rule that examines a record. This crate knows no screen and runs
//! nothing: the same record with the same limits always gets the same findings.
//!
//! The one invariant: a finding says only what its evidence shows. A fact that the record lacks
//! (unwatched files, calls that a filter left out, a limit that was not measured) leads to no finding, and
//! never to a guess.

mod blocked_on;
mod by_reference;
mod connection_per_request;
mod cpu_saturation;
mod ctl_per_event;
mod different_output;
mod disturbed;
mod errors_as_work;
mod facts;
mod failures;
mod few_files_opened;
mod few_ready;
mod filtered;
mod finding;
mod herd;
mod holes;
mod impossible_rate;
mod known_limits;
mod left_behind;
mod mapped_untouched;
mod noise;
mod null_sink;
mod open_not_read;
mod opened_again;
mod page_cache;
mod pipeline_limit;
mod registry;
mod relay;
mod ring_files;
mod ring_links;
mod ring_overflow;
mod ring_polling;
mod ring_unbatched;
mod ring_workers;
mod run;
mod shell;
mod small_appends;
mod small_requests;
mod split_message;
mod stat_storm;
mod still_dirty;
mod sync_per_write;
mod too_short;
mod traced_otherwise;
mod untraced;

use std::cell::RefCell;
use std::collections::BTreeSet;

use iotomy_record::{Anatomy, CopyRun, Finding, Limits, Race, Trace};

pub use facts::Fact;
pub use finding::FindingDeclaration;
pub use registry::FINDINGS;

use finding::{Copied, Rule};
use known_limits::KnownLimits;
use run::Run;

/// The result of judging.
#[derive(Debug, Default, PartialEq)]
pub struct Judgement {
    /// In the order of [`FINDINGS`], those of each command together.
    pub findings: Vec<Finding>,
    /// The required limits that were missing: with them, there might be more findings.
    pub missing: BTreeSet<&'static str>,
}

/// Judges one watched run.
pub fn trace(record: &Trace, limits: Option<&Limits>) -> Judgement {
    let known = KnownLimits { limits, missing: RefCell::default() };
    let run = Run::new(None, record, record.wall_ns as f64, &known);
    let findings = FINDINGS.iter().filter_map(|declared| declared.of_run(&run)).collect();
    Judgement { findings, missing: known.missing.into_inner() }
}

/// Judges a run that was dissected: as a trace, and by its layers.
pub fn anatomy(record: &Anatomy, limits: Option<&Limits>) -> Judgement {
    let mut judgement = trace(&record.trace, limits);
    judgement.findings.extend(FINDINGS.iter().filter_map(|declared| declared.of_anatomy(record)));
    judgement
}

/// Judges a race: each command by its traced run and its untraced time, then the whole.
pub fn race(record: &Race, limits: Option<&Limits>) -> Judgement {
    let known = KnownLimits { limits, missing: RefCell::default() };
    let mut findings = Vec::new();
    for command in &record.commands {
        let Some(trace) = &command.trace else { continue };
        let run = Run::new(Some(&command.label), trace, command.wall.median_ns, &known);
        findings.extend(FINDINGS.iter().filter_map(|declared| declared.of_run(&run)));
    }
    findings.extend(FINDINGS.iter().flat_map(|declared| declared.of_race(record, &known)));
    Judgement { findings, missing: known.missing.into_inner() }
}

/// Judges a copy.
pub fn copy(record: &CopyRun, limits: Option<&Limits>) -> Judgement {
    let known = KnownLimits { limits, missing: RefCell::default() };
    let copied = Copied { record, limits: &known };
    let mut findings = Vec::new();
    for declared in FINDINGS {
        for rule in declared.rules {
            if let Rule::Copy(rule) = rule {
                findings.extend(rule(&copied).map(|found| declared.finding(found)));
            }
        }
    }
    Judgement { findings, missing: known.missing.into_inner() }
}

#[cfg(test)]
mod tests;
