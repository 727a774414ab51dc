//! The test that decides the claim of `accept`. It is a pure function.

use iotomy_record::Case;
use iotomy_stats::Interval;

use crate::harness::claims::{digits, ratio, ratio_of, shown};
use crate::harness::{Cases, Judgement};

/// Returns the cases of a strategy with the fewest and the most workers.
fn ends<'a>(cases: &Cases<'a>, strategy: &str) -> Option<(&'a Case, &'a Case, u64)> {
    let of = cases.named("strategy", strategy);
    let workers = of.numbers("workers");
    let (fewest, most) = (*workers.first()?, *workers.last()?);
    let at = |number| of.at("workers", number).first();
    (most >= 4 * fewest).then_some((at(fewest)?, at(most)?, most))
}

/// Returns the ratio of the CPU time per connection of `other` to that of `base`.
fn cost_ratio(base: &Case, other: &Case) -> Option<Interval> {
    ratio_of("cpu_ns", base, other)
}

pub(super) fn accept_share(cases: &Cases<'_>) -> Judgement {
    // If there are several numbers of clients, the first one counts.
    let clients = cases.numbers("clients");
    let cases = clients.first().map_or(cases.clone(), |first| cases.at("clients", *first));
    let shared = ends(&cases, "epoll");
    let Some((alone, many, most)) = shared else {
        return Judgement::inconclusive("needs epoll with one worker and with four or more");
    };
    let better = ["epoll-exclusive", "reuseport", "accept"]
        .into_iter()
        .filter_map(|strategy| {
            let case = cases.named("strategy", strategy).at("workers", most).first()?;
            Some((strategy, cost_ratio(case, many)?))
        })
        .max_by(|a, b| a.1.point.total_cmp(&b.1.point));
    let (Some(grown), Some((strategy, gain))) = (cost_ratio(alone, many), better) else {
        return Judgement::inconclusive(
            "needs epoll-exclusive or reuseport with as many workers, three visits of each, and a \
             kernel that counts CPU time (CONFIG_SCHED_INFO)",
        );
    };
    let figure = |name: &str| many.extra.get(name).copied();
    let woken = match figure("wakeups") {
        Some(woken) => format!("{} wake-ups per connection (BPF)", digits(woken)),
        None => format!("{} sleeps per connection", digits(figure("wakes").unwrap_or(0.0))),
    };
    let by_clock = ratio(alone, many);
    let because = format!(
        "with {} workers on one epoll each, a connection takes {} times the CPU time of one \
         worker, and {} times that of {strategy}; {woken}; they accept {} times as many \
         connections a second as one worker",
        digits(most as f64),
        shown(grown),
        shown(gain),
        by_clock.map_or("?".to_owned(), shown)
    );
    let judgement = if grown.low > 1.0 && gain.low > 1.0 {
        Judgement::from_bool(true, because)
    } else if grown.high <= 1.0 || gain.high <= 1.0 {
        Judgement::from_bool(false, because)
    } else {
        Judgement::inconclusive(because)
    };
    let judgement = judgement
        .with_interval("cpu_many_over_one", grown)
        .with_interval("cpu_epoll_over_better", gain)
        .with("workers", most);
    by_clock.into_iter().fold(judgement, |all, of| all.with_interval("many_over_one", of))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::harness::figures::case_of;
    use iotomy_record::{AxisValue, ClaimVerdict};

    /// Returns a case with this number of workers, accepts per second, and CPU time per connection;
    /// `apart` is the difference between visits.
    fn case(strategy: &str, workers: u64, (rate, cpu_ns): (f64, f64), apart: f64) -> Case {
        let params = [
            ("strategy", AxisValue::Name(strategy.to_owned())),
            ("workers", AxisValue::Number(workers)),
            ("clients", AxisValue::Number(4)),
        ];
        let params = params.map(|(axis, value)| (axis.to_owned(), value)).into();
        let times = |of: f64| (0..6).map(|at| of * (1.0 + apart * f64::from(at % 3))).collect();
        let case = case_of(params, ("accepted", "1/s"), times(rate), Default::default());
        Case { extra_samples: [("cpu_ns".to_owned(), times(cpu_ns))].into(), ..case }
    }

    #[test]
    fn sharing_is_judged_by_what_connections_cost_and_not_by_who_else_is_at_work() {
        let verdict = |many_ns: f64, exclusive_ns: f64| {
            // On a loaded machine more workers get more of the CPUs: faster in wall time.
            let cases = [
                case("epoll", 1, (5e3, 40e3), 0.05),
                case("epoll", 64, (9e3, many_ns), 0.01),
                case("epoll-exclusive", 64, (8e3, exclusive_ns), 0.01),
            ];
            accept_share(&Cases::new(&cases)).verdict
        };
        assert_eq!(verdict(90e3, 45e3), ClaimVerdict::Holds);
        assert_eq!(verdict(38e3, 36e3), ClaimVerdict::Fails);
        assert_eq!(verdict(90e3, 95e3), ClaimVerdict::Fails, "nothing gained by being exclusive");
        assert_eq!(verdict(40.1e3, 30e3), ClaimVerdict::Inconclusive);
    }
}
