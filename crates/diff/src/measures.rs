//! The measures of each table.

use std::sync::LazyLock;

use iotomy_record::Call;
use iotomy_record::statistic::{Statistics, Unit};

/// A measure.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Measure {
    /// Its name in the record, with its unit.
    pub(crate) name: &'static str,
    pub(crate) kind: Kind,
}

/// What a measure is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A number that is exact: a row without these counts nothing.
    Count,
    /// A sum of times.
    Time,
    /// A property of the calls there were: unknown without any, and never per second.
    PerCall,
    /// The extent of a run: never per second.
    Extent,
}

const fn count(name: &'static str) -> Measure {
    Measure { name, kind: Kind::Count }
}

const fn time(name: &'static str) -> Measure {
    Measure { name, kind: Kind::Time }
}

const fn per_call(name: &'static str) -> Measure {
    Measure { name, kind: Kind::PerCall }
}

const fn extent(name: &'static str) -> Measure {
    Measure { name, kind: Kind::Extent }
}

/// Of whole runs of a command. Of a watch, the wall time is the watch's length.
pub(crate) const TOTALS: &[Measure] = &[
    time("wall_ns"),
    time("cpu_ns"),
    time("user_ns"),
    time("calls_on_cpu_ns"),
    time("blocked_ns"),
    time("runnable_ns"),
    count("calls"),
    count("errors"),
    count("bytes"),
    count("minor_faults"),
    count("major_faults"),
    count("storage_read_bytes"),
    extent("max_rss_bytes"),
    extent("processes"),
    extent("threads"),
];

pub(crate) const PROGRAM: &[Measure] = &[
    extent("processes"),
    time("thread_ns"),
    time("user_ns"),
    time("calls_on_cpu_ns"),
    time("blocked_ns"),
    time("runnable_ns"),
    count("calls"),
    count("minor_faults"),
    count("major_faults"),
];

/// The statistics that tables of calls show, and what follows from these and from distributions.
pub(crate) static CALL: LazyLock<Vec<Measure>> = LazyLock::new(|| {
    let shown = Call::shown().map(|(statistic, _)| match statistic.shape.unit {
        Unit::Time => time(statistic.name),
        Unit::Count | Unit::Bytes => count(statistic.name),
    });
    shown.chain(OF_EACH_CALL).collect()
});

const OF_EACH_CALL: [Measure; 13] = [
    per_call("mean_ns"),
    per_call("wall_p50_ns"),
    per_call("wall_p99_ns"),
    per_call("wall_p999_ns"),
    per_call("wall_max_ns"),
    per_call("on_cpu_p50_ns"),
    per_call("on_cpu_p99_ns"),
    per_call("on_cpu_p999_ns"),
    per_call("on_cpu_max_ns"),
    per_call("blocked_p50_ns"),
    per_call("blocked_p99_ns"),
    per_call("blocked_p999_ns"),
    per_call("blocked_max_ns"),
];

/// The sum of the times in which requests were in flight, side by side: not a part of any thread's time.
pub(crate) const RING_OPERATION: &[Measure] = &[
    count("submitted"),
    count("completed"),
    count("errors"),
    count("bytes"),
    count("inline"),
    count("polled"),
    count("worker"),
    count("sqpoll"),
    count("multishot_completions"),
    count("overflows"),
    time("wall_ns"),
    per_call("mean_ns"),
    per_call("wall_p50_ns"),
    per_call("wall_p99_ns"),
    per_call("wall_p999_ns"),
    per_call("wall_max_ns"),
];

pub(crate) const FILE: &[Measure] = &[
    count("read_calls"),
    count("read_bytes"),
    count("write_calls"),
    count("write_bytes"),
    count("map_calls"),
    count("mapped_bytes"),
];

pub(crate) const PEER: &[Measure] = &[
    extent("connections"),
    count("read_calls"),
    count("read_bytes"),
    count("write_calls"),
    count("write_bytes"),
];

/// Of runs that counted connections.
pub(crate) const CONNECTED_PEER: &[Measure] = &[
    extent("connections"),
    count("read_calls"),
    count("read_bytes"),
    count("write_calls"),
    count("write_bytes"),
    count("opened"),
    count("closed"),
    count("errors"),
    count("unfinished"),
    count("retransmits"),
    per_call("connect_mean_ns"),
    per_call("rtt_mean_ns"),
];

pub(crate) const GROUP: &[Measure] = &[
    count("calls"),
    count("errors"),
    count("bytes"),
    time("wall_ns"),
    per_call("mean_ns"),
    per_call("wall_max_ns"),
];

pub(crate) const THREAD: &[Measure] = &[
    extent("threads"),
    count("calls"),
    count("errors"),
    time("on_cpu_ns"),
    time("user_ns"),
    time("blocked_ns"),
    time("runnable_ns"),
    count("voluntary_switches"),
    count("involuntary_switches"),
];

pub(crate) const PATH: &[Measure] = &[count("calls"), time("wall_ns")];

pub(crate) const LAYER: &[Measure] = &[time("on_cpu_ns"), time("blocked_ns")];

pub(crate) const FUNCTION: &[Measure] = &[time("on_cpu_ns")];
