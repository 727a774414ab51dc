//! A sync behind every write.

use iotomy_record::numbers::{counted, duration, share, thousands};
use iotomy_record::{FileKind, Verdict};
use serde_json::json;

use crate::facts::Fact;
use crate::finding::{FindingDeclaration, Rule, UnnamedFinding};
use crate::run::{Flow, Run, Total, is_made_up};

pub(crate) static DECLARATION: FindingDeclaration = FindingDeclaration {
    id: "sync-per-write",
    verdict: Verdict::Advice,
    summary: "most writes wait for a sync of their own, or nearly so",
    description: "At least 32 successful calls of fsync and fdatasync, or requests of io_uring for \
        them, at least three for each file that was written, and either one for every two \
        writes to files and at least 1 % of the run's time blocked in them, or one for every \
        eight and at least 10 % (where known; of requests, the time until they completed). Each \
        waits for the device; several writes can share one. A database syncs at the end of each \
        transaction: the advice names its way to share. The rule excludes programs that sync \
        each of many files once, and its directory.",
    facts: &[Fact::Calls(&SYNCS), Fact::Rings(&[]), Fact::Files, Fact::Ledger],
    rules: &[Rule::Run(judge)],
};

const SYNCS: [&str; 2] = ["fsync", "fdatasync"];
const MANY: u64 = 32;
/// Syncs of a file that are one for its content, and one for its name.
const FOR_A_FILE: u64 = 2;

fn judge(run: &Run<'_>) -> Option<UnnamedFinding> {
    let (syncs, requests) = (run.total(&SYNCS), run.requested(&["fsync"]));
    let succeeded = |all: Total| all.calls - all.errors.min(all.calls);
    let good = succeeded(syncs).saturating_add(succeeded(requests));
    let targets: Vec<&Flow<'_>> = run.flows.iter().filter(|flow| is_target(flow)).collect();
    let writes = targets.iter().map(|flow| flow.write_calls).fold(0, u64::saturating_add);
    let is_again = good > targets.len() as u64 * FOR_A_FILE && !targets.is_empty();
    if good < MANY || !is_again {
        return None;
    }
    let waited_ns = syncs.blocked_ns.saturating_add(requests.blocked_ns);
    let thread_ns = run.thread_ns();
    // On a file system in memory there is nothing to wait for.
    let is_worth = |part: u64| waited_ns >= run.trace.wall_ns / part;
    let is_each = good >= writes.div_ceil(2) && (thread_ns == 0 || is_worth(100));
    let is_often = good >= writes.div_ceil(8) && thread_ns > 0 && is_worth(10);
    if !is_each && !is_often {
        return None;
    }
    let asleep = match thread_ns {
        0 => String::new(),
        _ if requests.calls > 0 => format!(
            "; the threads were blocked in the calls for {}, and the requests took {} in all",
            duration(syncs.blocked_ns as f64),
            duration(requests.blocked_ns as f64),
        ),
        // Threads that wait side by side wait longer than the run takes.
        _ if syncs.blocked_ns > run.trace.wall_ns => format!(
            "; the threads were blocked in them for {} in all, in a run of {}",
            duration(syncs.blocked_ns as f64),
            duration(run.trace.wall_ns as f64),
        ),
        _ => format!(
            "; the threads were blocked in them for {}, {} of the run's time",
            duration(syncs.blocked_ns as f64),
            share(syncs.blocked_ns.into(), run.trace.wall_ns.into())
        ),
    };
    let what = if requests.calls > 0 { "calls and io_uring requests" } else { "calls" };
    let text = format!(
        "{} {what} of fsync and fdatasync for {} writes to {}{asleep}",
        thousands(good.into()),
        thousands(writes.into()),
        counted(targets.len() as u128, "file", "files"),
    );
    let evidence = [
        ("syncs", json!(good)),
        ("writes", json!(writes)),
        ("files", json!(targets.len())),
        ("blocked_ns", json!(waited_ns)),
    ];
    Some(UnnamedFinding::new(text, evidence).advise(advice(&targets)))
}

fn is_target(flow: &Flow<'_>) -> bool {
    flow.is(FileKind::File) && flow.write_calls > 0 && !is_made_up(flow.file)
}

/// How the writes can share a sync: in a database, which is known by its files, or otherwise.
fn advice(targets: &[&Flow<'_>]) -> &'static str {
    let has = |part: fn(&str) -> bool| targets.iter().any(|flow| part(&flow.file.path));
    if has(|path| path.ends_with("-journal") || path.ends_with("-wal")) {
        "put several statements into one transaction (BEGIN … COMMIT), or use PRAGMA journal_mode=WAL with \
         synchronous=NORMAL"
    } else if has(|path| path.contains("/pg_wal/")) {
        "make several changes in one transaction, or let transactions share a sync (group commit: \
         commit_delay); synchronous_commit=off where the last ones may be lost"
    } else if has(|path| path.contains("/ib_logfile") || path.contains("/#ib_redo")) {
        "make several changes in one transaction, or let transactions share a sync (group commit)"
    } else if has(|path| path.ends_with(".aof")) {
        "send commands in pipelines; appendfsync everysec where the last second may be lost"
    } else {
        "sync once after several writes; in a database, make several changes in one transaction"
    }
}
