//! Records made for the tests of reports.

use std::path::{Path, PathBuf};

use iotomy_record::store::RecordRef;
use iotomy_record::*;
use serde_json::json;

/// What a stranger might call a file.
pub(crate) const HOSTILE: &str =
    "\"'><img src=x onerror=\"window.hacked=1\"><script>window.hacked=1</script></title>";

const STARTED: &str = "2025-03-01T10:20:30Z";

fn machine() -> Machine {
    Machine {
        kernel: "Linux 6.1.0 x86_64".into(),
        cpu: "Example CPU @ 3 GHz".into(),
        cpus: 8,
        memory_bytes: 16 << 30,
        virtualization: "none".into(),
        mitigations: String::new(),
        clock: "tsc".into(),
        name: String::new(),
    }
}

pub(crate) fn trace(command: &[&str]) -> Trace {
    Trace {
        schema: Trace::SCHEMA.into(),
        started: STARTED.into(),
        command: command.iter().map(|word| (*word).to_owned()).collect(),
        wall_ns: 147_000_000,
        exit: Some(Exit::Code(0)),
        machine: machine(),
        observer: ObserverUse {
            missing: Vec::new(),
            name: "bpf".into(),
            cost_ns_per_call: 210.4,
            cost_ns_low: 160.2,
            cost_ns_high: 260.6,
            lost_events: 0,
            incomplete_calls: 0,
            lost_files: 0,
            lost_paths: 0,
            lost_connections: 0,
            lost_exchanges: 0,
            unclear_connections: 0,
            sees_rings: None,
            lost_requests: 0,
            divided_by_zero: 0,
            end_divided_by_zero: 0,
            calls_left_out: None,
            cost_left_out_ns_low: 0.0,
            cost_left_out_ns_high: 0.0,
            calls_passed: 0,
            unwatched_ns_low: 0.0,
            unwatched_ns_high: 0.0,
            times_inflated: false,
            fallback: None,
            untraced_tasks: 0,
            startup_ns: 3_000_000,
        },
        processes: Vec::new(),
        calls: Vec::new(),
        files: Vec::new(),
        paths: Vec::new(),
        connections: Vec::new(),
        requests: Vec::new(),
        ring_operations: Vec::new(),
        slowest: Vec::new(),
        ended_by: None,
        by: None,
        ledger: Vec::new(),
        interval: None,
        ring: None,
        sample: None,
        cpu_capacity: None,
        threads: Vec::new(),
        findings: Vec::new(),
        still_running: Vec::new(),
        unwatched_children: Vec::new(),
        host_names: std::collections::BTreeMap::new(),
        targets: Vec::new(),
        view: View { files: true, ..View::default() },
    }
}

pub(crate) fn call(pid: u32, exec: &str, syscall: &str, calls: u64) -> Call {
    let mut wall_log2 = Histogram::default();
    wall_log2.add_slot(12, calls / 2);
    wall_log2.add_slot(14, calls - calls / 2);
    Call {
        pid,
        exec: exec.into(),
        syscall: syscall.into(),
        calls,
        bytes: calls * 8192,
        wall_ns: calls * 5_000,
        on_cpu_ns: Some(calls * 4_000),
        blocked_ns: Some(calls * 900),
        runnable_ns: Some(calls * 100),
        max_ns: 60_000,
        return_log2: {
            let mut of = Histogram::default();
            of.add_slot(14, calls);
            of
        },
        on_cpu_log2: Some(wall_log2.clone()),
        blocked_log2: Some(Histogram::default()),
        wall_log2,
        ..Call::default()
    }
}

pub(crate) fn process(pid: u32, exec: &str, argv: &[&str]) -> Process {
    Process {
        pid,
        ppid: 1,
        exec: exec.into(),
        argv: argv.iter().map(|word| (*word).to_owned()).collect(),
        threads: 1,
        minor_faults: 100,
        ..Process::default()
    }
}

pub(crate) fn ledger(pid: u32, exec: &str, ms: u64) -> LedgerRow {
    LedgerRow {
        pid,
        exec: exec.into(),
        thread_ns: ms * 1_000_000,
        user_ns: ms * 200_000,
        calls_on_cpu_ns: ms * 500_000,
        blocked_ns: ms * 200_000,
        runnable_ns: ms * 100_000,
        ..LedgerRow::default()
    }
}

fn file(pid: u32, exec: &str, kind: FileKind, path: &str, [read, written]: [u64; 2]) -> FileUse {
    FileUse {
        pid,
        exec: exec.into(),
        kind,
        path: path.into(),
        read_calls: read / 8192,
        read_bytes: read,
        write_calls: written / 8192,
        write_bytes: written,
        ..FileUse::default()
    }
}

pub(crate) fn put(name: &str, folder: &Path, record: RecordRef<'_>) -> PathBuf {
    let path = folder.join(name);
    record.save_to(&path, folder).unwrap();
    path
}

