//! The raw records that are kept, and which of them count.
//!
//! The directory of a run is `DATE-MACHINE`, that of a bench is in it. The bench's own `raw.json`
//! counts; where there is none, it was run in parts, and every `raw-NAME.json` counts. A figure
//! that was measured in two parts counts as in the later. Records in further directories (a run on
//! a busy machine, a sweep of movers) and of other names are evidence for the text beside them, and
//! do not count.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use iotomy_record::{Claim, Sweep};

use crate::bench::Bench;
use crate::registry::BENCHES;
use crate::summary::raw::Raw;
use crate::summary::{Row, judged_anew};

/// The kept results of a bench.
pub struct KeptBench {
    /// The bench.
    pub bench: &'static Bench,
    /// Its records that count, the earliest first; at least one.
    pub raws: Vec<Raw>,
}

/// The kept results of a run.
pub struct Run {
    /// Its folder.
    pub path: PathBuf,
    /// The folder's name.
    pub name: String,
    /// The benches it has records of.
    pub benches: Vec<KeptBench>,
}

impl KeptBench {
    /// Every row, those of the whole at the end.
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
    /// Whether it has records of every bench; the names of those it has none of.
    pub fn lacks(&self) -> Vec<&'static str> {
        let is_here =
            |bench: &&Bench| self.benches.iter().any(|kept| kept.bench.name == bench.name);
        BENCHES.iter().filter(|bench| !is_here(bench)).map(|bench| bench.name).collect()
    }

    /// When the last of its records was begun.
    pub fn last_started(&self) -> &str {
        let raws = self.benches.iter().flat_map(|kept| &kept.raws);
        raws.map(|raw| raw.sweep.started.as_str()).max().unwrap_or_default()
    }
}

/// The runs in a folder that have a record of a bench, by name.
///
/// # Errors
/// When a folder cannot be read or a record is damaged.
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

/// The newest run that has records of every bench.
///
/// # Errors
/// When there is none: which benches the one that has most lacks.
pub fn newest_full(runs: &[Run]) -> Result<&Run> {
    let full = runs.iter().filter(|run| run.lacks().is_empty());
    full.max_by_key(|run| run.last_started()).with_context(|| {
        let best = runs.iter().min_by_key(|run| run.lacks().len());
        let lacks = best.map_or_else(String::new, |run| {
            format!(" ({} lacks {})", run.name, run.lacks().join(", "))
        });
        format!("no folder of results has a raw record of every bench{lacks}; run `make bench`")
    })
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

/// Not by the store, which is for experiments: a bench names a case by more than the axes.
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
    // Claims of experiments name an article by number; they are judged by the experiments.
    let is_target = |claim: &Claim| !claim.source.bytes().all(|letter| letter.is_ascii_digit());
    sweep.claims = sweep
        .claims
        .into_iter()
        .map(|claim| if is_target(&claim) { judged_anew(claim) } else { claim })
        .collect();
    Ok(sweep)
}

/// The names in a directory, sorted.
fn names_in(folder: &Path) -> Result<Vec<String>> {
    let place = || format!("cannot read the folder {}", folder.display());
    let mut names = Vec::new();
    for entry in fs::read_dir(folder).with_context(place)? {
        names.push(entry.with_context(place)?.file_name().to_string_lossy().into_owned());
    }
    names.sort();
    Ok(names)
}
