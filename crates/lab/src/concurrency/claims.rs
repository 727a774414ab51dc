//! The tests that decide the claims of `concurrency`. They are pure functions.

use iotomy_record::Case;
use iotomy_stats::Interval;

use super::pools::{PLAIN, PORT, PORT_EXACT};
use super::{CLIENTS, PAUSE, POOL, THREADS};
use crate::harness::claims::{digits, number, ratio, ratio_of, shown, time};
use crate::harness::{Cases, Judgement};

/// No fewer tasks are these many of them: less is noise.
const AS_MANY: f64 = 0.95;

/// Returns the cases with the most clients, and the shortest or the longest pause.
fn of_pause<'a>(cases: &Cases<'a>, has_pause: bool) -> Option<Cases<'a>> {
    let cases = cases.at(CLIENTS, cases.numbers(CLIENTS).pop()?);
    let pause = match has_pause {
        true => cases.numbers(PAUSE).pop().filter(|pause| *pause > 0)?,
        false => 0,
    };
    Some(cases.at(PAUSE, pause))
}

/// Returns the name of the port that is judged: the exact one, where the kernel could be asked.
fn judged(cases: &Cases<'_>) -> &'static str {
    let exact = cases.named(POOL, PORT_EXACT);
    if exact.iter().any(|case| case.median.is_some()) { PORT_EXACT } else { PORT }
}

/// Returns the cases of both pools with the most threads.
fn of_most<'a>(cases: &Cases<'a>) -> Option<(&'a Case, &'a Case, u64)> {
    let of = |pool: &str| cases.named(POOL, pool);
    let port = judged(cases);
    let most = of(port).numbers(THREADS).pop()?;
    let is_more = |case: &&Case| most as f64 > value(case);
    let port = of(port).at(THREADS, most).first().filter(is_more)?;
    Some((of(PLAIN).at(THREADS, most).first()?, port, most))
}

/// Returns the concurrency value of a case.
fn value(case: &Case) -> f64 {
    figure(case, "value").unwrap_or(f64::INFINITY)
}

fn figure(case: &Case, name: &str) -> Option<f64> {
    case.extra.get(name).copied()
}

/// Says how a pool worked.
fn said(name: &str, case: &Case) -> String {
    let of = |name: &str| figure(case, name).map_or("?".to_owned(), digits);
    format!(
        "{name}: {} tasks a second, {} of CPU time and {} context switches per task, by {} threads, \
         at most {} of them at once",
        digits(case.median.unwrap_or_default()),
        time(figure(case, "cpu_ns").unwrap_or_default()),
        of("switches"),
        of("used"),
        of("computing")
    )
}

/// Compares the pools with the most threads.
fn compared(
    cases: &Cases<'_>,
    has_pause: bool,
    of: impl Fn(&Case, &Case) -> Option<Interval>,
    decide: impl Fn(Interval, String) -> Judgement,
) -> Judgement {
    let found = of_pause(cases, has_pause).and_then(|cases| {
        let (plain, port, threads) = of_most(&cases)?;
        Some((plain, port, threads, of(plain, port)?))
    });
    let Some((plain, port, threads, times)) = found else {
        let pause = if has_pause { "a pause" } else { "pause 0" };
        return Judgement::inconclusive(format!(
            "needs both pools with {pause} and more threads than CPUs, three visits each, and a kernel \
             that counts CPU time (CONFIG_SCHED_INFO)"
        ));
    };
    let pause = match number(port, PAUSE) {
        Some(pause @ 1..) => {
            format!(", and one task in 8 blocked for {}", time(pause as f64 * 1e3))
        }
        _ => String::new(),
    };
    let because = format!(
        "with {threads} threads and a concurrency value of {}{pause}, {} times as much in the port as \
         in the plain pool; {}; {}",
        digits(value(port)),
        shown(times),
        said("port", port),
        said("plain", plain)
    );
    decide(times, because).with_interval("port_over_plain", times).with("threads", threads)
}

pub(super) fn cpu_time(cases: &Cases<'_>) -> Judgement {
    let of = |plain: &Case, port: &Case| ratio_of("cpu_ns", plain, port);
    compared(cases, false, of, |times, because| Judgement::below(times, 1.0, because))
}

pub(super) fn same_rate(cases: &Cases<'_>) -> Judgement {
    compared(cases, true, ratio, |times, because| Judgement::above(times, AS_MANY, because))
}

