//! The command line: help, man pages and completions are all made from this.

use clap::{Arg, Command, CommandFactory, FromArgMatches, Parser, Subcommand};

use crate::config::{self, Config};
use crate::manual::{FAILED, Manual};
use crate::{pager, verbs};

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
    #[command(flatten)]
    everywhere: EverywhereArgs,

    /// What to do.
    #[command(subcommand)]
    pub(crate) verb: Verb,
}

/// The options of every verb.
#[derive(Debug, Clone, Copy, clap::Args)]
struct EverywhereArgs {
    /// Do not read config.toml
    #[arg(long, global = true, display_order = 1_000)]
    no_config: bool,

    /// Print long texts to the terminal without a pager
    #[arg(long, global = true, display_order = 1_000)]
    no_pager: bool,
}

impl EverywhereArgs {
    const NONE: Self = Self { no_config: false, no_pager: false };

    fn follow(self) {
        if self.no_pager {
            pager::turn_off();
        }
    }
}

#[derive(Debug, Subcommand)]
pub(crate) enum Verb {
    Trace(verbs::trace::TraceArgs),
    Anatomy(verbs::anatomy::AnatomyArgs),
    Race(verbs::race::RaceArgs),
    Copy(verbs::copy::CopyArgs),
    Diff(verbs::diff::DiffArgs),
    Show(verbs::show::ShowArgs),
    Report(verbs::report::ReportArgs),
    Limits(verbs::limits::LimitsArgs),
    Lab(verbs::lab::LabArgs),
    History(verbs::history::HistoryArgs),
    Export(verbs::export::ExportArgs),
    Agent(verbs::agent::AgentArgs),
    Doctor(verbs::doctor::DoctorArgs),
    D(verbs::d::DArgs),
    Ports(verbs::ports::PortsArgs),
    Generate(verbs::generate::GenerateArgs),
    #[command(name = verbs::complete::NAME, hide = true)]
    Complete(verbs::complete::CompleteArgs),
}

/// As [`Cli`], with one verb: to build the options of all takes longer than to copy a small file.
#[derive(Debug, Parser)]
#[command(name = "iotomy", max_term_width = 100, disable_help_subcommand = true)]
struct OnlyCopy {
    #[command(flatten)]
    everywhere: EverywhereArgs,

    #[command(subcommand)]
    verb: CopyVerb,
}

#[derive(Debug, Subcommand)]
enum CopyVerb {
    Copy(verbs::copy::CopyArgs),
}

/// Why there is no command line to follow.
#[derive(Debug)]
pub(crate) enum ReadError {
    /// The parser's error, or help and version, which it returns as errors too.
    Usage(clap::Error),
    /// The configuration.
    Config(anyhow::Error),
}

impl Cli {
    /// Reads the command line, with the defaults of the configuration.
    pub(crate) fn read() -> Result<Self, ReadError> {
        let mut words = std::env::args_os();
        words.next();
        if words.next().is_none_or(|verb| verb != "copy") {
            let cli = parse::<Self>(|cli| cli.everywhere)?;
            cli.everywhere.follow();
            return Ok(cli);
        }
        let is_plain = || Config::read().is_ok_and(|config| config.is_without("copy"));
        if let Some(args) = verbs::copy::CopyArgs::of_names(words).filter(|_| is_plain()) {
            return Ok(Self { everywhere: EverywhereArgs::NONE, verb: Verb::Copy(args) });
        }
        let OnlyCopy { verb: CopyVerb::Copy(args), everywhere } =
            parse::<OnlyCopy>(|cli| cli.everywhere)?;
        everywhere.follow();
        Ok(Self { everywhere, verb: Verb::Copy(args) })
    }
}

/// Has a negative number behind an option be its value, of which the option then says what it expects. Otherwise it
/// would be taken for an option.
fn numbers_as_values(command: Command) -> Command {
    let is_option = |arg: &Arg| !arg.is_positional() && arg.get_action().takes_values();
    command
        .mut_args(|arg| if is_option(&arg) { arg.allow_negative_numbers(true) } else { arg })
        .mut_subcommands(numbers_as_values)
}

/// Parses the words of the command line, and once more with defaults where the configuration has some.
fn parse<C: CommandFactory + FromArgMatches>(
    everywhere: fn(&C) -> EverywhereArgs,
) -> Result<C, ReadError> {
    let of = |matches: &clap::ArgMatches, command: &mut clap::Command| {
        C::from_arg_matches(matches).map_err(|error| ReadError::Usage(error.format(command)))
    };
    let mut command = numbers_as_values(C::command());
    let given = command.try_get_matches_from_mut(std::env::args_os()).map_err(ReadError::Usage)?;
    let cli = of(&given, &mut command)?;
    // Completion is not a run: it has no options, and a mistake in a file must not show up in it.
    let is_completion = given.subcommand_name() == Some(verbs::complete::NAME);
    if everywhere(&cli).no_config || is_completion {
        return Ok(cli);
    }
    let config = Config::read().map_err(ReadError::Config)?;
    if config.is_empty() {
        return Ok(cli);
    }
    let settings = config.settings(Cli::command(), verbs::complete::chooses_subject);
    let settings = settings.map_err(ReadError::Config)?;
    config::follow(&settings);
    let Some(mut command) =
        config::with_defaults(&command, numbers_as_values(C::command()), &given, &settings)
    else {
        return Ok(cli);
    };
    let given = command.try_get_matches_from_mut(std::env::args_os()).map_err(ReadError::Usage)?;
    of(&given, &mut command)
}
