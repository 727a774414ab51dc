use iotomy_record::{
    Call, DiffRow, DiffSideName, DiffVerdict, LedgerRow, Machine, Process, Sample, Times, arbitrary,
};
use proptest::prelude::*;

use super::*;

/// A run of `program` whose calls are (name, count, errors, ns each).
pub(crate) fn trace(program: &str, calls: &[(&str, u64, u64, u64)]) -> Trace {
    let call = |(name, calls, errors, each): &(&str, u64, u64, u64)| {
        let mut wall_times = Times::default();
        (0..*calls).for_each(|_| wall_times.add(*each));
        let kinds = [("ENOENT".to_owned(), *errors)].into_iter();
        Call {
            pid: 7,
            exec: program.into(),
            syscall: (*name).into(),
            calls: *calls,
            errors: *errors,
            error_kinds: kinds.filter(|(_, n)| *n > 0).collect(),
            wall_ns: calls * each,
            on_cpu_ns: Some(calls * each),
            max_ns: *each,
            wall_times,
            ..Call::default()
        }
    };
    let spent: u64 = calls.iter().map(|(_, calls, _, each)| calls * each).sum();
    // From JSON, so that a field that is added has its default.
    let base = serde_json::json!({
        "schema": Trace::SCHEMA,
        "started": "2026-01-02T03:04:05Z",
        "command": [format!("/bin/{program}")],
        "wall_ns": 1_000_000 + spent,
        "exit": {"code": 0},
        "machine": Machine::default(),
        "observer": {
            "name": "bpf", "cost_ns_per_call": 100.0, "cost_ns_low": 50.0, "cost_ns_high": 150.0,
            "lost_events": 0, "incomplete_calls": 0,
        },
        "processes": [], "calls": [], "files": [], "ledger": [], "findings": [],
    });
    let mut trace: Trace = serde_json::from_value(base).unwrap();
    trace.processes = vec![Process {
        pid: 7,
        exec: program.into(),
        threads: 1,
        user_ns: 1_000_000,
        system_ns: spent,
        ..Process::default()
    }];
    trace.calls = calls.iter().map(call).collect();
    trace.ledger = vec![LedgerRow {
        pid: 7,
        exec: program.into(),
        thread_ns: 1_000_000 + spent,
        user_ns: 1_000_000,
        calls_on_cpu_ns: spent,
        ..LedgerRow::default()
    }];
    trace
}

pub(crate) fn source(trace: Trace) -> Source {
    Source { name: "run.json".into(), record: Record::Trace(Box::new(trace)) }
}

pub(crate) fn compared(a: Trace, b: Trace) -> Diff {
    diff(&[source(a)], &[source(b)]).unwrap()
}

pub(crate) fn row<'d>(rows: &'d [DiffRow], name: &str) -> &'d DiffRow {
    rows.iter().find(|row| row.name == name).unwrap()
}

fn total(found: &Diff, name: &str) -> [f64; 2] {
    let delta = found.totals.iter().find(|delta| delta.measure == name).unwrap();
    [delta.a.unwrap(), delta.b.unwrap()]
}

#[test]
fn a_record_and_itself_have_no_difference() {
    let one = trace("dd", &[("read", 10, 0, 500), ("openat", 3, 1, 2_000)]);
    let found = compared(one.clone(), one);
    assert!(!found.judged && found.conditions.is_empty());
    assert!(found.totals.iter().all(|delta| delta.a == delta.b));
    let rows = found.tables().into_iter().flat_map(|(_, rows)| rows);
    assert!(rows.clone().count() == 3 && rows.clone().all(|row| row.verdict == DiffVerdict::Equal));
}

#[test]
fn rows_come_by_the_time_they_differ_by() {
    let a = trace("dd", &[("read", 10, 0, 500), ("close", 4, 0, 300), ("openat", 3, 1, 2_000)]);
    let b = trace("dd", &[("read", 10, 0, 520), ("fsync", 1, 0, 900_000), ("openat", 9, 7, 2_000)]);
    let found = compared(a, b);
    let names: Vec<&str> = found.calls.iter().map(|row| row.name.as_str()).collect();
    assert_eq!(names, ["fsync", "openat", "close", "read"]);
    assert_eq!(row(&found.calls, "fsync").only_in, Some(DiffSideName::B));
    assert_eq!(row(&found.calls, "close").only_in, Some(DiffSideName::A));
    let openat = row(&found.calls, "openat");
    assert_eq!((openat.delta("calls"), openat.delta("errors")), (6.0, 6.0));
    assert_eq!(openat.error_kinds["ENOENT"], [1.0, 7.0]);
    assert_eq!(openat.verdict, DiffVerdict::Differs);
    // 200 ns in all, of 10 calls whose overhead is up to 150 ns each.
    assert_eq!(row(&found.calls, "read").verdict, DiffVerdict::BelowOverhead);
    assert_eq!(total(&found, "calls"), [17.0, 20.0]);
    let mean = openat.measure("mean_ns").unwrap();
    assert_eq!((mean.a, mean.b, mean.beyond_noise), (Some(2_000.0), Some(2_000.0), None));
    // Without calls there is no mean, and no quantile.
    let fsync = row(&found.calls, "fsync").measure("wall_p99_ns").unwrap();
    assert!(fsync.a.is_none() && fsync.b.is_some());
}

#[test]
fn two_builds_of_a_program_are_compared_by_their_calls() {
    let found =
        compared(trace("old", &[("read", 10, 0, 500)]), trace("new", &[("read", 20, 0, 500)]));
    assert_eq!(found.calls.len(), 1);
    assert_eq!(found.calls[0].program, "old → new");
    assert_eq!(found.conditions[0].what, "command");
}

