//! Samples as parts of the exact times of the trace.
//!
//! Pure. The invariant: the layers of a call add up to the call's on-CPU and blocked time, to the
//! last nanosecond. Time without a sample is a layer of its own.
//!
//! An operation of io_uring has no exact time: it is given its part of the time of the call that issued it,
//! and of io_uring's own threads, whose sums stay what they are.

use std::collections::{BTreeMap, HashMap};

use iotomy_record::{Call, DissectedCall, Function, Layer, LedgerRow, Stack, StackKind};

use super::layers::{NOT_SAMPLED, UNKNOWN};
use super::samples::{Image, LeftOut};
use crate::ring_names::{self, NO_REQUEST};

/// A stack with its names, whose `ns` counts sleeps only.
pub(super) struct Named {
    pub(super) stack: Stack,
    /// The call whose exact time it is a part of, or [`NO_REQUEST`]; where it is not at an operation of
    /// io_uring, the stack's own.
    pub(super) call: Option<String>,
}

/// Functions a layer keeps, the hottest; the stacks have them all.
const FUNCTIONS: usize = 8;

/// A call of an image, or the time outside its calls.
type Key = (Image, Option<String>);

#[derive(Default)]
struct Whole {
    on_cpu_ns: u64,
    blocked_ns: u64,
    stacks: Vec<Stack>,
}

/// Splits every call of the trace, and the time outside calls, by the samples in it. What was seen
/// in calls that are not counted is in neither.
pub(super) fn split(
    calls: &[Call],
    ledger: &[LedgerRow],
    left_out: &HashMap<Image, LeftOut>,
    found: Vec<Named>,
) -> (Vec<DissectedCall>, Vec<Stack>) {
    let mut wholes = wholes(calls, ledger, left_out);
    for Named { stack, call } in found {
        let key = ((stack.pid, stack.exec.clone(), stack.image), call);
        wholes.entry(key).or_default().stacks.push(stack);
    }
    let mut rows: BTreeMap<Key, DissectedCall> = BTreeMap::new();
    let mut stacks = Vec::new();
    for ((image, call), mut whole) in wholes {
        whole.stacks = alike(whole.stacks);
        scale(&mut whole.stacks, StackKind::OnCpu, whole.on_cpu_ns);
        scale(&mut whole.stacks, StackKind::Blocked, whole.blocked_ns);
        for (syscall, part) in whole.parts(call) {
            let key = (image.clone(), syscall);
            let row =
                rows.entry(key).or_insert_with_key(|((pid, exec, image), syscall)| DissectedCall {
                    pid: *pid,
                    exec: exec.clone(),
                    image: *image,
                    syscall: syscall.clone(),
                    ..DissectedCall::default()
                });
            merge(row, part);
        }
        stacks.append(&mut whole.stacks);
    }
    let mut dissected: Vec<DissectedCall> =
        rows.into_values().filter(|row| row.on_cpu_ns + row.blocked_ns + row.samples > 0).collect();
    for row in &mut dissected {
        row.layers.sort_by_key(|layer| std::cmp::Reverse(layer.on_cpu_ns + layer.blocked_ns));
    }
    dissected.sort_by_key(|row| std::cmp::Reverse(row.on_cpu_ns + row.blocked_ns));
    stacks.sort_by_key(|stack| std::cmp::Reverse(stack.ns));
    (dissected, stacks)
}

