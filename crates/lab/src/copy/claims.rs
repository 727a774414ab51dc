//! The tests that decide the claims of `copy`. They are pure functions.

use std::collections::BTreeMap;

use iotomy_record::Case;
use iotomy_stats::{Interval, centre_interval};

use crate::copy::{SMALL, WINDOW};
use crate::harness::claims::{by_visit, digits, number, ratio, ratio_of, shown, time};
use crate::harness::judgement::quotient;
use crate::harness::{Cases, Judgement};

/// Returns the case of a mover and block, of the largest size.
fn case_of<'a>(cases: &Cases<'a>, mover: &str, block: u64) -> Option<&'a Case> {
    let cases = cases.named("mover", mover).at("block", block);
    let size = cases.numbers("size").pop()?;
    cases.at("size", size).first()
}

const NEEDS_BOTH: &str = "needs read-write and mmap-write, both with requests of 8 MiB";

pub(super) fn calls_cat_dd(cases: &Cases<'_>) -> Judgement {
    let calls = |mover, block| case_of(cases, mover, block)?.extra.get("calls").copied();
    let (Some(small), Some(large)) = (calls("read-write", SMALL), calls("mmap-write", WINDOW))
    else {
        return Judgement::inconclusive(
            "needs traced runs of read-write with 8 KiB and of mmap-write",
        );
    };
    let times = small / large;
    let because = format!(
        "{} calls against {}, start-up included: {} times as many",
        digits(small),
        digits(large),
        digits(times)
    );
    Judgement::from_bool(times >= 100.0, because)
        .with("read_write_calls", small)
        .with("mmap_write_calls", large)
        .with("times", times)
}

pub(super) fn mmap_beats_read(cases: &Cases<'_>) -> Judgement {
    let (Some(read), Some(map)) =
        (case_of(cases, "read-write", WINDOW), case_of(cases, "mmap-write", WINDOW))
    else {
        return Judgement::inconclusive(NEEDS_BOTH);
    };
    let Some(times) = ratio(map, read) else {
        return Judgement::inconclusive("too few copies to compare");
    };
    let because = format!(
        "{} by read and write, {} by mmap and write: {} times",
        time(read.median.unwrap_or(0.0)),
        time(map.median.unwrap_or(0.0)),
        shown(times)
    );
    Judgement::above(times, 1.0, because).with_interval("read_over_mmap", times)
}

/// Bounds as narrow as the article's own results: writes of 33 ms in both, and 112 of 144 ms
/// explained.
const SAME: [f64; 2] = [0.9, 1.1];
const EXPLAINED: [f64; 2] = [0.7, 1.3];

/// Whether an interval lies inside these bounds; `None` if it does only in part.
fn inside(of: Interval, [low, high]: [f64; 2]) -> Option<bool> {
    if low <= of.low && of.high <= high {
        return Some(true);
    }
    (of.high < low || high < of.low).then_some(false)
}

/// The difference between the copies, from the parts of each round: the share of it that accessing
/// the bytes explains, or, if reading does not take longer, how much less read and write take in
/// total.
enum Difference {
    Explained(Interval),
    Reversed(f64),
    /// It is not certain which of the two takes less.
    Unsure,
}

fn difference(read: &Case, map: &Case) -> Option<Difference> {
    let each = |case: &Case, name: &str| -> Option<BTreeMap<u64, f64>> {
        Some(by_visit(case, case.extra_samples.get(name)?).into_iter().collect())
    };
    let (reads, maps) = (each(read, "read_ns")?, each(map, "map_ns")?);
    let (by_read, by_map) = (each(read, "write_ns")?, each(map, "write_ns")?);
    let (mut parts, mut deltas) = (Vec::new(), Vec::new());
    for (round, reads) in reads {
        let all = (maps.get(&round), by_read.get(&round), by_map.get(&round));
        if let (Some(maps), Some(by_read), Some(by_map)) = all {
            parts.push(reads - maps);
            deltas.push(reads - maps + by_read - by_map);
        }
    }
    let delta = centre_interval(&deltas)?;
    if delta.high <= 0.0 {
        return Some(Difference::Reversed(-delta.point));
    }
    Some(match quotient(centre_interval(&parts)?, delta) {
        Some(part) => Difference::Explained(part),
        None => Difference::Unsure,
    })
}

