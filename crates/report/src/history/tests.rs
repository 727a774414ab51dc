use iotomy_record::*;
use proptest::prelude::*;

use super::*;
use crate::looks;

fn kept(id: u64, kind: &str, subject: &str, name: Option<&str>) -> KeptRun {
    KeptRun {
        id,
        name: name.map(str::to_owned),
        kind: kind.into(),
        started: format!("2026-01-{:02}T10:20:30.5Z", id % 28 + 1),
        subject: subject.into(),
        version: "0.1.0".into(),
        kernel: "Linux 6.1".into(),
        machine: "node1".into(),
        hardware: "4 x EPYC · kvm".into(),
        bytes: 12_345 * id,
        measure: Some(Measure {
            subject: subject.into(),
            name: "wall".into(),
            unit: "ns".into(),
            value: 1.5e6 * id as f64,
            samples: vec![],
            runs: 1,
        }),
    }
}

fn runs() -> Vec<KeptRun> {
    vec![
        kept(9, "race", "dd if=f of=g bs=8k | dd if=f of=g bs=1M", Some("main")),
        kept(10, "limits", "limits", None),
        kept(11, "trace", "ls -l '\u{1b}[31mred\n' \u{202e}gpj.exe", Some("\u{1b}]0;x\u{7}")),
    ]
}

fn change(
    measure: &str,
    unit: &str,
    [then, now]: [f64; 2],
    verdict: Option<RaceVerdict>,
) -> Change {
    let ratio = (then > 0.0).then(|| now / then);
    Change {
        subject: "dd if=f of=g".into(),
        measure: measure.into(),
        unit: unit.into(),
        then,
        now,
        runs_then: 20,
        runs_now: 30,
        ratio,
        ci95: ratio.filter(|_| verdict.is_some()).map(|ratio| [ratio * 0.97, ratio * 1.02]),
        verdict,
        sessions: 5,
        min_effect: 0.01,
        more_runs: None,
        range: None,
    }
}

fn held() -> Against {
    Against {
        baseline: "main".into(),
        started: "2026-01-02T03:04:05Z".into(),
        runs: vec![3, 4, 6, 7, 9],
        differences: vec![Difference {
            what: "iotomy".into(),
            then: "0.1.0".into(),
            now: "0.2.0".into(),
            matters: false,
        }],
        changes: vec![
            change("wall", "ns", [12e6, 13.3e6], Some(RaceVerdict::Slower)),
            change("cpu", "ns", [9e6, 8e6], Some(RaceVerdict::Faster)),
            change("rate", "bytes/s", [9e9, 9.01e9], Some(RaceVerdict::NoDifference)),
            change("read calls", "", [8_192.0, 64.0], None),
            change("write calls", "", [8_192.0, 8_192.0], None),
        ],
    }
}

pub(crate) fn elsewhere() -> Against {
    let mut against = held();
    let differs = |what: &str, then: &str, now: &str| Difference {
        what: what.into(),
        then: then.into(),
        now: now.into(),
        matters: true,
    };
    against.differences = vec![
        differs("kernel", "Linux 6.1.0", "Linux 6.18.0"),
        differs("prepare", "", "rm -f g"),
        differs("cpu", "\u{1b}[2J", "x"),
    ];
    for change in against.changes.iter_mut().filter(|change| change.verdict.is_some()) {
        change.verdict = Some(RaceVerdict::Undecided);
    }
    against
}

#[test]
fn sessions_are_never_advised_to_be_kept_by_a_number() {
    let mut of_a_number = short();
    let text = against(&of_a_number, &Style::default());
    assert!(text.contains("--save=main"), "{text}");
    of_a_number.baseline = "7".into();
    let text = against(&of_a_number, &Style::default());
    assert!(text.contains("--save=NAME") && !text.contains("--save=7"), "{text}");
}

/// With too few runs and sessions for the first measure, whose sessions disagree.
fn short() -> Against {
    let mut against = held();
    against.runs = (3..15).collect();
    let first = &mut against.changes[0];
    first.verdict = Some(RaceVerdict::Undecided);
    (first.sessions, first.min_effect, first.more_runs) = (2, 0.05, Some(8));
    first.range = Some([12e6, 24e6]);
    against
}

fn over_time(values: &[f64], changes: &[usize]) -> Trend {
    let point = |(at, value): (usize, &f64)| Point {
        id: at as u64 + 3,
        name: None,
        started: format!("2026-02-{:02}T10:20:30Z", at % 28 + 1),
        value: *value,
        runs: 20,
        kernel: if at < 14 { "Linux 6.1".into() } else { "Linux 6.18".into() },
        version: "0.1.0".into(),
    };
    Trend {
        kind: "race".into(),
        subject: "dd if=f of=g bs=8k".into(),
        measure: "wall".into(),
        unit: "ns".into(),
        points: values.iter().enumerate().map(point).collect(),
        changes: changes.to_vec(),
        machine: "node1".into(),
        elsewhere: 2,
        others: vec!["cpu".into()],
    }
}

