//! `enter-leave`: the cost of a wait that finds nothing, by the number of descriptors watched.
//!
//! From article 002: select walks all descriptors on entry, adds a callback to the queue of each,
//! and removes them on exit. A wait that may not block (time-out 0) adds none, so both are
//! measured: a non-blocking check, and a blocking wait that a time-out of 1 ms ends.

use std::ops::ControlFlow;
use std::time::Duration;

use iotomy_host::Skip;
use iotomy_host::folder::Folder;
use iotomy_record::Case;
use iotomy_waiters::{Events, Waiter};

use crate::harness::claims::{equation, time};
use crate::harness::cpu_time::thread_ns;
use crate::harness::growth::{Growth, along};
use crate::harness::{
    Axis, Cases, Claim, Experiment, ExperimentDeclaration, Extra, Fold, Judgement, Needs, Params,
    PreparedExperiment, Sample, Sampling, Takes, Value,
};
use crate::wait::BATCH;
use crate::wait::pairs::{HOW_MANY, Pairs, blocking_waiters, waiters};
use crate::wait::round::{of_pairs, refused};
use crate::wait::threads::probe;

/// Non-blocking checks are repeated in a sample until they take this long on the CPU; one that takes
/// longer is a sample alone.
const OF_A_SAMPLE_NS: f64 = 500_000.0;

/// Maximum number of non-blocking checks per sample.
const LOOKS: usize = 1_000;

/// Blocking waits per sample.
const SLEEPS: usize = 4;

/// The shortest time-out that poll and epoll support.
const SLEEP: Duration = Duration::from_millis(1);

pub(crate) struct EnterLeave;

static DECLARATION: ExperimentDeclaration = ExperimentDeclaration {
    name: "enter-leave",
    summary: "the cost of a wait that finds nothing, by the number of descriptors watched",
    hypothesis: "entering and leaving select and poll takes time in proportion to the descriptors \
        watched; epoll and io_uring have that cost once, when a descriptor is added",
    refuted_by: "a wait of epoll whose time grows with idle descriptors, or one of poll whose \
        time does not",
    controls: &[
        "pairs of UNIX sockets without traffic; no wait finds an event",
        "CPU time of the thread over many waits, so that blocked time does not count",
        "one uncounted wait first, which submits the added descriptors",
    ],
    metric: "CPU time of a wait",
    unit: "ns",
    extras: &[
        Extra {
            name: "add_ns",
            unit: "ns",
            summary: "CPU time of adding a descriptor",
            fold: Fold::Median,
        },
        Extra {
            name: "remove_ns",
            unit: "ns",
            summary: "CPU time of removing a descriptor",
            fold: Fold::Median,
        },
    ],
    axes: &[
        Axis {
            name: "waiter",
            unit: "",
            summary: "what waits",
            takes: Takes::Registered { all: waiters, usual: blocking_waiters },
            quick: JUDGED,
            default: &[],
            full: &[],
        },
        Axis {
            name: "descriptors",
            unit: "",
            summary: "number of descriptors watched, all idle; each takes two of the process's \
                descriptors",
            takes: HOW_MANY,
            quick: &[Value::N(10), Value::N(100), Value::N(500), Value::N(2_000)],
            default: DESCRIPTORS,
            full: DESCRIPTORS,
        },
        Axis {
            name: "timeout",
            unit: "",
            summary: "zero: a poll that enters no wait queue; sleep: a wait of 1 ms",
            takes: Takes::Names(&["zero", "sleep"]),
            quick: TIMEOUTS,
            default: TIMEOUTS,
            full: TIMEOUTS,
        },
    ],
    along: "descriptors",
    lines: "waiter",
    claims: &[Claim {
        id: "enter-leave",
        source: "002",
        text: "entering and leaving select or poll costs time in proportion to the descriptors watched, \
               even when none is ready; epoll moves that cost to epoll_ctl",
        judge: enter_leave,
    }],
    sampling: Sampling { a_visit: 2, least: 12, most: 60, tight: 0.02 },
    man: &["select(2)", "poll(2)", "epoll_wait(2)", "epoll_ctl(2)", "io_uring_enter(2)"],
};

