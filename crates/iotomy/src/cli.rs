//! The command line: help, man pages and completions are all made from this.

use clap::{Parser, Subcommand};

use crate::verbs;

/// The I/O path laboratory for Linux: where a command's reads, writes and waits spend their time.
#[derive(Debug, Parser)]
#[command(name = "iotomy", version, max_term_width = 100, disable_help_subcommand = true)]
pub(crate) struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub(crate) verb: Verb,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Verb {
    Trace(verbs::trace::TraceArgs),
    Race(verbs::race::RaceArgs),
    Show(verbs::show::ShowArgs),
    Doctor(verbs::doctor::DoctorArgs),
    Generate(verbs::generate::GenerateArgs),
}
