//! The runs: the subject alone, traced, and traced with a view, each on a terminal and in a separate session, so that
//! the last two differ only in the view.
//!
//! A watch that missed the calls, or a view that drew nothing, would have the lowest overhead, so both are checked.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};
use iotomy_record::store;

use crate::child::{Signals, own_path};
use crate::cpus;
use crate::live::subject::{self, CALL, SubjectReport};
use crate::live::terminal::{Terminal, TerminalOutput};

/// The mode in which the subject is watched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WatchMode {
    Bare,
    Trace,
    Live,
}

impl WatchMode {
    pub(crate) const ALL: [Self; 3] = [Self::Bare, Self::Trace, Self::Live];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Bare => "bare",
            Self::Trace => "iotomy trace",
            Self::Live => "iotomy trace --live",
        }
    }
}

/// The result of a run.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Run {
    said: SubjectReport,
    drawn: TerminalOutput,
}

/// The figures of a mode, one sample per block.
#[derive(Debug, Clone, Default)]
pub(crate) struct Lane {
    /// Wall ns per call.
    pub(crate) wall: Vec<f64>,
    /// CPU ns per call.
    pub(crate) cpu: Vec<f64>,
    /// iotomy's own CPU time in percent; empty for bare runs.
    pub(crate) own: Vec<f64>,
    /// Bytes drawn per second.
    pub(crate) drawn: Vec<f64>,
}

/// The lanes of all modes, in the order of [`WatchMode::ALL`].
#[derive(Debug, Clone, Default)]
pub(crate) struct Samples([Lane; 3]);

impl Samples {
    pub(crate) fn add(&mut self, way: WatchMode, Run { said, drawn }: Run) {
        let lane = &mut self.0[way as usize];
        let (calls, wall) = (said.calls as f64, said.wall_ns as f64);
        lane.wall.push(wall / calls);
        lane.cpu.push(said.cpu_ns as f64 / calls);
        if way != WatchMode::Bare {
            lane.own.push(said.parent_ns as f64 / wall * 100.0);
        }
        if way == WatchMode::Live {
            lane.drawn.push(drawn.bytes as f64 / (wall / 1e9));
        }
    }

    pub(crate) fn lane(&self, way: WatchMode) -> &Lane {
        &self.0[way as usize]
    }
}

/// The environment of runs.
pub(crate) struct Watcher<'a> {
    signals: &'a Signals,
    iotomy: &'a Path,
    folder: &'a Path,
    file: PathBuf,
    seconds: u32,
    cpu: usize,
}

impl<'a> Watcher<'a> {
    /// Creates the file that the subject reads.
    pub(crate) fn new(
        signals: &'a Signals,
        iotomy: &'a Path,
        folder: &'a Path,
        seconds: u32,
    ) -> Result<Self> {
        let file = folder.join("cached");
        subject::lay_out(&file)?;
        Ok(Self { signals, iotomy, folder, file, seconds, cpu: cpus::last()? })
    }

    /// Makes a run.
    pub(crate) fn run(&self, way: WatchMode) -> Result<Run> {
        let [result, seen, errors] =
            ["result", "seen.json", "errors"].map(|name| self.folder.join(name));
        for file in [&result, &seen] {
            let _ = fs::remove_file(file);
        }
        let terminal = Terminal::open()?;
        let mut argv = vec![own_path()?.into_os_string(), "live".into(), "terminal".into()];
        argv.extend([terminal.path.clone().into_os_string(), "--".into()]);
        if way != WatchMode::Bare {
            argv.push(self.iotomy.into());
            let words = ["trace", "--quiet", "--observer=bpf", "--json"];
            argv.extend(words.map(Into::into));
            argv.push(seen.clone().into());
            argv.extend((way == WatchMode::Live).then(|| "--live".into()));
            argv.push("--".into());
        }
        let subject = subject::argv(self.seconds, self.cpu, &self.file, &result)?;
        argv.extend(subject.into_iter().map(Into::into));
        let status = self.waited(&argv, &errors);
        let drawn = terminal.close()?;
        let status = status.with_context(|| way.name())?;
        if !status.success() {
            let stderr = fs::read_to_string(&errors).unwrap_or_default();
            bail!("{} ended with {status}: {}", way.name(), stderr.trim());
        }
        let said = subject::read_result(&result)?;
        check(way, &said, drawn, &seen)?;
        Ok(Run { said, drawn })
    }

    fn waited(
        &self,
        argv: &[std::ffi::OsString],
        errors: &Path,
    ) -> Result<std::process::ExitStatus> {
        use std::process::{Command, Stdio};
        let errors = File::create(errors).context("cannot create a temporary file")?;
        let mut command = Command::new(&argv[0]);
        command.args(&argv[1..]).env("IOTOMY_HISTORY", "never");
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(errors);
        self.signals.wait(&mut command.spawn().context("cannot start a run")?)
    }
}

/// Checks that the observers saw all calls, and that the view, and only the view, drew.
fn check(way: WatchMode, said: &SubjectReport, drawn: TerminalOutput, seen: &Path) -> Result<()> {
    ensure!(drawn.is_view == (way == WatchMode::Live), "{} drew {} bytes", way.name(), drawn.bytes);
    if way == WatchMode::Bare {
        return Ok(());
    }
    let trace = store::load_trace(seen).context("cannot read the record of a run")?;
    let rows = trace.calls.iter().filter(|row| row.syscall == CALL);
    let calls: u64 = rows.map(|row| row.calls).sum();
    ensure!(calls >= said.calls, "{} saw {calls} of {} calls", way.name(), said.calls);
    // Without a view, iotomy is blocked until the command has ended.
    let is_known = way != WatchMode::Live || said.parent_ns > 0;
    ensure!(is_known, "nothing is known of the CPU time of {}", way.name());
    Ok(())
}