pub(super) fn blocked(cases: &Cases<'_>) -> Judgement {
    let found = of_pause(cases, true).and_then(|cases| {
        let port = cases.named(POOL, judged(&cases));
        let at = |threads| port.at(THREADS, threads).first();
        let most = at(port.numbers(THREADS).pop()?)?;
        let few =
            port.numbers(THREADS).into_iter().rfind(|threads| *threads as f64 <= value(most))?;
        let is_more = number(most, THREADS)? > few;
        Some((at(few)?, most, ratio(at(few)?, most)?)).filter(|_| is_more)
    });
    let Some((few, most, times)) = found else {
        return Judgement::inconclusive(
            "needs the port with a pause, with no more threads than CPUs and with more, three visits \
             each",
        );
    };
    let threads = |case: &Case| number(case, THREADS).unwrap_or_default();
    let how = match figure(most, "exact") {
        Some(exact) if exact > 0.0 => "the kernel told which threads were blocked".to_owned(),
        _ => format!(
            "user space looked for threads that block, {} times per task",
            digits(figure(most, "looks").unwrap_or_default())
        ),
    };
    let because = format!(
        "one task in 8 blocked for {}; with a concurrency value of {}, {} threads did {} tasks a second, \
         and {} threads {}, {} times as many; {how}, and found {} of each 100 that did",
        time(number(most, PAUSE).unwrap_or_default() as f64 * 1e3),
        digits(value(most)),
        threads(few),
        digits(few.median.unwrap_or_default()),
        threads(most),
        digits(most.median.unwrap_or_default()),
        shown(times),
        digits((100.0 * figure(most, "found").unwrap_or_default()).round()),
    );
    Judgement::above(times, 1.0, because)
        .with_interval("more_over_few", times)
        .with("few", threads(few))
        .with("more", threads(most))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::harness::figures::case_of;
    use iotomy_record::{AxisValue, ClaimVerdict};

    fn case(pool: &str, threads: u64, pause: u64, (rate, cpu_ns): (f64, f64)) -> Case {
        let params = [
            (POOL, AxisValue::Name(pool.to_owned())),
            (THREADS, AxisValue::Number(threads)),
            (CLIENTS, AxisValue::Number(64)),
            (PAUSE, AxisValue::Number(pause)),
        ];
        let params = params.map(|(axis, value)| (axis.to_owned(), value)).into();
        let around = |of: f64| (0..6).map(|at| of * (1.0 + 0.01 * f64::from(at % 3))).collect();
        let extra = [("value", 2.0), ("cpu_ns", cpu_ns), ("found", 0.5), ("exact", 0.0)];
        let extra = extra.map(|(name, of)| (name.to_owned(), of)).into();
        let case = case_of(params, ("rate", "1/s"), around(rate), extra);
        Case { extra_samples: [("cpu_ns".to_owned(), around(cpu_ns))].into(), ..case }
    }

    #[test]
    fn a_pool_that_takes_less_is_told_from_one_that_does_not() {
        let verdict = |cpu_ns: f64| {
            let cases = [case(PLAIN, 64, 0, (1e4, 5e4)), case(PORT, 64, 0, (1e4, cpu_ns))];
            cpu_time(&Cases::new(&cases)).verdict
        };
        assert_eq!(verdict(4e4), ClaimVerdict::Holds);
        assert_eq!(verdict(6e4), ClaimVerdict::Fails);
        let alone = [case(PORT, 64, 0, (1e4, 5e4))];
        assert_eq!(cpu_time(&Cases::new(&alone)).verdict, ClaimVerdict::Inconclusive);
        // With no more threads than the value, it caps nothing.
        let few = [case(PLAIN, 2, 0, (1e4, 5e4)), case(PORT, 2, 0, (2e4, 4e4))];
        assert_eq!(cpu_time(&Cases::new(&few)).verdict, ClaimVerdict::Inconclusive);
    }

    #[test]
    fn places_are_freed_or_they_are_not() {
        let judged = |rate: f64| {
            let cases = [
                case(PORT, 1, 10_000, (0.2e3, 5e4)),
                case(PORT, 2, 10_000, (1e3, 5e4)),
                case(PORT, 64, 10_000, (rate, 5e4)),
                case(PLAIN, 64, 10_000, (2e3, 5e4)),
                case(PORT, 64, 0, (9e3, 5e4)),
            ];
            [blocked, same_rate].map(|judge| judge(&Cases::new(&cases)))
        };
        assert_eq!(judged(3e3).map(|one| one.verdict), [ClaimVerdict::Holds; 2]);
        assert_eq!(judged(0.5e3).map(|one| one.verdict), [ClaimVerdict::Fails; 2]);
        let found = judged(1.5e3);
        assert_eq!(found[0].verdict, ClaimVerdict::Holds);
        assert_eq!(found[1].verdict, ClaimVerdict::Fails);
        assert!(found[0].because.contains("user space looked"), "{}", found[0].because);
        assert!(found[0].because.contains("found 50 of each 100"), "{}", found[0].because);
    }

    #[test]
    fn the_port_that_the_kernel_tells_is_judged_where_there_is_one() {
        let exact = |case: Case| {
            let more = [("exact".to_owned(), 1.0)];
            Case { extra: case.extra.into_iter().chain(more).collect(), ..case }
        };
        let mut cases = vec![
            case(PLAIN, 64, 5_000, (2e3, 5e4)),
            case(PORT, 2, 5_000, (1e3, 5e4)),
            case(PORT, 64, 5_000, (0.5e3, 5e4)),
        ];
        assert_eq!(same_rate(&Cases::new(&cases)).verdict, ClaimVerdict::Fails);
        cases.push(exact(case(PORT_EXACT, 2, 5_000, (1e3, 5e4))));
        cases.push(exact(case(PORT_EXACT, 64, 5_000, (3e3, 5e4))));
        assert_eq!(same_rate(&Cases::new(&cases)).verdict, ClaimVerdict::Holds);
        let found = blocked(&Cases::new(&cases));
        assert_eq!(found.verdict, ClaimVerdict::Holds);
        assert!(found.because.contains("the kernel told"), "{}", found.because);
    }
}
