//! The tests that decide article 004's claims from the requests. They are pure: a saved record
//! gives the same verdicts.

use iotomy_record::{Case, ClaimVerdict};
use iotomy_stats::Interval;

use super::{BASE, LARGE};
use crate::harness::claims::{Cases, digits, ratio, shown, time};
use crate::harness::star::at;
use crate::harness::{Judgement, Value};

/// The ratio from which on something counts as many times faster.
const MANY: f64 = 2.0;

/// Pages read per requested page above which read-ahead is a waste.
const WASTE: f64 = 1.5;

/// The ratio, in either direction, up to which a difference counts as little.
const LITTLE: f64 = 1.10;

type Overrides = &'static [(&'static str, Value)];

fn cached(case: Option<&Case>) -> Option<f64> {
    case?.extra.get("cached").copied()
}

pub(super) fn readahead(cases: &Cases<'_>) -> Judgement {
    const USUAL: Overrides = &[("window", Value::N(128)), ("pattern", Value::S("sequential"))];
    const NONE: Overrides = &[("window", Value::N(0)), ("pattern", Value::S("sequential"))];
    const RANDOM: Overrides = &[("pattern", Value::S("random"))];
    const FAULTS: Overrides = &[("pattern", Value::S("random")), ("way", Value::S("mmap"))];
    let of = |but| at(cases, BASE, but);
    let gain = of(USUAL).zip(of(NONE)).and_then(|(with, without)| ratio(with, without));
    let (Some(gain), Some(random)) = (gain, cached(of(RANDOM))) else {
        return Judgement::inconclusive(
            "needs sequential reads with a window of 128 KiB and with none, and random reads",
        );
    };
    let faults = cached(of(FAULTS));
    let by_faults =
        faults.map_or(String::new(), |pages| format!(", by faults of a mapping {}", digits(pages)));
    let because = format!(
        "a sequential read of 4 KiB takes {} without read-ahead and {} with 128 KiB: {} times; a \
         random read brings {} into memory for one{by_faults}",
        time(median(of(NONE))),
        time(median(of(USUAL))),
        shown(gain),
        pages(random)
    );
    // For reads, the kernel detects a sequence before it reads ahead; for faults it does not.
    let is_waste = random > WASTE || faults.is_some_and(|pages| pages > WASTE);
    let verdict = match (gain.low > 1.0, gain.high < 1.0) {
        (true, _) if is_waste => ClaimVerdict::Holds,
        (true, _) | (_, true) => ClaimVerdict::Fails,
        _ => ClaimVerdict::Inconclusive,
    };
    let judgement = Judgement { verdict, because, evidence: Vec::new() };
    let judgement = judgement.with_interval("without_over_with", gain);
    let judgement = judgement.with("pages_a_random_read", random);
    faults.into_iter().fold(judgement, |all, pages| all.with("pages_a_random_fault", pages))
}

/// Formats a number of pages: a mean may be a fraction.
fn pages(mean: f64) -> String {
    match digits(mean) {
        one if one == "1" => format!("{one} page"),
        some => format!("{some} pages"),
    }
}

pub(super) fn shadow_ram(cases: &Cases<'_>) -> Judgement {
    const DISK: Overrides = &[("op", Value::S("write")), ("device", Value::S("disk"))];
    const RAM: Overrides = &[("op", Value::S("write")), ("device", Value::S("ram"))];
    let found = at(cases, BASE, RAM).zip(at(cases, BASE, DISK));
    let Some((ram, disk)) = found else {
        return Judgement::inconclusive("needs synchronous writes to the disk and to ram");
    };
    let Some(times) = ratio(ram, disk) else {
        return Judgement::inconclusive("too few writes to compare");
    };
    let because = format!(
        "a synchronous write of 4 KiB takes {} to the disk and {} to memory: {} times",
        time(median(Some(disk))),
        time(median(Some(ram))),
        shown(times)
    );
    Judgement::above(times, MANY, because).with_interval("disk_over_ram", times)
}

pub(super) fn striping(cases: &Cases<'_>) -> Judgement {
    let of = |device: &str, op: &str| {
        let of = cases.named("device", device).named("op", op).named("way", "direct");
        of.at("block", LARGE).named("pattern", "sequential").first()
    };
    let pair = |op: &str| ratio(of("striped", op)?, of("single", op)?);
    let (Some(reads), Some(writes)) = (pair("read"), pair("write")) else {
        return Judgement::inconclusive(
            "needs direct reads and writes of 1 MiB, striped and on one device",
        );
    };
    let because = format!(
        "for requests of 1 MiB, it {} reads ({} times as fast) and {} writes ({}), both halves on \
         one disk",
        Effect::word(reads),
        shown(reads),
        Effect::word(writes),
        shown(writes)
    );
    // The claim that it may do either is refuted where it does neither.
    let verdict = match (Effect::from_times(reads), Effect::from_times(writes)) {
        (Effect::None, Effect::None) => ClaimVerdict::Fails,
        (Effect::Helps | Effect::Hurts, _) | (_, Effect::Helps | Effect::Hurts) => {
            ClaimVerdict::Holds
        }
        _ => ClaimVerdict::Inconclusive,
    };
    Judgement { verdict, because, evidence: Vec::new() }
        .with_interval("reads_single_over_striped", reads)
        .with_interval("writes_single_over_striped", writes)
}

