//! The filter of calls as the kernel side has it (`where.h`).
//!
//! The instructions of a condition take the place of those that `condition` of `where.bpf.h`, or
//! `end_condition` of `until.bpf.h`, has in the object, before it is opened: the verifier sees a function like any other, and a call of it costs
//! what its instructions cost. (A table that a loop interprets would take many times as long; a
//! function that is attached to another needs a second load and a trampoline.) In front of a shorter
//! condition there are jumps to the next instruction, which the verifier removes.

use iotomy_dtrace::{Instruction, Pattern};
use iotomy_sys::syscalls::{self, Abi};
use object::{Object, ObjectSection, ObjectSymbol};

use crate::call_names::{calls, descriptor};
use crate::compiled::Verdict;
use crate::filter::Filter;
use crate::grouping::MOST_KEYS;
use crate::ring_names;
use crate::variables::fact;

/// `r0 = 1; exit`: of a filter without a condition.
const TRUE: [Instruction; 2] = [1 << 32 | 0xb7, 0x95];

/// `goto +0`
const TO_THE_NEXT: Instruction = 0x05;

/// Bits of `uses` of `where.h`.
const USES: [(u16, u8); 9] = [
    (fact::FD, 1),
    (fact::PATH, 2),
    (fact::THREAD, 4),
    (fact::PID, 4),
    (fact::IMAGE, 8),
    (fact::THREADNAME, 16),
    (fact::CGROUP, 32),
    (fact::PEER, 64),
    (fact::TITLE, 128),
];

/// Bits of `keeps`, and numbers of `enum key_kind`.
const KEPT: [(u16, u8); 5] =
    [(fact::PATH, 1), (fact::THREADNAME, 2), (fact::CGROUP, 4), (fact::PEER, 8), (fact::TITLE, 16)];
const KINDS: [(u16, u8); 14] = [
    (fact::CALL, 1),
    // They follow from the call.
    (fact::GROUP, 1),
    (fact::FD, 2),
    (fact::ERRNO, 3),
    (fact::BYTES, 4),
    (fact::DURATION, 5),
    (fact::THREAD, 6),
    (fact::PID, 7),
    (fact::IMAGE, 8),
    (fact::PATH, 9),
    (fact::THREADNAME, 10),
    (fact::CGROUP, 11),
    (fact::PEER, 12),
    (fact::TITLE, 13),
];

/// A copy of an object in which the functions of the conditions have these instructions as their
/// bodies. As large as it is, an allocator aligns it for the reader.
///
/// # Errors
/// The object has no such function.
pub(super) fn with_conditions(bytes: &[u8], filter: &Filter) -> Result<Vec<u8>, String> {
    let [counted, ends] = filter.code();
    let mut copy = bytes.to_vec();
    put(&mut copy, bytes, "condition", if counted.is_empty() { &TRUE } else { counted })?;
    if filter.has_until() {
        put(&mut copy, bytes, "end_condition", ends)?;
    }
    Ok(copy)
}

/// Puts instructions in place of a function's own.
fn put(copy: &mut [u8], bytes: &[u8], name: &str, code: &[Instruction]) -> Result<(), String> {
    let lacks = || String::from("cannot set the filter: the BPF object has no room for it");
    let file = object::File::parse(bytes).map_err(|_| lacks())?;
    let function = file.symbols().find(|one| one.name() == Ok(name)).ok_or_else(lacks)?;
    let section = function.section_index().and_then(|at| file.section_by_index(at).ok());
    let (start, _) = section.and_then(|section| section.file_range()).ok_or_else(lacks)?;
    let (first, end) = (start + function.address(), start + function.address() + function.size());
    let body = copy.get_mut(first as usize..end as usize).ok_or_else(lacks)?;
    let ahead = (body.len() / 8).checked_sub(code.len()).ok_or_else(lacks)?;
    let all = std::iter::repeat_n(&TO_THE_NEXT, ahead).chain(code);
    for (place, instruction) in body.chunks_exact_mut(8).zip(all) {
        place.copy_from_slice(&instruction.to_le_bytes());
    }
    Ok(())
}

