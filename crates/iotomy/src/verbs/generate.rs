//! `iotomy generate`: man pages and shell completions, made from the command line's declaration.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::{Command, ValueEnum};
use clap_complete::{Generator, Shell};
use iotomy_record::store::OutputFile;

use super::{complete, outputs};
use crate::manual::{self, DONE, FAILED, Manual};
use crate::screen::path_text;

pub(crate) const MANUAL: Manual = Manual {
    examples: &[
        ("iotomy generate man ~/.local/share/man/man1", "Install the man pages for one user:"),
        (
            "iotomy generate completions completions\nsource completions/iotomy.bash",
            "Let this bash complete iotomy's command lines:",
        ),
    ],
    status: &[DONE, FAILED],
    see_also: &["man(1)", "bash(1)", "zshcompsys(1)", "fish-completions(1)"],
};

/// Write man pages or shell completions
#[derive(Debug, clap::Args)]
pub(crate) struct GenerateArgs {
    /// What to write
    #[arg(value_enum)]
    what: Generated,

    /// The directory to write to; created if it does not exist
    #[arg(value_name = "DIR")]
    folder: PathBuf,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Generated {
    /// A man page for iotomy and one for each verb.
    Man,
    /// Completions for bash, elvish, fish, powershell and zsh.
    Completions,
}

/// Makes the page of a command: its declaration, the name of its manual, and the pages above it.
pub(crate) type Page = fn(&Command, &str, &[String]) -> String;

/// Writes the files of the whole command line.
pub(crate) fn run(args: &GenerateArgs, command: Command, page: Page) -> Result<ExitCode> {
    let folder = &args.folder;
    fs::create_dir_all(folder).with_context(|| {
        format!("cannot create the directory {}; name one that you may write to", path_text(folder))
    })?;
    let mut command = command.disable_help_subcommand(true);
    command.build();
    match args.what {
        Generated::Man => pages(&command, "", &[], (page, folder))?,
        Generated::Completions => {
            for (name, script) in complete::SCRIPTS {
                put(folder, name, script.as_bytes())?;
            }
            // For these shells, only the declaration of the command line, without hidden parts.
            let shown = command.get_subcommands().filter(|verb| !verb.is_hide_set()).cloned();
            let mut shown = Command::new("iotomy")
                .version(env!("CARGO_PKG_VERSION"))
                .disable_help_subcommand(true)
                .subcommands(shown);
            for shell in [Shell::Elvish, Shell::PowerShell] {
                let mut text = Vec::new();
                clap_complete::generate(shell, &mut shown, "iotomy", &mut text);
                put(folder, &shell.file_name("iotomy"), &text)?;
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// A page for a command, whose manual is declared under `name`, and for each of its subcommands.
fn pages(
    command: &Command,
    name: &str,
    above: &[String],
    (page, folder): (Page, &Path),
) -> Result<()> {
    let title = command.get_display_name().unwrap_or_else(|| command.get_name()).to_owned();
    put(folder, &format!("{title}.1"), page(command, name, above).as_bytes())?;
    let family = [above, &[title]].concat();
    for one in command.get_subcommands().filter(|one| !one.is_hide_set()) {
        pages(one, &manual::below(name, one), &family, (page, folder))?;
    }
    Ok(())
}

fn put(folder: &Path, name: &str, text: &[u8]) -> Result<()> {
    Ok(OutputFile::write(&folder.join(name), &outputs::here(), text)?)
}
