//! A sync behind every write.

use iotomy_record::Verdict;
use iotomy_record::numbers::{duration, share, thousands};
use serde_json::json;

use crate::run::Run;
use crate::{Declaration, Found, Rule};

pub(crate) static DECLARATION: Declaration = Declaration {
    id: "sync-per-write",
    verdict: Verdict::Advice,
    summary: "every other write or more is followed by a sync of its own",
    description: "32 or more calls of fsync, fdatasync, msync or sync_file_range, and at least one for \
                  two writes. Each waits for the device; several writes can share one.",
    rules: &[Rule::Run(judge)],
};

const SYNCS: [&str; 4] = ["fsync", "fdatasync", "msync", "sync_file_range"];
const WRITES: [&str; 5] = ["write", "pwrite64", "writev", "pwritev", "pwritev2"];
const MANY: u64 = 32;

fn judge(run: &Run<'_>) -> Option<Found> {
    let (syncs, writes) = (run.total(&SYNCS), run.total(&WRITES));
    let good = syncs.calls - syncs.errors.min(syncs.calls);
    if good < MANY || good < writes.calls.div_ceil(2) {
        return None;
    }
    let thread_ns = run.thread_ns();
    let asleep = match thread_ns {
        0 => String::new(),
        all => format!(
            "; {} of the time ({}) is spent waiting for them",
            duration(syncs.blocked_ns as f64),
            share(syncs.blocked_ns.into(), all.into())
        ),
    };
    let text = format!(
        "{} syncs for {} writes{asleep}",
        thousands(good.into()),
        thousands(writes.calls.into())
    );
    let evidence = [
        ("syncs", json!(good)),
        ("writes", json!(writes.calls)),
        ("blocked_ns", json!(syncs.blocked_ns)),
    ];
    Some(
        Found::new(text, evidence)
            .advise("one sync for several writes: collect what is to be safe together"),
    )
}
