//! Every record of the corpus as it would be under filters, selections and losses: nothing may be found that the whole
//! record does not say.

use std::collections::BTreeSet;

use iotomy_findings::{FINDINGS, Fact};
use iotomy_record::calls::GROUPS;
use iotomy_record::store::{Record, parse_limits, parse_record};
use iotomy_record::{Call, EndedBy, Histogram, Interval, Limits, Ring, Trace, Watched};

use crate::corpus::{index, judged, key, unpacked};

/// A change to the record of a run, as an option or a loss makes it.
type Change = Box<dyn Fn(&mut Trace)>;

/// What is left of a record.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Left {
    /// Some rows of the whole run: each finding is one of the whole run, to the letter.
    Rows,
    /// A part of the run, whose figures are its own: what is found in it is found in the whole run, too.
    Part,
}

fn limits() -> Limits {
    parse_limits(&unpacked("limits")).unwrap()
}

/// The traces in a record.
fn traces(record: &mut Record) -> Vec<&mut Trace> {
    match record {
        Record::Trace(trace) => vec![trace],
        Record::Anatomy(anatomy) => vec![&mut anatomy.trace],
        Record::Race(race) => {
            race.commands.iter_mut().filter_map(|one| one.trace.as_mut()).collect()
        }
        _ => Vec::new(),
    }
}

/// The calls that were made often: findings are about these.
fn names(record: &mut Record) -> BTreeSet<String> {
    let traces = traces(record);
    let often = traces.iter().flat_map(|trace| &trace.calls).filter(|call| call.calls >= 20);
    often.map(|call| call.syscall.clone()).collect()
}

/// Of the rows of files, those that remain if reads, writes and mappings are counted.
fn restrict_files(trace: &mut Trace, reads: bool, writes: bool, maps: bool) {
    for file in &mut trace.files {
        if !reads {
            (file.read_calls, file.read_bytes) = (0, 0);
        }
        if !writes {
            (file.write_calls, file.write_bytes) = (0, 0);
        }
        if !maps {
            (file.map_calls, file.mapped_bytes) = (0, 0);
        }
    }
    trace.files.retain(|file| file.read_calls + file.write_calls + file.map_calls > 0);
}

/// `--call` with these names.
fn only_calls(chosen: &[&str]) -> Change {
    let chosen: Vec<String> = chosen.iter().map(|name| (*name).to_owned()).collect();
    Box::new(move |trace| {
        let group = |one: &String| GROUPS.iter().find(|group| group.name == one.as_str());
        let counts = |name: &str| {
            let has = |one: &String| group(one).is_some_and(|group| group.calls.contains(&name));
            chosen.iter().any(|one| one == name || has(one))
        };
        trace.calls.retain(|call| counts(&call.syscall));
        if !chosen.iter().any(|one| one == "%ring") {
            trace.ring_operations.clear();
            trace.ledger.iter_mut().for_each(|row| row.worker_ns = 0);
        }
        let (reads, writes) = (counts("read"), counts("write"));
        restrict_files(trace, reads, writes, counts("mmap"));
        trace.view.calls.clone_from(&chosen);
    })
}

/// `--where` with a condition, of which this is the number of calls that it counts, and of errors among them.
fn condition(text: &'static str, part: fn(&Call) -> (u64, u64)) -> Change {
    Box::new(move |trace| {
        for call in &mut trace.calls {
            let (calls, errors) = part(call);
            let share = |sum: u64| {
                (u128::from(sum) * u128::from(calls) / u128::from(call.calls.max(1))) as u64
            };
            (call.bytes, call.ready) = (share(call.bytes), call.ready.map(share));
            (call.asked, call.blocked_ns) = (call.asked.map(share), call.blocked_ns.map(share));
            if errors == 0 {
                call.error_kinds.clear();
            }
            (call.calls, call.errors, call.in_flight) = (calls, errors, 0);
        }
        trace.calls.retain(|call| call.calls > 0);
        trace.ring_operations.clear();
        trace.view.r#where = text.to_owned();
    })
}

/// The calls of a duration of at least 2^17 ns, and the others.
fn long(call: &Call) -> u64 {
    let of = |times: &Histogram| times.buckets.iter().skip(17).sum::<u64>();
    of(&call.wall_log2)
}

