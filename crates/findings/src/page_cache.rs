//! Whether the bytes came from memory or from a device.

use iotomy_record::numbers::bytes;
use iotomy_record::{FileKind, Verdict};
use serde_json::json;

use crate::facts::Fact;
use crate::finding::{FindingDeclaration, Rule, UnnamedFinding};
use crate::run::{Flow, MIB, Run};

pub(crate) static DECLARATION: FindingDeclaration = FindingDeclaration {
    id: "page-cache",
    verdict: Verdict::Note,
    summary: "how much of the source was in the page cache at its first read",
    description: "At least 1 MiB was read of files that were fully in the page cache when \
        the run first opened or mapped them, or at most half of them was, and more was read \
        than that. Where the kernel counts it, and threads of io_uring fetched none, the \
        finding has the bytes that the run's threads fetched from storage, including \
        read-ahead and the programs' own pages. The rule excludes files read past the cache \
        (O_DIRECT).",
    facts: &[Fact::Files, Fact::Rings(&[]), Fact::Beginning],
    rules: &[Rule::Run(judge)],
};

fn judge(run: &Run<'_>) -> Option<UnnamedFinding> {
    let sources: Vec<&Flow<'_>> = run.flows.iter().filter(|flow| is_source(flow)).collect();
    let sum = |of: fn(&Flow<'_>) -> u64| sources.iter().map(|flow| of(flow)).sum::<u64>();
    let read = sum(|flow| flow.read_bytes);
    let size = sum(stored);
    // The last page of a file is cached as a whole.
    let cached = sum(|flow| flow.file.cached_bytes.unwrap_or(0).min(stored(flow)));
    if size < MIB {
        return None;
    }
    let name = match &sources[..] {
        [one] => one.file.path.clone(),
        many => format!("{} files", many.len()),
    };
    let (of, all) = (bytes(cached.into()), bytes(size.into()));
    let text = if cached == size {
        format!("all of {name} ({all}) was in the page cache at its first read")
    } else if cached <= size / 2 && read > cached {
        format!("{of} of {all} of {name} were in the page cache at its first read")
    } else {
        return None;
    };
    // What threads of io_uring fetch is not in the figure.
    let has_others = run.trace.ring_operations.iter().any(|row| row.worker > 0 || row.sqpoll > 0);
    let fetched = run.storage_read_bytes().filter(|_| !has_others);
    let text = match fetched {
        Some(0) => format!("{text}; the run fetched nothing from storage"),
        Some(fetched) => {
            let fetched = bytes(fetched.into());
            format!(
                "{text}; {} were read, and the run fetched {fetched} from storage",
                bytes(read.into())
            )
        }
        None => text,
    };
    let evidence = [
        ("size_bytes", json!(size)),
        ("cached_bytes", json!(cached)),
        ("read_bytes", json!(read)),
        ("storage_read_bytes", json!(fetched)),
    ];
    Some(UnnamedFinding::new(text, evidence))
}

/// The stored bytes of a file.
fn stored(flow: &Flow<'_>) -> u64 {
    let size = flow.file.size_bytes.unwrap_or(0);
    size.min(flow.file.allocated_bytes.unwrap_or(size))
}

fn is_source(flow: &Flow<'_>) -> bool {
    flow.is(FileKind::File)
        && flow.read_bytes >= MIB
        && flow.write_bytes == 0
        && flow.file.cached_bytes.is_some()
        && !flow.is_without_device()
}
