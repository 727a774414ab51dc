//! The tests that decide the claims of `wait`. They are pure functions.
//!
//! They use rounds that never block. If there are several numbers of writes, the first one counts.

use iotomy_record::Case;
use iotomy_stats::Interval;

use super::{SOFT_LIMIT, peers};
use crate::harness::claims::{digits, ratio, shown, time};
use crate::harness::{Cases, Judgement};

/// Growth that still counts as none when the number of descriptors has grown tenfold or more: the
/// caches then hold a smaller share of the sockets.
const LEVEL: f64 = 2.0;

/// The waiters that register interest in the kernel; the last two are the article's.
const REGISTERED: [&str; 4] = ["epoll", "io-uring-poll", "event-ports", "dev-poll"];

/// Those whose advantage over poll is followed: Linux's, and the article's.
const ADVANCED: [&str; 2] = ["epoll", "event-ports"];

/// A result shown to be no better may still be better by this factor: less is noise.
const NO_BETTER: f64 = 0.95;

const TOO_FEW: &str = "too few rounds to compare";

/// Returns the cases of one process: when several share the descriptors, the number does not grow
/// for any of them.
fn rounds<'a>(cases: &Cases<'a>) -> Cases<'a> {
    let is_of_one = |case: &Case| case.extra.get("processes").is_none_or(|many| *many <= 1.0);
    let cases = cases.named("loop", "spin").filtered(is_of_one);
    let writes = cases.numbers("writes");
    writes.first().map_or(cases.clone(), |first| cases.at("writes", *first))
}

fn at<'a>(cases: &Cases<'a>, waiter: &str, pairs: u64, active: u64) -> Option<&'a Case> {
    cases.named("waiter", waiter).at("descriptors", pairs).at("active", active).first()
}

/// Returns the numbers of descriptors that both waiters were measured with.
fn common(cases: &Cases<'_>, waiters: [&str; 2], active: u64) -> Vec<u64> {
    let [one, other] = waiters
        .map(|waiter| cases.named("waiter", waiter).at("active", active).numbers("descriptors"));
    one.into_iter().filter(|number| other.contains(number)).collect()
}

fn median(case: &Case) -> String {
    time(case.median.unwrap_or(0.0))
}

pub(super) fn wait_scale(cases: &Cases<'_>) -> Judgement {
    let cases = rounds(cases);
    let growth = |waiter: &str| {
        let numbers = common(&cases, [waiter, "poll"], 1);
        let (few, many) = (*numbers.first()?, *numbers.last()?);
        let (few_case, many_case) = (at(&cases, waiter, few, 1)?, at(&cases, waiter, many, 1)?);
        (many >= 10 * few).then_some(())?;
        Some((few_case, many_case, ratio(few_case, many_case)?, few, many))
    };
    let registered: Vec<_> =
        REGISTERED.into_iter().filter_map(|name| Some((name, growth(name)?))).collect();
    let (Some((_, _, poll, few, many)), false) = (growth("poll"), registered.is_empty()) else {
        return Judgement::inconclusive(
            "needs poll, and epoll, io-uring-poll, event-ports or dev-poll, with one active of two \
             numbers of descriptors ten times apart",
        );
    };
    let said: Vec<String> = registered
        .iter()
        .map(|(name, (from, to, grown, ..))| {
            format!("{name} from {} to {}, {} times", median(from), median(to), shown(*grown))
        })
        .collect();
    let gain = at(&cases, "epoll", many, 1)
        .zip(at(&cases, "poll", many, 1))
        .and_then(|(epoll, poll)| ratio(epoll, poll));
    let because = format!(
        "from {} to {} descriptors, poll grows {} times; {}{}",
        digits(few as f64),
        digits(many as f64),
        shown(poll),
        said.join("; "),
        gain.map_or(String::new(), |of| format!(
            "; at the largest number, poll takes {} × epoll",
            shown(of)
        ))
    );
    let all = |is: fn(&Interval) -> bool| registered.iter().all(|(_, (_, _, of, ..))| is(of));
    let judgement = if all(|of| of.high <= LEVEL) && poll.low > LEVEL {
        Judgement::from_bool(true, because)
    } else if !all(|of| of.low <= LEVEL) || poll.high <= LEVEL {
        Judgement::from_bool(false, because)
    } else {
        Judgement::inconclusive(because)
    };
    let judgement = judgement.with_interval("poll_growth", poll).with("descriptors", many);
    gain.into_iter().fold(judgement, |all, of| all.with_interval("poll_over_epoll", of))
}

