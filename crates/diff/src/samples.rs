//! The sampled figures of an anatomy: layers by call, functions by layer.

use iotomy_record::{Anatomy, StackKind};

use crate::facts::{RunFacts, scale};
use crate::measures::time;
use crate::row::RowFacts;

/// The call of time outside calls.
const OUTSIDE: &str = "outside calls";

/// Half the width of an interval of 95 %, in standard deviations; of a count, the root of it.
const WIDE: f64 = 1.96;

/// So many samples at most, 95 times in 100, where none was seen.
const NONE_SEEN: f64 = 3.0;

/// Adds the layers and functions of an anatomy.
pub(crate) fn add(facts: &mut RunFacts, anatomy: &Anatomy, per_second: bool) {
    let scale = scale(&anatomy.trace, per_second);
    let (mut sampled_ns, mut samples) = (0.0, 0.0);
    for call in &anatomy.calls {
        for layer in &call.layers {
            let of = call.syscall.as_deref().unwrap_or(OUTSIDE).to_owned();
            let row = facts.layers.entry((String::new(), layer.layer.clone(), of)).or_default();
            let parts =
                [("on_cpu_ns", layer.on_cpu_ns), ("blocked_ns", layer.blocked_ns)].into_iter();
            let sum = |at: usize| row.measures.get(at).and_then(|one| one.value).unwrap_or(0.0);
            let summed =
                parts.enumerate().map(|(at, (name, ns))| time(name, sum(at) + ns as f64 * scale));
            row.measures = summed.collect();
            // Errors of independent samples.
            row.sampling_error = row.sampling_error.hypot(layer.error_ns as f64 * scale);
            sampled_ns += layer.on_cpu_ns as f64 * scale;
            samples += layer.samples as f64;
        }
    }
    facts.unseen = if samples > 0.0 { NONE_SEEN * sampled_ns / samples } else { 0.0 };
    let mut hits: std::collections::BTreeMap<_, (f64, f64)> = std::collections::BTreeMap::new();
    for stack in anatomy.stacks.iter().filter(|stack| stack.kind == StackKind::OnCpu) {
        let Some(function) = stack.frames.last() else { continue };
        let sum = hits.entry((String::new(), function.clone(), stack.layer.clone())).or_default();
        *sum = (sum.0 + stack.ns as f64 * scale, sum.1 + stack.samples as f64);
    }
    facts.functions = hits
        .into_iter()
        .map(|(key, (ns, samples))| {
            let sampling_error = WIDE * ns / samples.max(1.0).sqrt();
            (
                key,
                RowFacts {
                    measures: vec![time("on_cpu_ns", ns)],
                    sampling_error,
                    ..RowFacts::default()
                },
            )
        })
        .collect();
}
