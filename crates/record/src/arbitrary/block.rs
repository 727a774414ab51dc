//! Random block I/O and timelines, as parts of records. Boxed: their strategies are many, and would take
//! more of a stack than a test has.

use proptest::collection::{btree_map, vec};
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;

use super::{histogram, number, text};
use crate::{BlockIo, BlockPath, CallEvent, Hidden, ReadAhead, Requests, SlowCall, SlowestCalls};

/// The work of the block layer.
pub fn block_io() -> BoxedStrategy<BlockIo> {
    let counts = [(); 4].map(|()| number().boxed());
    let parts = (vec(requests(), 0..6), vec(read_ahead(), 0..3), counts);
    let all = parts.prop_map(|(requests, read_ahead, counts)| BlockIo {
        requests,
        read_ahead,
        others_requests: counts[0],
        others_bytes: counts[1],
        lost: counts[2],
        lost_pages: counts[3],
    });
    all.boxed()
}

fn via() -> impl Strategy<Value = BlockPath> {
    select(vec![
        BlockPath::Call,
        BlockPath::Fault,
        BlockPath::WriteBack,
        BlockPath::Journal,
        BlockPath::OtherProcess,
        BlockPath::IoUring,
    ])
}

fn requests() -> BoxedStrategy<Requests> {
    let names = (any::<(u32, u32)>(), text(), via(), option::of(text()), text(), text());
    let counts = ([(); 9].map(|()| number().boxed()), [(); 7].map(|()| number().boxed()));
    let histograms = [(); 4].map(|()| histogram().boxed());
    let all = (names.boxed(), counts, histograms);
    let all = all.prop_map(|(names, (moved, marked), histograms)| {
        let [size_log2, queue_log2, scheduler_log2, device_log2] = histograms;
        Requests {
            pid: names.0.0,
            exec: names.1,
            image: names.0.1,
            via: names.2,
            syscall: names.3,
            device: names.4,
            operation: names.5,
            bios: moved[0],
            bio_bytes: moved[1],
            merged_bios: moved[2],
            merged_requests: moved[3],
            requests: moved[4],
            bytes: moved[5],
            finished: moved[6],
            errors: moved[7],
            requeued: moved[8],
            sync: marked[0],
            meta: marked[1],
            ahead: marked[2],
            fua: marked[3],
            preflush: marked[4],
            queue_ns: marked[5],
            device_ns: marked[6],
            size_log2,
            queue_log2,
            scheduler_log2,
            device_log2,
        }
    });
    all.boxed()
}

fn read_ahead() -> impl Strategy<Value = ReadAhead> {
    let whose = (any::<(u32, u32)>(), text(), [(); 5].map(|()| number().boxed()));
    whose.prop_map(|((pid, image), exec, pages)| ReadAhead {
        pid,
        exec,
        image,
        asked_pages: pages[0],
        missed_pages: pages[1],
        ahead_pages: pages[2],
        hit_pages: pages[3],
        other_pages: pages[4],
    })
}

/// Timelines of calls.
pub fn timelines() -> BoxedStrategy<SlowestCalls> {
    let counts = [(); 4].map(|()| number().boxed());
    let parts = (any::<u32>(), counts, vec(text().boxed(), 0..4), vec(timeline(), 0..4));
    let all = parts.prop_map(|(asked, counts, absent, calls)| SlowestCalls {
        asked,
        followed: counts[0],
        not_followed: counts[1],
        lost: counts[2],
        tracepoints: counts[3],
        absent,
        calls,
    });
    all.boxed()
}

fn timeline() -> BoxedStrategy<SlowCall> {
    let whose =
        (any::<(u32, u32)>(), text(), any::<u32>(), text(), any::<u32>(), option::of(text()));
    let asked = (option::of(number()), option::of(number()), any::<i64>(), option::of(text()));
    let inside = (vec(happening().boxed(), 0..8), vec(hidden().boxed(), 0..4));
    let times = [(); 4].map(|()| number().boxed());
    let all =
        (whose.boxed(), asked.boxed(), times, inside).prop_map(|(whose, asked, ns, inside)| {
            SlowCall {
                pid: whose.0.0,
                exec: whose.1,
                image: whose.0.1,
                tid: whose.2,
                syscall: whose.3,
                fd: whose.4,
                registered_file: whose.4 & 1 == 1,
                path: whose.5,
                offset: asked.0,
                asked_bytes: asked.1,
                returned: asked.2,
                error: asked.3,
                start_ns: ns[0],
                wall_ns: ns[1],
                on_cpu_ns: ns[2],
                blocked_ns: ns[3],
                events: inside.0,
                hidden: inside.1,
            }
        });
    all.boxed()
}

fn happening() -> impl Strategy<Value = CallEvent> {
    let event = prop_oneof![
        text(),
        select(vec!["off-cpu", "on-cpu", "woken", "block-issue"]).prop_map(str::to_owned)
    ];
    let name =
        |known: Vec<&'static str>| prop_oneof![text(), select(known).prop_map(str::to_owned)];
    let values = btree_map(name(vec!["bytes", "sector", "status"]), any::<i64>(), 0..4);
    let words = btree_map(name(vec!["state", "by", "device", "operation", "flags"]), text(), 0..4);
    (number(), event, any::<u32>(), values, words).prop_map(|(at_ns, event, cpu, values, words)| {
        CallEvent { at_ns, event, cpu, values, words }
    })
}

fn hidden() -> impl Strategy<Value = Hidden> {
    (text(), number(), number()).prop_map(|(event, count, before_ns)| Hidden {
        event,
        count,
        before_ns,
    })
}