/// The exact times. An image's time outside calls is the ledger's less that of its calls.
fn wholes(
    calls: &[Call],
    ledger: &[LedgerRow],
    left_out: &HashMap<Image, LeftOut>,
) -> BTreeMap<Key, Whole> {
    let mut wholes: BTreeMap<Key, Whole> = BTreeMap::new();
    let mut outside: BTreeMap<Image, Whole> = BTreeMap::new();
    for row in ledger {
        let whole = outside.entry((row.pid, row.exec.clone(), row.image)).or_default();
        whole.on_cpu_ns += row.user_ns;
        whole.blocked_ns += row.blocked_ns;
        if row.worker_ns > 0 {
            let image = (row.pid, row.exec.clone(), row.image);
            let key = (image, Some(NO_REQUEST.to_owned()));
            wholes.entry(key).or_default().on_cpu_ns += row.worker_ns;
        }
    }
    for (image, one) in left_out {
        if let Some(outside) = outside.get_mut(image) {
            outside.blocked_ns = outside.blocked_ns.saturating_sub(one.blocked_ns);
        }
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
    type Names = (Option<String>, StackKind, String, Option<String>, Vec<String>, Vec<String>);
    let mut by_names: BTreeMap<Names, Stack> = BTreeMap::new();
    for stack in stacks {
        let Stack { syscall, kind, layer, reason, user, frames, .. } = stack.clone();
        let names = (syscall, kind, layer, reason, user, frames);
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

fn samples(stacks: &[&Stack]) -> u64 {
    stacks.iter().filter(|s| s.kind == StackKind::OnCpu).map(|s| s.samples).sum()
}

impl Whole {
    /// The call itself, and what in it is for operations of io_uring.
    fn parts(&self, call: Option<String>) -> BTreeMap<Option<String>, DissectedCall> {
        let all: Vec<&Stack> = self.stacks.iter().collect();
        let all = samples(&all);
        let own = match &call {
            // Whether they had one is not known without a sample.
            Some(name) if name == NO_REQUEST && all == 0 => Some(ring_names::call(None)),
            _ => call,
        };
        let mut by_name: BTreeMap<Option<String>, Vec<&Stack>> = BTreeMap::new();
        by_name.entry(own.clone()).or_default();
        for stack in &self.stacks {
            by_name.entry(stack.syscall.clone()).or_default().push(stack);
        }
        let is_split = by_name.len() > 1;
        let given =
            |kind| self.stacks.iter().filter(move |s| s.kind == kind).map(|s| s.ns).sum::<u64>();
        let unseen = self.on_cpu_ns - given(StackKind::OnCpu);
        let unslept = self.blocked_ns - given(StackKind::Blocked);
        let part = |(name, stacks): (Option<String>, Vec<&Stack>)| {
            let rest = if name == own { (unseen, unslept) } else { (0, 0) };
            let layers = layers(&stacks, rest, (all, self.on_cpu_ns));
            let samples = samples(&stacks);
            let row = DissectedCall {
                on_cpu_ns: layers.iter().map(|layer| layer.on_cpu_ns).sum(),
                blocked_ns: layers.iter().map(|layer| layer.blocked_ns).sum(),
                error_ns: if is_split { error(samples, all, self.on_cpu_ns) } else { 0 },
                samples,
                layers,
                ..DissectedCall::default()
            };
            (name, row)
        };
        by_name.into_iter().map(part).collect()
    }
}

/// Adds what another whole has of the same operation. Errors of independent samples are added squared.
fn merge(row: &mut DissectedCall, part: DissectedCall) {
    let both = |one: u64, other: u64| (one as f64).hypot(other as f64) as u64;
    row.on_cpu_ns += part.on_cpu_ns;
    row.blocked_ns += part.blocked_ns;
    row.samples += part.samples;
    row.error_ns = both(row.error_ns, part.error_ns);
    for layer in part.layers {
        let Some(known) = row.layers.iter_mut().find(|known| known.layer == layer.layer) else {
            row.layers.push(layer);
            continue;
        };
        known.on_cpu_ns += layer.on_cpu_ns;
        known.blocked_ns += layer.blocked_ns;
        known.samples += layer.samples;
        known.error_ns = both(known.error_ns, layer.error_ns);
        for (what, ns) in layer.waits {
            *known.waits.entry(what).or_default() += ns;
        }
        for function in layer.functions {
            let at = function_at(known, &function.name);
            known.functions[at].samples += function.samples;
            known.functions[at].on_cpu_ns += function.on_cpu_ns;
        }
        hottest(known);
    }
}

/// Layers of stacks, with the time of which no stack tells. `all`: the samples and the time that these
/// are part of.
fn layers(stacks: &[&Stack], (unseen, unslept): (u64, u64), all: (u64, u64)) -> Vec<Layer> {
    let mut by_name: BTreeMap<&str, Layer> = BTreeMap::new();
    for stack in stacks {
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
    if unseen > 0 {
        let layer = by_name.entry(NOT_SAMPLED).or_default();
        layer.on_cpu_ns += unseen;
        layer.error_ns = unseen;
    }
    if unslept > 0 {
        by_name.entry(UNKNOWN).or_default().blocked_ns += unslept;
    }
    let named = by_name.into_iter().map(|(name, mut layer)| {
        layer.layer = name.to_owned();
        if layer.samples > 0 {
            layer.error_ns = error(layer.samples, all.0, all.1);
        }
        hottest(&mut layer);
        layer
    });
    let mut layers: Vec<Layer> = named.collect();
    layers.sort_by_key(|layer| std::cmp::Reverse(layer.on_cpu_ns + layer.blocked_ns));
    layers
}

fn hottest(layer: &mut Layer) {
    layer.functions.sort_by_key(|function| std::cmp::Reverse(function.samples));
    layer.functions.truncate(FUNCTIONS);
}

fn function_at(layer: &mut Layer, name: &str) -> usize {
    let at = layer.functions.iter().position(|function| function.name == name);
    at.unwrap_or_else(|| {
        layer.functions.push(Function { name: name.to_owned(), ..Function::default() });
        layer.functions.len() - 1
    })
}

fn add_function(layer: &mut Layer, stack: &Stack) {
    let Some(name) = stack.frames.last() else { return };
    let at = function_at(layer, name);
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
        let stack = Stack {
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
        };
        Named { stack, call: Some("write".into()) }
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
        let (calls, stacks) =
            split(&[write(1_000, 500)], &[ledger(50, 600)], &HashMap::new(), found);
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
        second.stack.image = 2;
        let (calls, stacks) =
            split(&[image(1), image(2)], &[row(1), row(2)], &HashMap::new(), vec![second]);
        let of: Vec<_> =
            calls.iter().map(|row| (row.image, row.syscall.is_some(), row.on_cpu_ns)).collect();
        assert_eq!(of, [(2, true, 2_000), (1, true, 1_000), (2, false, 20), (1, false, 10)]);
        assert_eq!((calls[0].samples, calls[1].samples), (1, 0));
        assert_eq!((stacks.len(), stacks[0].image, stacks[0].ns), (1, 2, 2_000));
    }

    #[test]
    fn sleeps_in_calls_that_are_left_out_are_not_outside_calls() {
        let image = (7, "dd".to_owned(), 0);
        let left_out = HashMap::from([(image, LeftOut { samples: 3, blocked_ns: 80 })]);
        let (calls, _) = split(&[write(1_000, 500)], &[ledger(50, 600)], &left_out, Vec::new());
        let outside = calls.iter().find(|row| row.syscall.is_none()).unwrap();
        assert_eq!((outside.on_cpu_ns, outside.blocked_ns, outside.samples), (50, 20, 0));
    }

    #[test]
    fn an_operation_has_its_part_of_the_call_that_issued_it_and_of_the_workers() {
        let of = |samples: u64, of: &str, call: &str| {
            let mut named = stack(StackKind::OnCpu, "VFS", samples, 0, "vfs_write");
            named.stack.syscall = Some(of.into());
            Named { call: Some(call.into()), ..named }
        };
        let found = vec![
            of(1, "write", "write"),
            of(3, "ring:read", "write"),
            of(1, "ring:read", NO_REQUEST),
            of(1, NO_REQUEST, NO_REQUEST),
        ];
        let ledger = LedgerRow { worker_ns: 600, ..ledger(50, 500) };
        let (calls, stacks) = split(&[write(1_000, 500)], &[ledger], &HashMap::new(), found);
        let row = |name: &str| {
            calls.iter().find(|row| row.syscall.as_deref() == Some(name)).unwrap().clone()
        };
        let (read, rest) = (row("ring:read"), row(NO_REQUEST));
        assert_eq!((read.on_cpu_ns, read.samples, read.layers[0].on_cpu_ns), (1_050, 4, 1_050));
        assert_eq!((row("write").on_cpu_ns, row("write").blocked_ns), (250, 500));
        assert_eq!((rest.on_cpu_ns, rest.layers.len()), (300, 1));
        assert!(read.error_ns > 0 && row("write").error_ns > 0 && read.layers.len() == 1);
        assert_eq!(stacks.iter().map(|stack| stack.ns).sum::<u64>(), 1_600);
    }

    #[test]
    fn the_time_of_io_urings_threads_without_a_sample_is_of_no_known_operation() {
        let ledger = LedgerRow { worker_ns: 600, ..ledger(50, 0) };
        let (calls, _) = split(&[], &[ledger], &HashMap::new(), Vec::new());
        let row = calls.iter().find(|row| row.syscall.is_some()).unwrap();
        assert_eq!(row.syscall.as_deref(), Some("ring:unknown operation"));
        assert_eq!((row.on_cpu_ns, row.layers[0].layer.as_str()), (600, NOT_SAMPLED));
    }

    #[test]
    fn stacks_of_the_same_names_are_one() {
        let found = vec![
            stack(StackKind::OnCpu, "VFS", 1, 0, "vfs_write"),
            stack(StackKind::OnCpu, "VFS", 4, 0, "vfs_write"),
        ];
        let (calls, stacks) = split(&[write(1_000, 0)], &[], &HashMap::new(), found);
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
