//! Judges, prints and stores the results.

use std::fmt::Write as _;

use crate::conditions::Conditions;
use crate::record::{Case, Sweep};
use crate::results::Results;
use crate::services::costs::{Cost, LARGEST, costs};
use crate::services::registry::{SERVICES, service};
use crate::services::service::Service;
use crate::services::storm::Storm;
use crate::services::turns::{Measured, Sample};
use crate::services::watcher::{Watcher, bpftrace_script};
use crate::stats::{Estimate, estimate, median};
use crate::tables::{digits, interval, table};
use crate::targets::{Bound, Target, target_table};

/// The watched pay at most this multiple of what two empty programs cost.
const WATCHED: f64 = 1.5;
/// Processes that are not watched pay at most this multiple.
const UNWATCHED: f64 = 1.1;
/// The most CPU time that a request takes where one rare call is counted, in that of a bare one.
const ONE_CALL: f64 = 1.01;
/// The most that iotomy costs a request, in costs of bpftrace.
const BESIDE_BPFTRACE: f64 = 0.4;
/// The aim for the throughput lost, in percent.
const LOST: f64 = 12.0;

/// The results of the bench.
pub(crate) struct ServicesResults {
    pub(crate) blocks: u32,
    pub(crate) versions: Vec<String>,
    pub(crate) measured: Measured,
    pub(crate) storm: Option<Storm>,
}

impl ServicesResults {
    /// Returns the results as text and as a record.
    pub(crate) fn results(&self, conditions: &Conditions) -> Results {
        let costs = costs(&self.measured);
        let targets = targets(&costs, self.storm);
        Results {
            folder: "services",
            title: "Overhead on running servers",
            text: self.text(conditions, &costs, &targets),
            method: method(),
            record: self.sweep(conditions, &costs, &targets),
            is_on_one_line: false,
        }
    }

    fn text(&self, conditions: &Conditions, costs: &[Cost], targets: &[Target]) -> String {
        let order = format!("{} blocks, seed {}", self.blocks, conditions.seed);
        let programs = self.versions.join("; ");
        let mut text = conditions.text(&[("programs", programs), ("order", order)]);
        for Service { name, .. } in SERVICES {
            let own: Vec<&Cost> = costs.iter().filter(|cost| cost.service == *name).collect();
            if own.iter().any(|cost| !cost.samples.is_empty()) {
                let _ = writeln!(text, "\n## {name}\n\n{}", cost_table(&own));
            }
        }
        for ((service, watcher), reason) in &self.measured.skipped {
            let watcher = watcher.map_or_else(String::new, |one| format!("{} on ", one.name()));
            let _ = writeln!(text, "\nskipped: {watcher}{service}: {reason}");
        }
        for ((service, watcher), (number, reason)) in &self.measured.failed {
            let _ = writeln!(
                text,
                "\nfailed: {number} runs of {service} under {}, the last one: {reason}",
                watcher.name()
            );
        }
        if let Some(storm) = &self.storm {
            let _ = writeln!(
                text,
                "\n## A storm of calls\n\n{} calls in {:.1} s, {:.2} million a second; iotomy trace with everything \
                 counted {} of them and lost {} events.",
                storm.made,
                storm.seconds,
                storm.rate() / 1e6,
                storm.counted,
                storm.lost
            );
        }
        let _ = writeln!(text, "\n## Targets\n");
        text + &target_table(targets, 2)
    }

    fn sweep(&self, conditions: &Conditions, costs: &[Cost], targets: &[Target]) -> Sweep {
        let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        let axes = [
            ("service", names(&SERVICES.map(|one| one.name))),
            ("observer", names(&Watcher::ALL.map(Watcher::name))),
        ];
        let mut sweep = Sweep::new("services-cost", conditions, &axes);
        for cost in costs.iter().filter(|cost| !cost.samples.is_empty()) {
            sweep.cases.extend(cases(cost));
        }
        for ((service, watcher), reason) in &self.measured.skipped {
            let params = [("service", *service), ("observer", watcher.map_or("", Watcher::name))];
            sweep.cases.push(Case::new(&params, "server", "ns", &[]).skipped_for(reason));
        }
        if let Some(storm) = &self.storm {
            let params = [("service", "storm"), ("observer", Watcher::Everything.name())];
            let mut case = Case::new(&params, "rate", "calls/s", &[storm.rate()]);
            let figures = [("made", storm.made), ("counted", storm.counted), ("lost", storm.lost)];
            case.extra.extend(figures.map(|(name, figure)| (name, figure as f64)));
            case.extra.insert("seconds", storm.seconds);
            sweep.cases.push(case);
        }
        sweep.claims = targets.iter().map(Target::claim).collect();
        sweep
    }
}

