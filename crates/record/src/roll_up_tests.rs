use proptest::prelude::*;

use super::*;
use crate::{Histogram, Running, arbitrary};

/// A shell that runs `n` programs one after another, each in a process of its own.
fn shell(n: u32) -> Trace {
    let mut record = crate::store::parse_trace(include_bytes!("store/plain.json")).unwrap();
    record.command = vec!["sh".into()];
    (record.processes, record.calls, record.files, record.ledger) = Default::default();
    record.threads = Vec::new();
    let mut image = |pid: u32, exec: &str, continued: u32, before_exec: bool| {
        let exec = exec.to_owned();
        record.processes.push(Process {
            pid,
            exec: exec.clone(),
            argv: vec![exec.clone(), pid.to_string()],
            continued,
            before_exec,
            threads: 1,
            user_ns: u64::from(pid),
            system_ns: 2,
            minor_faults: 3,
            major_faults: 4,
            voluntary_switches: 5,
            involuntary_switches: 6,
            storage_read_bytes: Some(7),
            max_rss_bytes: u64::from(pid),
            ..Process::default()
        });
        let mut wall_log2 = Histogram::default();
        wall_log2.add(u64::from(pid));
        for syscall in ["close", "mmap"] {
            record.calls.push(Call {
                pid,
                exec: exec.clone(),
                syscall: syscall.into(),
                calls: 1,
                errors: 1,
                error_kinds: [("ENOENT".to_owned(), 1)].into(),
                bytes: 2,
                wall_ns: u64::from(pid),
                max_ns: u64::from(pid),
                on_cpu_ns: Some(1),
                blocked_ns: Some(3),
                runnable_ns: Some(4),
                in_flight: 5,
                entered_before: 6,
                asked: Some(7),
                ready: Some(8),
                return_log2: wall_log2.clone(),
                wall_log2: wall_log2.clone(),
                on_cpu_log2: Some(wall_log2.clone()),
                blocked_log2: Some(wall_log2.clone()),
                ..Call::default()
            });
        }
        for path in ["/lib/libc.so.6".to_owned(), format!("pipe:[{pid}]")] {
            record.files.push(FileUse {
                pid,
                exec: exec.clone(),
                kind: FileKind::File,
                path,
                read_calls: 1,
                read_bytes: 2,
                write_calls: 3,
                write_bytes: 4,
                map_calls: 5,
                mapped_bytes: 6,
                ..FileUse::default()
            });
        }
        for tid in [pid, pid + 1000, pid + 2000] {
            record.threads.push(Thread {
                pid,
                exec: exec.clone(),
                tid,
                name: exec.clone(),
                calls: 1,
                errors: 2,
                thread_ns: Some(3),
                on_cpu_ns: u64::from(tid),
                user_ns: Some(4),
                blocked_ns: Some(5),
                runnable_ns: Some(6),
                voluntary_switches: 7,
                involuntary_switches: 8,
                longest_call: if tid == pid { "close" } else { "mmap" }.into(),
                longest_ns: u64::from(tid),
                ..Thread::default()
            });
        }
        record.ledger.push(LedgerRow {
            pid,
            exec,
            thread_ns: 10,
            user_ns: 1,
            calls_on_cpu_ns: 2,
            blocked_ns: 3,
            fault_ns: Some(1),
            stopped_ns: 1,
            runnable_ns: 4,
            residual_ns: -5,
            ..LedgerRow::default()
        });
    };
    image(100, "sh", 0, false);
    for pid in 101..101 + n {
        image(pid, "sh", 0, true);
        image(pid, "true", 1, false);
    }
    record
}

#[test]
fn many_identical_images_become_one_entry_and_a_few_stay() {
    let mut few = shell(4);
    let before = few.clone();
    few.roll_up();
    assert_eq!(few, before, "four are told apart");
    let mut many = shell(9);
    many.roll_up();
    let entries: Vec<_> =
        many.processes.iter().map(|p| (p.pid, &*p.exec, p.instances, p.continued)).collect();
    assert_eq!(entries, [(100, "sh", 0, 0), (101, "sh", 9, 0), (101, "true", 9, 9)]);
    assert_eq!(many.processes[2].argv, ["true", "101"], "the first's");
    assert_eq!(many.processes[2].max_rss_bytes, 109, "the largest");
    assert_eq!((many.process_count(), many.thread_count()), (10, 10));
    assert_eq!(many.ledger.len(), 3);
    let of_true: Vec<&Call> = many.calls.iter().filter(|call| call.exec == "true").collect();
    assert_eq!(of_true.len(), 2);
    assert_eq!((of_true[0].calls, of_true[0].max_ns), (9, 109));
    assert_eq!((of_true[0].error_kinds["ENOENT"], of_true[0].wall_log2.total()), (9, 9));
    let shared: Vec<&FileUse> = many
        .files
        .iter()
        .filter(|file| file.exec == "true" && file.path.ends_with("so.6"))
        .collect();
    assert_eq!((shared.len(), shared[0].read_calls), (1, 9));
    assert_eq!(many.files.iter().filter(|file| file.path.starts_with("pipe")).count(), 19);
    let rows: Vec<_> = many
        .threads
        .iter()
        .map(|row| (row.pid, row.tid, &*row.exec, row.count(), &*row.longest_call))
        .collect();
    // By themselves those of the command's own process, and the first threads of the others.
    let of_sh =
        [(100, 2100, "sh", 1, "mmap"), (100, 1100, "sh", 1, "mmap"), (100, 100, "sh", 1, "close")];
    let put_together = |exec| [(101, 1101, exec, 18, "mmap"), (101, 101, exec, 9, "close")];
    assert_eq!(rows[..3], of_sh);
    assert_eq!(rows[3..], [put_together("sh"), put_together("true")].concat());
}

