//! Races: judged as a whole, and each command by its traced run.

use super::*;

/// A race of two that took as long, with nothing traced.
fn race() -> Race {
    let command = |label: &str| RaceCommand {
        label: label.into(),
        command: "prog".into(),
        runs: vec![
            Run {
                wall_ns: 100 * MS,
                startup_ns: MS / 4,
                output_bytes: Some(10_000),
                ..Run::default()
            };
            2
        ],
        wall: Spread {
            runs: 2,
            median_ns: 100.0 * MS as f64,
            min_ns: 90.0 * MS as f64,
            max_ns: 110.0 * MS as f64,
            ..Spread::default()
        },
        ..RaceCommand::default()
    };
    Race {
        schema: Race::SCHEMA.into(),
        started: "2026-01-01T00:00:00.000Z".into(),
        machine: machine(),
        commands: vec![command("A"), command("B")],
        comparisons: vec![Comparison {
            base: "A".into(),
            other: "B".into(),
            metric: Metric::Wall,
            ratio: 1.0,
            ci95: [0.99, 1.01],
            verdict: RaceVerdict::NoDifference,
            runs: 2,
            more_runs: None,
            mean_ratio: None,
            mean_ci95: None,
        }],
        ..Race::default()
    }
}

fn of_race(change: impl FnOnce(&mut Race)) -> Vec<String> {
    let mut record = race();
    change(&mut record);
    let limits = limits();
    crate::race(&record, Some(&limits)).findings.into_iter().map(|found| found.id).collect()
}

#[test]
fn a_race_without_anything_to_say_raises_nothing() {
    assert_eq!(of_race(|_| {}), [""; 0]);
}

#[test]
fn a_race_is_judged_as_a_whole() {
    assert_eq!(of_race(|race| race.commands[0].failures = 1), ["failures"]);
    assert_eq!(of_race(|race| race.commands[0].left_behind = 3), ["left-behind"]);
    assert_eq!(of_race(|race| race.commands[1].untraced = Some("no".into())), ["untraced"]);
    assert_eq!(
        of_race(|race| race.commands[1].denied = vec!["splice=ENOSYS".into()]),
        ["filtered"]
    );
    assert_eq!(
        of_race(|race| {
            for run in &mut race.commands[1].runs {
                run.output_bytes = Some(10_200);
            }
        }),
        ["different-output"]
    );
    // A line with the time differs in each run.
    assert_eq!(
        of_race(|race| {
            for run in &mut race.commands[1].runs {
                run.output_bytes = Some(10_005);
            }
        }),
        [""; 0]
    );
    // A start takes 1 ms.
    let takes = |ms: u64| of_race(|race| race.commands[0].wall.median_ns = (ms * MS) as f64);
    assert_eq!(takes(4), ["too-short"]);
    assert_eq!(takes(6), [""; 0]);
    assert_eq!(
        of_race(|race| {
            race.harness.shell_startup_ns = Some(10 * MS);
            race.commands[0].shell = true;
        }),
        ["shell"]
    );
    assert_eq!(
        of_race(|race| {
            race.comparisons[0].verdict = RaceVerdict::Undecided;
            race.comparisons[0].ci95 = [0.9, 1.2];
        }),
        ["noise"]
    );
}

#[test]
fn findings_of_a_command_are_held_against_its_untraced_time_and_name_it() {
    let mut record = race();
    let files = vec![source(4_000 * MIB, 100)];
    // Traced, it took long enough; untraced, it did not.
    record.commands[1].trace = Some(Trace { files, wall_ns: 10_000 * MS, ..trace() });
    let limits = limits();
    let found = crate::race(&record, Some(&limits)).findings;
    assert_eq!(found[0].id, "impossible-rate");
    assert_eq!(found[0].evidence["contender"], "B");
    assert!(found[0].text.starts_with("B: "), "{}", found[0].text);
}

#[test]
fn a_traced_run_is_held_against_the_timed_ones() {
    let with = |doubt_ns: f64, base: &str, base_ns, other_ns| {
        of_race(|race| {
            let mut trace =
                Trace { calls: vec![Call { calls: 100, ..Call::default() }], ..trace() };
            trace.observer.cost_ns_low = 1.0;
            trace.observer.cost_ns_high = 1.0 + 2.0 * doubt_ns / 100.0;
            race.commands[1].trace = Some(trace);
            race.attributions.push(Attribution {
                base: base.into(),
                other: "B".into(),
                metric: Metric::Wall,
                delta_ns: 0,
                terms: Vec::new(),
                residual_ns: 0,
                traced_base_ns: base_ns,
                traced_other_ns: other_ns,
            });
        })
    };
    let traced = |base: &str, base_ns, other_ns| with(0.0, base, base_ns, other_ns);
    assert_eq!(traced("A", 0, 100 * MS), [""; 0]);
    assert_eq!(traced("A", 0, 130 * MS), ["traced-otherwise"]);
    assert_eq!(traced("B", 0, 110 * MS), [""; 0]);
    assert_eq!(traced("B", 0, 70 * MS), ["traced-otherwise"]);
    // The overhead may have been that much more or less.
    let ms = MS as f64;
    assert_eq!(with(4.0 * ms, "A", 0, 130 * MS), ["traced-otherwise"]);
    assert_eq!(with(20.0 * ms, "A", 0, 130 * MS), [""; 0]);
    assert_eq!(with(20.0 * ms, "A", 0, 70 * MS), [""; 0]);
}
