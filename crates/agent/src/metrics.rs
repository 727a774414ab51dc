//! The declarations of all metrics, each with its samples: the text of scrapes, the guide, and the tests of the rules and of
//! the dashboard follow from them.
//!
//! A name and its labels are part of the interface: they are added, never changed or removed.

use std::fmt;

use iotomy_record::LedgerRow;

use crate::exposed::{Exposed, OfBudget};
use crate::metric::{In, Kind, Metric};
use crate::samples::{Samples, Value, seconds};
use crate::totals::direction;

/// Every metric, in the order of scrapes.
pub static METRICS: &[Metric] = &[
    Metric {
        name: "iotomy_calls_total",
        kind: Kind::Counter,
        unit: In::Nothing,
        labels: &["service", "call"],
        help: "System calls that returned",
        source: "`calls` of a trace",
        samples: |all, to| all.each_call(|labels, call| to.value(&labels, call.calls.into())),
    },
    Metric {
        name: "iotomy_call_errors_total",
        kind: Kind::Counter,
        unit: In::Nothing,
        labels: &["service", "call", "errno"],
        help: "Of iotomy_calls_total, calls that returned an error",
        source: "`error_kinds` of a trace; 16 errors of a call at most, the others are `other`",
        samples: |all, to| {
            all.each_call(|[service, name], call| {
                let mut errors = call.errors.iter();
                errors.try_for_each(|(errno, errors)| {
                    to.value(&[service, name, ("errno", errno)], (*errors).into())
                })
            })
        },
    },
    Metric {
        name: "iotomy_call_bytes_total",
        kind: Kind::Counter,
        unit: In::Bytes,
        labels: &["service", "call", "direction"],
        help: "Bytes that system calls moved, of calls that return such a count",
        source: "`bytes` of a trace; `read` is to the program, `write` is from it, `copy` is between descriptors",
        samples: |all, to| {
            all.each_call(|[service, name], call| match call.bytes {
                0 => Ok(()),
                bytes => to.value(&[service, name, ("direction", direction(name.1))], bytes.into()),
            })
        },
    },
    Metric {
        name: "iotomy_call_duration_seconds",
        kind: Kind::Histogram,
        unit: In::Seconds,
        labels: &["service", "call"],
        help: "Time from entry to return, of the calls of iotomy_calls_total",
        source: "`wall_times` of a trace",
        samples: |all, to| all.each_call(|labels, call| to.times(&labels, call)),
    },
    Metric {
        name: "iotomy_calls_variance_total",
        kind: Kind::Counter,
        unit: In::Nothing,
        labels: &["call"],
        help: "With a budget: variance of the error of iotomy_calls_total, of a call over all services; 0 where all calls counted",
        source: "differences of successive windows, as the margins of `iotomy trace --sample`",
        samples: |all, to| match all.own.budget {
            None => Ok(()),
            Some(_) => {
                let mut calls = all.totals.variances();
                calls.try_for_each(|(call, sum)| to.value(&[("call", call)], sum.into()))
            }
        },
    },
    Metric {
        name: "iotomy_thread_seconds_total",
        kind: Kind::Counter,
        unit: In::Seconds,
        labels: &["service"],
        help: "Lifetimes of threads while watched, summed",
        source: "`thread_ns` of the ledger",
        samples: |all, to| {
            all.totals.iter().try_for_each(|(service, one)| {
                to.value(&[("service", service)], seconds(one.ledger.thread_ns).into())
            })
        },
    },
    Metric {
        name: "iotomy_thread_state_seconds_total",
        kind: Kind::Counter,
        unit: In::Seconds,
        labels: &["service", "state"],
        help: "Of iotomy_thread_seconds_total, time by state",
        source: "the ledger: `user` is `user_ns`, `system` is `calls_on_cpu_ns`, `blocked` is `blocked_ns`, `run_queue` is `runnable_ns`",
        samples: |all, to| {
            all.totals.iter().try_for_each(|(service, one)| {
                let mut states = states(&one.ledger).into_iter();
                states.try_for_each(|(state, ns)| {
                    to.value(&[("service", service), ("state", state)], seconds(ns).into())
                })
            })
        },
    },
    Metric {
        name: "iotomy_lost_events_total",
        kind: Kind::Counter,
        unit: In::Nothing,
        labels: &[],
        help: "Calls and threads that found no room in a table of the kernel, and are in no other metric",
        source: "`lost_events` of a trace",
        samples: |all, to| to.value(&[], all.totals.lost.into()),
    },
    Metric {
        name: "iotomy_agent_build_info",
        kind: Kind::Info,
        unit: In::Nothing,
        labels: &["version"],
        help: "The version of the agent",
        source: "the program",
        samples: |_, to| to.value(&[("version", env!("CARGO_PKG_VERSION"))], Value::Whole(1)),
    },
    Metric {
        name: "iotomy_agent_start_time_seconds",
        kind: Kind::Gauge,
        unit: In::Seconds,
        labels: &[],
        help: "When the agent began to count, since the epoch",
        source: "the system's clock then",
        samples: |all, to| to.value(&[], all.own.began.as_secs_f64().into()),
    },
    Metric {
        name: "iotomy_agent_cpu_seconds_total",
        kind: Kind::Counter,
        unit: In::Seconds,
        labels: &[],
        help: "CPU time of the agent's own process",
        source: "`CLOCK_PROCESS_CPUTIME_ID`; what its BPF programs take is part of the watched calls",
        samples: |all, to| to.value(&[], all.own.cpu.as_secs_f64().into()),
    },
    Metric {
        name: "iotomy_agent_call_overhead_seconds",
        kind: Kind::Gauge,
        unit: In::Seconds,
        labels: &["bound"],
        help: "Time that watching adds to a call, measured when the watch began",
        source: "the calibration: `low` is the least, `high` the most",
        samples: |all, to| {
            ["low", "high"]
                .into_iter()
                .zip(all.own.overhead_ns)
                .try_for_each(|(bound, ns)| to.value(&[("bound", bound)], (ns / 1e9).into()))
        },
    },
    Metric {
        name: "iotomy_agent_budget_ratio",
        kind: Kind::Gauge,
        unit: In::Nothing,
        labels: &[],
        help: "With a budget: the most that watching may take of the watched CPU time",
        source: "`--budget`",
        samples: |all, to| of_budget(all, to, |one| one.ratio.into()),
    },
    Metric {
        name: "iotomy_agent_overhead_ratio",
        kind: Kind::Gauge,
        unit: In::Nothing,
        labels: &[],
        help: "With a budget: the most that watching takes of the watched CPU time, of late",
        source: "the calls, counted or not, and their switches, each with the most that the calibration found",
        samples: |all, to| of_budget(all, to, |one| one.overhead.into()),
    },
    Metric {
        name: "iotomy_agent_sample_factor",
        kind: Kind::Gauge,
        unit: In::Nothing,
        labels: &[],
        help: "With a budget: how many calls one that is counted stands for; 1 where all of them count",
        source: "the part of the time in which calls count",
        samples: |all, to| of_budget(all, to, |one| u64::from(one.factor).into()),
    },
    Metric {
        name: "iotomy_agent_watches_total",
        kind: Kind::Counter,
        unit: In::Nothing,
        labels: &[],
        help: "Watches that began: 1, and one more for each reload that chose other control groups",
        source: "the agent",
        samples: |all, to| to.value(&[], all.own.watches.into()),
    },
    Metric {
        name: "iotomy_agent_scrapes_total",
        kind: Kind::Counter,
        unit: In::Nothing,
        labels: &[],
        help: "Scrapes that were answered with metrics, this one included",
        source: "the agent",
        samples: |all, to| to.value(&[], all.own.scrapes.into()),
    },
    Metric {
        name: "iotomy_agent_connections_refused_total",
        kind: Kind::Counter,
        unit: In::Nothing,
        labels: &[],
        help: "Connections that were closed at once because 64 others were open",
        source: "the agent",
        samples: |all, to| to.value(&[], all.own.refused.into()),
    },
    Metric {
        name: "iotomy_agent_connections_cut_total",
        kind: Kind::Counter,
        unit: In::Nothing,
        labels: &[],
        help: "Connections that were closed because the client was too slow or sent no valid request",
        source: "the agent; with TLS, handshakes that failed are among them",
        samples: |all, to| to.value(&[], all.own.cut.into()),
    },
    Metric {
        name: "iotomy_agent_requests_unauthorized_total",
        kind: Kind::Counter,
        unit: In::Nothing,
        labels: &[],
        help: "Requests that were refused because they did not have the token",
        source: "the agent",
        samples: |all, to| to.value(&[], all.own.unauthorized.into()),
    },
    Metric {
        name: "iotomy_agent_tls_certificate_expiry_time_seconds",
        kind: Kind::Gauge,
        unit: In::Seconds,
        labels: &[],
        help: "With TLS: when the agent's certificate expires, since the epoch",
        source: "the file of `--tls-cert`, as it was last read",
        samples: |all, to| match all.own.expiry {
            None => Ok(()),
            Some(time) => to.value(&[], time.as_secs_f64().into()),
        },
    },
    Metric {
        name: "iotomy_agent_otlp_pushes_total",
        kind: Kind::Counter,
        unit: In::Nothing,
        labels: &["outcome"],
        help: "Attempts to push metrics over OTLP, by outcome",
        source: "the agent: `taken` by the collector; `failed` where it was not reached or has no room now, and is tried again; `refused` where only the next interval tries again",
        samples: |all, to| {
            let pushes = &all.own.pushes;
            let outcomes =
                [("taken", pushes.taken), ("failed", pushes.failed), ("refused", pushes.refused)];
            outcomes
                .into_iter()
                .try_for_each(|(outcome, count)| to.value(&[("outcome", outcome)], count.into()))
        },
    },
    Metric {
        name: "iotomy_agent_otlp_rejected_points_total",
        kind: Kind::Counter,
        unit: In::Nothing,
        labels: &[],
        help: "Data points that the collector rejected in pushes that it took",
        source: "its answers",
        samples: |all, to| to.value(&[], all.own.pushes.rejected_points.into()),
    },
    Metric {
        name: "iotomy_agent_services",
        kind: Kind::Gauge,
        unit: In::Nothing,
        labels: &[],
        help: "Services that have labels of their own",
        source: "the agent",
        samples: |all, to| to.value(&[], (all.totals.services.own() as u64).into()),
    },
    Metric {
        name: "iotomy_agent_services_in_other",
        kind: Kind::Gauge,
        unit: In::Nothing,
        labels: &[],
        help: "Services that are added up as `other`, because max-services have labels; 4096 stands for any larger number",
        source: "the agent",
        samples: |all, to| to.value(&[], (all.totals.services.others() as u64).into()),
    },
    Metric {
        name: "iotomy_agent_config_last_reload_successful",
        kind: Kind::Gauge,
        unit: In::Nothing,
        labels: &[],
        help: "1, or 0 where the configuration could not be followed at the last SIGHUP",
        source: "the agent",
        samples: |all, to| to.value(&[], u64::from(all.own.is_reloaded).into()),
    },
];

