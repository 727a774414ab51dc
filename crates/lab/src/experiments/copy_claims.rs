//! The tests that decide the claims of `copy`. Pure, as all of them.

use std::collections::BTreeMap;

use iotomy_record::Case;
use iotomy_stats::{Interval, centre_interval, median};

use super::claims::{by_visit, digits, number, ratio, ratio_of, shown, time};
use super::copy::{SMALL, WINDOW};
use super::{Cases, Judgement};

/// The case of a mover and block, of the largest size.
fn of<'a>(cases: &Cases<'a>, mover: &str, block: u64) -> Option<&'a Case> {
    let cases = cases.named("mover", mover).at("block", block);
    let size = cases.numbers("size").pop()?;
    cases.at("size", size).first()
}

const NEEDS_BOTH: &str = "it takes read-write and mmap-write, both with requests of 8 MiB";

pub(super) fn calls_cat_dd(cases: &Cases<'_>) -> Judgement {
    let calls = |mover, block| of(cases, mover, block)?.extra.get("calls").copied();
    let (Some(small), Some(large)) = (calls("read-write", SMALL), calls("mmap-write", WINDOW))
    else {
        return Judgement::inconclusive(
            "it takes traced runs of read-write with 8 KiB and of mmap-write",
        );
    };
    let times = small / large;
    let because = format!(
        "{} calls against {}, start-up included: {} times as many",
        digits(small),
        digits(large),
        digits(times)
    );
    Judgement::of(times >= 100.0, because)
        .with("read_write_calls", small)
        .with("mmap_write_calls", large)
        .with("times", times)
}

pub(super) fn mmap_beats_read(cases: &Cases<'_>) -> Judgement {
    let (Some(read), Some(map)) =
        (of(cases, "read-write", WINDOW), of(cases, "mmap-write", WINDOW))
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

/// As near as the article's own: writes of 33 ms in both, and 112 of 144 ms explained.
const SAME: [f64; 2] = [0.9, 1.1];
const EXPLAINED: [f64; 2] = [0.7, 1.3];

/// Whether an interval lies inside these bounds; `None` where it does in part.
fn inside(of: Interval, [low, high]: [f64; 2]) -> Option<bool> {
    if low <= of.low && of.high <= high {
        return Some(true);
    }
    (of.high < low || high < of.low).then_some(false)
}

/// What part of the difference of two copies lies in what was done to get at the bytes, by the parts of
/// the copies of each round and the whole of their difference.
fn explained(read: &Case, map: &Case) -> Option<Interval> {
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
    let delta = median(&deltas).filter(|delta| *delta > 0.0)?;
    Some(centre_interval(&parts)?.map(|part| part / delta))
}

pub(super) fn mmap_explains(cases: &Cases<'_>) -> Judgement {
    let (Some(read), Some(map)) =
        (of(cases, "read-write", WINDOW), of(cases, "mmap-write", WINDOW))
    else {
        return Judgement::inconclusive(NEEDS_BOTH);
    };
    let (Some(writes), Some(part)) = (ratio_of("write_ns", read, map), explained(read, map)) else {
        return Judgement::inconclusive(
            "too few copies to compare, or read and write cost no more than mmap and write",
        );
    };
    let figure = |case: &Case, name: &str| time(case.extra.get(name).copied().unwrap_or(0.0));
    let because = format!(
        "reads took {} and mmap and munmap {}, which is {} of the copies' difference; the writes \
         took {} behind reads and {} from the mapping, where they meet its page faults and memory that \
         no cache holds: {} times",
        figure(read, "read_ns"),
        figure(map, "map_ns"),
        shown(part),
        figure(read, "write_ns"),
        figure(map, "write_ns"),
        shown(writes)
    );
    let judgement = match (inside(writes, SAME), inside(part, EXPLAINED)) {
        (Some(true), Some(true)) => Judgement::of(true, because),
        (Some(false), _) | (_, Some(false)) => Judgement::of(false, because),
        _ => Judgement::inconclusive(because),
    };
    judgement.with_interval("explained_share", part).with_interval("writes_mmap_over_read", writes)
}

pub(super) fn block_size(cases: &Cases<'_>) -> Judgement {
    let of_mover = cases.named("mover", "read-write");
    let blocks = of_mover.numbers("block");
    let points: Vec<&Case> = blocks.iter().filter_map(|at| of(cases, "read-write", *at)).collect();
    let medians: Vec<f64> = points.iter().filter_map(|case| case.median).collect();
    let best = medians.iter().copied().fold(f64::INFINITY, f64::min);
    let flat = medians.iter().position(|median| *median <= 1.1 * best);
    let (Some(flat), Some(smallest), true) = (flat, points.first(), points.len() > 2) else {
        return Judgement::inconclusive("it takes read-write with three sizes of requests or more");
    };
    let knee = points[flat];
    let block = |case: &Case| number(case, "block").unwrap_or(0) >> 10;
    if flat == 0 {
        let because = format!("requests of {} KiB cost no more than larger ones", block(smallest));
        return Judgement::of(false, because);
    }
    let Some(times) = ratio(knee, smallest) else {
        return Judgement::inconclusive("too few copies to compare");
    };
    let because = format!(
        "requests of {} KiB cost {} times as much as those of {} KiB, past which less than 10 % is \
         gained",
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
    use super::super::figures::case_of;
    use super::*;
    use iotomy_record::{AxisValue, ClaimVerdict};

    /// A case at 8 MiB: what getting at the bytes and what writing them took.
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
            mmap_explains(&Cases::of(&cases)).verdict
        };
        // The article's: 16 ms a read, 2 a mapping, 33 ms a write in both, eight times.
        let (read, map) = ((128e6, 264e6), (16e6, 264e6));
        assert_eq!(verdict(read, map, 0.001), ClaimVerdict::Holds);
        assert_eq!(verdict(read, (16e6, 300e6), 0.001), ClaimVerdict::Fails);
        // Nothing is explained where there is no difference.
        assert_eq!(verdict(read, (16e6, 400e6), 0.001), ClaimVerdict::Inconclusive);
        let noisy = verdict(read, (16e6, 285e6), 0.2);
        assert_eq!(noisy, ClaimVerdict::Inconclusive);
    }
}