fn step() -> Trend {
    let wave = |at: usize| (at * 7 % 5) as f64 * 0.6e6;
    let values: Vec<f64> =
        (0..24).map(|at| if at < 14 { 100e6 } else { 110e6 } + wave(at)).collect();
    over_time(&values, &[14])
}

fn trend(record: &Trend, style: &Style) -> String {
    trends(std::slice::from_ref(record), style)
}

/// A step on one machine, and none on another.
fn several() -> Vec<Trend> {
    let steady: Vec<f64> = (0..8).map(|at| 60e6 + (at * 7 % 5) as f64 * 0.6e6).collect();
    let steady = Trend { machine: "node2".into(), ..over_time(&steady, &[]) };
    [step(), steady].map(|record| Trend { elsewhere: 0, ..record }).into()
}

/// Runs of a machine, and of one without a name.
fn on_machines() -> Vec<KeptRun> {
    let mut runs = runs();
    runs[1].machine = String::new();
    runs[1].hardware = "16 x Xeon · none".into();
    runs
}

macro_rules! golden {
    ($test:ident, $text:expr) => {
        #[test]
        fn $test() {
            insta::assert_snapshot!($text);
        }
    };
}

const NARROW: Style = Style { color: false, unicode: false, width: 60, table_width: 0 };

golden!(a_list, history(&runs(), 8, 20, &Style::default()));
golden!(a_list_narrow_and_ascii, history(&runs(), 1, 20, &NARROW));
golden!(a_list_of_several_machines, history(&on_machines(), 0, 3, &Style::default()));
golden!(an_empty_list, history(&[], 0, 0, &Style::default()));
golden!(a_list_of_none_that_match, history(&[], 0, 20, &Style::default()));
golden!(on_the_same_machine, against(&held(), &Style::default()));
golden!(undecided, against(&short(), &Style::default()));
golden!(on_another_machine, against(&elsewhere(), &Style::default()));
golden!(on_another_machine_narrow_and_ascii, against(&elsewhere(), &NARROW));
golden!(a_step, trend(&step(), &Style::default()));
golden!(a_step_narrow_and_ascii, trend(&step(), &NARROW));
golden!(several_machines, trends(&several(), &Style::default()));
golden!(several_machines_narrow_and_ascii, trends(&several(), &NARROW));
golden!(few_runs, trend(&over_time(&[1e6, 1.2e6], &[]), &Style::default()));
golden!(
    one_run_far_away,
    trend(&over_time(&[1e6, 1e7, 1.1e7, 1e7, 1.05e7, 1e7, 1e7], &[]), &Style::default())
);
golden!(
    runs_that_hardly_differ,
    trend(&over_time(&[50.61e6, 50.63e6, 50.64e6, 50.6e6], &[]), &Style::default())
);
golden!(one_run, trend(&over_time(&[1e6], &[]), &Style::default()));

#[test]
fn colour_repeats_what_words_say() {
    looks::is_only_coloured(|style| against(&elsewhere(), style));
    looks::is_only_coloured(|style| trend(&step(), style));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn whatever_was_kept_is_listed_within_its_width(
        texts in prop::collection::vec(arbitrary::text(), 4..8), width in 0usize..200, unicode: bool,
    ) {
        let mut run = kept(9, &texts[0], &texts[1], Some(&texts[2]));
        (run.id, run.bytes) = (u64::MAX, u64::MAX);
        run.started.clone_from(&texts[3]);
        looks::keeps_to(width, unicode, |style| history(&[run.clone()], 3, 4, style));
        let mut other = run.clone();
        other.machine.clone_from(&texts[1]);
        let both = [run, other];
        looks::keeps_to(width, unicode, |style| history(&both, 3, 4, style));
    }

    #[test]
    fn whatever_is_held_against_another_is_shown_within_its_width(
        race in arbitrary::race(), width in 0usize..200, unicode: bool,
    ) {
        let record = race.against.unwrap_or_else(held);
        looks::keeps_to(width, unicode, |style| against(&record, style));
    }

    #[test]
    fn any_trend_is_shown_within_its_width(
        values in prop::collection::vec(prop_oneof![0.0..1e9, Just(f64::MAX), Just(0.0)], 1..40),
        changes in prop::collection::vec(0usize..50, 0..4),
        texts in prop::collection::vec(arbitrary::text(), 3),
        width in 0usize..200, unicode: bool,
    ) {
        let mut record = over_time(&values, &changes);
        record.subject.clone_from(&texts[0]);
        record.measure.clone_from(&texts[1]);
        record.unit.clone_from(&texts[2]);
        record.points[0].kernel.clone_from(&texts[0]);
        looks::keeps_to(width, unicode, |style| trend(&record, style));
        let other = Trend { machine: texts[1].clone(), ..record.clone() };
        let both = [record, other];
        looks::keeps_to(width, unicode, |style| trends(&both, style));
    }
}
