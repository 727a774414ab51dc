//! The tests that decide article 004's claims from the rounds. They are pure: a saved record gives
//! the same verdicts.

use iotomy_record::{Case, ClaimVerdict};
use iotomy_stats::Interval;

use super::axes::BASE;
use crate::harness::claims::{Cases, digits, ratio, ratio_of, ratio_within, shown, time};
use crate::harness::star::at;
use crate::harness::{Judgement, Value};

/// The most that the harness itself may add to a round (`make bench-files` checks this): a smaller
/// difference is not measurable.
const MEASURABLE: f64 = 1.03;

/// The ratio up to which an improvement counts as marginal.
const MARGINAL: f64 = 1.10;

/// The ratio to the usual round up to which a layout has little effect.
const LITTLE: f64 = 1.10;

/// The exponent of linear growth is below this: tables that no longer fit a cache add to it.
const LINEAR: f64 = 1.15;

/// The minimum ratio between the files of the largest and the smallest directory of a line.
const FAR: u64 = 100;

const MIB: f64 = 1_048_576.0;

type Overrides = &'static [(&'static str, Value)];

/// Returns the ratio of `other` to `base`; both differ from the usual case by the given values.
fn times(cases: &Cases<'_>, base: Overrides, other: Overrides) -> Option<Interval> {
    ratio(at(cases, BASE, base)?, at(cases, BASE, other)?)
}

/// Returns the same ratio of the on-CPU time, which does not depend on other load.
fn cpu_times(cases: &Cases<'_>, base: Overrides, other: Overrides) -> Option<Interval> {
    ratio_of("cpu_ns", at(cases, BASE, base)?, at(cases, BASE, other)?)
}

fn cpu(case: Option<&Case>) -> String {
    time(extra(case, "cpu_ns").unwrap_or(f64::NAN))
}

fn median(case: Option<&Case>) -> f64 {
    case.and_then(|case| case.median).unwrap_or(f64::NAN)
}

fn extra(case: Option<&Case>, name: &str) -> Option<f64> {
    case?.extra.get(name).copied()
}

/// The usual backend, and the backends compared with it.
const LIBC: Overrides = &[("way", Value::S("libc"))];
const RAW: Overrides = &[("way", Value::S("raw"))];
const STATIC: Overrides = &[("way", Value::S("static"))];

pub(super) fn libc_tax(cases: &Cases<'_>) -> Judgement {
    let Some(found) = cpu_times(cases, RAW, LIBC) else {
        return Judgement::inconclusive("needs the strategies libc and raw, with enough samples");
    };
    let because = format!(
        "a round takes {} of CPU time through the library and {} by direct system calls: {} times",
        cpu(at(cases, BASE, LIBC)),
        cpu(at(cases, BASE, RAW)),
        shown(found)
    );
    Judgement::above(found, MEASURABLE, because).with_interval("libc_over_raw", found)
}

pub(super) fn static_link(cases: &Cases<'_>) -> Judgement {
    let Some(found) = cpu_times(cases, STATIC, LIBC) else {
        return Judgement::inconclusive(
            "needs the strategies libc and static, with enough samples",
        );
    };
    let start = |but| extra(at(cases, BASE, but), "start_ns").unwrap_or(f64::NAN);
    let because = format!(
        "a round linked dynamically takes {} times the CPU time of one linked statically; the process is ready after \
         {} instead of {}",
        shown(found),
        time(start(STATIC)),
        time(start(LIBC))
    );
    // A program that makes few rounds also gains by its faster start, which is not the marginal
    // effect of the claim.
    let judgement = if found.low > 1.0 {
        Judgement::from_bool(found.point <= MARGINAL, because)
    } else if found.high < MEASURABLE {
        Judgement::from_bool(false, because)
    } else {
        Judgement::inconclusive(because)
    };
    judgement
        .with_interval("libc_over_static", found)
        .with("start_libc_ns", start(LIBC))
        .with("start_static_ns", start(STATIC))
}

pub(super) fn realtime(cases: &Cases<'_>) -> Judgement {
    const REALTIME: Overrides = &[("sched", Value::S("realtime"))];
    const NORMAL: Overrides = &[("sched", Value::S("normal"))];
    let Some(found) = times(cases, REALTIME, NORMAL) else {
        return Judgement::inconclusive("needs both scheduling classes, with enough samples");
    };
    let because = format!(
        "a round takes {} in the normal class and {} in real time: {} times",
        time(median(at(cases, BASE, NORMAL))),
        time(median(at(cases, BASE, REALTIME))),
        shown(found)
    );
    Judgement::above(found, 1.0, because).with_interval("normal_over_realtime", found)
}

