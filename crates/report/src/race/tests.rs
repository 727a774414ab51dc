use iotomy_record::*;
use proptest::prelude::*;

use super::*;
use crate::looks;

fn spread(median: f64) -> Spread {
    Spread {
        runs: 28,
        median_ns: median,
        ci95: Some([median * 0.985, median * 1.02]),
        min_ns: median * 0.95,
        max_ns: median * 1.1,
        mean_ns: median * 1.01,
        stddev_ns: median * 0.03,
    }
}

fn command(label: &str, command: &str, ms: f64) -> RaceCommand {
    RaceCommand {
        label: label.into(),
        command: command.into(),
        shell: command.contains('>'),
        wall: spread(ms * 1e6),
        cpu: spread(ms * 0.9e6),
        ..RaceCommand::default()
    }
}

fn comparison(metric: Metric, ratio: f64, verdict: RaceVerdict) -> Comparison {
    Comparison {
        base: "A".into(),
        other: "B".into(),
        metric,
        ratio,
        ci95: [ratio * 0.97, ratio * 1.03],
        verdict,
        runs: 28,
        more_runs: None,
        mean_ratio: Some(ratio * 1.001),
        mean_ci95: Some([ratio * 0.98, ratio * 1.02]),
    }
}

fn term(name: &str, kind: TermKind, [a, b]: [f64; 2], calls: [u64; 2]) -> Term {
    let (base_ns, other_ns) = ((a * 1e6) as i64, (b * 1e6) as i64);
    Term {
        name: name.into(),
        kind,
        delta_ns: other_ns - base_ns,
        calls_base: calls[0],
        calls_other: calls[1],
        base_ns,
        other_ns,
        price_ns: calls[0].max(calls[1]) * 200,
        bytes_base: 0,
        bytes_other: 0,
    }
}

fn attribution(metric: Metric, delta_ms: f64, terms: Vec<Term>) -> Attribution {
    let delta_ns = (delta_ms * 1e6) as i64;
    let explained: i64 = terms.iter().map(|term| term.delta_ns).sum();
    Attribution {
        base: "A".into(),
        other: "B".into(),
        metric,
        delta_ns,
        terms,
        residual_ns: delta_ns - explained,
        traced_base_ns: 538_000_000,
        traced_other_ns: 391_000_000,
    }
}

fn dd_and_cat() -> Race {
    use TermKind::*;
    let terms = vec![
        term("read", Syscall, [128.0, 0.02], [9, 1]),
        term("write", Syscall, [264.0, 245.0], [8, 8]),
        term("mmap", Syscall, [0.1, 16.0], [12, 20]),
        term("run queue delay", Runnable, [9.0, 1.0], [0, 0]),
        term("write", Blocked, [2.0, 3.0], [8, 8]),
        term("fadvise64", Syscall, [0.0, 0.001], [0, 16]),
        term("user", User, [1.0, 1.01], [0, 0]),
        term("start-up", Startup, [0.3, 1.2], [0, 0]),
    ];
    let mut race = Race {
        schema: Race::SCHEMA.into(),
        started: "2025-03-01T10:20:30Z".into(),
        commands: vec![command("A", "dd if=f of=g bs=8M", 531.0), command("B", "cat f > g", 387.0)],
        comparisons: vec![
            comparison(Metric::Wall, 0.73, RaceVerdict::Faster),
            comparison(Metric::Cpu, 0.71, RaceVerdict::Faster),
        ],
        attributions: vec![
            attribution(Metric::Wall, -144.0, terms.clone()),
            attribution(Metric::Cpu, -140.0, terms[..3].to_vec()),
        ],
        plan: RacePlan {
            min_effect: 0.01,
            warmup: 1,
            seed: 42,
            output: "pipe".into(),
            cache: "warm".into(),
            ..RacePlan::default()
        },
        rounds: vec![Round::default(); 15],
        harness: Harness {
            shell_startup_ns: Some(900_000),
            fault_ns: Some(500.0),
            call_ns: Some(80.0),
        },
        ..Race::default()
    };
    race.rounds[3].redone = true;
    race
}

