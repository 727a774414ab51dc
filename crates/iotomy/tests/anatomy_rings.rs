//! Anatomies of programs that use io_uring: what belongs to the operations of its rings.

use crate::support;

use std::collections::BTreeMap;
use std::process::Output;

use iotomy_record::{Anatomy, BlockPath, DissectedCall, Requests, Stack, store};
use support::volume::Volume;
use support::{IOTOMY, Need, anatomy, doubled_until, has, iotomy, skip};

/// Requests of 4 KiB that fio makes in each run of a fixed size.
const REQUESTS: u64 = 256;

/// An anatomy of a command; its times close. `None`, said and counted: rings cannot be watched here.
fn dissected(words: &[&str]) -> Option<(Anatomy, Output)> {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("record.json");
    let mut command =
        iotomy(&["anatomy", "--rate", &support::sampling::fast_rate(), "--top", "0", "--json"]);
    let output = command.arg(&file).arg("--").args(words).output().unwrap();
    let record = store::load_anatomy(&file).unwrap_or_else(|error| panic!("{error}: {output:?}"));
    closes(&record);
    if record.trace.observer.sees_rings != Some(true) || record.trace.ring_operations.is_empty() {
        skip(Need::IoUring, &format!("no ring, or none that can be watched: {output:?}"));
        return None;
    }
    Some((record, output))
}