/// A number of the budget, where there is one.
fn of_budget(all: &Exposed, to: &mut dyn Samples, value: fn(&OfBudget) -> Value) -> fmt::Result {
    all.own.budget.as_ref().map_or(Ok(()), |one| to.value(&[], value(one)))
}

/// The parts of a ledger by the names of their states.
fn states(ledger: &LedgerRow) -> [(&'static str, u64); 4] {
    [
        ("user", ledger.user_ns),
        ("system", ledger.calls_on_cpu_ns),
        ("blocked", ledger.blocked_ns),
        ("run_queue", ledger.runnable_ns),
    ]
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn names_follow_the_conventions_of_prometheus() {
        let names: BTreeSet<&str> = METRICS.iter().map(|one| one.name).collect();
        assert_eq!(names.len(), METRICS.len());
        for one in METRICS {
            let is_plain = |c: char| c.is_ascii_lowercase() || c == '_';
            assert!(one.name.starts_with("iotomy_") && one.name.chars().all(is_plain), "{one:?}");
            assert_eq!(one.name.ends_with("_total"), one.kind == Kind::Counter, "{one:?}");
            let unit = if one.unit == In::Nothing { "" } else { "_" };
            let whole = format!("{}{unit}{}{}", one.stem(), one.unit.name(), one.kind.suffix());
            assert_eq!(whole, one.name);
            assert!(!one.help.is_empty() && !one.help.ends_with('.'), "{one:?}");
            assert!(!format!("{}{}", one.help, one.source).contains('|'), "{one:?}");
        }
    }
    #[test]
    fn bounds_in_texts_are_those_that_hold() {
        let help = |name: &str| METRICS.iter().find(|one| one.name == name).unwrap().help;
        let others = crate::service::MOST_OTHERS.to_string();
        assert!(help("iotomy_agent_services_in_other").contains(&others));
        let open = format!("because {} others", crate::server::MOST);
        assert!(help("iotomy_agent_connections_refused_total").contains(&open));
    }
}
