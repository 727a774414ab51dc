//! Random records, for property tests here and in the crates that read records.
//!
//! Numbers come from the whole range with frequent extremes, and names contain escapes, line breaks
//! and other scripts: the content of hostile records that the loader would still accept.

mod against;
mod anatomy;
mod block;
mod connections;
mod copy;
mod d;
mod exchanges;
mod limits;
mod race;
mod ring_operations;
mod sweep;

use std::collections::BTreeMap;
use std::fmt::Debug;

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;

pub use anatomy::anatomy;
pub use block::{block_io, timelines};
pub use copy::copy;
pub use d::d;
pub use limits::limits;
pub use race::race;
pub use sweep::sweep;

use crate::statistic::Statistics;
use crate::*;

/// A record that [`crate::store::parse_trace`] accepts.
pub fn trace() -> impl Strategy<Value = Trace> {
    let own = (number(), number(), number()).prop_map(|(cpu_ns, rss_bytes, table_bytes)| OwnUse {
        cpu_ns,
        rss_bytes,
        table_bytes,
    });
    let kept = (any::<bool>(), option::of(1..100u32), number());
    let ring = (number(), number(), kept, option::of(own)).prop_map(
        |(asked_ns, start_ns, (goes_on, keeps, fired), own)| Ring {
            asked_ns,
            start_ns,
            goes_on,
            keeps,
            fired,
            own,
        },
    );
    let part =
        (option::of(interval()), option::of(ring), option::of(sample().boxed()).boxed()).boxed();
    let machine = (machine(), option::of(capacity()), part);
    let run =
        (vec(text(), 0..4), number(), option::of(exit()), machine.boxed(), observer().boxed());
    // Boxed: all of them do not fit on the stack of a test.
    let files = vec(file_use(), 0..8).boxed();
    let tables =
        (vec(process(), 0..6).boxed(), vec(call(), 0..24).boxed(), files, vec(ledger_row(), 0..6));
    let threads = vec(thread(), 0..6).boxed();
    let by = option::of(groups()).boxed();
    let ended_by = option::of(ended_by().boxed());
    let slowest = (vec(slow_call().boxed(), 0..4), ended_by).boxed();
    let of_calls = (vec(path_use(), 0..6).boxed(), slowest);
    let connections = vec(connections::connection(), 0..4).boxed();
    let rings = vec(ring_operations::ring_operation(), 0..4).boxed();
    let requests = vec(exchanges::exchange(), 0..4).boxed();
    let details = (of_calls, (connections, rings, requests), threads, by);
    let running = || vec(running(), 0..4);
    let rest =
        (vec(finding(), 0..4), running(), running(), view().boxed(), vec(watched(), 0..3)).boxed();
    (run.boxed(), tables.boxed(), details.boxed(), rest).prop_map(
        |(run, tables, (of_calls, (connections, ring_operations, requests), threads, by), rest)| {
            Trace {
                schema: Trace::SCHEMA.to_string(),
                started: "2025-03-01T10:20:30.5Z".to_string(),
                command: run.0,
                wall_ns: run.1,
                exit: run.2,
                machine: run.3.0,
                cpu_capacity: run.3.1,
                interval: run.3.2.0,
                ring: run.3.2.1,
                sample: run.3.2.2,
                observer: run.4,
                processes: tables.0,
                calls: tables.1,
                files: tables.2,
                paths: of_calls.0,
                connections,
                requests,
                ring_operations,
                slowest: of_calls.1.0,
                ended_by: of_calls.1.1,
                by,
                ledger: tables.3,
                threads,
                findings: rest.0,
                still_running: rest.1,
                unwatched_children: rest.2,
                host_names: rest.4.iter().map(|one| (one.kind.clone(), one.name.clone())).collect(),
                targets: rest.4,
                view: rest.3,
            }
        },
    )
}

fn sample() -> impl Strategy<Value = Sample> {
    let margins = || {
        [(); 4].map(|()| number()).prop_map(|[calls, errors, bytes, wall_ns]| Margins {
            calls,
            errors,
            bytes,
            wall_ns,
        })
    };
    let name = prop_oneof![4 => "read|write|openat|close", 1 => text()];
    let of_call = (name, margins()).prop_map(|(syscall, margins)| CallMargins { syscall, margins });
    let numbers = [(); 4].map(|()| number());
    (2u32.., numbers, option::of(margins()), vec(of_call, 0..4)).prop_map(
        |(n, [window_ns, windows, open_ns, watched_ns], margins, calls)| Sample {
            n,
            window_ns,
            windows,
            open_ns,
            watched_ns,
            margins,
            calls,
        },
    )
}

