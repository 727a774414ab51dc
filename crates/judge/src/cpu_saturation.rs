//! Threads that were ready to run and had no CPU.

use iotomy_record::Verdict;
use iotomy_record::numbers::{duration, share, three_digits};
use serde_json::json;

use crate::finding::{Declaration, Rule, UnnamedFinding};
use crate::run::Run;

pub(crate) static DECLARATION: Declaration = Declaration {
    id: "cpu-saturation",
    verdict: Verdict::Note,
    summary: "the run queue delay of the threads is long",
    description: "The threads were ready to run without a CPU (run queue delay) for at least 10 \
        ms, and for at least a quarter of the time in which they ran or were ready. The average \
        number of CPUs they used tells the cause: close to all CPUs, they saturated the machine; \
        well below, other programs or a limit of CPU time may contribute.",
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
    let cpus = run.trace.machine.cpus;
    let text = format!(
        "run queue delay: the threads were ready to run without a CPU for {}, and ran for {} ({} \
         of both together); on average they used {} of {cpus} CPUs",
        duration(delayed_ns as f64),
        duration(on_cpu_ns as f64),
        share(on_cpu_ns.into(), wanted_ns.into()),
        three_digits(used),
    );
    let evidence = [
        ("runnable_ns", json!(delayed_ns)),
        ("on_cpu_ns", json!(on_cpu_ns)),
        ("cpus_used", json!(used)),
        ("cpus", json!(cpus)),
    ];
    Some(UnnamedFinding::new(text, evidence))
}
