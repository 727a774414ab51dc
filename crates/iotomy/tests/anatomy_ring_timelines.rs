//! Timelines of requests of io_uring: what happened between a submission and its completion.

use crate::support;

use iotomy_record::{Anatomy, CallEvent, SlowCall, store};
use support::volume::Volume;
use support::{Need, anatomy, doubled_until, has, iotomy, skip};

/// An anatomy with timelines of fio's requests of 4 KiB. `None`, said and counted: rings cannot be watched here.
fn told(file: &str, mib: u32, more: &[&str], options: &[&str]) -> Option<Anatomy> {
    let folder = tempfile::tempdir().unwrap();
    let json = folder.path().join("record.json");
    let mut command = iotomy(&["anatomy", "--timeline=16", "--json"]);
    command.arg(&json).args(more).args(["--", "fio", "--name=a", "--ioengine=io_uring"]);
    command.args([&format!("--filename={file}"), &format!("--size={mib}M")]);
    command.args(["--bs=4k", "--iodepth=8", "--output-format=terse"]).args(options);
    let output = command.output().unwrap();
    let record = store::load_anatomy(&json).unwrap_or_else(|error| panic!("{error}: {output:?}"));
    if more.is_empty() && record.trace.observer.sees_rings != Some(true) {
        skip(Need::IoUring, "rings cannot be watched");
        return None;
    }
    Some(record)
}

/// The timelines of one operation on a file.
fn timelines<'r>(record: &'r Anatomy, operation: &str, file: &str) -> Vec<&'r SlowCall> {
    let all = record.timelines.as_ref().expect("they were asked for");
    assert_eq!(all.lost, 0);
    let is = |timeline: &&SlowCall| {
        timeline.syscall == operation && timeline.path.as_deref() == Some(file)
    };
    let found: Vec<_> = all.calls.iter().filter(is).collect();
    for timeline in &found {
        assert!(
            timeline.is_request() && timeline.on_cpu_ns == 0 && timeline.blocked_ns == 0,
            "{timeline:#?}"
        );
        assert!(timeline.events.is_sorted_by_key(|event| event.at_ns), "{timeline:#?}");
        assert!(
            timeline.events.iter().all(|event| event.at_ns <= timeline.wall_ns),
            "{timeline:#?}"
        );
    }
    found
}

/// The only event of a name.
fn only<'s>(timeline: &'s SlowCall, name: &str) -> Option<&'s CallEvent> {
    let mut all = timeline.events.iter().filter(|event| event.event == name);
    let first = all.next();
    first.filter(|_| all.next().is_none() && timeline.hidden.iter().all(|kind| kind.event != name))
}

/// Whether the device was asked for what the request asks for, once, and for nothing else. Two requests beside each
/// other may be one of the device's.
fn has_its_own_request(timeline: &SlowCall) -> bool {
    let names = ["block-queue", "block-issue", "block-complete"];
    let [Some(queued), Some(issued), Some(done)] = names.map(|name| only(timeline, name)) else {
        return false;
    };
    let asks = |event: &CallEvent| {
        let (bytes, operation) = (event.values.get("bytes"), event.words.get("operation"));
        bytes == Some(&4096) && operation.is_some_and(|operation| operation == "read")
    };
    let place = |event: &CallEvent| event.values.get("sector").copied();
    let is_in_order = queued.at_ns <= issued.at_ns && issued.at_ns <= done.at_ns;
    is_in_order && [queued, issued, done].into_iter().all(asks) && place(queued) == place(done)
}

/// fio's options, the operation that its reads are then, and whether workers carry them out.
const WAYS: [(&[&str], &str, bool); 3] = [
    (&[], "ring:read", false),
    (&["--force_async=1"], "ring:read", true),
    (&["--sqthread_poll=1", "--registerfiles=1", "--fixedbufs=1"], "ring:read_fixed", false),
];

#[test]
fn a_direct_read_by_a_ring_tells_of_its_request_to_the_device() {
    if !anatomy() || !has("fio") {
        return;
    }
    let Some(volume) = Volume::ext4() else { return };
    for (at, (options, operation, by_workers)) in WAYS.into_iter().enumerate() {
        let file = volume.file(&format!("data{at}"));
        let all = [&["--rw=randread", "--direct=1"], options].concat();
        // Others of fio's reads may be slower.
        let is_told = |found: &Option<Anatomy>| {
            let Some(record) = found else { return true };
            timelines(record, operation, &file).into_iter().any(has_its_own_request)
        };
        let found = doubled_until(1, is_told, |mib| told(&file, mib, &[], &all));
        let Some(record) = found else { return };
        for timeline in timelines(&record, operation, &file) {
            let asked = (timeline.asked_bytes, timeline.returned, timeline.registered_file);
            assert_eq!(asked, (Some(4096), 4096, operation == "ring:read_fixed"), "{timeline:#?}");
            assert_eq!(timeline.offset.map(|at| at % 4096), Some(0), "{timeline:#?}");
            let queued = only(timeline, "worker-queue");
            assert_eq!(queued.is_some(), by_workers, "{timeline:#?}");
            assert!(
                queued.is_none_or(|event| event.at_ns == timeline.events[0].at_ns),
                "{timeline:#?}"
            );
        }
    }
}

#[test]
fn a_sync_by_a_worker_tells_what_the_worker_did() {
    if !anatomy() || !has("fio") {
        return;
    }
    let Some(volume) = Volume::ext4() else { return };
    let file = volume.file("data");
    let options = ["--rw=write", "--force_async=1", "--fsync=64"];
    let is_told = |found: &Option<Anatomy>| {
        let Some(record) = found else { return true };
        !timelines(record, "ring:fsync", &file).is_empty()
    };
    let found = doubled_until(1, is_told, |mib| told(&file, mib, &[], &options));
    let Some(record) = found else { return };
    for timeline in timelines(&record, "ring:fsync", &file) {
        let at = |name: &str| timeline.events.iter().position(|event| event.event == name);
        assert_eq!(at("worker-queue"), Some(0), "{timeline:#?}");
        // The file system's tracepoints may be unavailable.
        let enters = at("ext4_sync_file_enter");
        assert!(enters.is_none_or(|enters| enters > 0), "{timeline:#?}");
        assert!(at("off-cpu") > at("worker-queue"), "a sync sleeps: {timeline:#?}");
        assert_eq!((timeline.returned, timeline.asked_bytes, timeline.offset), (0, None, None));
    }
}

#[test]
fn where_calls_are_filtered_no_request_is_told() {
    if !anatomy() || !has("fio") {
        return;
    }
    let Some(volume) = Volume::ext4() else { return };
    let options = ["--rw=randread", "--direct=1"];
    let filter = ["--where", "bytes >= 0"];
    let Some(record) = told(&volume.file("data"), 1, &filter, &options) else { return };
    let timelines = record.timelines.expect("they were asked for");
    assert!(!timelines.calls.is_empty() && !timelines.calls.iter().any(SlowCall::is_request));
}
