//! Random races.

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;

use super::{against, exit, finding, machine, number, positive, text, trace};
use crate::*;

/// A race that [`crate::store::parse_race`] accepts.
pub fn race() -> impl Strategy<Value = Race> {
    let tables = (
        vec(command().boxed(), 0..4),
        vec(comparison().boxed(), 0..4),
        vec(attribution().boxed(), 0..4),
        vec(finding(), 0..3),
        vec(round(), 0..4),
    );
    let harness = (option::of(number()), option::of(positive()), option::of(positive()));
    let end = (option::of(against::against()), option::of(1..65u32)).boxed();
    (machine().boxed(), tables.boxed(), plan().boxed(), harness, end).prop_map(
        |(machine, tables, plan, harness, (against, interrupted))| Race {
            schema: Race::SCHEMA.to_string(),
            started: "2025-03-01T10:20:30.5Z".to_string(),
            machine,
            order: tables.0.iter().map(|one| one.label.clone()).collect(),
            commands: tables.0,
            comparisons: tables.1,
            attributions: tables.2,
            findings: tables.3,
            plan,
            rounds: tables.4,
            harness: Harness {
                shell_startup_ns: harness.0,
                fault_ns: harness.1,
                call_ns: harness.2,
            },
            against,
            interrupted,
        },
    )
}

fn label() -> impl Strategy<Value = String> {
    prop_oneof![4 => "[A-C]", 1 => text()]
}

fn metric() -> impl Strategy<Value = Metric> {
    select(vec![Metric::Wall, Metric::Cpu])
}

fn spread() -> impl Strategy<Value = Spread> {
    let interval = option::of([positive(), positive()]);
    (number(), [(); 5].map(|()| positive()), interval).prop_map(|(runs, n, ci95)| Spread {
        runs,
        median_ns: n[0],
        ci95,
        min_ns: n[1],
        max_ns: n[2],
        mean_ns: n[3],
        stddev_ns: n[4],
    })
}

fn command() -> impl Strategy<Value = RaceCommand> {
    let texts = (label(), text(), vec(text(), 0..3), (text(), text()));
    let untold = (option::of(text()), option::of(super::anatomy::sampled().boxed()));
    let counts = (number(), number(), untold);
    let rest = (vec(run(), 0..4), option::of(trace().boxed()), any::<bool>(), counts);
    let spreads = (spread().boxed(), spread().boxed());
    (texts.boxed(), rest.boxed(), spreads).prop_map(|(texts, rest, (wall, cpu))| RaceCommand {
        label: texts.0,
        command: texts.1,
        runs: rest.0,
        trace: rest.1,
        shell: rest.2,
        denied: texts.2,
        parameters: [texts.3].into(),
        failures: rest.3.0,
        left_behind: rest.3.1,
        untraced: rest.3.2.0,
        sampled: rest.3.2.1,
        wall,
        cpu,
    })
}

fn run() -> impl Strategy<Value = Run> {
    ([(); 9].map(|()| number()), exit(), option::of(number())).prop_map(|(n, exit, output)| Run {
        wall_ns: n[0],
        user_ns: n[1],
        system_ns: n[2],
        max_rss_bytes: n[3],
        exit,
        startup_ns: n[4],
        minor_faults: n[5],
        major_faults: n[6],
        involuntary_switches: n[7],
        output_bytes: output,
        round: n[8],
    })
}

fn comparison() -> impl Strategy<Value = Comparison> {
    use RaceVerdict::*;
    let verdict = select(vec![Faster, Slower, NoDifference, Undecided]);
    let mean = (option::of(positive()), option::of([positive(), positive()]));
    let about = (label(), label(), metric(), verdict, option::of(number()));
    (about, [(); 3].map(|()| positive()), number(), mean).prop_map(|(about, n, runs, mean)| {
        Comparison {
            base: about.0,
            other: about.1,
            metric: about.2,
            ratio: n[0],
            ci95: [n[1], n[2]],
            verdict: about.3,
            runs,
            more_runs: about.4,
            mean_ratio: mean.0,
            mean_ci95: mean.1,
        }
    })
}

fn attribution() -> impl Strategy<Value = Attribution> {
    let times = (any::<i64>(), any::<i64>(), number(), number());
    (label(), label(), metric(), vec(term(), 0..14), times).prop_map(
        |(base, other, metric, terms, times)| Attribution {
            base,
            other,
            metric,
            delta_ns: times.0,
            terms,
            residual_ns: times.1,
            traced_base_ns: times.2,
            traced_other_ns: times.3,
        },
    )
}

fn term() -> impl Strategy<Value = Term> {
    use TermKind::*;
    let kind =
        select(vec![Syscall, User, Faults, Blocked, Runnable, Startup, Overlap, Workers, Ring]);
    let name = prop_oneof![4 => "read|write|mmap|openat", 1 => text()];
    let time = || prop_oneof![-1_000_000_000i64..1_000_000_000, any::<i64>(), Just(i64::MIN)];
    (name, kind, [(); 3].map(|()| time()), [(); 5].map(|()| number())).prop_map(
        |(name, kind, ns, n)| Term {
            name,
            kind,
            delta_ns: ns[0],
            calls_base: n[0],
            calls_other: n[1],
            base_ns: ns[1],
            other_ns: ns[2],
            price_ns: n[2],
            bytes_base: n[3],
            bytes_other: n[4],
        },
    )
}

fn round() -> impl Strategy<Value = Round> {
    let counts = [(); 5].map(|()| option::of(number()));
    (vec(text(), 0..3), any::<bool>(), number(), counts).prop_map(
        |(disturbed, redone, wall_ns, n)| Round {
            disturbed,
            redone,
            state: State {
                wall_ns,
                other_cpu_ns: n[0],
                steal_ns: n[1],
                memory_stall_ns: n[2],
                frequency_khz: n[3],
                dirty_bytes: n[4],
            },
        },
    )
}

fn plan() -> impl Strategy<Value = RacePlan> {
    let numbers = (number(), option::of(number()), option::of(number()), number(), number());
    let texts = (text(), text(), [(); 3].map(|()| option::of(text())));
    let shares = (positive(), option::of(positive()));
    (shares, numbers, texts, any::<bool>(), any::<bool>()).prop_map(
        |((min_effect, shared_error), n, texts, drop_caches, ignore_failure)| {
            let [prepare, setup, cleanup] = texts.2;
            RacePlan {
                min_effect,
                warmup: n.0,
                runs: n.1,
                max_time_ns: n.2,
                seed: n.3,
                output: texts.0,
                cache: texts.1,
                drop_caches,
                prepare,
                setup,
                cleanup,
                ignore_failure,
                redo: n.4,
                shared_error,
            }
        },
    )
}