pub(super) fn mmap_explains(cases: &Cases<'_>) -> Judgement {
    let (Some(read), Some(map)) =
        (case_of(cases, "read-write", WINDOW), case_of(cases, "mmap-write", WINDOW))
    else {
        return Judgement::inconclusive(NEEDS_BOTH);
    };
    let (Some(writes), Some(difference)) = (ratio_of("write_ns", read, map), difference(read, map))
    else {
        return Judgement::inconclusive("too few copies to compare");
    };
    let figure = |case: &Case, name: &str| time(case.extra.get(name).copied().unwrap_or(0.0));
    let part = match &difference {
        Difference::Explained(part) => {
            format!("which is {} of the copies' difference", shown(*part))
        }
        Difference::Reversed(less) => format!("but all calls together {} less", time(*less)),
        Difference::Unsure => "and which copy takes less is undecided".to_owned(),
    };
    let because = format!(
        "reads took {} and mmap and munmap {}, {part}; the writes took {} after reads and {} from \
         the mapping, with its page faults and uncached memory: {} times",
        figure(read, "read_ns"),
        figure(map, "map_ns"),
        figure(read, "write_ns"),
        figure(map, "write_ns"),
        shown(writes)
    );
    // The claim has two parts: it fails if either fails, and holds only if both hold.
    let explained = match &difference {
        Difference::Explained(part) => inside(*part, EXPLAINED),
        Difference::Reversed(_) | Difference::Unsure => None,
    };
    let judgement = match (inside(writes, SAME), explained) {
        (Some(true), Some(true)) => Judgement::from_bool(true, because),
        (Some(false), _) | (_, Some(false)) => Judgement::from_bool(false, because),
        _ => Judgement::inconclusive(because),
    }
    .with_interval("writes_mmap_over_read", writes);
    match difference {
        Difference::Explained(part) => judgement.with_interval("explained_share", part),
        Difference::Reversed(_) | Difference::Unsure => judgement,
    }
}

/// A ratio below this is not a gain.
const FLAT: f64 = 1.1;

