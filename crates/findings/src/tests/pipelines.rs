//! The process that limits a pipeline, and the nearest runs in which none does.

use iotomy_record::CpuCapacity;

use super::*;

/// `from | work | to`, each a process of `times`: user time, blocked in its pipe, run queue delay.
pub(super) fn pipeline(times: [[u64; 3]; 3]) -> Trace {
    let names = ["from", "work", "to"];
    let mut trace = Trace { calls: vec![], files: vec![], ledger: vec![], ..trace() };
    trace.processes.clear();
    for ((pid, exec), [user, blocked, runnable]) in (1u32..).zip(names).zip(times) {
        let mut own = |mut one: FileUse| {
            (one.pid, one.exec) = (pid, exec.to_owned());
            trace.files.push(one);
        };
        let read =
            FileUse { read_calls: 500, ..file(FileKind::Pipe, &format!("pipe:[{}]", pid - 1)) };
        let write = FileUse { write_calls: 500, ..file(FileKind::Pipe, &format!("pipe:[{pid}]")) };
        match pid {
            1 => own(write),
            2 => [read, write].into_iter().for_each(&mut own),
            _ => own(read),
        }
        trace.processes.push(Process { pid, exec: exec.into(), threads: 1, ..Process::default() });
        let syscall = if pid == 1 { "write" } else { "read" };
        let call = Call { blocked_ns: Some(blocked * MS), ..call(syscall, 500) };
        trace.calls.push(Call { pid, exec: exec.into(), ..call });
        trace.ledger.push(LedgerRow {
            pid,
            exec: exec.into(),
            thread_ns: (user + blocked + runnable) * MS,
            user_ns: user * MS,
            blocked_ns: blocked * MS,
            runnable_ns: runnable * MS,
            ..LedgerRow::default()
        });
    }
    trace
}

#[test]
fn the_process_that_the_others_of_a_pipeline_wait_for_is_named() {
    let is_named = |trace: Trace| {
        judged(trace).into_iter().find(|(id, _)| id == "pipeline-limit").map(|(_, text)| text)
    };
    let clear = [[20, 79, 1], [95, 3, 2], [5, 94, 1]];
    assert_eq!(
        is_named(pipeline(clear)).unwrap(),
        "work (2) limited its pipeline: it was on a CPU for 95.0 % of 100 ms, and from, before it, \
         waited 79 ms for room in its pipe; to, after it, waited 94 ms for data from it"
    );
    // Just busy enough, and not.
    assert!(is_named(pipeline([[20, 80, 0], [90, 9, 1], [5, 95, 0]])).is_some());
    assert_eq!(is_named(pipeline([[20, 80, 0], [89, 10, 1], [5, 95, 0]])), None);
    // Its time is in the run queue: the CPUs are the limit.
    assert_eq!(is_named(pipeline([[20, 79, 1], [80, 0, 20], [5, 94, 1]])), None);
    // Another is as busy, or does not wait for it.
    assert_eq!(is_named(pipeline([[92, 7, 1], [95, 3, 2], [5, 94, 1]])), None);
    assert_eq!(is_named(pipeline([[20, 2, 78], [95, 3, 2], [5, 94, 1]])), None);
    let mut elsewhere = pipeline(clear);
    elsewhere.calls[0].syscall = "fsync".into();
    assert_eq!(is_named(elsewhere), None);
    let mut parallel = pipeline(clear);
    parallel.processes[1].threads = 2;
    assert_eq!(is_named(parallel), None);
    let mut alone = pipeline(clear);
    alone.machine.cpus = 1;
    assert_eq!(is_named(alone), None);
    let mut confined = pipeline(clear);
    confined.cpu_capacity =
        Some(CpuCapacity { cpus: 1.0, affinity: 1, quota: None, throttled: None });
    assert_eq!(is_named(confined), None);
    let mut lost = pipeline(clear);
    lost.observer.lost_events = 1;
    assert_eq!(is_named(lost), None);
    let mut unconnected = pipeline(clear);
    unconnected.files.retain(|file| file.pid == 2);
    assert_eq!(is_named(unconnected), None);
}

#[test]
fn a_compressor_that_limits_its_pipeline_is_advised_to_use_more_cpus() {
    let advice = |exec: &str, argv: &[&str]| {
        let mut trace = pipeline([[20, 79, 1], [95, 3, 2], [5, 94, 1]]);
        trace.processes[1].called = exec.into();
        trace.processes[1].argv = argv.iter().map(|&word| word.to_owned()).collect();
        let found = crate::trace(&trace, None).findings;
        found.into_iter().find(|one| one.id == "pipeline-limit").unwrap().advice
    };
    assert!(advice("gzip", &["gzip", "-9"]).unwrap().starts_with("pigz"));
    assert!(advice("xz", &["xz", "-c"]).unwrap().starts_with("xz -T0"));
    assert_eq!(advice("xz", &["xz", "-T0"]), None);
    assert_eq!(advice("gzip", &["gzip", "-cd"]), None);
    assert_eq!(advice("grep", &["grep", "x"]), None);
}
