//! A history of a test's own.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use tempfile::TempDir;

use super::iotomy;

/// A folder with a history and a configuration, and nothing in them.
pub(crate) struct History {
    pub(crate) folder: TempDir,
}

impl History {
    pub(crate) fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap() }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn file(&self) -> PathBuf {
        self.path("data/iotomy/history.db")
    }

    /// The command with this history, to be run.
    pub(crate) fn command(&self, words: &[&str]) -> Command {
        let mut command = iotomy(words);
        self.surround(&mut command);
        command
    }

    pub(crate) fn surround(&self, command: &mut Command) {
        command.env_remove("IOTOMY_CONFIG");
        command.env("XDG_DATA_HOME", self.path("data")).env("XDG_CONFIG_HOME", self.path("config"));
        command.env_remove("IOTOMY_HISTORY").current_dir(self.folder.path());
    }

    pub(crate) fn run(&self, words: &[&str]) -> Output {
        self.command(words).output().unwrap()
    }

    /// What it says on standard output, once it has succeeded without a complaint.
    pub(crate) fn says(&self, words: &[&str]) -> String {
        let output = self.run(words);
        assert!(output.status.success() && output.stderr.is_empty(), "{words:?}: {output:?}");
        String::from_utf8(output.stdout).unwrap()
    }

    /// What it complains of in a line, with status 2.
    pub(crate) fn refuses(&self, words: &[&str]) -> String {
        let output = self.run(words);
        let error = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{words:?}: {error}");
        assert!(error.starts_with("iotomy: ") && error.lines().count() == 1, "{error}");
        error
    }

    /// A record of a machine's limits on a day, in a file.
    pub(crate) fn limits(&self, name: &str, day: u32, ns: f64) -> PathBuf {
        let path = self.path(name);
        fs::write(&path, limits(day, ns, "6.1")).unwrap();
        path
    }

    /// Keeps such a record, by a name if there is one.
    pub(crate) fn keep(&self, day: u32, ns: f64, name: Option<&str>) {
        let path = self.limits("limits.json", day, ns);
        let mut words = vec!["history", "import", path.to_str().unwrap()];
        words.extend(name.iter().flat_map(|name| ["--name", name]));
        self.says(&words);
    }

    pub(crate) fn configure(&self, text: &str) {
        fs::create_dir_all(self.path("config/iotomy")).unwrap();
        fs::write(self.path("config/iotomy/config.toml"), text).unwrap();
    }
}

/// The JSON of a machine's limits.
pub(crate) fn limits(day: u32, ns: f64, kernel: &str) -> String {
    let day = day % 28 + 1;
    format!(
        r#"{{"schema": "iotomy.limits/1", "started": "2026-01-{day:02}T10:20:30Z",
"machine": {{"kernel": "Linux {kernel}", "cpu": "c", "cpus": 2, "memory_bytes": 1, "virtualization": "none", "mitigations": "", "clock": "tsc"}},
"limits": [{{"name": "syscall", "unit": "ns", "value": {ns}, "spread": 0.4, "method": "getppid", "skipped": null}}]}}
"#
    )
}

/// Every name in a folder.
pub(crate) fn names(folder: &Path) -> Vec<String> {
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

/// SQLite's usual.
pub(crate) const PAGE: usize = 4096;

/// A history of which a page is overwritten.
pub(crate) fn damaged(whole: &[u8], page: usize) -> Vec<u8> {
    let mut bytes = whole.to_vec();
    bytes[page * PAGE..(page + 1) * PAGE].fill(0xa5);
    bytes
}

/// Text of some length that cannot be packed well.
pub(crate) fn noise(length: usize) -> String {
    let mut state = 7u64;
    let mut noise = String::new();
    while noise.len() < length {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        noise += &format!("{state:016x}");
    }
    noise
}
