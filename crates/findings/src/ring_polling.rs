//! A submission thread of io_uring that spins for requests that do not come.

use iotomy_record::numbers::{duration, share, thousands};
use iotomy_record::{Process, Verdict};
use serde_json::json;

use crate::facts::Fact;
use crate::finding::{FindingDeclaration, Rule, UnnamedFinding};
use crate::run::Run;

pub(crate) static DECLARATION: FindingDeclaration = FindingDeclaration {
    id: "ring-polling",
    verdict: Verdict::Advice,
    summary: "a submission thread of io_uring polled its queue for few requests",
    description: "A ring's submission thread (IORING_SETUP_SQPOLL) used CPU time of at least \
        10 ms and 1 % of the run's time, and at least twice what its requests can explain: \
        50 µs for each and 1 ns for each byte. The rule needs a ring whose requests no \
        worker thread carried out: the CPU time of both is one figure. The thread polls its \
        queue until it has been empty for sq_thread_idle, and uses a CPU all that time.",
    facts: &[Fact::Rings(&[]), Fact::Ledger],
    rules: &[Rule::Run(judge)],
};

/// To submit a request takes some µs where it does not copy bytes, also one for a device.
const A_REQUEST_NS: u64 = 50_000;
/// No present memory is slower to copy.
const A_BYTE_NS: u64 = 1;
const WORTH_NS: u64 = 10_000_000;

fn judge(run: &Run<'_>) -> Option<UnnamedFinding> {
    let least_ns = WORTH_NS.max((run.wall_ns / 100.0) as u64);
    let images = run.trace.processes.iter().filter_map(|image| of_image(run, image));
    let worst = images
        .filter(|one| one.thread_ns >= least_ns && one.thread_ns / 2 >= one.explained_ns())
        .max_by_key(|one| one.thread_ns)?;
    let text = format!(
        "io_uring's submission thread in {} used {} of CPU time ({} of the run's time) for {} \
         requests, {} for each: most of it went into polling its queue",
        worst.image.name(),
        duration(worst.thread_ns as f64),
        share(worst.thread_ns.into(), run.wall_ns as u128),
        thousands(worst.requests.into()),
        duration(worst.thread_ns as f64 / worst.requests.max(1) as f64),
    );
    let evidence = [
        ("exec", json!(worst.image.exec)),
        ("thread_ns", json!(worst.thread_ns)),
        ("requests", json!(worst.requests)),
        ("bytes", json!(worst.bytes)),
    ];
    let advice = "submit by io_uring_enter (without IORING_SETUP_SQPOLL), or set a shorter \
        sq_thread_idle";
    Some(UnnamedFinding::new(text, evidence).advise(advice))
}

/// The submission thread of one image.
struct Poller<'r> {
    image: &'r Process,
    thread_ns: u64,
    requests: u64,
    bytes: u64,
}

impl Poller<'_> {
    fn explained_ns(&self) -> u64 {
        let requests_ns = self.requests.saturating_mul(A_REQUEST_NS);
        requests_ns.saturating_add(self.bytes.saturating_mul(A_BYTE_NS))
    }
}

fn of_image<'r>(run: &'r Run<'_>, image: &'r Process) -> Option<Poller<'r>> {
    let rows = run.of_image(image.pid, &image.exec, image.image);
    let has_workers = rows.ring.iter().any(|row| row.worker > 0 || row.in_flight > 0);
    (rows.requests(|row| row.sqpoll) > 0 && !has_workers).then(|| Poller {
        image,
        thread_ns: rows.ring_threads_ns(),
        requests: rows.requests(|row| row.submitted),
        bytes: rows.requests(|row| row.bytes),
    })
}
