//! How a port knows which of its threads run.

use std::fmt::Debug;
use std::fs::File;
use std::io::Read;
use std::time::Duration;

/// Has a port look at which of its threads run ([`crate::CompletionPort::look`]).
pub type Look = Box<dyn Fn() + Send + Sync>;

/// How a port knows which of its threads run.
pub trait RunWatch: Send + Sync + Debug {
    /// Its name, for reports.
    fn name(&self) -> &'static str;

    /// Whether a thread that blocks is known to be blocked at once.
    fn is_exact(&self) -> bool;

    /// How often the port is to look, where the watch does not have it look ([`crate::CompletionPort::look`]).
    fn interval(&self) -> Option<Duration>;

    /// Whether a thread of this process runs or is ready to; `None` if that cannot be found out.
    fn runs(&self, thread: i32) -> Option<bool>;

    /// The calling thread has retrieved from the port for the first time.
    fn joined(&self, _thread: i32) {}

    /// A thread retrieves from the port no more.
    fn left(&self, _thread: i32) {}

    /// Gives a watch without an interval what it calls when a thread has blocked or was woken.
    fn start(&self, _look: Look) {}

    /// Whether the port wants that to be called from now on; at first it does not.
    fn want(&self, _is_wanted: bool) {}
}

/// Looks into `/proc`: a thread that blocks for less than the interval keeps its place.
#[derive(Debug, Clone, Copy)]
pub struct ProcWatch {
    interval: Duration,
}

impl ProcWatch {
    /// A watch that looks this often.
    #[must_use]
    pub fn every(interval: Duration) -> Self {
        Self { interval }
    }
}

impl Default for ProcWatch {
    /// Every millisecond: what is worth a place of its own, a read from a disk or an answer from the network, takes
    /// longer.
    fn default() -> Self {
        Self::every(Duration::from_millis(1))
    }
}

impl RunWatch for ProcWatch {
    fn name(&self) -> &'static str {
        "/proc"
    }

    fn is_exact(&self) -> bool {
        false
    }

    fn interval(&self) -> Option<Duration> {
        Some(self.interval)
    }

    fn runs(&self, thread: i32) -> Option<bool> {
        // The name of the program, in parentheses, has 64 bytes at most; the state comes behind it.
        let mut text = [0; 128];
        let mut file = File::open(format!("/proc/self/task/{thread}/stat")).ok()?;
        let length = file.read(&mut text).ok()?;
        state(&text[..length]).map(|state| state == b'R')
    }
}

/// The letter of a thread's state in its `stat` (proc_pid_stat(5)).
fn state(stat: &[u8]) -> Option<u8> {
    let name_end = stat.iter().rposition(|byte| *byte == b')')?;
    stat.get(name_end + 2).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_state_comes_behind_the_name_whatever_that_is() {
        assert_eq!(state(b"17 (a) R) S 1 2"), Some(b'S'));
        assert_eq!(state(b"17 (worker) R 1"), Some(b'R'));
        assert_eq!(state(b"17 (worker)"), None);
    }

    #[test]
    fn a_thread_that_asks_for_itself_runs() {
        let watch = ProcWatch::default();
        let me = rustix::thread::gettid().as_raw_nonzero().get();
        assert_eq!(watch.runs(me), Some(true));
        assert_eq!(watch.runs(i32::MAX), None);
    }
}
