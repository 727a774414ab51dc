//! The tests that decide the claims of `herd`. They are pure functions.

use iotomy_record::Case;

use crate::harness::claims::{digits, equation, ratio, shown, time};
use crate::harness::growth::{Growth, along};
use crate::harness::{Cases, Judgement};

/// Returns the cases of a waiter without duplicates.
fn plain<'a>(cases: &Cases<'a>, waiter: &str) -> Cases<'a> {
    cases.named("waiter", waiter).at("duplicates", 0)
}

/// Returns the case of a waiter without duplicates and with the most processes.
fn largest<'a>(cases: &Cases<'a>, waiter: &str) -> Option<(&'a Case, u64)> {
    let of = plain(cases, waiter);
    let most = of.numbers("processes").pop()?;
    Some((of.at("processes", most).first()?, most))
}

/// Returns how many processes were woken for a connection, and the source of the count: BPF if
/// available.
fn woken(case: &Case) -> (f64, &'static str) {
    let figure = |name: &str| case.extra.get(name).copied();
    match figure("wakeups") {
        Some(wakeups) => (wakeups, "BPF"),
        None => (figure("woken").unwrap_or(0.0), "/proc"),
    }
}

pub(super) fn herd_linear(cases: &Cases<'_>) -> Judgement {
    let (mut said, mut found) = (Vec::new(), Vec::new());
    let mut evidence = Vec::new();
    for (waiter, key) in [("select", "select"), ("epoll", "epoll")] {
        let of = plain(cases, waiter);
        let Some((line, last)) = along(&of, "processes") else { continue };
        found.push(Growth::from_line(&line, last));
        said.push(format!("{} for {waiter}", equation(&line)));
        evidence.push((key, line));
    }
    if said.is_empty() {
        return Judgement::inconclusive(
            "needs select or epoll with three numbers of processes, without duplicates",
        );
    }
    let because = format!("connect() to n processes = {}", said.join(", "));
    let all = |growth: Growth| found.iter().all(|one| *one == growth);
    let judgement = match (all(Growth::Rises), all(Growth::Level)) {
        (true, _) => Judgement::from_bool(true, because),
        (_, true) => Judgement::from_bool(false, because),
        (false, false) => Judgement::inconclusive(because),
    };
    evidence.into_iter().fold(judgement, |all, (key, line)| all.with_line(key, line))
}

pub(super) fn herd_dups(cases: &Cases<'_>) -> Judgement {
    let select = cases.named("waiter", "select");
    let most_duplicates = select.numbers("duplicates").pop().unwrap_or(0);
    let with = select.at("duplicates", most_duplicates);
    let without = select.at("duplicates", 0);
    let both = with.numbers("processes");
    let most = without.numbers("processes").into_iter().rfind(|n| both.contains(n));
    let (Some(most), true) = (most, most_duplicates >= 1_000) else {
        return Judgement::inconclusive(
            "needs select without duplicates and with 1,000 or more, at one number of processes",
        );
    };
    let at = |of: &Cases<'_>| of.at("processes", most).first().cloned();
    let (Some(without), Some(with)) = (at(&without), at(&with)) else {
        return Judgement::inconclusive("no connection was made");
    };
    let Some(times) = ratio(&without, &with) else {
        return Judgement::inconclusive("too few connections to compare");
    };
    let because = format!(
        "at {} processes: {} without and {} with {} duplicates: {} times",
        digits(most as f64),
        time(without.median.unwrap_or(0.0)),
        time(with.median.unwrap_or(0.0)),
        digits(most_duplicates as f64),
        shown(times)
    );
    Judgement::above(times, 2.0, because)
        .with_interval("with_over_without", times)
        .with("processes", most)
}

pub(super) fn herd_exclusive(cases: &Cases<'_>) -> Judgement {
    let found = largest(cases, "epoll").zip(largest(cases, "epoll-exclusive"));
    let Some(((epoll, most), (exclusive, same))) = found.filter(|(a, b)| a.1 == b.1) else {
        return Judgement::inconclusive(
            "needs epoll and epoll-exclusive with the same number of processes",
        );
    };
    debug_assert_eq!(most, same);
    let Some(times) = ratio(exclusive, epoll) else {
        return Judgement::inconclusive("too few connections to compare");
    };
    let (woken, way) = woken(exclusive);
    let because = format!(
        "at {} processes, {} instead of {}: {} times less; {} woken per connection instead of {}, \
         counted by {way}",
        digits(most as f64),
        time(exclusive.median.unwrap_or(0.0)),
        time(epoll.median.unwrap_or(0.0)),
        shown(times),
        digits(woken),
        digits(self::woken(epoll).0)
    );
    Judgement::above(times, 1.0, because)
        .with_interval("epoll_over_exclusive", times)
        .with("woken", woken)
        .with("processes", most)
}

