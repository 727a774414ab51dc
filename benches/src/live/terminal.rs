//! A terminal that this program creates, whose output is read and counted as fast as by any terminal.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread::JoinHandle;

use anyhow::{Context, Result, bail};
use rustix::fs::{Mode, OFlags, open};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};

use crate::child::die_with_parent;
use crate::session::lead_session;

/// Columns and rows.
pub(crate) const SIZE: [u16; 2] = [120, 40];

/// The first output of a view: the alternate screen of xterm.
const ENTERED: &[u8] = b"\x1b[?1049h";

/// A terminal and the thread that reads its output.
pub(crate) struct Terminal {
    pub(crate) path: PathBuf,
    /// Kept open: without an open near end, the far end would reach its end at once.
    near: File,
    reader: JoinHandle<TerminalOutput>,
}

/// The output of a terminal.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TerminalOutput {
    pub(crate) bytes: u64,
    /// Whether the output came from a view.
    pub(crate) is_view: bool,
}

impl Terminal {
    /// Creates a terminal that no process uses yet.
    pub(crate) fn open() -> Result<Self> {
        Self::try_open().context("cannot make a terminal")
    }

    fn try_open() -> Result<Self> {
        let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
        let far = openpt(flags)?;
        grantpt(&far)?;
        unlockpt(&far)?;
        let name = ptsname(&far, Vec::new())?;
        let path = PathBuf::from(OsStr::from_bytes(name.as_bytes()));
        let [ws_col, ws_row] = SIZE;
        tcsetwinsize(&far, Winsize { ws_row, ws_col, ws_xpixel: 0, ws_ypixel: 0 })?;
        let near = open(&path, OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC, Mode::empty())?;
        let reader = std::thread::spawn(move || drawn(&mut File::from(far)));
        Ok(Self { path, near: near.into(), reader })
    }

    /// Returns the output of the terminal, once no process uses it any more.
    pub(crate) fn close(self) -> Result<TerminalOutput> {
        drop(self.near);
        self.reader.join().ok().context("the thread that reads the terminal has failed")
    }
}

/// Reads to the end, which a terminal reports as an error.
fn drawn(from: &mut impl Read) -> TerminalOutput {
    let mut drawn = TerminalOutput::default();
    let mut bytes = [0; 64 << 10];
    // The first bytes of a view may be split between two reads.
    let mut head: Vec<u8> = Vec::new();
    while let Ok(got @ 1..) = from.read(&mut bytes) {
        drawn.bytes += got as u64;
        if head.len() < 4096 {
            head.extend_from_slice(&bytes[..got]);
            drawn.is_view = head.windows(ENTERED.len()).any(|window| window == ENTERED);
        }
    }
    drawn
}

/// Executes a command in a new session, with this terminal as its controlling terminal.
pub(crate) fn become_on(terminal: &Path, argv: &[OsString]) -> Result<()> {
    let [program, arguments @ ..] = argv else { bail!("nothing to run on a terminal") };
    die_with_parent()?;
    lead_session();
    // The first terminal that the leader of a session opens becomes the session's.
    let _opened = open(terminal, OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())
        .with_context(|| format!("cannot open {}", terminal.display()))?;
    Err(Command::new(program).args(arguments).env("TERM", "xterm").exec())
        .with_context(|| format!("cannot run {}", program.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_to_a_terminal_comes_out_of_it() {
        use std::io::Write;
        let mut terminal = Terminal::open().unwrap();
        terminal.near.write_all(b"\x1b[?1049hseen").unwrap();
        let drawn = terminal.close().unwrap();
        assert_eq!(drawn, TerminalOutput { bytes: 12, is_view: true });
        assert!(!Terminal::open().unwrap().close().unwrap().is_view);
    }

    #[test]
    fn a_view_is_known_wherever_reads_end() {
        let parts = [&b"ab\x1b[?10"[..], b"49h"];
        let mut from = parts[0].chain(parts[1]);
        assert!(drawn(&mut from).is_view);
    }
}
