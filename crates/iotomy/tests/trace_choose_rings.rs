//! Ring operations that `--call` chooses: against fio's own counts, and what cannot be chosen.

use crate::support;

use iotomy_record::{Key, RingOperation, Trace};
use serde_json::Value;
use support::{Need, Traced, bpf, each_observer, has, iotomy, skip, traced};

/// A job of fio: reads and writes of a file by a ring.
struct Fio {
    run: Traced,
    record: Trace,
    /// Its own counts.
    said: Value,
}

impl Fio {
    /// `None` where it cannot be watched here.
    fn traced(options: &[&str]) -> Option<Self> {
        if !bpf() || !has("fio") {
            return None;
        }
        let folder = tempfile::tempdir().unwrap();
        let (data, said) = (folder.path().join("data"), folder.path().join("said"));
        let file = format!("--filename={}", data.display());
        let output = format!("--output={}", said.display());
        let mut words = vec!["fio", "--name=a", "--ioengine=io_uring", "--size=4M", "--bs=16k"];
        words.extend(["--rw=randrw", "--iodepth=8", "--output-format=json", &file, &output]);
        let run = traced("bpf", options, &words);
        let text = std::fs::read_to_string(&said).unwrap_or_default();
        let said = text.find('{').and_then(|at| serde_json::from_str::<Value>(&text[at..]).ok());
        let Some(said) = said.filter(|said| said["jobs"][0]["error"].as_u64() == Some(0)) else {
            skip(Need::IoUring, &format!("fio: {text}"));
            return None;
        };
        let record = run.record();
        assert_eq!(record.observer.lost_events + record.observer.lost_requests, 0);
        if record.observer.sees_rings == Some(false)
            && options.iter().any(|one| one.contains("ring:") || one.contains("%ring"))
        {
            skip(Need::IoUring, "this kernel does not have io_uring's tracepoints");
            return None;
        }
        Some(Self { run, record, said })
    }

    /// Completed operations, and their bytes, as fio has them.
    fn due(&self, direction: &str) -> (u64, u64) {
        let number = |key: &str| self.said["jobs"][0][direction][key].as_u64().unwrap();
        (number("total_ios"), number("io_bytes"))
    }

    /// The same as recorded, of all of fio's processes.
    fn counted(&self, op: &str) -> (u64, u64) {
        let mut sum = RingOperation::default();
        self.record
            .ring_operations
            .iter()
            .filter(|row| row.op == op)
            .for_each(|row| sum.merge(row));
        (sum.completed, sum.bytes)
    }

    fn operations(&self) -> Vec<&str> {
        let mut names: Vec<_> = self.record.ring_operations.iter().map(|row| &*row.op).collect();
        names.sort_unstable();
        names.dedup();
        names
    }

    fn calls(&self) -> Vec<&str> {
        let mut names: Vec<_> = self.record.calls.iter().map(|row| &*row.syscall).collect();
        names.sort_unstable();
        names.dedup();
        names
    }
}

#[test]
fn a_ring_operation_is_counted_alone() {
    let Some(fio) = Fio::traced(&["--call", "ring:read", "--files"]) else { return };
    assert_eq!((fio.operations(), fio.calls()), (vec!["read"], vec![]));
    assert_eq!(fio.counted("read"), fio.due("read"));
    let data = fio.record.files.iter().filter(|file| file.path.ends_with("/data"));
    let sums = data.fold([0; 3], |sum: [u64; 3], file| {
        let more = [file.read_calls, file.read_bytes, file.write_calls];
        std::array::from_fn(|at| sum[at] + more[at])
    });
    let (reads, bytes) = fio.due("read");
    assert_eq!(sums, [reads, bytes, 0]);
    assert!(fio.record.observer.calls_left_out.unwrap() > 0);
    let text = fio.run.stderr();
    assert!(text.contains("only ring:read watched;"), "{text}");
    assert!(text.contains("ring operation ") && !text.contains("was not watched"), "{text}");
}

#[test]
fn ring_operations_and_calls_are_counted_together() {
    let Some(fio) = Fio::traced(&["--call", "%ring,io_uring_setup"]) else { return };
    assert_eq!((fio.operations(), fio.calls()), (vec!["read", "write"], vec!["io_uring_setup"]));
    for direction in ["read", "write"] {
        assert_eq!(fio.counted(direction), fio.due(direction));
    }
}

