use iotomy_record::{
    Delta, Diff, DiffRow, DiffSide, DiffSideName, DiffVerdict, Difference, FindingRuns, LeftOut,
    SlowCalls, Waker, WholeCall,
};

use super::*;
use crate::looks;

fn delta(measure: &'static str, a: f64, b: f64) -> Delta {
    Delta { measure, a: Some(a), b: Some(b), ..Delta::default() }
}

fn call(name: &str, calls: [f64; 2], wall: [f64; 2], verdict: DiffVerdict) -> DiffRow {
    let mean = |side: usize| wall[side] / calls[side].max(1.0);
    DiffRow {
        program: "git".into(),
        name: name.into(),
        verdict,
        only_in: (calls[0] == 0.0).then_some(DiffSideName::B),
        measures: vec![
            delta("calls", calls[0], calls[1]),
            delta("bytes", 0.0, 8192.0 * calls[1]),
            Delta { overhead: Some(150.0 * calls[1]), ..delta("wall_ns", wall[0], wall[1]) },
            delta("mean_ns", mean(0), mean(1)),
            delta("wall_p50_ns", mean(0), mean(1)),
            delta("wall_p99_ns", 3.0 * mean(0), 3.0 * mean(1)),
            delta("wall_p999_ns", 5.0 * mean(0), 5.0 * mean(1)),
            delta("wall_max_ns", 9.0 * mean(0), 9.0 * mean(1)),
        ],
        ..DiffRow::default()
    }
}

fn side(name: &str, runs: usize) -> DiffSide {
    DiffSide {
        sources: (0..runs).map(|run| format!("{name}{run}.json")).collect(),
        subject: "git status '\u{1b}[31m'".into(),
        started: vec!["2026-01-02T03:04:05.6Z".into(); runs],
        wall_ns: vec![12_300_000; runs],
        ..DiffSide::default()
    }
}

fn path(name: &str, of: &str, calls: [f64; 2], wall: f64, verdict: DiffVerdict) -> DiffRow {
    DiffRow {
        name: name.into(),
        of: of.into(),
        verdict,
        only_in: match calls {
            [0.0, _] => Some(DiffSideName::B),
            [_, 0.0] => Some(DiffSideName::A),
            _ => None,
        },
        measures: vec![
            delta("calls", calls[0], calls[1]),
            delta("wall_ns", 0.0f64.max(-wall), 0.0f64.max(wall)),
        ],
        ..DiffRow::default()
    }
}

/// Requests of so many ns each.
fn requests(name: &str, of: &str, counts: [f64; 2], mean: [f64; 2]) -> DiffRow {
    let times = |share: f64| mean.map(|ns| share * ns);
    let measure = |name, [a, b]: [f64; 2]| delta(name, a, b);
    DiffRow {
        program: "git".into(),
        name: name.into(),
        of: of.into(),
        verdict: DiffVerdict::Differs,
        measures: vec![
            measure("requests", counts),
            delta("unanswered", 0.0, 3.0),
            delta("pipelined", 4.0, 4.0),
            measure("wall_ns", [counts[0] * mean[0], counts[1] * mean[1]]),
            measure("mean_ns", mean),
            measure("wall_p50_ns", times(0.5)),
            measure("wall_p99_ns", times(9.0)),
            measure("wall_max_ns", times(20.0)),
            delta("unread_mean_ns", 3e3, 3.2e3),
            delta("on_cpu_mean_ns", 2e4, 2e4),
            measure("disk_mean_ns", [0.0, 0.8 * mean[1]]),
            delta("other_mean_ns", 0.0, 0.0),
        ],
        ..DiffRow::default()
    }
}

fn slow() -> WholeCall {
    WholeCall {
        pid: 7,
        exec: "git".into(),
        tid: 7,
        syscall: "fsync".into(),
        arguments: vec![5],
        path: Some("/repo/.git/index\u{202e}".into()),
        wall_ns: 3_000_000,
        on_cpu_ns: Some(100_000),
        blocked_ns: Some(2_900_000),
        woken_by: Some(Waker { thread: "kworker".into(), tid: 9, ..Waker::default() }),
        ..WholeCall::default()
    }
}