pub(super) fn herd_load(cases: &Cases<'_>) -> Judgement {
    let found = ["select", "epoll", "poll"].map(|waiter| largest(cases, waiter));
    let found = found.into_iter().flatten().max_by_key(|(_, processes)| *processes);
    let Some((case, most)) = found.filter(|(_, most)| *most >= 512) else {
        return Judgement::inconclusive("needs select, poll or epoll with 512 processes or more");
    };
    let figure = |name: &str| case.extra.get(name).copied();
    let (woken, way) = woken(case);
    let (Some(queued), load) = (figure("queued"), figure("load")) else {
        return Judgement::inconclusive("the kernel does not count the run queue delay of tasks");
    };
    let because = format!(
        "one connection moved {} of {} blocked processes to runnable, counted by {way}; until all \
         were blocked again, {} of them were in a run queue on average; the one-minute load \
         average was {}",
        digits(woken),
        digits(most as f64),
        digits(queued),
        digits(load.unwrap_or(0.0))
    );
    let processes = most as f64;
    // Checking the processes takes a part of the time until all are seen blocked.
    let judgement = if woken >= 0.9 * processes && queued >= processes / 50.0 {
        Judgement::from_bool(true, because)
    } else if woken < 0.5 * processes {
        Judgement::from_bool(false, because)
    } else {
        Judgement::inconclusive(because)
    };
    judgement
        .with("woken", woken)
        .with("queued", queued)
        .with("load", load.unwrap_or(0.0))
        .with("processes", most)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::harness::figures::case_of;
    use iotomy_record::{AxisValue, ClaimVerdict};

    fn case(waiter: &str, processes: u64, duplicates: u64, ns: f64) -> Case {
        let params = [
            ("waiter", AxisValue::Name(waiter.to_owned())),
            ("processes", AxisValue::Number(processes)),
            ("duplicates", AxisValue::Number(duplicates)),
        ];
        let params = params.map(|(axis, value)| (axis.to_owned(), value)).into();
        let samples = (0..12).map(|at| ns * (1.0 + 0.001 * f64::from(at))).collect();
        case_of(params, ("time", "ns"), samples, Default::default())
    }

    fn verdict(judge: fn(&Cases<'_>) -> Judgement, cases: &[Case]) -> ClaimVerdict {
        judge(&Cases::new(cases)).verdict
    }

    #[test]
    fn a_time_that_grows_with_the_processes_is_told_from_one_that_does_not() {
        let of = |waiter: &str, slope: f64| {
            [1, 64, 512].map(|n| case(waiter, n, 0, 20e3 + slope * n as f64))
        };
        let both = |select, epoll| [of("select", select), of("epoll", epoll)].concat();
        assert_eq!(verdict(herd_linear, &both(2e3, 1e3)), ClaimVerdict::Holds);
        assert_eq!(verdict(herd_linear, &both(0.5, 0.1)), ClaimVerdict::Fails);
        assert_eq!(verdict(herd_linear, &both(2e3, 0.1)), ClaimVerdict::Inconclusive);
        assert_eq!(verdict(herd_linear, &both(2e3, 1e3)[..2]), ClaimVerdict::Inconclusive);
        let square =
            |waiter| [1, 64, 512].map(|n| case(waiter, n, 0, 20e3 + 50.0 * (n * n) as f64));
        let steep = [square("select"), square("epoll")].concat();
        assert_eq!(verdict(herd_linear, &steep), ClaimVerdict::Inconclusive, "it is no line");
    }

    #[test]
    fn duplicates_multiply_it_or_they_do_not() {
        let with =
            |times: f64| [case("select", 512, 0, 1e6), case("select", 512, 1_019, times * 1e6)];
        assert_eq!(verdict(herd_dups, &with(40.0)), ClaimVerdict::Holds);
        assert_eq!(verdict(herd_dups, &with(1.1)), ClaimVerdict::Fails);
        assert_eq!(verdict(herd_dups, &with(2.0)), ClaimVerdict::Inconclusive);
        assert_eq!(verdict(herd_dups, &with(40.0)[..1]), ClaimVerdict::Inconclusive);
    }

    #[test]
    fn exclusive_waits_help_or_they_do_not() {
        let with = |ns: f64| [case("epoll", 512, 0, 1e6), case("epoll-exclusive", 512, 0, ns)];
        assert_eq!(verdict(herd_exclusive, &with(50e3)), ClaimVerdict::Holds);
        assert_eq!(verdict(herd_exclusive, &with(1.2e6)), ClaimVerdict::Fails);
        assert_eq!(verdict(herd_exclusive, &with(1e6)), ClaimVerdict::Inconclusive);
        let other = [case("epoll", 512, 0, 1e6), case("epoll-exclusive", 64, 0, 50e3)];
        assert_eq!(verdict(herd_exclusive, &other), ClaimVerdict::Inconclusive);
    }

    #[test]
    fn a_herd_that_runs_is_told_from_one_that_sleeps_on() {
        let with = |processes, woken: f64, queued: f64| {
            let extra = [("wakeups", woken), ("queued", queued), ("load", 3.0)];
            let extra = extra.map(|(name, value)| (name.to_owned(), value)).into();
            [Case { extra, ..case("select", processes, 0, 1e6) }]
        };
        assert_eq!(verdict(herd_load, &with(512, 512.0, 100.0)), ClaimVerdict::Holds);
        assert_eq!(verdict(herd_load, &with(512, 1.0, 0.0)), ClaimVerdict::Fails);
        assert_eq!(verdict(herd_load, &with(512, 400.0, 100.0)), ClaimVerdict::Inconclusive);
        assert_eq!(verdict(herd_load, &with(512, 512.0, 2.0)), ClaimVerdict::Inconclusive);
        assert_eq!(verdict(herd_load, &with(64, 64.0, 60.0)), ClaimVerdict::Inconclusive);
    }
}
