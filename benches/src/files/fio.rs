//! What both fio and `iotomy lab run device` can be asked: the time of a request past the page cache, of
//! one at once, on the same file system, one after the other in turns.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};
use iotomy_benches::child::Signals;
use iotomy_benches::run::progress;
use iotomy_record::store;
use serde_json::Value;

/// Turns of each.
const TURNS: usize = 8;

/// The file both read: as large as that of the experiment.
const BYTES: &str = "32M";

/// What both are asked, a figure a turn in ns a request.
pub(crate) struct Agreement {
    pub(crate) name: &'static str,
    pub(crate) iotomy_ns: Vec<f64>,
    pub(crate) fio_ns: Vec<f64>,
}

/// The questions: a name, iotomy's words, fio's words.
const QUESTIONS: [(&str, [&str; 2], [&str; 2]); 2] = [
    (
        "direct random reads of 4 KiB",
        ["way=direct", "pattern=random"],
        ["--direct=1", "--rw=randread"],
    ),
    (
        "direct sequential reads of 4 KiB",
        ["way=direct", "pattern=sequential"],
        ["--direct=1", "--rw=read"],
    ),
];

/// Asks both in turns.
pub(crate) fn agreement(
    iotomy: &Path,
    path: &Path,
    is_quick: bool,
    signals: &Signals,
) -> Result<Vec<Agreement>> {
    let folder = tempfile::Builder::new().prefix("iotomy-bench.").tempdir_in(path);
    let folder = folder.with_context(|| format!("cannot make a folder in {}", path.display()))?;
    let turns = if is_quick { 2 } else { TURNS };
    let mut found = Vec::new();
    for (name, ours, theirs) in QUESTIONS {
        let mut one = Agreement { name, iotomy_ns: Vec::new(), fio_ns: Vec::new() };
        for turn in 0..turns {
            signals.check()?;
            progress(&format!("fio: {name}, turn {} of {turns}", turn + 1));
            // Whoever is first finds the device as the other left it.
            if turn % 2 == 0 {
                one.iotomy_ns.push(by_iotomy(iotomy, folder.path(), ours)?);
            }
            one.fio_ns.push(by_fio(folder.path(), theirs)?);
            if turn % 2 == 1 {
                one.iotomy_ns.push(by_iotomy(iotomy, folder.path(), ours)?);
            }
        }
        found.push(one);
    }
    Ok(found)
}

fn by_iotomy(iotomy: &Path, folder: &Path, axes: [&str; 2]) -> Result<f64> {
    let mut command = Command::new(iotomy);
    command.args(["lab", "run", "device", "-q", "--json", "-", "--max-time", "1.5", "--path"]);
    command.arg(folder).env("XDG_STATE_HOME", folder);
    for axis in axes.iter().chain(&["device=here", "op=read", "block=4096", "depth=1"]) {
        command.args(["-L", axis]);
    }
    let output = command.output().context("cannot run iotomy")?;
    let sweep = store::parse_sweep(&output.stdout)
        .with_context(|| String::from_utf8_lossy(&output.stderr).into_owned())?;
    let case = sweep.cases.first().context("iotomy measured nothing")?;
    // fio tells the mean.
    case.mean.with_context(|| case.skipped.clone().unwrap_or_default())
}

fn by_fio(folder: &Path, options: [&str; 2]) -> Result<f64> {
    let mut command = Command::new("fio");
    command.args(["--name=read", "--ioengine=psync", "--bs=4k", "--output-format=json"]);
    command.args(["--runtime=1.5", "--time_based", "--thread", "--invalidate=1"]);
    command.arg(format!("--size={BYTES}")).args(options);
    let output = command.arg(format!("--directory={}", folder.display())).output();
    let output = output.context("cannot run fio")?;
    if !output.status.success() {
        bail!("fio failed: {}", String::from_utf8_lossy(&output.stderr).trim());
    }
    let told: Value = serde_json::from_slice(&output.stdout).context("fio told no JSON")?;
    let per_second = told["jobs"][0]["read"]["iops"].as_f64().context("fio told no figure")?;
    Ok(1e9 / per_second)
}