/// How many times as long poll takes as a waiter, with one active descriptor and with many.
struct Advantage {
    waiter: &'static str,
    pairs: u64,
    one: Interval,
    many: Interval,
}

impl Advantage {
    fn of(cases: &Cases<'_>, waiter: &'static str, most: u64) -> Option<Self> {
        let few = common(cases, [waiter, "poll"], 1);
        let both = common(cases, [waiter, "poll"], most);
        let pairs = both.into_iter().rfind(|number| few.contains(number))?;
        let gain =
            |active| ratio(at(cases, waiter, pairs, active)?, at(cases, "poll", pairs, active)?);
        Some(Self { waiter, pairs, one: gain(1)?, many: gain(most)? })
    }

    /// The names of its two figures.
    fn names(&self) -> [&'static str; 2] {
        match self.waiter {
            "epoll" => ["poll_over_epoll_one", "poll_over_epoll_many"],
            _ => ["poll_over_event_ports_one", "poll_over_event_ports_many"],
        }
    }
}

pub(super) fn wait_active(cases: &Cases<'_>) -> Judgement {
    let cases = rounds(cases);
    let most = cases.numbers("active").last().copied().unwrap_or(1);
    let found = ADVANCED.into_iter().filter(|_| most > 1);
    let found: Vec<_> = found.filter_map(|waiter| Advantage::of(&cases, waiter, most)).collect();
    let Some(pairs) = found.first().map(|first| first.pairs) else {
        return Judgement::inconclusive(
            "needs poll, and epoll or event-ports, with one active descriptor and with many, and \
             more rounds",
        );
    };
    let said: Vec<String> = found
        .iter()
        .map(|of| {
            format!(
                "{} × {} if one is active, and {} if {} are",
                shown(of.one),
                of.waiter,
                shown(of.many),
                digits(most as f64)
            )
        })
        .collect();
    let because =
        format!("with {} descriptors, poll takes {}", digits(pairs as f64), said.join("; "));
    let judgement = if found.iter().all(|of| of.many.high < of.one.low) {
        Judgement::from_bool(true, because)
    } else if found.iter().any(|of| of.many.low >= of.one.high) {
        Judgement::from_bool(false, because)
    } else {
        Judgement::inconclusive(because)
    };
    let judgement = found.iter().fold(judgement, |all, of| {
        let [one, many] = of.names();
        all.with_interval(one, of.one).with_interval(many, of.many)
    });
    judgement.with("descriptors", pairs).with("active", most)
}

pub(super) fn wait_small(cases: &Cases<'_>) -> Judgement {
    let cases = rounds(cases);
    // Most descriptors are active: half of them or more.
    let pairs = cases.numbers("descriptors").first().copied().unwrap_or(0);
    let active = cases.at("descriptors", pairs).numbers("active").pop().unwrap_or(0);
    let poll = at(&cases, "poll", pairs, active).filter(|_| 2 * active >= pairs);
    let found: Vec<_> = ["epoll", "epoll-oneshot", "event-ports"]
        .into_iter()
        .filter_map(|name| Some((name, ratio(poll?, at(&cases, name, pairs, active)?)?)))
        .collect();
    if found.is_empty() {
        return Judgement::inconclusive(
            "needs poll, and epoll, epoll-oneshot or event-ports, with most of the smallest number \
             of descriptors active",
        );
    }
    let said: Vec<_> =
        found.iter().map(|(name, of)| format!("{name} takes {} × poll", shown(*of))).collect();
    let because = format!(
        "with {} of {} active, {}; what is one-shot, as event ports are, is rearmed for each event",
        digits(active as f64),
        digits(pairs as f64),
        said.join(", ")
    );
    let judgement = if found.iter().any(|(_, of)| of.low > 1.0) {
        Judgement::from_bool(true, because)
    } else if found.iter().all(|(_, of)| of.high <= 1.0) && found.len() >= 2 {
        Judgement::from_bool(false, because)
    } else {
        Judgement::inconclusive(because)
    };
    let named = |name: &str| match name {
        "epoll" => "epoll_over_poll",
        "epoll-oneshot" => "oneshot_over_poll",
        _ => "event_ports_over_poll",
    };
    found.into_iter().fold(judgement, |all, (name, of)| all.with_interval(named(name), of))
}

