//! Records of `iotomy anatomy` made for the tests of reports.

use std::path::{Path, PathBuf};

use iotomy_record::store::RecordRef;
use iotomy_record::*;

use crate::support::records::{HOSTILE, call, ledger, process, put, trace};

/// Times of the stacks of `write` and of `fsync`, in ms; the second anatomy differs in one.
const COPYING_MS: u64 = 40;
const WAITING_MS: u64 = 30;
/// Of which no stack tells.
const UNSEEN_MS: u64 = 5;

fn stack(name: &str, exec: &str, frames: &[&str], kind: StackKind, ms: u64) -> Stack {
    Stack {
        pid: 7,
        exec: exec.into(),
        image: 0,
        syscall: Some(name.into()),
        kind,
        layer: "page cache and copying".into(),
        reason: (kind == StackKind::Blocked).then(|| "device".to_owned()),
        samples: ms,
        ns: ms * 1_000_000,
        user: Vec::new(),
        frames: frames.iter().map(|name| (*name).to_owned()).collect(),
    }
}

fn dissected(
    name: &str,
    exec: &str,
    on_cpu_ms: u64,
    blocked_ms: u64,
    function: &str,
) -> DissectedCall {
    let on_cpu_ns = on_cpu_ms * 1_000_000;
    DissectedCall {
        pid: 7,
        exec: exec.into(),
        image: 0,
        syscall: Some(name.into()),
        on_cpu_ns,
        blocked_ns: blocked_ms * 1_000_000,
        samples: on_cpu_ms,
        layers: vec![Layer {
            layer: "page cache and copying".into(),
            on_cpu_ns,
            error_ns: on_cpu_ns / 10,
            samples: on_cpu_ms,
            blocked_ns: blocked_ms * 1_000_000,
            waits: (blocked_ms > 0)
                .then(|| ("device".to_owned(), blocked_ms * 1_000_000))
                .into_iter()
                .collect(),
            functions: vec![Function { name: function.into(), samples: on_cpu_ms, on_cpu_ns }],
        }],
        ..DissectedCall::default()
    }
}

