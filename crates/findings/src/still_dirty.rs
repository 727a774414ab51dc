//! Bytes that were written, but are in memory only.

use std::collections::BTreeMap;

use iotomy_record::numbers::bytes;
use iotomy_record::{FileKind, Verdict};
use serde_json::json;

use crate::facts::Fact;
use crate::finding::{Copied, FindingDeclaration, Rule, UnnamedFinding};
use crate::run::{Flow, MIB, Run};

pub(crate) static DECLARATION: FindingDeclaration = FindingDeclaration {
    id: "still-dirty",
    verdict: Verdict::Note,
    summary: "written bytes had not reached their device when the run ended",
    description: "When the watch ended, at least 1 MiB of the files written to, and half of the \
        bytes written, were dirty in the page cache or under write-back (cachestat): the time \
        does not include writing them to the device. The rule excludes files in memory (tmpfs).",
    facts: &[Fact::Files, Fact::Calls(&SYNCS), Fact::Rings(&[]), Fact::End],
    rules: &[Rule::Run(judge), Rule::Copy(judge_copy)],
};

const SYNCS: [&str; 6] = ["fsync", "fdatasync", "sync", "syncfs", "msync", "sync_file_range"];
const RING_SYNCS: [&str; 2] = ["fsync", "sync_file_range"];

fn judge(run: &Run<'_>) -> Option<UnnamedFinding> {
    let written: Vec<_> = run.flows.iter().filter(|flow| is_target(flow)).collect();
    let all: u64 = written.iter().map(|flow| flow.write_bytes).sum();
    // The run may have written only a part of the dirty pages.
    let dirty = |flow: &Flow<'_>| flow.file.dirty_bytes.unwrap_or(0).min(flow.write_bytes);
    let still: u64 = written.iter().map(|flow| dirty(flow)).sum();
    if still < MIB || still < all / 2 {
        return None;
    }
    let name = match &written.iter().filter(|flow| dirty(flow) > 0).collect::<Vec<_>>()[..] {
        [one] => one.file.path.clone(),
        many => format!("{} files", many.len()),
    };
    // One that did not end before the run is a call, too.
    let syncs = run.total(&SYNCS).begun().saturating_add(run.requested(&RING_SYNCS).begun());
    let why = if syncs == 0 { ": no call that syncs was made" } else { "" };
    let text = format!(
        "{} written to {name} were dirty or under write-back when the run ended: not yet on the \
         device{why}",
        bytes(still.into())
    );
    let evidence =
        [("dirty_bytes", json!(still)), ("written_bytes", json!(all)), ("syncs", json!(syncs))];
    let by_dd = written.iter().all(|flow| flow.file.exec == "dd");
    let advice = if by_dd {
        "dd conv=fsync"
    } else {
        "include it in the time: run `sync FILE` after the \
            command"
    };
    Some(UnnamedFinding::new(text, evidence).advise_command(advice))
}

fn is_target(flow: &Flow<'_>) -> bool {
    flow.is(FileKind::File) && flow.write_bytes > 0 && !flow.is_without_device()
}

fn judge_copy(copied: &Copied<'_>) -> Option<UnnamedFinding> {
    let record = copied.record;
    // Several sources may have gone into one target.
    let dirty: BTreeMap<&str, u64> = record
        .copies
        .iter()
        .filter_map(|part| Some((part.target.as_str(), part.dirty_bytes?)))
        .filter(|(_, bytes)| *bytes > 0)
        .collect();
    let still = dirty.values().fold(0, |sum: u64, bytes| sum.saturating_add(*bytes));
    if still < MIB || still < record.bytes / 2 {
        return None;
    }
    let name = match dirty.keys().collect::<Vec<_>>()[..] {
        [one] => (*one).to_owned(),
        ref many => format!("{} files", many.len()),
    };
    let text = format!(
        "{} of {name} were dirty or under write-back when the copy ended: not yet on the device",
        bytes(still.into())
    );
    let evidence = [("dirty_bytes", json!(still)), ("written_bytes", json!(record.bytes))];
    Some(UnnamedFinding::new(text, evidence).advise("--fsync"))
}
