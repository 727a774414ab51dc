//! The test that decides the claim of `shared-set`. It is a pure function.

use iotomy_record::Case;
use iotomy_stats::Interval;

use super::sets::{DEV_POLL, DEV_POLL_LOCK, EVENT_PORTS};
use super::{ACTIVE, SET, THREADS};
use crate::harness::claims::{digits, ratio, shown};
use crate::harness::{Cases, Judgement};

/// The counts of a set, in turns.
struct Counts<'a> {
    case: &'a Case,
    events: f64,
    duplicates: f64,
    lost: f64,
}

impl<'a> Counts<'a> {
    fn of(cases: &Cases<'a>, set: &str) -> Option<Self> {
        let case = cases.named(SET, set).first()?;
        let figure = |name: &str| case.extra.get(name).copied();
        let (events, duplicates) = (figure("events")?, figure("duplicates")?);
        Some(Self { case, events, duplicates, lost: figure("lost")? })
    }

    /// Deliveries per event that came too late, among threads that run freely.
    fn stale(&self) -> Option<f64> {
        self.case.extra.get("stale").copied()
    }
}

pub(super) fn dev_poll_locks(cases: &Cases<'_>) -> Judgement {
    let threads = cases.numbers(THREADS).pop().filter(|threads| *threads > 1);
    let shared = cases.at(THREADS, threads.unwrap_or(0));
    // With few descriptors several threads wait for the same one.
    let cases = shared.at(ACTIVE, shared.numbers(ACTIVE).first().copied().unwrap_or(0));
    let of = |set: &str| Counts::of(&cases, set);
    let (Some(threads), Some(poll), Some(port)) = (threads, of(DEV_POLL), of(EVENT_PORTS)) else {
        return Judgement::inconclusive("needs dev-poll and event-ports with several threads");
    };
    let locked = of(DEV_POLL_LOCK);
    let duplicates = |name: &str, of: &Counts<'_>| format!("{name} {}", digits(of.duplicates));
    let mut said = vec![duplicates(DEV_POLL, &poll), duplicates(EVENT_PORTS, &port)];
    said.extend(locked.as_ref().map(|locked| duplicates("dev-poll with a lock", locked)));
    let stale = poll.stale().zip(port.stale()).map(|(poll, port)| {
        format!(
            "; among threads that run freely, {} deliveries per event of dev-poll and {} of \
             event-ports came after another thread had served it",
            digits(poll),
            digits(port)
        )
    });
    let costs = locks(&shared);
    let lock: Vec<String> =
        costs.iter().map(|(active, of)| format!("{} with {active} active", shown(*of))).collect();
    let because = format!(
        "{} events, for each of which {threads} threads polled before one received, had these \
         duplicates: {}{}{}",
        digits(poll.events),
        said.join(", "),
        stale.unwrap_or_default(),
        match lock[..] {
            [] => String::new(),
            _ => format!(
                "; the CPU time of an event with the lock, relative to a port: {}",
                lock.join(", ")
            ),
        }
    );
    let all = || [&poll, &port].into_iter().chain(&locked);
    let judgement = if all().any(|one| one.lost > 0.0) {
        Judgement::inconclusive(format!("{because}; events were lost"))
    } else {
        let needs_lock = poll.duplicates > 0.0 && port.duplicates == 0.0;
        let lock_helps = locked.as_ref().is_none_or(|locked| locked.duplicates == 0.0);
        Judgement::from_bool(needs_lock && lock_helps, because)
    };
    let judgement = judgement
        .with("threads", threads)
        .with("events", poll.events)
        .with("dev_poll_duplicates", poll.duplicates)
        .with("event_ports_duplicates", port.duplicates);
    let judgement = locked
        .iter()
        .fold(judgement, |all, locked| all.with("locked_duplicates", locked.duplicates));
    match costs[..] {
        [] => judgement,
        [(_, few)] => judgement.with_interval("lock_over_port", few),
        [(_, few), .., (_, many)] => judgement
            .with_interval("lock_over_port", few)
            .with_interval("lock_over_port_many_active", many),
    }
}

/// Returns how many times as much CPU time an event takes with the lock as at a port, by the number
/// of active descriptors.
fn locks(cases: &Cases<'_>) -> Vec<(u64, Interval)> {
    let ratio_at = |active: u64| {
        let of = |set: &str| cases.at(ACTIVE, active).named(SET, set).first();
        Some((active, ratio(of(EVENT_PORTS)?, of(DEV_POLL_LOCK)?)?))
    };
    cases.numbers(ACTIVE).into_iter().filter_map(ratio_at).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::harness::figures::case_of;
    use iotomy_record::{AxisValue, ClaimVerdict};

    fn case(set: &str, threads: u64, [duplicates, lost]: [f64; 2], ns: f64) -> Case {
        let params = [
            (SET, AxisValue::Name(set.to_owned())),
            (THREADS, AxisValue::Number(threads)),
            (ACTIVE, AxisValue::Number(1)),
        ];
        let params = params.map(|(axis, value)| (axis.to_owned(), value)).into();
        let extra = [("events", 100.0), ("duplicates", duplicates), ("lost", lost), ("stale", 0.5)];
        let extra = extra.map(|(name, of)| (name.to_owned(), of)).into();
        let samples = (0..6).map(|at| ns * (1.0 + 0.01 * f64::from(at % 3))).collect();
        case_of(params, ("time", "ns"), samples, extra)
    }

    fn judged(poll: [f64; 2], port: [f64; 2], locked: [f64; 2]) -> Judgement {
        let cases = [
            case(DEV_POLL, 2, [0.0, 0.0], 1e3),
            case(EVENT_PORTS, 2, [0.0, 0.0], 1e3),
            case(DEV_POLL, 4, poll, 1e3),
            case(EVENT_PORTS, 4, port, 1e3),
            case(DEV_POLL_LOCK, 4, locked, 2e3),
        ];
        dev_poll_locks(&Cases::new(&cases))
    }

    #[test]
    fn duplicates_without_a_lock_and_none_by_a_port_are_the_claim() {
        let none = [0.0, 0.0];
        let found = judged([300.0, 0.0], none, none);
        assert_eq!(found.verdict, ClaimVerdict::Holds);
        let said = "duplicates: dev-poll 300, event-ports 0, dev-poll with a lock 0; among";
        assert!(found.because.contains(said), "{found:?}");
        assert!(found.because.ends_with("to a port: 2 (2 … 2) with 1 active"), "{found:?}");
        assert_eq!(judged(none, none, none).verdict, ClaimVerdict::Fails, "no lock is needed");
        let verdict = |port, locked| judged([300.0, 0.0], port, locked).verdict;
        assert_eq!(verdict([1.0, 0.0], none), ClaimVerdict::Fails, "a port needs one, too");
        assert_eq!(verdict(none, [1.0, 0.0]), ClaimVerdict::Fails, "the lock does not help");
        assert_eq!(verdict([0.0, 1.0], none), ClaimVerdict::Inconclusive, "an event was lost");
    }

    #[test]
    fn one_thread_decides_nothing() {
        let cases = [DEV_POLL, EVENT_PORTS].map(|set| case(set, 1, [0.0, 0.0], 1e3));
        assert_eq!(dev_poll_locks(&Cases::new(&cases)).verdict, ClaimVerdict::Inconclusive);
    }
}
