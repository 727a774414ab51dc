//! Where a program's output goes while it runs, and how its errors are told.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Write};
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};
use iotomy_d::form::DropCause;
use iotomy_record::store::Place;

use crate::screen::shown;

/// An error that clauses ended with is told when it happens first; a hot probe could fill the terminal.
pub(super) struct Console {
    /// Standard output, if there is none.
    file: Option<File>,
    program: String,
    /// How often each came, by its place and kind: the address may be another each time.
    errors: BTreeMap<String, u64>,
    /// The reader of the output has closed it.
    pub(super) is_pipe_broken: bool,
}

impl Console {
    /// Prints to a file, or to standard output. `program` names the text in errors.
    ///
    /// # Errors
    /// The file cannot be opened.
    pub(super) fn new(file: Option<&Path>, program: &str) -> Result<Self> {
        let file = file.filter(|path| *path != Path::new("-"));
        let open = |path: &Path| {
            // No link of another user leads it elsewhere.
            let opened = Place::resolve(path).and_then(|place| place.append());
            opened.with_context(|| format!("cannot write --output {}", path.display()))
        };
        let file = file.map(open).transpose()?;
        Ok(Self {
            file,
            program: program.to_owned(),
            errors: BTreeMap::new(),
            is_pipe_broken: false,
        })
    }

    /// Says how often errors came that were told once.
    pub(super) fn finish(&self) {
        for (line, count) in self.errors.iter().filter(|(_, count)| **count > 1) {
            say(&format!("{}:{line}: {count} times", self.program));
        }
    }
}

impl iotomy_observe::d::Console for Console {
    fn print(&mut self, text: &[u8]) -> io::Result<()> {
        let printed = match &mut self.file {
            Some(file) => file.write_all(text),
            None => {
                let mut stdout = io::stdout().lock();
                stdout.write_all(text).and_then(|()| stdout.flush())
            }
        };
        let is_broken = |error: &io::Error| error.kind() == io::ErrorKind::BrokenPipe;
        self.is_pipe_broken |= printed.as_ref().is_err_and(is_broken);
        printed
    }

    fn error(&mut self, line: &str) {
        let kind = line.split(" (").next().unwrap_or(line);
        let count = self.errors.entry(kind.to_owned()).or_default();
        *count += 1;
        if *count == 1 {
            say(&format!("{}:{line}", self.program));
        }
    }

    fn system(&mut self, command: &str) {
        let status = Command::new("/bin/sh").arg("-c").arg(command).status();
        if let Err(error) = status {
            say(&format!("cannot run a shell for system(): {error}"));
        }
    }
}

fn say(line: &str) {
    // If standard error is closed, nothing can be reported.
    let _ = writeln!(io::stderr(), "iotomy: {}", shown(line));
}

/// What was lost for a cause, and the option that gives room.
pub(super) fn lost(cause: DropCause) -> &'static str {
    match cause {
        DropCause::Buffer => {
            "clauses ended early: no room for their records; try a larger -x bufsize"
        }
        DropCause::Aggregation => {
            "values lost: no room for another key of an aggregation; try a larger -x aggsize"
        }
        DropCause::DynamicVariable => {
            "values lost: no room for another variable; try a larger -x dynvarsize"
        }
        DropCause::ErrorInError => "errors lost: they came in an ERROR clause",
    }
}
