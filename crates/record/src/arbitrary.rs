//! Random records, for property tests here and in the crates that read records.
//!
//! Numbers come from the whole range with frequent extremes, and names contain escapes, line breaks
//! and other scripts: the content of hostile records that the loader would still accept.

mod against;
mod anatomy;
mod block;
mod copy;
mod race;
mod sweep;

use std::collections::BTreeMap;

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;

pub use anatomy::anatomy;
pub use block::{block_io, stories};
pub use copy::copy;
pub use race::race;
pub use sweep::sweep;

use crate::*;

/// A record that [`crate::store::parse_trace`] accepts.
pub fn trace() -> impl Strategy<Value = Trace> {
    let run = (vec(text(), 0..4), number(), option::of(exit()), machine(), observer());
    let tables =
        (vec(process(), 0..6), vec(call(), 0..24), vec(file_use(), 0..8), vec(ledger_row(), 0..6));
    let running = || vec(running(), 0..4);
    let rest = (vec(finding(), 0..4), running(), running(), view());
    (run, tables, rest).prop_map(|(run, tables, rest)| Trace {
        schema: Trace::SCHEMA.to_string(),
        started: "2025-03-01T10:20:30.5Z".to_string(),
        command: run.0,
        wall_ns: run.1,
        exit: run.2,
        machine: run.3,
        observer: run.4,
        processes: tables.0,
        calls: tables.1,
        files: tables.2,
        ledger: tables.3,
        findings: rest.0,
        still_running: rest.1,
        unwatched_children: rest.2,
        view: rest.3,
    })
}

/// Limits that [`crate::store::parse_limits`] accepts.
pub fn limits() -> impl Strategy<Value = Limits> {
    (machine(), vec(limit(), 0..24)).prop_map(|(machine, mut limits)| {
        // No name stands twice.
        for (at, limit) in limits.iter_mut().enumerate() {
            limit.name = format!("{}{at}", limit.name);
        }
        let (schema, started) = (Limits::SCHEMA.to_string(), "2025-03-01T10:20:30.5Z".to_string());
        Limits { schema, started, machine, limits }
    })
}

fn limit() -> impl Strategy<Value = Limit> {
    let value = prop_oneof![1e-3..1e12, Just(f64::MAX), Just(5e-324)];
    let figures = option::of((value, prop_oneof![0.0..1e12, Just(0.0), Just(f64::MAX)]));
    let volume = option::of(volume());
    let texts = (text(), select(vec!["ns", "bytes/s"]), text(), text());
    (texts, figures, volume, any::<bool>()).prop_map(|(texts, figures, volume, kept)| Limit {
        name: texts.0,
        unit: texts.1.to_owned(),
        value: figures.map(|(value, _)| value),
        spread: figures.map(|(_, spread)| spread),
        method: texts.2,
        skipped: figures.is_none().then_some(texts.3),
        measured: kept.then(|| "2025-02-01T10:20:30Z".to_owned()),
        volume,
    })
}

fn volume() -> impl Strategy<Value = Volume> {
    (text(), text(), "[a-z]{1,2}").prop_map(|(path, file_system, id)| Volume {
        path,
        file_system,
        id,
    })
}

/// A number of the whole range, small ones and the extremes often.
pub fn number() -> impl Strategy<Value = u64> {
    prop_oneof![
        3 => 0u64..100,
        3 => 0u64..10_000_000_000,
        1 => any::<u64>(),
        1 => Just(u64::MAX),
    ]
}

/// A text, now and then an unpleasant one.
pub fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        3 => "[a-z_/.]{0,12}",
        1 => "\\PC{0,80}",
        1 => any::<String>(),
        // Text that would have an effect in a terminal, a spreadsheet, a page or Markdown.
        1 => Just(
            "=1+1\u{1b}[2J\r\n\u{202e}\u{9b}31m\u{7}\"'><img src=x onerror=alert(1)></title>\
             </script><script>|`*[x](y)"
                .to_string()
        ),
    ]
}

/// A number of 0 or more that JSON can hold.
fn positive() -> impl Strategy<Value = f64> {
    prop_oneof![0.0..10.0, 0.0..1e12, Just(0.0), Just(f64::MAX), Just(5e-324)]
}

fn exit() -> impl Strategy<Value = Exit> {
    prop_oneof![any::<i32>().prop_map(Exit::Code), any::<i32>().prop_map(Exit::Signal)]
}

fn machine() -> impl Strategy<Value = Machine> {
    (text(), text(), any::<u32>(), number(), text()).prop_map(
        |(kernel, cpu, cpus, memory_bytes, clock)| Machine {
            kernel,
            cpu,
            cpus,
            memory_bytes,
            clock,
            ..Machine::default()
        },
    )
}

fn observer() -> impl Strategy<Value = ObserverUse> {
    let cost = prop_oneof![0.0..10_000.0, Just(0.0), Just(-0.0), Just(f64::MAX), Just(5e-324)];
    (text(), cost, [(); 4].map(|()| number()), [any::<bool>(), any::<bool>()]).prop_map(
        |(name, cost_ns_per_call, n, [times_inflated, has_range])| ObserverUse {
            name,
            cost_ns_per_call,
            cost_ns_low: if has_range { cost_ns_per_call / 2.0 } else { 0.0 },
            cost_ns_high: if has_range { (cost_ns_per_call * 1.5).min(f64::MAX) } else { 0.0 },
            lost_events: n[0],
            incomplete_calls: n[1],
            lost_files: n[2],
            times_inflated,
            startup_ns: n[3],
        },
    )
}

/// Few enough that rows of different tables meet.
fn image() -> impl Strategy<Value = (u32, String)> {
    (prop_oneof![1u32..4, any::<u32>()], prop_oneof![4 => "sh|dd|cat", 1 => text()])
}

