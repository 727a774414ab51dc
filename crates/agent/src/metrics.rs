//! The declarations of all metrics: exposition, the guide, the tests of rules and of the dashboard follow from them.
//!
//! A name and its labels are part of the interface: they are added, never changed or removed.

use prometheus_client::metrics::MetricType;
use prometheus_client::registry::Unit;

/// What a metric is to Prometheus.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// It only grows while the agent runs.
    Counter,
    /// A value of now.
    Gauge,
    /// Counts by upper bounds, with their sum.
    Histogram,
    /// 1, with facts as labels.
    Info,
}

/// The unit of a metric, which its name ends with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum In {
    /// A count, or a yes or no.
    Nothing,
    /// Seconds.
    Seconds,
    /// Bytes.
    Bytes,
}

/// A metric.
#[derive(Debug, Clone, Copy)]
pub struct Metric {
    /// Its name as queries have it, without `_bucket`, `_sum` and `_count`.
    pub name: &'static str,
    /// What it is.
    pub kind: Kind,
    /// Its unit.
    pub unit: In,
    /// Its labels.
    pub labels: &'static [&'static str],
    /// What it counts, as scrapes have it.
    pub help: &'static str,
    /// Where its value comes from.
    pub source: &'static str,
}

impl Kind {
    /// The word of the exposition format.
    pub fn name(self) -> &'static str {
        match self {
            Self::Counter => "counter",
            Self::Gauge => "gauge",
            Self::Histogram => "histogram",
            Self::Info => "info",
        }
    }

    pub(crate) fn metric_type(self) -> MetricType {
        match self {
            Self::Counter => MetricType::Counter,
            Self::Gauge => MetricType::Gauge,
            Self::Histogram => MetricType::Histogram,
            Self::Info => MetricType::Info,
        }
    }

    /// The end of the names of its samples that the encoder adds.
    fn suffix(self) -> &'static str {
        match self {
            Self::Counter => "_total",
            Self::Info => "_info",
            Self::Gauge | Self::Histogram => "",
        }
    }
}

impl In {
    /// The word of the exposition format; empty for none.
    pub fn name(self) -> &'static str {
        match self {
            Self::Nothing => "",
            Self::Seconds => "seconds",
            Self::Bytes => "bytes",
        }
    }

    pub(crate) fn unit(self) -> Option<&'static Unit> {
        match self {
            Self::Nothing => None,
            Self::Seconds => Some(&Unit::Seconds),
            Self::Bytes => Some(&Unit::Bytes),
        }
    }
}

impl Metric {
    /// The name without what the encoder adds: the unit, and `_total` or `_info`.
    pub(crate) fn stem(&self) -> &'static str {
        let name = self.name.strip_suffix(self.kind.suffix()).unwrap_or(self.name);
        let unit = name.strip_suffix(self.unit.name()).filter(|_| self.unit != In::Nothing);
        unit.and_then(|stem| stem.strip_suffix('_')).unwrap_or(name)
    }

    /// The names that its samples have.
    pub fn sample_names(&self) -> Vec<String> {
        match self.kind {
            Kind::Histogram => {
                ["_bucket", "_sum", "_count"].map(|end| format!("{}{end}", self.name)).into()
            }
            _ => vec![self.name.to_owned()],
        }
    }
}

const fn metric(
    name: &'static str,
    (kind, unit): (Kind, In),
    labels: &'static [&'static str],
    help: &'static str,
    source: &'static str,
) -> Metric {
    Metric { name, kind, unit, labels, help, source }
}

const COUNT: (Kind, In) = (Kind::Counter, In::Nothing);
const SECONDS: (Kind, In) = (Kind::Counter, In::Seconds);
const NUMBER: (Kind, In) = (Kind::Gauge, In::Nothing);

pub(crate) static CALLS: Metric = metric(
    "iotomy_calls_total",
    COUNT,
    &["service", "call"],
    "System calls that returned",
    "`calls` of a trace",
);

pub(crate) static ERRORS: Metric = metric(
    "iotomy_call_errors_total",
    COUNT,
    &["service", "call", "errno"],
    "Of iotomy_calls_total, calls that returned an error",
    "`error_kinds` of a trace; 16 errors of a call at most, the others are `other`",
);

