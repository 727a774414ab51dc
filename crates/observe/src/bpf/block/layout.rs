//! The structs of `block.h`, read field by field as in `bpf/layout.rs`.

use super::super::layout::{Fields, SLOTS, Wire};

/// Kinds of events of a timeline. As in `block.h`, like all below.
pub(super) const WHATS: usize = 64;
pub(super) const ARGS: usize = 4;
pub(super) const EVENTS: usize = 96;
pub(super) const MOST_TIMELINES: usize = 16;
/// Entries the table of tracepoints may have.
#[cfg(test)]
pub(super) const PLANS: usize = WHATS - 9;

pub(super) const KIND_READ: u8 = 1;
pub(super) const KIND_WRITE: u8 = 2;
pub(super) const KIND_SYNC: u8 = 3;
pub(super) const ASKED_COUNT: u8 = 1 << 4;
pub(super) const ASKED_VECTOR: u8 = 2 << 4;
pub(super) const KIND_AT: u8 = 1 << 6;
/// Of a timeline.
pub(super) const KIND_REGISTERED: u16 = 4;
pub(super) const NO_CALL: u16 = 0xffff;
pub(super) const RING_OPERATION: u16 = 0x4000;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct RowKey {
    pub(super) image: u32,
    pub(super) device: u32,
    pub(super) call: u16,
    pub(super) via: u8,
    pub(super) operation: u8,
}

impl Wire for RowKey {
    const SIZE: usize = 12;

    fn read(from: &mut Fields<'_>) -> Self {
        let (image, device, call) = (from.u32(), from.u32(), from.u16());
        let last = from.u16().to_ne_bytes();
        Self { image, device, call, via: last[0], operation: last[1] }
    }
}

pub(super) struct Row {
    pub(super) bios: u64,
    pub(super) bio_bytes: u64,
    pub(super) requests: u64,
    pub(super) bytes: u64,
    pub(super) finished: u64,
    pub(super) errors: u64,
    pub(super) requeued: u64,
    pub(super) merged_bios: u64,
    pub(super) merged_requests: u64,
    pub(super) sync: u64,
    pub(super) meta: u64,
    pub(super) ahead: u64,
    pub(super) fua: u64,
    pub(super) preflush: u64,
    pub(super) queue_ns: u64,
    pub(super) device_ns: u64,
    pub(super) sizes: [u32; SLOTS],
    pub(super) queue: [u32; SLOTS],
    pub(super) scheduler: [u32; SLOTS],
    pub(super) device: [u32; SLOTS],
}

impl Wire for Row {
    const SIZE: usize = 16 * 8 + 4 * 4 * SLOTS;

    fn read(from: &mut Fields<'_>) -> Self {
        Self {
            bios: from.u64(),
            bio_bytes: from.u64(),
            requests: from.u64(),
            bytes: from.u64(),
            finished: from.u64(),
            errors: from.u64(),
            requeued: from.u64(),
            merged_bios: from.u64(),
            merged_requests: from.u64(),
            sync: from.u64(),
            meta: from.u64(),
            ahead: from.u64(),
            fua: from.u64(),
            preflush: from.u64(),
            queue_ns: from.u64(),
            device_ns: from.u64(),
            sizes: std::array::from_fn(|_| from.u32()),
            queue: std::array::from_fn(|_| from.u32()),
            scheduler: std::array::from_fn(|_| from.u32()),
            device: std::array::from_fn(|_| from.u32()),
        }
    }
}

pub(super) struct AheadRow {
    pub(super) asked: u64,
    pub(super) missed: u64,
    pub(super) ahead: u64,
    pub(super) hits: u64,
    pub(super) otherwise: u64,
}

impl Wire for AheadRow {
    const SIZE: usize = 40;

    fn read(from: &mut Fields<'_>) -> Self {
        Self {
            asked: from.u64(),
            missed: from.u64(),
            ahead: from.u64(),
            hits: from.u64(),
            otherwise: from.u64(),
        }
    }
}

#[derive(Default)]
pub(super) struct Counters {
    pub(super) others_requests: u64,
    pub(super) others_bytes: u64,
    pub(super) lost: u64,
    pub(super) lost_pages: u64,
    pub(super) followed: u64,
    pub(super) not_followed: u64,
    pub(super) lost_timelines: u64,
    /// By kind: the buffers of the timelines kept.
    pub(super) kept: [[Option<u32>; MOST_TIMELINES]; 2],
}

