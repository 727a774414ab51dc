//! The tests that decide the claims of `models`, and its cost curves. They are pure functions.

use iotomy_record::Case;
use iotomy_stats::Line;
use iotomy_waiters::Model;

use crate::harness::claims::{digits, equation, ratio_of, shown, time};
use crate::harness::{Cases, Judgement};
use crate::wait::pairs::{DESCRIPTORS, waiters_of};

/// The models whose waiters block until something has happened, and whose events none can crowd out.
const BLOCKING: [Model; 3] = [Model::Passed, Model::Readiness, Model::Completion];

/// The same kernel interface by readiness and by completion.
const RING_READINESS: &str = "io-uring-poll";
const RING_COMPLETION: &str = "io-uring-recv";

pub(super) fn models(cases: &Cases<'_>) -> Judgement {
    let cases = &cases.settled();
    // The maximum over the cases of a model, or the minimum.
    let of = |model: Model, name: &str, least: bool| {
        let waiters = waiters_of(model).into_iter();
        let cases = waiters.map(|waiter| cases.named("model", waiter));
        let figures: Vec<f64> = cases
            .flat_map(|cases| {
                cases.iter().map(|case| case.extra.get(name).copied()).collect::<Vec<_>>()
            })
            .flatten()
            .collect();
        figures.into_iter().reduce(if least { f64::min } else { f64::max })
    };
    let busy = of(Model::Polling, "idle_share", true);
    let worst = BLOCKING.map(|model| of(model, "idle_share", false)).into_iter().flatten();
    let signals = of(Model::Signals, "overflows", false).zip(of(Model::Signals, "lost", false));
    let worst = worst.reduce(f64::max);
    let (Some(busy), Some((overflows, lost)), Some(worst)) = (busy, signals, worst) else {
        return Judgement::inconclusive("needs busy, sigio, and select, poll or epoll");
    };
    let latency = |waiter: &str| cases.named("model", waiter).first()?.median;
    let latencies = |model: Model| {
        let waiters = waiters_of(model).into_iter();
        let times = waiters.filter_map(|name| Some(format!("{name} {}", time(latency(name)?))));
        let times = times.collect::<Vec<_>>().join(", ");
        (!times.is_empty()).then(|| format!("{}: {times}", model.name()))
    };
    let curves = curves(cases);
    let because = format!(
        "while idle, busy polling uses {} % of its available CPU, and waiters that block at most \
         {} %; a burst overflowed the signal queue {} times, and a scan of all descriptors then \
         left {} unreported; latency by {}{}",
        digits(100.0 * busy),
        digits(100.0 * worst),
        digits(overflows),
        digits(lost),
        Model::ALL.into_iter().filter_map(latencies).collect::<Vec<_>>().join("; by "),
        curves
            .iter()
            .map(|(name, line)| format!("; an event by {name}: {}", equation(line)))
            .collect::<String>()
    );
    let judgement = if busy >= 0.8 && worst <= 0.1 && overflows > 0.0 {
        Judgement::from_bool(true, because)
    } else if busy < 0.5 || worst > 0.5 || overflows == 0.0 {
        Judgement::from_bool(false, because)
    } else {
        Judgement::inconclusive(because)
    };
    let judgement = judgement
        .with("busy_idle_share", busy)
        .with("blocking_idle_share", worst)
        .with("overflows", overflows)
        .with("lost", lost);
    curves.into_iter().fold(judgement, |all, (name, line)| all.with_line(name, line))
}

/// Returns the CPU time per event by the number of descriptors, at the highest pace, for waiters
/// that were measured with three numbers or more.
fn curves(cases: &Cases<'_>) -> Vec<(&'static str, Line)> {
    let highest = cases.numbers("rate").pop().unwrap_or(0);
    let line = |name: &'static str| {
        let of = cases.named("model", name).at("rate", highest);
        let is_enough = of.numbers(DESCRIPTORS).len() >= 3;
        of.line_of("event_ns", DESCRIPTORS).filter(|_| is_enough).map(|line| (name, line))
    };
    Model::ALL.into_iter().flat_map(waiters_of).filter_map(line).collect()
}