pub(super) fn block_size(cases: &Cases<'_>) -> Judgement {
    let of_mover = cases.named("mover", "read-write");
    let blocks = of_mover.numbers("block");
    let points: Vec<&Case> =
        blocks.iter().filter_map(|at| case_of(cases, "read-write", *at)).collect();
    let medians: Option<Vec<f64>> = points.iter().map(|case| case.median).collect();
    let (Some(medians), [smallest, larger @ ..], true) = (medians, &points[..], points.len() > 2)
    else {
        return Judgement::inconclusive("needs read-write with three sizes of requests or more");
    };
    let best = medians[1..].iter().copied().fold(f64::INFINITY, f64::min);
    let flat = medians[1..].iter().position(|median| *median <= FLAT * best).unwrap_or(0);
    let knee = larger[flat];
    let block = |case: &Case| number(case, "block").unwrap_or(0) >> 10;
    let Some(times) = ratio(knee, smallest) else {
        return Judgement::inconclusive("too few copies to compare");
    };
    if times.high < FLAT {
        let small = block(smallest);
        let because = format!(
            "requests of {small} KiB cost no more than larger ones: {} times",
            shown(times)
        );
        return Judgement::from_bool(false, because).with_interval("smallest_over_knee", times);
    }
    let because = format!(
        "requests of {} KiB cost {} times as much as those of {} KiB, above which the gain is \
         less than 10 %",
        block(smallest),
        shown(times),
        block(knee)
    );
    Judgement::above(times, 1.0, because)
        .with_interval("smallest_over_knee", times)
        .with("knee_bytes", number(knee, "block").unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::harness::figures::case_of;
    use iotomy_record::{AxisValue, ClaimVerdict};

    /// Returns a case at 8 MiB, with the times of accessing and of writing the bytes.
    fn case(mover: &str, (get, write): (f64, f64), apart: f64) -> Case {
        let number = |of| AxisValue::Number(of);
        let params = [
            ("mover", AxisValue::Name(mover.to_owned())),
            ("block", number(WINDOW)),
            ("size", number(64 << 20)),
        ];
        let params = params.map(|(axis, value)| (axis.to_owned(), value)).into();
        let times = |of: f64| (0..9).map(|at| of * (1.0 + apart * f64::from(at % 3))).collect();
        let name = if mover == "read-write" { "read_ns" } else { "map_ns" };
        let parts = [(name.to_owned(), times(get)), ("write_ns".to_owned(), times(write))];
        let case = case_of(params, ("time", "ns"), times(get + write), Default::default());
        Case { extra_samples: parts.into(), ..case }
    }

    #[test]
    fn the_difference_is_explained_by_the_calls_or_the_writes_differ() {
        let verdict = |read: (f64, f64), map: (f64, f64), apart| {
            let cases = [case("read-write", read, apart), case("mmap-write", map, apart)];
            mmap_explains(&Cases::new(&cases)).verdict
        };
        // The article's: 16 ms per read, 2 per mapping, 33 ms per write in both, eight times.
        let (read, map) = ((128e6, 264e6), (16e6, 264e6));
        assert_eq!(verdict(read, map, 0.001), ClaimVerdict::Holds);
        assert_eq!(verdict(read, (16e6, 300e6), 0.001), ClaimVerdict::Fails);
        // If reading costs no more, either the writes have cancelled the gain, or there is nothing
        // to explain.
        assert_eq!(verdict(read, (16e6, 400e6), 0.001), ClaimVerdict::Fails);
        assert_eq!(verdict((10e6, 264e6), (16e6, 270e6), 0.001), ClaimVerdict::Inconclusive);
        let noisy = verdict(read, (16e6, 285e6), 0.2);
        assert_eq!(noisy, ClaimVerdict::Inconclusive);
    }

    /// Returns the CPU times of copies with requests of these sizes, in this number of visits.
    fn sizes(times: &[(u64, f64)], visits: usize, apart: f64) -> Vec<Case> {
        let of = |(at, (block, ns)): (usize, &(u64, f64))| {
            let params = [
                ("mover", AxisValue::Name("read-write".to_owned())),
                ("block", AxisValue::Number(*block)),
                ("size", AxisValue::Number(64 << 20)),
            ];
            let params = params.map(|(axis, value)| (axis.to_owned(), value)).into();
            // The noise differs between cases, so that the order changes from visit to visit.
            let noise = |visit: usize| 1.0 + apart * ((visit * (at + 2)) % 3) as f64;
            let samples = (0..visits).map(|visit| ns * noise(visit)).collect();
            case_of(params, ("time", "ns"), samples, Default::default())
        };
        times.iter().enumerate().map(of).collect()
    }

    #[test]
    fn small_requests_cost_more_or_do_not_by_an_interval_and_not_by_three_copies() {
        let verdict = |cases: &[Case]| block_size(&Cases::new(cases)).verdict;
        let falling = [(8 << 10, 90e6), (64 << 10, 50e6), (1 << 20, 40e6), (8 << 20, 41e6)];
        let flat = [(8 << 10, 40e6), (64 << 10, 41e6), (1 << 20, 40e6), (8 << 20, 41e6)];
        assert_eq!(verdict(&sizes(&falling, 9, 0.01)), ClaimVerdict::Holds);
        assert_eq!(verdict(&sizes(&flat, 9, 0.01)), ClaimVerdict::Fails);
        assert_eq!(verdict(&sizes(&flat, 3, 0.9)), ClaimVerdict::Inconclusive);
        assert_eq!(verdict(&sizes(&falling, 2, 0.01)), ClaimVerdict::Inconclusive);
        // Without the smallest, the next one would be the smallest, and would cost little.
        let mut cases = sizes(&flat, 9, 0.01);
        cases[0] = Case {
            skipped: Some(Case::NO_TIME.to_owned()),
            ..case_of(cases[0].params.clone(), ("time", "ns"), Vec::new(), Default::default())
        };
        assert_eq!(verdict(&cases), ClaimVerdict::Inconclusive);
    }
}
