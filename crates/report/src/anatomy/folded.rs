//! Stacks as folded lines.
//!
//! A line is the program, the functions of user space if requested, the call, the stack from the
//! outside in, and its time in µs: on-CPU time by its share of the samples, blocked time exactly,
//! under a frame with its reason. Lines add up to the calls' time.

use std::collections::BTreeMap;

use iotomy_record::{Anatomy, Stack, StackKind, printable};

use super::stacks::{NOT_SAMPLED, is_of_callers_alone, stacks};

/// The record's stacks, folded: a line a stack, sorted.
pub fn folded(record: &Anatomy) -> String {
    let mut lines: BTreeMap<String, u128> = BTreeMap::new();
    for one in stacks(record, 0) {
        *lines.entry(line(&one.stack)).or_default() += one.ns;
    }
    let whole =
        |(line, ns): (String, u128)| (ns >= 1_000).then(|| format!("{line} {}\n", ns / 1_000));
    lines.into_iter().filter_map(whole).collect()
}

fn line(stack: &Stack) -> String {
    let mut frames = vec![frame(&stack.exec)];
    frames.extend(stack.user.iter().map(|name| frame(name)));
    if is_of_callers_alone(stack) {
        return frames.join(";");
    }
    frames.push(stack.syscall.as_deref().map_or_else(|| "[outside calls]".to_owned(), frame));
    if stack.kind == StackKind::Blocked {
        frames.push(format!("[blocked: {}]", frame(stack.reason.as_deref().unwrap_or("unknown"))));
    }
    frames.extend(stack.frames.iter().map(|name| match name.as_str() {
        NOT_SAMPLED => format!("[{NOT_SAMPLED}]"),
        name => frame(name),
    }));
    frames.join(";")
}

/// A name as a single frame, whatever it contains.
fn frame(name: &str) -> String {
    let name = printable(name, true).replace(';', ":");
    if name.is_empty() { "?".to_owned() } else { name }
}
