//! A sync behind every write.

use iotomy_record::numbers::{duration, share, thousands};
use iotomy_record::{FileKind, Verdict};
use serde_json::json;

use crate::finding::{Declaration, Rule, UnnamedFinding};
use crate::run::{RING_WRITES, Run, Total, is_made_up};

pub(crate) static DECLARATION: Declaration = Declaration {
    id: "sync-per-write",
    verdict: Verdict::Advice,
    summary: "at least every second write has a sync of its own",
    description: "At least 32 successful calls of fsync and fdatasync, or requests of io_uring for \
        them, at least one for every two writes to files, and at least 1 % of the run's time \
        blocked in them (where known; of requests, the time until they completed). Each waits for \
        the device; several writes can share one. The rule excludes runs with rings that were \
        not watched.",
    rules: &[Rule::Run(judge)],
};

const SYNCS: [&str; 2] = ["fsync", "fdatasync"];
const WRITES: [&str; 8] =
    ["write", "pwrite64", "writev", "pwritev", "pwritev2", "sendfile", "splice", "copy_file_range"];
const MANY: u64 = 32;

fn judge(run: &Run<'_>) -> Option<UnnamedFinding> {
    let (syncs, requests, writes) = (run.total(&SYNCS), run.requested(&["fsync"]), writes(run));
    let succeeded = |all: Total| all.calls - all.errors.min(all.calls);
    let good = succeeded(syncs).saturating_add(succeeded(requests));
    if good < MANY || good < writes.div_ceil(2) || run.has_unseen_ring() {
        return None;
    }
    let waited_ns = syncs.blocked_ns.saturating_add(requests.blocked_ns);
    let thread_ns = run.thread_ns();
    // On a file system in memory there is nothing to wait for.
    if thread_ns > 0 && waited_ns < run.trace.wall_ns / 100 {
        return None;
    }
    let asleep = match thread_ns {
        0 => String::new(),
        _ if requests.calls > 0 => format!(
            "; the threads were blocked in the calls for {}, and the requests took {} in all",
            duration(syncs.blocked_ns as f64),
            duration(requests.blocked_ns as f64),
        ),
        all => format!(
            "; the threads were blocked in them for {}, {} of their time",
            duration(syncs.blocked_ns as f64),
            share(syncs.blocked_ns.into(), all.into())
        ),
    };
    let what = if requests.calls > 0 { "calls and io_uring requests" } else { "calls" };
    let text = format!(
        "{} {what} of fsync and fdatasync for {} writes to files{asleep}",
        thousands(good.into()),
        thousands(writes.into())
    );
    let evidence =
        [("syncs", json!(good)), ("writes", json!(writes)), ("blocked_ns", json!(waited_ns))];
    Some(UnnamedFinding::new(text, evidence).advise("sync once after several writes"))
}

/// Calls that wrote to files; where files were not watched, to anything.
fn writes(run: &Run<'_>) -> u64 {
    if run.trace.files.is_empty() {
        let by_ring = run.requested(&RING_WRITES).calls;
        return run.total(&WRITES).calls.saturating_add(by_ring);
    }
    let files = run.flows.iter().filter(|flow| flow.is(FileKind::File) && !is_made_up(flow.file));
    files.map(|flow| flow.write_calls).fold(0, u64::saturating_add)
}