/// A watch of a running process: descriptors were made and files mapped before.
fn attached(trace: &mut Trace) {
    let early = ["socket", "accept4", "accept", "pipe", "pipe2", "eventfd2"];
    trace.calls.retain(|call| !early.contains(&call.syscall.as_str()));
    trace.command.clear();
    trace.exit = None;
    trace.targets = vec![Watched { kind: "process".into(), name: "1".into() }];
    trace.files.iter_mut().for_each(|file| (file.map_calls, file.mapped_bytes) = (0, 0));
    trace.files.iter_mut().for_each(|file| file.cached_bytes = file.size_bytes);
}

/// The watch ends before the last calls, those that sync and close among them.
fn unended(trace: &mut Trace) {
    let late = ["fsync", "fdatasync", "sync", "syncfs", "msync", "close", "munmap", "exit_group"];
    trace.calls.retain(|call| !late.contains(&call.syscall.as_str()));
    trace.exit = None;
}

/// Only the first process is watched.
fn only_first(trace: &mut Trace) {
    let Some(first) = trace.processes.first().map(|one| one.pid) else { return };
    trace.processes.retain(|one| one.pid == first);
    trace.calls.retain(|one| one.pid == first);
    trace.files.retain(|one| one.pid == first);
    trace.ledger.retain(|one| one.pid == first);
    trace.ring_operations.retain(|one| one.pid == first);
    trace.view.only = true;
}

fn changes(record: &mut Record) -> Vec<(String, Left, Change)> {
    let mut changes: Vec<(String, Left, Change)> = Vec::new();
    let mut add = |name: &str, left, change: Change| changes.push((name.to_owned(), left, change));
    let names = names(record);
    for name in &names {
        add(&format!("--call {name}"), Left::Rows, only_calls(&[name]));
        let lost = name.clone();
        add(
            &format!("{name} lost"),
            Left::Rows,
            Box::new(move |trace| {
                trace.observer.lost_events = 1;
                trace.calls.retain(|call| call.syscall != lost);
            }),
        );
        let unfinished = name.clone();
        add(
            &format!("{name} unfinished"),
            Left::Part,
            Box::new(move |trace| {
                for call in trace.calls.iter_mut().filter(|call| call.syscall == unfinished) {
                    (call.in_flight, call.calls, call.errors) = (call.calls, 0, 0);
                    call.error_kinds.clear();
                }
            }),
        );
    }
    for pair in [
        ["epoll_ctl", "epoll_wait"],
        ["epoll_ctl", "epoll_pwait"],
        ["fsync", "fdatasync"],
        ["read", "write"],
    ] {
        add(&format!("--call {}", pair.join(",")), Left::Rows, only_calls(&pair));
    }
    for group in GROUPS {
        add(&format!("--call {}", group.name), Left::Rows, only_calls(&[group.name]));
    }
    add("--call %ring", Left::Rows, only_calls(&["%ring"]));
    add("--call %io,%ring", Left::Rows, only_calls(&["%io", "%ring"]));
    add("--call %file,%desc,%ring", Left::Rows, only_calls(&["%file", "%desc", "%ring"]));
    add("--call %net,%poll", Left::Rows, only_calls(&["%net", "%poll"]));
    add(
        "--where 'errno != 0'",
        Left::Rows,
        condition("errno != 0", |call| (call.errors, call.errors)),
    );
    add(
        "--where 'errno == 0'",
        Left::Rows,
        condition("errno == 0", |call| (call.calls - call.errors, 0)),
    );
    add(
        "--where 'duration >= 131072'",
        Left::Rows,
        condition("duration >= 131072", |call| (long(call), 0)),
    );
    add(
        "--where 'duration < 131072'",
        Left::Rows,
        condition("duration < 131072", |call| (call.calls.saturating_sub(long(call)), 0)),
    );
    add("-p PID", Left::Part, Box::new(attached));
    add(
        "-a",
        Left::Part,
        Box::new(|trace| {
            attached(trace);
            trace.targets.clear();
            trace.view.machine = true;
        }),
    );
    add("-d SECONDS", Left::Part, Box::new(unended));
    add(
        "--until EXPR",
        Left::Part,
        Box::new(|trace| {
            unended(trace);
            trace.ended_by = Some(EndedBy::default());
        }),
    );
    add(
        "-i SECONDS",
        Left::Part,
        Box::new(|trace| {
            unended(trace);
            trace.interval = Some(Interval { number: 1, start_ns: 0, is_last: false });
        }),
    );
    add(
        "-i SECONDS, the last",
        Left::Part,
        Box::new(|trace| {
            let exit = trace.exit;
            attached(trace);
            (trace.targets, trace.exit) = (Vec::new(), exit);
            trace.interval = Some(Interval { number: 2, start_ns: 1, is_last: true });
        }),
    );
    add(
        "--ring SECONDS",
        Left::Part,
        Box::new(|trace| {
            let exit = trace.exit;
            attached(trace);
            (trace.targets, trace.exit) = (Vec::new(), exit);
            trace.ring = Some(Ring { asked_ns: 1, start_ns: 1, ..Ring::default() });
        }),
    );
    add("--only", Left::Part, Box::new(only_first));
    add(
        "files lost",
        Left::Rows,
        Box::new(|trace| {
            trace.observer.lost_files = 1;
            trace.files.truncate(trace.files.len() / 2);
        }),
    );
    add(
        "requests lost",
        Left::Rows,
        Box::new(|trace| {
            trace.observer.lost_requests = 1;
            trace.ring_operations.clear();
        }),
    );
    add(
        "rings not seen",
        Left::Rows,
        Box::new(|trace| {
            trace.observer.sees_rings = Some(false);
            trace.ring_operations.clear();
            trace.ledger.iter_mut().for_each(|row| row.worker_ns = 0);
        }),
    );
    add(
        "paths lost",
        Left::Rows,
        Box::new(|trace| {
            trace.observer.lost_paths = 1;
            trace.paths.truncate(1);
        }),
    );
    changes
}