/// As `struct where_knobs` of `where.h`; `verdicts`: other programs ask what becomes of each call.
pub(super) fn knobs(filter: &Filter, verdicts: bool) -> Vec<u8> {
    let uses = USES.iter().filter(|(fact, _)| filter.uses(*fact));
    let uses = uses.fold(0u8, |all, (_, bit)| all | bit);
    let (keeps, by, groups) = keys(filter);
    let mut wire = vec![uses, keeps];
    wire.extend(by);
    let sums = u8::from(filter.uses_sums());
    wire.extend([groups, u8::from(verdicts), sums, u8::from(filter.has_until())]);
    wire.push(u8::from(filter.pause().is_some()));
    wire.extend([0; 5]);
    let strings = [fact::PATH, fact::IMAGE, fact::THREADNAME, fact::CGROUP];
    for word in strings.map(|fact| filter.bits_of(fact)).into_iter().chain([
        filter.bits_of_no(fact::PATH),
        filter.bits_of(fact::PEER),
        filter.bits_of_no(fact::PEER),
        filter.bits_of(fact::TITLE),
    ]) {
        wire.extend(word.to_ne_bytes());
    }
    let is_counted = |name: &str| filter.of_call(name) != Verdict::None;
    let is_doubtful = |name: &str| filter.of_call(name) == Verdict::Open;
    // Of all that are counted there are sums.
    let may_end = |name: &str| match filter.uses_sums() {
        true => is_counted(name),
        false => filter.ends_at_call(name) != Verdict::None,
    };
    let open = calls(|name| match groups {
        0 => is_doubtful(name) || may_end(name),
        _ => is_counted(name),
    });
    let moves = calls(|name| syscalls::returns_bytes(crate::naming::plain_name(name)));
    for word in [open, calls(is_doubtful), moves, calls(may_end)].iter().flatten().flatten() {
        wire.extend(word.to_ne_bytes());
    }
    let numbers =
        || [Abi::X86_64, Abi::I386].into_iter().flat_map(|abi| (0..512).map(move |nr| (abi, nr)));
    for (abi, number) in numbers() {
        wire.extend(filter.call_bits(&crate::naming::call_name(abi, number)).to_ne_bytes());
    }
    for (abi, number) in numbers() {
        let descriptor = descriptor(&syscalls::name(abi, number));
        wire.push(descriptor.map_or(0, |at| at + 1));
    }
    let operations = || (0..256).map(ring_names::name);
    for operation in operations() {
        wire.extend(filter.ring_bits(&operation).to_ne_bytes());
    }
    wire.extend(operations().map(|operation| ring_knobs(filter, &operation)));
    wire
}

/// The bits of `rings` of `where.h` for an operation.
fn ring_knobs(filter: &Filter, operation: &str) -> u8 {
    let is_counted = filter.of_ring(operation) != Verdict::None;
    let is_doubtful = filter.of_ring(operation) == Verdict::Open;
    let may_end = match filter.uses_sums() {
        true => is_counted,
        false => filter.ends_at_ring(operation) != Verdict::None,
    };
    let is_open = is_doubtful || may_end || is_counted && !filter.by.is_none();
    let (has_descriptor, has_path) =
        (ring_names::has_descriptor(operation), ring_names::has_path(operation));
    let bits = [is_open, is_doubtful, may_end, has_descriptor, has_path];
    bits.into_iter().enumerate().map(|(at, is_set)| u8::from(is_set) << at).sum()
}

/// `keeps`, `by` and `groups` of `struct where_knobs`.
fn keys(filter: &Filter) -> (u8, [u8; MOST_KEYS], u8) {
    let facts = filter.by.facts();
    let keeps = KEPT.iter().filter(|(fact, _)| facts.contains(fact));
    let keeps = keeps.fold(0, |all, (_, bit)| all | bit);
    let kind =
        |fact: &u16| KINDS.iter().find(|(known, _)| known == fact).map_or(0, |(_, kind)| *kind);
    let mut by = [0; MOST_KEYS];
    for (word, fact) in by.iter_mut().zip(facts) {
        *word = kind(fact);
    }
    (keeps, by, u8::from(!facts.is_empty()))
}

/// As `struct pattern` of `where.h`.
pub(super) fn wire(pattern: &Pattern) -> Vec<u8> {
    let mut wire = (pattern.prefix().len() as u64).to_ne_bytes().to_vec();
    wire.extend(pattern.prefix());
    wire.resize(8 + Pattern::MOST_PREFIX + 1, 0);
    wire.extend(pattern.rest().table().into_iter().flat_map(u64::to_ne_bytes));
    wire
}
