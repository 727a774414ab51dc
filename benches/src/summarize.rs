//! `bench summary`: writes the figures of the raw records onto the page of each run and into the guide's tables.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::Parser;
use iotomy_benches::summary::documents::{Document, guide, pages};

/// Write the page of each run, and the tables between marks in docs/, from the raw records
///
/// Nothing is measured. The tables are those of the newest run that has records of every bench.
#[derive(Debug, Parser)]
pub(crate) struct Args {
    /// The project's folder, which has docs/ and results/
    #[arg(long, value_name = "FOLDER", default_value = ".")]
    root: PathBuf,

    /// Only the pages of the runs below this folder
    #[arg(long, value_name = "FOLDER")]
    results: Option<PathBuf>,

    /// Write nothing, and leave with status 1 when a document says something else than the records
    #[arg(long)]
    check: bool,
}

pub(crate) fn summary(args: &Args) -> Result<ExitCode> {
    let documents = match &args.results {
        Some(results) => pages(results)?,
        None => everything(&args.root)?,
    };
    let stale: Vec<&Document> =
        documents.iter().filter(|document| !document.is_current()).collect();
    for document in &stale {
        let path = document.path.display();
        if args.check {
            eprintln!("{path} says something else than the raw records, {}", document.difference());
        } else {
            document.write().with_context(|| format!("cannot write {path}"))?;
            println!("wrote {path}");
        }
    }
    if args.check && !stale.is_empty() {
        eprintln!("try: make bench-summary");
        return Ok(ExitCode::from(1));
    }
    Ok(ExitCode::SUCCESS)
}

/// Returns the pages first, because the guide's tables link to them.
fn everything(root: &Path) -> Result<Vec<Document>> {
    let mut documents = pages(&root.join("results"))?;
    documents.extend(guide(root)?);
    Ok(documents)
}
