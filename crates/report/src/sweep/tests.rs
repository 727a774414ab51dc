use std::collections::BTreeMap;

use iotomy_record::{
    Case, Claim, ClaimVerdict, ExperimentFacts, Extra, Machine, MergedShard, Shard, SweepMachine,
    SweepRun, Volume, arbitrary,
};
use proptest::prelude::*;

use super::*;
use crate::page::columns;

fn params(waiter: &str, processes: u64) -> BTreeMap<String, AxisValue> {
    [
        ("waiter".to_owned(), AxisValue::Name(waiter.to_owned())),
        ("processes".to_owned(), AxisValue::Number(processes)),
        ("duplicates".to_owned(), AxisValue::Number(0)),
    ]
    .into()
}

fn case(waiter: &str, processes: u64, median: f64, woken: f64) -> Case {
    Case {
        params: params(waiter, processes),
        metric: "time of connect()".into(),
        unit: "ns".into(),
        samples: vec![median * 0.9, median, median * 1.3],
        median: Some(median),
        mean: Some(median * 1.07),
        stddev: Some(median * 0.2),
        ci95: Some([median * 0.9, median * 1.2]),
        extra: [("woken".to_owned(), woken), ("quiet_ns".to_owned(), 3.0 * median)].into(),
        skipped: None,
        min: Some(median * 0.9),
        extra_samples: BTreeMap::new(),
        note: None,
        visits: Vec::new(),
    }
}

fn without(case: Case, reason: &str) -> Case {
    Case {
        samples: Vec::new(),
        median: None,
        mean: None,
        stddev: None,
        ci95: None,
        min: None,
        extra: BTreeMap::new(),
        skipped: Some(reason.to_owned()),
        ..case
    }
}

fn claim(id: &str, verdict: ClaimVerdict, because: &str) -> Claim {
    Claim {
        id: id.into(),
        source: "002".into(),
        text: "connect() to a listener shared by N sleeping processes takes time linear in N"
            .into(),
        verdict,
        evidence: BTreeMap::new(),
        because: because.into(),
    }
}

fn record() -> Sweep {
    let numbers = [1, 64, 1_024, 4_096];
    let mut cases: Vec<Case> = numbers
        .iter()
        .flat_map(|n| {
            let of = *n as f64;
            [
                case("select", *n, 48_000.0 + 2_050.0 * of, of),
                case("epoll-exclusive", *n, 50_000.0 + of, 1.02),
            ]
        })
        .collect();
    let reason = "needs 16384 processes, and 9000 are free: kernel.pid_max is 10000";
    cases.push(without(case("select", 16_384, 1.0, 1.0), reason));
    cases.push(without(case("epoll-exclusive", 16_384, 1.0, 1.0), reason));
    cases[3].note = Some("a process ended by itself".into());
    let axis = |name: &str, values: Vec<AxisValue>| SweepAxis {
        name: name.into(),
        unit: String::new(),
        values,
    };
    let names = ["select", "epoll-exclusive"].map(|name| AxisValue::Name(name.into()));
    let numbers = [1, 64, 1_024, 4_096, 16_384].map(AxisValue::Number);
    let extra = |name: &str, unit: &str, summary: &str| Extra {
        name: name.into(),
        unit: unit.into(),
        summary: summary.into(),
    };
    Sweep {
        schema: Sweep::SCHEMA.into(),
        started: "2025-03-01T10:20:30Z".into(),
        machine: Machine {
            kernel: "Linux 6.1.0 x86_64".into(),
            cpu: "Example CPU @ 3 GHz".into(),
            cpus: 8,
            ..Machine::default()
        },
        experiment: "herd".into(),
        axes: vec![
            axis("waiter", names.into()),
            axis("processes", numbers.into()),
            axis("duplicates", vec![AxisValue::Number(0)]),
        ],
        cases,
        claims: vec![
            claim("herd-linear", ClaimVerdict::Holds, "connect() = 48 µs + 2.05 µs × N (R² 0.998)"),
            claim("herd-load", ClaimVerdict::Fails, "it rose to 0.5"),
            claim("herd-dups", ClaimVerdict::Inconclusive, "it takes duplicates"),
        ],
        about: ExperimentFacts {
            summary: "connect() to a listener shared by N sleeping processes".into(),
            hypothesis: "it grows".into(),
            refuted_by: "it does not".into(),
            controls: vec!["on the loopback only".into()],
            extras: vec![
                extra("woken", "", "processes woken by a connection"),
                extra("quiet_ns", "ns", "until all of them slept again"),
            ],
            along: "processes".into(),
            lines: "waiter".into(),
        },
        run: SweepRun {
            size: "default".into(),
            seed: 7,
            wall_ns: 62_300_000_000,
            rounds: 3,
            loose: 2,
            ..SweepRun::default()
        },
        machines: Vec::new(),
    }
}