fn groups() -> impl Strategy<Value = Groups> {
    let key = prop_oneof![any::<i64>().prop_map(Key::Number), text().prop_map(Key::Text)];
    let row = (vec(key, 0..3), statistics()).prop_map(|(key, row)| Group { key, ..row });
    (vec(text(), 0..3), vec(row, 0..5), number()).prop_map(|(by, rows, lost_calls)| Groups {
        by,
        rows,
        lost_calls,
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
    (text(), text(), any::<u32>(), number(), text(), text()).prop_map(
        |(kernel, cpu, cpus, memory_bytes, clock, name)| Machine {
            kernel,
            cpu,
            cpus,
            memory_bytes,
            clock,
            name,
            ..Machine::default()
        },
    )
}

fn interval() -> impl Strategy<Value = Interval> {
    let all = (number(), number(), any::<bool>());
    all.prop_map(|(number, start_ns, is_last)| Interval { number, start_ns, is_last })
}

fn capacity() -> impl Strategy<Value = CpuCapacity> {
    let cpus = || prop_oneof![0.01..100.0, Just(f64::MAX), Just(5e-324)];
    let throttled = [(); 3].map(|()| number());
    let throttled =
        throttled.prop_map(|[periods, throttled, ns]| Throttled { periods, throttled, ns });
    let all = (cpus(), any::<u32>(), option::of(cpus()), option::of(throttled));
    all.prop_map(|(cpus, affinity, quota, throttled)| CpuCapacity {
        cpus,
        affinity,
        quota,
        throttled,
    })
}

fn observer() -> impl Strategy<Value = ObserverUse> {
    let cost = prop_oneof![0.0..10_000.0, Just(0.0), Just(-0.0), Just(f64::MAX), Just(5e-324)];
    (text(), cost, [(); 4].map(|()| number()), [any::<bool>(), any::<bool>()]).prop_map(
        |(name, cost_ns_per_call, n, [times_inflated, has_range])| ObserverUse {
            cost_ns_per_call,
            cost_ns_low: if has_range { cost_ns_per_call / 2.0 } else { 0.0 },
            cost_ns_high: if has_range { (cost_ns_per_call * 1.5).min(f64::MAX) } else { 0.0 },
            lost_events: n[0],
            incomplete_calls: n[1],
            lost_files: n[2],
            lost_paths: n[3],
            lost_connections: n[2] / 3,
            lost_exchanges: n[2] / 5,
            unclear_connections: n[2] / 11,
            sees_rings: has_range.then_some(times_inflated),
            lost_requests: n[2] / 7,
            divided_by_zero: n[3] / 2,
            end_divided_by_zero: n[3] / 3,
            calls_left_out: has_range.then_some(n[3] / 5),
            cost_left_out_ns_low: if has_range { cost_ns_per_call / 3.0 } else { 0.0 },
            cost_left_out_ns_high: if has_range { cost_ns_per_call } else { 0.0 },
            calls_passed: n[3] / 11,
            unwatched_ns_low: if has_range { cost_ns_per_call / 5.0 } else { 0.0 },
            unwatched_ns_high: if has_range { cost_ns_per_call / 4.0 } else { 0.0 },
            times_inflated,
            fallback: (has_range && times_inflated).then(|| name.clone()),
            untraced_tasks: n[1] / 3,
            name,
            startup_ns: n[3],
            missing: if has_range && times_inflated { vec![missing()] } else { Vec::new() },
        },
    )
}

fn missing() -> MissingFeature {
    MissingFeature {
        feature: "ring buffers".to_owned(),
        reason: "EPERM".to_owned(),
        lost: "rows of ended threads".to_owned(),
    }
}

/// Few enough that rows of different tables meet.
fn image() -> impl Strategy<Value = (u32, String)> {
    (prop_oneof![1u32..4, any::<u32>()], prop_oneof![4 => "sh|dd|cat", 1 => text()])
}

fn process() -> impl Strategy<Value = Process> {
    let few = || prop_oneof![3 => Just(0u32), 2 => 0u32..9, 1 => any::<u32>()];
    let names = [(); 3].map(|()| prop_oneof![3 => Just(String::new()), 1 => text()]);
    let put_together = (names, few(), few(), any::<bool>());
    (image(), any::<u32>(), vec(text(), 0..3), statistics(), any::<bool>(), put_together).prop_map(
        |((pid, exec), ppid, argv, row, has_storage, parts): (_, _, _, Process, _, _)| {
            let ([called, binary, title], instances, continued, before_exec) = parts;
            Process {
                pid,
                ppid,
                exec,
                called,
                binary,
                title,
                image: (row.max_rss_bytes % 3) as u32,
                instances,
                continued,
                before_exec,
                argv,
                argv_words: if continued > 4 { continued } else { 0 },
                storage_read_bytes: row.storage_read_bytes.filter(|_| has_storage),
                ..row
            }
        },
    )
}

/// The row of a call.
pub fn call() -> impl Strategy<Value = Call> {
    let name = prop_oneof![4 => "read|write|openat|close|exit_group|io_uring_enter", 1 => text()];
    let kinds = prop::collection::btree_map(prop_oneof!["E[A-Z]{2,8}", text()], number(), 0..4);
    let log2 = (histogram(), histogram(), option::of(histogram()), option::of(histogram()));
    // By itself, it does not fit on the stack of a test.
    let spread = (log2.boxed(), (times(), option::of(times()), times()).boxed());
    let known = any::<[bool; 3]>();
    (image(), name, statistics(), kinds, known, spread).prop_map(
        |((pid, exec), syscall, mut call, error_kinds, known, spread): (_, _, Call, _, _, _)| {
            let in_flight = call.in_flight;
            (call.pid, call.exec, call.image, call.syscall) =
                (pid, exec, (in_flight % 3) as u32, syscall);
            call.error_kinds = error_kinds;
            for (part, is_known) in
                [&mut call.on_cpu_ns, &mut call.blocked_ns, &mut call.runnable_ns]
                    .into_iter()
                    .zip(known)
            {
                *part = part.filter(|_| is_known);
            }
            call.max_is_bound = call.max_ns % 5 == 1;
            call.entered_before = in_flight / 2;
            call.open_ns = (in_flight > 0).then_some(call.wall_ns / 3);
            call.ended_ns = (in_flight == 1).then_some(call.wall_ns / 2);
            (call.return_log2, call.wall_log2, call.on_cpu_log2, call.blocked_log2) = spread.0;
            (call.wall_times, call.on_cpu_times, call.blocked_times) = spread.1;
            call
        },
    )
}

/// A row without keys that has some number as each of its statistics.
fn statistics<R: Statistics + Default + Debug>() -> impl Strategy<Value = R> {
    vec(number(), R::FIELDS.len()).prop_map(|numbers| {
        let mut row = R::default();
        for (statistic, number) in R::statistics().zip(numbers) {
            (statistic.field.set)(&mut row, number);
        }
        row
    })
}

/// Times in a few buckets.
fn times() -> impl Strategy<Value = Times> {
    (number(), vec((0..TIME_BUCKETS, number()), 0..6)).prop_map(|(max_ns, filled)| {
        let mut times = Times::default();
        filled.into_iter().for_each(|(bucket, count)| times.add_bucket(bucket, count));
        if !times.is_empty() {
            times.max_ns = max_ns;
        }
        times
    })
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
    let parts = (known, option::of(text()), option::of(connections::socket()));
    (image(), kind, text(), statistics(), parts).prop_map(
        |((pid, exec), kind, path, row, (known, file_system, socket)): (_, _, _, FileUse, _)| {
            FileUse {
                pid,
                exec,
                image: (row.mapped_bytes % 3) as u32,
                kind,
                path,
                file_system,
                size_bytes: known[0],
                allocated_bytes: known[1],
                cached_bytes: known[2],
                dirty_bytes: known[3],
                socket,
                ..row
            }
        },
    )
}

fn path_use() -> impl Strategy<Value = PathUse> {
    let syscall = prop_oneof![4 => "openat|newfstatat|execve", 1 => text()];
    let error = option::of(prop_oneof![3 => "ENOENT|EACCES", 1 => text()]);
    (image(), syscall, error, option::of(text()), statistics(), any::<bool>()).prop_map(
        |((pid, exec), syscall, error, path, row, second): (_, _, _, _, PathUse, _)| {
            let image = (row.wall_ns % 3) as u32;
            PathUse { pid, exec, image, syscall, second, error, path, ..row }
        },
    )
}

fn slow_call() -> impl Strategy<Value = WholeCall> {
    use WakeContext::*;
    let context = select(vec![Thread, Softirq, Interrupt, Unknown]);
    let waker = (context, any::<u32>(), text(), option::of(text()))
        .prop_map(|(context, tid, thread, syscall)| Waker { context, tid, thread, syscall });
    let syscall = prop_oneof![4 => "openat|read|futex|execve", 1 => text()];
    let texts = (text(), option::of(text()), option::of("ENOENT|EAGAIN"));
    let numbers = ([(); 5].map(|()| number()), vec(number(), 0..7), any::<i64>());
    (image(), syscall, texts, numbers, option::of(waker)).prop_map(
        |((pid, exec), syscall, (thread, path, error), (n, arguments, returned), woken_by)| {
            let arguments_of_callers = arguments.clone();
            WholeCall {
                pid,
                exec,
                image: (n[1] % 3) as u32,
                tid: pid,
                thread,
                syscall,
                arguments,
                path,
                returned,
                error,
                bytes: (n[0] % 2 == 0).then_some(n[0]),
                start_ns: n[1],
                wall_ns: n[2],
                on_cpu_ns: (n[1] % 2 == 0).then_some(n[2]),
                blocked_ns: (n[1] % 2 == 0).then_some(n[3]),
                runnable_ns: (n[1] % 2 == 0).then_some(n[4]),
                woken_by,
                callers: callers(&arguments_of_callers),
                on_top: None,
                stack: None,
            }
        },
    )
}

fn callers(numbers: &[u64]) -> Vec<Caller> {
    let one = |number: &u64| Caller {
        function: number.is_multiple_of(3).then(|| format!("function{number}")),
        file: number.is_multiple_of(2).then(|| "/usr/lib/libc.so.6".to_owned()),
        offset: *number,
        inode: 0,
    };
    numbers.iter().take(3).map(one).collect()
}

fn ended_by() -> impl Strategy<Value = EndedBy> {
    let sum = || option::of(number());
    (slow_call().boxed(), sum(), sum(), sum()).prop_map(
        |(call, count, sum_bytes, sum_duration_ns)| EndedBy {
            call,
            count,
            sum_bytes,
            sum_duration_ns,
        },
    )
}

fn ledger_row() -> impl Strategy<Value = LedgerRow> {
    let residual = prop_oneof![-1_000i64..1_000, any::<i64>(), Just(i64::MIN)];
    (image(), statistics(), residual).prop_map(
        |((pid, exec), row, residual_ns): (_, LedgerRow, _)| LedgerRow {
            pid,
            exec,
            image: (row.runnable_ns % 3) as u32,
            fault_ns: row.fault_ns.filter(|ns| ns % 2 == 0),
            residual_ns,
            ..row
        },
    )
}

fn thread() -> impl Strategy<Value = Thread> {
    let texts = (text(), prop_oneof![3 => "read|futex|", 1 => text()]);
    let few = prop_oneof![3 => Just(0u32), 2 => 0u32..9, 1 => any::<u32>()];
    (image(), texts, statistics(), any::<[bool; 3]>(), few).prop_map(
        |((pid, exec), (name, longest_call), row, known, instances): (_, _, Thread, _, _)| Thread {
            pid,
            exec,
            image: (row.calls % 3) as u32,
            tid: pid.saturating_add((row.errors % 3) as u32),
            name,
            instances,
            thread_ns: row.thread_ns.filter(|_| known[0]),
            user_ns: row.user_ns.filter(|_| known[2]),
            blocked_ns: row.blocked_ns.filter(|_| known[1]),
            runnable_ns: row.runnable_ns.filter(|_| known[2]),
            longest_call,
            longest_ns: row.on_cpu_ns / 2,
            ..row
        },
    )
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

fn watched() -> impl Strategy<Value = Watched> {
    let kind = select(vec!["process", "name", "cgroup", "unit", "container"]);
    (kind, text()).prop_map(|(kind, name)| Watched { kind: kind.to_owned(), name })
}

fn view() -> impl Strategy<Value = View> {
    let sort = select(SortKey::all());
    let quantity =
        select(vec![Quantity::Return, Quantity::Wall, Quantity::OnCpu, Quantity::Blocked]);
    let top = option::of(prop_oneof![0usize..5, Just(usize::MAX)]);
    let words = (vec(text(), 0..3), text(), text());
    (sort, top, vec(quantity, 0..4), words, any::<[bool; 7]>()).prop_map(
        |(sort, top, quantize, words, [files, paths, threads, wait, machine, each, only])| View {
            sort,
            top,
            quantize,
            calls: words.0,
            r#where: words.1,
            until: words.2,
            files,
            peers: wait,
            requests: machine,
            paths,
            threads,
            slowest: u32::from(each),
            wait,
            machine,
            only,
            each,
        },
    )
}
