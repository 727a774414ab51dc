//! Asking after files more than doing anything with them.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use iotomy_record::Verdict;
use iotomy_record::numbers::{share, thousands};
use serde_json::json;

use crate::facts::Fact;
use crate::finding::{FindingDeclaration, Rule, UnnamedFinding};
use crate::run::Run;

pub(crate) static DECLARATION: FindingDeclaration = FindingDeclaration {
    id: "stat-storm",
    verdict: Verdict::Note,
    summary: "most calls only query file metadata",
    description: "At least 1,000 calls of stat, access, readlink and similar, and at least half \
        of all calls. The finding has the number that found no file and, in a record of \
        `trace --paths`, the paths they were given most often; the record does not show whether \
        they are needed. The rule excludes programs that read directories with perhaps a \
        fourth as many entries: a walk over files (find, du, ls -l, tar) queries each.",
    facts: &[Fact::Calls(&[]), Fact::Paths],
    rules: &[Rule::Run(judge)],
};

const CALLS: [&str; 11] = [
    "stat",
    "lstat",
    "newfstatat",
    "statx",
    "stat64",
    "lstat64",
    "access",
    "faccessat",
    "faccessat2",
    "readlink",
    "readlinkat",
];
const MANY: u64 = 1_000;
/// The smallest entry of a directory in the result of getdents64: a name of up to four letters.
const A_SHORT_ENTRY: u64 = 24;
/// How often a walk looks up an entry: tar, twice; others, once.
const PER_ENTRY: u64 = 4;

fn judge(run: &Run<'_>) -> Option<UnnamedFinding> {
    let Storms { asked, vain, images } = storms(run);
    let all: u64 = run.trace.calls.iter().map(|call| call.calls).fold(0, u64::saturating_add);
    if asked < MANY || asked < all / 2 {
        return None;
    }
    let those = match vain {
        0 => String::new(),
        vain => format!(", and {} of them found no file", thousands(vain.into())),
    };
    let text = format!(
        "{} of {} calls ({}) only query file metadata{those}",
        thousands(asked.into()),
        thousands(all.into()),
        share(asked.into(), all.into())
    );
    let [asked, vain, all] =
        [("asked", json!(asked)), ("not_there", json!(vain)), ("calls", json!(all))];
    let paths = most_asked(run, &images);
    if paths.is_empty() {
        return Some(
            UnnamedFinding::new(text, [asked, vain, all])
                .advise("list the paths: iotomy trace --paths"),
        );
    }
    let named: Vec<String> = paths
        .iter()
        .map(|(path, calls)| format!("{} ({} times)", path, thousands((*calls).into())))
        .collect();
    let text = format!("{text}; most often of {}", named.join(", "));
    Some(UnnamedFinding::new(text, [asked, vain, all, ("paths", json!(paths))]))
}

/// How many paths are named.
const FEW: usize = 3;

/// The paths that calls of these images queried most often, and how often.
fn most_asked<'r>(run: &Run<'r>, images: &BTreeSet<Image<'r>>) -> Vec<(&'r str, u64)> {
    let mut calls: BTreeMap<&str, u64> = BTreeMap::new();
    for one in &run.trace.paths {
        let image = (one.pid, one.exec.as_str(), one.image);
        let Some(path) = &one.path else { continue };
        if CALLS.contains(&one.syscall.as_str()) && images.contains(&image) {
            let sum = calls.entry(path).or_default();
            *sum = sum.saturating_add(one.calls);
        }
    }
    let mut calls: Vec<_> = calls.into_iter().collect();
    calls.sort_by_key(|(_, calls)| Reverse(*calls));
    calls.truncate(FEW);
    calls
}

/// A program image, as tables name it.
type Image<'r> = (u32, &'r str, u32);

/// Lookups, how many of them returned that there is no such file, and the images that made them.
struct Storms<'r> {
    asked: u64,
    vain: u64,
    images: BTreeSet<Image<'r>>,
}

/// The lookups of images that walk no directories.
fn storms<'r>(run: &Run<'r>) -> Storms<'r> {
    let mut by_image: BTreeMap<Image<'r>, [u64; 3]> = BTreeMap::new();
    for call in &run.trace.calls {
        let [asked, vain, listed] = by_image.entry((call.pid, &call.exec, call.image)).or_default();
        if CALLS.contains(&call.syscall.as_str()) {
            *asked = asked.saturating_add(call.calls);
            let not_there =
                ["ENOENT", "ENOTDIR"].iter().filter_map(|kind| call.error_kinds.get(*kind));
            *vain = not_there.fold(*vain, |sum, count| sum.saturating_add(*count));
        } else if ["getdents64", "getdents"].contains(&call.syscall.as_str()) {
            *listed = listed.saturating_add(call.bytes / A_SHORT_ENTRY);
        }
    }
    by_image.retain(|_, [asked, _, listed]| listed.saturating_mul(PER_ENTRY) < *asked);
    let sum =
        |at: usize| by_image.values().fold(0, |sum: u64, counts| sum.saturating_add(counts[at]));
    Storms { asked: sum(0), vain: sum(1), images: by_image.keys().copied().collect() }
}
