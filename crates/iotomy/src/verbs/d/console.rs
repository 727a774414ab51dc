//! Where a program's output goes while it runs, and how its errors are told.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Stdout, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};
use iotomy_dtrace::form::DropCause;
use iotomy_record::store::Place;
use iotomy_sys::signals::ignore_keys_as_given;
use rustix::fs::FileType;

use crate::screen::{path_text, shown};

/// The bytes of output that a record keeps.
const MOST_KEPT: usize = 1 << 20;

/// The output of a program's statements, for its record.
#[derive(Default)]
pub(super) struct Kept {
    pub(super) text: Vec<u8>,
    pub(super) cut_bytes: u64,
    is_over: bool,
}

impl Kept {
    fn take(&mut self, text: &[u8]) {
        if self.is_over {
            return;
        }
        let room = MOST_KEPT - self.text.len();
        let (kept, cut) = text.split_at(room.min(text.len()));
        self.text.extend_from_slice(kept);
        self.cut_bytes += cut.len() as u64;
    }
}

/// An error that clauses ended with is told when it happens first; a hot probe could fill the terminal.
pub(super) struct Console {
    to: Destination,
    /// Standard output, if someone reads it while it is written.
    reader: Option<Stdout>,
    /// What a record is to have; none is wanted without.
    kept: Option<Kept>,
    program: String,
    /// How often each came, by its place and kind: the address may be another each time.
    errors: BTreeMap<String, u64>,
    /// The reader of the output has closed it.
    pub(super) is_pipe_broken: bool,
}

impl Console {
    /// Prints to a file, to standard output, or nowhere. `program` names the text in errors.
    ///
    /// # Errors
    /// The file cannot be opened.
    pub(super) fn new(
        file: Option<&Path>,
        program: &str,
        has_stdout: bool,
        is_kept: bool,
    ) -> Result<Self> {
        let file = file.filter(|path| *path != Path::new("-"));
        let open = |path: &Path| {
            // No link of another user leads it elsewhere.
            let opened = Place::resolve(path).and_then(|place| place.append());
            opened.with_context(|| format!("cannot write --output {}", path_text(path)))
        };
        let to = match file {
            Some(path) => Destination::File(open(path)?),
            None if has_stdout => Destination::Standard,
            None => Destination::Nowhere,
        };
        let is_read = matches!(to, Destination::Standard) && is_read(&io::stdout());
        Ok(Self {
            to,
            reader: is_read.then(io::stdout),
            kept: is_kept.then(Kept::default),
            program: program.to_owned(),
            errors: BTreeMap::new(),
            is_pipe_broken: false,
        })
    }

    /// The output that was kept.
    pub(super) fn take_kept(&mut self) -> Kept {
        self.kept.take().unwrap_or_default()
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
        if let Some(kept) = &mut self.kept {
            kept.take(text);
        }
        let printed = match &mut self.to {
            Destination::File(file) => file.write_all(text),
            Destination::Nowhere => Ok(()),
            Destination::Standard => {
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

    fn reader(&self) -> Option<BorrowedFd<'_>> {
        self.reader.as_ref().map(|reader| reader.as_fd())
    }

    fn reader_is_gone(&mut self) {
        self.is_pipe_broken = true;
    }

    fn ended(&mut self) {
        if let Some(kept) = &mut self.kept {
            kept.is_over = true;
        }
    }

    fn system(&mut self, command: &OsStr) {
        let mut shell = Command::new("/bin/sh");
        ignore_keys_as_given(&mut shell);
        let status = shell.arg("-c").arg(command).status();
        if let Err(error) = status {
            say(&format!("cannot run a shell for system(): {error}"));
        }
    }
}

/// Whether someone reads it: not a file's.
fn is_read(stdout: &Stdout) -> bool {
    let kind = rustix::fs::fstat(stdout).map(|stat| FileType::from_raw_mode(stat.st_mode));
    kind.is_ok_and(|kind| {
        matches!(kind, FileType::Fifo | FileType::Socket | FileType::CharacterDevice)
    })
}

/// Where the output goes.
enum Destination {
    File(File),
    Standard,
    Nowhere,
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
