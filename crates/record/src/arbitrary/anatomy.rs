//! Random anatomies.

use proptest::collection::{btree_map, vec};
use proptest::option;
use proptest::prelude::*;

use super::{number, positive, text, trace};
use crate::*;

/// An anatomy that [`crate::store::parse_anatomy`] accepts.
pub fn anatomy() -> impl Strategy<Value = Anatomy> {
    let below = (option::of(super::block_io()), option::of(super::timelines()));
    (trace().boxed(), sampled().boxed(), below).prop_map(|(trace, sampled, (block, timelines))| {
        Anatomy {
            schema: Anatomy::SCHEMA.to_string(),
            started: "2025-03-01T10:20:30.5Z".to_string(),
            trace,
            sampling: sampled.sampling,
            calls: sampled.calls,
            stacks: sampled.stacks,
            block,
            timelines,
        }
    })
}

pub(super) fn sampled() -> impl Strategy<Value = Sampled> {
    (sampling().boxed(), vec(dissected(), 0..4).boxed(), vec(stack(), 0..4).boxed())
        .prop_map(|(sampling, calls, stacks)| Sampled { sampling, calls, stacks })
}

fn sampling() -> impl Strategy<Value = Sampling> {
    let counts = (number(), number(), number(), number(), number(), number(), number());
    let user = option::of((number(), number(), number(), number()));
    let all = (text(), any::<u32>(), counts, positive(), user);
    all.prop_map(|(event, hz, counts, price, user)| Sampling {
        event,
        hz,
        samples: counts.0,
        others: counts.1,
        lost: counts.2,
        lost_stacks: counts.3,
        lost_sleeps: counts.4,
        lost_names: counts.5,
        left_out: counts.6,
        price_ns_per_sample: price,
        user_stacks: user.map(|(samples, cut_short, lost, lost_mappings)| UserStacks {
            samples,
            cut_short,
            lost,
            lost_mappings,
        }),
    })
}

fn dissected() -> impl Strategy<Value = DissectedCall> {
    let times = (number(), number(), number());
    let whose = (any::<u32>(), text(), option::of(text()));
    (whose, times, vec(layer(), 0..4)).prop_map(|(whose, times, layers)| DissectedCall {
        pid: whose.0,
        exec: whose.1,
        image: (times.2 % 3) as u32,
        syscall: whose.2,
        on_cpu_ns: times.0,
        error_ns: times.2 % 5,
        blocked_ns: times.1,
        samples: times.2,
        layers,
    })
}

fn layer() -> impl Strategy<Value = Layer> {
    let times = (number(), number(), number(), number());
    let parts = (btree_map(text(), number(), 0..3), vec(function(), 0..3));
    (text(), times, parts).prop_map(|(layer, times, (waits, functions))| Layer {
        layer,
        on_cpu_ns: times.0,
        error_ns: times.1,
        samples: times.2,
        blocked_ns: times.3,
        waits,
        functions,
    })
}

fn function() -> impl Strategy<Value = Function> {
    (text(), number(), number()).prop_map(|(name, samples, on_cpu_ns)| Function {
        name,
        samples,
        on_cpu_ns,
    })
}

fn stack() -> impl Strategy<Value = Stack> {
    let whose = (any::<u32>(), text(), option::of(text()));
    let what = (any::<bool>(), text(), option::of(text()), vec(text(), 0..4), vec(text(), 0..4));
    (whose, what, number(), number()).prop_map(|(whose, what, samples, ns)| Stack {
        pid: whose.0,
        exec: whose.1,
        image: (samples % 3) as u32,
        syscall: whose.2,
        kind: if what.0 { StackKind::OnCpu } else { StackKind::Blocked },
        layer: what.1,
        reason: what.2,
        samples,
        ns,
        user: what.4,
        frames: what.3,
    })
}
