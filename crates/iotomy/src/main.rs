//! The command: parses, runs a verb, maps errors to exit codes.

mod cli;
mod config;
mod errors;
mod help;
mod manual;
mod not_utf8;
mod pager;
mod screen;
mod unknown_option;
mod verbs;

use std::ffi::OsString;
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::process::ExitCode;

use clap::CommandFactory;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use iotomy_record::printable;
use iotomy_sys::memory::{Memory, share_one_arena};
use iotomy_sys::stack::with_enough_stack;
use iotomy_sys::startup::was_closed;
use rustix::io::Errno;

use crate::cli::{Cli, ReadError, Verb};
use crate::errors::{COULD_NOT_RUN, print_error};

#[global_allocator]
static MEMORY: Memory = Memory;

fn main() -> ExitCode {
    share_one_arena();
    with_enough_stack(run).unwrap_or_else(|error| {
        // If standard error is closed, nothing can be reported.
        let _ = writeln!(
            io::stderr(),
            "iotomy: cannot allocate a stack: {error}; raise the limit (ulimit -s, -v)"
        );
        ExitCode::from(COULD_NOT_RUN)
    })
}

fn run() -> ExitCode {
    // A limit on file sizes must be an error to report, not the end of iotomy.
    iotomy_sys::signals::ignore_file_size();
    iotomy_sys::signals::heed_sent_keys();
    let cli = match Cli::read() {
        Ok(cli) => cli,
        Err(ReadError::Usage(error)) => return usage(error),
        Err(ReadError::Config(error)) => {
            print_error(&error);
            return ExitCode::from(COULD_NOT_RUN);
        }
    };
    let outcome = match cli.verb {
        Verb::Trace(args) => verbs::trace::run(args),
        Verb::Anatomy(args) => verbs::anatomy::run(&args),
        Verb::Race(args) => verbs::race::run(&args),
        Verb::Copy(args) => verbs::copy::run(&args),
        Verb::Diff(args) => verbs::diff::run(&args),
        Verb::Show(args) => verbs::show::run(&args),
        Verb::Report(args) => verbs::report::run(&args),
        Verb::Limits(args) => verbs::limits::run(&args),
        Verb::Lab(args) => verbs::lab::run(&args),
        Verb::History(args) => verbs::history::run(&args),
        Verb::Export(args) => verbs::export::run(&args),
        Verb::Agent(args) => verbs::agent::run(args),
        Verb::Doctor(args) => verbs::doctor::run(&args),
        Verb::D(args) => verbs::d::run(&args),
        Verb::Ports(args) => verbs::ports::run(&args),
        Verb::Generate(args) => verbs::generate::run(&args, Cli::command(), help::page),
        Verb::Complete(args) => verbs::complete::run(&args, Cli::command()),
    };
    outcome.unwrap_or_else(|error| {
        print_error(&error);
        ExitCode::from(COULD_NOT_RUN)
    })
}

/// Help and version are answers; anything else is an error like every other.
fn usage(mut error: clap::Error) -> ExitCode {
    if matches!(
        error.kind(),
        ErrorKind::DisplayHelp | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand
    ) {
        error = help::help(std::env::args_os()).unwrap_or(error);
    }
    if !error.use_stderr() {
        return match print(&error) {
            Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
                print_error(&anyhow::Error::new(error).context("cannot write to standard output"));
                ExitCode::from(COULD_NOT_RUN)
            }
            _ => ExitCode::SUCCESS,
        };
    }
    let words: Vec<OsString> = std::env::args_os().collect();
    let texts: Vec<String> = words.iter().map(|word| word.to_string_lossy().into_owned()).collect();
    let message = not_utf8::message(&error, &words);
    if let Some(message) = message.or_else(|| unknown_option::message(&error, &texts)) {
        print_error(&anyhow::Error::msg(message));
        return ExitCode::from(COULD_NOT_RUN);
    }
    hide_completion(&mut error);
    escape_words(&mut error);
    let text = error.render().to_string().replacen("error: ", "iotomy: ", 1);
    // A value's own parser may quote the value.
    let text = screen::shown_lines(&text);
    let text = errors::plain(text);
    let _ = io::stderr().write_all(text.as_bytes());
    ExitCode::from(COULD_NOT_RUN)
}

/// Takes the verb that scripts alone use out of the suggestions, which the parser does not.
fn hide_completion(error: &mut clap::Error) {
    let suggested = match error.get(ContextKind::SuggestedSubcommand) {
        Some(ContextValue::Strings(verbs)) => verbs.clone(),
        Some(ContextValue::String(verb)) => vec![verb.clone()],
        _ => return,
    };
    let shown: Vec<String> =
        suggested.into_iter().filter(|verb| verb != verbs::complete::NAME).collect();
    match shown.is_empty() {
        true => error.remove(ContextKind::SuggestedSubcommand),
        false => error.insert(ContextKind::SuggestedSubcommand, ContextValue::Strings(shown)),
    };
}

/// Makes the words of the command line that the error is about safe to print, line ends included.
fn escape_words(error: &mut clap::Error) {
    let unicode = screen::speaks_utf8();
    let words: Vec<(ContextKind, ContextValue)> = error
        .context()
        .filter_map(|(kind, value)| match value {
            ContextValue::String(word) => {
                Some((kind, ContextValue::String(printable(word, unicode))))
            }
            ContextValue::Strings(words) => {
                let words = words.iter().map(|word| printable(word, unicode)).collect();
                Some((kind, ContextValue::Strings(words)))
            }
            _ => None,
        })
        .collect();
    for (kind, value) in words {
        error.insert(kind, value);
    }
}

fn print(answer: &clap::Error) -> io::Result<()> {
    match was_closed(io::stdout().as_fd()) {
        // The standard library would count it as written.
        true => Err(Errno::BADF.into()),
        false if screen::speaks_utf8() && !screen::is_dumb() => answer.print(),
        // The library would colour help for a terminal with an empty TERM, too.
        false => {
            let text = screen::shown_lines(&answer.render().to_string());
            io::stdout().write_all(text.as_bytes()).and_then(|()| io::stdout().flush())
        }
    }
}
