//! Requests of io_uring that fio makes, against fio's own counts; and what is said where they are not watched.

use crate::support;

use iotomy_record::{RingOperation, Trace};
use serde_json::Value;
use support::{IOTOMY, Need, bpf, each_observer, has, skip, traced};

/// What fio is told, and the operation that its requests are then, without its direction's name.
const WAYS: [(&[&str], &str); 5] = [
    (&[], ""),
    (&["--sqthread_poll=1"], ""),
    (&["--force_async=1"], ""),
    (&["--fixedbufs=1", "--registerfiles=1"], "_fixed"),
    (&["--direct=1"], ""),
];

/// The operations of this name, of all of fio's processes.
fn operation(record: &Trace, op: &str) -> RingOperation {
    let mut sum = RingOperation::default();
    record.ring_operations.iter().filter(|row| row.op == op).for_each(|row| sum.merge(row));
    sum
}

#[test]
fn requests_and_bytes_are_those_that_fio_counts() {
    if !bpf() || !has("fio") {
        return;
    }
    for (options, ending) in WAYS {
        let folder = tempfile::tempdir().unwrap();
        let (data, said) = (folder.path().join("data"), folder.path().join("said"));
        let file = format!("--filename={}", data.display());
        let output = format!("--output={}", said.display());
        let mut words = vec!["fio", "--name=a", "--ioengine=io_uring", "--size=4M", "--bs=16k"];
        words.extend(["--rw=randrw", "--iodepth=8", "--output-format=json", &file, &output]);
        words.extend(options);
        let run = traced("bpf", &["--files"], &words);
        let text = std::fs::read_to_string(&said).unwrap_or_default();
        let Some(said) =
            text.find('{').and_then(|at| serde_json::from_str::<Value>(&text[at..]).ok())
        else {
            // A kernel without io_uring, or a file system without direct I/O.
            skip(Need::IoUring, &format!("fio {options:?}: {text}"));
            continue;
        };
        let job = &said["jobs"][0];
        if job["error"].as_u64() != Some(0) {
            skip(Need::IoUring, &format!("fio {options:?}: {}", job["error"]));
            continue;
        }
        let record = run.record();
        assert_eq!(record.observer.lost_events + record.observer.lost_requests, 0);
        if record.observer.sees_rings != Some(true) {
            return skip(Need::IoUring, "this kernel does not have io_uring's tracepoints");
        }
        let file = record.files.iter().filter(|file| file.path.ends_with("/data"));
        let by_file = file.fold([0; 4], |sum: [u64; 4], file| {
            let more = [file.read_calls, file.read_bytes, file.write_calls, file.write_bytes];
            std::array::from_fn(|at| sum[at] + more[at])
        });
        for (at, direction) in [(0, "read"), (2, "write")] {
            let due = |key: &str| job[direction][key].as_u64().unwrap();
            let row = operation(&record, &format!("{direction}{ending}"));
            let counted = (row.completed, row.bytes, row.errors);
            assert_eq!(counted, (due("total_ios"), due("io_bytes"), 0), "{options:?} {direction}");
            assert_eq!(row.submitted, row.inline + row.polled + row.worker + row.sqpoll);
            if options == ["--force_async=1"] {
                assert_eq!(row.worker, row.submitted, "{direction}");
            }
            // With a submission thread, fio registers its files, too.
            let all_with = |those: &[&str]| match options.iter().any(|one| those.contains(one)) {
                true => row.submitted,
                false => 0,
            };
            assert_eq!(row.forced_async, all_with(&["--force_async=1"]), "{direction}");
            let registered = all_with(&["--registerfiles=1", "--sqthread_poll=1"]);
            assert_eq!(row.registered_files, registered, "{options:?} {direction}");
            // fio lays the file out by calls of its own, by writes.
            let of_file = (by_file[at], by_file[at + 1]);
            let is_whole = if at == 0 {
                of_file == (row.completed, row.bytes)
            } else {
                of_file.0 >= row.completed
            };
            assert!(is_whole, "{options:?} {direction}: {of_file:?} {row:?}");
        }
    }
}

#[test]
fn what_was_cached_of_a_file_is_what_was_there_before_the_first_request() {
    if !bpf() || !has("fio") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    std::fs::write(&data, vec![7; 4 << 20]).unwrap();
    std::fs::File::open(&data).unwrap().sync_all().unwrap();
    let file = format!("--filename={}", data.display());
    // fio drops the file from the page cache before it reads it.
    let words =
        ["fio", "--name=a", "--ioengine=io_uring", "--size=4M", "--bs=4k", "--rw=read", &file];
    let run = traced("bpf", &["--files"], &words);
    let record = run.record();
    if operation(&record, "read").bytes == 0 {
        return skip(Need::IoUring, "no ring, or one that cannot be watched here");
    }
    let file = record.files.iter().find(|file| file.path.ends_with("/data")).unwrap();
    let is_on_device =
        file.file_system.as_deref().is_some_and(|on| ["ext4", "xfs", "btrfs"].contains(&on));
    if !is_on_device {
        return skip(Need::Machine, "temporary files are not on a device");
    }
    assert_eq!((file.read_bytes, file.cached_bytes), (4 << 20, Some(0)));
}

#[test]
fn the_ring_of_a_copy_moves_what_is_copied() {
    const SIZE: u64 = 3_000_001;
    const BLOCK: u64 = 64 * 1024;
    if !bpf() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    std::fs::write(path("from"), vec![7; SIZE as usize]).unwrap();
    let words = ["copy", "--mover", "io-uring", "--block-size", "64K", &path("from"), &path("to")];
    let words: Vec<&str> = std::iter::once(IOTOMY).chain(words).collect();
    let run = traced("bpf", &["--files"], &words);
    let record = run.record();
    if record.ring_operations.is_empty() {
        return skip(Need::IoUring, "no ring, or one that cannot be watched here");
    }
    let sum = |ops: [&str; 2]| {
        let rows = record.ring_operations.iter().filter(|row| ops.contains(&&*row.op));
        rows.fold((0, 0, 0), |(ended, failed, bytes), row| {
            (ended + row.completed, failed + row.errors, bytes + row.bytes)
        })
    };
    let due = (SIZE.div_ceil(BLOCK), 0, SIZE);
    assert_eq!((sum(["read", "read_fixed"]), sum(["write", "write_fixed"])), (due, due));
    let file = |name: &str| record.files.iter().find(|file| file.path == path(name)).unwrap();
    assert_eq!((file("from").read_bytes, file("to").write_bytes), (SIZE, SIZE));
}

/// Makes a ring, and does nothing with it.
const SETUP: &str = "my $params = \"\\0\" x 120; syscall(425, 4, $params);";

#[test]
fn where_rings_are_not_watched_that_is_said() {
    each_observer(|observer| {
        let said = |options: &[&str]| {
            let run = traced(observer, options, &["perl", "-e", SETUP]);
            run.stderr().contains("io_uring: what its rings did was not watched")
        };
        assert_eq!(said(&[]), observer != "bpf", "{observer}");
        assert!(said(&["--call", "io_uring_setup"]), "{observer}");
    });
}
