//! Where scrapes and pushes wait for the watch, which answers all that wait with one look at the counts.
//!
//! The one invariant: an answer was read after it was asked for. No scrape gets an older one's.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use hyper::body::Bytes;
use rustix::event::{EventfdFlags, eventfd};
use rustix::io;
use tokio::sync::oneshot;

/// What is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// The text of a scrape.
    Text,
    /// A message of OTLP.
    Otlp,
}

/// The metrics in the form that was asked for, or why there are none.
pub(crate) type Answer = Result<Bytes, String>;

/// One that waits.
pub(crate) type Waiting = (Form, oneshot::Sender<Answer>);

/// How pushes went.
#[derive(Debug, Default)]
pub(crate) struct PushCounters {
    pub(crate) taken: AtomicU64,
    pub(crate) failed: AtomicU64,
    pub(crate) refused: AtomicU64,
    pub(crate) rejected_points: AtomicU64,
}

/// Scrapes and pushes that wait, and what the server counts.
pub(crate) struct Desk {
    waiting: Mutex<Vec<Waiting>>,
    bell: OwnedFd,
    /// Connections that were closed because there were too many.
    pub(crate) refused: AtomicU64,
    /// Connections that were closed before they had asked for something, or had their answer.
    pub(crate) cut: AtomicU64,
    /// Requests without the token.
    pub(crate) unauthorized: AtomicU64,
    pub(crate) pushes: PushCounters,
}

impl Desk {
    /// # Errors
    /// The kernel's error.
    pub(crate) fn new() -> io::Result<Self> {
        let bell = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        let (refused, cut, unauthorized, pushes) = Default::default();
        Ok(Self { waiting: Mutex::default(), bell, refused, cut, unauthorized, pushes })
    }

    /// Asks for the counts. An answer that is dropped means that the watch has ended.
    pub(crate) fn ask(&self, form: Form) -> oneshot::Receiver<Answer> {
        let (sender, receiver) = oneshot::channel();
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner).push((form, sender));
        // It is readable already where this fails.
        let _ = io::write(&self.bell, &1u64.to_ne_bytes());
        receiver
    }

    /// Those that have asked so far and still wait.
    pub(crate) fn take(&self) -> Vec<Waiting> {
        // Before the list: who comes from now on rings again.
        let _ = io::read(&self.bell, &mut [0u8; 8]);
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        let mut taken = std::mem::take(&mut *waiting);
        taken.retain(|(_, one)| !one.is_closed());
        taken
    }

    pub(crate) fn count(counter: &AtomicU64) {
        counter.fetch_add(1, Ordering::Relaxed);
    }
}

impl AsFd for Desk {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.bell.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};

    use super::*;

    #[test]
    fn who_asks_rings_and_who_has_left_is_not_answered() {
        let desk = Desk::new().unwrap();
        let rings = || {
            let mut bell = [PollFd::new(&desk, PollFlags::IN)];
            poll(&mut bell, Some(&Timespec::default())).unwrap() == 1
        };
        assert!(!rings() && desk.take().is_empty());
        let mut stays = desk.ask(Form::Otlp);
        drop(desk.ask(Form::Text));
        assert!(rings());
        let waiting = desk.take();
        assert_eq!(waiting.len(), 1);
        assert!(!rings() && desk.take().is_empty());
        for (form, one) in waiting {
            assert_eq!(form, Form::Otlp);
            one.send(Ok(Bytes::from_static(b"text"))).unwrap();
        }
        assert_eq!(stays.try_recv().unwrap().unwrap(), "text");
    }
}
