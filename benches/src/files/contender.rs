//! The contenders: the worker of the experiment, compiled for each backend, and the bare loop.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use iotomy_lab::{backend_program, file_backends};
use rustix::process::Pid;
use rustix::thread::{CpuSet, sched_setaffinity};

use crate::stats::median_or_nan;
use crate::talker::Talker;

/// Batches in a turn. One more runs first as warm-up, because other processes have used the caches.
const BATCHES: usize = 7;

/// Rounds in a batch, a multiple of all depths: a few ms.
const ROUNDS: u32 = 320;

/// The numbers of files that io_uring has in flight at once.
const DEPTHS: [u32; 3] = [1, 8, 32];

/// A contender.
pub(crate) struct Contender {
    pub(crate) name: String,
    program: PathBuf,
    arguments: Vec<String>,
}

/// The available contenders.
pub(crate) type Lineup = Vec<Contender>;

/// Returns the contenders, and the missing ones with the reason. Programs are placed in `folder`.
///
/// # Errors
/// When the bare loop was not built.
pub(crate) fn contenders(peers: &Path, folder: &Path) -> Result<(Lineup, Vec<(String, String)>)> {
    let bare = peers.join("files-bare");
    let bare = fs::canonicalize(&bare).with_context(|| {
        format!("there is no {}; `bench prepare files` builds it", bare.display())
    })?;
    let mut lineup =
        vec![Contender { name: "bare".to_owned(), program: bare, arguments: Vec::new() }];
    let mut skipped = Vec::new();
    for (way, _) in file_backends() {
        let content = match backend_program(way) {
            Ok(content) => content,
            Err(reason) => {
                skipped.push((way.to_owned(), reason));
                continue;
            }
        };
        let program = folder.join(format!("worker-{way}"));
        fs::write(&program, content).context("cannot write a program")?;
        fs::set_permissions(&program, fs::Permissions::from_mode(0o700))
            .context("cannot make a program of it")?;
        let depths = if way == "io-uring" { &DEPTHS[..] } else { &DEPTHS[..1] };
        for depth in depths {
            let name = if way == "io-uring" { format!("{way} {depth}") } else { way.to_owned() };
            let depth = depth.to_string();
            let arguments = ["14", "1", &depth, "none", "normal"].map(str::to_owned).into();
            lineup.push(Contender { name, program: program.clone(), arguments });
        }
    }
    Ok((lineup, skipped))
}

impl Contender {
    /// Starts the contender in a separate directory.
    pub(crate) fn start(&self, folder: &Path) -> Result<Running> {
        fs::create_dir_all(folder).context("cannot make a folder")?;
        let mut command = Command::new(&self.program);
        command.args(&self.arguments).current_dir(folder);
        let mut running = Running(Talker::start(&self.name, &mut command)?);
        match running.0.line()?.as_str() {
            "ready" => Ok(running),
            other => bail!("{} was not ready: {other}", self.name),
        }
    }
}

/// A contender that is ready for rounds.
pub(crate) struct Running(Talker);

impl Running {
    /// Returns the median of a turn's batches: CPU time and wall time, in ns per round.
    pub(crate) fn rounds(&mut self) -> Result<(f64, f64)> {
        // The first batch warms up the caches.
        self.batch(ROUNDS)?;
        let batches: Vec<(f64, f64)> =
            (0..BATCHES).map(|_| self.batch(ROUNDS)).collect::<Result<_>>()?;
        let (cpu, wall): (Vec<f64>, Vec<f64>) = batches.into_iter().unzip();
        Ok((median_or_nan(&cpu), median_or_nan(&wall)))
    }

    /// Runs one batch and returns CPU time and wall time, in ns per round.
    pub(crate) fn batch(&mut self, rounds: u32) -> Result<(f64, f64)> {
        let line = self.0.ask(&format!("round {rounds}"))?;
        let mut numbers = line.split_whitespace().map(str::parse::<f64>);
        let (Some(Ok(wall)), Some(Ok(cpu))) = (numbers.next(), numbers.next()) else {
            bail!("{} answered {line:?}", self.0.name());
        };
        Ok((cpu / f64::from(rounds), wall / f64::from(rounds)))
    }

    /// Pins the process to one CPU.
    pub(crate) fn pin(&self, cpu: usize) -> Result<()> {
        let mut one = CpuSet::new();
        one.set(cpu);
        let pid = i32::try_from(self.0.pid()).ok().and_then(Pid::from_raw);
        sched_setaffinity(pid, &one)
            .with_context(|| format!("cannot keep {} on a CPU", self.0.name()))
    }
}