pub(super) fn three_runs(cases: &Cases<'_>) -> Judgement {
    let cold = cases.named("cache", "cold");
    let is_cold = cold.first().is_some();
    if !is_cold && !cases.were_planned("cache", "cold") {
        return Judgement::inconclusive(
            "needs files read back from a freshly mounted file system (op=back, cache=cold)",
        );
    }
    let case = if is_cold { cold.first() } else { at(cases, BASE, &[]) };
    let pairs = case.and_then(|case| ratio_within(case, "third_ns", "first_ns"));
    let (Some(found), Some(case)) = (pairs, case) else {
        return Judgement::inconclusive("too few fresh processes were started");
    };
    let what = match is_cold {
        true => "files read back from a freshly mounted file system",
        false => "the files cannot be made cold here; a fresh process",
    };
    let because = format!(
        "{what}: the first round takes {}, the third {}: {} times",
        time(extra(Some(case), "first_ns").unwrap_or(f64::NAN)),
        time(extra(Some(case), "third_ns").unwrap_or(f64::NAN)),
        shown(found)
    );
    Judgement::above(found, 1.0, because).with_interval("first_over_third", found)
}

pub(super) fn tmpfs(cases: &Cases<'_>) -> Judgement {
    const DISKS: [(&str, Overrides); 4] = [
        ("the file system of --path", &[("fs", Value::S("here"))]),
        ("ext4", &[("fs", Value::S("ext4"))]),
        ("xfs", &[("fs", Value::S("xfs"))]),
        ("btrfs", &[("fs", Value::S("btrfs"))]),
    ];
    const MEMORY: Overrides = &[("fs", Value::S("tmpfs"))];
    let found: Vec<(&str, Interval)> = DISKS
        .iter()
        .filter_map(|(name, disk)| Some((*name, times(cases, MEMORY, disk)?)))
        .collect();
    // Prefer an image, which is always a disk file system; the directory of --path may be in memory
    // itself.
    let least = found.iter().filter(|(name, _)| *name != DISKS[0].0).chain(&found).next();
    let Some((_, decides)) = least else {
        return Judgement::inconclusive("needs tmpfs and another file system, with enough samples");
    };
    let all: Vec<String> =
        found.iter().map(|(name, times)| format!("{} for {name}", shown(*times))).collect();
    let because = format!(
        "a round takes {} on tmpfs; relative to that: {}",
        time(median(at(cases, BASE, MEMORY))),
        all.join(", ")
    );
    Judgement::above(*decides, 1.0, because).with_interval("disk_over_tmpfs", *decides)
}

/// File systems in the order in which they decide: the article's own kind first.
const KINDS: [(&str, Overrides, Overrides); 3] = [
    (
        "ext4",
        &[("fs", Value::S("ext4")), ("name", Value::N(14))],
        &[("fs", Value::S("ext4")), ("name", Value::N(255))],
    ),
    (
        "the file system of --path",
        &[("fs", Value::S("here")), ("name", Value::N(14))],
        &[("fs", Value::S("here")), ("name", Value::N(255))],
    ),
    (
        "tmpfs",
        &[("fs", Value::S("tmpfs")), ("name", Value::N(14))],
        &[("fs", Value::S("tmpfs")), ("name", Value::N(255))],
    ),
];

pub(super) fn name_length(cases: &Cases<'_>) -> Judgement {
    let found: Vec<_> = KINDS
        .iter()
        .filter_map(|(name, short, long)| Some((*name, cpu_times(cases, short, long)?)))
        .collect();
    let Some((_, decides)) = found.first() else {
        return Judgement::inconclusive(
            "needs names of 14 and of 255 characters on one file system, with enough samples",
        );
    };
    let all: Vec<String> =
        found.iter().map(|(name, times)| format!("{} on {name}", shown(*times))).collect();
    let because =
        format!("CPU time with names of 255 characters relative to 14: {}", all.join(", "));
    Judgement::above(*decides, 1.0, because).with_interval("long_over_short", *decides)
}

/// Returns the cases of an operation on a file system, along the size of the directory.
fn along<'a>(cases: &Cases<'a>, op: &str, fs: &str) -> Cases<'a> {
    cases
        .named("op", op)
        .named("fs", fs)
        .named("cache", "warm")
        .named("sync", "none")
        .named("layout", "default")
}

/// Returns the exponent of the number of files in the time.
fn exponent(cases: &Cases<'_>) -> Option<Interval> {
    let sizes = cases.numbers("files");
    let is_far = sizes.last()? / sizes.first()?.max(&1) >= FAR;
    // `.` and `..` are listed, too.
    cases.power("files", 2.0).filter(|_| sizes.len() >= 3 && is_far)
}

