//! `iotomy generate`: man pages and shell completions, made from the command line's declaration.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::{CommandFactory, ValueEnum};
use clap_complete::Shell;

use crate::cli::Cli;

/// Write man pages or shell completions
#[derive(Debug, clap::Args)]
pub(crate) struct GenerateArgs {
    /// What to write
    #[arg(value_enum)]
    what: What,

    /// The folder to write into; it is made where there is none
    #[arg(value_name = "DIR")]
    folder: PathBuf,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum What {
    /// A man page for iotomy and one for each verb.
    Man,
    /// Completions for bash, elvish, fish, powershell and zsh.
    Completions,
}

/// Writes the files.
pub(crate) fn run(args: &GenerateArgs) -> Result<ExitCode> {
    let folder = &args.folder;
    fs::create_dir_all(folder).with_context(|| {
        format!("cannot make the folder {}; name one that you may write to", folder.display())
    })?;
    match args.what {
        What::Man => {
            clap_mangen::generate_to(Cli::command(), folder).with_context(|| into(folder))?;
        }
        What::Completions => {
            for shell in Shell::value_variants() {
                clap_complete::generate_to(*shell, &mut Cli::command(), "iotomy", folder)
                    .with_context(|| into(folder))?;
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn into(folder: &Path) -> String {
    format!("cannot write into {}; name a folder that you may write to", folder.display())
}
