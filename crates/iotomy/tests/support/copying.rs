//! Folders to copy in, and runs of `iotomy copy` there.

#[path = "../../../movers/tests/support/content.rs"]
mod content;
#[path = "../../../copy/tests/support/folder.rs"]
mod folder;

use std::ffi::OsStr;
use std::process::{Command, Output};

use super::iotomy;
#[allow(unused_imports, reason = "no test file needs total")]
pub(crate) use content::content;
pub(crate) use folder::Folder;

impl Folder {
    /// `iotomy copy` in this folder, to be run.
    pub(crate) fn command<W: AsRef<OsStr>>(&self, words: &[W]) -> Command {
        let mut command = iotomy(&["copy"]);
        command.args(words).current_dir(self.path(""));
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
    let stderr = String::from_utf8(output.stderr.clone()).unwrap();
    assert_eq!(output.status.code(), Some(status), "{output:?}");
    assert_eq!(stderr.lines().count(), 1, "{stderr}");
    assert!(stderr.starts_with("iotomy: cannot ") && !stderr.ends_with(".\n"), "{stderr}");
    stderr
}