#[test]
fn a_process_that_has_a_title_in_one_record_only_is_its_program_in_both() {
    let run = |title: &str, calls: u64| {
        let mut trace = trace("postgres", &[("read", calls, 0, 1_000)]);
        trace.processes[0].title = title.into();
        trace
    };
    for (a, b) in [("postgres: walwriter", ""), ("", "postgres: walwriter"), ("x: 1", "x: 2")] {
        let found = compared(run(a, 10), run(b, 20));
        let [read] = &found.calls[..] else { panic!("{:?}", found.calls) };
        assert_eq!((&*read.program, read.only_in), ("postgres", None), "{a:?} {b:?}");
        let named = |row: &DiffRow| row.name.contains("walwriter") || row.program.contains("x:");
        assert!(!found.programs.iter().any(named), "{:?}", found.programs);
    }
}

#[test]
fn watches_of_running_processes_are_compared_per_second() {
    let watch = |seconds: u64, calls: u64| {
        let mut one = trace("redis", &[("read", calls, 0, 1_000)]);
        (one.wall_ns, one.exit) = (seconds * 1_000_000_000, None);
        one.command.clear();
        one
    };
    let found = compared(watch(2, 200), watch(5, 500));
    assert!(found.per_second);
    let read = row(&found.calls, "read");
    assert_eq!(read.measure("calls").unwrap().a, Some(100.0));
    assert_eq!(read.delta("calls"), 0.0);
    assert_eq!(read.measure("mean_ns").unwrap().b, Some(1_000.0));
    assert!(found.totals.iter().find(|delta| delta.measure == "wall_ns").unwrap().a.is_none());
}

#[test]
fn what_no_run_repeats_is_beyond_noise_and_what_varies_is_not() {
    let side = |reads: u64, shift: u64| -> Vec<Source> {
        // The same disturbance of both sides, in another order.
        let runs = (0..4u64).map(|run| {
            let noise = 1_000 + 400 * ((run + shift) % 4);
            source(trace("dd", &[("read", reads, 0, 500), ("write", 50, 0, noise)]))
        });
        runs.collect()
    };
    let found = diff(&side(10, 0), &side(11, 2)).unwrap();
    assert!(found.judged && found.is_beyond_noise());
    let beyond = |name: &str, measure: &str| {
        row(&found.calls, name).measure(measure).unwrap().beyond_noise.unwrap()
    };
    assert!(beyond("read", "calls") && !beyond("write", "wall_ns") && !beyond("write", "calls"));
    assert_eq!(row(&found.calls, "write").verdict, DiffVerdict::WithinNoise);
    let calls = row(&found.calls, "read").measure("calls").unwrap();
    assert_eq!((calls.ci95, calls.runs_b.len()), (Some([1.0, 1.0]), 4));
    let same = diff(&side(10, 0), &side(10, 2)).unwrap();
    assert!(same.judged && !same.is_beyond_noise());
    // Three of each are too few for any verdict.
    let few = diff(&side(10, 0)[..3], &side(99, 0)[..3]).unwrap();
    assert!(!few.judged && !few.is_beyond_noise());
    assert_eq!(row(&few.calls, "read").verdict, DiffVerdict::Differs);
}

#[test]
fn records_that_cannot_be_compared_are_refused() {
    let one = || trace("dd", &[("read", 1, 0, 1)]);
    let mut filtered = one();
    filtered.view.calls = vec!["%file".into()];
    let error = |a: Source, b: Source| diff(&[a], &[b]).unwrap_err().to_string();
    let calls = error(source(one()), source(filtered));
    assert!(calls.contains("one counted all calls, the other only %file"), "{calls}");
    let mut conditional = one();
    conditional.view.r#where = "bytes < 512".into();
    let calls = error(source(conditional), source(one()));
    assert!(
        calls.contains("one counted all calls where bytes < 512, the other all calls"),
        "{calls}"
    );
    assert!(matches!(diff(&[], &[source(one())]), Err(DiffError::Empty)));
    let sampled = || Trace { sample: Some(Sample { n: 20, ..Sample::default() }), ..one() };
    for (a, b) in [(one(), sampled()), (sampled(), one()), (sampled(), sampled())] {
        let part = error(source(a), source(b));
        assert!(part.contains("it counted calls in 1/20 of the time (--sample)"), "{part}");
    }
}

proptest! {
    #[test]
    fn any_traces_are_compared(a in arbitrary::trace(), b in arbitrary::trace()) {
        let (mut a, mut b) = (a, b);
        for one in [&mut a, &mut b] {
            (one.view.calls, one.view.r#where) = (Vec::new(), String::new());
            one.sample = None;
        }
        let found = compared(a, b);
        for (_, rows) in found.tables() {
            for delta in rows.iter().flat_map(|row| &row.measures) {
                prop_assert!(delta.a.is_none_or(f64::is_finite) && delta.b.is_none_or(f64::is_finite));
            }
        }
        serde_json::to_string(&found).unwrap();
    }

    #[test]
    fn any_anatomies_are_compared(a in arbitrary::anatomy(), b in arbitrary::anatomy()) {
        let (mut a, mut b) = (a, b);
        for one in [&mut a.trace, &mut b.trace] {
            (one.view.calls, one.view.r#where) = (Vec::new(), String::new());
            one.sample = None;
        }
        let of = |anatomy: Anatomy| Source { name: String::new(), record: Record::Anatomy(Box::new(anatomy)) };
        diff(&[of(a)], &[of(b)]).unwrap();
    }
}
