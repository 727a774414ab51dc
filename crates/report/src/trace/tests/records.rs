//! Fixed records for the goldens.

use iotomy_record::*;

/// A call with its times in µs.
fn call(pid: u32, exec: &str, syscall: &str, calls: u64, on_cpu: u64, blocked: u64) -> Call {
    let mut wall_log2 = Histogram::default();
    let each = (on_cpu + blocked) * 1000 / calls.max(1);
    (0..calls).for_each(|_| wall_log2.add(each));
    Call {
        pid,
        exec: exec.into(),
        syscall: syscall.into(),
        calls,
        wall_ns: (on_cpu + blocked) * 1000 + calls * 10,
        on_cpu_ns: Some(on_cpu * 1000),
        blocked_ns: Some(blocked * 1000),
        runnable_ns: Some(calls * 10),
        max_ns: each * calls.clamp(1, 3),
        on_cpu_log2: Some(wall_log2.clone()),
        blocked_log2: Some(Histogram::default()),
        wall_log2,
        ..Call::default()
    }
}

/// The same, with every call returning `bytes`.
fn moving(mut call: Call, bytes: u64) -> Call {
    call.bytes = call.calls * bytes;
    (0..call.calls).for_each(|_| call.return_log2.add(bytes));
    call
}

fn failing(mut call: Call, kinds: &[(&str, u64)]) -> Call {
    call.error_kinds = kinds.iter().map(|(kind, n)| (kind.to_string(), *n)).collect();
    call.errors = kinds.iter().map(|(_, n)| n).sum();
    call
}

fn unreturned(mut call: Call) -> Call {
    call.in_flight = 1;
    call
}

/// Threads' time and its parts in µs; the rest is the residual.
fn ledger(pid: u32, exec: &str, [thread, user, calls, blocked, runnable]: [u64; 5]) -> LedgerRow {
    LedgerRow {
        pid,
        exec: exec.into(),
        thread_ns: thread * 1000,
        user_ns: user * 1000,
        calls_on_cpu_ns: calls * 1000,
        blocked_ns: blocked * 1000,
        runnable_ns: runnable * 1000,
        residual_ns: (thread as i64 - (user + calls + blocked + runnable) as i64) * 1000,
        ..LedgerRow::default()
    }
}

fn process(pid: u32, ppid: u32, argv: &[&str]) -> Process {
    Process {
        pid,
        ppid,
        exec: argv[0].into(),
        argv: argv.iter().map(|word| word.to_string()).collect(),
        threads: 1,
        ..Process::default()
    }
}

fn file(pid: u32, exec: &str, kind: FileKind, path: &str, n: [u64; 4]) -> FileUse {
    FileUse {
        pid,
        exec: exec.into(),
        kind,
        path: path.into(),
        read_calls: n[0],
        read_bytes: n[1],
        write_calls: n[2],
        write_bytes: n[3],
        ..FileUse::default()
    }
}

fn finding(id: &str, verdict: Verdict, text: &str, advice: Option<&str>) -> Finding {
    Finding {
        id: id.into(),
        verdict,
        text: text.into(),
        evidence: Default::default(),
        advice: advice.map(Into::into),
    }
}

pub(super) fn empty() -> Trace {
    Trace {
        schema: Trace::SCHEMA.into(),
        started: "2025-03-01T10:20:30Z".into(),
        command: vec![],
        wall_ns: 0,
        exit: None,
        machine: Machine::default(),
        observer: ObserverUse {
            missing: Vec::new(),
            name: "bpf".into(),
            cost_ns_per_call: 210.4,
            cost_ns_low: 160.2,
            cost_ns_high: 260.6,
            lost_events: 0,
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
            incomplete_calls: 0,
            times_inflated: false,
            fallback: None,
            untraced_tasks: 0,
            startup_ns: 0,
        },
        processes: vec![],
        calls: vec![],
        files: vec![],
        paths: vec![],
        connections: Vec::new(),
        requests: Vec::new(),
        ring_operations: Vec::new(),
        slowest: vec![],
        ended_by: None,
        by: None,
        ledger: vec![],
        threads: vec![],
        interval: None,
        ring: None,
        sample: None,
        cpu_capacity: None,
        findings: vec![],
        still_running: vec![],
        unwatched_children: vec![],
        host_names: std::collections::BTreeMap::new(),
        targets: vec![],
        view: View::default(),
    }
}

