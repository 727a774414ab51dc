//! The command line: help, man pages and completions are all made from this.

use clap::{Parser, Subcommand};

use crate::manual::{FAILED, Manual};
use crate::verbs;

pub(crate) const MANUAL: Manual = Manual {
    examples: &[
        ("iotomy doctor", "List what works on this machine:"),
        ("iotomy trace -- ls -lR /usr/share", "Watch what a command asks of the kernel:"),
        (
            "iotomy race 'dd if=/dev/zero of=f bs=4k count=9999' 'dd if=/dev/zero of=f bs=1M count=39'",
            "Race two commands, and see which calls make the difference:",
        ),
    ],
    status: &[
        ("0", "The verb succeeded. `trace` and `anatomy` exit as their command did."),
        ("1", "A check failed, of those that --check and --verify ask for."),
        FAILED,
    ],
    see_also: &["strace(1)", "perf(1)", "bpftrace(8)", "fio(1)"],
};

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
    #[command(name = verbs::complete::NAME, hide = true)]
    Complete(verbs::complete::CompleteArgs),
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
    /// The parser's error, or help and version, which it returns as errors too.
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