/// Returns every figure of a cost, and for an observer its ratios to the bare run and to the floor.
fn cases(cost: &Cost) -> Vec<Case> {
    let params = [("service", cost.service), ("observer", cost.watcher.name())];
    let case = |metric, unit, samples: &[f64]| Case::new(&params, metric, unit, samples);
    let mut cases = vec![
        case("server", "ns", &cost.all(|sample| sample.server)),
        case("all", "ns", &cost.all(|sample| sample.all)),
        case("machine", "ns", &cost.all(|sample| sample.machine)),
        case("rate", "requests/s", &cost.all(|sample| sample.rate)),
    ];
    if let Some(seen) = seen(cost) {
        cases[0].extra.insert("calls_seen_per_request", seen);
    }
    if cost.watcher != Watcher::Bare {
        let ratios = [
            ("server_to_bare", cost.to_bare(|sample| sample.server)),
            ("all_to_bare", cost.to_bare(|sample| sample.all)),
            ("machine_to_bare", cost.to_bare(|sample| sample.machine)),
            ("rate_to_bare", cost.to_bare(|sample| sample.rate)),
        ];
        cases.extend(ratios.map(|(metric, samples)| case(metric, "", &samples)));
        if cost.watcher != Watcher::Empty && !cost.to_floor.is_empty() {
            cases.push(case("cost_to_floor", "", &cost.to_floor));
        }
        if cost.watcher != Watcher::Bpftrace && !cost.to_bpftrace.is_empty() {
            cases.push(case("cost_to_bpftrace", "", &cost.to_bpftrace));
        }
    }
    cases
}

fn seen(cost: &Cost) -> Option<f64> {
    let all: Vec<f64> = cost.samples.iter().filter_map(|sample| sample.seen).collect();
    median(&all)
}

fn cost_table(costs: &[&Cost]) -> String {
    let titles = [
        "observer",
        "server, µs a request",
        "÷ bare [95 %]",
        "cost ÷ empty [95 %]",
        "cost ÷ bpftrace [95 %]",
        "all, ÷ bare [95 %]",
        "machine, ÷ bare [95 %]",
        "requests/s",
        "÷ bare [95 %]",
        "answers seen a request",
    ];
    let mut rows = vec![titles.map(str::to_owned).to_vec()];
    let text = |samples: &[f64], decimals| {
        estimate(samples).map_or_else(String::new, |found| interval(found, decimals))
    };
    for cost in costs.iter().filter(|cost| !cost.samples.is_empty()) {
        let to_bare = |of: fn(&Sample) -> f64| match cost.watcher {
            Watcher::Bare => String::new(),
            _ => text(&cost.to_bare(of), 3),
        };
        let to_floor = match cost.watcher {
            Watcher::Bare | Watcher::Empty => String::new(),
            _ => text(&cost.to_floor, 2),
        };
        let to_bpftrace = match cost.watcher {
            Watcher::Bare | Watcher::Bpftrace => String::new(),
            _ => text(&cost.to_bpftrace, 2),
        };
        let middle = |of: fn(&Sample) -> f64| median(&cost.all(of)).unwrap_or_default();
        rows.push(vec![
            cost.watcher.name().to_owned(),
            digits(middle(|sample| sample.server) / 1e3, 2),
            to_bare(|sample| sample.server),
            to_floor,
            to_bpftrace,
            to_bare(|sample| sample.all),
            to_bare(|sample| sample.machine),
            digits(middle(|sample| sample.rate), 0),
            to_bare(|sample| sample.rate),
            seen(cost).map_or_else(String::new, |seen| digits(seen, 2)),
        ]);
    }
    table(&rows, 1)
}

fn targets(costs: &[Cost], storm: Option<Storm>) -> Vec<Target> {
    let is_measured = |service: &&Service| costs.iter().any(|cost| cost.service == service.name);
    let measured = SERVICES.into_iter().filter(is_measured);
    let mut targets: Vec<Target> =
        measured.flat_map(|service| of_service(costs, service)).collect();
    if let Some(storm) = storm {
        let missing = storm.missing() as f64;
        targets.push(Target::new(
            "storm",
            format!("calls not counted of {:.2} million a second", storm.rate() / 1e6),
            Bound::at_most(0.0, "calls"),
            Ok(Estimate { median: missing, low: missing, high: missing }),
        ));
    }
    targets
}

