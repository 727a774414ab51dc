//! Captures the terminal output of a command while the live view owns the screen: it goes to a
//! terminal of its own, so that the command writes what it would write without the view, and is
//! stored until the terminal returns.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, IsTerminal, Read};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use iotomy_sys::launch::{Stream, Streams};
use iotomy_sys::startup::was_closed;
use rustix::fs::{OFlags, fcntl_setfl};
use rustix::pty::{OpenptFlags, grantpt, ioctl_tiocgptpeer, openpt, unlockpt};
use rustix::termios::{
    LocalModes, OptionalActions, OutputModes, Winsize, tcgetattr, tcsetattr, tcsetwinsize,
};

/// Bytes that are kept, the last ones.
const KEPT: usize = 1 << 20;

/// The terminal a command writes to.
pub(super) struct Capture {
    master: File,
    kept: VecDeque<u8>,
    dropped: u64,
}

/// The streams of a command: those of this process, except those that are a terminal. Reads from it
/// find it empty, and writes to it are captured.
pub(super) fn streams(size: (u16, u16)) -> io::Result<(Streams, Option<Capture>)> {
    let (stdin, stdout, stderr) = (io::stdin(), io::stdout(), io::stderr());
    let input = match stdin.is_terminal() {
        true => File::open("/dev/null")?.into(),
        false => stdin.as_fd().try_clone_to_owned()?,
    };
    let mut capture = None;
    let mut peer = None;
    if stdout.is_terminal() || stderr.is_terminal() {
        let (master, slave) = pair(size)?;
        capture = Some(Capture { master, kept: VecDeque::new(), dropped: 0 });
        peer = Some(slave);
    }
    let out = |is_terminal: bool, own: BorrowedFd<'_>| match &peer {
        Some(peer) if is_terminal => peer.try_clone(),
        _ => own.try_clone_to_owned(),
    };
    let streams = Streams {
        input: as_given(stdin.as_fd(), input),
        output: as_given(stdout.as_fd(), out(stdout.is_terminal(), stdout.as_fd())?),
        error: as_given(stderr.as_fd(), out(stderr.is_terminal(), stderr.as_fd())?),
    };
    Ok((streams, capture))
}

/// A stream of the command; closed, where iotomy's own was.
fn as_given(own: BorrowedFd<'_>, stream: OwnedFd) -> Stream {
    (!was_closed(own)).then(|| Arc::new(stream))
}

/// A terminal that hands bytes over as they are.
fn pair(size: (u16, u16)) -> io::Result<(File, OwnedFd)> {
    let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC)?;
    grantpt(&master)?;
    unlockpt(&master)?;
    let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
    let slave = ioctl_tiocgptpeer(&master, flags)?;
    let mut attributes = tcgetattr(&slave)?;
    attributes.output_modes -= OutputModes::OPOST;
    attributes.local_modes -= LocalModes::ECHO;
    tcsetattr(&slave, OptionalActions::Now, &attributes)?;
    fcntl_setfl(&master, OFlags::NONBLOCK)?;
    let master = File::from(master);
    resize(&master, size);
    Ok((master, slave))
}

fn resize(master: &File, (columns, rows): (u16, u16)) {
    let size = Winsize { ws_col: columns, ws_row: rows, ws_xpixel: 0, ws_ypixel: 0 };
    // A program that asks gets the former size.
    let _ = tcsetwinsize(master, size);
}

impl Capture {
    /// The output since the last call, up to some 64 KiB.
    pub(super) fn written(&mut self) -> Vec<u8> {
        let mut written = Vec::new();
        let mut bytes = [0; 4096];
        while written.len() < 1 << 16 {
            match self.master.read(&mut bytes) {
                Ok(0) => break,
                Ok(n) => written.extend_from_slice(&bytes[..n]),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                // No data, or no writer.
                Err(_) => break,
            }
        }
        written
    }

    /// Keeps bytes for later; the oldest go when there are too many.
    pub(super) fn keep(&mut self, bytes: &[u8]) {
        self.kept.extend(bytes);
        let over = self.kept.len().saturating_sub(KEPT);
        self.kept.drain(..over);
        self.dropped += over as u64;
    }

    /// The stored output, and the number of bytes before it that were dropped.
    pub(super) fn take_kept(&mut self) -> (Vec<u8>, u64) {
        (std::mem::take(&mut self.kept).into(), std::mem::take(&mut self.dropped))
    }

    pub(super) fn resize(&self, size: (u16, u16)) {
        resize(&self.master, size);
    }
}

impl AsFd for Capture {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.master.as_fd()
    }
}
