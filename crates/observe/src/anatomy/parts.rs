//! Samples as parts of the exact times of the trace.
//!
//! Pure. The invariant: the layers of a call add up to the call's on-CPU and blocked time, to the
//! last nanosecond. Time without a sample is a layer of its own.

use std::collections::BTreeMap;

use iotomy_record::{Call, DissectedCall, Function, Layer, LedgerRow, Stack, StackKind};

use super::layers::{NOT_SAMPLED, UNKNOWN};

/// A stack with its names, whose `ns` counts sleeps only.
pub(super) struct Named(pub(super) Stack);

/// Functions a layer keeps, the hottest; the stacks have them all.
const FUNCTIONS: usize = 8;

/// A program image: process id, name, and which of that name it is.
type Image = (u32, String, u32);

/// A call of an image, or the time outside its calls.
type Key = (Image, Option<String>);

#[derive(Default)]
struct Whole {
    on_cpu_ns: u64,
    blocked_ns: u64,
    stacks: Vec<Stack>,
}

/// Splits every call of the trace, and the time outside calls, by the samples in it.
pub(super) fn split(
    calls: &[Call],
    ledger: &[LedgerRow],
    found: Vec<Named>,
) -> (Vec<DissectedCall>, Vec<Stack>) {
    let mut wholes = wholes(calls, ledger);
    for Named(stack) in found {
        let key = ((stack.pid, stack.exec.clone(), stack.image), stack.syscall.clone());
        wholes.entry(key).or_default().stacks.push(stack);
    }
    let mut dissected = Vec::new();
    let mut stacks = Vec::new();
    for (((pid, exec, image), syscall), mut whole) in wholes {
        whole.stacks = alike(whole.stacks);
        scale(&mut whole.stacks, StackKind::OnCpu, whole.on_cpu_ns);
        scale(&mut whole.stacks, StackKind::Blocked, whole.blocked_ns);
        let samples = samples(&whole.stacks);
        if whole.on_cpu_ns + whole.blocked_ns + samples > 0 {
            let layers = layers(&whole);
            let Whole { on_cpu_ns, blocked_ns, .. } = whole;
            dissected.push(DissectedCall {
                pid,
                exec,
                image,
                syscall,
                on_cpu_ns,
                blocked_ns,
                samples,
                layers,
            });
        }
        stacks.append(&mut whole.stacks);
    }
    dissected.sort_by_key(|row| std::cmp::Reverse(row.on_cpu_ns + row.blocked_ns));
    stacks.sort_by_key(|stack| std::cmp::Reverse(stack.ns));
    (dissected, stacks)
}

/// The exact times. An image's time outside calls is the ledger's less that of its calls.
fn wholes(calls: &[Call], ledger: &[LedgerRow]) -> BTreeMap<Key, Whole> {
    let mut wholes: BTreeMap<Key, Whole> = BTreeMap::new();
    let mut outside: BTreeMap<Image, Whole> = BTreeMap::new();
    for row in ledger {
        let whole = outside.entry((row.pid, row.exec.clone(), row.image)).or_default();
        whole.on_cpu_ns += row.user_ns;
        whole.blocked_ns += row.blocked_ns;
    }
    for call in calls {
        let image = (call.pid, call.exec.clone(), call.image);
        let outside = outside.get_mut(&image);
        let whole = wholes.entry((image, Some(call.syscall.clone()))).or_default();
        whole.on_cpu_ns += call.on_cpu_ns.unwrap_or(0);
        let blocked = call.blocked_ns.unwrap_or(0);
        whole.blocked_ns += blocked;
        if let Some(outside) = outside {
            outside.blocked_ns = outside.blocked_ns.saturating_sub(blocked);
        }
    }
    wholes.extend(outside.into_iter().map(|(image, whole)| ((image, None), whole)));
    wholes
}

/// Stacks with the same names are one.
fn alike(stacks: Vec<Stack>) -> Vec<Stack> {
    type Names = (StackKind, String, Option<String>, Vec<String>, Vec<String>);
    let mut by_names: BTreeMap<Names, Stack> = BTreeMap::new();
    for stack in stacks {
        let Stack { kind, layer, reason, user, frames, .. } = stack.clone();
        let names = (kind, layer, reason, user, frames);
        by_names
            .entry(names)
            .and_modify(|known| {
                known.samples += stack.samples;
                known.ns += stack.ns;
            })
            .or_insert(stack);
    }
    by_names.into_values().collect()
}

