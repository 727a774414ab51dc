//! The page of a run: a table of the target verdicts, and one table of ratios per bench.

use std::fmt::Write as _;

use iotomy_record::{ClaimVerdict, Machine};

use crate::registry::durations;
use crate::summary::Row;
use crate::summary::kept::{KeptBench, Run};
use crate::tables::table;

/// Formats the whole page.
pub fn page(run: &Run) -> String {
    let mut text = format!("# Every bench of {}\n\n", run.name);
    let machines =
        run.benches.iter().flat_map(|kept| &kept.raws).map(|raw| machine(&raw.sweep.machine));
    let mut machines: Vec<String> = machines.collect();
    machines.sort();
    machines.dedup();
    for machine in machines {
        let _ = writeln!(text, "- machine: {machine}");
    }
    let lacks = run.lacks();
    if !lacks.is_empty() {
        let _ = writeln!(text, "- not run: {}", lacks.join(", "));
    }
    let _ = writeln!(
        text,
        "\n{}",
        counts(run.benches.iter().map(|kept| (kept, String::new()))).trim_end()
    );
    for kept in &run.benches {
        let _ = write!(text, "\n{}", section(kept));
    }
    let _ = write!(
        text,
        "\n## How this page is made\n\n`make bench` runs every bench, {}, and writes this page; `make bench-summary` \
         writes it anew from the raw records. {RULE}",
        durations(run.benches.iter().map(|kept| kept.bench))
    );
    text
}

const RULE: &str = "A bench's own `raw.json` counts, or, where it was run in parts, \
every `raw-NAME.json` in its folder, and of what was measured in two parts the later; records in further folders \
do not.\n\nA figure is the median of ratios within blocks of runs, with an interval of order statistics of at least \
95 %, or what its row says. A target is \"met\" when all of the interval is inside the bound, \"missed\" when all of it is \
outside, and \"undecided\" when it reaches across or nothing could be judged; an aim is wanted, and no target. Rows without a target are other \
peers in the same run.\n";

fn machine(machine: &Machine) -> String {
    let Machine { kernel, cpu, cpus, memory_bytes, virtualization, .. } = machine;
    let gib = *memory_bytes as f64 / f64::from(1 << 30);
    format!("{cpus} × {cpu}, {gib:.1} GiB, {virtualization}; {kernel}")
}

/// Formats a table of the targets that each bench met, with the path to the directory of its run.
pub fn counts<'a>(benches: impl Iterator<Item = (&'a KeptBench, String)>) -> String {
    let titles = ["bench", "what", "targets met", "undecided", "missed", "started"];
    let mut lines = vec![titles.map(str::to_owned).to_vec()];
    for (kept, run) in benches {
        let rows = kept.rows();
        let count = |verdict| {
            let is_it = |row: &&Row| row.verdict == Some(verdict) && !row.is_aim;
            rows.iter().filter(is_it).count().to_string()
        };
        lines.push(vec![
            format!("[{0}]({run}{0}/README.md)", kept.bench.name),
            kept.bench.title.to_owned(),
            count(ClaimVerdict::Holds),
            count(ClaimVerdict::Inconclusive),
            count(ClaimVerdict::Fails),
            minute(&kept.raws[0].sweep.started),
        ]);
    }
    table(&lines, 2)
}

/// Formats a time like `2026-11-21T17:52:33.798Z` to the minute.
fn minute(started: &str) -> String {
    started.get(..16).map_or_else(|| started.to_owned(), |text| text.replace('T', " "))
}

fn section(kept: &KeptBench) -> String {
    let titles = ["what", "beside", "found [95 %]", "target", "verdict", "record"];
    let mut lines = vec![titles.map(str::to_owned).to_vec()];
    for row in kept.rows() {
        let name = row.record.rsplit('/').next().unwrap_or_default();
        lines.push(vec![
            row.what.replace('|', "\\|"),
            row.peer.clone(),
            row.found.clone(),
            row.bound.clone(),
            row.verdict_text(),
            if name.is_empty() { String::new() } else { format!("[{name}]({})", row.record) },
        ]);
    }
    let mut text = format!("## {}: {}\n\n", kept.bench.name, kept.bench.title);
    text += &table(&lines, 6);
    for raw in &kept.raws {
        for case in raw.sweep.cases.iter() {
            if let Some(reason) = &case.skipped {
                let names: Vec<String> = case.params.values().map(ToString::to_string).collect();
                let _ = writeln!(text, "\nnot measured: {}: {reason}", names.join(", "));
            }
        }
    }
    text
}