/// A trace of a run too fast to be true.
pub(crate) fn impossible(folder: &Path) -> PathBuf {
    let mut record = trace(&["copy", "vmcore", "/dev/null"]);
    record.processes.push(process(7, "copy", &["copy", "vmcore", "/dev/null"]));
    record.calls.push(call(7, "copy", "write", 8_192));
    record.ledger.push(ledger(7, "copy", 147));
    record.files.push(file(7, "copy", FileKind::Char, "/dev/null", [0, 64 << 30]));
    record.files.push(file(7, "copy", FileKind::File, "/tmp/config", [2 << 20, 0]));
    record.findings.push(Finding {
        id: "impossible-rate".into(),
        verdict: Verdict::Impossible,
        text: "64 GiB went through /dev/null in 147 ms = 468 GB/s".into(),
        evidence: [
            ("file".to_owned(), json!("/dev/null")),
            ("ceiling_bytes_per_second".to_owned(), json!(32_000_000_000u64)),
        ]
        .into(),
        advice: Some("make the bytes be read: pipe them to `wc -c`".into()),
    });
    put("impossible.json", folder, RecordRef::Trace(&record))
}

/// Limits of the same machine.
pub(crate) fn limits(folder: &Path) -> PathBuf {
    let limit = |name: &str, unit: &str, value: f64| Limit {
        name: name.into(),
        unit: unit.into(),
        value: Some(value),
        spread: Some(value / 20.0),
        method: "made for a test".into(),
        skipped: None,
        measured: None,
        volume: None,
    };
    let skipped = Limit {
        value: None,
        spread: None,
        skipped: Some("io_uring_setup: EPERM".into()),
        ..limit("io_uring-nop", "ns", 1.0)
    };
    let record = Limits {
        schema: Limits::SCHEMA.into(),
        started: STARTED.into(),
        machine: machine(),
        limits: vec![
            limit("syscall", "ns", 81.25),
            limit("page-fault", "ns", 700.0),
            limit("fork", "ns", 81_000.0),
            limit("memory-read-all", "bytes/s", 32e9),
            limit("memory-copy-all", "bytes/s", 16e9),
            limit("pipe", "bytes/s", 2.5e9),
            skipped,
        ],
    };
    put("limits.json", folder, RecordRef::Limits(&record))
}

/// A copy.
pub(crate) fn copy(folder: &Path) -> PathBuf {
    let part = CopyPart {
        source: "file".into(),
        source_is: "regular file, 64 MiB, on ext4".into(),
        target: "copy".into(),
        target_is: "new regular file, on ext4".into(),
        mover: Some("copy-file-range".into()),
        bytes: 64 << 20,
        referenced_bytes: 0,
        copied_bytes: 64 << 20,
        touched_bytes: 0,
        wall_ns: 21_000_000,
        plan: CopyPlan {
            tried: vec![TriedMover {
                mover: "copy-file-range".into(),
                reason: "one copy inside the kernel, or none".into(),
                probed: None,
                refused: None,
            }],
            spare: Vec::new(),
            unsuited: Vec::new(),
        },
        error: None,
        dirty_bytes: None,
    };
    let record = CopyRun {
        schema: CopyRun::SCHEMA.into(),
        started: STARTED.into(),
        machine: machine(),
        sources: vec!["file".into()],
        target: "copy".into(),
        mover: Some("copy-file-range".into()),
        bytes: 64 << 20,
        referenced_bytes: 0,
        copied_bytes: 64 << 20,
        touched_bytes: 0,
        wall_ns: 23_000_000,
        fsync_ns: None,
        verified: Some(true),
        errors: 0,
        messages: Vec::new(),
        contract: String::new(),
        copies: vec![part],
        findings: Vec::new(),
    };
    put("copy.json", folder, RecordRef::Copy(&record))
}