/// One process that copies a file by small requests.
pub(crate) fn dd() -> Trace {
    let c = |name, calls, on_cpu, blocked| call(29838, "dd", name, calls, on_cpu, blocked);
    let mut read = moving(c("read", 8192, 61_000, 600), 8192);
    read.calls += 1;
    read.return_log2.add(0);
    let mut calls = vec![
        moving(c("write", 8192, 98_200, 8_800), 8192),
        read,
        failing(c("openat", 7, 50, 0), &[("ENOENT", 2)]),
        failing(c("lseek", 2, 3, 0), &[("ESPIPE", 1)]),
        unreturned(c("exit_group", 0, 20, 0)),
    ];
    let small =
        ["brk", "mmap", "mprotect", "munmap", "close", "fstat", "execve", "access", "rt_sigaction"];
    calls.extend(small.iter().zip(2..).map(|(name, n)| c(name, n, n * 9, 0)));
    Trace {
        command: ["/usr/bin/dd", "if=zerofile", "of=copy", "bs=8192"].map(String::from).to_vec(),
        wall_ns: 184_000_000,
        exit: Some(Exit::Code(0)),
        processes: vec![Process {
            minor_faults: 1_204,
            ..process(29838, 100, &["dd", "if=zerofile", "of=copy", "bs=8192"])
        }],
        calls,
        ledger: vec![ledger(29838, "dd", [184_000, 6_100, 160_500, 9_400, 5_200])],
        findings: vec![
            finding(
                "still-dirty",
                Verdict::Note,
                "64 MiB of copy are in memory only; nothing of it is on the disk yet (fsync was never called)",
                None,
            ),
            finding(
                "small-requests",
                Verdict::Advice,
                "8,192 writes of 8 KiB in sequence to copy; at 1 MiB their fixed cost falls from 24 ms to 0.2 ms here",
                Some("iotomy copy zerofile copy"),
            ),
        ],
        ..empty()
    }
}

/// A shell, a pipeline under it, and one program started by exec in the same process.
pub(super) fn shell_tree() -> Trace {
    let mut record = Trace {
        command: ["sh", "-c", "cat zerofile | dd of=/dev/null; ls nope"].map(String::from).to_vec(),
        wall_ns: 92_000_000,
        exit: Some(Exit::Code(2)),
        processes: vec![
            process(4100, 1, &["sh", "-c", "cat zerofile | dd of=/dev/null; ls nope"]),
            process(4101, 4100, &["cat", "zerofile"]),
            process(4102, 4100, &["dd", "of=/dev/null"]),
            process(4100, 1, &["ls", "nope"]),
        ],
        calls: vec![
            failing(call(4100, "sh", "wait4", 3, 30, 88_000), &[("ECHILD", 1)]),
            call(4100, "sh", "clone", 2, 420, 0),
            call(4100, "sh", "pipe2", 1, 12, 0),
            moving(call(4101, "cat", "read", 513, 18_400, 100), 131_072),
            moving(call(4101, "cat", "write", 512, 22_300, 30_100), 131_072),
            moving(call(4102, "dd", "read", 131_072, 61_700, 4_900), 512),
            moving(call(4102, "dd", "write", 131_072, 9_100, 0), 512),
            failing(call(4100, "ls", "statx", 2, 40, 0), &[("ENOENT", 2)]),
            moving(call(4100, "ls", "write", 1, 9, 0), 50),
        ],
        ledger: vec![
            ledger(4100, "sh", [91_000, 900, 462, 88_000, 700]),
            ledger(4101, "cat", [84_000, 2_000, 40_700, 30_200, 10_500]),
            ledger(4102, "dd", [85_000, 7_400, 70_800, 4_900, 1_700]),
            ledger(4100, "ls", [1_000, 700, 60, 0, 210]),
        ],
        files: vec![
            file(
                4101,
                "cat",
                FileKind::File,
                "/home/someone/with/a/long/path/that/goes/on/and/on/and/on/to/the/zerofile",
                [513, 1 << 26, 0, 0],
            ),
            file(4101, "cat", FileKind::Pipe, "pipe:[991]", [0, 0, 512, 1 << 26]),
            file(4102, "dd", FileKind::Pipe, "pipe:[991]", [131_072, 1 << 26, 0, 0]),
            file(4102, "dd", FileKind::Char, "/dev/null", [0, 0, 131_072, 1 << 26]),
        ],
        ..empty()
    };
    record.view.files = true;
    record.findings.push(finding(
        "null-sink",
        Verdict::Impossible,
        "dd wrote 64 MiB in 9.1 ms = 7.37 GB/s to /dev/null, which never looks at what it is given",
        None,
    ));
    record
}

