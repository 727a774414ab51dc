//! Whether what was read came from memory or from a device.

use iotomy_record::numbers::bytes;
use iotomy_record::{FileKind, Verdict};
use serde_json::json;

use crate::run::{Flow, MIB, Run};
use crate::{Declaration, Found, Rule};

pub(crate) static DECLARATION: Declaration = Declaration {
    id: "page-cache",
    verdict: Verdict::Note,
    summary: "the source was in the page cache, or was not",
    description: "1 MiB or more was read of files on a device, of which all was in the page cache when \
                  the run first met them (then no device was read), or at most half, and more was read than that. \
                  Not said of files read past the cache (O_DIRECT).",
    rules: &[Rule::Run(judge)],
};

fn judge(run: &Run<'_>) -> Option<Found> {
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
    let text = if cached == size {
        format!("{name} came from the page cache: no device was read")
    } else if cached <= size / 2 && read > cached {
        let (of, all) = (bytes(cached.into()), bytes(size.into()));
        format!(
            "{of} of {all} of {name} were in the page cache: what else was read came from the device"
        )
    } else {
        return None;
    };
    Some(Found::new(text, [("size_bytes", json!(size)), ("cached_bytes", json!(cached))]))
}

/// Of a file, what a device has.
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
