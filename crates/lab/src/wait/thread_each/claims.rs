//! The test that decides the claim of `thread-each`. It is a pure function.

use iotomy_record::Case;
use iotomy_stats::Interval;

use super::{ACTIVE, DESCRIPTORS, SERVER, THREAD_EACH};
use crate::harness::claims::{digits, ratio, ratio_of, shown, time};
use crate::harness::{Cases, Judgement};

/// What registers interest once, with the names of the three figures of each.
const WAITERS: [(&str, [&str; 3]); 3] = [
    ("epoll", ["cpu_over_epoll", "memory_over_epoll", "cpu_over_epoll_one_active"]),
    (
        "event-ports",
        ["cpu_over_event_ports", "memory_over_event_ports", "cpu_over_event_ports_one_active"],
    ),
    ("dev-poll", ["cpu_over_dev_poll", "memory_over_dev_poll", "cpu_over_dev_poll_one_active"]),
];

/// The claim is about no fewer descriptors, and no fewer active ones.
const DESCRIPTORS_AT_LEAST: u64 = 1_000;
const ACTIVE_AT_LEAST: u64 = 100;

/// How much a thread for each descriptor takes, relative to one thread with a waiter.
struct Overhead {
    waiter: &'static str,
    names: [&'static str; 3],
    cpu: Interval,
    memory: Interval,
    /// CPU time with one active descriptor.
    cpu_of_one: Option<Interval>,
}

fn at<'a>(cases: &Cases<'a>, server: &str, active: u64) -> Option<&'a Case> {
    cases.named(SERVER, server).at(ACTIVE, active).first()
}

impl Overhead {
    fn of(
        cases: &Cases<'_>,
        active: u64,
        (waiter, names): (&'static str, [&'static str; 3]),
    ) -> Option<Self> {
        let (one, threads) = (at(cases, waiter, active)?, at(cases, THREAD_EACH, active)?);
        let cpu_of_one = at(cases, waiter, 1)
            .zip(at(cases, THREAD_EACH, 1))
            .and_then(|(one, threads)| ratio(one, threads));
        let (cpu, memory) = (ratio(one, threads)?, ratio_of("memory_bytes", one, threads)?);
        Some(Self { waiter, names, cpu, memory, cpu_of_one })
    }

    fn text(&self) -> String {
        let [cpu, memory] = [self.cpu, self.memory].map(shown);
        format!("{cpu} × the CPU time and {memory} × the memory of one with {}", self.waiter)
    }
}

