//! The watched process: it repeats the same work on one CPU, until it is ended or for a requested
//! number of times.

use std::fs::File;
use std::hint::black_box;
use std::io::{BufRead, BufReader, Read, Write, stdin};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Stdio};
use std::time::Instant;

use anyhow::{Context, Result};
use clap::ValueEnum;

use crate::child::{die_with_parent, part};
use crate::cpus;

/// Size of the file that is read; all of it is in memory.
const FILE_BYTES: usize = 4 << 20;
/// One page, as in most small file reads.
const SMALL: usize = 4096;
/// The request size of dd and cat for large files, within a factor of two.
const LARGE: usize = 64 << 10;
/// Steps in user space that take about as long as a large read.
const STEPS: u32 = 4_000;

/// The work.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Work {
    /// Reads of 64 KiB from the zero device: copying, with a stack like that of most reads.
    Zero,
    /// Reads of 4 KiB from a regular file in memory: what anatomy follows one by one.
    File,
    /// The shortest call there is: entry and exit.
    Getppid,
    /// No call at all.
    Spin,
}

impl Work {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Zero => "read 64 KiB of /dev/zero",
            Self::File => "pread64 4 KiB of a cached file",
            Self::Getppid => "getppid",
            Self::Spin => "no call",
        }
    }

    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Zero => "zero",
            Self::File => "file",
            Self::Getppid => "getppid",
            Self::Spin => "spin",
        }
    }

    /// Starts the work on the last CPU this process may use, because the first CPU handles most
    /// interrupts.
    pub(crate) fn start(self, folder: &Path) -> Result<Worker> {
        self.spawn(folder, "work")
    }

    /// Starts the work in turns: the process is idle until it receives the next request.
    pub(crate) fn start_in_turns(self, folder: &Path) -> Result<Worker> {
        self.spawn(folder, "turns")
    }

    fn spawn(self, folder: &Path, how: &str) -> Result<Worker> {
        let file = folder.join("cached");
        std::fs::write(&file, vec![7; FILE_BYTES]).context("cannot write the file to read")?;
        let mut work = part("anatomy", how)?;
        work.arg(self.word()).arg(file).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = work.spawn().context("cannot start the work")?;
        let orders = child.stdin.take().context("the work has no input")?;
        let answers = BufReader::new(child.stdout.take().context("the work has no output")?);
        let mut worker = Worker { child, orders, answers };
        worker.answers.read_exact(&mut [0]).context("the work did not begin")?;
        Ok(worker)
    }
}

/// The working process. It ends when this value is dropped.
pub(crate) struct Worker {
    child: Child,
    orders: ChildStdin,
    answers: BufReader<ChildStdout>,
}

impl Worker {
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Repeats the work this many times. Returns the on-CPU time in ns: elapsed time minus run
    /// queue delay.
    pub(crate) fn turn(&mut self, times: u64) -> Result<f64> {
        writeln!(self.orders, "{times}").context("the work has ended")?;
        let mut line = String::new();
        self.answers.read_line(&mut line).context("the work has ended")?;
        line.trim().parse().with_context(|| format!("the work took {line:?}"))
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The state of the work in progress.
struct CurrentWork {
    work: Work,
    file: File,
    block: Vec<u8>,
    at: usize,
}

impl CurrentWork {
    fn begin(work: Work, path: &Path) -> Result<Self> {
        die_with_parent()?;
        cpus::stay_on(cpus::last()?)?;
        println!();
        let (path, size) = match work {
            Work::Zero => (Path::new("/dev/zero"), LARGE),
            _ => (path, SMALL),
        };
        let file = File::open(path).with_context(|| format!("cannot open {}", path.display()))?;
        Ok(Self { work, file, block: vec![0; size], at: 0 })
    }

    fn once(&mut self) -> Result<()> {
        match self.work {
            Work::Zero => {
                self.file.read_exact(&mut self.block).context("cannot read /dev/zero")?;
            }
            Work::File => {
                let read = self.file.read_exact_at(&mut self.block, self.at as u64);
                read.context("cannot read the file")?;
                self.at = (self.at + SMALL) % FILE_BYTES;
            }
            Work::Getppid => {
                black_box(rustix::process::getppid());
            }
            Work::Spin => {
                for step in 0..STEPS {
                    black_box(step);
                }
            }
        }
        Ok(())
    }
}

/// Runs the work; `file` is read.
pub(crate) fn run(work: Work, file: &Path) -> Result<()> {
    let mut doing = CurrentWork::begin(work, file)?;
    loop {
        doing.once()?;
    }
}

/// Runs the work in turns: each input line gives the number of repetitions, each output line the ns
/// they took.
pub(crate) fn run_in_turns(work: Work, file: &Path) -> Result<()> {
    let mut doing = CurrentWork::begin(work, file)?;
    let waits = File::open("/proc/self/schedstat").ok();
    for line in stdin().lines() {
        let line = line.context("cannot read what to do")?;
        let times: u64 = line.parse().with_context(|| format!("cannot do it {line:?} times"))?;
        let waited = waited_ns(waits.as_ref());
        let began = Instant::now();
        for _ in 0..times {
            doing.once()?;
        }
        let took = began.elapsed().as_nanos() as u64;
        let waited = waited_ns(waits.as_ref()).saturating_sub(waited);
        println!("{}", took.saturating_sub(waited));
    }
    Ok(())
}

/// Returns the run queue delay of this process, or 0 where the kernel does not report it.
fn waited_ns(waits: Option<&File>) -> u64 {
    let mut text = [0; 128];
    let Some(Ok(bytes)) = waits.map(|file| file.read_at(&mut text, 0)) else { return 0 };
    let text = String::from_utf8_lossy(&text[..bytes]);
    text.split_whitespace().nth(1).and_then(|word| word.parse().ok()).unwrap_or(0)
}
