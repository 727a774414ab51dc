//! A sync behind every write.

use iotomy_record::numbers::{duration, share, thousands};
use iotomy_record::{FileKind, Verdict};
use serde_json::json;

use crate::finding::{Declaration, Rule, UnnamedFinding};
use crate::run::{Run, is_made_up};

pub(crate) static DECLARATION: Declaration = Declaration {
    id: "sync-per-write",
    verdict: Verdict::Advice,
    summary: "at least every second write has a sync of its own",
    description: "At least 32 successful calls of fsync and fdatasync, at least one for every two \
        writes to files, and at least 1 % of the run's time blocked in them (where known). Each \
        waits for the device; several writes can share one. The rule excludes runs with ring \
        operations (io_uring), whose writes are not calls.",
    rules: &[Rule::Run(judge)],
};

const SYNCS: [&str; 2] = ["fsync", "fdatasync"];
const WRITES: [&str; 8] =
    ["write", "pwrite64", "writev", "pwritev", "pwritev2", "sendfile", "splice", "copy_file_range"];
const MANY: u64 = 32;

fn judge(run: &Run<'_>) -> Option<UnnamedFinding> {
    let (syncs, writes) = (run.total(&SYNCS), writes(run));
    let good = syncs.calls - syncs.errors.min(syncs.calls);
    if good < MANY || good < writes.div_ceil(2) || run.has_ring() {
        return None;
    }
    let thread_ns = run.thread_ns();
    // On a file system in memory there is nothing to wait for.
    if thread_ns > 0 && syncs.blocked_ns < run.trace.wall_ns / 100 {
        return None;
    }
    let asleep = match thread_ns {
        0 => String::new(),
        all => format!(
            "; the threads were blocked in them for {}, {} of their time",
            duration(syncs.blocked_ns as f64),
            share(syncs.blocked_ns.into(), all.into())
        ),
    };
    let text = format!(
        "{} calls of fsync and fdatasync for {} writes to files{asleep}",
        thousands(good.into()),
        thousands(writes.into())
    );
    let evidence = [
        ("syncs", json!(good)),
        ("writes", json!(writes)),
        ("blocked_ns", json!(syncs.blocked_ns)),
    ];
    Some(UnnamedFinding::new(text, evidence).advise("sync once after several writes"))
}

/// Calls that wrote to files; where files were not watched, to anything.
fn writes(run: &Run<'_>) -> u64 {
    if run.trace.files.is_empty() {
        return run.total(&WRITES).calls;
    }
    let files = run.flows.iter().filter(|flow| flow.is(FileKind::File) && !is_made_up(flow.file));
    files.map(|flow| flow.write_calls).fold(0, u64::saturating_add)
}
