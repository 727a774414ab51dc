//! `iotomy-export`: parses the command line, and exports record by record.

use std::ffi::OsString;
use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::Parser;
use clap::builder::NonEmptyStringValueParser;
use iotomy_export::{DataSet, Exported, Source, TABLES, sources};
use iotomy_host::speaks_utf8;
use iotomy_record::{message, one_line};

/// Some records were not exported.
const NOT_ALL: u8 = 1;

/// The command line is wrong, or the data set cannot be written.
const COULD_NOT_RUN: u8 = 2;

/// Write records as Parquet data sets: the program that `iotomy export` becomes, whose help explains the options
#[derive(Debug, Parser)]
#[command(name = "iotomy-export", version, max_term_width = 100)]
struct Args {
    /// The directory of the data set
    #[arg(long, value_name = "DIR", required = true)]
    parquet: PathBuf,

    /// The machine of the records, instead of the name in each
    #[arg(long, value_name = "NAME", value_parser = NonEmptyStringValueParser::new())]
    machine: Option<String>,

    /// The records: files, `-`, and runs of the history
    #[arg(value_name = "RECORD", required = true)]
    records: Vec<OsString>,
}

fn main() -> ExitCode {
    // A limit on file sizes must be an error to report, not the end.
    iotomy_sys::signals::ignore_file_size();
    let args = match Args::try_parse() {
        Ok(args) => args,
        Err(error) => return usage(&error),
    };
    run(&args).unwrap_or_else(|error| {
        print_error(&one_line(error.as_ref()));
        ExitCode::from(COULD_NOT_RUN)
    })
}

/// Help and version are answers; anything else is an error like every other.
fn usage(error: &clap::Error) -> ExitCode {
    if !error.use_stderr() {
        return match error.print() {
            Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
                print_error(&format!("cannot write to standard output: {error}"));
                ExitCode::from(COULD_NOT_RUN)
            }
            _ => ExitCode::SUCCESS,
        };
    }
    let text = error.render().to_string().replacen("error: ", "iotomy: ", 1);
    // If standard error is closed, nothing can be reported.
    let _ = io::stderr().write_all(iotomy_record::lines(&text, speaks_utf8()).as_bytes());
    ExitCode::from(COULD_NOT_RUN)
}

fn print_error(text: &str) {
    let _ = writeln!(io::stderr(), "iotomy: {}", message(text, speaks_utf8()));
}

fn run(args: &Args) -> Result<ExitCode> {
    if args.records.iter().filter(|word| *word == "-").count() > 1 {
        anyhow::bail!("cannot read two records from standard input: name the files");
    }
    let data_set = DataSet::new(&args.parquet);
    let (mut exported, mut failed, mut rows) = (0u64, 0u64, 0u64);
    for word in &args.records {
        let found = match sources(word) {
            Ok(found) => found,
            Err(error) => {
                print_error(&one_line(error.as_ref()));
                failed += 1;
                continue;
            }
        };
        for source in found {
            match one(&source, args, &data_set)? {
                Some(more) => (exported, rows) = (exported + 1, rows + more),
                None => failed += 1,
            }
        }
    }
    let of = if failed > 0 { format!(" of {}", exported + failed) } else { String::new() };
    let text = format!(
        "exported {exported}{of} records, {rows} rows in {} tables, to {}",
        TABLES.len(),
        iotomy_record::path_text(&args.parquet)
    );
    print_error(&text);
    Ok(if failed > 0 { ExitCode::from(NOT_ALL) } else { ExitCode::SUCCESS })
}

/// Exports a record, and returns the number of its rows; `None` if it cannot be.
///
/// # Errors
/// The data set cannot be written.
fn one(source: &Source, args: &Args, data_set: &DataSet) -> Result<Option<u64>> {
    let refused = |text: String| {
        print_error(&text);
        Ok(None)
    };
    let (record, bytes) = match source.load() {
        Ok(loaded) => loaded,
        Err(error) => return refused(one_line(error.as_ref())),
    };
    let name = source.name();
    let exported = match Exported::new(record, &bytes, args.machine.as_deref()) {
        Ok(exported) => exported,
        Err(why) => return refused(format!("cannot export {name}: {why}")),
    };
    match data_set.add(&exported) {
        Ok(rows) => Ok(Some(rows)),
        Err(error) if error.is_of_record() => refused(format!("cannot export {name}: {error}")),
        Err(error) => Err(error).with_context(|| format!("cannot export {name}")),
    }
}