/// Judges by the ring, which has both kinds, at the highest pace with the fewest descriptors.
pub(super) fn models_completion(cases: &Cases<'_>) -> Judgement {
    let at = |waiter: &str| -> Option<&Case> {
        let of = cases.named("model", waiter);
        let of = of.at(DESCRIPTORS, *of.numbers(DESCRIPTORS).first()?);
        of.at("rate", of.numbers("rate").pop()?).first()
    };
    let both = at(RING_READINESS).zip(at(RING_COMPLETION));
    let same = both.filter(|(one, other)| {
        [DESCRIPTORS, "rate"].iter().all(|axis| one.params.get(*axis) == other.params.get(*axis))
    });
    let found = same.and_then(|(one, other)| Some((one, other, ratio_of("event_ns", one, other)?)));
    let Some((readiness, completion, of)) = found else {
        return Judgement::inconclusive(format!(
            "needs {RING_READINESS} and {RING_COMPLETION} with the same descriptors and rates, three \
             visits each"
        ));
    };
    let event = |case: &Case| time(case.extra.get("event_ns").copied().unwrap_or_default());
    let because = format!(
        "an event takes {} of CPU time by {RING_READINESS} and a receive, and {} by \
         {RING_COMPLETION}, {} times as much",
        event(readiness),
        event(completion),
        shown(of)
    );
    Judgement::below(of, 1.0, because).with_interval("completion_over_readiness", of)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::harness::figures::case_of;
    use iotomy_record::{AxisValue, Case, ClaimVerdict};

    fn case(model: &str, descriptors: u64, event_ns: f64, figures: &[(&str, f64)]) -> Case {
        let params = [
            ("model", AxisValue::Name(model.to_owned())),
            (DESCRIPTORS, AxisValue::Number(descriptors)),
            ("rate", AxisValue::Number(1_000)),
        ];
        let params = params.map(|(axis, value)| (axis.to_owned(), value)).into();
        let extra = figures.iter().map(|(name, of)| ((*name).to_owned(), *of)).collect();
        let case = case_of(params, ("time", "ns"), vec![30e3; 6], extra);
        let events = (0..6).map(|at| event_ns * (1.0 + 0.01 * f64::from(at % 3))).collect();
        Case { extra_samples: [("event_ns".to_owned(), events)].into(), ..case }
    }

    fn all(idle: f64, overflows: f64) -> Vec<Case> {
        let mut cases = Vec::new();
        for n in [100, 400, 2_000] {
            let each = n as f64;
            cases.push(case("busy", n, 5e3 + 200.0 * each, &[("idle_share", 0.99)]));
            cases.push(case("poll", n, 5e3 + 800.0 * each, &[("idle_share", idle)]));
            cases.push(case("epoll", n, 6e3, &[("idle_share", 0.001)]));
            let burst = [("idle_share", 0.001), ("overflows", overflows), ("lost", 0.0)];
            cases.push(case("sigio", n, 7e3, &burst));
        }
        cases
    }

    #[test]
    fn what_sleeps_is_told_from_what_burns_and_from_what_overflows() {
        let verdict = |idle, overflows| models(&Cases::new(&all(idle, overflows))).verdict;
        assert_eq!(verdict(0.03, 1.0), ClaimVerdict::Holds);
        assert_eq!(verdict(0.9, 1.0), ClaimVerdict::Fails);
        assert_eq!(verdict(0.03, 0.0), ClaimVerdict::Fails);
    }

    #[test]
    fn the_cost_curves_are_printed_with_their_slopes() {
        let found = models(&Cases::new(&all(0.03, 1.0)));
        assert!(found.because.contains("an event by poll: 5.0"), "{}", found.because);
        let slope = |key: &str| {
            let of = found.evidence.iter().find(|(name, _)| *name == key);
            of.unwrap().1["slope"].as_f64().unwrap()
        };
        assert!((790.0..830.0).contains(&slope("poll")), "{found:?}");
        assert!(slope("epoll").abs() < 1.0, "{found:?}");
    }

    #[test]
    fn readiness_and_completion_are_told_apart() {
        let ring = |name: &str, event_ns: f64| {
            let case = case(name, 100, event_ns, &[("idle_share", 0.001), ("event_ns", event_ns)]);
            [vec![case], all(0.03, 1.0)].concat()
        };
        let both = |completion: f64| {
            [ring(RING_READINESS, 5e3), ring(RING_COMPLETION, completion)].concat()
        };
        let verdict = |completion| models_completion(&Cases::new(&both(completion))).verdict;
        assert_eq!(verdict(4e3), ClaimVerdict::Holds);
        assert_eq!(verdict(6e3), ClaimVerdict::Fails);
        let one = ring(RING_COMPLETION, 4e3);
        assert_eq!(models_completion(&Cases::new(&one)).verdict, ClaimVerdict::Inconclusive);
        let said = models(&Cases::new(&both(4e3))).because;
        let parts = [
            "by readiness: epoll 30 µs, io-uring-poll 30 µs;",
            "by completion: io-uring-recv 30 µs;",
        ];
        assert!(parts.iter().all(|part| said.contains(part)), "{said}");
    }
}
