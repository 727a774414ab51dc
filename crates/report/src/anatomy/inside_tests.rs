use iotomy_record::{
    BlockIo, BlockPath, CallEvent, Hidden, Histogram, ReadAhead, Requests, SlowCall, SlowestCalls,
    arbitrary,
};
use proptest::prelude::*;

use super::{block, timeline};
use crate::page::Page;
use crate::{Style, looks};

fn printed_block(io: &BlockIo, style: &Style) -> String {
    let mut page = Page::new(style);
    block::print(&mut page, io, None);
    page.finish()
}

fn printed_timelines(timelines: &SlowestCalls, style: &Style) -> String {
    let mut page = Page::new(style);
    timeline::print(&mut page, timelines);
    page.finish()
}

fn requests(via: BlockPath, syscall: Option<&str>, operation: &str, count: u64) -> Requests {
    let mut sizes = Histogram::default();
    let mut device = Histogram::default();
    (0..count).for_each(|nth| sizes.add(if nth == 0 { 4096 } else { 65_536 }));
    (0..count).for_each(|nth| device.add(600_000 + 40_000 * nth));
    Requests {
        pid: 4711,
        exec: "dd".into(),
        image: 0,
        via,
        syscall: syscall.map(str::to_owned),
        device: "vda".into(),
        operation: operation.into(),
        bios: count,
        bio_bytes: 65_536 * count,
        requests: count,
        bytes: 65_536 * count,
        finished: count,
        queue_ns: 11_500 * count,
        device_ns: 666_000 * count,
        size_log2: sizes,
        queue_log2: Histogram::default(),
        device_log2: device,
        ..Requests::default()
    }
}

pub(super) fn io() -> BlockIo {
    let mut journal = requests(BlockPath::Journal, Some("fsync"), "write", 3);
    journal.meta = 3;
    journal.merged_bios = 8;
    let mut failed = requests(BlockPath::WriteBack, None, "write", 4);
    failed.errors = 1;
    failed.finished = 3;
    failed.exec = "na\u{1b}me".into();
    let mut bare = requests(BlockPath::OtherProcess, None, "write", 0);
    bare.bios = 4;
    bare.bio_bytes = 16_384;
    BlockIo {
        requests: vec![
            requests(BlockPath::Call, Some("write"), "write", 16),
            journal,
            failed,
            bare,
            requests(BlockPath::Fault, None, "read", 2),
        ],
        read_ahead: vec![ReadAhead {
            pid: 4711,
            exec: "dd".into(),
            image: 0,
            asked_pages: 260,
            missed_pages: 1,
            ahead_pages: 319,
            hit_pages: 255,
            other_pages: 0,
        }],
        others_requests: 21,
        others_bytes: 2_142_208,
        lost: 2,
        lost_pages: 0,
    }
}

fn happening(at_ns: u64, event: &str, values: &[(&str, i64)], words: &[(&str, &str)]) -> CallEvent {
    CallEvent {
        at_ns,
        event: event.into(),
        cpu: 1,
        values: values.iter().map(|(name, value)| ((*name).into(), *value)).collect(),
        words: words.iter().map(|(name, word)| ((*name).into(), (*word).into())).collect(),
    }
}

pub(super) fn timelines() -> SlowestCalls {
    let request = [("operation", "write"), ("device", "vda"), ("flags", "sync")];
    let fsync = SlowCall {
        pid: 4711,
        exec: "dd".into(),
        tid: 4711,
        syscall: "fsync".into(),
        fd: 1,
        path: Some("/home/user/copy".into()),
        wall_ns: 2_770_813,
        on_cpu_ns: 300_932,
        blocked_ns: 1_283_617,
        events: vec![
            happening(4818, "ext4_sync_file_enter", &[("ino", 9_977_988), ("datasync", 0)], &[]),
            happening(7894, "ext4_writepages", &[("nr_to_write", i64::MAX)], &[]),
            happening(
                116_186,
                "block-queue",
                &[("bytes", 1_048_576), ("sector", 345_352_192)],
                &request,
            ),
            happening(181_568, "off-cpu", &[], &[("state", "sleeps uninterruptibly")]),
            happening(1_274_940, "woken", &[], &[("by", "kworker/u8:1")]),
            happening(1_310_396, "on-cpu", &[], &[]),
            happening(
                1_547_469,
                "block-issue",
                &[("bytes", 0), ("sector", -1)],
                &[("operation", "flush"), ("device", "vda")],
            ),
        ],
        hidden: vec![
            Hidden { event: "mm_filemap_add_to_page_cache".into(), count: 56, before_ns: 181_568 },
            Hidden { event: "off-cpu".into(), count: 9, before_ns: 1_547_469 },
            Hidden { event: "on-cpu".into(), count: 1, before_ns: 1_547_469 },
        ],
        ..SlowCall::default()
    };
    let read = SlowCall {
        syscall: "read".into(),
        path: None,
        offset: Some(65_536),
        asked_bytes: Some(4096),
        returned: -5,
        error: Some("EIO".into()),
        events: Vec::new(),
        hidden: Vec::new(),
        ..fsync.clone()
    };
    SlowestCalls {
        asked: 1,
        followed: 262,
        not_followed: 259,
        lost: 0,
        tracepoints: 30,
        absent: vec!["mm_filemap_get_pages".into()],
        calls: vec![fsync, read],
    }
}

#[test]
fn requests_are_shown_by_cause() {
    insta::assert_snapshot!(printed_block(&io(), &Style::default()));
}

#[test]
fn a_run_without_requests_shows_nothing() {
    assert_eq!(printed_block(&BlockIo::default(), &Style::default()), "");
}

#[test]
fn a_call_is_told_moment_by_moment() {
    insta::assert_snapshot!(printed_timelines(&timelines(), &Style::default()));
}

proptest! {
    #[test]
    fn any_block_io_renders_within_the_width(
        io in arbitrary::block_io(), width in 1usize..140, unicode: bool
    ) {
        looks::keeps_to(width, unicode, |style| printed_block(&io, style));
        looks::is_only_coloured(|style| printed_block(&io, style));
    }

    #[test]
    fn any_timelines_render_within_the_width(
        timelines in arbitrary::timelines(), width in 1usize..140, unicode: bool
    ) {
        looks::keeps_to(width, unicode, |style| printed_timelines(&timelines, style));
        looks::is_only_coloured(|style| printed_timelines(&timelines, style));
    }
}