pub(super) fn directory_size(cases: &Cases<'_>) -> Judgement {
    let found = ["ext4", "here", "tmpfs"].into_iter().find_map(|fs| {
        let power = exponent(&along(cases, "ls-l", fs))?;
        let rounds = along(cases, "round", fs).named("way", "libc").named("sched", "normal");
        let rounds = rounds.at("name", 14).at("threads", 1);
        let sizes = rounds.numbers("files");
        let (least, most) = (*sizes.first()?, *sizes.last()?);
        let case = |files| rounds.at("files", files).first();
        let slower = ratio(case(least)?, case(most)?)?;
        Some((fs, power, slower, least, most))
    });
    let Some((fs, power, slower, least, most)) = found else {
        return Judgement::inconclusive(
            "needs rounds and ls-l in three sizes of directories, the largest at least a hundred \
             times the smallest",
        );
    };
    let because = format!(
        "on {fs}, a round among {} files takes {} times the time of one among {}; the time of `ls \
         -l` grows with the power {} of the number of files",
        digits(most as f64),
        shown(slower),
        digits(least as f64),
        shown(power)
    );
    let verdict = if slower.low > 1.0 && power.low > LINEAR {
        ClaimVerdict::Holds
    } else if slower.high < MARGINAL || power.high < LINEAR {
        ClaimVerdict::Fails
    } else {
        ClaimVerdict::Inconclusive
    };
    Judgement { verdict, because, evidence: Vec::new() }
        .with_interval("largest_over_smallest", slower)
        .with_interval("ls_l_exponent", power)
}

pub(super) fn name_cache(cases: &Cases<'_>) -> Judgement {
    let names = cases.named("op", "names");
    let kind = |fs: &str| names.named("fs", fs);
    let of = ["here", "ext4"].into_iter().map(kind).find(|of| of.first().is_some());
    let of = of.unwrap_or(names);
    let case = of.iter().find(|case| case.samples.len() >= 6);
    let bytes = extra(case, "dentry_bytes").or(extra(case, "name_bytes"));
    let (Some(case), Some(bytes)) = (case, bytes) else {
        return Judgement::inconclusive("needs lookups of names, six times or more");
    };
    let figure = |name: &str| extra(Some(case), name);
    // A cache that shrank by more than it had grown released names of other programs, and all of
    // these.
    let left = figure("left_bytes").map(|left| left.max(0.0));
    let all = figure("name_bytes").map_or(String::new(), |all| {
        format!(", {} with all other reclaimable memory", digits(all))
    });
    let freed = figure("freed_bytes").map_or(String::new(), |freed| {
        format!("; the cache shrank by {:.1} MiB, names of other processes included", freed / MIB)
    });
    let given = match left {
        None => "memory pressure needs root".to_owned(),
        Some(left) if left < 1.0 => format!("under memory pressure, none of them remains{freed}"),
        Some(left) => format!("under memory pressure, {} of them remain{freed}", digits(left)),
    };
    let because = format!(
        "{} bytes per name looked up stay in the dentry cache after the process has ended{all}; \
         {given}",
        digits(bytes)
    );
    let longest = of.numbers("name").pop().unwrap_or(0);
    let judgement = match left {
        // A name takes a structure of about 200 bytes; a result near that means one structure per
        // name.
        _ if bytes < 50.0 => Judgement::from_bool(false, because),
        Some(left) if left < bytes / 2.0 && bytes >= 100.0 => Judgement::from_bool(true, because),
        _ => Judgement::inconclusive(because),
    };
    let judgement = judgement.with("bytes_a_name", bytes).with("longest_name", longest);
    left.into_iter().fold(judgement, |all, left| all.with("left_bytes", left))
}

pub(super) fn inode_layout(cases: &Cases<'_>) -> Judgement {
    const LAYOUTS: [&str; 3] = ["small-blocks", "large-inodes", "many-inodes"];
    let mut found = Vec::new();
    for fs in ["ext4", "xfs", "btrfs"] {
        let of = cases.named("fs", fs).named("op", "round").named("sync", "none");
        let of = of.at("name", 14).at("files", 10);
        let usual = of.named("layout", "default").first();
        let pair = |layout: &str| ratio(usual?, of.named("layout", layout).first()?);
        found.extend(LAYOUTS.iter().filter_map(|layout| Some((fs, *layout, pair(layout)?))));
    }
    if found.is_empty() {
        return Judgement::inconclusive(
            "needs a file system with its default layout and another, with enough samples",
        );
    }
    let all: Vec<String> = found
        .iter()
        .map(|(fs, layout, times)| format!("{fs} {layout} {}", shown(*times)))
        .collect();
    let because = format!("relative to a round with the default layout: {}", all.join(", "));
    let is_little = |times: &Interval| times.low > 1.0 / LITTLE && times.high < LITTLE;
    let is_much = |times: &Interval| times.low > LITTLE || times.high < 1.0 / LITTLE;
    let judgement = if found.iter().any(|(_, _, times)| is_much(times)) {
        Judgement::from_bool(false, because)
    } else if found.iter().all(|(_, _, times)| is_little(times)) {
        Judgement::from_bool(true, because)
    } else {
        Judgement::inconclusive(because)
    };
    let farthest = found
        .iter()
        .map(|(_, _, times)| *times)
        .max_by(|a, b| a.point.ln().abs().total_cmp(&b.point.ln().abs()));
    farthest.into_iter().fold(judgement, |all, of| all.with_interval("farthest", of))
}

#[cfg(test)]
mod tests;