pub(crate) static BYTES: Metric = metric(
    "iotomy_call_bytes_total",
    (Kind::Counter, In::Bytes),
    &["service", "call", "direction"],
    "Bytes that system calls moved, of calls that return such a count",
    "`bytes` of a trace; `read` is to the program, `write` is from it, `copy` is between descriptors",
);

pub(crate) static DURATION: Metric = metric(
    "iotomy_call_duration_seconds",
    (Kind::Histogram, In::Seconds),
    &["service", "call"],
    "Time from entry to return, of the calls of iotomy_calls_total",
    "`wall_times` of a trace",
);

pub(crate) static THREAD_TIME: Metric = metric(
    "iotomy_thread_seconds_total",
    SECONDS,
    &["service"],
    "Lifetimes of threads while watched, summed",
    "`thread_ns` of the ledger",
);

pub(crate) static THREAD_STATE: Metric = metric(
    "iotomy_thread_state_seconds_total",
    SECONDS,
    &["service", "state"],
    "Of iotomy_thread_seconds_total, time by state",
    "the ledger: `user` is `user_ns`, `system` is `calls_on_cpu_ns`, `blocked` is `blocked_ns`, `run_queue` is `runnable_ns`",
);

pub(crate) static LOST: Metric = metric(
    "iotomy_lost_events_total",
    COUNT,
    &[],
    "Calls and threads that found no room in a table of the kernel, and are in no other metric",
    "`lost_events` of a trace",
);

pub(crate) static BUILD: Metric = metric(
    "iotomy_agent_build_info",
    (Kind::Info, In::Nothing),
    &["version"],
    "The version of the agent",
    "the program",
);

pub(crate) static START: Metric = metric(
    "iotomy_agent_start_time_seconds",
    (Kind::Gauge, In::Seconds),
    &[],
    "When the agent began to count, since the epoch",
    "the system's clock then",
);

pub(crate) static CPU: Metric = metric(
    "iotomy_agent_cpu_seconds_total",
    SECONDS,
    &[],
    "CPU time of the agent's own process",
    "`CLOCK_PROCESS_CPUTIME_ID`; what its BPF programs take is part of the watched calls",
);

pub(crate) static OVERHEAD: Metric = metric(
    "iotomy_agent_call_overhead_seconds",
    (Kind::Gauge, In::Seconds),
    &["bound"],
    "Time that watching adds to a call, measured when the watch began",
    "the calibration: `low` is the least, `high` the most",
);

pub(crate) static WATCHES: Metric = metric(
    "iotomy_agent_watches_total",
    COUNT,
    &[],
    "Watches that began: 1, and one more for each reload that chose other control groups",
    "the agent",
);

pub(crate) static SCRAPES: Metric = metric(
    "iotomy_agent_scrapes_total",
    COUNT,
    &[],
    "Scrapes that were answered with metrics, this one included",
    "the agent",
);

pub(crate) static REFUSED: Metric = metric(
    "iotomy_agent_connections_refused_total",
    COUNT,
    &[],
    "Connections that were closed at once because 64 others were open",
    "the agent",
);

pub(crate) static CUT: Metric = metric(
    "iotomy_agent_connections_cut_total",
    COUNT,
    &[],
    "Connections that were closed because the client was too slow or sent no valid request",
    "the agent",
);

pub(crate) static SERVICES: Metric = metric(
    "iotomy_agent_services",
    NUMBER,
    &[],
    "Services that have labels of their own",
    "the agent",
);

pub(crate) static IN_OTHER: Metric = metric(
    "iotomy_agent_services_in_other",
    NUMBER,
    &[],
    "Services that are added up as `other`, because max-services have labels; 4096 stands for any larger number",
    "the agent",
);

pub(crate) static RELOADED: Metric = metric(
    "iotomy_agent_config_last_reload_successful",
    NUMBER,
    &[],
    "1, or 0 where the configuration could not be followed at the last SIGHUP",
    "the agent",
);

/// Every metric, in the order of scrapes.
pub static METRICS: [&Metric; 18] = [
    &CALLS,
    &ERRORS,
    &BYTES,
    &DURATION,
    &THREAD_TIME,
    &THREAD_STATE,
    &LOST,
    &BUILD,
    &START,
    &CPU,
    &OVERHEAD,
    &WATCHES,
    &SCRAPES,
    &REFUSED,
    &CUT,
    &SERVICES,
    &IN_OTHER,
    &RELOADED,
];

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
}