pub(super) fn wait_select_poll(cases: &Cases<'_>) -> Judgement {
    let cases = rounds(cases);
    let Some(pairs) = common(&cases, ["select", "poll"], 1).pop() else {
        return Judgement::inconclusive(
            "needs select and poll with the same number of descriptors",
        );
    };
    let both = at(&cases, "select", pairs, 1).zip(at(&cases, "poll", pairs, 1));
    let Some((select, poll, of)) = both.and_then(|(s, p)| Some((s, p, ratio(p, s)?))) else {
        return Judgement::inconclusive(TOO_FEW);
    };
    let because = format!(
        "with {} descriptors, {} by select and {} by poll: {} times",
        digits(pairs as f64),
        median(select),
        median(poll),
        shown(of)
    );
    Judgement::above(of, NO_BETTER, because)
        .with_interval("select_over_poll", of)
        .with("descriptors", pairs)
}

pub(super) fn wait_limits(cases: &Cases<'_>) -> Judgement {
    let figure =
        |waiter: &str, name: &str| cases.named("waiter", waiter).first()?.extra.get(name).copied();
    let watchable = |waiter| figure(waiter, "watchable");
    let others = watchable("poll").or(watchable("epoll"));
    let found = watchable("select").zip(others).zip(figure("select", "ceiling"));
    let Some(((select, others), ceiling)) = found else {
        return Judgement::inconclusive("needs select, and poll or epoll");
    };
    // The most that select can watch, with one descriptor of each pair.
    if others <= 512.0 {
        return Judgement::inconclusive(
            "these descriptors reach no limit; needs 1,000 or more, though select skips them",
        );
    }
    let because = format!(
        "select watches {} of {} sockets, one of each pair, because it ends at descriptor 1,023; \
         poll and epoll {}; a soft limit of {SOFT_LIMIT} allows {} descriptors, and setrlimit \
         raised it for the rest",
        digits(select),
        digits(others),
        digits(others),
        digits(ceiling)
    );
    Judgement::from_bool(select < others && ceiling <= SOFT_LIMIT as f64, because)
        .with("select_watches", select)
        .with("others_watch", others)
        .with("ceiling", ceiling)
}

