//! Processes that answer each line with a line. They end when their standard input closes, so none outlives this
//! program, whatever ends it.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use anyhow::{Context, Result};

/// A process that answers lines.
pub struct Talker {
    name: String,
    child: Child,
    into: Option<ChildStdin>,
    out: BufReader<ChildStdout>,
}

impl Talker {
    /// Starts the process; errors refer to it as `name`.
    ///
    /// # Errors
    /// When the process cannot be started.
    pub fn start(name: &str, command: &mut Command) -> Result<Self> {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .with_context(|| format!("cannot start {name}"))?;
        let (into, out) = (child.stdin.take(), child.stdout.take());
        let (into, out) = into.zip(out).context("no pipes to the contender")?;
        Ok(Self { name: name.to_owned(), child, into: Some(into), out: BufReader::new(out) })
    }

    /// Returns the name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the process id.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Sends a line and returns the answer.
    ///
    /// # Errors
    /// When the process has ended.
    pub fn ask(&mut self, line: &str) -> Result<String> {
        let into = self.into.as_mut().context("it has ended")?;
        let said = into.write_all(format!("{line}\n").as_bytes());
        said.with_context(|| format!("{} has gone", self.name))?;
        self.line()
    }

    /// Returns the next line of output, without its line end.
    ///
    /// # Errors
    /// When the process has ended.
    pub fn line(&mut self) -> Result<String> {
        let mut line = String::new();
        self.out.read_line(&mut line).with_context(|| format!("{} has gone", self.name))?;
        Ok(line.trim_end().to_owned())
    }
}

impl Drop for Talker {
    fn drop(&mut self) {
        // Closing its standard input ends the process.
        self.into = None;
        let _ = self.child.wait();
    }
}