/// Those of the hypothesis.
const JUDGED: &[Value] =
    &[Value::S("select"), Value::S("poll"), Value::S("epoll"), Value::S("io-uring-poll")];

// 500 is within what select can watch; 9,000 is what a limit of 20,000 descriptors leaves.
const DESCRIPTORS: &[Value] = &[
    Value::N(10),
    Value::N(50),
    Value::N(100),
    Value::N(250),
    Value::N(500),
    Value::N(1_000),
    Value::N(2_500),
    Value::N(5_000),
    Value::N(9_000),
];

const TIMEOUTS: &[Value] = &[Value::S("zero"), Value::S("sleep")];

impl Experiment for EnterLeave {
    fn declaration(&self) -> &'static ExperimentDeclaration {
        &DECLARATION
    }

    fn probe(&self, case: &Params) -> Result<(), Skip> {
        probe(case.name("waiter"), 2 * case.number("descriptors"))
    }

    fn needs(&self, case: &Params) -> Needs {
        of_pairs(case.number("descriptors"))
    }

    fn prepare(&self, cases: &[Params], _: &Folder) -> Result<Box<dyn PreparedExperiment>, Skip> {
        Ok(Box::new(Idle(Pairs::for_cases(cases)?)))
    }
}

/// Sockets that never receive data.
struct Idle(Pairs);

impl PreparedExperiment for Idle {
    fn visit(
        &mut self,
        case: &Params,
        keep: &mut dyn FnMut(Sample) -> ControlFlow<()>,
    ) -> Result<(), Skip> {
        let timeout = if case.name("timeout") == "zero" { Duration::ZERO } else { SLEEP };
        let (mut waiter, pairs) = self.0.open(case, case.name("waiter"))?;
        let mut events = Events::with_capacity(BATCH);
        loop {
            let begun = thread_ns();
            self.0.register(waiter.as_mut())?;
            // Changes that were only queued until now belong to adding.
            wait(waiter.as_mut(), &mut events, Duration::ZERO)?;
            let added = thread_ns() - begun;
            let waits = if timeout.is_zero() {
                // During the first wait the caches were full of the data for adding.
                wait(waiter.as_mut(), &mut events, Duration::ZERO)?;
                let warm = wait(waiter.as_mut(), &mut events, Duration::ZERO)?.max(1.0);
                ((OF_A_SAMPLE_NS / warm) as usize).clamp(1, LOOKS)
            } else {
                SLEEPS
            };
            let begun = thread_ns();
            for _ in 0..waits {
                wait(waiter.as_mut(), &mut events, timeout)?;
            }
            let value = (thread_ns() - begun) / waits as f64;
            let begun = thread_ns();
            self.0.ring.leave(waiter.as_mut(), pairs).map_err(refused)?;
            let removed = thread_ns() - begun;
            let of_one = |all: f64| all / pairs as f64;
            let extra = vec![("add_ns", of_one(added)), ("remove_ns", of_one(removed))];
            if keep(Sample { value, extra }).is_break() {
                return Ok(());
            }
        }
    }
}

/// Waits; returns the CPU time.
fn wait(waiter: &mut dyn Waiter, events: &mut Events, timeout: Duration) -> Result<f64, Skip> {
    let begun = thread_ns();
    match waiter.wait(events, Some(timeout)).map_err(refused)? {
        0 => Ok(thread_ns() - begun),
        _ => Err(Skip("the waiter reported a socket without traffic".to_owned())),
    }
}

