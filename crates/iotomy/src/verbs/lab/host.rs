//! The services for a run of an experiment: the clock, signals, the terminal, the file that an
//! interrupted run is resumed from, and the observer.

use std::ffi::OsString;
use std::fs::OpenOptions;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use anyhow::{Context, Result};
use iotomy_host::rfc3339;
use iotomy_lab::{EXPERIMENTS, Params, Progress, RunHost, RunWatch, State, Wakeups, Watch};
use iotomy_observe::take_interrupt;
use iotomy_race::Interrupts;
use iotomy_record::{AxisValue, Case, Sweep, Trace, View};
use iotomy_sys::launch::{Command, Setup, Streams};

use crate::errors::print_error;
use crate::screen::StatusLine;
use crate::verbs::trace::{AUTO, watching};

use super::bound::Bound;

/// Of one run of the command, for all its experiments.
pub(super) struct CommandHost {
    began: Instant,
    /// `None` while a command is watched, whose observer passes signals on.
    interrupts: Option<Interrupts>,
    signal: Option<i32>,
    status: StatusLine,
    state: Option<State>,
    streams: Streams,
    /// The end of the time for watched runs.
    end: Option<Instant>,
}

impl CommandHost {
    pub(super) fn new(is_quiet: bool) -> Result<Self> {
        let null = OpenOptions::new().read(true).write(true).open("/dev/null");
        let null = Arc::new(OwnedFd::from(null.context("cannot open /dev/null")?));
        let null = Some(null);
        let streams = Streams { input: null.clone(), output: null.clone(), error: null };
        let state = State::of_user();
        if state.is_none() {
            print_error(&anyhow::anyhow!(
                "an interrupted run cannot be resumed: neither XDG_STATE_HOME nor HOME names a \
                 directory"
            ));
        }
        Ok(Self {
            began: Instant::now(),
            interrupts: Some(Interrupts::hold().context("cannot block signals")?),
            signal: None,
            status: StatusLine::new(is_quiet),
            state,
            streams,
            end: None,
        })
    }

    pub(super) fn state(&self) -> Option<&State> {
        self.state.as_ref()
    }

    /// Takes the status line away, for other text.
    pub(super) fn clear(&mut self) {
        self.status.clear();
    }
}

impl RunHost for CommandHost {
    fn now(&self) -> Duration {
        self.began.elapsed()
    }

    fn interrupted(&mut self) -> Option<i32> {
        self.signal = self.signal.or_else(|| self.interrupts.as_ref().and_then(Interrupts::next));
        self.signal
    }

    fn end_at(&mut self, end: Option<Duration>) {
        self.end = end.and_then(|end| self.began.checked_add(end));
    }

    fn progress(&mut self, progress: &Progress<'_>) {
        let Progress { experiment, round, done, all, case, left } = progress;
        let left = left.map_or(String::new(), |left| format!(", at most {} s", left.as_secs() + 1));
        let what = match round {
            0 => "watching".to_owned(),
            round => format!("round {round}"),
        };
        let case = words(experiment, case);
        self.status.show(&format!("{experiment}: {what}, {} of {all}{left} · {case}", done + 1));
    }

    fn keep(&mut self, so_far: &Sweep) {
        let Some(state) = &self.state else { return };
        if let Err(error) = state.save(so_far) {
            self.status.clear();
            let error = anyhow::Error::from(error);
            print_error(&error.context("if it is interrupted, this run cannot be resumed"));
            // Printed once.
            self.state = None;
        }
    }
}

impl Watch for CommandHost {
    fn iotomy(&mut self, arguments: &[OsString]) -> Result<Trace, String> {
        let program = std::env::current_exe().map_err(|e| format!("cannot find iotomy: {e}"))?;
        self.program(&program, arguments)
    }

    fn program(&mut self, program: &Path, arguments: &[OsString]) -> Result<Trace, String> {
        let name = program.file_name().unwrap_or(program.as_os_str());
        let mut argv = vec![name.to_owned()];
        argv.extend_from_slice(arguments);
        let program = program.to_owned();
        let setup = Setup { streams: Some(self.streams.clone()), ..Setup::default() };
        let command = Command { program, argv, setup, ..Command::default() };
        let started = rfc3339(SystemTime::now());
        self.status.clear();
        self.interrupts = None;
        let mut bound = Bound::at(self.end);
        let seen = watching::watch(AUTO, &watching::everything(&command), Some(&mut bound));
        self.signal = self.signal.or_else(take_interrupt);
        self.interrupts = Interrupts::hold().ok();
        let seen = seen.map_err(|error| error.to_string())?;
        match seen.exit.map(|exit| exit.status()) {
            Some(0) => Ok(watching::record(&command, started, seen, View::default())),
            _ if bound.has_ended_it() => Err(Case::NO_TIME.to_owned()),
            _ => Err("the watched run failed".to_owned()),
        }
    }

    fn wakeups(&mut self) -> Result<Box<dyn Wakeups>, String> {
        let counting = iotomy_observe::Wakeups::of_children();
        counting.map(|counting| Box::new(Counting(counting)) as Box<dyn Wakeups>)
    }

    fn run_watch(&mut self) -> Result<Box<dyn RunWatch>, String> {
        iotomy_observe::SwitchWatch::new().map(|watch| Box::new(watch) as Box<dyn RunWatch>)
    }
}

/// Wake-ups counted by BPF.
struct Counting(iotomy_observe::Wakeups);

impl Wakeups for Counting {
    fn so_far(&self) -> Result<u64, String> {
        self.0.so_far()
    }
}

/// A case on the status line, its sizes as people read them.
fn words(experiment: &str, case: &Params) -> String {
    let declared = EXPERIMENTS.iter().find(|one| one.declaration().name == experiment);
    let axes = declared.map_or(&[][..], |one| one.declaration().axes);
    let is_size = |name: &str| axes.iter().any(|axis| axis.name == name && axis.unit == "bytes");
    let word = |(name, value): (&str, &AxisValue)| match value {
        AxisValue::Number(size) if is_size(name) => {
            format!("{name} {}", iotomy_report::bytes((*size).into()))
        }
        value => format!("{name} {value}"),
    };
    case.values().map(word).collect::<Vec<String>>().join(", ")
}

#[cfg(test)]
mod tests {
    use iotomy_record::SweepAxis;

    use super::*;

    #[test]
    fn sizes_of_a_case_are_read_as_sizes() {
        let axis = |name: &str, value| SweepAxis {
            name: name.to_owned(),
            unit: String::new(),
            values: vec![value],
        };
        let axes = [
            axis("size", AxisValue::Number(256 << 20)),
            axis("way", AxisValue::Name("mmap".to_owned())),
        ];
        let case = &iotomy_lab::points(&axes)[0];
        assert_eq!(words("null-sink", case), "size 256 MiB, way mmap");
        assert_eq!(words("herd", case), "size 268435456, way mmap");
    }
}