pub(super) fn wait_shared(cases: &Cases<'_>) -> Judgement {
    let shared = |waiter: &str| {
        let of = cases.named("waiter", waiter).named("loop", "spin").at("active", 1);
        let most = of.numbers("descriptors").pop()?;
        let case = of.at("descriptors", most).first()?;
        case.extra.contains_key("shares").then_some((case, most))
    };
    let queues: Vec<_> =
        ADVANCED.into_iter().filter_map(|name| Some((name, shared(name)?))).collect();
    let (false, Some((poll, _))) = (queues.is_empty(), shared("poll")) else {
        return Judgement::inconclusive(
            "needs poll, and epoll or event-ports, with one active descriptor",
        );
    };
    let figure = |case: &Case, name: &str| case.extra.get(name).copied().unwrap_or(f64::NAN);
    let said: Vec<String> = queues
        .iter()
        .map(|(name, (case, pairs))| {
            format!(
                "{} threads at one {name} queue of {} descriptors took {} to {} % of the events \
                 each; {} events lost, {} spurious wake-ups per event",
                digits(figure(case, "shares")),
                digits(*pairs as f64),
                digits(100.0 * figure(case, "share_least")),
                digits(100.0 * figure(case, "share_most")),
                digits(figure(case, "share_lost")),
                digits(figure(case, "share_empty")),
            )
        })
        .collect();
    let because =
        format!("{}; a poll set has {} thread", said.join("; "), digits(figure(poll, "shares")));
    let is_spread = |case: &Case| {
        let (threads, lost) = (figure(case, "shares"), figure(case, "share_lost"));
        // A quarter of an even share is enough: the scheduler chooses which thread is woken.
        match figure(case, "share_least") * threads >= 0.25 {
            _ if lost > 0.0 || threads < 2.0 || figure(case, "share_most") >= 1.0 => Some(false),
            true => Some(true),
            false => None,
        }
    };
    let found: Vec<_> = queues.iter().map(|(_, (case, _))| is_spread(case)).collect();
    let judgement = if found.contains(&Some(false)) {
        Judgement::from_bool(false, because)
    } else if found.iter().all(|one| *one == Some(true)) {
        Judgement::from_bool(true, because)
    } else {
        Judgement::inconclusive(because)
    };
    let named = |name: &str| match name {
        "epoll" => ["threads", "least", "most", "lost"],
        _ => ["port_threads", "port_least", "port_most", "port_lost"],
    };
    queues.iter().fold(judgement, |all, (name, (case, _))| {
        let figures = ["shares", "share_least", "share_most", "share_lost"];
        named(name)
            .into_iter()
            .zip(figures)
            .fold(all, |all, (name, of)| all.with(name, figure(case, of)))
    })
}

