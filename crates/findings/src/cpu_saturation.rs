//! Threads that were ready to run and had no CPU.

use iotomy_record::numbers::{duration, share, thousands, three_digits};
use iotomy_record::{Throttled, Trace, Verdict};
use serde_json::json;

use crate::facts::Fact;
use crate::finding::{FindingDeclaration, Rule, UnnamedFinding};
use crate::run::Run;

pub(crate) static DECLARATION: FindingDeclaration = FindingDeclaration {
    id: "cpu-saturation",
    verdict: Verdict::Note,
    summary: "the run queue delay of the threads is long",
    description: "The threads were ready to run without a CPU (run queue delay) for at least 10 \
        ms, and for at least a quarter of the time in which they ran or were ready. The average \
        number of CPUs they used tells the cause: close to all CPUs, they saturated the machine; \
        well below, other programs may contribute. Under a CPU quota, the finding names it and, if they are \
        known, the periods in which it was used up.",
    facts: &[Fact::Ledger, Fact::Rings(&[]), Fact::Tree],
    rules: &[Rule::Run(judge)],
};

const LEAST_NS: u64 = 10_000_000;

fn judge(run: &Run<'_>) -> Option<UnnamedFinding> {
    let (delayed_ns, on_cpu_ns) = (run.runnable_ns(), run.on_cpu_ns());
    let wanted_ns = delayed_ns.saturating_add(on_cpu_ns);
    if delayed_ns < LEAST_NS || delayed_ns < wanted_ns / 4 {
        return None;
    }
    let used = on_cpu_ns as f64 / run.trace.wall_ns.max(1) as f64;
    let text = format!(
        "run queue delay: the threads were ready to run without a CPU for {}, and ran for {} ({} \
         of both together); on average they used {} {}",
        duration(delayed_ns as f64),
        duration(on_cpu_ns as f64),
        share(on_cpu_ns.into(), wanted_ns.into()),
        three_digits(used),
        of_which(run.trace),
    );
    let capacity = run.trace.cpu_capacity;
    let evidence = [
        ("runnable_ns", json!(delayed_ns)),
        ("on_cpu_ns", json!(on_cpu_ns)),
        ("cpus_used", json!(used)),
        ("cpus", json!(run.trace.machine.cpus)),
        ("quota", json!(capacity.and_then(|capacity| capacity.quota))),
        ("throttled", json!(capacity.and_then(|capacity| capacity.throttled))),
    ];
    let found = UnnamedFinding::new(text, evidence);
    let is_throttled = throttled(run.trace).is_some_and(|throttled| throttled.throttled > 0);
    Some(match is_throttled {
        true => {
            found.advise("raise the quota (cpu.max; docker --cpus), or run fewer threads at a time")
        }
        false => found,
    })
}

/// The CPUs that there were, with the limit that made them fewer.
fn of_which(trace: &Trace) -> String {
    let cpus = trace.machine.cpus;
    let Some(capacity) = trace.cpu_capacity else { return format!("of {cpus} CPUs") };
    match capacity.quota.filter(|quota| *quota < f64::from(capacity.affinity)) {
        None if capacity.affinity < cpus => {
            format!("of the {} that they might run on ({cpus} CPUs)", capacity.affinity)
        }
        None => format!("of {cpus} CPUs"),
        Some(quota) => {
            let waits = throttled(trace).map_or(String::new(), |one| {
                format!(
                    "; the group had used it up in {} of {} periods and waited {}, summed over CPUs",
                    thousands(one.throttled.into()),
                    thousands(one.periods.into()),
                    duration(one.ns as f64),
                )
            });
            let quota = three_digits(quota);
            format!(
                "of the {quota} that the CPU quota of their control group allows ({cpus} CPUs){waits}"
            )
        }
    }
}

fn throttled(trace: &Trace) -> Option<Throttled> {
    trace.cpu_capacity?.throttled
}
