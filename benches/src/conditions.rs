//! The conditions of a bench's run, from its start to its end.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use anyhow::Result;
use iotomy_host::{machine, rfc3339};
use iotomy_record::Machine;

use crate::child::die_with_parent;
use crate::options::Options;
use crate::run::{command, folder, load, seed};

/// The time, the machine and the command of a run.
#[derive(Debug, Clone)]
pub struct Conditions {
    /// Start time, in RFC 3339.
    pub started: String,
    /// The machine.
    pub machine: Machine,
    /// The command as typed, with programs without their directories.
    pub command: String,
    /// The seed of all random orders.
    pub seed: u64,
    loads: [String; 2],
    day: Option<String>,
}

impl Conditions {
    /// Records the conditions at the start.
    ///
    /// # Errors
    /// When the process must end with its parent and the kernel refuses that.
    pub fn begin(options: &Options) -> Result<Self> {
        if options.end_with_parent {
            die_with_parent()?;
        }
        Ok(Self {
            started: rfc3339(SystemTime::now()),
            machine: machine(),
            command: command(),
            seed: options.seed.unwrap_or_else(seed),
            loads: [load(), String::new()],
            day: options.day.clone(),
        })
    }

    /// Records the conditions at the end.
    pub fn end(&mut self) {
        self.loads[1] = load();
    }

    /// Returns the load averages before and after the run.
    pub fn loads(&self) -> String {
        format!("{} before, {} after", self.loads[0], self.loads[1])
    }

    /// Formats a list of the conditions and of further entries.
    pub fn text(&self, more: &[(&str, String)]) -> String {
        let Machine { kernel, cpu, cpus, memory_bytes, virtualization, clock, .. } = &self.machine;
        let gib = *memory_bytes as f64 / f64::from(1 << 30);
        let mut text = String::new();
        let mut line = |name: &str, value: &str| {
            let _ = writeln!(text, "- {name}: {value}");
        };
        line("started", &self.started);
        line("command", &format!("`{}`", self.command));
        line(
            "machine",
            &format!("{cpus} × {cpu}, {gib:.1} GiB, {virtualization}; {kernel}; clock {clock}"),
        );
        for (name, value) in more {
            line(name, value);
        }
        line("load of the machine", &self.loads());
        text
    }

    /// Returns the directory of this run below `results`.
    pub fn folder(&self, results: &Path) -> PathBuf {
        folder(results, self.day.as_deref().unwrap_or(&self.started), &self.machine)
    }
}
