//! `iotomy generate`: man pages and shell completions, made from the command line's declaration.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::{Command, CommandFactory, ValueEnum};
use clap_complete::{Generator, Shell};
use iotomy_record::store::OutputFile;

use super::outputs;
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
            let mut command = Cli::command().disable_help_subcommand(true);
            command.build();
            pages(&command, folder)?;
        }
        What::Completions => {
            for shell in Shell::value_variants() {
                let mut text = Vec::new();
                clap_complete::generate(*shell, &mut Cli::command(), "iotomy", &mut text);
                put(folder, &shell.file_name("iotomy"), &text)?;
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// A page for a command and each of those below it.
fn pages(command: &Command, folder: &Path) -> Result<()> {
    for below in command.get_subcommands().filter(|below| !below.is_hide_set()) {
        pages(below, folder)?;
    }
    let page = clap_mangen::Man::new(command.clone());
    let mut text = Vec::new();
    page.render(&mut text).context("cannot make a man page")?;
    put(folder, &page.get_filename(), &text)
}

fn put(folder: &Path, name: &str, text: &[u8]) -> Result<()> {
    Ok(OutputFile::write(&folder.join(name), &outputs::here(), text)?)
}