/// A tree seen by ptrace: no ledger, no parts of time.
pub(super) fn by_ptrace() -> Trace {
    let mut record = dd();
    record.ledger.clear();
    record.findings.clear();
    for call in &mut record.calls {
        (call.on_cpu_ns, call.blocked_ns, call.runnable_ns) = (None, None, None);
        (call.on_cpu_log2, call.blocked_log2) = (None, None);
    }
    record.observer.name = "ptrace".into();
    record.observer.cost_ns_per_call = 12_400.0;
    record.observer.cost_ns_low = 9_600.0;
    record.observer.cost_ns_high = 15_200.0;
    record.observer.times_inflated = true;
    record.wall_ns = 2_310_000_000;
    record
}

/// Killed in a call, with events lost.
pub(super) fn killed() -> Trace {
    Trace {
        command: vec!["sleep".into(), "100".into()],
        wall_ns: 1_002_000_000,
        exit: Some(Exit::Signal(9)),
        processes: vec![process(77, 1, &["sleep", "100"])],
        calls: vec![
            unreturned(call(77, "sleep", "clock_nanosleep", 0, 20, 1_000_000)),
            failing(
                call(77, "sleep", "openat", 30, 90, 0),
                &[("ENOENT", 9), ("EACCES", 7), ("ELOOP", 5), ("ENAMETOOLONG", 4), ("ENOTDIR", 3)],
            ),
            call(77, "sleep", "io_uring_enter", 3, 44, 0),
        ],
        ledger: vec![ledger(77, "sleep", [1_001_800, 700, 160, 1_001_000, 100])],
        observer: ObserverUse { lost_events: 1_204, incomplete_calls: 1, ..empty().observer },
        findings: vec![finding(
            "odd",
            Verdict::Suspect,
            "\u{1b}[31mthis text\nhas a great deal to say about a run that was killed, more than fits one line of the terminal",
            Some("nothing"),
        )],
        ..empty()
    }
}

/// A running process watched for a while.
pub(super) fn attached() -> Trace {
    let mut record = Trace {
        wall_ns: 5_000_000_000,
        processes: vec![process(812, 1, &["postgres", "-D", "/srv/db"])],
        calls: vec![
            call(812, "postgres", "epoll_wait", 410, 1_900, 4_700_000),
            moving(call(812, "postgres", "pwrite64", 400, 9_300, 200), 8192),
            call(812, "postgres", "fdatasync", 40, 3_000, 210_000),
        ],
        ledger: vec![ledger(812, "postgres", [5_000_000, 61_000, 14_200, 4_910_200, 9_000])],
        still_running: vec![Running { pid: 812, exec: "postgres".into() }],
        ..empty()
    };
    record.view.calls = vec!["%io".into(), "fdatasync".into(), "epoll_wait".into()];
    record.observer.calls_left_out = Some(12_345);
    record
}

/// Calls by texts that are too long for a line, and others.
pub(super) fn grouped() -> Trace {
    let mut record = attached();
    let key = |path: &str, image: &str| {
        let texts =
            ["read", path, image, "/system.slice/postgresql@15-main.service/worker-of-many"];
        texts.map(|text| Key::Text(text.into())).to_vec()
    };
    let row = |calls: u64, key: Vec<Key>| Group {
        key,
        calls,
        errors: calls / 100,
        bytes: calls * 8192,
        wall_ns: calls * 2_345,
        max_ns: 1_234_567,
    };
    record.by = Some(Groups {
        by: ["call", "path", "image", "cgroup"].map(String::from).to_vec(),
        rows: vec![
            row(123_456, key("/var/lib/postgresql/15/main/base/16384/2619_visibility", "postgres")),
            row(7, key("", "/usr/lib/postgresql/15/bin/pg_receivewal-of-a-long-name")),
        ],
        lost_calls: 3,
    });
    record
}