fn enter_leave(cases: &Cases<'_>) -> Judgement {
    let mut said = Vec::new();
    let mut judgement = Judgement::inconclusive("");
    let (mut found, mut is_so, mut is_not) = ([0, 0], true, false);
    for (kind, waiter, timeout, key) in [
        (0, "select", "zero", "select_zero"),
        (0, "select", "sleep", "select_sleep"),
        (0, "poll", "zero", "poll_zero"),
        (0, "poll", "sleep", "poll_sleep"),
        (1, "epoll", "zero", "epoll_zero"),
        (1, "epoll", "sleep", "epoll_sleep"),
    ] {
        let of = cases.named("waiter", waiter).named("timeout", timeout);
        let Some((line, last)) = along(&of, "descriptors") else { continue };
        found[kind] += 1;
        // A cost per descriptor that increases with their number is at least proportional.
        let (rising, level): (&[Growth], &[Growth]) =
            (&[Growth::Rises, Growth::Steepens], &[Growth::Level]);
        let (wanted, refuting) = if kind == 0 { (rising, level) } else { (level, rising) };
        let growth = Growth::from_line(&line, last);
        is_so &= wanted.contains(&growth);
        is_not |= refuting.contains(&growth);
        said.push(format!("{waiter}, {timeout}: {}", equation(&line)));
        judgement = judgement.with_line(key, line);
    }
    if found.contains(&0) {
        return Judgement::inconclusive(
            "needs select or poll, and epoll, with three numbers of descriptors",
        );
    }
    let add = added(cases, "epoll");
    if let Some(add) = add {
        said.push(format!("adding to epoll takes {} a descriptor", time(add)));
        judgement = judgement.with("epoll_add_ns", add);
    }
    let verdict = Judgement::from_bool(is_so, said.join("; "));
    let verdict = match (is_so, is_not) {
        (true, _) | (_, true) => verdict,
        _ => Judgement::inconclusive(verdict.because),
    };
    Judgement { evidence: judgement.evidence, ..verdict }
}

/// Returns the time to add a descriptor in the case with the most descriptors.
fn added(cases: &Cases<'_>, waiter: &str) -> Option<f64> {
    let of = cases.named("waiter", waiter);
    let most = of.numbers("descriptors").pop()?;
    let case: &Case = of.at("descriptors", most).first()?;
    case.extra.get("add_ns").copied()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::harness::figures::case_of;
    use iotomy_record::{AxisValue, ClaimVerdict};

    /// Returns waits along three numbers of descriptors, which take 1 µs plus `of_one` for each
    /// descriptor.
    fn cases(waiter: &str, of_one: f64) -> Vec<Case> {
        cases_of(waiter, |descriptors| of_one * descriptors)
    }

    /// Returns the same with `of_all` for the time of all descriptors.
    fn cases_of(waiter: &str, of_all: impl Fn(f64) -> f64) -> Vec<Case> {
        let one = |timeout: &str, descriptors: u64| {
            let params = [
                ("waiter", AxisValue::Name(waiter.to_owned())),
                ("timeout", AxisValue::Name(timeout.to_owned())),
                ("descriptors", AxisValue::Number(descriptors)),
            ];
            let params = params.map(|(axis, value)| (axis.to_owned(), value)).into();
            let ns = 1e3 + of_all(descriptors as f64);
            let samples = (0..12).map(|at| ns * (1.0 + 0.001 * f64::from(at))).collect();
            case_of(params, ("time", "ns"), samples, [("add_ns".to_owned(), 900.0)].into())
        };
        let each = |timeout| [10, 100, 1_000].map(|descriptors| one(timeout, descriptors));
        [each("zero"), each("sleep")].concat()
    }

    #[test]
    fn a_wait_that_walks_is_told_from_one_that_does_not() {
        let judged = |poll: f64, epoll: f64| {
            let all = [cases("poll", poll), cases("epoll", epoll)].concat();
            enter_leave(&Cases::new(&all))
        };
        let found = judged(50.0, 0.001);
        assert_eq!(found.verdict, ClaimVerdict::Holds, "{}", found.because);
        assert!(
            found.because.ends_with("adding to epoll takes 900 ns a descriptor"),
            "{}",
            found.because
        );
        assert_eq!(judged(50.0, 50.0).verdict, ClaimVerdict::Fails, "epoll walks, too");
        let steep = [cases_of("poll", |n| 50.0 * n * (n / 10.0)), cases("epoll", 0.001)].concat();
        let found = enter_leave(&Cases::new(&steep));
        assert_eq!(found.verdict, ClaimVerdict::Holds, "{}", found.because);
        assert!(found.because.contains("not linear"), "{}", found.because);
        assert_eq!(judged(0.001, 0.001).verdict, ClaimVerdict::Fails, "poll does not walk");
        let poll = cases("poll", 50.0);
        assert_eq!(enter_leave(&Cases::new(&poll)).verdict, ClaimVerdict::Inconclusive);
    }
}
