//! Runs of experiments by a user whose state is nobody else's.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use iotomy_record::{Sweep, store};
use tempfile::TempDir;

use super::{iotomy, until};

/// A user with folders of its own.
pub(crate) struct User {
    pub(crate) state: TempDir,
    pub(crate) work: TempDir,
}

impl User {
    pub(crate) fn new() -> Self {
        Self {
            state: tempfile::tempdir().unwrap(),
            work: tempfile::tempdir_in("/var/tmp").unwrap(),
        }
    }

    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = iotomy(&["lab", "run", "--path"]);
        command.arg(self.work.path()).args(arguments).env("XDG_STATE_HOME", self.state.path());
        command
    }

    pub(crate) fn run(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().unwrap()
    }

    pub(crate) fn record(&self, arguments: &[&str]) -> Sweep {
        let output = self.run(&[arguments, &["-q", "--json", "-"]].concat());
        assert!(output.status.success(), "{output:?}");
        store::parse_sweep(&output.stdout).unwrap()
    }

    pub(crate) fn kept(&self, experiment: &str) -> PathBuf {
        self.state.path().join(format!("iotomy/lab-{experiment}.json"))
    }
}

/// Small enough for a test.
pub(crate) const SMALL: [&str; 6] = ["copy", "-L", "size=1M", "-L", "block=8K,8M", "--max-time=1"];

/// Time for every case, also on a slow machine: a run ends when they have their samples.
pub(crate) const ENOUGH: &str = "--max-time=600";

/// Waits until a run has measured something, and kept it.
pub(crate) fn until_measured(kept: &Path) {
    let has_samples = |sweep: &Sweep| sweep.cases.iter().any(|case| !case.samples.is_empty());
    until("something has been measured", || {
        store::load_sweep(kept).is_ok_and(|sweep| has_samples(&sweep)).then_some(())
    });
}
