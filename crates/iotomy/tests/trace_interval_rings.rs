//! `trace --interval` of a program that uses io_uring: each interval has the requests of that interval, and all of
//! them add up to fio's own counts.

use crate::support;

use iotomy_record::store::{Record, parse_record};
use iotomy_record::{RingOperation, Trace};
use serde_json::Value;
use support::{Need, bpf, has, iotomy, rings, skip, text};

fn records(lines: &str) -> Vec<Trace> {
    let record = |line: &str| match parse_record(line.as_bytes()).unwrap() {
        Record::Trace(record) => *record,
        other => panic!("{other:?}"),
    };
    lines.lines().map(record).collect()
}

fn sum(rows: &[&RingOperation], part: fn(&RingOperation) -> u64) -> u64 {
    rows.iter().map(|row| part(row)).sum()
}

#[test]
fn requests_of_intervals_add_up_to_those_that_fio_counts() {
    if !bpf() || !has("fio") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (file, output) =
        (format!("--filename={}", path("data")), format!("--output={}", path("said")));
    // A pause of 20 ms after each request, of which there are 128: they take some 2.5 s.
    let mut words = vec!["fio", "--name=a", "--ioengine=io_uring", "--size=2M", "--bs=16k"];
    words.extend(["--rw=randrw", "--thinktime=20000", "--output-format=json", &file, &output]);
    let lines = path("lines");
    let options = ["trace", "--observer", "bpf", "-i", "0.2", "--files", "--json", &lines, "--"];
    let run = iotomy(&[&options[..], &words].concat()).output().unwrap();
    let shown = text(&run.stderr[..]);
    let said = std::fs::read_to_string(path("said")).unwrap_or_default();
    let Some(said) = said.find('{').and_then(|at| serde_json::from_str::<Value>(&said[at..]).ok())
    else {
        return skip(Need::IoUring, &format!("fio: {said} {shown}"));
    };
    let job = &said["jobs"][0];
    if job["error"].as_u64() != Some(0) {
        return skip(Need::IoUring, &format!("fio: {}", job["error"]));
    }
    let records = records(&std::fs::read_to_string(lines).unwrap());
    if records.iter().any(|record| record.observer.sees_rings != Some(true)) {
        return skip(Need::IoUring, "this kernel does not have io_uring's tracepoints");
    }
    assert!(records.iter().all(|one| one.observer.lost_requests + one.observer.lost_events == 0));
    for direction in ["read", "write"] {
        let due = |key: &str| job[direction][key].as_u64().unwrap();
        let rows = records.iter().flat_map(|record| &record.ring_operations);
        let rows: Vec<&RingOperation> = rows.filter(|row| row.op == direction).collect();
        assert!(rows.len() >= 2, "{rows:#?}");
        for part in [
            (|row| row.submitted) as fn(&RingOperation) -> u64,
            |row| row.completed,
            |row| row.wall_times.total(),
            |row| row.wall_log2.total(),
            |row| row.result_log2.buckets[14],
            |row| row.inline + row.polled + row.worker + row.sqpoll,
        ] {
            assert_eq!(sum(&rows, part), due("total_ios"), "{direction}: {rows:#?}");
        }
        assert_eq!(
            (sum(&rows, |row| row.bytes), sum(&rows, |row| row.errors)),
            (due("io_bytes"), 0)
        );
        // fio has one request in flight at most.
        assert!(rows.iter().all(|row| row.in_flight <= 1 && row.submitted <= row.completed + 1));
        assert!(rows.iter().all(|row| row.pid > 0 && row.exec == "fio" && row.max_ns > 0));
    }
    // Requests are in the files of the intervals that they came in.
    let files = records.iter().map(|record| record.files.iter());
    let reads = files.map(|files| {
        files.filter(|file| file.path.ends_with("/data")).map(|file| file.read_calls).sum::<u64>()
    });
    let reads: Vec<u64> = reads.collect();
    assert_eq!(reads.iter().sum::<u64>(), job["read"]["total_ios"].as_u64().unwrap());
    assert!(reads.iter().filter(|reads| **reads > 0).count() >= 2, "{reads:?}");
    assert!(shown.matches("  ring operation ").count() >= 2, "{shown}");
    assert!(shown.contains(" ring operations, ") && !shown.contains("not watched"), "{shown}");
}

/// Processes that make a ring each, submit one nop, and end.
const NOPS: &str = r"
for n in range(6):
    pid = os.fork()
    if not pid:
        Ring().nop()
        os._exit(0)
    if os.waitpid(pid, 0)[1]: sys.exit(7)
    time.sleep(0.15)
";

#[test]
fn requests_of_processes_that_ended_are_counted_once() {
    if !bpf() || !has("python3") {
        return;
    }
    let words = ["trace", "--observer", "bpf", "-i", "0.1", "-q", "--json", "-", "--"];
    let script = [rings::PYTHON, NOPS].concat();
    let run = iotomy(&[&words[..], &["python3", "-c", &script]].concat()).output().unwrap();
    if run.status.code() == Some(7) {
        return skip(Need::IoUring, &format!("no ring: {run:?}"));
    }
    let records = records(&text(&run.stdout[..]));
    let all = records.iter().flat_map(|record| &record.ring_operations);
    let rows: Vec<&RingOperation> = all.collect();
    assert_eq!((sum(&rows, |row| row.submitted), sum(&rows, |row| row.completed)), (6, 6));
    assert!(rows.iter().all(|row| row.op == "nop"), "{rows:#?}");
    let pids: std::collections::BTreeSet<u32> = rows.iter().map(|row| row.pid).collect();
    assert_eq!(pids.len(), 6);
    let some = records.iter().filter(|record| !record.ring_operations.is_empty()).count();
    assert!(some >= 2, "{some} of {}", records.len());
}