fn text(record: &Sweep) -> String {
    sweep(record, &Style::default())
}

#[test]
fn a_herd() {
    insta::assert_snapshot!(text(&record()));
}

#[test]
fn further_measurements_have_the_names_of_the_other_reports() {
    let mut record = record();
    record.about.extras[1].name = "waiting_ns".into();
    for case in &mut record.cases {
        let quiet = case.extra.remove("quiet_ns");
        case.extra.extend(quiet.map(|value| ("waiting_ns".to_owned(), value)));
    }
    let text = text(&record);
    assert!(text.contains("runq") && !text.contains("waiting"), "{text}");
}

#[test]
fn narrow_and_ascii() {
    let style = Style { width: 60, unicode: false, ..Style::default() };
    insta::assert_snapshot!(sweep(&record(), &style));
}

#[test]
fn names_along_have_a_table_and_no_chart() {
    let mut record = record();
    record.about.along = "waiter".into();
    record.about.lines = "processes".into();
    record.claims.clear();
    record.run.is_partial = true;
    insta::assert_snapshot!(text(&record));
}

#[test]
fn cases_that_had_no_time_are_counted_apart_and_named_with_what_helps() {
    let mut record = record();
    let skipped = record.cases.iter().filter(|case| case.skipped.is_some()).count();
    for n in 1..=5 {
        record.cases.push(without(case("late", n, 1.0, 1.0), Case::NO_TIME));
    }
    let text = text(&record);
    let (before, _) = text.split_once("· 5 had no time ·").expect("in the headline");
    assert_eq!(before.contains("skipped"), skipped > 0, "{text}");
    assert!(text.contains("\n5 cases had no time: late, processes 1;"), "{text}");
    let words: Vec<&str> = text.split_whitespace().collect();
    let text = words.join(" ");
    assert!(text.contains("; 2 more; raise the limit with --max-time"), "{text}");
}

#[test]
fn wide_intervals_come_with_what_narrows_them() {
    let said = |size: &str, max_time_ns, loose| {
        let mut record = record();
        record.run = SweepRun { size: size.into(), max_time_ns, loose, ..record.run };
        let text = text(&record);
        let at = text.find("  try: ").map(|at| text[at..].lines().next().unwrap().to_owned());
        at.unwrap_or_default()
    };
    assert_eq!(said("quick", Some(11), 0), "");
    assert!(said("quick", Some(11), 2).contains("drop --quick"));
    assert!(said("default", Some(130), 2).contains("--full"));
    assert!(said("full", Some(9), 2).contains("raise --max-time"));
    assert!(said("full", None, 1).contains("to narrow the wide interval"));
}

#[test]
fn the_folder_is_told_with_its_file_system() {
    let mut record = record();
    let (path, file_system) = ("/mnt/disk".to_owned(), "xfs".to_owned());
    record.run.volume = Some(Volume { path, file_system, id: "xfs 1 2 3".to_owned() });
    assert!(text(&record).contains(" · /mnt/disk (xfs) · 3 rounds"), "{}", text(&record));
    let facts = section::section(&record).facts;
    assert!(facts.contains(&("folder", "/mnt/disk (xfs)".to_owned())), "{facts:?}");
}

