//! `carry MOVER SOURCE TARGET [COUNT]`: one run of one mover, told in one line on stderr, for tests
//! that watch or disturb its calls from outside. `-` is stdin or stdout.
//!
//! The line: `done BYTES`, `refused CALL` or `failed CALL MOVED LOST ERRNO`, then the positions of
//! source and target, or `-` where there is none.

use std::fs::{File, OpenOptions};
use std::os::fd::OwnedFd;
use std::process::ExitCode;
use std::sync::atomic::AtomicU64;

use iotomy_movers::{End, Job, Outcome};

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

fn run() -> Result<String, Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let mut next = || arguments.next().ok_or("usage: carry MOVER SOURCE TARGET [COUNT]");
    let (name, source, target) = (next()?, next()?, next()?);
    let count = arguments.next().map(|count| count.parse()).transpose()?;

    let source = match source.as_str() {
        "-" => rustix::io::dup(rustix::stdio::stdin())?,
        path => OwnedFd::from(File::open(path)?),
    };
    let target = match target.as_str() {
        "-" => rustix::io::dup(rustix::stdio::stdout())?,
        path => OpenOptions::new().write(true).create(true).truncate(false).open(path)?.into(),
    };
    let mover = iotomy_movers::mover(&name).ok_or("no such mover")?;
    let (from, to) = (End::of(&source)?, End::of(&target)?);
    let progress = AtomicU64::new(0);
    let job = Job { count, block_size: 64 * 1024, ..Job::new(&progress) };
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

fn position(fd: &OwnedFd) -> String {
    rustix::fs::tell(fd).map_or_else(|_| "-".to_owned(), |at| at.to_string())
}