/// fio's words for random reads and writes of 4 KiB by a ring.
fn fio<'w>(file: &'w str, options: &[&'w str]) -> Vec<&'w str> {
    let mut words = vec!["fio", "--name=a", "--ioengine=io_uring", "--bs=4k", "--iodepth=8", file];
    words.extend(["--rw=randrw", "--output-format=terse"]);
    words.extend(options);
    words
}

fn is_of_rings(call: Option<&str>) -> bool {
    call.is_some_and(|name| name.starts_with("ring:"))
}

/// The parts of `io_uring_enter` and of io_uring's threads, by image, are the trace's times. So are the layers of
/// each row.
fn closes(record: &Anatomy) {
    let mut due: BTreeMap<(u32, &str, u32), [u64; 2]> = BTreeMap::new();
    for row in &record.trace.ledger {
        due.entry((row.pid, &row.exec, row.image)).or_default()[0] += row.worker_ns;
    }
    for call in record.trace.calls.iter().filter(|call| call.syscall == "io_uring_enter") {
        let times = due.entry((call.pid, &call.exec, call.image)).or_default();
        times[0] += call.on_cpu_ns.unwrap();
        times[1] += call.blocked_ns.unwrap();
    }
    let mut parts: BTreeMap<(u32, &str, u32), [u64; 2]> = BTreeMap::new();
    for row in &record.calls {
        let sum = |part: fn(&iotomy_record::Layer) -> u64| row.layers.iter().map(part).sum::<u64>();
        assert_eq!(sum(|layer| layer.on_cpu_ns), row.on_cpu_ns, "{row:?}");
        assert_eq!(sum(|layer| layer.blocked_ns), row.blocked_ns, "{row:?}");
        assert_eq!(sum(|layer| layer.samples), row.samples, "{row:?}");
        if is_of_rings(row.syscall.as_deref()) || row.syscall.as_deref() == Some("io_uring_enter") {
            let times = parts.entry((row.pid, &row.exec, row.image)).or_default();
            times[0] += row.on_cpu_ns;
            times[1] += row.blocked_ns;
        } else {
            assert_eq!(row.error_ns, 0, "{row:?}");
        }
    }
    due.retain(|_, times| *times != [0, 0]);
    parts.retain(|_, times| *times != [0, 0]);
    assert_eq!(parts, due, "{:?}", record.calls);
    let sampled: u64 = record.calls.iter().map(|row| row.samples).sum();
    assert_eq!(sampled + record.sampling.lost, record.sampling.samples);
}

/// Whether a function is on the stack, outside of another.
fn has_frame(stack: &Stack, outer: &str, inner: &str) -> bool {
    let mut frames = stack.frames.iter().skip_while(|frame| *frame != outer);
    frames.any(|frame| frame == inner)
}

/// What a sample of a ring's program is of follows from where it was.
fn samples_are_where_they_belong(record: &Anatomy) {
    // Some functions are left out of the kernel's tables for unwinding: a stack with one ends there.
    let begins = ["ret_from_fork", "entry_SYSCALL_64"];
    let is_whole = |stack: &&Stack| {
        let outermost = stack.frames.first();
        outermost.is_some_and(|frame| begins.iter().any(|one| frame.starts_with(one)))
    };
    for stack in record.stacks.iter().filter(is_whole) {
        let has = |name: &str| stack.frames.iter().any(|frame| frame == name);
        let issues = has_frame(stack, "io_submit_sqes", "io_issue_sqe");
        let is_of_one = is_of_rings(stack.syscall.as_deref())
            && stack.syscall.as_deref() != Some("ring:no request");
        // A worker has its request from a little before it begins until a little after.
        let is_due = issues || has("io_wq_submit_work");
        let may_be = issues || has("io_worker_handle_work");
        assert!(may_be || !is_of_one, "{stack:?}");
        assert!(is_of_one || !is_due, "{stack:?}");
        for (function, op) in [("io_read", "ring:read"), ("io_write", "ring:write")] {
            if is_of_one && has(function) {
                assert!(stack.syscall.as_ref().unwrap().starts_with(op), "{stack:?}");
            }
        }
    }
}

/// The time on CPUs of the rows of these names.
fn on_cpu(record: &Anatomy, is: impl Fn(&DissectedCall) -> bool) -> u64 {
    record.calls.iter().filter(|row| is(row)).map(|row| row.on_cpu_ns).sum()
}

fn samples(record: &Anatomy, name: &str) -> u64 {
    let rows = record.calls.iter().filter(|row| row.syscall.as_deref() == Some(name));
    rows.map(|row| row.samples).sum()
}

fn is(name: &str) -> impl Fn(&DissectedCall) -> bool {
    move |row| row.syscall.as_deref() == Some(name)
}

/// Whether a sample was in what copies from the page cache for a read.
fn copies(record: &Anatomy) -> bool {
    let mut rows = record.calls.iter().filter(|row| is("ring:read")(row));
    rows.any(|row| row.layers.iter().any(|layer| layer.layer == "page cache and copying"))
}

/// Sampled until each direction has some dozens of samples, of copying, too.
fn until_seen(options: &[&str]) -> Option<(Anatomy, Output)> {
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let file = format!("--filename={}", folder.path().join("data").display());
    let seen = |found: &Option<(Anatomy, Output)>| {
        let Some((record, _)) = found else { return true };
        ["ring:read", "ring:write"].iter().all(|name| samples(record, name) > 20) && copies(record)
    };
    doubled_until(4, seen, |mib| {
        let size = format!("--size={mib}M");
        let mut words = fio(&file, options);
        // What fio has written is read from the page cache.
        words.extend(["--invalidate=0", &size]);
        dissected(&words)
    })
}

#[test]
fn the_time_of_workers_is_of_the_operations_they_work_at() {
    if !anatomy() || !has("fio") {
        return;
    }
    let Some((record, output)) = until_seen(&["--force_async=1"]) else { return };
    samples_are_where_they_belong(&record);
    let workers: u64 = record.trace.ledger.iter().map(|row| row.worker_ns).sum();
    let at_work =
        on_cpu(&record, |row| matches!(row.syscall.as_deref(), Some("ring:read" | "ring:write")));
    assert!(at_work > 0 && at_work <= workers, "{at_work} of {workers}");
    assert_eq!(on_cpu(&record, is("ring:unknown operation")), 0);
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert!(
        stderr.contains("\n  ring:read ")
            && stderr.contains("thread time, with the CPU time of io_uring's"),
        "{stderr}"
    );
}

#[test]
fn what_is_issued_at_submission_is_not_the_calls() {
    if !anatomy() || !has("fio") {
        return;
    }
    let Some((record, _)) = until_seen(&[]) else { return };
    samples_are_where_they_belong(&record);
    let row = record.calls.iter().find(|row| is("ring:read")(row)).unwrap();
    assert!(row.error_ns > 0, "{row:?}");
}

#[test]
fn what_the_submission_thread_issues_is_of_the_operations() {
    if !anatomy() || !has("fio") {
        return;
    }
    let Some((record, _)) = until_seen(&["--sqthread_poll=1"]) else { return };
    samples_are_where_they_belong(&record);
    let enter = |row: &DissectedCall| is("io_uring_enter")(row) && row.error_ns > 0;
    assert!(!record.calls.iter().any(enter), "{:?}", record.calls);
    // It polls: most of what it runs is for no request.
    assert!(on_cpu(&record, is("ring:no request")) > 0, "{:?}", record.calls);
}

/// fio's options, and how the requests of a direct read reach the block layer.
const WAYS: [(&[&str], BlockPath); 3] = [
    (&[], BlockPath::Call),
    (&["--force_async=1"], BlockPath::IoUring),
    (&["--sqthread_poll=1"], BlockPath::IoUring),
];

#[test]
fn each_direct_read_and_write_is_a_request_of_its_operation() {
    if !anatomy() || !has("fio") {
        return;
    }
    let Some(volume) = Volume::ext4() else { return };
    let device = volume.device();
    for (at, (options, via)) in WAYS.into_iter().enumerate() {
        let file = format!("--filename={}", volume.file(&format!("data{at}")));
        let mut all = vec!["--direct=1", "--size=1M"];
        all.extend(options);
        let Some((record, output)) = dissected(&fio(&file, &all)) else { return };
        let block = record.block.as_ref().expect("it is watched where bpf works");
        for direction in ["read", "write"] {
            let due = record.trace.ring_operations.iter().filter(|row| row.op == direction);
            let due: u64 = due.map(|row| row.completed).sum();
            let of = |row: &&Requests| {
                row.syscall == Some(format!("ring:{direction}")) && row.device == device
            };
            let rows: Vec<_> = block.requests.iter().filter(of).collect();
            assert!(
                rows.iter().all(|row| row.operation == direction && row.via == via),
                "{options:?} {rows:?}"
            );
            let sum = |part: fn(&Requests) -> u64| rows.iter().map(|row| part(row)).sum::<u64>();
            let seen = (sum(|row| row.bios), sum(|row| row.bio_bytes));
            assert_eq!(seen, (due, due << 12), "{options:?} {direction}: {:?}", block.requests);
        }
        let ended: u64 = record.trace.ring_operations.iter().map(|row| row.completed).sum();
        assert!(ended >= REQUESTS, "{ended}");
        let stderr = String::from_utf8(output.stderr).unwrap();
        let worker = stderr.contains("fio: ring:read, io_uring thread");
        assert!(
            worker == (via == BlockPath::IoUring) && stderr.contains("fio: ring:write"),
            "{stderr}"
        );
    }
}

#[test]
fn write_back_of_what_workers_wrote_is_the_programs() {
    if !anatomy() || !has("fio") {
        return;
    }
    let Some(volume) = Volume::ext4() else { return };
    let file = format!("--filename={}", volume.file("data"));
    let mut words = fio(&file, &["--size=1M", "--force_async=1", "--overwrite=0", "--end_fsync=0"]);
    words[6] = "--rw=write";
    let words: Vec<String> = words.into_iter().map(|word| format!("'{word}'")).collect();
    // The write-back is not fio's own call.
    let line = format!("{} && sync -f {}", words.join(" "), volume.file(""));
    let Some((record, _)) = dissected(&["sh", "-c", &line]) else { return };
    let device = volume.device();
    let of_fio = record
        .block
        .as_ref()
        .unwrap()
        .requests
        .iter()
        .filter(|row| row.device == device && row.exec == "fio" && row.operation == "write");
    let bytes: u64 = of_fio.map(|row| row.bio_bytes).sum();
    assert!(bytes >= 1 << 20, "{:?}", record.block);
}

#[test]
fn a_copy_by_a_ring_adds_up() {
    if !anatomy() {
        return;
    }
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    std::fs::write(path("from"), vec![7; 3_000_001]).unwrap();
    let words = [IOTOMY, "copy", "--mover", "io-uring", &path("from"), &path("to")];
    let Some((record, _)) = dissected(&words) else { return };
    samples_are_where_they_belong(&record);
}

#[test]
fn a_program_without_rings_has_no_row_of_them() {
    if !anatomy() || !has("dd") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("record.json");
    let dd = ["dd", "if=/dev/zero", "of=/dev/null", "bs=4k", "count=20000", "status=none"];
    let mut command = iotomy(&["anatomy", "--json"]);
    let output = command.arg(&file).arg("--").args(dd).output().unwrap();
    let record = store::load_anatomy(&file).unwrap();
    closes(&record);
    assert!(record.calls.iter().all(|row| !is_of_rings(row.syscall.as_deref())));
    let text = std::fs::read_to_string(&file).unwrap();
    assert!(
        !text.contains("ring:") && !String::from_utf8_lossy(&output.stderr).contains("io_uring")
    );
}
