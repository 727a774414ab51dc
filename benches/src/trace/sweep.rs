//! The raw record, `iotomy.sweep/1`: every sample of every run.

use crate::conditions::Conditions;
use crate::record::{Case, Sweep};
use crate::stats::estimate;
use crate::targets::Target;
use crate::trace::costs::Cost;
use crate::trace::found::TraceResults;
use crate::trace::memory::Memory;
use crate::trace::observer::Observer;
use crate::trace::paid::PaidOverhead;
use crate::trace::startup::Startup;
use crate::trace::subject::Subject;

/// Returns the record of a bench.
pub(crate) fn sweep(results: &TraceResults, conditions: &Conditions) -> Sweep {
    let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
    let axes = [
        ("subject", names(&Subject::ALL.map(Subject::name))),
        ("observer", names(&Observer::ALL.map(Observer::name))),
    ];
    let mut sweep = Sweep::new("trace-cost", conditions, &axes);
    let cases = &mut sweep.cases;
    cases.extend(results.costs.iter().flat_map(of_cost));
    cases.extend(results.cold.cases());
    cases.extend(results.paid.iter().flat_map(of_paid));
    cases.extend(of_startup(&results.startup));
    cases.push(of_memory(&results.memory));
    cases.extend(results.measured.skipped.iter().map(|((subject, observer), reason)| {
        let case = case(subject.name(), observer.name(), "cost_per_call", "ns", &[]);
        case.skipped_for(reason)
    }));
    sweep.claims = results.targets.iter().map(Target::claim).collect();
    sweep
}

fn case(
    subject: &str,
    observer: &str,
    metric: &'static str,
    unit: &'static str,
    samples: &[f64],
) -> Case {
    Case::new(&[("subject", subject), ("observer", observer)], metric, unit, samples)
}

/// Returns the cases of a cost: all runs, the fastest run of each block, and for an observer the difference from the
/// bare run. The number of calls in a run is a parameter, because bare runs have two lengths.
fn of_cost(cost: &Cost) -> Vec<Case> {
    let (subject, observer) = (cost.subject.name(), cost.observer.name());
    let with_calls = |mut case: Case| {
        case.params.insert("calls", cost.calls.into());
        case
    };
    let mut cases = vec![
        with_calls(case(subject, observer, "run_time_per_call", "ns", &cost.all_runs)),
        with_calls(case(subject, observer, "time_per_call", "ns", &cost.times)),
    ];
    if cost.observer == Observer::Bare {
        return cases;
    }
    let mut above = with_calls(case(subject, observer, "cost_per_call", "ns", &cost.costs));
    let mut extra = |name, figure: Option<f64>| {
        above.extra.extend(figure.map(|figure| (name, figure)));
    };
    let median = |samples: &[f64]| estimate(samples).map(|found| found.median);
    extra("slower_than_bare", cost.slower());
    extra("ratio_to_empty", median(&cost.to_empty));
    extra("ratio_to_bpftrace", median(&cost.to_bpftrace));
    extra("least_share_seen", cost.seen);
    extra("seen_ns_per_call", median(&cost.inside));
    extra("own_price_ns", median(&cost.prices));
    cases.push(above);
    cases
}

/// Returns the pairs of a workload: the bare CPU time, the overhead per call when watched, and the printed range.
fn of_paid(paid: &PaidOverhead) -> Vec<Case> {
    let name = paid.workload.name();
    if let Some(reason) = &paid.skipped {
        return vec![case(name, "iotomy trace", "paid_per_call", "ns", &[]).skipped_for(reason)];
    }
    vec![
        case(name, "bare", "cpu", "ns", &paid.bare),
        case(name, "iotomy trace", "calls", "calls", &paid.calls),
        case(name, "iotomy trace", "switches_per_call", "switches", &paid.switches),
        case(name, "iotomy trace", "paid_per_call", "ns", &paid.paid),
        case(name, "iotomy trace", "printed_low", "ns", &paid.low),
        case(name, "iotomy trace", "printed_high", "ns", &paid.high),
    ]
}

fn of_startup(startup: &Startup) -> [Case; 4] {
    [
        case("true", "bare", "wall", "ns", &startup.bare),
        case("true", "iotomy trace", "wall", "ns", &startup.traced),
        case("true", "iotomy anatomy", "wall", "ns", &startup.anatomy),
        case("true", "iotomy trace", "before_command", "ns", &startup.before_command),
    ]
}

fn of_memory(memory: &Memory) -> Case {
    let total = memory.peak as f64;
    let mut case = case("1000 processes", "iotomy trace", "memory", "bytes", &[total]);
    let figures = [
        ("process", memory.process),
        ("process_while_alive", memory.process_alive),
        ("maps", memory.maps),
        ("task_storage", memory.task_storage),
        ("programs", memory.programs),
        ("processes_seen", memory.seen_processes),
        ("calls_of_a_process", memory.seen_calls),
    ];
    case.extra.extend(figures.map(|(name, figure)| (name, figure as f64)));
    case
}