#[test]
fn distributions_are_of_what_fio_asked_for() {
    let Some(fio) = Fio::traced(&["--call", "%ring", "--quantize", "return,wall"]) else { return };
    for direction in ["read", "write"] {
        let (completed, _) = fio.due(direction);
        let rows = fio.record.ring_operations.iter().filter(|row| row.op == direction);
        let counts = rows.fold([0; 3], |sum: [u64; 3], row| {
            // From 16 KiB, the size that each request has.
            let more =
                [row.result_log2.buckets[14], row.result_log2.total(), row.wall_log2.total()];
            std::array::from_fn(|at| sum[at] + more[at])
        });
        assert_eq!(counts, [completed; 3], "{direction}");
        let text = fio.run.stderr();
        for what in ["results", "time to completion"] {
            let title = format!("  ring:{direction} {what} — fio (");
            assert!(text.contains(&title), "{title}: {text}");
        }
        let bar = format!("       16384 |{} {completed}\n", "@".repeat(40));
        assert!(text.contains(&bar), "{bar}: {text}");
    }
}

#[test]
fn without_ring_operations_among_the_chosen_rings_are_not_watched() {
    let Some(fio) = Fio::traced(&["--call", "io_uring_setup"]) else { return };
    assert_eq!(fio.record.observer.sees_rings, Some(false));
    assert_eq!((fio.operations(), fio.calls()), (vec![], vec!["io_uring_setup"]));
    let text = fio.run.stderr();
    assert!(text.contains("what its rings did was not watched"), "{text}");
}

#[test]
fn an_observer_that_does_not_see_what_was_chosen_says_so() {
    each_observer(|observer| {
        let run = traced(observer, &["--call", "ring:nop,getppid"], &["true"]);
        let sees = run.record().observer.sees_rings == Some(true);
        let says = run.stderr().contains("ring operations were not watched");
        assert_eq!(says, !sees, "{observer}: {}", run.stderr());
        assert!(sees || observer != "bpf" || !bpf(), "{observer}");
    });
}

#[test]
fn what_is_no_ring_operation_is_refused() {
    let refused = |words: &[&str]| {
        let run = iotomy(words).output().unwrap();
        assert_eq!(run.status.code(), Some(2), "{words:?}");
        String::from_utf8(run.stderr).unwrap()
    };
    let text = refused(&["trace", "--call", "ring:reed", "--", "true"]);
    assert!(text.contains("unknown ring operation \"reed\"; the operations are nop, "), "{text}");
    assert!(text.contains(" send_zc, "), "{text}");
    let text = refused(&["trace", "--call", "send_zc", "--", "true"]);
    assert!(text.contains("did you mean ring:send_zc?"), "{text}");
    let until = "call == \"ring:read\"";
    let text = refused(&["trace", "--call", "openat", "--until", until, "--", "true"]);
    assert!(text.contains("no call or ring operation that is counted can fulfil this"), "{text}");
}

#[test]
fn a_condition_chooses_among_ring_operations() {
    let condition =
        "group == \"%ring\" && bytes == 16384 && path == \"*/data\" && call != \"ring:write\"";
    let Some(fio) = Fio::traced(&["--where", condition, "--by", "call,path,errno"]) else { return };
    assert_eq!((fio.operations(), fio.calls()), (vec!["read"], vec![]));
    assert_eq!(fio.counted("read"), fio.due("read"));
    let groups = fio.record.by.as_ref().unwrap();
    let [row] = &groups.rows[..] else { panic!("{groups:?}") };
    assert_eq!((row.calls, row.bytes), fio.due("read"));
    assert_eq!(
        (&row.key[0], &row.key[2]),
        (&Key::Text("ring:read".into()), &Key::Text("ok".into()))
    );
    let reads = fio.record.ring_operations.iter().filter(|row| row.op == "read");
    let (wall, max) =
        reads.fold((0, 0), |(sum, max), row| (sum + row.wall_ns, max.max(row.max_ns)));
    assert_eq!((row.wall_ns, row.max_ns, row.errors), (wall, max, 0));
    let text = fio.run.stderr();
    assert!(text.contains("  ring:read ") && !text.contains("not watched"), "{text}");
    assert!(!text.contains("requests a submission"), "{text}");
}

#[test]
fn a_ring_operation_ends_the_watch() {
    let options = ["--call", "ring:write", "--until", "sum(bytes) > 1M"];
    let Some(fio) = Fio::traced(&options) else { return };
    assert_eq!(fio.run.code(), 3, "{}", fio.run.stderr());
    let end = fio.record.ended_by.as_ref().unwrap();
    assert_eq!((&*end.call.syscall, end.call.bytes), ("ring:write", Some(16_384)));
    assert!(end.call.path.as_ref().is_some_and(|path| path.ends_with("/data")), "{end:?}");
    // On other CPUs, others may have been under way with one that came later: fio has one thread for its ring.
    assert_eq!(end.sum_bytes, Some((1 << 20) + 16_384));
    assert_eq!(fio.counted("write").1, (1 << 20) + 16_384);
    let text = fio.run.stderr();
    assert!(text.contains("ring:write in fio ("), "{text}");
}
