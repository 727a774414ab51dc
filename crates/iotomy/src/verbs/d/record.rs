//! The record of a program's run, made of what it left.

use std::collections::BTreeMap;

use iotomy_dtrace::form::DropCause;
use iotomy_dtrace::output::{Key, Row};
use iotomy_observe::d::Finished;
use iotomy_record::{DBucket, DKey, DRow, DRun, lossless};

use crate::verbs::this_machine::machine;

/// The part of a record that was known before the run.
pub(super) struct Setting {
    pub(super) started: String,
    pub(super) script: String,
    pub(super) program: String,
    pub(super) arguments: Vec<String>,
    pub(super) command: Vec<String>,
}

impl Setting {
    /// The record of the run. How the command ended is known later.
    pub(super) fn record(self, finished: &Finished, kept: &super::console::Kept) -> DRun {
        DRun {
            schema: DRun::SCHEMA.to_owned(),
            started: self.started,
            machine: machine(),
            script: self.script,
            program: self.program,
            arguments: self.arguments,
            command: self.command,
            wall_ns: u64::try_from(finished.attached.as_nanos()).unwrap_or(u64::MAX),
            exit: None,
            status: finished.status,
            aggregations: finished.rows.iter().map(row).collect(),
            output: lossless(&kept.text),
            output_cut_bytes: kept.cut_bytes,
            drops: drops(finished),
            faults: finished.faults.iter().map(|(kind, n)| ((*kind).to_owned(), *n)).collect(),
        }
    }
}

fn row(row: &Row) -> DRow {
    let bucket = |one: &iotomy_dtrace::output::Bucket| DBucket {
        low: one.low,
        high: one.high,
        count: one.count,
    };
    DRow {
        name: row.name.clone(),
        kind: row.function.to_owned(),
        keys: row.keys.iter().map(key).collect(),
        value: row.value,
        buckets: row.buckets.iter().map(bucket).collect(),
        normal: Some(row.normal).filter(|normal| *normal != 1 && *normal != 0),
        printed: row.is_printed,
    }
}

fn key(key: &Key) -> DKey {
    match key {
        Key::Text(bytes) => DKey::Text(lossless(bytes)),
        Key::Integer(number) => match i64::try_from(*number) {
            Ok(number) => DKey::Integer(number),
            Err(_) => DKey::Unsigned(u64::try_from(*number).unwrap_or(0)),
        },
    }
}

/// What was lost, by its cause; the names are part of the record's format.
fn drops(finished: &Finished) -> BTreeMap<String, u64> {
    let cause = |cause: &DropCause| match cause {
        DropCause::Buffer => "records",
        DropCause::Aggregation => "keys of aggregations",
        DropCause::DynamicVariable => "variables",
        DropCause::ErrorInError => "errors in ERROR",
    };
    let rest = [
        ("nested firings", finished.nested),
        ("firings of timers", finished.missed),
        ("control groups", finished.lost_cgroups),
        ("block requests", finished.lost_requests),
        ("unread parts", finished.unread),
    ];
    let own = finished.drops.iter().map(|(of, count)| (cause(of), *count));
    let all = own.chain(rest).filter(|(_, count)| *count > 0);
    all.map(|(name, count)| (name.to_owned(), count)).collect()
}
