//! Long texts on a terminal go through a pager, as git's do.
//!
//! A text is paged where standard output is a terminal that it does not fit on; anything else gets it as
//! it is. Reports of runs, which go to standard error behind what the command printed, are not paged.
//! The pager is looked up as every helper is: root runs none that `PATH` names, and no shell reads the
//! variable. The one rule: a pager that is missing, or quit early, is not an error.

use std::env;
use std::io::{self, IsTerminal, Write};
use std::os::fd::AsFd;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};

use iotomy_record::store::{OutputFile, StoreError};
use iotomy_sys::launch::helper;
use iotomy_sys::signals::Remembered;
use iotomy_sys::startup::was_closed;

use crate::screen::is_dumb;

/// The usual pager, and how: colours as they are, nothing for a text that fits, the text stays.
const USUAL: &str = "less";
const USUAL_OPTIONS: (&str, &str) = ("LESS", "-FRX");

/// Whether the command line turns it off.
static IS_OFF: AtomicBool = AtomicBool::new(false);

/// For --no-pager.
pub(crate) fn turn_off() {
    IS_OFF.store(true, Ordering::Relaxed);
}

/// Prints a text to standard output, through the pager where it is longer than the terminal.
///
/// # Errors
/// When it cannot be written.
pub(crate) fn print(text: &str) -> Result<(), StoreError> {
    if is_long(text) && page(text) {
        return Ok(());
    }
    OutputFile::write(Path::new("-"), Path::new(""), text.as_bytes())
}

/// Whether standard output is a terminal that the text does not fit on.
fn is_long(text: &str) -> bool {
    let stdout = io::stdout();
    if IS_OFF.load(Ordering::Relaxed)
        || !stdout.is_terminal()
        || is_dumb()
        || was_closed(stdout.as_fd())
    {
        return false;
    }
    let rows = rustix::termios::tcgetwinsize(&stdout).map_or(0, |size| usize::from(size.ws_row));
    // The shell's prompt takes a line.
    rows > 0 && text.lines().count() >= rows
}

/// Gives a text to the pager and waits for it; `false` if there is none.
fn page(text: &str) -> bool {
    let Some(mut command) = command() else { return false };
    // What Ctrl-C means is the pager's to say, which has its usual action.
    let signals = Remembered::begin();
    let Ok(mut pager) = command.stdin(Stdio::piped()).spawn() else { return false };
    if let Some(mut to) = pager.stdin.take() {
        // One that is quit early has seen enough.
        let _ = to.write_all(text.as_bytes());
    }
    let _ = pager.wait();
    drop(signals);
    true
}

/// The pager that the user names, or the usual one; none where that is empty or `cat`, or not there.
fn command() -> Option<Command> {
    let named = ["IOTOMY_PAGER", "PAGER"].into_iter().find_map(env::var_os);
    let line = match &named {
        Some(line) => line.to_str()?,
        None => USUAL,
    };
    let mut words = line.split_whitespace();
    let program = words.next().filter(|program| *program != "cat")?;
    let mut command = helper(program).ok()?;
    command.args(words);
    let (variable, options) = USUAL_OPTIONS;
    if env::var_os(variable).is_none() {
        command.env(variable, options);
    }
    Some(command)
}