fn requests(exec: &str, via: BlockPath, call: &str, device: &str, count: u64) -> Requests {
    let slots = |slot| {
        let mut of = Histogram::default();
        of.add_slot(slot, count / 2);
        of.add_slot(slot + 2, count - count / 2);
        of
    };
    Requests {
        pid: 7,
        exec: exec.into(),
        image: 0,
        via,
        syscall: Some(call.into()),
        device: device.into(),
        operation: "write".into(),
        bios: count,
        bio_bytes: count << 16,
        requests: count,
        bytes: count << 16,
        finished: count,
        queue_ns: count * 30_000,
        device_ns: count * 600_000,
        size_log2: slots(17),
        queue_log2: slots(15),
        device_log2: slots(20),
        ..Requests::default()
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

fn timeline(exec: &str, path: &str, device: &str) -> SlowCall {
    let request = [("operation", "write"), ("device", device), ("flags", "sync")];
    let place = [("bytes", 65_536), ("sector", 2_048)];
    SlowCall {
        pid: 7,
        exec: exec.into(),
        image: 0,
        tid: 7,
        syscall: "fsync".into(),
        fd: 1,
        path: Some(path.into()),
        start_ns: 41_000_000,
        wall_ns: 2_770_813,
        on_cpu_ns: 300_932,
        blocked_ns: 1_283_617,
        events: vec![
            happening(4_818, "ext4_sync_file_enter", &[("ino", 12), ("datasync", 0)], &[]),
            happening(116_186, "block-queue", &place, &request),
            happening(150_000, "block-issue", &place, &request),
            happening(181_568, "off-cpu", &[], &[("state", "sleeps uninterruptibly")]),
            happening(1_274_000, "block-complete", &place, &request),
            happening(1_274_940, "woken", &[], &[("by", "an interrupt")]),
            happening(1_310_396, "on-cpu", &[], &[]),
            happening(2_760_000, "ext4_sync_file_exit", &[("ret", 0)], &[]),
        ],
        hidden: vec![Hidden {
            event: "mm_filemap_add_to_page_cache".into(),
            count: 56,
            before_ns: 181_568,
        }],
        ..SlowCall::default()
    }
}

/// A run of one program, whose names are these.
fn made(exec: &str, function: &str, copying_ms: u64) -> Anatomy {
    let mut run = trace(&[exec, "if=file", "of=copy"]);
    run.processes.push(process(7, exec, &[exec]));
    run.calls.push(call(7, exec, "write", 8_192));
    run.ledger.push(ledger(7, exec, 100));
    let frames = ["entry_SYSCALL_64_after_hwframe", "do_syscall_64", "ksys_write", function];
    let sleep = ["entry_SYSCALL_64_after_hwframe", "do_syscall_64", "do_fsync", "io_schedule"];
    Anatomy {
        schema: Anatomy::SCHEMA.into(),
        started: run.started.clone(),
        trace: run,
        sampling: Sampling {
            event: "cpu-clock".into(),
            hz: 997,
            samples: copying_ms,
            price_ns_per_sample: 1_900.0,
            ..Sampling::default()
        },
        calls: vec![
            dissected("write", exec, copying_ms + UNSEEN_MS, 0, function),
            dissected("fsync", exec, 0, WAITING_MS, function),
        ],
        stacks: vec![
            stack("write", exec, &frames, StackKind::OnCpu, copying_ms),
            stack("fsync", exec, &sleep, StackKind::Blocked, WAITING_MS),
        ],
        block: Some(BlockIo {
            requests: vec![
                requests(exec, BlockPath::Call, "fsync", "vda", 64),
                requests(exec, BlockPath::Journal, "fsync", "vda", 16),
            ],
            read_ahead: vec![ReadAhead {
                pid: 7,
                exec: exec.into(),
                image: 0,
                asked_pages: 260,
                missed_pages: 1,
                ahead_pages: 319,
                hit_pages: 255,
                other_pages: 0,
            }],
            others_requests: 3,
            others_bytes: 12_288,
            lost: 0,
            lost_pages: 0,
        }),
        timelines: Some(SlowestCalls {
            asked: 1,
            followed: 262,
            tracepoints: 30,
            calls: vec![timeline(exec, "/home/user/copy", "vda")],
            ..SlowestCalls::default()
        }),
    }
}

/// A plain one.
pub(crate) fn anatomy(folder: &Path) -> PathBuf {
    let record = made("dd", "copy_folio_from_iter_atomic", COPYING_MS);
    put("anatomy.json", folder, RecordRef::Anatomy(&record))
}

/// The same with half as much copying.
pub(crate) fn faster(folder: &Path) -> PathBuf {
    let record = made("dd", "copy_folio_from_iter_atomic", COPYING_MS / 2);
    put("faster.json", folder, RecordRef::Anatomy(&record))
}

/// One whose every name is a stranger's.
pub(crate) fn hostile_anatomy(folder: &Path) -> PathBuf {
    let mut record = made(HOSTILE, HOSTILE, COPYING_MS);
    record.sampling.event = HOSTILE.into();
    for stack in &mut record.stacks {
        stack.frames = vec![HOSTILE.into(), "\u{1b}[31mred".into()];
        stack.layer = HOSTILE.into();
    }
    for call in &mut record.calls {
        call.syscall = Some(HOSTILE.into());
        call.layers[0].layer = HOSTILE.into();
    }
    let block = record.block.get_or_insert_default();
    block.requests.push(requests(HOSTILE, BlockPath::Fault, HOSTILE, HOSTILE, 20));
    record.timelines.get_or_insert_default().calls = vec![timeline(HOSTILE, HOSTILE, HOSTILE)];
    put("hostile-anatomy.json", folder, RecordRef::Anatomy(&record))
}