/// Gives the stacks of a kind their parts of `whole`: in the proportion of the samples, or of the
/// sleeps' own time, which falls short of the whole only where sleeps were lost.
fn scale(stacks: &mut [Stack], kind: StackKind, whole: u64) {
    let of_kind = || stacks.iter().filter(|stack| stack.kind == kind);
    let weight = |stack: &Stack| match kind {
        StackKind::OnCpu => u128::from(stack.samples),
        StackKind::Blocked => u128::from(stack.ns),
    };
    let known: u128 = of_kind().map(weight).sum();
    let total = match kind {
        StackKind::OnCpu => u128::from(whole),
        StackKind::Blocked => u128::from(whole).min(known),
    };
    let (mut so_far, mut given) = (0u128, 0u128);
    for stack in stacks.iter_mut().filter(|stack| stack.kind == kind) {
        so_far += weight(stack);
        let until = (total * so_far).checked_div(known).unwrap_or(0);
        stack.ns = u64::try_from(until - given).unwrap_or(u64::MAX);
        given = until;
    }
}

fn samples(stacks: &[Stack]) -> u64 {
    stacks.iter().filter(|s| s.kind == StackKind::OnCpu).map(|s| s.samples).sum()
}

fn layers(whole: &Whole) -> Vec<Layer> {
    let mut by_name: BTreeMap<&str, Layer> = BTreeMap::new();
    for stack in &whole.stacks {
        let layer = by_name.entry(&stack.layer).or_default();
        match stack.kind {
            StackKind::OnCpu => {
                layer.on_cpu_ns += stack.ns;
                layer.samples += stack.samples;
                add_function(layer, stack);
            }
            StackKind::Blocked => {
                layer.blocked_ns += stack.ns;
                let reason = stack.reason.clone().unwrap_or_default();
                *layer.waits.entry(reason).or_default() += stack.ns;
            }
        }
    }
    let seen = |part: fn(&Layer) -> u64| by_name.values().map(part).sum::<u64>();
    let unseen = whole.on_cpu_ns - seen(|layer| layer.on_cpu_ns);
    let unslept = whole.blocked_ns - seen(|layer| layer.blocked_ns);
    if unseen > 0 {
        let layer = by_name.entry(NOT_SAMPLED).or_default();
        layer.on_cpu_ns += unseen;
        layer.error_ns = unseen;
    }
    if unslept > 0 {
        by_name.entry(UNKNOWN).or_default().blocked_ns += unslept;
    }
    let all = samples(&whole.stacks);
    let named = by_name.into_iter().map(|(name, mut layer)| {
        layer.layer = name.to_owned();
        if layer.samples > 0 {
            layer.error_ns = error(layer.samples, all, whole.on_cpu_ns);
        }
        layer.functions.sort_by_key(|function| std::cmp::Reverse(function.samples));
        layer.functions.truncate(FUNCTIONS);
        layer
    });
    let mut layers: Vec<Layer> = named.collect();
    layers.sort_by_key(|layer| std::cmp::Reverse(layer.on_cpu_ns + layer.blocked_ns));
    layers
}

fn add_function(layer: &mut Layer, stack: &Stack) {
    let Some(name) = stack.frames.last() else { return };
    let at = layer.functions.iter().position(|function| function.name == *name);
    let at = at.unwrap_or_else(|| {
        layer.functions.push(Function { name: name.clone(), ..Function::default() });
        layer.functions.len() - 1
    });
    layer.functions[at].samples += stack.samples;
    layer.functions[at].on_cpu_ns += stack.ns;
}

