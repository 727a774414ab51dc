//! The table of requests over connections, by program, peer and role.

use std::collections::BTreeMap;

use iotomy_record::{Exchange, Role, Trace};

use crate::details::Rows;
use crate::measures::{self, per_call};
use crate::names::Names;
use crate::programs::Programs;
use crate::row::{Key, RowFacts};

pub(crate) fn requests(
    trace: &Trace,
    scale: f64,
    programs: &Programs<'_>,
    names: &Names,
) -> BTreeMap<Key, RowFacts> {
    let mut rows = Rows::<Exchange>::new();
    for row in &trace.requests {
        let program = programs.name(row.pid, &row.exec, row.image);
        let role = match row.ends.role {
            Some(Role::Accept) => "served",
            _ => "asked",
        };
        let peer = names.peer_of(&row.ends);
        rows.row(names, program, &peer, role.to_owned()).merge(row);
    }
    rows.done(|sum| facts(&sum, scale))
}

/// Requests go on side by side: the sum of their latencies is not a part of any thread's time.
fn facts(sum: &Exchange, scale: f64) -> RowFacts {
    let of_answered = |ns: f64| (sum.requests > 0).then_some(ns);
    let times = &sum.wall_times;
    let quantile = |share: f64| (!times.is_empty()).then(|| times.quantile(share) as f64);
    let mut measures = measures::compared(Some(sum), scale);
    measures.extend([
        per_call("mean_ns", of_answered(sum.wall_ns as f64 / sum.requests.max(1) as f64)),
        per_call("wall_p50_ns", quantile(0.5)),
        per_call("wall_p99_ns", quantile(0.99)),
        per_call("wall_p999_ns", quantile(0.999)),
        per_call("wall_max_ns", of_answered(sum.max_ns as f64)),
    ]);
    measures.extend(measures::means(sum, sum.requests));
    RowFacts { measures, ..RowFacts::default() }
}
