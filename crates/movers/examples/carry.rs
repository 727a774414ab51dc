//! `carry [OPTION…] MOVER SOURCE TARGET [COUNT]`: one run of one mover, told in one line on stderr,
//! for tests that watch or disturb its calls from outside, and for benches that compare movers. `-`
//! is stdin or stdout.
//!
//! The line: `done BYTES`, `refused CALL` or `failed CALL MOVED LOST ERRNO`, then the positions of
//! source and target, or `-` where there is none.
//!
//! Options, each in one word: `--block-size=N`, `--depth=N`, `--threads=N`, `--by-value`,
//! `--reflink=never`, `--populate`, `--huge-pages`, and `--run`, which runs the mover as the
//! chooser would. The mover `auto` is the chooser's own choice. With these two a refusal or a
//! failure is exit status 2.

use std::fs::{File, OpenOptions};
use std::os::fd::OwnedFd;
use std::process::ExitCode;
use std::sync::atomic::AtomicU64;

use iotomy_movers::{End, Job, Outcome, Reflink, chooser};

type Error = Box<dyn std::error::Error>;

fn main() -> ExitCode {
    match run() {
        Ok(line) => {
            eprintln!("{line}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("carry: {error}");
            ExitCode::from(2)
        }
    }
}

fn run() -> Result<String, Error> {
    let (options, words): (Vec<String>, Vec<String>) =
        std::env::args().skip(1).partition(|word| word.starts_with("--"));
    let mut words = words.into_iter();
    let mut next = || words.next().ok_or("usage: carry MOVER SOURCE TARGET [COUNT]");
    let (name, source, target) = (next()?, next()?, next()?);
    let count = words.next().map(|count| count.parse()).transpose()?;

    let source = match source.as_str() {
        "-" => rustix::io::dup(rustix::stdio::stdin())?,
        path => OwnedFd::from(File::open(path)?),
    };
    let target = match target.as_str() {
        "-" => rustix::io::dup(rustix::stdio::stdout())?,
        path => OpenOptions::new().write(true).create(true).truncate(false).open(path)?.into(),
    };
    let (from, to) = (End::of(&source)?, End::of(&target)?);
    let progress = AtomicU64::new(0);
    let mut job = Job { count, ..Job::new(&progress) };
    let chosen = obey(&options, &mut job)?;
    if name == "auto" || chosen {
        return by_plan(&name, &from, &to, &job);
    }
    if options.is_empty() {
        job.block_size = 64 * 1024;
    }
    let mover = iotomy_movers::mover(&name).ok_or("no such mover")?;
    mover.serves(&from, &to, &job)?;
    let outcome = match mover.run(&from, &to, &job) {
        Ok(Outcome::Done(moved)) => format!("done {}", moved.bytes),
        Ok(Outcome::Refused { call, .. }) => format!("refused {call}"),
        Err(e) => {
            let errno = e.source.raw_os_error().unwrap_or(0);
            format!("failed {} {} {} {errno}", e.call, e.moved, e.lost)
        }
    };
    Ok(format!("{outcome} {} {}", position(&source), position(&target)))
}

/// Puts the options into the job; returns whether the chooser is to run it.
fn obey(options: &[String], job: &mut Job<'_>) -> Result<bool, Error> {
    let mut chosen = false;
    for option in options {
        match option.split_once('=').unwrap_or((option, "")) {
            ("--block-size", bytes) => job.block_size = bytes.parse()?,
            ("--depth", depth) => job.depth = depth.parse()?,
            ("--threads", threads) => job.threads = threads.parse()?,
            ("--by-value", _) => job.by_value = true,
            ("--reflink", "never") => job.reflink = Reflink::Never,
            ("--populate", _) => job.populate = true,
            ("--huge-pages", _) => job.huge_pages = true,
            ("--run", _) => chosen = true,
            _ => return Err(format!("no such option: {option}").into()),
        }
    }
    Ok(chosen)
}

fn by_plan(name: &str, from: &End<'_>, to: &End<'_>, job: &Job<'_>) -> Result<String, Error> {
    let plan = match name {
        "auto" => chooser::choose(from, to, job),
        name => {
            let mover = iotomy_movers::mover(name).ok_or("no such mover")?;
            chooser::only(mover, from, to, job)?
        }
    };
    let report = chooser::run(&plan, from, to, job)?;
    let Some(mover) = report.mover else {
        return Err(format!("refused: {:?}", report.refused).into());
    };
    Ok(format!("done {} {mover}", report.moved.bytes))
}

fn position(fd: &OwnedFd) -> String {
    rustix::fs::tell(fd).map_or_else(|_| "-".to_owned(), |at| at.to_string())
}