fn process() -> impl Strategy<Value = Process> {
    let few = || prop_oneof![3 => Just(0u32), 2 => 0u32..9, 1 => any::<u32>()];
    let names = [(); 2].map(|()| prop_oneof![3 => Just(String::new()), 1 => text()]);
    let put_together = (names, few(), few(), any::<bool>());
    let numbers = ([(); 7].map(|()| number()), option::of(number()));
    (image(), any::<u32>(), vec(text(), 0..3), any::<u32>(), numbers, put_together).prop_map(
        |(
            (pid, exec),
            ppid,
            argv,
            threads,
            (n, storage),
            (names, instances, continued, before_exec),
        )| {
            let [called, binary] = names;
            Process {
                pid,
                ppid,
                exec,
                called,
                binary,
                image: (n[6] % 3) as u32,
                instances,
                continued,
                before_exec,
                argv,
                threads,
                user_ns: n[0],
                system_ns: n[1],
                minor_faults: n[2],
                major_faults: n[3],
                voluntary_switches: n[4],
                involuntary_switches: n[5],
                max_rss_bytes: n[6],
                storage_read_bytes: storage,
            }
        },
    )
}

fn call() -> impl Strategy<Value = Call> {
    let name = prop_oneof![4 => "read|write|openat|close|exit_group|io_uring_enter", 1 => text()];
    let kinds = prop::collection::btree_map(prop_oneof!["E[A-Z]{2,8}", text()], number(), 0..4);
    let parts = [(); 3].map(|()| option::of(number()));
    let spread = (histogram(), histogram(), option::of(histogram()), option::of(histogram()));
    (image(), name, [(); 6].map(|()| number()), kinds, parts, spread).prop_map(
        |((pid, exec), syscall, n, error_kinds, parts, spread)| Call {
            pid,
            exec,
            image: (n[5] % 3) as u32,
            syscall,
            calls: n[0],
            errors: n[1],
            error_kinds,
            bytes: n[2],
            wall_ns: n[3],
            on_cpu_ns: parts[0],
            blocked_ns: parts[1],
            runnable_ns: parts[2],
            max_ns: n[4],
            in_flight: n[5],
            entered_before: n[5] / 2,
            asked: parts[1],
            ready: parts[2],
            return_log2: spread.0,
            wall_log2: spread.1,
            on_cpu_log2: spread.2,
            blocked_log2: spread.3,
        },
    )
}

/// A distribution with a few buckets filled.
pub fn histogram() -> impl Strategy<Value = Histogram> {
    (number(), vec((0..BUCKETS, number()), 0..6)).prop_map(|(zero, filled)| {
        let mut histogram = Histogram { zero, ..Histogram::default() };
        for (bucket, count) in filled {
            histogram.buckets[bucket] = count;
        }
        histogram
    })
}

fn file_use() -> impl Strategy<Value = FileUse> {
    use FileKind::*;
    let kind = select(vec![File, Directory, Pipe, Socket, Char, Block, Eventfd, Anon, Other]);
    let known = [(); 4].map(|()| option::of(number()));
    let parts = ([(); 6].map(|()| number()), known, option::of(text()));
    (image(), kind, text(), parts).prop_map(|((pid, exec), kind, path, (n, known, on))| FileUse {
        pid,
        exec,
        image: (n[5] % 3) as u32,
        kind,
        path,
        read_calls: n[0],
        read_bytes: n[1],
        write_calls: n[2],
        write_bytes: n[3],
        map_calls: n[4],
        mapped_bytes: n[5],
        file_system: on,
        size_bytes: known[0],
        allocated_bytes: known[1],
        cached_bytes: known[2],
        dirty_bytes: known[3],
    })
}

fn ledger_row() -> impl Strategy<Value = LedgerRow> {
    let residual = prop_oneof![-1_000i64..1_000, any::<i64>(), Just(i64::MIN)];
    (image(), [(); 5].map(|()| number()), residual).prop_map(|((pid, exec), n, residual_ns)| {
        LedgerRow {
            pid,
            exec,
            image: (n[4] % 3) as u32,
            thread_ns: n[0],
            user_ns: n[1],
            calls_on_cpu_ns: n[2],
            blocked_ns: n[3],
            fault_ns: (n[4] % 2 == 0).then_some(n[3] / 2),
            stopped_ns: n[3] / 3,
            runnable_ns: n[4],
            residual_ns,
        }
    })
}

pub(crate) fn finding() -> impl Strategy<Value = Finding> {
    use Verdict::*;
    let verdict = select(vec![Impossible, Suspect, Advice, Note]);
    let evidence: BTreeMap<_, _> =
        [("rate".to_string(), serde_json::json!({"bytes": 1, "per": [2.5, null, "s"]}))].into();
    (text(), verdict, text(), option::of(text())).prop_map(move |(id, verdict, text, advice)| {
        Finding { id, verdict, text, evidence: evidence.clone(), advice }
    })
}

fn running() -> impl Strategy<Value = Running> {
    image().prop_map(|(pid, exec)| Running { pid, exec })
}

fn view() -> impl Strategy<Value = View> {
    use SortKey::*;
    let sort = select(vec![Wall, OnCpu, Blocked, Calls, Errors, Bytes, Name]);
    let quantity =
        select(vec![Quantity::Return, Quantity::Wall, Quantity::OnCpu, Quantity::Blocked]);
    let top = option::of(prop_oneof![0usize..5, Just(usize::MAX)]);
    (sort, top, vec(quantity, 0..4), vec(text(), 0..3), any::<[bool; 4]>()).prop_map(
        |(sort, top, quantize, calls, [files, wait, machine, each])| View {
            sort,
            top,
            quantize,
            calls,
            files,
            wait,
            machine,
            each,
        },
    )
}
