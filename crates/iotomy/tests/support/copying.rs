//! Folders to copy in, and runs of `iotomy copy` there.

#[path = "../../../movers/tests/support/content.rs"]
mod content;

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use tempfile::TempDir;

use super::iotomy;
#[allow(unused_imports, reason = "no test file needs total")]
pub(crate) use content::content;

/// A folder for one test, which the command runs in.
pub(crate) struct Folder(TempDir);

impl Folder {
    /// On the file system the build is on.
    pub(crate) fn new() -> Self {
        Self(tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap())
    }

    pub(crate) fn path(&self, name: impl AsRef<Path>) -> PathBuf {
        self.0.path().join(name)
    }

    pub(crate) fn write(&self, name: impl AsRef<Path>, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(name);
        fs::write(&path, content).unwrap();
        path
    }

    pub(crate) fn read(&self, name: impl AsRef<Path>) -> Vec<u8> {
        fs::read(self.path(name)).unwrap()
    }

    /// Everything in it, sorted.
    pub(crate) fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(self.0.path()).unwrap();
        let mut names: Vec<String> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    /// `iotomy copy` in this folder, to be run.
    pub(crate) fn command<W: AsRef<OsStr>>(&self, words: &[W]) -> Command {
        let mut command = iotomy(&["copy"]);
        command.args(words).current_dir(self.0.path());
        command
    }

    /// Runs it.
    pub(crate) fn run(&self, words: &[&str]) -> Output {
        self.command(words).output().unwrap()
    }

    /// Runs it; it succeeds and says nothing.
    #[track_caller]
    pub(crate) fn copy(&self, words: &[&str]) {
        let output = self.run(words);
        assert_eq!(output.status.code(), Some(0), "{words:?}: {output:?}");
        assert!(output.stdout.is_empty() && output.stderr.is_empty(), "{words:?}: {output:?}");
    }

    /// Runs it; it fails with this status and one line, which is returned.
    #[track_caller]
    pub(crate) fn refuse(&self, status: i32, words: &[&str]) -> String {
        refused(status, &self.run(words))
    }
}

/// The one line of an error.
#[track_caller]
pub(crate) fn refused(status: i32, output: &Output) -> String {
    let said = String::from_utf8(output.stderr.clone()).unwrap();
    assert_eq!(output.status.code(), Some(status), "{output:?}");
    assert_eq!(said.lines().count(), 1, "{said}");
    assert!(said.starts_with("iotomy: cannot ") && !said.ends_with(".\n"), "{said}");
    said
}