/// Half the width of the interval that holds the true part 95 times in 100, when `hits` of `all`
/// independent samples fell into it (Wilson's, which is right for few samples, too).
fn error(hits: u64, all: u64, whole: u64) -> u64 {
    const Z: f64 = 1.96;
    let (n, p) = (all as f64, hits as f64 / all as f64);
    let half = Z / (1.0 + Z * Z / n) * (p * (1.0 - p) / n + Z * Z / (4.0 * n * n)).sqrt();
    (half.min(1.0) * whole as f64) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stack(kind: StackKind, layer: &str, samples: u64, ns: u64, function: &str) -> Named {
        Named(Stack {
            pid: 7,
            exec: "dd".into(),
            image: 0,
            syscall: Some("write".into()),
            kind,
            layer: layer.into(),
            reason: (kind == StackKind::Blocked).then(|| "device".into()),
            samples,
            ns,
            user: Vec::new(),
            frames: vec!["ksys_write".into(), function.into()],
        })
    }

    fn write(on_cpu: u64, blocked: u64) -> Call {
        Call {
            pid: 7,
            exec: "dd".into(),
            syscall: "write".into(),
            on_cpu_ns: Some(on_cpu),
            blocked_ns: Some(blocked),
            ..Call::default()
        }
    }

    fn ledger(user: u64, blocked: u64) -> LedgerRow {
        LedgerRow {
            pid: 7,
            exec: "dd".into(),
            user_ns: user,
            blocked_ns: blocked,
            ..LedgerRow::default()
        }
    }

    #[test]
    fn layers_add_up_to_the_call_to_the_last_nanosecond() {
        let found = vec![
            stack(StackKind::OnCpu, "VFS", 1, 0, "vfs_write"),
            stack(StackKind::OnCpu, "pipe", 2, 0, "pipe_write"),
            stack(StackKind::Blocked, "pipe", 3, 400, "schedule"),
        ];
        let (calls, stacks) = split(&[write(1_000, 500)], &[ledger(50, 600)], found);
        let call = &calls[0];
        assert_eq!(call.layers.iter().map(|l| l.on_cpu_ns).sum::<u64>(), 1_000);
        assert_eq!(call.layers.iter().map(|l| l.blocked_ns).sum::<u64>(), 500);
        assert_eq!((call.samples, call.layers[0].layer.as_str()), (3, "pipe"));
        assert_eq!(call.layers[0].waits["device"], 400);
        assert_eq!(stacks.iter().map(|s| s.ns).sum::<u64>(), 1_400);
        let outside = calls.iter().find(|row| row.syscall.is_none()).unwrap();
        assert_eq!((outside.on_cpu_ns, outside.blocked_ns), (50, 100));
        assert_eq!(outside.layers[0].layer, "unknown");
        assert_eq!(outside.layers[1].layer, NOT_SAMPLED);
    }

    #[test]
    fn two_images_of_one_name_in_a_process_are_two() {
        let image = |image: u32| Call { image, ..write(1_000 * u64::from(image), 0) };
        let row = |image: u32| LedgerRow { image, ..ledger(10 * u64::from(image), 0) };
        let mut second = stack(StackKind::OnCpu, "VFS", 1, 0, "vfs_write");
        second.0.image = 2;
        let (calls, stacks) = split(&[image(1), image(2)], &[row(1), row(2)], vec![second]);
        let of: Vec<_> =
            calls.iter().map(|row| (row.image, row.syscall.is_some(), row.on_cpu_ns)).collect();
        assert_eq!(of, [(2, true, 2_000), (1, true, 1_000), (2, false, 20), (1, false, 10)]);
        assert_eq!((calls[0].samples, calls[1].samples), (1, 0));
        assert_eq!((stacks.len(), stacks[0].image, stacks[0].ns), (1, 2, 2_000));
    }

    #[test]
    fn stacks_of_the_same_names_are_one() {
        let found = vec![
            stack(StackKind::OnCpu, "VFS", 1, 0, "vfs_write"),
            stack(StackKind::OnCpu, "VFS", 4, 0, "vfs_write"),
        ];
        let (calls, stacks) = split(&[write(1_000, 0)], &[], found);
        assert_eq!((stacks.len(), stacks[0].samples, stacks[0].ns), (1, 5, 1_000));
        assert_eq!(calls[0].layers[0].functions[0].samples, 5);
    }

    #[test]
    fn errors_shrink_with_samples_and_are_never_nothing() {
        assert!(error(5, 10, 1_000) > error(500, 1_000, 1_000));
        assert!(error(10, 10, 1_000) > 100);
        assert!((29..=32).contains(&error(500, 1_000, 1_000)));
    }
}
