//! Control groups that tests make: an agent that watches one has few services, and its scrapes are small.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

use iotomy_test_requirements::wait::until;
use iotomy_test_requirements::{Need, skip};

use super::Program;

/// A control group of its own, removed with it.
pub(crate) struct Cgroup {
    directory: PathBuf,
    pub(crate) path: String,
}

impl Cgroup {
    /// In the hierarchy of version 2, or in one of version 1; `None` where none can be made, which is a skip.
    pub(crate) fn new(name: &str) -> Option<Self> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let path = format!("/iotomy-agent-{}-{name}-{number}", std::process::id());
        let made = hierarchies().into_iter().map(|mount| mount.join(&path[1..]));
        let made = made.into_iter().find(|directory| fs::create_dir(directory).is_ok());
        if made.is_none() {
            skip(Need::Machine, "no control group can be made");
        }
        made.map(|directory| Self { directory, path })
    }

    /// A shell that goes there, and becomes a program.
    pub(crate) fn command(&self, program: &Program, words: &[&str]) -> Command {
        let procs = self.directory.join("cgroup.procs");
        let mut shell = Command::new("sh");
        shell.args(["-c", "echo $$ >\"$0\" && exec \"$@\""]).arg(procs).arg(&program.path);
        shell.args(words);
        shell
    }

    /// As [`Program::dd`].
    pub(crate) fn dd(&self, dd: &Program, count: u64) {
        let count = format!("count={count}");
        let words = ["if=/dev/zero", "of=/dev/null", "bs=1", "status=none", &count];
        assert!(self.command(dd, &words).status().unwrap().success());
    }
}

impl Drop for Cgroup {
    fn drop(&mut self) {
        // A process that has ended leaves it a moment later.
        until("the control group is removed", || {
            fs::remove_dir(&self.directory).is_ok() || !self.directory.exists()
        });
    }
}

/// Where hierarchies that take any process are mounted, version 2 first.
fn hierarchies() -> Vec<PathBuf> {
    let mounts = fs::read_to_string("/proc/self/mounts").unwrap();
    let of = |kind: &str| {
        let lines = mounts.lines().map(|line| line.split(' ').collect::<Vec<_>>());
        // Without processors and memory to hand out, a group takes none.
        let takes_all = |options: &str| !options.split(',').any(|one| one == "cpuset");
        let those = lines.filter(|line| line[2] == kind && takes_all(line[3]));
        those.map(|line| Path::new(line[1]).to_owned()).collect::<Vec<_>>()
    };
    [of("cgroup2"), of("cgroup")].concat()
}
