//! The stored raw records, and the selection of those that count.
//!
//! The directory of a run is `DATE-MACHINE`; it contains a directory for each bench. The bench's
//! own `raw.json` counts; if there is none, the bench was run in parts, and every `raw-NAME.json`
//! counts. If a figure was measured in two parts, the later one counts. Records in further
//! directories (a run on a busy machine, a sweep of movers) and with other names are evidence for
//! the text beside them, and do not count.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use iotomy_record::{Claim, Sweep};

use crate::bench::Bench;
use crate::registry::BENCHES;
use crate::summary::raw::Raw;
use crate::summary::{Row, judged_anew};

/// The stored results of a bench.
pub struct KeptBench {
    /// The bench.
    pub bench: &'static Bench,
    /// Its records that count, earliest first; at least one.
    pub raws: Vec<Raw>,
}

/// The stored results of a run.
pub struct Run {
    /// Its directory.
    pub path: PathBuf,
    /// The name of the directory.
    pub name: String,
    /// The benches with records in this run.
    pub benches: Vec<KeptBench>,
}

impl KeptBench {
    /// Returns the time at which the last of its records was started.
    pub fn started(&self) -> &str {
        self.raws.iter().map(|raw| raw.sweep.started.as_str()).max().unwrap_or_default()
    }

    /// Returns every row; the overall rows are at the end.
    pub fn rows(&self) -> Vec<Row> {
        let mut rows: Vec<Row> = Vec::new();
        for raw in &self.raws {
            let new = (self.bench.rows)(raw);
            rows.retain(|row| new.iter().all(|later| later.what != row.what));
            rows.extend(new);
        }
        let overall = (self.bench.overall)(&rows);
        rows.extend(overall);
        rows
    }
}

impl Run {
    /// Returns the names of the benches without records; empty if the run is complete.
    pub fn lacks(&self) -> Vec<&'static str> {
        let is_here =
            |bench: &&Bench| self.benches.iter().any(|kept| kept.bench.name == bench.name);
        BENCHES.iter().filter(|bench| !is_here(bench)).map(|bench| bench.name).collect()
    }
}

/// Returns the runs in a directory that have a record of a bench, by name.
///
/// # Errors
/// When a directory cannot be read or a record is damaged.
pub fn runs(results: &Path) -> Result<Vec<Run>> {
    let mut runs = Vec::new();
    for name in names_in(results)? {
        let path = results.join(&name);
        let mut benches = Vec::new();
        for bench in BENCHES {
            let raws = raws(&path, bench.name)?;
            if !raws.is_empty() {
                benches.push(KeptBench { bench, raws });
            }
        }
        if !benches.is_empty() {
            runs.push(Run { path, name, benches });
        }
    }
    Ok(runs)
}

/// Returns the newest run of each bench, in the order of the registry.
///
/// # Errors
/// When there is none of a bench.
pub fn newest(runs: &[Run]) -> Result<Vec<(&Run, &KeptBench)>> {
    let newest = BENCHES.iter().map(|bench| {
        let kept = runs.iter().flat_map(|run| run.benches.iter().map(move |kept| (run, kept)));
        kept.filter(|(_, kept)| kept.bench.name == bench.name)
            .max_by_key(|(_, kept)| kept.started())
            .with_context(|| format!("no directory of results has a raw record of the bench {0}; run `make bench-{0}`", bench.name))
    });
    newest.collect()
}

fn raws(run: &Path, bench: &str) -> Result<Vec<Raw>> {
    let folder = run.join(bench);
    if !folder.is_dir() {
        return Ok(Vec::new());
    }
    let is_part = |name: &String| name.starts_with("raw-") && name.ends_with(".json");
    let names = names_in(&folder)?;
    let counted: Vec<String> = match names.iter().find(|name| *name == "raw.json") {
        Some(whole) => vec![whole.clone()],
        None => names.into_iter().filter(is_part).collect(),
    };
    let raw = |name: String| {
        let sweep = load(&folder.join(&name))?;
        Ok(Raw { path: format!("{bench}/{name}"), sweep })
    };
    let mut raws = counted.into_iter().map(raw).collect::<Result<Vec<Raw>>>()?;
    raws.sort_by(|a, b| a.sweep.started.cmp(&b.sweep.started));
    Ok(raws)
}

/// Loads a record, without the store, which is for experiments: a bench identifies a case by more
/// than the axes.
fn load(path: &Path) -> Result<Sweep> {
    let bytes = fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
    let mut sweep: Sweep = serde_json::from_slice(&bytes)
        .with_context(|| format!("{} is no raw record of a bench", path.display()))?;
    ensure!(
        sweep.schema == Sweep::SCHEMA,
        "{} has the schema {}, and a raw record of a bench has {}",
        path.display(),
        sweep.schema,
        Sweep::SCHEMA
    );
    // Claims of experiments refer to an article by number; the experiments judge them.
    let is_target = |claim: &Claim| !claim.source.bytes().all(|letter| letter.is_ascii_digit());
    sweep.claims = sweep
        .claims
        .into_iter()
        .map(|claim| if is_target(&claim) { judged_anew(claim) } else { claim })
        .collect();
    Ok(sweep)
}

/// Returns the names in a directory, sorted.
fn names_in(folder: &Path) -> Result<Vec<String>> {
    let place = || format!("cannot read the folder {}", folder.display());
    let mut names = Vec::new();
    for entry in fs::read_dir(folder).with_context(place)? {
        names.push(entry.with_context(place)?.file_name().to_string_lossy().into_owned());
    }
    names.sort();
    Ok(names)
}