#[test]
fn no_finding_under_a_filter_a_selection_or_a_loss_is_one_that_the_whole_record_does_not_make() {
    let limits = limits();
    let mut mistakes = Vec::new();
    for entry in index() {
        let mut whole = parse_record(&unpacked(&entry.name)).unwrap();
        let of_whole = judged(&whole, &limits).findings;
        for (name, left, change) in changes(&mut whole) {
            let mut part = whole.clone();
            traces(&mut part).into_iter().for_each(&change);
            for finding in judged(&part, &limits).findings {
                let is_said = of_whole.iter().any(|of_whole| match left {
                    Left::Rows => of_whole.text == finding.text,
                    Left::Part => key(of_whole) == key(&finding),
                });
                if !is_said {
                    mistakes.push(format!("{}, {name}: {}", entry.name, finding.text));
                }
            }
        }
    }
    assert!(mistakes.is_empty(), "\n{}", mistakes.join("\n"));
}

/// Without what none of these facts is about.
fn keep_only(trace: &mut Trace, facts: &[Fact]) {
    let of = |name: &str, ring: bool| {
        facts.iter().any(|fact| match fact {
            Fact::Calls(names) | Fact::Times(names) if !ring => {
                names.is_empty() || names.contains(&name)
            }
            Fact::Rings(names) if ring => names.is_empty() || names.contains(&name),
            _ => false,
        })
    };
    trace.calls.retain(|call| of(&call.syscall, false));
    trace.ring_operations.retain(|row| of(&row.op, true));
    if !facts.contains(&Fact::Files) {
        trace.files.clear();
    }
    if !facts.contains(&Fact::Ledger) {
        trace.ledger.clear();
    }
    if !facts.contains(&Fact::Paths) {
        trace.paths.clear();
    }
}

#[test]
fn a_rule_reads_no_fact_that_it_does_not_declare() {
    let limits = limits();
    for entry in index() {
        let whole = parse_record(&unpacked(&entry.name)).unwrap();
        for declared in FINDINGS {
            let of_it = |record: &Record| {
                let all = judged(record, &limits).findings.into_iter();
                all.filter(|finding| finding.id == declared.id).collect::<Vec<_>>()
            };
            let mut part = whole.clone();
            traces(&mut part).into_iter().for_each(|trace| keep_only(trace, declared.facts));
            assert_eq!(of_it(&part), of_it(&whole), "{} of {}", declared.id, entry.name);
        }
    }
}

#[test]
fn a_filter_that_counts_all_that_a_finding_rests_on_hides_nothing() {
    let limits = limits();
    for (name, id, chosen) in [
        ("python-herd", "herd", &["%net", "%poll"][..]),
        ("dd-zero-null", "null-sink", &["%io"]),
        ("python-poll", "few-ready", &["poll", "ppoll"]),
        ("python-badfd", "errors-as-work", &["%io", "%desc", "%ring"]),
    ] {
        let mut record = parse_record(&unpacked(name)).unwrap();
        traces(&mut record).into_iter().for_each(only_calls(chosen));
        let found = judged(&record, &limits).findings;
        assert!(found.iter().any(|finding| finding.id == id), "{name}: {id}");
    }
}
