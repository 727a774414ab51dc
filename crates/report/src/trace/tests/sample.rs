//! A part of the time that was counted.

use iotomy_record::{CallMargins, Margins, Sample};

use super::*;

/// A run in which windows were open for a tenth of the time.
pub(super) fn sampled(record: Trace) -> Trace {
    let margins = Margins { calls: 1_234, errors: 12, bytes: 5 << 20, wall_ns: 4_560_000 };
    let of = |syscall: &str, part| CallMargins {
        syscall: syscall.to_owned(),
        margins: Margins {
            calls: margins.calls / part,
            errors: margins.errors / part,
            bytes: margins.bytes / part,
            wall_ns: margins.wall_ns / part,
        },
    };
    let sample = Sample {
        n: 10,
        window_ns: 10_000_000,
        windows: 7,
        open_ns: 7_000_000,
        watched_ns: 70_070_000,
        margins: Some(margins),
        calls: vec![of("read", 2), of("write", 3), of("openat", 6)],
    };
    let mut record = Trace { sample: Some(sample), findings: Vec::new(), ..record };
    // What the record has of calls was seen in a tenth of the time, which is ten times as long.
    record.wall_ns *= 10;
    for row in &mut record.ledger {
        for part in
            [&mut row.thread_ns, &mut row.user_ns, &mut row.blocked_ns, &mut row.runnable_ns]
        {
            *part *= 10;
        }
        row.user_ns += 9 * row.calls_on_cpu_ns;
        row.residual_ns *= 10;
    }
    for process in &mut record.processes {
        (process.user_ns, process.system_ns) = (10 * process.user_ns, 10 * process.system_ns);
    }
    (record.observer.cost_left_out_ns_low, record.observer.cost_left_out_ns_high) = (90.0, 210.0);
    record
}

#[test]
fn a_sampled_watch_says_how_its_figures_are_made() {
    let said = |change: fn(&mut Sample)| {
        let mut record = sampled(records::dd());
        change(record.sample.as_mut().unwrap());
        let text = rendered(&record);
        let lines = text.lines().skip_while(|line| !line.starts_with("  sampled ")).take(3);
        lines.map(str::trim).collect::<Vec<_>>().join(" ")
    };
    let usual = said(|_| ());
    let line = "10 ms of each 100 ms at random; counts are scaled × 10.01, ± is the 95 % margin";
    assert!(usual.contains(line), "{usual}");
    let few = said(|sample| (sample.windows, sample.margins, sample.calls) = (1, None, vec![]));
    assert!(few.contains("their error is not known, of 1 window: watch longer"), "{few}");
    let none = said(|sample| (sample.windows, sample.open_ns, sample.margins) = (0, 0, None));
    assert!(none.contains("of which none came in 70.1 ms: no call was counted"), "{none}");
}

#[test]
fn nothing_is_said_to_have_been_missed_where_no_window_saw_a_call() {
    let mut record = sampled(records::dd());
    record.calls.clear();
    let text = rendered(&record);
    assert!(!text.contains("nothing seen"), "{text}");
}
