//! `bench prepare`: builds the peers that the benches declare.

use std::path::PathBuf;
use std::process::{Command, ExitCode};

use anyhow::{Context, Result, bail};
use clap::Parser;
use iotomy_benches::child::own_path;
use iotomy_benches::registry::BENCHES;

/// Build the peers of a bench, or of all, into a folder
///
/// In the project's folder: the programs that build them are in scripts/.
#[derive(Debug, Parser)]
pub(crate) struct Args {
    /// The bench, or `all`
    #[arg(value_name = "BENCH", value_parser = BENCHES.iter().map(|bench| bench.name).chain(["all"]).collect::<Vec<_>>())]
    bench: String,

    /// The folder that peers are built in
    #[arg(long, value_name = "FOLDER", default_value = "target/peers")]
    peers: PathBuf,
}

pub(crate) fn prepare(args: &Args) -> Result<ExitCode> {
    let wanted = BENCHES.iter().filter(|bench| ["all", bench.name].contains(&args.bench.as_str()));
    let own = own_path()?;
    // Peers that are built together with this program are copied from this program's directory.
    let beside = own.parent().context("this program is in no folder")?;
    for script in wanted.flat_map(|bench| bench.peers) {
        let path = format!("scripts/{script}");
        let status = Command::new(&path).arg(&args.peers).arg(beside).status();
        let status = status
            .with_context(|| format!("cannot run {path}; this works in the project's folder"))?;
        if !status.success() {
            bail!("{path} ended with {status}");
        }
    }
    Ok(ExitCode::SUCCESS)
}