/// Of which the second moves its bytes by a ring.
fn by_ring() -> Race {
    use TermKind::*;
    let mut race = dd_and_cat();
    let requests = |op: &str, count, bytes_other| Term {
        bytes_other,
        price_ns: 0,
        ..term(op, Ring, [0.0, 0.0], [0, count])
    };
    let workers = term("io_uring threads", Workers, [0.0, 31.0], [0, 0]);
    race.attributions[0].terms.push(requests("read", 1_024, 64 << 20));
    race.attributions[0].terms.push(requests("fsync", 2, 0));
    race.attributions[1].terms.push(workers);
    race
}

fn with(ratio: f64, verdict: RaceVerdict) -> Race {
    let mut race = dd_and_cat();
    race.comparisons = vec![comparison(Metric::Wall, ratio, verdict)];
    race
}

fn rendered(record: &Race) -> String {
    race(record, &Style::default())
}

macro_rules! golden {
    ($test:ident, $text:expr) => {
        #[test]
        fn $test() {
            insta::assert_snapshot!($text);
        }
    };
}

golden!(requests_to_io_uring_are_below_the_terms, rendered(&by_ring()));
golden!(a_faster_one, rendered(&dd_and_cat()));
golden!(a_slower_one, rendered(&with(1.37, RaceVerdict::Slower)));
golden!(no_difference, rendered(&with(1.002, RaceVerdict::NoDifference)));
golden!(undecided, {
    let mut race = with(0.98, RaceVerdict::Undecided);
    race.comparisons[0].more_runs = Some(40);
    rendered(&race)
});
golden!(too_few_runs, {
    let mut race = with(0.98, RaceVerdict::Undecided);
    race.comparisons[0].ci95 = [0.0, 0.0];
    race.comparisons[0].mean_ratio = None;
    race.commands[0].wall.ci95 = None;
    rendered(&race)
});
golden!(interrupted, {
    let mut race = with(0.98, RaceVerdict::Undecided);
    race.interrupted = Some(2);
    race.plan.runs = Some(100);
    rendered(&race)
});
golden!(alone, rendered(&one_alone()));

#[test]
fn runs_that_were_all_killed_have_no_result() {
    let killed = |signals: &[i32]| signals.iter().map(|signal| Exit::Signal(*signal)).collect();
    let with_exits = |mut race: Race, exits: Vec<Exit>| {
        let one = race.commands.last_mut().unwrap();
        one.runs = exits.into_iter().map(|exit| Run { exit, ..Run::default() }).collect();
        rendered(&race)
    };
    let text = with_exits(with(0.5, RaceVerdict::Faster), killed(&[9, 15]));
    assert!(text.contains("no result for A and B"), "{text}");
    assert!(text.contains("signals ended all runs of B (the first: SIGKILL)"), "{text}");
    assert!(!text.contains("as fast as"), "{text}");
    let some = vec![Exit::Signal(9), Exit::Code(1)];
    assert!(with_exits(with(0.5, RaceVerdict::Faster), some).contains("as fast as"));
    assert!(with_exits(one_alone(), killed(&[9])).contains("no result for A"));
}

fn one_alone() -> Race {
    let mut race = dd_and_cat();
    race.commands.pop();
    race.comparisons.clear();
    for found in &mut race.attributions {
        "A".clone_into(&mut found.other);
        found.delta_ns = 531_000_000;
        for term in &mut found.terms {
            (term.other_ns, term.base_ns, term.delta_ns) = (term.base_ns, 0, term.base_ns);
            (term.calls_other, term.calls_base) = (term.calls_base, 0);
        }
        let sum: i64 = found.terms.iter().map(|term| term.delta_ns).sum();
        found.residual_ns = found.delta_ns - sum;
    }
    race
}
golden!(denied_and_failing, {
    let mut race = dd_and_cat();
    race.commands[1].denied = vec!["copy_file_range=ENOSYS".into()];
    race.commands[1].failures = 2;
    race.attributions.clear();
    rendered(&race)
});
golden!(sampled, {
    let mut race = dd_and_cat();
    race.attributions.clear();
    for (one, cut_short) in race.commands.iter_mut().zip([0, 15]) {
        let user_stacks = Some(UserStacks { samples: 60, cut_short, lost: 0, lost_mappings: 0 });
        let sampling = Sampling { lost: 15 - cut_short, user_stacks, ..Sampling::default() };
        one.sampled = Some(Sampled { sampling, calls: vec![], stacks: vec![] });
    }
    rendered(&race)
});
golden!(ascii, race(&dd_and_cat(), &Style { unicode: false, ..Style::default() }));
golden!(narrow, race(&dd_and_cat(), &Style { width: 60, ..Style::default() }));

