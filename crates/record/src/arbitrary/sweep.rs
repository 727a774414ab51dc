//! Random sweeps.

use std::collections::BTreeMap;

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;

use super::limits::volume;
use super::{machine, number, positive, text};
use crate::*;

/// A sweep that [`crate::store::parse_sweep`] accepts.
pub fn sweep() -> impl Strategy<Value = Sweep> {
    let axes = (
        vec(axis_value(), 1..4),
        vec(axis_value(), 0..5),
        vec((any::<bool>(), vec(measured(), 1..5), text()), 20),
    );
    let rest = (vec(claim().boxed(), 0..4), about().boxed(), sweep_run(), machine().boxed());
    (axes, rest, (text(), text(), text()))
        .prop_map(|(axes, rest, texts)| {
            let (mut rows, mut columns, outcomes) = axes;
            rows.sort();
            rows.dedup();
            columns.sort();
            columns.dedup();
            let names = [format!("a{}", texts.0), format!("b{}", texts.1)];
            let pairs = rows.iter().flat_map(|row| columns.iter().map(move |column| (row, column)));
            let cases = pairs.zip(outcomes).map(|((row, column), outcome)| {
                let params = names.clone().into_iter().zip([row.clone(), column.clone()]).collect();
                case(params, &texts.2, outcome)
            });
            Sweep {
                schema: Sweep::SCHEMA.to_string(),
                started: "2025-03-01T10:20:30.5Z".to_string(),
                machine: rest.3,
                experiment: texts.2.clone(),
                cases: cases.collect(),
                axes: names
                    .iter()
                    .zip([&rows, &columns])
                    .map(|(name, values)| SweepAxis {
                        name: name.clone(),
                        unit: if rest.2.seed % 2 == 0 { "bytes".into() } else { String::new() },
                        values: values.clone(),
                    })
                    .collect(),
                claims: rest
                    .0
                    .into_iter()
                    .enumerate()
                    .map(|(at, claim)| Claim { id: format!("{}{at}", claim.id), ..claim })
                    .collect(),
                about: rest.1,
                run: rest.2,
                machines: Vec::new(),
            }
        })
        .prop_map(|sweep| if sweep.run.rounds % 3 == 0 { of_two_machines(sweep) } else { sweep })
}

/// The same cases, as if two machines had run them in turn.
fn of_two_machines(mut sweep: Sweep) -> Sweep {
    let names = ["one", "two"].map(|name| format!("{name}{}", sweep.machine.name));
    for (at, case) in sweep.cases.iter_mut().enumerate() {
        let name = AxisValue::Name(names[at % 2].clone());
        case.params.insert(Sweep::MACHINE.to_owned(), name);
    }
    let values = names.iter().cloned().map(AxisValue::Name).collect();
    let axis = SweepAxis { name: Sweep::MACHINE.to_owned(), unit: String::new(), values };
    sweep.axes.insert(0, axis);
    let one = |name: &String| SweepMachine {
        machine: Machine { name: name.clone(), ..sweep.machine.clone() },
        started: sweep.started.clone(),
        volume: sweep.run.volume.clone(),
        claims: sweep.claims.clone(),
    };
    sweep.machines = names.iter().map(one).collect();
    sweep
}

fn case(
    params: BTreeMap<String, AxisValue>,
    metric: &str,
    (is_skipped, samples, reason): (bool, Vec<f64>, String),
) -> Case {
    let first = samples.first().copied().filter(|_| !is_skipped);
    let extra: BTreeMap<String, f64> =
        first.map(|one| ("woken".to_owned(), one)).into_iter().collect();
    Case {
        params,
        metric: metric.to_owned(),
        unit: if reason.len() % 2 == 0 { "ns".to_owned() } else { reason.clone() },
        median: first,
        mean: first,
        stddev: first.map(f64::abs),
        ci95: first.filter(|one| *one > 0.0).map(|one| [0.0, one]),
        min: first,
        extra_samples: extra.keys().map(|name| (name.clone(), samples.clone())).collect(),
        note: (samples.len() == 2).then(|| reason.clone()),
        visits: (1..)
            .zip(samples.iter().filter(|_| !is_skipped && samples.len() > 2))
            .map(|(round, _)| Visit { round, samples: 1, wall_ns: 10 * round })
            .collect(),
        samples: if is_skipped { Vec::new() } else { samples },
        extra,
        skipped: is_skipped.then_some(reason),
    }
}

fn axis_value() -> impl Strategy<Value = AxisValue> {
    prop_oneof![number().prop_map(AxisValue::Number), text().prop_map(AxisValue::Name)]
}

fn measured() -> impl Strategy<Value = f64> {
    prop_oneof![4 => positive(), 1 => -1e9..1e9, 1 => Just(f64::MIN)]
}

fn claim() -> impl Strategy<Value = Claim> {
    use ClaimVerdict::*;
    let evidence: BTreeMap<_, _> = [("slope".to_string(), serde_json::json!([1.5, "ns"]))].into();
    let verdict = select(vec![Holds, Fails, Inconclusive]);
    (text(), text(), text(), verdict, text()).prop_map(
        move |(id, source, text, verdict, because)| Claim {
            id,
            source,
            text,
            verdict,
            evidence: evidence.clone(),
            because,
        },
    )
}

fn about() -> impl Strategy<Value = ExperimentFacts> {
    let extra =
        (text(), text()).prop_map(|(unit, summary)| Extra { name: "woken".into(), unit, summary });
    let texts = [(); 3].map(|()| text());
    (texts, vec(text(), 0..3), vec(extra, 0..2), [(); 2].map(|()| text())).prop_map(
        |([summary, hypothesis, refuted_by], controls, extras, [along, lines])| ExperimentFacts {
            summary,
            hypothesis,
            refuted_by,
            controls,
            extras,
            along,
            lines,
        },
    )
}

fn sweep_run() -> impl Strategy<Value = SweepRun> {
    let limits = (text(), option::of(number()), [(); 4].map(|()| number()), any::<bool>());
    (limits, option::of(volume()), option::of(text())).prop_map(
        |((size, max_time_ns, n, is_partial), volume, json)| SweepRun {
            size,
            seed: n[0],
            max_time_ns,
            wall_ns: n[1],
            rounds: n[2],
            loose: n[3],
            is_partial,
            volume,
            shard: (n[0] % 2 == 0).then(|| Shard {
                index: 2,
                of: 5,
                plan_cases: n[1],
                plan: json.clone().unwrap_or_default(),
            }),
            shards: (0..n[2] % 3)
                .map(|at| MergedShard {
                    index: at + 1,
                    machine: json.clone().unwrap_or_default(),
                    cases: n[0],
                    started: "2025-03-01T10:20:30Z".to_owned(),
                    wall_ns: n[1],
                    rounds: n[2],
                    seed: n[3],
                })
                .collect(),
            json,
        },
    )
}