/// The same of two machines, the second of which ran half of the plan in a shard.
fn merged() -> Sweep {
    let mut record = record();
    let names = ["node1", "node2"];
    let mut cases = Vec::new();
    for (name, count) in [("node1", 8), ("node2", 4)] {
        for mut case in record.cases.iter().take(count).cloned() {
            case.params.insert(Sweep::MACHINE.into(), AxisValue::Name(name.into()));
            cases.push(case);
        }
    }
    record.cases = cases;
    let values = names.map(|name| AxisValue::Name(name.into())).into();
    record.axes.insert(0, SweepAxis { name: Sweep::MACHINE.into(), unit: String::new(), values });
    let claims = |verdict, because: &str| {
        let of = |claim: &Claim| Claim { verdict, because: because.into(), ..claim.clone() };
        record.claims.iter().map(of).collect()
    };
    let machine = |name: &str, claims| SweepMachine {
        machine: Machine { name: name.into(), ..record.machine.clone() },
        started: record.started.clone(),
        volume: None,
        claims,
    };
    record.machines = vec![
        machine("node1", claims(ClaimVerdict::Holds, "it grows by 2 µs")),
        machine("node2", claims(ClaimVerdict::Inconclusive, "needs four numbers")),
    ];
    for claim in &mut record.claims {
        claim.verdict = ClaimVerdict::Holds;
        claim.because = "holds on node1; not decided on node2 (4 of 8 cases)".into();
    }
    let shard = |index, machine: &str, seed| MergedShard {
        index,
        machine: machine.into(),
        cases: 4,
        started: record.started.clone(),
        wall_ns: 9,
        rounds: 3,
        seed,
    };
    record.run.shards = vec![shard(1, "node1", 7), shard(2, "node2", 8)];
    record.machine = Machine { kernel: "Linux 6.1.0 x86_64".into(), ..Machine::default() };
    record
}

#[test]
fn a_merged_record_has_the_verdicts_of_each_machine() {
    insta::assert_snapshot!(text(&merged()));
}

#[test]
fn other_forms_of_a_merged_record() {
    insta::assert_snapshot!(crate::looks::other_forms(&as_record(merged())));
}

#[test]
fn machines_beyond_some_are_counted() {
    let mut record = merged();
    let last = record.machines[1].clone();
    for at in 3..=20 {
        let mut more = last.clone();
        more.machine.name = format!("node{at}");
        record.machines.push(more);
    }
    let text = text(&record);
    assert!(text.contains("node8 inconclusive: ") && !text.contains("node9"), "{text}");
    assert_eq!(text.matches("12 more machines: iotomy report has all").count(), 4, "{text}");
    let section = as_record(record);
    let source = [crate::Source { name: "x", record: &section, bytes: b"" }];
    let table = crate::csv(&source, Some("claims-by-machine")).unwrap();
    assert_eq!(table.lines().count(), 1 + 3 * 20, "{table}");
}

#[test]
fn a_shard_says_which_it_is_and_that_its_claims_come_later() {
    let mut record = record();
    record.claims.clear();
    let shard = Shard { index: 2, of: 5, plan_cases: 40, plan: "0".into() };
    record.run.shard = Some(shard);
    let text = text(&record);
    assert!(text.contains(" · shard 2 of 5, of 40 cases in all"), "{text}");
    assert!(text.contains("claims are judged when the 5 shards are merged: iotomy lab merge"));
}

#[test]
fn nothing_at_all() {
    let empty = Sweep {
        cases: Vec::new(),
        axes: Vec::new(),
        claims: Vec::new(),
        about: ExperimentFacts::default(),
        machine: Machine::default(),
        run: SweepRun::default(),
        ..record()
    };
    assert_eq!(text(&empty), "herd ·\n  0 cases\n\n\n");
}