#[test]
fn shares_of_the_terms_add_up_to_the_whole() {
    let text = rendered(&dd_and_cat());
    let rows = text.lines().skip_while(|l| !l.contains("where")).skip(4);
    let mut sum = 0.0;
    for row in rows {
        let Some((before, _)) = row.split_once(" %") else { panic!("{row}") };
        let share: f64 = before.split_whitespace().last().unwrap().parse().unwrap();
        if row.contains("difference") {
            assert_eq!(share, 100.0);
            assert!((sum - 100.0f64).abs() < 0.6, "{sum}: {text}");
            return;
        }
        sum += share;
    }
    panic!("{text}");
}

#[test]
fn a_saved_record_renders_as_the_one_that_was_saved() {
    let record = dd_and_cat();
    let bytes = store::RecordRef::Race(&record).json().unwrap();
    let loaded = store::parse_race(&bytes).unwrap();
    assert_eq!(loaded, record);
    assert_eq!(rendered(&loaded), rendered(&record));
}

/// With runs, of which the last round was repeated.
fn with_runs() -> store::Record {
    let mut race = dd_and_cat();
    for (at, one) in race.commands.iter_mut().enumerate() {
        one.runs = (0..30)
            .map(|n| Run {
                wall_ns: 500_000_000 - 140_000_000 * at as u64 + n * 700_000,
                user_ns: 1_000_000,
                system_ns: 300_000_000,
                max_rss_bytes: 2 << 20,
                exit: Exit::Code(0),
                startup_ns: 300_000,
                minor_faults: 90,
                major_faults: 0,
                involuntary_switches: 1,
                output_bytes: None,
                round: n / 2,
            })
            .collect();
    }
    race.order = (0..15).flat_map(|_| ["A", "B", "B", "A"]).map(str::to_owned).collect();
    race.rounds[14].redone = true;
    race.rounds[14].disturbed = vec!["others had 90 % of a CPU".into()];
    store::Record::Race(Box::new(race))
}

#[test]
fn a_page() {
    insta::assert_snapshot!(looks::page_alone(&with_runs()));
}

#[test]
fn other_forms() {
    insta::assert_snapshot!(looks::other_forms(&with_runs()));
}

#[test]
fn one_command_alone_has_no_columns_of_a_base() {
    let record = store::Record::Race(Box::new(one_alone()));
    let source = crate::Source { name: "run.json", record: &record, bytes: b"{}" };
    let table = crate::csv(&[source], Some("terms-a-a")).unwrap();
    assert!(table.starts_with("term,calls,time_ns,remarks\nread,9,128000000,"), "{table}");
    assert!(table.lines().last().unwrap().starts_with("residual,,"), "{table}");
}

#[test]
fn what_a_race_was_held_against_is_in_every_form() {
    let mut race = dd_and_cat();
    race.against = Some(crate::history::tests::elsewhere());
    insta::assert_snapshot!(looks::other_forms(&store::Record::Race(Box::new(race))));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn any_record_renders_within_its_width(
        record in arbitrary::race(), width in 0usize..200, unicode: bool,
    ) {
        looks::keeps_to(width, unicode, |style| race(&record, style));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]

    #[test]
    fn any_record_is_inert_in_every_form(record in arbitrary::race()) {
        looks::is_inert(&store::Record::Race(Box::new(record)));
    }
}

#[test]
fn refusals_to_the_observers_of_the_traced_runs_are_named_once() {
    let mut race = dd_and_cat();
    let missing = MissingFeature {
        feature: "perf events".into(),
        reason: "EPERM".into(),
        lost: "samples".into(),
    };
    let mut trace = crate::trace::tests::records::dd();
    trace.observer.missing = vec![missing];
    for one in &mut race.commands {
        one.trace = Some(trace.clone());
    }
    race.commands[1].trace.as_mut().unwrap().observer.fallback = Some("no BTF".into());
    let text = super::race(&race, &Style { width: 200, ..Style::default() });
    let line = "of the traced runs: the kernel refused perf events (EPERM); lost: samples";
    assert_eq!(text.matches(line).count(), 1, "{text}");
    assert!(text.contains("of the traced runs: watched by bpf, because of no BTF"), "{text}");
}
