//! Buffers of the kernel side to timelines.

use std::collections::BTreeMap;

use iotomy_record::{CallEvent, Hidden, SlowCall};
use libbpf_rs::{MapCore, MapFlags, Object};

use super::super::companion::Images;
use super::super::layout::{Fields, FileKey, Wire};
use super::super::object::map;
use super::events::TRACEPOINTS;
use super::layout::{
    Counters, Event, KIND_REGISTERED, RING_OPERATION, SlowCallRow as Buffer, WHATS,
};
use super::outcome::{call, device, operation};
use crate::naming::error_name;

const OUT: usize = WHATS - 1;
const IN: usize = WHATS - 2;
const WOKEN: usize = WHATS - 3;
const QUEUE: usize = WHATS - 4;
const INSERT: usize = WHATS - 5;
const ISSUE: usize = WHATS - 6;
const COMPLETE: usize = WHATS - 7;
const MERGE: usize = WHATS - 8;
const WORKER: usize = WHATS - 9;

/// As `struct file_key` has it in `trace.h`, for names.
const NO_THREAD: u32 = 0;

/// The timelines that were kept, slowest first.
pub(super) fn timelines(object: &Object, counters: &Counters, images: &Images) -> Vec<SlowCall> {
    let pool = map(object, "pool");
    let kept = counters.kept.iter().flatten().flatten();
    let buffers =
        kept.filter_map(|at| pool.lookup(&at.to_ne_bytes(), MapFlags::ANY).ok().flatten());
    let mut timelines: Vec<SlowCall> =
        buffers.filter_map(|bytes| timeline(&Buffer::read(&mut Fields(&bytes)), images)).collect();
    timelines.sort_by_key(|timeline| std::cmp::Reverse(timeline.wall_ns));
    timelines
}

fn timeline(buffer: &Buffer, images: &Images) -> Option<SlowCall> {
    let (pid, exec) = images.name(buffer.image)?;
    let wall_ns = buffer.end_ns.checked_sub(buffer.start_ns)?;
    let key = FileKey {
        dentry: buffer.dentry,
        inode: buffer.inode,
        device: buffer.device,
        thread: NO_THREAD,
    };
    let (events, hidden) = events(buffer);
    let is_request = buffer.call & RING_OPERATION != 0;
    Some(SlowCall {
        pid,
        exec: exec.to_owned(),
        image: images.number(buffer.image),
        tid: buffer.tid,
        syscall: call(buffer.call).unwrap_or_default(),
        fd: buffer.fd,
        registered_file: buffer.kind & KIND_REGISTERED != 0,
        path: images.path(&key).map(str::to_owned),
        offset: (buffer.offset != u64::MAX).then_some(buffer.offset),
        asked_bytes: (buffer.argument > 0).then_some(buffer.argument),
        returned: buffer.ret,
        error: (-4095..0)
            .contains(&buffer.ret)
            .then(|| error_name(buffer.ret.unsigned_abs() as u32)),
        start_ns: buffer.start_ns.saturating_sub(images.first_ns),
        wall_ns,
        // No single thread carries a request out.
        on_cpu_ns: if is_request { 0 } else { wall_ns.saturating_sub(buffer.off_ns) },
        blocked_ns: buffer.blocked_ns.min(wall_ns),
        events,
        hidden,
    })
}

/// The events inside the call, in order, and the number of those not shown.
fn events(buffer: &Buffer) -> (Vec<CallEvent>, Vec<Hidden>) {
    let inside = |event: &&Event| (buffer.start_ns..=buffer.end_ns).contains(&event.at_ns);
    let mut seen: Vec<&Event> = buffer.events.iter().filter(inside).collect();
    seen.sort_by_key(|event| event.at_ns);
    let mut hidden = Vec::new();
    for (what, count) in buffer.counts.iter().enumerate() {
        let shown = seen.iter().filter(|event| usize::from(event.what) == what).count() as u64;
        let mut late = seen.iter().filter(|event| usize::from(event.what) == what && event.late);
        let until = late.next().map_or(buffer.end_ns, |event| event.at_ns);
        if u64::from(*count) > shown {
            hidden.push(Hidden {
                event: event_name(what),
                count: u64::from(*count) - shown,
                before_ns: until - buffer.start_ns,
            });
        }
    }
    hidden.sort_by_key(|hidden| hidden.before_ns);
    (seen.iter().map(|event| happening(event, buffer.start_ns)).collect(), hidden)
}

fn event_name(what: usize) -> String {
    let name = match what {
        OUT => "off-cpu",
        IN => "on-cpu",
        WOKEN => "woken",
        QUEUE => "block-queue",
        INSERT => "block-insert",
        ISSUE => "block-issue",
        COMPLETE => "block-complete",
        MERGE => "block-merge",
        WORKER => "worker-queue",
        other => TRACEPOINTS.get(other).map_or("?", |tracepoint| tracepoint.name),
    };
    name.to_owned()
}

fn happening(event: &Event, start_ns: u64) -> CallEvent {
    let what = usize::from(event.what);
    let mut happening = CallEvent {
        at_ns: event.at_ns - start_ns,
        event: event_name(what),
        cpu: event.cpu,
        ..CallEvent::default()
    };
    let (values, words) = (&mut happening.values, &mut happening.words);
    match what {
        OUT => word(words, "state", state(event.args[0], event.args[1] != 0)),
        IN | WORKER => {}
        WOKEN => {
            let name = [event.args[0].to_ne_bytes(), event.args[1].to_ne_bytes()].concat();
            let end = name.iter().position(|byte| *byte == 0).unwrap_or(name.len());
            let interrupt = event.args[2] != 0;
            let by = iotomy_record::lossless(&name[..end]);
            word(words, "by", if interrupt { "an interrupt".to_owned() } else { by });
        }
        QUEUE | INSERT | ISSUE | COMPLETE | MERGE => request(event, values, words),
        _ => {
            let fields = TRACEPOINTS.get(what).map_or(&[][..], |tracepoint| tracepoint.fields);
            for (name, value) in fields.iter().zip(event.args) {
                values.insert(name.trim_end_matches('?').to_owned(), value.cast_signed());
            }
        }
    }
    happening
}

fn word(words: &mut BTreeMap<String, String>, name: &str, word: impl Into<String>) {
    words.insert(name.to_owned(), word.into());
}

fn request(
    event: &Event,
    values: &mut BTreeMap<String, i64>,
    words: &mut BTreeMap<String, String>,
) {
    let [flags, sector, bytes, on] = event.args;
    word(words, "operation", operation(flags as u8));
    word(words, "device", device(on as u32));
    // As `plain_flags` of block.bpf.c has them.
    let flagged = ["sync", "meta", "read-ahead", "fua", "preflush"].into_iter().enumerate();
    let flagged: Vec<&str> =
        flagged.filter(|(bit, _)| flags >> (8 + bit) & 1 != 0).map(|(_, flag)| flag).collect();
    if !flagged.is_empty() {
        word(words, "flags", flagged.join(","));
    }
    values.insert("sector".to_owned(), sector.cast_signed());
    values.insert("bytes".to_owned(), bytes.cast_signed());
    if on >> 32 != 0 {
        values.insert("status".to_owned(), (on >> 32).cast_signed());
    }
}

/// Why a thread leaves its CPU: the lowest bits of its state, as `ps` has them.
fn state(state: u64, preempted: bool) -> &'static str {
    match state & 0xff {
        _ if preempted => "preempted",
        0 => "gives way",
        s if s & 1 != 0 => "sleeps",
        s if s & 2 != 0 => "sleeps uninterruptibly",
        _ => "stopped",
    }
}