#[test]
fn images_that_are_called_differently_or_run_another_file_are_not_identical() {
    let mut record = shell(9);
    for (at, process) in record.processes.iter_mut().enumerate().filter(|(_, p)| p.exec == "true") {
        match at % 4 {
            0 => process.called = "ls".into(),
            _ => process.binary = "busybox".into(),
        }
    }
    record.roll_up();
    let of_true = record.processes.iter().filter(|p| p.exec == "true");
    assert_eq!(of_true.map(|p| p.instances).collect::<Vec<_>>(), [5, 0, 0, 0, 0]);
}

#[test]
fn titles_that_differ_in_numbers_are_one_entry_and_others_are_not() {
    let mut record = shell(9);
    for process in record.processes.iter_mut().filter(|p| p.exec == "true") {
        process.title = match process.pid {
            ..104 => format!("worker {}", process.pid),
            pid => format!("idle 127.0.0.1({pid})"),
        };
    }
    record.roll_up();
    let of_true = record.processes.iter().filter(|p| p.exec == "true");
    let entries: Vec<_> = of_true.map(|p| (p.instances, p.name())).collect();
    let alone = [(0, "worker 101"), (0, "worker 102"), (0, "worker 103")];
    assert_eq!(entries, [&alone[..], &[(6, "idle *(*)")]].concat());
}

#[test]
fn what_outlives_the_watch_stays_by_itself() {
    let mut record = shell(9);
    record.still_running = vec![Running { pid: 105, exec: "true".into() }];
    record.roll_up();
    let of_true = record.processes.iter().filter(|p| p.exec == "true");
    let entries: Vec<_> = of_true.map(|p| (p.pid, p.instances)).collect();
    assert_eq!(entries, [(101, 8), (105, 0)]);
}

#[test]
fn an_exec_makes_no_process_and_no_thread() {
    let record = shell(3);
    assert_eq!((record.process_count(), record.thread_count()), (4, 4));
    // A record without the mark of continued images.
    let mut old = record;
    old.processes.iter_mut().for_each(|p| (p.continued, p.before_exec) = (0, false));
    assert_eq!((old.process_count(), old.thread_count()), (4, 4));
}

/// The sum of each number of a table that is one of all rows, distributions included.
fn sums_of(table: &serde_json::Value) -> BTreeMap<String, i64> {
    const OF_ONE: [&str; 7] =
        ["pid", "tid", "ppid", "image", "instances", "max_ns", "max_rss_bytes"];
    let mut sums = BTreeMap::new();
    for (field, value) in table.as_array().unwrap().iter().flat_map(|row| row.as_object().unwrap())
    {
        if !OF_ONE.contains(&field.as_str()) {
            add_numbers(&mut sums, field, value);
        }
    }
    sums
}

fn add_numbers(sums: &mut BTreeMap<String, i64>, path: &str, value: &serde_json::Value) {
    match value {
        serde_json::Value::Object(fields) => {
            fields.iter().for_each(|(name, one)| add_numbers(sums, &format!("{path}.{name}"), one));
        }
        serde_json::Value::Array(all) => {
            all.iter()
                .enumerate()
                .for_each(|(at, one)| add_numbers(sums, &format!("{path}.{at}"), one));
        }
        other => *sums.entry(path.to_owned()).or_default() += other.as_i64().unwrap_or(0),
    }
}

#[test]
fn what_is_dirty_in_the_end_is_kept_where_the_first_only_read() {
    let mut record = shell(9);
    for file in record.files.iter_mut().filter(|file| file.exec == "true" && file.pid > 101) {
        file.dirty_bytes = Some(4096);
    }
    record.roll_up();
    let of_true =
        record.files.iter().find(|file| file.exec == "true" && file.path.ends_with("so.6"));
    assert_eq!(of_true.unwrap().dirty_bytes, Some(4096));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn no_sum_changes(mut record in arbitrary::trace(), many in 0u32..12) {
        // Numbers that add up without reaching the end of their range.
        let shell = shell(many);
        record.processes = shell.processes;
        record.calls = shell.calls;
        record.files = shell.files;
        record.ledger = shell.ledger;
        record.threads = shell.threads;
        let sums = |record: &Trace| {
            let images: u32 = record.processes.iter().map(Process::count).sum();
            let tables = serde_json::to_value(record).unwrap();
            let tables = ["processes", "calls", "files", "ledger", "threads"].map(|name| sums_of(&tables[name]));
            (tables, images, record.process_count(), record.thread_count())
        };
        let before = sums(&record);
        record.roll_up();
        prop_assert_eq!(sums(&record), before);
    }

    #[test]
    fn any_record_can_be_put_together_twice(mut record in arbitrary::trace()) {
        record.roll_up();
        let once = record.clone();
        record.roll_up();
        prop_assert_eq!(record.processes.len(), once.processes.len());
        let bytes = crate::store::RecordRef::Trace(&record).json().unwrap();
        prop_assert_eq!(crate::store::parse_trace(&bytes).unwrap(), record);
    }
}