/// A herd: two ways, one of which is linear and fitted.
pub(crate) fn sweep(folder: &Path) -> PathBuf {
    let numbers = [1u64, 64, 512, 1_024, 4_096, 16_384];
    let ways = ["select", "epoll-exclusive"];
    let case = |way: &str, n: u64| {
        let median =
            if way == "select" { 48_000.0 + 2_050.0 * n as f64 } else { 50_000.0 + n as f64 };
        Case {
            params: [
                ("waiter".to_owned(), AxisValue::Name(way.to_owned())),
                ("processes".to_owned(), AxisValue::Number(n)),
            ]
            .into(),
            metric: "time of connect()".into(),
            unit: "ns".into(),
            samples: vec![median * 0.9, median, median * 1.3],
            median: Some(median),
            mean: Some(median * 1.07),
            stddev: Some(median * 0.2),
            ci95: Some([median * 0.9, median * 1.25]),
            extra: [("woken".to_owned(), n as f64)].into(),
            skipped: None,
            min: Some(median * 0.9),
            extra_samples: [].into(),
            note: None,
            visits: Vec::new(),
        }
    };
    let claim = |id: &str, verdict, evidence: serde_json::Value| Claim {
        id: id.into(),
        source: "002".into(),
        text: "connect() takes time linear in the number of processes".into(),
        verdict,
        evidence: [("select".to_owned(), evidence)].into(),
        because: "connect() = 48 µs + 2.05 µs × N (R² 0.998)".into(),
    };
    let axis = |name: &str, values: Vec<AxisValue>| SweepAxis {
        name: name.into(),
        unit: String::new(),
        values,
    };
    let line = json!({"intercept": 48e3, "slope": 2050.0, "slope_ci95": [2e3, 2.1e3], "r2": 0.998});
    let record = Sweep {
        schema: Sweep::SCHEMA.into(),
        started: STARTED.into(),
        machine: machine(),
        experiment: "herd".into(),
        axes: vec![
            axis("waiter", ways.map(|way| AxisValue::Name(way.into())).into()),
            axis("processes", numbers.map(AxisValue::Number).into()),
        ],
        cases: ways.iter().flat_map(|way| numbers.iter().map(|n| case(way, *n))).collect(),
        claims: vec![
            claim("herd-linear", ClaimVerdict::Holds, line),
            claim("herd-load", ClaimVerdict::Fails, json!(0.5)),
        ],
        about: ExperimentFacts {
            summary: "connect() to a listener shared by N sleeping processes".into(),
            extras: vec![Extra {
                name: "woken".into(),
                unit: String::new(),
                summary: "processes woken".into(),
            }],
            along: "processes".into(),
            lines: "waiter".into(),
            ..ExperimentFacts::default()
        },
        run: SweepRun {
            size: "full".into(),
            seed: 7,
            wall_ns: 62_300_000_000,
            rounds: 3,
            ..SweepRun::default()
        },
        machines: Vec::new(),
    };
    put("sweep.json", folder, RecordRef::Sweep(&record))
}

/// A trace in which every name is hostile.
pub(crate) fn hostile(folder: &Path) -> PathBuf {
    let mut record = trace(&[HOSTILE, "\u{1b}[31mred\u{9b}", "=cmd|' /C calc'!A0"]);
    record.started = STARTED.into();
    record.machine.kernel = HOSTILE.into();
    record.observer.name = HOSTILE.into();
    for (pid, ms) in [(1, 90), (2, 60)] {
        record.processes.push(process(pid, HOSTILE, &[HOSTILE, "\u{1b}]0;x\u{7}"]));
        record.calls.push(call(pid, HOSTILE, HOSTILE, 100));
        record.ledger.push(ledger(pid, HOSTILE, ms));
        record.files.push(file(pid, HOSTILE, FileKind::File, HOSTILE, [4 << 20, 0]));
        record.files.push(file(pid, HOSTILE, FileKind::File, "=1+1", [4 << 20, 0]));
    }
    record.findings.push(Finding {
        id: HOSTILE.into(),
        verdict: Verdict::Impossible,
        text: HOSTILE.into(),
        evidence: [(HOSTILE.to_owned(), json!([HOSTILE]))].into(),
        advice: Some(HOSTILE.into()),
    });
    put("hostile.json", folder, RecordRef::Trace(&record))
}

/// A trace of so many processes that the record has so many bytes.
pub(crate) fn large(folder: &Path, bytes: u64) -> PathBuf {
    const CALLS: [&str; 20] = [
        "read",
        "write",
        "openat",
        "close",
        "mmap",
        "munmap",
        "fstat",
        "brk",
        "execve",
        "mprotect",
        "access",
        "pread64",
        "lseek",
        "futex",
        "clone3",
        "wait4",
        "ioctl",
        "getdents64",
        "readlink",
        "exit_group",
    ];
    /// What a row of a call takes in JSON, roughly.
    const OF_A_ROW: u64 = 950;
    let mut record = trace(&["make", "-j8"]);
    let processes = bytes / OF_A_ROW / CALLS.len() as u64 + 1;
    for pid in 1..=processes as u32 {
        let exec = ["cc1", "as", "ld", "sh", "make"][pid as usize % 5];
        let path = format!("/usr/src/project/module-{pid}/file-{pid}.c");
        record.processes.push(process(pid, exec, &[exec, "-O2", "-c", &path]));
        record.ledger.push(ledger(pid, exec, 10 + u64::from(pid) % 977));
        record.files.push(file(pid, exec, FileKind::File, &path, [1 << 20, 0]));
        let of = CALLS.iter().zip(1u64..);
        record.calls.extend(of.map(|(name, n)| call(pid, exec, name, n * 7 + u64::from(pid) % 31)));
    }
    put("large.json", folder, RecordRef::Trace(&record))
}
