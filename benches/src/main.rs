//! `bench NAME`: runs one bench, or `all`; `summary` reports on the records, and `prepare` builds the peers.

mod all;
mod prepare;
mod summarize;

use std::ffi::OsString;
use std::process::ExitCode;

use anyhow::Result;
use clap::{ArgMatches, Command, CommandFactory, FromArgMatches};
use iotomy_benches::child::{GUARD, guard};
use iotomy_benches::registry::BENCHES;
use iotomy_benches::run::ended;
use iotomy_benches::{READS, make_reads};

fn main() -> ExitCode {
    let mut words = std::env::args_os().skip(1);
    let word = words.next().unwrap_or_default();
    if word == GUARD || word == READS {
        let argv: Vec<OsString> = words.collect();
        let made = if word == GUARD { guard(&argv) } else { make_reads(&argv) };
        return ended("bench", made.map(|()| ExitCode::SUCCESS));
    }
    let matches = command().get_matches();
    let (name, matches) = matches.subcommand().expect("clap asks for one");
    ended(&format!("bench-{name}"), run(name, matches))
}

fn command() -> Command {
    let benches = BENCHES.iter().map(|bench| (bench.command)().name(bench.name));
    Command::new("bench")
        .version(env!("CARGO_PKG_VERSION"))
        .about("Iotomy beside its peers, in one run")
        .subcommand_required(true)
        .arg_required_else_help(true)
        .subcommands(benches)
        .subcommand(all::Args::command().name("all"))
        .subcommand(summarize::Args::command().name("summary"))
        .subcommand(prepare::Args::command().name("prepare"))
}

fn run(name: &str, matches: &ArgMatches) -> Result<ExitCode> {
    match name {
        "all" => all::all(&all::Args::from_arg_matches(matches)?),
        "summary" => summarize::summary(&summarize::Args::from_arg_matches(matches)?),
        "prepare" => prepare::prepare(&prepare::Args::from_arg_matches(matches)?),
        _ => {
            let bench = BENCHES.iter().find(|bench| bench.name == name);
            (bench.expect("clap knows these and the benches").run)(matches)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_every_bench_can_be_told_is_sound() {
        command().debug_assert();
    }
}