pub(super) fn thread_each(cases: &Cases<'_>) -> Judgement {
    let most = cases.named(SERVER, THREAD_EACH).numbers(DESCRIPTORS).pop().unwrap_or(0);
    let cases = cases.at(DESCRIPTORS, most);
    let active = cases.numbers(ACTIVE).pop();
    let active = active.filter(|of| *of >= ACTIVE_AT_LEAST && most >= DESCRIPTORS_AT_LEAST);
    let overhead = |of| Overhead::of(&cases, active?, of);
    let found: Vec<_> = WAITERS.into_iter().filter_map(overhead).collect();
    let threads = active.and_then(|active| at(&cases, THREAD_EACH, active));
    let (Some(threads), Some(active), false) = (threads, active, found.is_empty()) else {
        return Judgement::inconclusive(
            "needs thread-each, and epoll, event-ports or dev-poll, with 1,000 descriptors or more, \
             100 or more of them active, three visits each, and a kernel that reports the memory of \
             a process",
        );
    };
    let bytes = threads.extra.get("memory_bytes").copied().unwrap_or(f64::NAN);
    let of_one = |one: &Overhead| Some(format!("{} × {}", shown(one.cpu_of_one?), one.waiter));
    let of_one: Vec<String> = found.iter().filter_map(of_one).collect();
    let because = format!(
        "with {} descriptors, {} of them active, a thread for each takes {} of CPU time per event \
         and {} KiB per descriptor: {}{}",
        digits(most as f64),
        digits(active as f64),
        time(threads.median.unwrap_or(f64::NAN)),
        digits(bytes / 1024.0),
        found.iter().map(Overhead::text).collect::<Vec<_>>().join(", "),
        match of_one[..] {
            [] => String::new(),
            _ => format!("; with one active, its CPU time is {}", of_one.join(", ")),
        }
    );
    let no_more = |of: fn(&Overhead) -> Interval| found.iter().all(|one| of(one).high <= 1.0);
    let judgement = if found.iter().all(|of| of.cpu.low > 1.0 && of.memory.low > 1.0) {
        Judgement::from_bool(true, because)
    } else if no_more(|of| of.cpu) || no_more(|of| of.memory) {
        Judgement::from_bool(false, because)
    } else {
        Judgement::inconclusive(because)
    };
    let judgement = found.into_iter().fold(judgement, |all, of| {
        let [cpu, memory, cpu_of_one] = of.names;
        let all = all.with_interval(cpu, of.cpu).with_interval(memory, of.memory);
        of.cpu_of_one.into_iter().fold(all, |all, one| all.with_interval(cpu_of_one, one))
    });
    judgement.with("descriptors", most).with("active", active)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::harness::figures::case_of;
    use iotomy_record::{AxisValue, ClaimVerdict};

    fn case(server: &str, descriptors: u64, active: u64, (ns, bytes): (f64, f64)) -> Case {
        let params = [
            (SERVER, AxisValue::Name(server.to_owned())),
            (DESCRIPTORS, AxisValue::Number(descriptors)),
            (ACTIVE, AxisValue::Number(active)),
        ];
        let params = params.map(|(axis, value)| (axis.to_owned(), value)).into();
        let around = |of: f64| (0..12).map(|at| of * (1.0 + 0.001 * f64::from(at))).collect();
        let extra = [("memory_bytes".to_owned(), bytes)].into();
        let case = case_of(params, ("time", "ns"), around(ns), extra);
        Case { extra_samples: [("memory_bytes".to_owned(), around(bytes))].into(), ..case }
    }

    #[test]
    fn a_thread_for_each_costs_more_in_both_ways_or_the_claim_does_not_hold() {
        let verdict = |ns: f64, bytes: f64| {
            let cases = [
                case("epoll", 1_000, 100, (1e3, 1e3)),
                case("event-ports", 1_000, 100, (1.1e3, 1e3)),
                case(THREAD_EACH, 1_000, 100, (ns, bytes)),
            ];
            thread_each(&Cases::new(&cases)).verdict
        };
        assert_eq!(verdict(3e3, 30e3), ClaimVerdict::Holds);
        assert_eq!(verdict(0.9e3, 30e3), ClaimVerdict::Fails, "no more CPU time than either");
        assert_eq!(verdict(3e3, 0.9e3), ClaimVerdict::Fails, "no more memory");
        assert_eq!(verdict(1.05e3, 30e3), ClaimVerdict::Inconclusive, "the waiters differ");
    }

    #[test]
    fn the_largest_number_with_many_active_decides_and_one_active_is_told() {
        let cases = [
            case("epoll", 100, 100, (1e3, 1e3)),
            case(THREAD_EACH, 100, 100, (0.5e3, 0.5e3)),
            case("epoll", 1_000, 1, (2e3, 1e3)),
            case(THREAD_EACH, 1_000, 1, (1e3, 24e3)),
            case("epoll", 1_000, 100, (1e3, 1e3)),
            case(THREAD_EACH, 1_000, 100, (3e3, 24e3)),
        ];
        let found = thread_each(&Cases::new(&cases));
        assert_eq!(found.verdict, ClaimVerdict::Holds);
        assert!(found.because.starts_with("with 1,000 descriptors, 100 of them"), "{found:?}");
        assert!(
            found.because.contains("; with one active, its CPU time is 0.50 (0.50 … 0.50) × epoll"),
            "{found:?}"
        );
        for few in [&cases[..2], &cases[2..4]] {
            let verdict = thread_each(&Cases::new(few)).verdict;
            assert_eq!(verdict, ClaimVerdict::Inconclusive, "few descriptors, or few active");
        }
    }
}
