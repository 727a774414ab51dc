//! Rows of threads: their names, and their share of a CPU.

use iotomy_record::CpuCapacity;

use super::{records, rendered};
use crate::trace::images::cpus_used;
use crate::{Style, interval, trace};

#[test]
fn a_thread_without_a_name_is_told_from_those_whose_names_found_no_room() {
    let mut record = records::threads();
    assert!(rendered(&record).contains("(other names) × 77"));
    record.threads[3].instances = 0;
    let text = rendered(&record);
    assert!(text.contains("(no name) (901)") && !text.contains("(other names)"), "{text}");
}

#[test]
fn names_that_differ_at_their_ends_differ_in_a_narrow_table_too() {
    let mut record = records::threads();
    record.threads.truncate(3);
    for (at, thread) in record.threads.iter_mut().enumerate() {
        (thread.tid, thread.instances) = (4_194_301, 0);
        thread.name = format!("worker-pool-{}", at + 9);
    }
    for width in [50, 60, 80, 100, 120] {
        let text = trace(&record, &Style { width, ..Style::default() });
        for name in ["worker-pool-9 (", "worker-pool-10 (", "worker-pool-11 ("] {
            assert!(text.contains(name), "{width}: {text}");
        }
    }
}

#[test]
fn a_thread_never_used_more_than_a_cpu() {
    let mut record = records::threads();
    record.threads.truncate(1);
    record.threads[0].on_cpu_ns = record.wall_ns + record.wall_ns / 50;
    let text = rendered(&record);
    assert!(text.contains(" 100.0 ") && !text.contains(" 102.0 "), "{text}");
    // Of several, the sum may be more.
    record.threads[0].instances = 2;
    let text = rendered(&record);
    assert!(text.contains(" 102.0 "), "{text}");
}

#[test]
fn nor_in_an_interval() {
    let mut record = records::interval();
    record.processes.truncate(1);
    record.ledger.truncate(1);
    let wall_ns = record.wall_ns;
    (record.ledger[0].user_ns, record.ledger[0].calls_on_cpu_ns) = (wall_ns + wall_ns / 50, 0);
    let shown = |alive: u32, thread_ns: u64| {
        let mut record = record.clone();
        (record.processes[0].threads, record.ledger[0].thread_ns) = (alive, thread_ns);
        interval(&record, &Style::default())
    };
    assert!(shown(1, wall_ns).contains(" 1.00 CPUs used"), "{}", shown(1, wall_ns));
    assert!(shown(2, 2 * wall_ns).contains(" 1.02 CPUs used"));
    // Threads that have ended are not counted any more.
    assert!(shown(0, 2 * wall_ns).contains(" 1.02 CPUs used"));
}

#[test]
fn threads_use_no_more_than_a_cpu_each_unless_others_came_and_went() {
    let used = |on_cpu, thread, threads| cpus_used(on_cpu, thread, 1_000.0, threads);
    assert_eq!(used(430.0, 1_000.0, 1.0), 0.43);
    assert_eq!(used(1_010.0, 1_010.0, 1.0), 1.0);
    assert_eq!(used(1_500.0, 2_000.0, 2.0), 1.5);
    assert_eq!(used(1_500.0, 1_600.0, 1.0), 1.5);
}

#[test]
fn nor_in_the_headline() {
    let mut record = records::threads();
    record.processes.truncate(1);
    record.ledger.clear();
    record.cpu_capacity =
        Some(CpuCapacity { cpus: 2.0, affinity: 2, quota: None, throttled: None });
    record.processes[0].user_ns = record.wall_ns + record.wall_ns / 50;
    record.processes[0].system_ns = 0;
    let shown = |threads: u32| {
        let mut record = record.clone();
        record.processes[0].threads = threads;
        rendered(&record)
    };
    assert!(shown(1).contains("CPU 1.00 of 2 "), "{}", shown(1));
    assert!(shown(2).contains("CPU 1.02 of 2 "), "{}", shown(2));
}