fn two_runs() -> Diff {
    Diff {
        schema: Diff::SCHEMA,
        kind: "trace",
        a: side("a", 1),
        b: DiffSide { lost: 3, ..side("b", 1) },
        conditions: vec![Difference {
            what: "kernel".into(),
            then: "Linux 6.1".into(),
            now: "Linux 6.18".into(),
            matters: true,
        }],
        per_second: false,
        judged: false,
        totals: vec![
            Delta { overhead: Some(1e6), ..delta("wall_ns", 12.3e6, 41e6) },
            delta("calls", 1_200.0, 5_892.0),
            delta("major_faults", 0.0, 0.0),
            delta("max_rss_bytes", 5e6, 4e6),
        ],
        programs: vec![
            DiffRow {
                program: "git".into(),
                verdict: DiffVerdict::Differs,
                measures: vec![delta("user_ns", 1e6, 2e6), delta("blocked_ns", 0.0, 5e5)],
                ..DiffRow::default()
            },
            DiffRow { program: "sh".into(), ..DiffRow::default() },
        ],
        calls: vec![
            DiffRow {
                error_kinds: [("ENOENT".to_owned(), [2.0, 507.0])].into(),
                ..call("newfstatat", [120.0, 4_812.0], [0.8e6, 24.1e6], DiffVerdict::Differs)
            },
            call("fsync", [0.0, 2.0], [0.0, 3.1e6], DiffVerdict::Differs),
            call("read", [300.0, 301.0], [9.5e5, 9.4e5], DiffVerdict::Differs),
            call("close", [80.0, 80.0], [4e4, 4.1e4], DiffVerdict::BelowOverhead),
        ],
        files: vec![DiffRow {
            name: "/home/u/repo/.git/index".into(),
            of: "file".into(),
            verdict: DiffVerdict::Differs,
            measures: vec![
                delta("read_calls", 1.0, 4.0),
                delta("read_bytes", 4e3, 2e5),
                delta("write_calls", 0.0, 0.0),
                delta("write_bytes", 0.0, 0.0),
                delta("mapped_bytes", 8192.0, 0.0),
            ],
            ..DiffRow::default()
        }],
        peers: vec![
            DiffRow {
                name: "tcp 10.0.0.5:5432".into(),
                verdict: DiffVerdict::Differs,
                measures: vec![
                    delta("connections", 4.0, 1.0),
                    delta("read_calls", 40.0, 10.0),
                    delta("read_bytes", 9e3, 2e3),
                    delta("write_calls", 40.0, 10.0),
                    delta("write_bytes", 4e4, 1e4),
                    delta("opened", 4.0, 1.0),
                    delta("closed", 4.0, 0.0),
                    delta("errors", 0.0, 3.0),
                    delta("unfinished", 0.0, 5.0),
                    delta("retransmits", 2.0, 14.0),
                    delta("connect_mean_ns", 45e3, 1.2e6),
                    delta("rtt_mean_ns", 80e3, 900e3),
                ],
                error_kinds: [("ECONNREFUSED".to_owned(), [0.0, 3.0])].into(),
                ..DiffRow::default()
            },
            DiffRow {
                name: "tcp 10.0.0.2 (port 80 here)".into(),
                verdict: DiffVerdict::Differs,
                measures: vec![
                    delta("connections", 1.0, 2.0),
                    delta("read_calls", 10.0, 20.0),
                    delta("read_bytes", 1e3, 2e3),
                    delta("write_calls", 10.0, 20.0),
                    delta("write_bytes", 1e5, 2e5),
                ],
                ..DiffRow::default()
            },
        ],
        requests: vec![
            DiffRow {
                names: Some([1.0, 1.0]),
                ..requests("tcp 127.0.0.1 (port … here)", "served", [1e3, 1_010.0], [45e3, 5.3e6])
            },
            DiffRow {
                only_in: Some(DiffSideName::B),
                measures: vec![
                    delta("requests", 0.0, 7.0),
                    delta("wall_ns", 0.0, 7e5),
                    Delta { a: None, ..delta("mean_ns", 0.0, 1e5) },
                    Delta { a: None, ..delta("disk_mean_ns", 0.0, 9e4) },
                ],
                ..requests("tcp 10.0.0.5:5432", "asked", [0.0, 7.0], [0.0, 1e5])
            },
            DiffRow {
                verdict: DiffVerdict::Equal,
                measures: vec![delta("requests", 5.0, 5.0), delta("mean_ns", 1e4, 1e4)],
                ..requests("unix /run/app.sock", "served", [5.0; 2], [1e4; 2])
            },
        ],
        paths: vec![
            path("/etc/gitconfig", "newfstatat ENOENT", [0.0, 505.0], 1.2e6, DiffVerdict::Differs),
            path("/repo/.git/index", "openat ok", [2.0, 0.0], -5e4, DiffVerdict::Differs),
            path("/repo/.git/index", "openat EACCES", [0.0, 2.0], 4e4, DiffVerdict::Differs),
            path("/repo/.git/HEAD", "openat ok", [2.0, 3.0], 3e4, DiffVerdict::Differs),
            path("/etc/passwd", "openat ok", [1.0, 1.0], 2e4, DiffVerdict::TimesDiffer),
            DiffRow {
                names: Some([12.0, 9.0]),
                ..path("/tmp/….tmp", "openat ok", [12.0, 9.0], -1e4, DiffVerdict::Differs)
            },
        ],
        by: vec!["call".into(), "bytes".into()],
        groups: vec![DiffRow {
            name: "read, 512…1023".into(),
            verdict: DiffVerdict::Differs,
            measures: vec![
                delta("calls", 10.0, 30.0),
                delta("errors", 0.0, 1.0),
                delta("bytes", 8e3, 2e4),
                delta("wall_ns", 1e6, 3e6),
                delta("mean_ns", 1e5, 1e5),
            ],
            ..DiffRow::default()
        }],
        ring_operations: vec![DiffRow {
            program: "git".into(),
            name: "read".into(),
            verdict: DiffVerdict::Differs,
            measures: vec![
                delta("submitted", 1_000.0, 1_000.0),
                delta("bytes", 4e6, 4e6),
                delta("inline", 1_000.0, 0.0),
                delta("worker", 0.0, 1_000.0),
                delta("overflows", 0.0, 3.0),
                delta("wall_ns", 2e6, 9e7),
                delta("mean_ns", 2e3, 9e4),
                delta("wall_p50_ns", 1.9e3, 8e4),
                delta("wall_p99_ns", 4e3, 2e5),
                delta("wall_max_ns", 3e4, 1e6),
            ],
            error_kinds: [("EIO".to_owned(), [0.0, 2.0])].into(),
            ..DiffRow::default()
        }],
        threads: vec![DiffRow {
            program: "git".into(),
            name: "preload".into(),
            verdict: DiffVerdict::Differs,
            measures: vec![
                delta("threads", 2.0, 4.0),
                delta("calls", 10.0, 4_000.0),
                delta("on_cpu_ns", 1e6, 2e7),
                delta("blocked_ns", 0.0, 5e5),
                delta("runnable_ns", 1e5, 2e5),
            ],
            ..DiffRow::default()
        }],
        layers: Vec::new(),
        functions: Vec::new(),
        findings: vec![
            FindingRuns {
                id: "stat-storm".into(),
                text: "4,812 of 5,892 calls".into(),
                a: 0,
                b: 1,
            },
            FindingRuns { id: "cached".into(), text: "in memory".into(), a: 1, b: 1 },
        ],
        slowest: SlowCalls { a: Vec::new(), b: vec![slow()] },
        left_out: vec![LeftOut { table: "files", why: "A was traced without --files".into() }],
    }
}

