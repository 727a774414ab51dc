//! A call of io_uring_enter for each request.

use iotomy_record::numbers::{duration, share, thousands, three_digits};
use iotomy_record::{Process, Verdict};
use serde_json::json;

use crate::facts::Fact;
use crate::finding::{FindingDeclaration, Rule, UnnamedFinding};
use crate::run::Run;

pub(crate) static DECLARATION: FindingDeclaration = FindingDeclaration {
    id: "ring-unbatched",
    verdict: Verdict::Advice,
    summary: "requests to io_uring were submitted one a call",
    description: "A program submitted at least 1,000 requests, and at least nine tenths of \
        all, by calls of io_uring_enter that each submitted one, and kernel entry and exit \
        for these calls cost at least 1 ms and 1 % of the run's time (without the run queue \
        delay of the program). A call can submit as many requests as the queue has room for. \
        The rule excludes rings with a submission thread.",
    facts: &[Fact::Rings(&[]), Fact::Calls(&["io_uring_enter"]), Fact::Ledger],
    rules: &[Rule::Run(judge)],
};

const MANY: u64 = 1_000;
const WORTH: f64 = 0.01;
const WORTH_NS: f64 = 1e6;

/// The submissions of one image.
struct Submissions<'r> {
    image: &'r Process,
    requests: u64,
    /// Calls that submitted one request.
    ones: u64,
    /// How many requests were in flight at a time, on average over the run.
    in_flight: f64,
    waiting_share: f64,
}

fn judge(run: &Run<'_>) -> Option<UnnamedFinding> {
    let images = run.trace.processes.iter().filter_map(|image| of_image(run, image));
    let worst = images
        .filter(|one| one.ones >= MANY && one.ones >= one.requests - one.requests / 10)
        .max_by_key(|one| one.ones)?;
    let each = run.limit("syscall")?;
    let cost = worst.ones as f64 * each;
    let own_ns = run.wall_ns * (1.0 - worst.waiting_share);
    if cost < WORTH_NS.max(own_ns * WORTH) {
        return None;
    }
    let text = format!(
        "{} submitted {} of {} requests to io_uring by calls of io_uring_enter that submitted one \
         each: kernel entry and exit for them cost about {} ({} of the time without run queue delay), at {} a \
         call on this machine; on average {} of its requests were in flight",
        worst.image.name(),
        thousands(worst.ones.into()),
        thousands(worst.requests.into()),
        duration(cost),
        share(cost as i128, own_ns as u128),
        duration(each),
        three_digits(worst.in_flight),
    );
    let evidence = [
        ("exec", json!(worst.image.exec)),
        ("requests", json!(worst.requests)),
        ("calls_for_one", json!(worst.ones)),
        ("syscall_ns", json!(each)),
        ("in_flight", json!(worst.in_flight)),
    ];
    // Those that wait for each other cannot share a call.
    let advice = match worst.in_flight >= 2.0 {
        true => {
            "queue several requests, then submit them by one call (fio: --iodepth_batch_submit)"
        }
        false => {
            "keep several requests in flight and submit them together; one at a time is no \
                  fewer calls than read and write"
        }
    };
    Some(UnnamedFinding::new(text, evidence).advise(advice))
}

fn of_image<'r>(run: &'r Run<'_>, image: &'r Process) -> Option<Submissions<'r>> {
    let rows = run.of_image(image.pid, &image.exec, image.image);
    // With a submission thread, the call returns what it was given, whoever submits it.
    if rows.requests(|row| row.sqpoll) > 0 {
        return None;
    }
    let enters = rows.calls.iter().filter(|call| call.syscall == "io_uring_enter");
    // The call returns how many it submitted.
    let ones = enters.map(|call| call.return_log2.buckets[0]);
    let requests = rows.requests(|row| row.submitted);
    Some(Submissions {
        image,
        requests,
        ones: ones.fold(0, u64::saturating_add).min(requests),
        in_flight: rows.requests(|row| row.wall_ns) as f64 / run.trace.wall_ns.max(1) as f64,
        waiting_share: rows.waiting_share(),
    })
}
