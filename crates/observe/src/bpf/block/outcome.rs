//! Rows of the block layer to record types.

use std::collections::BTreeMap;
use std::fs;

use iotomy_record::{BlockIo, Histogram, ReadAhead, Requests, Via};
use libbpf_rs::Object;

use super::super::books::Books;
use super::super::layout::{CALL_I386, CALL_NUMBER, SLOTS};
use super::super::object::{Fate, visit};
use super::layout::{AheadRow, Counters, NO_CALL, Row, RowKey};
use crate::naming::call_name;
use iotomy_sys::syscalls::Abi;

/// The block layer's part of the record.
pub(super) fn block(object: &Object, counters: &Counters, books: &Books) -> BlockIo {
    let mut rows: BTreeMap<RowKey, Row> = BTreeMap::new();
    visit(object, "rows", |key: RowKey, row: Row| {
        rows.insert(key, row);
        Fate::Kept
    });
    let mut ahead: BTreeMap<u32, AheadRow> = BTreeMap::new();
    visit(object, "ahead_rows", |image: u32, row: AheadRow| {
        ahead.insert(image, row);
        Fate::Kept
    });
    let mut requests: Vec<Requests> =
        rows.iter().filter_map(|(key, row)| requests(key, row, books)).collect();
    requests.sort_by_key(|row| std::cmp::Reverse((row.device_ns, row.bio_bytes)));
    BlockIo {
        requests,
        read_ahead: ahead
            .iter()
            .filter_map(|(image, row)| read_ahead(*image, row, books))
            .collect(),
        others_requests: counters.others_requests,
        others_bytes: counters.others_bytes,
        lost: counters.lost,
        lost_pages: counters.lost_pages,
    }
}

/// Whose image it is. What iotomy's own child reads to start the command is the command's: it is
/// image 0 until its exec is done. `None`: of the calibration.
pub(super) fn whose(image: u32, books: &Books) -> Option<(u32, String)> {
    let own = std::process::id();
    let of_command = books.images.iter().filter(|(_, found)| found.pid != own);
    let (id, found) = match image {
        0 => of_command.min_by_key(|(id, found)| (found.start_ns, **id))?,
        _ => of_command.into_iter().find(|(id, _)| **id == image)?,
    };
    let exec = books.program(*id).map_or_else(|| String::from("?"), |found| found.exec.clone());
    Some((found.pid, exec))
}

/// A call by the number the kernel side keeps.
pub(super) fn call(call: u16) -> Option<String> {
    let abi = if call & CALL_I386 == 0 { Abi::X86_64 } else { Abi::I386 };
    (call != NO_CALL).then(|| call_name(abi, u32::from(call & CALL_NUMBER)))
}

fn requests(key: &RowKey, row: &Row, books: &Books) -> Option<Requests> {
    let (pid, exec) = whose(key.image, books)?;
    Some(Requests {
        pid,
        exec,
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

fn read_ahead(image: u32, row: &AheadRow, books: &Books) -> Option<ReadAhead> {
    let (pid, exec) = whose(image, books)?;
    Some(ReadAhead {
        pid,
        exec,
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

fn via(via: u8) -> Via {
    match via {
        1 => Via::Fault,
        2 => Via::WriteBack,
        3 => Via::Journal,
        4 => Via::OtherProcess,
        5 => Via::IoUring,
        _ => Via::Call,
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
    fn operations_without_a_name_keep_their_number() {
        assert_eq!(operation(2), "flush");
        assert_eq!(operation(36), "operation 36");
    }
}