impl Counters {
    /// The counts since `before`; the timelines are all that were kept.
    pub(super) fn since(self, before: &Self) -> Self {
        Self {
            others_requests: self.others_requests.saturating_sub(before.others_requests),
            others_bytes: self.others_bytes.saturating_sub(before.others_bytes),
            lost: self.lost.saturating_sub(before.lost),
            lost_pages: self.lost_pages.saturating_sub(before.lost_pages),
            followed: self.followed.saturating_sub(before.followed),
            not_followed: self.not_followed.saturating_sub(before.not_followed),
            lost_timelines: self.lost_timelines.saturating_sub(before.lost_timelines),
            kept: self.kept,
        }
    }
}

impl Wire for Counters {
    const SIZE: usize = 7 * 8 + 8 + 2 * MOST_TIMELINES * 8;

    fn read(from: &mut Fields<'_>) -> Self {
        Self {
            others_requests: from.u64(),
            others_bytes: from.u64(),
            lost: from.u64(),
            lost_pages: from.u64(),
            followed: from.u64(),
            not_followed: from.u64(),
            lost_timelines: from.u64(),
            kept: {
                let _next_buffer = from.u64();
                std::array::from_fn(|_| {
                    std::array::from_fn(|_| ((from.u64() & 0xffff) as u32).checked_sub(1))
                })
            },
        }
    }
}

/// Where the values of a tracepoint are in its record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct RecordPlan {
    pub(super) offsets: [u16; ARGS],
    /// In bytes; 8 more where the value has a sign.
    pub(super) sizes: [u8; ARGS],
    pub(super) device: u16,
}

impl RecordPlan {
    /// As `struct plan` of `block.h`.
    pub(super) fn wire(&self) -> Vec<u8> {
        let mut wire: Vec<u8> = self.offsets.iter().flat_map(|at| at.to_ne_bytes()).collect();
        wire.extend(self.sizes);
        wire.extend(self.device.to_ne_bytes());
        wire.extend([0, 0]);
        wire
    }
}

pub(super) struct Event {
    pub(super) at_ns: u64,
    pub(super) what: u16,
    pub(super) late: bool,
    pub(super) cpu: u32,
    pub(super) args: [u64; ARGS],
}

pub(super) struct SlowCallRow {
    pub(super) start_ns: u64,
    pub(super) end_ns: u64,
    pub(super) off_ns: u64,
    pub(super) blocked_ns: u64,
    pub(super) dentry: u64,
    pub(super) inode: u64,
    pub(super) device: u32,
    pub(super) image: u32,
    pub(super) ret: i64,
    pub(super) argument: u64,
    pub(super) offset: u64,
    pub(super) fd: u32,
    pub(super) tid: u32,
    pub(super) call: u16,
    pub(super) kind: u16,
    pub(super) unseen: u32,
    pub(super) counts: [u32; WHATS],
    pub(super) events: Vec<Event>,
}

impl Wire for SlowCallRow {
    const SIZE: usize = 6 * 8 + 2 * 4 + 3 * 8 + 6 * 4 + 6 * WHATS + EVENTS * (16 + 8 * ARGS);

    fn read(from: &mut Fields<'_>) -> Self {
        let mut timeline = Self {
            start_ns: from.u64(),
            end_ns: from.u64(),
            off_ns: from.u64(),
            blocked_ns: from.u64(),
            dentry: from.u64(),
            inode: from.u64(),
            device: from.u32(),
            image: from.u32(),
            ret: from.u64().cast_signed(),
            argument: from.u64(),
            offset: from.u64(),
            fd: from.u32(),
            tid: from.u32(),
            call: from.u16(),
            kind: from.u16(),
            unseen: 0,
            counts: [0; WHATS],
            events: Vec::new(),
        };
        let _open = from.u32();
        let used = from.u32() as usize;
        timeline.unseen = from.u32();
        timeline.counts = std::array::from_fn(|_| from.u32());
        let _late_at = from.bytes(2 * WHATS);
        timeline.events = (0..used.min(EVENTS)).map(|_| Event::read(from)).collect();
        timeline
    }
}

impl Wire for Event {
    const SIZE: usize = 16 + 8 * ARGS;

    fn read(from: &mut Fields<'_>) -> Self {
        Self {
            at_ns: from.u64(),
            what: from.u16(),
            late: from.u16() != 0,
            cpu: from.u32(),
            args: std::array::from_fn(|_| from.u64()),
        }
    }
}
