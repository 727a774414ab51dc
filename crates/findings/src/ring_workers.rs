//! Requests to io_uring that are handed to its worker threads.

use iotomy_record::numbers::{duration, share, thousands};
use iotomy_record::{Process, RingOperation, Verdict};
use serde_json::json;

use crate::facts::Fact;
use crate::finding::{FindingDeclaration, Rule, UnnamedFinding};
use crate::run::Run;

pub(crate) static DECLARATION: FindingDeclaration = FindingDeclaration {
    id: "ring-workers",
    verdict: Verdict::Advice,
    summary: "most requests of a kind to io_uring are carried out by its worker threads",
    description: "Worker threads of io_uring carried out at least 1,000 requests of a \
        program to read, write or sync files, and at least half of those of one operation; \
        io_uring's threads used CPU time of at least 1 ms and 1 % of the run's time. Each \
        such request is handed to another thread. A ring does so where it is asked to \
        (IOSQE_ASYNC), where the file cannot be read or written without waiting (writes to \
        the page cache of ext4), and with each fsync.",
    facts: &[Fact::Rings(&[]), Fact::Ledger],
    rules: &[Rule::Run(judge)],
};

const READS: [&str; 4] = ["read", "readv", "read_fixed", "readv_fixed"];
const WRITES: [&str; 4] = ["write", "writev", "write_fixed", "writev_fixed"];
const SYNCS: [&str; 2] = ["fsync", "sync_file_range"];
const MANY: u64 = 1_000;
const WORTH_NS: u64 = 1_000_000;

fn judge(run: &Run<'_>) -> Option<UnnamedFinding> {
    let least_ns = WORTH_NS.max((run.wall_ns / 100.0) as u64);
    let images = run.trace.processes.iter().flat_map(|image| {
        let rows = run.of_image(image.pid, &image.exec, image.image);
        let threads_ns = rows.ring_threads_ns();
        let those = rows.ring.iter().filter(|row| is_handed_over(row));
        those.filter(move |_| threads_ns >= least_ns).map(move |row| (image, *row, threads_ns))
    });
    let (image, row, threads_ns) = images.max_by_key(|(_, row, _)| row.worker)?;
    Some(finding(run, image, row, threads_ns))
}

fn finding(run: &Run<'_>, image: &Process, row: &RingOperation, threads_ns: u64) -> UnnamedFinding {
    let forced = row.forced_async.min(row.submitted);
    let is_asked = forced >= row.submitted.div_ceil(2);
    let why = match is_asked && !SYNCS.contains(&row.op.as_str()) {
        true => format!("; {} were submitted for a worker (IOSQE_ASYNC)", thousands(forced.into())),
        false => String::new(),
    };
    let text = format!(
        "io_uring's worker threads carried out {} of {} requests of {} by {}{why}; its threads used {} of CPU \
         time ({} of the run's time)",
        thousands(row.worker.into()),
        thousands(row.completed.into()),
        row.op,
        image.name(),
        duration(threads_ns as f64),
        share(threads_ns.into(), run.wall_ns as u128),
    );
    let evidence = [
        ("exec", json!(image.exec)),
        ("operation", json!(row.op)),
        ("worker", json!(row.worker)),
        ("completed", json!(row.completed)),
        ("forced_async", json!(forced)),
        ("threads_ns", json!(threads_ns)),
    ];
    let found = UnnamedFinding::new(text, evidence);
    match advice(&row.op, is_asked) {
        Some(advice) => found.advise(advice),
        None => found,
    }
}

fn is_handed_over(row: &RingOperation) -> bool {
    let is_of_files = [&READS[..], &WRITES, &SYNCS].iter().any(|ops| ops.contains(&&*row.op));
    is_of_files && row.worker >= MANY && row.worker >= row.completed.div_ceil(2)
}

fn advice(op: &str, is_asked: bool) -> Option<&'static str> {
    match op {
        "fsync" => Some(
            "sync once after several writes, or write over allocated blocks with O_DIRECT and \
             RWF_DSYNC, which needs no fsync",
        ),
        _ if SYNCS.contains(&op) => None,
        _ if is_asked => Some("submit without IOSQE_ASYNC"),
        _ if WRITES.contains(&op) => {
            Some("write over allocated blocks, past the page cache (O_DIRECT)")
        }
        _ => None,
    }
}
