//! The test that decides the claim of `models`, and its cost curves. They are pure functions.

use iotomy_stats::Line;

use crate::harness::claims::{digits, equation, time};
use crate::harness::{Cases, Judgement};
use crate::wait::pairs::DESCRIPTORS;

pub(super) fn models(cases: &Cases<'_>) -> Judgement {
    let cases = &cases.settled();
    // The maximum over the cases of a model, or the minimum.
    let of = |model: &str, name: &str, least: bool| {
        let cases = cases.named("model", model);
        let figures = cases.iter().filter_map(|case| case.extra.get(name).copied());
        figures.reduce(if least { f64::min } else { f64::max })
    };
    let busy = of("busy", "idle_share", true);
    let sleeping: Vec<_> = ["select", "poll", "epoll", "io-uring-poll"]
        .into_iter()
        .filter_map(|name| Some((name, of(name, "idle_share", false)?)))
        .collect();
    let signals = of("sigio", "overflows", false).zip(of("sigio", "lost", false));
    let (Some(busy), Some((overflows, lost)), false) = (busy, signals, sleeping.is_empty()) else {
        return Judgement::inconclusive("needs busy, sigio, and select, poll or epoll");
    };
    let worst = sleeping.iter().map(|(_, share)| *share).fold(0.0, f64::max);
    let latency = |model: &str| cases.named("model", model).first()?.median;
    let times: Vec<_> = ["busy", "sigio", "select", "poll", "epoll", "io-uring-poll"]
        .into_iter()
        .filter_map(|name| Some(format!("{name} {}", time(latency(name)?))))
        .collect();
    let curves = curves(cases);
    let because = format!(
        "while idle, busy uses {} % of its available CPU and {} at most {} %; a burst overflowed \
         the signal queue {} times, and a scan of all descriptors then left {} unreported; \
         latency: {}{}",
        digits(100.0 * busy),
        sleeping.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", "),
        digits(100.0 * worst),
        digits(overflows),
        digits(lost),
        times.join(", "),
        curves
            .iter()
            .map(|(name, line)| format!("; {name}: {}", equation(line)))
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
        .with("sleeping_idle_share", worst)
        .with("overflows", overflows)
        .with("lost", lost);
    curves.into_iter().fold(judgement, |all, (name, line)| all.with_line(name, line))
}

/// Returns the CPU time per event by the number of descriptors, at the highest pace, for models
/// that were measured with three numbers or more.
fn curves(cases: &Cases<'_>) -> Vec<(&'static str, Line)> {
    let highest = cases.numbers("rate").pop().unwrap_or(0);
    let line = |(name, key): (&str, &'static str)| {
        let of = cases.named("model", name).at("rate", highest);
        let is_enough = of.numbers(DESCRIPTORS).len() >= 3;
        of.line_of("event_ns", DESCRIPTORS).filter(|_| is_enough).map(|line| (key, line))
    };
    [
        ("busy", "an event by busy"),
        ("sigio", "an event by sigio"),
        ("select", "an event by select"),
        ("poll", "an event by poll"),
        ("epoll", "an event by epoll"),
        ("io-uring-poll", "an event by io-uring-poll"),
    ]
    .into_iter()
    .filter_map(line)
    .collect()
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
        assert!((790.0..830.0).contains(&slope("an event by poll")), "{found:?}");
        assert!(slope("an event by epoll").abs() < 1.0, "{found:?}");
    }
}