#[test]
fn a_saved_record_renders_as_the_one_that_was_saved() {
    let bytes = iotomy_record::store::RecordRef::Sweep(&record()).json().unwrap();
    let loaded = iotomy_record::store::parse_sweep(&bytes).unwrap();
    assert_eq!(text(&loaded), text(&record()));
}

fn as_record(mut sweep: Sweep) -> iotomy_record::store::Record {
    let line = serde_json::json!({"intercept": 48e3, "slope": 2050.0, "slope_ci95": [2e3, 2.1e3], "r2": 0.998});
    if let Some(claim) = sweep.claims.first_mut() {
        claim.evidence.insert("select".into(), line);
    }
    iotomy_record::store::Record::Sweep(Box::new(sweep))
}

#[test]
fn a_page() {
    insta::assert_snapshot!(crate::looks::page_alone(&as_record(record())));
}

#[test]
fn other_forms() {
    insta::assert_snapshot!(crate::looks::other_forms(&as_record(record())));
}

/// An experiment that changes one axis of six at a time: only `processes` makes a line.
fn one_at_a_time() -> Sweep {
    let mut record = record();
    record.claims.clear();
    let usual = |processes: u64| case("select", processes, 40_000.0 * processes as f64, 1.0);
    record.cases = vec![usual(1), usual(64)];
    for name in ["cache", "depth", "fs", "sync"] {
        let values = ["usual", "other"].map(|value| AxisValue::Name(format!("{value} {name}")));
        let mut changed = usual(1);
        changed.median = changed.median.map(|median| median * (1.0 + name.len() as f64));
        for case in record.cases.iter_mut().chain([&mut changed]) {
            case.params.insert(name.into(), values[0].clone());
        }
        let known: Vec<String> = record.axes.iter().map(|axis| axis.name.clone()).collect();
        for other in &known[3..] {
            changed.params.insert(other.clone(), AxisValue::Name(format!("usual {other}")));
        }
        changed.params.insert(name.into(), values[1].clone());
        record.cases.push(changed);
        record.axes.push(SweepAxis {
            name: name.into(),
            unit: String::new(),
            values: values.into(),
        });
    }
    record
}

#[test]
fn cases_that_stand_alone_have_one_picture_with_the_usual_one_first() {
    let record = as_record(one_at_a_time());
    let source = [crate::Source { name: "herd.json", record: &record, bytes: b"" }];
    let names: Vec<String> = crate::parts(&source).into_iter().map(|part| part.name).collect();
    assert_eq!(names, ["chart", "medians", "chart-others", "medians-others", "cases"]);
    let svg = crate::svg(&source, Some("chart-others")).unwrap();
    let (start, rest) = svg.split_once("<style>").unwrap();
    insta::assert_snapshot!(format!("{start}{}", rest.split_once("</style>").unwrap().1));
    insta::assert_snapshot!(crate::markdown(&source, Some("medians-others")).unwrap());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn any_record_renders_within_its_width(
        record in arbitrary::sweep(), width in 0usize..200, unicode: bool,
    ) {
        let text = sweep(&record, &Style { unicode, width, ..Style::default() });
        prop_assert!(unicode || text.is_ascii());
        for line in text.lines() {
            prop_assert!(!line.chars().any(char::is_control), "{line:?}");
            prop_assert!(columns(line) <= width.max(20), "{line:?}");
            prop_assert!(!line.ends_with(' '), "{line:?}");
        }
    }

    #[test]
    fn colour_changes_nothing_else(record in arbitrary::sweep()) {
        let coloured = sweep(&record, &Style { color: true, ..Style::default() });
        let plain = coloured.split('\x1b').enumerate().map(|(i, part)| {
            if i == 0 { part } else { part.split_once('m').unwrap().1 }
        });
        prop_assert_eq!(plain.collect::<String>(), text(&record));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]

    #[test]
    fn any_record_is_inert_in_every_form(record in arbitrary::sweep()) {
        crate::looks::is_inert(&as_record(record));
    }
}