/// Requests of io_uring by each way that they can take.
pub(super) fn rings() -> Trace {
    let mut record = attached();
    record.observer.sees_rings = Some(true);
    record.observer.lost_requests = 2;
    record.calls.push(call(812, "postgres", "io_uring_enter", 900, 400, 100));
    let operation = |op: &str, ways: [u64; 4], bytes: u64, errors: &[(&str, u64)]| {
        let completed: u64 = ways.iter().sum();
        let mut wall_times = iotomy_record::Times::default();
        (0..completed).for_each(|at| wall_times.add(1_000 + 700 * at));
        let [inline, polled, worker, sqpoll] = ways;
        let mut result_log2 = iotomy_record::Histogram::default();
        result_log2.add_slot(14, bytes / 8_192);
        RingOperation {
            pid: 812,
            exec: "postgres".into(),
            op: op.into(),
            submitted: completed,
            completed,
            errors: errors.iter().map(|(_, n)| n).sum(),
            error_kinds: errors.iter().map(|(name, n)| ((*name).to_owned(), *n)).collect(),
            bytes,
            result_log2,
            max_ns: wall_times.max_ns,
            wall_log2: wall_times.log2(),
            wall_times,
            inline,
            polled,
            worker,
            sqpoll,
            ..RingOperation::default()
        }
    };
    let accept = operation("accept", [0, 1, 0, 0], 0, &[("ECANCELED", 1)]);
    let read = operation("read", [700, 20, 3, 0], 5_922_816, &[("EAGAIN", 2), ("EINTR", 9)]);
    record.ring_operations = vec![
        RingOperation { submitted: 731, in_flight: 8, before: 5, worker_unbounded: 2, ..read },
        RingOperation { multishot_completions: 2_345, overflows: 17, ..accept },
        operation("fsync", [0, 0, 40, 0], 0, &[]),
        operation("nop", [0, 0, 0, 12], 0, &[]),
    ];
    record
}

/// A server by thread: some of many, and many that came and went.
pub(super) fn threads() -> Trace {
    let mut record = attached();
    record.view.threads = true;
    record.cpu_capacity =
        Some(CpuCapacity { cpus: 0.5, affinity: 2, quota: Some(0.5), throttled: None });
    (record.processes[0].user_ns, record.processes[0].system_ns) = (1_600_000_000, 400_000_000);
    let thread = |tid: u32, name: &str, instances: u32, on_cpu_us: u64, longest: &str| Thread {
        pid: 812,
        exec: "postgres".into(),
        tid,
        name: name.into(),
        instances,
        calls: on_cpu_us / 7,
        errors: on_cpu_us % 3,
        thread_ns: Some(5_000_000_000),
        on_cpu_ns: on_cpu_us * 1000,
        user_ns: Some(on_cpu_us * 100),
        blocked_ns: Some(5_000_000_000 - on_cpu_us * 2000),
        runnable_ns: Some(on_cpu_us * 1000),
        voluntary_switches: on_cpu_us / 20,
        involuntary_switches: on_cpu_us / 30,
        longest_call: longest.into(),
        longest_ns: 4_000_000_000,
        ..Thread::default()
    };
    record.threads = vec![
        thread(812, "postgres", 0, 61_000, "epoll_wait"),
        thread(813, "hostile\u{1b}[31m", 0, 9_000, "futex"),
        thread(900, "worker", 1_204, 4_000, "fdatasync"),
        thread(901, "", 77, 20, ""),
    ];
    record.threads[3].user_ns = Some(4_900_000_000);
    for at in 0..9 {
        record.threads.push(thread(820 + at, "idle", 0, 0, "futex"));
    }
    record
}

/// One second of a server.
pub(super) fn interval() -> Trace {
    let mut record = attached();
    record.interval = Some(Interval { number: 3, start_ns: 2_000_000_000, is_last: false });
    record.wall_ns = 1_000_000_000;
    record.observer.lost_events = 2;
    record.calls.push(failing(call(812, "postgres", "recvfrom", 60, 900, 0), &[("EAGAIN", 50)]));
    for name in ["lseek", "futex"] {
        record.calls.push(call(812, "postgres", name, 3, 5, 0));
    }
    for call in &mut record.calls {
        call.max_is_bound = call.syscall == "pwrite64";
        for _ in 0..call.calls {
            call.wall_times.add(call.wall_ns / call.calls.max(1));
        }
    }
    record
}