fn judged() -> Diff {
    let mut record = Diff { judged: true, a: side("a", 5), b: side("b", 5), ..two_runs() };
    record.conditions.clear();
    for delta in
        record.totals.iter_mut().chain(record.calls.iter_mut().flat_map(|row| &mut row.measures))
    {
        delta.beyond_noise = Some((delta.delta() / delta.a.unwrap_or(1.0).max(1.0)).abs() > 0.5);
        delta.ci95 = Some([delta.delta() * 0.9, delta.delta() * 1.1]);
    }
    for delta in record.requests.iter_mut().flat_map(|row| &mut row.measures) {
        delta.beyond_noise = Some(delta.b > delta.a.map(|a| 10.0 * a));
    }
    for row in record.calls.iter_mut().chain(&mut record.requests) {
        let is_beyond = row.measures.iter().any(|delta| delta.beyond_noise == Some(true));
        row.verdict = if is_beyond { DiffVerdict::BeyondNoise } else { DiffVerdict::WithinNoise };
    }
    record.findings[1] = FindingRuns { a: 5, b: 2, ..record.findings[1].clone() };
    record
}

fn anatomy() -> Diff {
    let layer = |name: &str, of: &str, on_cpu: [f64; 2], verdict| DiffRow {
        name: name.into(),
        of: of.into(),
        verdict,
        measures: vec![
            Delta { sampling_error: Some(4e5), ..delta("on_cpu_ns", on_cpu[0], on_cpu[1]) },
            delta("blocked_ns", 0.0, 0.0),
        ],
        ..DiffRow::default()
    };
    Diff {
        kind: "anatomy",
        layers: vec![
            layer("page cache and copying", "write", [9e6, 3e6], DiffVerdict::Differs),
            layer("VFS", "write", [1e6, 1.1e6], DiffVerdict::WithinSampling),
        ],
        functions: vec![layer("clear_page_erms", "memory", [2e6, 7e6], DiffVerdict::Differs)],
        ..two_runs()
    }
}

