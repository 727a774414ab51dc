//! The terminal during a live view: its screen, its keys one by one, and its restoration.
//!
//! The one invariant: however this process ends, the terminal is restored. A normal end, and a
//! panic, call [`restore`], which acts once; after a SIGKILL the guard does it.
//!
//! Keys that send signals keep doing so, to the whole foreground group, as without a view.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::{Mutex, Once, PoisonError};

use iotomy_sys::screen_guard::ScreenGuard;
use ratatui_core::backend::Backend;
use ratatui_core::buffer::Buffer;
use ratatui_crossterm::CrosstermBackend;
use rustix::termios::{
    InputModes, LocalModes, OptionalActions, QueueSelector, SpecialCodeIndex, Termios, tcflush,
    tcgetattr, tcgetwinsize, tcsetattr,
};

/// Enters the alternate screen, cleared and without a cursor; and the sequence to leave it.
const ENTER: &[u8] = b"\x1b[?1049h\x1b[?25l\x1b[2J";
const LEAVE: &[u8] = b"\x1b[0m\x1b[?25h\x1b[?1049l";

/// The assumed size of a terminal that reports none.
const USUAL: (u16, u16) = (80, 24);

/// The terminal that is to be restored, and its attributes.
static TAKEN: Mutex<Option<(File, Termios)>> = Mutex::new(None);

static HOOK: Once = Once::new();

/// Gives the terminal back, if it was taken.
fn restore() {
    let taken = TAKEN.lock().unwrap_or_else(PoisonError::into_inner).take();
    if let Some((mut tty, attributes)) = taken {
        // A terminal that is gone needs nothing.
        let _ = tty.write_all(LEAVE);
        // Keys meant for the view are not for the shell.
        let _ = tcflush(&tty, QueueSelector::IFlush);
        let _ = tcsetattr(&tty, OptionalActions::Now, &attributes);
    }
}

/// The terminal of this session.
pub(super) struct Terminal {
    tty: File,
    backend: CrosstermBackend<File>,
    shown: Buffer,
    guard: Option<ScreenGuard>,
}

impl Terminal {
    /// Finds it, and changes nothing yet.
    pub(super) fn open() -> io::Result<Self> {
        let tty = OpenOptions::new().read(true).write(true).open("/dev/tty")?;
        tcgetattr(&tty)?;
        let backend = CrosstermBackend::new(tty.try_clone()?);
        Ok(Self { tty, backend, shown: Buffer::default(), guard: None })
    }

    /// Takes the screen.
    pub(super) fn take(&mut self) -> io::Result<()> {
        HOOK.call_once(|| {
            let before = std::panic::take_hook();
            std::panic::set_hook(Box::new(move |panic| {
                restore();
                before(panic);
            }));
        });
        let as_it_was = tcgetattr(&self.tty)?;
        self.guard = Some(ScreenGuard::new(self.tty.as_fd(), LEAVE)?);
        let taken = (self.tty.try_clone()?, as_it_was.clone());
        *TAKEN.lock().unwrap_or_else(PoisonError::into_inner) = Some(taken);
        let mut keyed = as_it_was;
        keyed.local_modes -= LocalModes::ICANON | LocalModes::ECHO | LocalModes::IEXTEN;
        keyed.input_modes -= InputModes::IXON;
        // A read returns the available bytes, possibly none.
        keyed.special_codes[SpecialCodeIndex::VMIN] = 0;
        keyed.special_codes[SpecialCodeIndex::VTIME] = 0;
        tcsetattr(&self.tty, OptionalActions::Now, &keyed)?;
        self.shown = Buffer::default();
        self.tty.write_all(ENTER)
    }

    /// Gives it back; nothing happens if it was not taken.
    pub(super) fn give_back(&mut self) {
        restore();
        self.guard = None;
    }

    /// Columns and rows.
    pub(super) fn size(&self) -> (u16, u16) {
        match tcgetwinsize(&self.tty) {
            Ok(size) if size.ws_col > 0 && size.ws_row > 0 => (size.ws_col, size.ws_row),
            _ => USUAL,
        }
    }

    /// The input since the last call; `None` when the terminal is gone.
    pub(super) fn typed(&mut self) -> Option<Vec<u8>> {
        let mut typed = Vec::new();
        let mut bytes = [0; 256];
        loop {
            match self.tty.read(&mut bytes) {
                // Of a terminal that has hung up nothing is read either, and it has no attributes.
                Ok(0) => return tcgetattr(&self.tty).is_ok().then_some(typed),
                Ok(n) => typed.extend_from_slice(&bytes[..n]),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => return None,
            }
        }
    }

    /// Forgets the displayed content, so that the next drawing is complete.
    pub(super) fn forget(&mut self) {
        self.shown = Buffer::default();
    }

    /// Draws the differences from the displayed content.
    pub(super) fn show(&mut self, next: Buffer) -> io::Result<()> {
        if next.area != self.shown.area {
            self.backend.clear()?;
            self.shown = Buffer::empty(next.area);
        }
        self.backend.draw(self.shown.diff(&next).into_iter())?;
        Backend::flush(&mut self.backend)?;
        self.shown = next;
        Ok(())
    }

    /// Writes a command's output.
    pub(super) fn write(&mut self, bytes: &[u8]) {
        // If the terminal is gone, nothing can be reported.
        let _ = self.tty.write_all(bytes);
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        self.give_back();
    }
}

impl AsFd for Terminal {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.tty.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::process::{Command, Stdio};

    use super::*;

    /// Set where this test runs itself, on a terminal.
    const INSIDE: &str = "IOTOMY_TEST_ON_A_TERMINAL";

    #[test]
    fn a_panic_gives_the_terminal_back_before_its_message() {
        if std::env::var_os(INSIDE).is_some() {
            let mut terminal = Terminal::open().unwrap();
            terminal.take().unwrap();
            panic!("in the middle of it");
        }
        let folder = tempfile::tempdir().unwrap();
        let test = std::thread::current().name().unwrap().to_owned();
        let line = format!(
            "cd {}; stty -g > before; {} --exact {test} --nocapture; echo status $?; stty -g > after",
            folder.path().display(),
            std::env::current_exe().unwrap().display(),
        );
        let mut script = Command::new("script");
        script.args(["-qec", &line, "/dev/null"]).env(INSIDE, "1").env("TERM", "xterm");
        script.stdin(Stdio::piped()).stdout(Stdio::piped());
        let Ok(mut child) = script.spawn() else {
            return iotomy_test_requirements::skip(
                iotomy_test_requirements::Need::Programs,
                "there is no script",
            );
        };
        // Open until the end: closing it would end the terminal.
        let keys = child.stdin.take();
        let output = child.wait_with_output().unwrap();
        drop(keys);
        let seen = String::from_utf8_lossy(&output.stdout).into_owned();
        let leave = std::str::from_utf8(LEAVE).unwrap();
        assert_eq!(seen.matches(leave).count(), 1, "{seen:?}");
        let (view, after) = seen.split_once(leave).unwrap();
        assert!(view.contains(std::str::from_utf8(ENTER).unwrap()), "{seen:?}");
        assert!(after.contains("in the middle of it") && after.contains("status 101"), "{seen:?}");
        let attributes = |name: &str| fs::read_to_string(folder.path().join(name)).unwrap();
        assert_eq!(attributes("before"), attributes("after"));
    }
}