/// A server whose watch a slow call ended, by the sums too, of which the last stretch was kept.
pub(super) fn ended_by_a_call() -> Trace {
    let mut record = attached();
    record.view.until = "call == \"fdatasync\" && duration > 10ms && count() > 100".to_owned();
    record.ring =
        Some(Ring { asked_ns: 30_000_000_000, start_ns: 4_711_000_000_000, ..Ring::default() });
    record.calls[0].max_is_bound = true;
    let call = WholeCall {
        pid: 812,
        exec: "postgres".into(),
        tid: 812,
        thread: "postgres".into(),
        syscall: "fdatasync".into(),
        arguments: vec![7],
        path: Some("/var/lib/postgresql/17/main/pg_wal/000000010000000000000003".into()),
        start_ns: 4_715_980_000_000,
        wall_ns: 16_500_000,
        on_cpu_ns: Some(800_000),
        blocked_ns: Some(7_100_000),
        runnable_ns: Some(8_600_000),
        ..WholeCall::default()
    };
    record.ended_by =
        Some(EndedBy { call, count: Some(1_234), sum_bytes: None, sum_duration_ns: None });
    record
}

/// The same, which no call ended.
pub(super) fn ended_by_no_call() -> Trace {
    let mut record = ended_by_a_call();
    (record.ended_by, record.ring) = (None, None);
    record.observer.end_divided_by_zero = 5;
    record
}

/// The machine, with one active process.
pub(super) fn idle_machine() -> Trace {
    let mut record = attached();
    record.view.machine = true;
    record
}

/// A command whose watch ended by its time limit, and that has been waited for.
pub(super) fn cut_short() -> Trace {
    let running = |pid: u32, exec: &str| Running { pid, exec: exec.into() };
    Trace {
        command: vec!["postgres".into()],
        exit: Some(Exit::Code(0)),
        still_running: vec![running(812, "postgres"), running(813, "sleep")],
        ..attached()
    }
}

/// A build: more images than are shown.
pub(super) fn many() -> Trace {
    let mut record = shell_tree();
    record.files.clear();
    record.findings.clear();
    for pid in 5000..5020 {
        record.processes.push(process(pid, 4100, &["cc1", "-O2"]));
        record.calls.push(call(pid, "cc1", "read", 4, u64::from(pid) - 4_900, 7));
        record.ledger.push(ledger(pid, "cc1", [9_000 + u64::from(pid), 8_000, 200, 7, 100]));
    }
    record
}

/// A build: a shell that forks and executes a compiler, many times, put together.
pub(crate) fn rolled_up() -> Trace {
    let mut record = shell_tree();
    record.command = vec!["make".into()];
    record.exit = Some(Exit::Code(0));
    record.wall_ns = 900_000_000;
    record.processes = vec![
        process(100, 1, &["make"]),
        Process { before_exec: true, instances: 210, threads: 210, ..process(101, 100, &["make"]) },
        Process {
            called: "cc1".into(),
            binary: "cc1-12".into(),
            instances: 210,
            continued: 210,
            threads: 420,
            major_faults: 7_565,
            ..process(101, 100, &["compile", "a.c"])
        },
    ];
    record.calls = vec![
        call(100, "make", "wait4", 210, 2_000, 800_000),
        call(101, "make", "execve", 210, 21_000, 0),
        call(101, "compile", "read", 4_200, 30_000, 1_000),
    ];
    record.files =
        vec![file(101, "compile", FileKind::File, "/usr/include/stdio.h", [4_200, 1 << 20, 0, 0])];
    record.view.files = true;
    let asleep = LedgerRow {
        fault_ns: Some(99_000_000),
        ..ledger(101, "compile", [500_000, 350_000, 30_000, 100_000, 20_000])
    };
    record.ledger = vec![
        ledger(100, "make", [810_000, 8_000, 2_000, 800_000, 0]),
        ledger(101, "make", [30_000, 9_000, 21_000, 0, 0]),
        asleep,
    ];
    record.findings = vec![];
    record.still_running = vec![];
    record
}