/// The effect shown by an interval of the speed-up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Effect {
    Helps,
    Hurts,
    None,
    Unknown,
}

impl Effect {
    fn from_times(times: Interval) -> Self {
        match (times.low, times.high) {
            (low, _) if low > LITTLE => Self::Helps,
            (_, high) if high < 1.0 / LITTLE => Self::Hurts,
            (low, high) if low > 1.0 / LITTLE && high < LITTLE => Self::None,
            _ => Self::Unknown,
        }
    }

    fn word(times: Interval) -> &'static str {
        match Self::from_times(times) {
            Self::Helps => "helps",
            Self::Hurts => "hurts",
            Self::None => "makes little difference to",
            Self::Unknown if times.low > 1.0 => "speeds up, though not surely by a tenth,",
            Self::Unknown if times.high < 1.0 => "slows, though not surely by a tenth,",
            Self::Unknown => "has no certain effect on",
        }
    }
}

fn median(case: Option<&Case>) -> f64 {
    case.and_then(|case| case.median).unwrap_or(f64::NAN)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use iotomy_record::AxisValue;

    use super::*;
    use crate::harness::figures::case_of;

    fn case(but: &[(&str, Value)], ns: f64, cached: f64) -> Case {
        let usual = BASE.iter().chain(but);
        let params: BTreeMap<String, AxisValue> =
            usual.map(|(name, value)| ((*name).to_owned(), (*value).into())).collect();
        let samples = (0..10).map(|at| ns * (1.0 + f64::from(at % 3) / 1e3)).collect();
        let extra = BTreeMap::from([("cached".to_owned(), cached)]);
        case_of(params, ("time", "ns"), samples, extra)
    }

    fn verdict(judge: fn(&Cases<'_>) -> Judgement, cases: &[Case]) -> ClaimVerdict {
        let found = judge(&Cases::new(cases));
        println!("{:?}: {}", found.verdict, found.because);
        found.verdict
    }

    use ClaimVerdict::{Fails, Holds, Inconclusive};

    #[test]
    fn read_ahead_has_to_help_sequences_and_waste_memory_on_others() {
        let cases = |without: f64, random: f64, faults: f64| {
            let pattern = ("pattern", Value::S("random"));
            vec![
                case(&[], 100.0, 1.0),
                case(&[("window", Value::N(0))], without, 1.0),
                case(&[pattern], 900.0, random),
                case(&[pattern, ("way", Value::S("mmap"))], 900.0, faults),
            ]
        };
        assert_eq!(verdict(readahead, &cases(500.0, 1.0, 16.0)), Holds);
        assert_eq!(verdict(readahead, &cases(500.0, 1.0, 1.0)), Fails);
        assert_eq!(verdict(readahead, &cases(90.0, 1.0, 16.0)), Fails);
        assert_eq!(verdict(readahead, &cases(100.0, 1.0, 16.0)), Inconclusive);
    }

    #[test]
    fn memory_behind_a_disk_is_many_times_faster_from_two_on() {
        let write = ("op", Value::S("write"));
        let cases = |disk: f64| {
            [case(&[write], disk, 0.0), case(&[write, ("device", Value::S("ram"))], 100.0, 0.0)]
        };
        assert_eq!(verdict(shadow_ram, &cases(900.0)), Holds);
        assert_eq!(verdict(shadow_ram, &cases(150.0)), Fails);
        assert_eq!(verdict(shadow_ram, &cases(900.0)[..1]), Inconclusive);
    }

    #[test]
    fn what_surely_slows_and_not_surely_by_a_tenth_is_said_to() {
        let word = |low, high| Effect::word(Interval { point: (low + high) / 2.0, low, high });
        assert_eq!(word(0.82, 0.93), "slows, though not surely by a tenth,");
        assert_eq!(word(1.05, 1.2), "speeds up, though not surely by a tenth,");
        assert_eq!(word(0.85, 1.05), "has no certain effect on");
        assert_eq!(word(0.8, 0.85), "hurts");
        assert_eq!(word(0.95, 0.98), "makes little difference to");
    }

    #[test]
    fn striping_has_to_help_or_hurt_something() {
        let of = |device: &'static str, op: &'static str, ns| {
            let but = [
                ("device", Value::S(device)),
                ("fs", Value::S("btrfs")),
                ("op", Value::S(op)),
                ("way", Value::S("direct")),
                ("block", Value::N(LARGE)),
            ];
            case(&but, ns, 0.0)
        };
        let all = |reads: f64, writes: f64| {
            vec![
                of("striped", "read", 100.0),
                of("single", "read", 100.0 * reads),
                of("striped", "write", 200.0),
                of("single", "write", 200.0 * writes),
            ]
        };
        assert_eq!(verdict(striping, &all(1.5, 0.7)), Holds);
        assert_eq!(verdict(striping, &all(1.02, 0.7)), Holds);
        assert_eq!(verdict(striping, &all(1.3, 1.0)), Holds);
        assert_eq!(verdict(striping, &all(1.02, 0.98)), Fails);
        assert_eq!(verdict(striping, &all(1.02, 1.1)), Inconclusive);
        assert_eq!(verdict(striping, &all(1.5, 0.7)[..3]), Inconclusive);
    }
}