/// Returns the targets of a server that was measured.
fn of_service(costs: &[Cost], service: &Service) -> Vec<Target> {
    let Service { name, rare_call, most, aim, .. } = *service;
    let found = |watcher, of: fn(&Cost) -> Vec<f64>| {
        let own = |cost: &&Cost| cost.service == name && cost.watcher == watcher;
        let samples = costs.iter().find(own).map(of);
        samples.and_then(|all| estimate(&all)).ok_or_else(|| "not measured".to_owned())
    };
    let at_most = |id: &str, text: String, most, unit, found| {
        Target::new(&format!("{name}-{id}"), text, Bound::at_most(most, unit), found)
    };
    let mut targets = Vec::new();

    let cpu_time = |under: &str| format!("{name}: CPU time a request under {under} ÷ bare");
    let to_bare = |watcher| found(watcher, |cost| cost.to_bare(|sample| sample.server));
    let (trace, text) = (to_bare(Watcher::Trace), cpu_time("iotomy trace"));
    targets.push(at_most("cpu", text.clone(), most, "×", trace.clone()));
    targets.extend(aim.map(|aim| at_most("cpu-aim", text + ", the aim", aim, "×", trace)));
    let text = cpu_time(&format!("iotomy trace --call {rare_call}"));
    targets.push(at_most("cpu-call", text, ONE_CALL, "×", to_bare(Watcher::Call)));
    let text = format!("{name}: cost of iotomy trace ÷ bpftrace's");
    let to_bpftrace = found(Watcher::Trace, |cost| cost.to_bpftrace.clone());
    targets.push(at_most("bpftrace", text, BESIDE_BPFTRACE, "×", to_bpftrace));

    let of_floors = [
        ("watched", Watcher::Trace, WATCHED),
        ("watched-everything", Watcher::Everything, WATCHED),
        ("unwatched", Watcher::TraceOther, UNWATCHED),
        ("unwatched-everything", Watcher::EverythingOther, UNWATCHED),
    ];
    for (id, watcher, most) in of_floors {
        let text = format!("{name}: cost of {} ÷ two empty programs'", watcher.name());
        targets.push(at_most(id, text, most, "×", found(watcher, |cost| cost.to_floor.clone())));
    }
    let of_throughput =
        [("lost-aim", Watcher::Trace), ("lost-everything-aim", Watcher::Everything)];
    for (id, watcher) in of_throughput {
        let text = format!("{name}: throughput lost under {}, the aim", watcher.name());
        targets.push(at_most(id, text, LOST, "%", found(watcher, Cost::lost)));
    }
    targets
}

fn method() -> String {
    let script = |name| service(name).map_or_else(String::new, |one| bpftrace_script(one, "PID"));
    let scripts = ["redis", "postgres"].map(script);
    let summaries: Vec<&str> = SERVICES.iter().map(|one| one.summary).collect();
    let summaries = summaries.join("; ");
    let rare: Vec<String> =
        SERVICES.iter().map(|one| format!("{}: `{}`", one.name, one.rare_call)).collect();
    let rare = rare.join(", ");
    format!(
        "
## Method

The servers run throughout: {summaries}. In a run, an observer is attached to the process that runs (`-p`), the load \
generator runs for about a second (redis-benchmark is ended then, and redis-server tells the number of requests), and the observer is detached; neither attaching nor detaching is in the figures. A \
block has one run of each server under each observer, in random order (`perf` and `strace`: in every second block).

`server` is the CPU time of the server's processes a request (the kernel's CPU clocks of the processes; of backends \
that have ended, the postmaster's `cutime` and `cstime`). `all` adds the load generator and the observer. `machine` is \
the time in which the CPUs were not idle, and includes whatever else the machine did. Ratios are of the same block; \
then the median is taken, with an interval of order statistics of at least 95 %. The cost of an observer is the \
server's CPU time a request above the bare one; `cost ÷ empty` divides it by the cost of two BPF programs that do \
nothing, on the same tracepoints, and `cost ÷ bpftrace` by that of bpftrace. Where the divisor was not above zero in a \
block, the ratio counts as {LARGEST:.0}, against the target.

Each observer's own count of the calls by which a server answers is read back; a run in which it saw fewer than there \
were requests has failed. `perf trace -p` does not follow the processes that PostgreSQL starts.

`--call X` counts one call that the server makes seldom ({rare}). Its record must have rows of that call only, and as \
many calls that were left out as there were requests, or more.

`everything` is `--peers --paths --threads --slowest 10 --files`. With `another process`, iotomy watches a process that \
does nothing, and the server is not watched. bpftrace runs one of

```
{}
{}
```

The storm is `getppid` in a loop on every CPU, under iotomy with everything; the number of calls that the loops made is \
compared with the record.

`raw.json` (`iotomy.sweep/1`) has every sample, in the order of the blocks.
",
        scripts[0], scripts[1]
    )
}