#[test]
fn comparisons_look_like_this() {
    let text = |record: &Diff, view| diff(record, view, &Style::default());
    let usual = DiffView::default();
    insta::assert_snapshot!("two_runs", text(&two_runs(), usual));
    insta::assert_snapshot!("judged", text(&judged(), usual));
    insta::assert_snapshot!("anatomy", text(&anatomy(), DiffView { top: Some(1), ..usual }));
    insta::assert_snapshot!("csv", diff_csv(&judged()));
    insta::assert_snapshot!("markdown", diff_markdown(&two_runs(), usual));
}

#[test]
fn all_rows_are_shown_on_request_and_sorted_as_wanted() {
    let names = |view| {
        let record = two_runs();
        let rows = shown(&record.calls, view);
        rows.into_iter().map(|row| row.name.clone()).collect::<Vec<_>>()
    };
    let view = DiffView::default();
    assert_eq!(names(view), ["newfstatat", "fsync", "read"]);
    assert_eq!(names(DiffView { all: true, ..view }), ["newfstatat", "fsync", "read", "close"]);
    let by = |sort| DiffView { sort: Some(sort), ..view };
    assert_eq!(names(by(SortKey::NAME)), ["fsync", "newfstatat", "read"]);
    assert_eq!(names(by(SortKey::CALLS)), ["newfstatat", "fsync", "read"]);
}

#[test]
fn requests_are_sorted_by_a_part_of_their_latency() {
    let part = |disk_ns: f64| DiffRow {
        measures: vec![delta("disk_mean_ns", 0.0, disk_ns)],
        ..requests(&format!("tcp 10.0.0.5:{disk_ns}"), "asked", [1.0; 2], [1e3; 2])
    };
    let rows = [part(1.0), part(3.0), part(2.0)];
    let view = DiffView { sort: SortKey::named("disk"), ..DiffView::default() };
    let sorted: Vec<f64> = shown(&rows, view).iter().map(|row| row.delta("disk_mean_ns")).collect();
    assert_eq!(sorted, [3.0, 2.0, 1.0]);
}

#[test]
fn our_signs_have_their_ascii() {
    let style = Style { unicode: false, ..Style::default() };
    let text = diff(&two_runs(), DiffView::default(), &style);
    assert!(text.is_ascii(), "{text}");
    for says in ["/tmp/....tmp", "openat ok -> EACCES", "read, 512...1023", "12 -> 9 names"] {
        assert!(text.contains(says), "{says}: {text}");
    }
}

#[test]
fn every_line_keeps_to_the_width_and_colour_repeats_a_word() {
    for record in [two_runs(), judged(), anatomy(), Diff { per_second: true, ..two_runs() }] {
        for (width, unicode) in [(100, true), (60, true), (20, false), (80, false)] {
            looks::keeps_to(width, unicode, |style| diff(&record, DiffView::default(), style));
        }
        looks::is_only_coloured(|style| diff(&record, DiffView::default(), style));
    }
}
