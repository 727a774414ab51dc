//! A run of the command that is over.

use std::process::Output;

use tempfile::TempDir;

/// How it ended, and the folder its outputs are in.
pub(crate) struct EndedCommand {
    pub(crate) output: Output,
    pub(crate) folder: TempDir,
}

impl EndedCommand {
    pub(crate) fn code(&self) -> i32 {
        self.output.status.code().unwrap_or_else(|| panic!("{}", self.output.status))
    }

    pub(crate) fn stdout(&self) -> &str {
        std::str::from_utf8(&self.output.stdout).unwrap()
    }

    pub(crate) fn stderr(&self) -> &str {
        std::str::from_utf8(&self.output.stderr).unwrap()
    }
}
