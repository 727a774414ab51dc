//! Compares two sides of traces or anatomies, each side one run or several. Pure: records in, a
//! [`Diff`] out.
//!
//! Programs are matched by name, calls and files by name within or across programs (`names` has what
//! every run draws anew). The one rule:
//! nothing is said of noise where runs do not repeat. With one run a side, a difference is a fact of
//! these two runs; with enough of them, all measures of all tables are judged together
//! ([`iotomy_stats::permutation`]), so that one measure that does not differ is called different in
//! at most 5 of 100 comparisons.

mod compare;
mod conditions;
mod details;
mod error;
mod facts;
mod findings;
mod left_out;
mod measures;
mod names;
mod programs;
mod requests;
mod ring_operations;
mod row;
mod samples;
mod slowest;

use iotomy_record::store::Record;
use iotomy_record::{Anatomy, Diff, DiffSide, SlowCalls, Trace};

pub use error::DiffError;

use self::facts::RunFacts;
use self::names::Names;

/// A record, and where it is from.
#[derive(Debug)]
pub struct Source {
    /// The name of its file, or of a run of the history.
    pub name: String,
    /// The record.
    pub record: Record,
}

/// A run of either kind.
struct Run<'a> {
    name: &'a str,
    started: &'a str,
    trace: &'a Trace,
    anatomy: Option<&'a Anatomy>,
}

/// Compares the runs `b` with the runs `a`.
///
/// # Errors
/// When a side has no run, or the records cannot be compared.
pub fn diff(a: &[Source], b: &[Source]) -> Result<Diff, DiffError> {
    let (a, b) = (runs(a)?, runs(b)?);
    let (Some(first), Some(second)) = (a.first(), b.first()) else { return Err(DiffError::Empty) };
    let all = || a.iter().chain(&b);
    if let Some(other) = all().find(|one| one.anatomy.is_some() != first.anatomy.is_some()) {
        return Err(DiffError::Kinds {
            first: first.name.to_owned(),
            first_kind: kind(first),
            other: other.name.to_owned(),
            other_kind: kind(other),
        });
    }
    for other in all() {
        conditions::same_calls(first, other)?;
    }
    let per_second = all().any(|one| one.trace.exit.is_none());
    let renamed = programs::Renamed::between(&traces(&a), &traces(&b));
    let names = Names::between(&all().map(|run| run.trace).collect::<Vec<&Trace>>());
    let (has, left_out) = left_out::optional_tables(&traces(&a), &traces(&b));
    let facts = |runs: &[Run<'_>]| -> Vec<RunFacts> {
        let each = runs.iter().map(|run| {
            let mut facts = RunFacts::from_trace(run.trace, per_second, has, &renamed, &names);
            if let Some(anatomy) = run.anatomy {
                samples::add(&mut facts, anatomy, per_second);
            }
            facts
        });
        each.collect()
    };
    let compared = compare::compare(&facts(&a), &facts(&b), has);
    Ok(Diff {
        schema: Diff::SCHEMA,
        kind: kind(first),
        conditions: conditions::conditions(first, second),
        per_second,
        a: side(&a),
        b: side(&b),
        judged: compared.judged,
        totals: compared.totals,
        programs: compared.programs.rows,
        calls: compared.calls.rows,
        ring_operations: compared.ring_operations.rows,
        files: compared.files.rows,
        peers: compared.peers.rows,
        requests: compared.requests.rows,
        paths: compared.paths.rows,
        by: match has.groups {
            true => first.trace.by.as_ref().map(|groups| groups.by.clone()).unwrap_or_default(),
            false => Vec::new(),
        },
        groups: compared.groups.rows,
        threads: compared.threads.rows,
        layers: compared.layers.rows,
        functions: compared.functions.rows,
        findings: findings::findings(&traces(&a), &traces(&b)),
        slowest: SlowCalls { a: slowest::of(&traces(&a)), b: slowest::of(&traces(&b)) },
        left_out,
    })
}

fn traces<'a>(runs: &[Run<'a>]) -> Vec<&'a Trace> {
    runs.iter().map(|run| run.trace).collect()
}

fn kind(run: &Run<'_>) -> &'static str {
    if run.anatomy.is_some() { "anatomy" } else { "trace" }
}

fn runs(sources: &[Source]) -> Result<Vec<Run<'_>>, DiffError> {
    sources.iter().map(Run::new).collect()
}

impl<'a> Run<'a> {
    fn new(source: &'a Source) -> Result<Self, DiffError> {
        let (trace, anatomy) = match &source.record {
            Record::Trace(trace) => (trace.as_ref(), None),
            Record::Anatomy(anatomy) => (&anatomy.trace, Some(anatomy.as_ref())),
            other => {
                return Err(DiffError::Kind {
                    name: source.name.clone(),
                    schema: other.as_ref().schema(),
                });
            }
        };
        if let Some(sample) = &trace.sample {
            return Err(DiffError::Sampled { name: source.name.clone(), n: sample.n });
        }
        Ok(Self { name: &source.name, started: source.record.as_ref().started(), trace, anatomy })
    }
}

fn side(runs: &[Run<'_>]) -> DiffSide {
    DiffSide {
        sources: runs.iter().map(|run| run.name.to_owned()).collect(),
        subject: runs.first().map(|run| conditions::subject(run.trace)).unwrap_or_default(),
        started: runs.iter().map(|run| run.started.to_owned()).collect(),
        wall_ns: runs.iter().map(|run| run.trace.wall_ns).collect(),
        lost: runs.iter().map(|run| lost(run.trace)).fold(0, u64::saturating_add),
        times_inflated: runs.iter().any(|run| run.trace.observer.times_inflated),
    }
}

/// What bounded tables had no room for: where a row is missing, it may be among these.
fn lost(trace: &Trace) -> u64 {
    let observer = &trace.observer;
    let groups = trace.by.as_ref().map_or(0, |groups| groups.lost_calls);
    let details = [observer.lost_files, observer.lost_paths, observer.lost_connections];
    details
        .into_iter()
        .chain([observer.lost_exchanges, observer.lost_requests, groups])
        .fold(observer.lost_events, u64::saturating_add)
}

#[cfg(test)]
mod details_tests;
#[cfg(test)]
mod request_tests;
#[cfg(test)]
mod ring_tests;
#[cfg(test)]
mod tests;
