//! The command line: help, man pages and completions are all made from this.

use clap::{Parser, Subcommand};

use crate::verbs;

/// The I/O path laboratory for Linux: where a command's reads, writes and waits spend their time.
#[derive(Debug, Parser)]
#[command(
    name = "iotomy",
    version,
    max_term_width = 100,
    disable_help_subcommand = true,
    after_help = "To begin with:\n  \
                  iotomy doctor\n  \
                  iotomy trace -- ls -lR /usr/share\n  \
                  iotomy race 'dd if=/dev/zero of=f bs=4k count=9999' 'dd if=/dev/zero of=f bs=1M count=39'"
)]
pub(crate) struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub(crate) verb: Verb,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Verb {
    Trace(verbs::trace::TraceArgs),
    Anatomy(verbs::anatomy::AnatomyArgs),
    Race(verbs::race::RaceArgs),
    Copy(verbs::copy::CopyArgs),
    Show(verbs::show::ShowArgs),
    Report(verbs::report::ReportArgs),
    Limits(verbs::limits::LimitsArgs),
    Lab(verbs::lab::LabArgs),
    History(verbs::history::HistoryArgs),
    Doctor(verbs::doctor::DoctorArgs),
    Generate(verbs::generate::GenerateArgs),
}

/// As [`Cli`], with one verb: to build the options of all takes longer than to copy a small file.
#[derive(Debug, Parser)]
#[command(name = "iotomy", max_term_width = 100, disable_help_subcommand = true)]
struct OnlyCopy {
    #[command(subcommand)]
    verb: CopyVerb,
}

#[derive(Debug, Subcommand)]
enum CopyVerb {
    Copy(verbs::copy::CopyArgs),
}

impl Cli {
    /// Reads the command line.
    ///
    /// # Errors
    /// What clap says of it, or help and version, which it has as errors too.
    pub(crate) fn read() -> Result<Self, clap::Error> {
        let mut words = std::env::args_os();
        words.next();
        if words.next().is_some_and(|verb| verb == "copy") {
            if let Some(args) = verbs::copy::CopyArgs::of_names(words) {
                return Ok(Self { verb: Verb::Copy(args) });
            }
            let OnlyCopy { verb: CopyVerb::Copy(args) } = OnlyCopy::try_parse()?;
            return Ok(Self { verb: Verb::Copy(args) });
        }
        Self::try_parse()
    }
}
