//! Rows of the block layer to record types.

use std::collections::BTreeMap;
use std::fs;

use iotomy_record::{BlockIo, BlockPath, Histogram, ReadAhead, Requests};
use libbpf_rs::Object;

use super::super::companion::{Images, call_by_number};
use super::super::layout::SLOTS;
use super::super::object::{RowAction, visit_rows};
use super::layout::{AheadRow, Counters, NO_CALL, RING_OPERATION, Row, RowKey};
use crate::ring_names;

/// The block layer's part of the record.
pub(super) fn block(object: &Object, counters: &Counters, images: &Images) -> BlockIo {
    let mut rows: BTreeMap<RowKey, Row> = BTreeMap::new();
    visit_rows(object, "rows", |key: RowKey, row: Row| {
        rows.insert(key, row);
        RowAction::Kept
    });
    let mut ahead: BTreeMap<u32, AheadRow> = BTreeMap::new();
    visit_rows(object, "ahead_rows", |image: u32, row: AheadRow| {
        ahead.insert(image, row);
        RowAction::Kept
    });
    let mut requests: Vec<Requests> =
        rows.iter().filter_map(|(key, row)| requests(key, row, images)).collect();
    requests.sort_by_key(|row| std::cmp::Reverse((row.device_ns, row.bio_bytes)));
    BlockIo {
        requests,
        read_ahead: ahead
            .iter()
            .filter_map(|(image, row)| read_ahead(*image, row, images))
            .collect(),
        others_requests: counters.others_requests,
        others_bytes: counters.others_bytes,
        lost: counters.lost,
        lost_pages: counters.lost_pages,
    }
}

/// A call, or an operation of io_uring, by the number the kernel side keeps.
pub(super) fn call(call: u16) -> Option<String> {
    match call {
        NO_CALL => None,
        op if op & RING_OPERATION != 0 => {
            Some(ring_names::call(Some(u32::from(op & !RING_OPERATION))))
        }
        call => Some(call_by_number(call)),
    }
}

fn requests(key: &RowKey, row: &Row, images: &Images) -> Option<Requests> {
    let (pid, exec) = images.name(key.image)?;
    Some(Requests {
        pid,
        exec: exec.to_owned(),
        image: images.number(key.image),
        via: via(key.via),
        syscall: call(key.call),
        device: device(key.device),
        operation: operation(key.operation),
        bios: row.bios,
        bio_bytes: row.bio_bytes,
        merged_bios: row.merged_bios,
        merged_requests: row.merged_requests,
        requests: row.requests,
        bytes: row.bytes,
        finished: row.finished,
        errors: row.errors,
        requeued: row.requeued,
        sync: row.sync,
        meta: row.meta,
        ahead: row.ahead,
        fua: row.fua,
        preflush: row.preflush,
        queue_ns: row.queue_ns,
        device_ns: row.device_ns,
        size_log2: histogram(&row.sizes),
        queue_log2: histogram(&row.queue),
        scheduler_log2: histogram(&row.scheduler),
        device_log2: histogram(&row.device),
    })
}

fn read_ahead(image: u32, row: &AheadRow, images: &Images) -> Option<ReadAhead> {
    let (pid, exec) = images.name(image)?;
    Some(ReadAhead {
        pid,
        exec: exec.to_owned(),
        image: images.number(image),
        asked_pages: row.asked,
        missed_pages: row.missed,
        ahead_pages: row.ahead,
        hit_pages: row.hits,
        other_pages: row.otherwise,
    })
}

fn histogram(slots: &[u32; SLOTS]) -> Histogram {
    let mut histogram = Histogram::default();
    for (slot, count) in slots.iter().enumerate() {
        histogram.add_slot(slot, u64::from(*count));
    }
    histogram
}

fn via(via: u8) -> BlockPath {
    match via {
        1 => BlockPath::Fault,
        2 => BlockPath::WriteBack,
        3 => BlockPath::Journal,
        4 => BlockPath::OtherProcess,
        5 => BlockPath::IoUring,
        _ => BlockPath::Call,
    }
}

/// `enum req_op` of the kernel's `blk_types.h`.
pub(super) fn operation(operation: u8) -> String {
    let name = match operation {
        0 => "read",
        1 => "write",
        2 => "flush",
        3 => "discard",
        5 => "secure-erase",
        7 => "zone-append",
        9 => "write-zeroes",
        other => return format!("operation {other}"),
    };
    name.to_owned()
}

/// The name of a device by its number, 12 bits of major and 20 of minor.
pub(super) fn device(number: u32) -> String {
    let number = format!("{}:{}", number >> 20, number & 0xf_ffff);
    let link = fs::read_link(format!("/sys/dev/block/{number}"));
    let name = link.ok().and_then(|to| Some(to.file_name()?.to_string_lossy().into_owned()));
    name.unwrap_or(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_device_without_a_name_keeps_its_number() {
        assert_eq!(device(4095 << 20 | 7), "4095:7");
    }

    #[test]
    fn an_operation_of_io_uring_stands_in_place_of_a_call() {
        assert_eq!(call(RING_OPERATION | 22).as_deref(), Some("ring:read"));
        assert_eq!(call(NO_CALL), None);
        assert_eq!(call(1).as_deref(), Some("write"));
    }

    #[test]
    fn operations_without_a_name_keep_their_number() {
        assert_eq!(operation(2), "flush");
        assert_eq!(operation(36), "operation 36");
    }
}
