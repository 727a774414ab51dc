//! Asking after files more than doing anything with them.

use std::collections::BTreeMap;

use iotomy_record::Verdict;
use iotomy_record::numbers::{share, thousands};
use serde_json::json;

use crate::finding::{Declaration, Rule, UnnamedFinding};
use crate::run::Run;

pub(crate) static DECLARATION: Declaration = Declaration {
    id: "stat-storm",
    verdict: Verdict::Note,
    summary: "most calls only query file metadata",
    description: "At least 1,000 calls of stat, access, readlink and similar, and at least half \
        of all calls. The finding has the number that found no file; the record does not show \
        whether they are needed. The rule excludes programs that read directories with perhaps a \
        fourth as many entries: a walk over files (find, du, ls -l, tar) queries each.",
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
    let (asked, vain) = storms(run);
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
    let evidence = [("asked", json!(asked)), ("not_there", json!(vain)), ("calls", json!(all))];
    let advice = "list the paths: strace -f -e trace=%file";
    Some(UnnamedFinding::new(text, evidence).advise(advice))
}

/// The lookups of images that walk no directories, and how many of these returned that there is no
/// such file.
fn storms(run: &Run<'_>) -> (u64, u64) {
    let mut by_image: BTreeMap<(u32, &str, u32), [u64; 3]> = BTreeMap::new();
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
    let storms = by_image
        .into_values()
        .filter(|[asked, _, listed]| listed.saturating_mul(PER_ENTRY) < *asked);
    storms.fold((0, 0), |(all, in_vain): (u64, u64), [asked, vain, _]| {
        (all.saturating_add(asked), in_vain.saturating_add(vain))
    })
}
