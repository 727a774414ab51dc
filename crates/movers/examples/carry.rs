//! `carry MOVER SOURCE TARGET [COUNT [SPARSE]]`: one run of one mover, told in one line on stderr, for
//! tests that watch or disturb its calls from outside. `-` is stdin or stdout, or no count. With
//! SPARSE (`auto`, `never`, `always`) the run is the chooser's, which sees to holes.
//!
//! The line: `done BYTES`, `refused CALL` or `failed CALL BYTES LOST ERRNO`, then the bytes referenced,
//! copied and touched, and the positions of source and target, or `-` where there is none.

use std::fs::{File, OpenOptions};
use std::os::fd::OwnedFd;
use std::process::ExitCode;
use std::sync::atomic::AtomicU64;

use iotomy_movers::{End, Job, Outcome, Sparse, Traffic, chooser};

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
    let mut next = || arguments.next().ok_or("usage: carry MOVER SOURCE TARGET [COUNT [SPARSE]]");
    let (name, source, target) = (next()?, next()?, next()?);
    let count = arguments.next().filter(|count| count != "-");
    let count = count.map(|count| count.parse()).transpose()?;
    let sparse = match arguments.next().as_deref() {
        None => None,
        Some("auto") => Some(Sparse::Auto),
        Some("never") => Some(Sparse::Never),
        Some("always") => Some(Sparse::Always),
        Some(_) => return Err("SPARSE is auto, never or always".into()),
    };

    let source = match source.as_str() {
        "-" => rustix::io::dup(rustix::stdio::stdin())?,
        path => OwnedFd::from(File::open(path)?),
    };
    let target = match target.as_str() {
        "-" => rustix::io::dup(rustix::stdio::stdout())?,
        path => OpenOptions::new().write(true).create(true).truncate(false).open(path)?.into(),
    };
    let mover = iotomy_movers::mover(&name).ok_or("no such mover")?;
    let (from, to) = (End::new(&source)?, End::new(&target)?);
    let progress = AtomicU64::new(0);
    let mut job = Job { count, block_size: Some(64 * 1024), ..Job::new(&progress) };
    let outcome = if let Some(sparse) = sparse {
        job.sparse = sparse;
        let plan = chooser::only(mover, &from, &to, &job)?;
        chooser::run(&plan, &from, &to, &job).map(outcome).map_err(|failed| failed.error)
    } else {
        mover.serves(&from, &to, &job)?;
        mover.run(&from, &to, &job)
    };
    let (outcome, traffic) = match outcome {
        Ok(Outcome::Done(moved)) => (format!("done {}", moved.bytes), moved.traffic),
        Ok(Outcome::Refused { call, .. }) => (format!("refused {call}"), Traffic::default()),
        Err(e) => {
            let errno = e.source.raw_os_error().unwrap_or(0);
            let told = format!("failed {} {} {} {errno}", e.call, e.moved.bytes, e.lost);
            (told, e.moved.traffic)
        }
    };
    let Traffic { referenced, copied, touched } = traffic;
    let (from, to) = (position(&source), position(&target));
    Ok(format!("{outcome} {referenced} {copied} {touched} {from} {to}"))
}

/// What came of a plan with one mover.
fn outcome(report: chooser::Report) -> Outcome {
    match report.refused.first() {
        Some(refused) => Outcome::Refused { call: refused.call, errno: refused.errno },
        None => Outcome::Done(report.moved),
    }
}

fn position(fd: &OwnedFd) -> String {
    rustix::fs::tell(fd).map_or_else(|_| "-".to_owned(), |at| at.to_string())
}
