//! What is watched: a process that does the same over and over on one CPU, for as long as it is left.

use std::fs::File;
use std::io::Read;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use anyhow::{Context, Result, bail};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

use iotomy_benches::child::die_with_parent;

/// Bytes of the file that is read, all of it in memory.
const FILE_BYTES: usize = 4 << 20;
/// A page, as most small reads of files ask for.
const SMALL: usize = 4096;
/// What dd and cat ask for on large files, half or twice.
const LARGE: usize = 64 << 10;

/// What is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Work {
    /// Reads of 64 KiB from the zero device: copying, with a stack like that of most reads.
    Zero,
    /// Reads of 4 KiB from a regular file in memory: what anatomy follows one by one.
    File,
}

impl Work {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Zero => "read 64 KiB of /dev/zero",
            Self::File => "pread64 4 KiB of a cached file",
        }
    }

    fn word(self) -> &'static str {
        match self {
            Self::Zero => "zero",
            Self::File => "file",
        }
    }

    /// Starts it on the last CPU this process may use, since the first takes most interrupts.
    pub(crate) fn start(self, folder: &Path) -> Result<Worker> {
        let file = folder.join("cached");
        std::fs::write(&file, vec![7; FILE_BYTES]).context("cannot write the file to read")?;
        let own = std::env::current_exe().context("cannot tell this program's path")?;
        let mut work = Command::new(own);
        work.args(["work", self.word()]).arg(file).stdin(Stdio::null()).stdout(Stdio::piped());
        let mut child = work.spawn().context("cannot start the work")?;
        let mut ready = [0];
        let said = child.stdout.take().context("the work has no output")?.read_exact(&mut ready);
        let worker = Worker(child);
        said.context("the work did not begin")?;
        Ok(worker)
    }
}

/// The process at work, ended with this.
pub(crate) struct Worker(Child);

impl Worker {
    pub(crate) fn pid(&self) -> u32 {
        self.0.id()
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// What the process at work does: `word` says which, `file` is read.
pub(crate) fn run(word: &str, file: &Path) -> Result<()> {
    die_with_parent()?;
    stay_on_one_cpu()?;
    println!();
    if word == Work::Zero.word() {
        let mut zero = File::open("/dev/zero").context("cannot open /dev/zero")?;
        let mut block = vec![0; LARGE];
        loop {
            zero.read_exact(&mut block).context("cannot read /dev/zero")?;
        }
    }
    let file = File::open(file).with_context(|| format!("cannot open {}", file.display()))?;
    let mut page = vec![0; SMALL];
    for at in (0..FILE_BYTES).step_by(SMALL).cycle() {
        file.read_exact_at(&mut page, at as u64).context("cannot read the file")?;
    }
    bail!("there is nothing to read")
}

fn stay_on_one_cpu() -> Result<()> {
    let allowed = sched_getaffinity(None).context("cannot tell the CPUs of this process")?;
    let last = (0..CpuSet::MAX_CPU).rev().find(|cpu| allowed.is_set(*cpu));
    let mut one = CpuSet::new();
    one.set(last.context("no CPU to run on")?);
    sched_setaffinity(None, &one).context("cannot stay on one CPU")
}