pub(super) fn reactor_tax(cases: &Cases<'_>) -> Judgement {
    let cases = rounds(cases);
    let over = |library: &'static str| {
        let pairs = common(&cases, [library, "epoll"], 1).pop()?;
        let of = ratio(at(&cases, "epoll", pairs, 1)?, at(&cases, library, pairs, 1)?)?;
        Some((library, of, pairs))
    };
    let found: Vec<_> = peers::WITH_BOOKS.into_iter().filter_map(over).collect();
    let Some((_, _, pairs)) = found.first() else {
        return Judgement::inconclusive(
            "needs -L waiter=epoll,libevent,libuv, and the program wait-peers in PATH, which make \
             bench-wait builds in target/peers",
        );
    };
    let said: Vec<_> =
        found.iter().map(|(name, of, _)| format!("{} × by {name}", shown(*of))).collect();
    let because = format!(
        "with {} descriptors, one of them active, a round takes, relative to epoll, {}",
        digits(*pairs as f64),
        said.join(" and ")
    );
    let thin = over(peers::MIO);
    let because = match &thin {
        Some((name, of, _)) => {
            format!("{because}; {} × by {name}, which has no bookkeeping", shown(*of))
        }
        None => because,
    };
    let judgement = if found.iter().all(|(_, of, _)| of.low > 1.0) {
        Judgement::from_bool(true, because)
    } else if found.iter().all(|(_, of, _)| of.high < 1.0) {
        Judgement::from_bool(false, because)
    } else {
        Judgement::inconclusive(because)
    };
    found.into_iter().chain(thin).fold(judgement, |all, (name, of, _)| all.with_interval(name, of))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::harness::figures::case_of;
    use iotomy_record::{AxisValue, ClaimVerdict};

    fn case(waiter: &str, pairs: u64, active: u64, ns: f64) -> Case {
        let name = |text: &str| AxisValue::Name(text.to_owned());
        let params = [
            ("waiter", name(waiter)),
            ("loop", name("spin")),
            ("descriptors", AxisValue::Number(pairs)),
            ("active", AxisValue::Number(active)),
            ("writes", AxisValue::Number(100)),
        ];
        let params = params.map(|(axis, value)| (axis.to_owned(), value)).into();
        let samples = (0..12).map(|at| ns * (1.0 + 0.001 * f64::from(at))).collect();
        case_of(params, ("time", "ns"), samples, Default::default())
    }

    #[test]
    fn what_grows_with_idle_descriptors_is_told_from_what_does_not() {
        let poll = [case("poll", 100, 1, 1e3), case("poll", 1_000, 1, 9e3)];
        let verdict = |epoll: [f64; 2]| {
            let [few, many] = epoll;
            let mut cases = poll.to_vec();
            cases.extend([case("epoll", 100, 1, few), case("epoll", 1_000, 1, many)]);
            wait_scale(&Cases::new(&cases)).verdict
        };
        assert_eq!(verdict([500.0, 510.0]), ClaimVerdict::Holds);
        assert_eq!(verdict([500.0, 2_000.0]), ClaimVerdict::Fails);
        assert_eq!(wait_scale(&Cases::new(&poll)).verdict, ClaimVerdict::Inconclusive);
    }

    #[test]
    fn an_advantage_shrinks_or_it_does_not() {
        let verdict = |poll_of_many: f64| {
            wait_active(&Cases::new(&[
                case("epoll", 1_000, 1, 1e3),
                case("poll", 1_000, 1, 10e3),
                case("epoll", 1_000, 100, 1e3),
                case("poll", 1_000, 100, poll_of_many),
            ]))
            .verdict
        };
        assert_eq!(verdict(2e3), ClaimVerdict::Holds);
        assert_eq!(verdict(20e3), ClaimVerdict::Fails);
    }

    #[test]
    fn the_articles_own_systems_are_judged_where_they_are_measured() {
        let verdict = |ports_of_many: f64| {
            wait_active(&Cases::new(&[
                case("epoll", 1_000, 1, 1e3),
                case("event-ports", 1_000, 1, 1e3),
                case("poll", 1_000, 1, 10e3),
                case("epoll", 1_000, 100, 1e3),
                case("event-ports", 1_000, 100, ports_of_many),
                case("poll", 1_000, 100, 2e3),
            ]))
        };
        let judgement = verdict(1e3);
        assert_eq!(judgement.verdict, ClaimVerdict::Holds);
        assert!(judgement.because.contains("× event-ports if one is active"), "{judgement:?}");
        assert_eq!(verdict(0.1e3).verdict, ClaimVerdict::Fails);
    }

    #[test]
    fn registration_costs_more_where_most_are_active_or_it_does_not() {
        let verdict = |epoll: f64, oneshot: f64| {
            wait_small(&Cases::new(&[
                case("poll", 100, 100, 1e3),
                case("epoll", 100, 100, epoll),
                case("epoll-oneshot", 100, 100, oneshot),
            ]))
            .verdict
        };
        assert_eq!(verdict(0.9e3, 1.4e3), ClaimVerdict::Holds);
        assert_eq!(verdict(0.8e3, 0.9e3), ClaimVerdict::Fails);
    }

    #[test]
    fn select_that_is_much_cheaper_refutes_that_it_is_no_better() {
        let verdict = |select| {
            let cases = [case("poll", 100, 1, 1e3), case("select", 100, 1, select)];
            wait_select_poll(&Cases::new(&cases)).verdict
        };
        assert_eq!(verdict(1e3), ClaimVerdict::Holds);
        assert_eq!(verdict(0.7e3), ClaimVerdict::Fails);
    }

    #[test]
    fn libraries_that_keep_books_decide_what_books_cost() {
        let judged = |libevent: f64, libuv: f64, mio: f64| {
            reactor_tax(&Cases::new(&[
                case("epoll", 7_500, 1, 1e3),
                case("libevent", 7_500, 1, libevent),
                case("libuv", 7_500, 1, libuv),
                case("mio", 7_500, 1, mio),
            ]))
        };
        let judgement = judged(1.2e3, 1.1e3, 0.9e3);
        assert_eq!(judgement.verdict, ClaimVerdict::Holds);
        assert!(
            judgement.because.ends_with("0.90 (0.90 … 0.90) × by mio, which has no bookkeeping"),
            "{judgement:?}"
        );
        assert_eq!(judged(0.8e3, 0.9e3, 1.5e3).verdict, ClaimVerdict::Fails);
        assert_eq!(judged(1.2e3, 0.9e3, 1.5e3).verdict, ClaimVerdict::Inconclusive);
    }
}
