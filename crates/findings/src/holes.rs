//! Bytes that were never stored.

use iotomy_record::numbers::bytes;
use iotomy_record::{FileKind, Verdict};
use serde_json::json;

use crate::facts::Fact;
use crate::finding::{FindingDeclaration, Rule, UnnamedFinding};
use crate::run::{Flow, MIB, Run, is_library};

pub(crate) static DECLARATION: FindingDeclaration = FindingDeclaration {
    id: "holes",
    verdict: Verdict::Note,
    summary: "a source has holes: ranges without storage",
    description: "At least 1 MiB was read or mapped of a file on ext4, XFS, Btrfs or tmpfs that \
        is not a shared library, and less than nine tenths of its size is allocated. Holes read \
        as zeros without access to a device. Other file systems compress, or count no blocks \
        (procfs, sysfs).",
    facts: &[Fact::Files],
    rules: &[Rule::Run(judge)],
};

/// File systems where unallocated ranges are holes. Others compress, or have no blocks to count.
const COUNTED: [&str; 6] = ["ext2", "ext3", "ext4", "xfs", "btrfs", "tmpfs"];

fn judge(run: &Run<'_>) -> Option<UnnamedFinding> {
    let (flow, size, stored) = holey(run)?;
    let text = format!(
        "{} has holes: {} of its {} are allocated, and holes read as zeros without access to a \
         device",
        flow.file.path,
        bytes(stored.into()),
        bytes(size.into())
    );
    let evidence = [
        ("file", json!(flow.file.path)),
        ("size_bytes", json!(size)),
        ("allocated_bytes", json!(stored)),
    ];
    Some(UnnamedFinding::new(text, evidence))
}

/// The same as the cause of something.
pub(crate) fn cause(run: &Run<'_>) -> Option<String> {
    let (flow, size, stored) = holey(run)?;
    Some(format!(
        "{} is mostly holes: {} of {} are allocated",
        flow.file.path,
        bytes(stored.into()),
        bytes(size.into())
    ))
    .filter(|_| stored < size / 2)
}

/// The largest source with holes, its size and its stored bytes.
fn holey<'r, 'a>(run: &'r Run<'a>) -> Option<(&'r Flow<'a>, u64, u64)> {
    let sources = run.flows.iter().filter(|flow| {
        flow.is(FileKind::File)
            && flow.read_bytes.max(flow.mapped_bytes) >= MIB
            && flow.write_bytes == 0
            && !is_library(&flow.file.path)
    });
    sources
        .filter(|flow| flow.file.file_system.as_deref().is_some_and(|on| COUNTED.contains(&on)))
        .filter_map(|flow| Some((flow, flow.file.size_bytes?, flow.file.allocated_bytes?)))
        .filter(|(_, size, stored)| *size >= MIB && *stored < size - size / 10)
        .max_by_key(|(flow, ..)| flow.read_bytes.max(flow.mapped_bytes))
}
