//! The watched processes: loops of requests that time themselves, so that the figure excludes the start and the end of
//! an observer.
//!
//! A subject is pinned to one CPU. It is timed in pieces; the result is the 5th percentile of the pieces, because
//! preemption or a busy neighbour on the same core makes most pieces of a run slower and leaves some undisturbed.

use std::fs;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::{Context, Result, bail};
use iotomy_sys::batch_ring::{BatchRequest, BatchRing};

use crate::child::{die_with_parent, own_path};
use crate::cpus;
use crate::stats;

/// Requests of a submission.
pub(crate) const BATCH: u32 = 32;
/// Pieces of a run.
const PIECES: u64 = 256;

/// The process that makes the requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Subject {
    /// Requests that do nothing: the shortest, so their relative overhead is the highest.
    Nop,
    /// Reads of 4 KiB that are in the page cache.
    Read,
}

impl Subject {
    pub(crate) const ALL: [Self; 2] = [Self::Nop, Self::Read];

    /// Returns the name of its ring operation.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Nop => "nop",
            Self::Read => "read",
        }
    }

    /// Returns the number of submissions of a piece: bare, it takes some 100 µs.
    fn submissions(self) -> u64 {
        match self {
            Self::Nop => 64,
            Self::Read => 8,
        }
    }

    /// Returns the number of requests of a run.
    pub(crate) fn requests(self) -> u64 {
        PIECES * self.submissions() * u64::from(BATCH)
    }

    /// Returns the command that makes the requests on `cpu` and writes its times to `result`.
    pub(crate) fn argv(self, cpu: usize, result: &Path) -> Result<Vec<String>> {
        let text = |path: &Path| path.to_str().map(str::to_owned).context("a path is not UTF-8");
        Ok(vec![
            text(&own_path()?)?,
            "rings".to_owned(),
            format!("subject-{}", self.name()),
            format!("--cpu={cpu}"),
            format!("--result={}", text(result)?),
        ])
    }

    /// Returns ns per request, from the subject's output.
    pub(crate) fn read_result(self, result: &Path) -> Result<f64> {
        let text = fs::read_to_string(result).context("cannot read the subject's result")?;
        let pieces: Vec<f64> = text.lines().filter_map(|ns| ns.parse().ok()).collect();
        if pieces.len() as u64 != PIECES {
            bail!("the subject did not end its loop");
        }
        let piece = stats::undisturbed(&pieces).unwrap_or_default();
        Ok(piece / (self.requests() / PIECES) as f64)
    }
}

/// Options of a subject.
#[derive(Debug, clap::Args)]
pub(crate) struct SubjectArgs {
    #[arg(long)]
    cpu: usize,
    #[arg(long)]
    result: PathBuf,
}

/// Makes the requests of `subject`.
pub(crate) fn run(subject: Subject, args: &SubjectArgs) -> Result<()> {
    die_with_parent()?;
    cpus::stay_on(args.cpu)?;
    let mut file = tempfile::tempfile().context("cannot create a file to read")?;
    let whole = vec![1; BATCH as usize * 4096];
    std::io::Write::write_all(&mut file, &whole).context("cannot fill the file to read")?;
    let request = match subject {
        Subject::Nop => BatchRequest::Nop,
        Subject::Read => BatchRequest::Read(file.as_fd()),
    };
    let mut ring = BatchRing::new(BATCH, request).context("cannot make a ring")?;
    let mut pieces = [0u128; PIECES as usize];
    for piece in &mut pieces {
        let start = Instant::now();
        for _ in 0..subject.submissions() {
            ring.round().context("a request failed")?;
        }
        *piece = start.elapsed().as_nanos();
    }
    let text: String = pieces.iter().map(|ns| format!("{ns}\n")).collect();
    fs::write(&args.result, text).context("cannot write the subject's result")
}
