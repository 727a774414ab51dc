//! The rounds of libevent's benchmark, through any waiter.
//!
//! Pairs of UNIX sockets. In each round readers are registered again and one poll is made; then one
//! byte is sent to ACTIVE of them, evenly spaced; then the timed part: a loop until every byte has
//! been received, in which a reader receives one byte and, while there are WRITES left, sends one
//! to the next pair. So a round has ACTIVE + WRITES events.
//!
//! The loop never sleeps, because the bytes it waits for are its own. With a partner it sleeps:
//! another thread sends the readers' bytes.
//!
//! The one invariant: between [`Ring::begin`] and the end of [`Ring::run`] no byte is sent that is not
//! counted, so that a round is over exactly when everything sent has been received.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use rustix::net::{RecvFlags, SendFlags, recv, send};

use crate::{Events, Interest, Trigger, WaitError, Waiter};

/// Consecutive polls that may find nothing before bytes count as lost. Only to stop a loop that
/// would hang.
const EMPTY_LOOKS: u32 = 1_000_000;

/// How long a byte of the partner may take. Only to stop a loop that would hang.
const PATIENCE: Duration = Duration::from_secs(30);

/// Why a round did not end.
#[derive(Debug, thiserror::Error)]
pub enum RoundError {
    /// The waiter failed.
    #[error(transparent)]
    Waiter(#[from] WaitError),
    /// A call of the round itself failed.
    #[error("{call}: {source}")]
    Call {
        /// Which.
        call: &'static str,
        /// The kernel's error.
        source: io::Error,
    },
    /// Bytes were sent and not reported.
    #[error("{sent} bytes were sent, {received} received, and the waiter reports no more events")]
    Lost {
        /// The number of sent bytes.
        sent: usize,
        /// The number of received bytes.
        received: usize,
    },
}

fn failed(call: &'static str) -> impl FnOnce(io::Error) -> RoundError {
    move |source| RoundError::Call { call, source }
}

/// Pairs of sockets, and the state of a round.
#[derive(Debug)]
pub struct Ring {
    readers: Vec<OwnedFd>,
    writers: Arc<Vec<OwnedFd>>,
    /// How many pairs take part.
    used: usize,
    received: usize,
    sent: usize,
    writes: usize,
    partner: Option<Partner>,
}

/// A thread that sends the readers' bytes: it receives the number of a pair.
#[derive(Debug)]
struct Partner {
    /// Closed first, which ends the thread.
    told: Option<OwnedFd>,
    thread: Option<JoinHandle<()>>,
}

impl Partner {
    fn start(writers: Arc<Vec<OwnedFd>>) -> io::Result<Self> {
        let (out, into) = io::pipe()?;
        let mut out = File::from(OwnedFd::from(out));
        let work = move || {
            let mut number = [0; 4];
            while out.read_exact(&mut number).is_ok() {
                let at = u32::from_ne_bytes(number) as usize;
                // A refused send is missing at the end of the round, which reports it.
                let _ = send(&writers[at], b"e", SendFlags::empty());
            }
        };
        let thread = std::thread::Builder::new().name("partner".into()).spawn(work)?;
        Ok(Self { told: Some(into.into()), thread: Some(thread) })
    }
}

impl Drop for Partner {
    fn drop(&mut self) {
        self.told = None;
        if let Some(thread) = self.thread.take() {
            // It returns nothing; its panic was printed.
            let _ = thread.join();
        }
    }
}

impl Ring {
    /// Opens this many pairs, at least one, with two descriptors each.
    ///
    /// # Errors
    /// When the kernel has no more.
    pub fn new(pairs: usize) -> Result<Self, RoundError> {
        let (mut readers, mut writers) = (Vec::with_capacity(pairs), Vec::with_capacity(pairs));
        for _ in 0..pairs.max(1) {
            let (reader, writer) = UnixStream::pair().map_err(failed("socketpair"))?;
            reader.set_nonblocking(true).map_err(failed("ioctl FIONBIO"))?;
            readers.push(reader.into());
            writers.push(writer.into());
        }
        let (used, writers) = (readers.len(), Arc::new(writers));
        Ok(Self { readers, writers, used, received: 0, sent: 0, writes: 0, partner: None })
    }

    /// From now on only the first `pairs` take part, or all.
    pub fn take_first(&mut self, pairs: usize) {
        self.used = pairs.clamp(1, self.readers.len());
    }

    /// How many pairs take part.
    pub fn pairs(&self) -> usize {
        self.used
    }

    /// The end of a pair that is read.
    ///
    /// # Panics
    /// When there is no such pair.
    pub fn reader(&self, at: usize) -> BorrowedFd<'_> {
        self.readers[at].as_fd()
    }

    /// The end of a pair that is written.
    ///
    /// # Panics
    /// When there is no such pair.
    pub fn writer(&self, at: usize) -> BorrowedFd<'_> {
        self.writers[at].as_fd()
    }

    /// From now on another thread sends the readers' bytes, or none does.
    ///
    /// # Errors
    /// When no thread can be created.
    pub fn set_partner(&mut self, is_there: bool) -> Result<(), RoundError> {
        self.partner = None;
        if is_there {
            let partner = Partner::start(self.writers.clone()).map_err(failed("clone"))?;
            self.partner = Some(partner);
        }
        Ok(())
    }

    /// Has the waiter watch all readers; tokens are their numbers.
    ///
    /// # Errors
    /// How many it watches, and why no more; those are to be removed by [`Ring::leave`].
    pub fn register(&self, waiter: &mut dyn Waiter) -> Result<(), (usize, WaitError)> {
        for (at, reader) in self.readers[..self.used].iter().enumerate() {
            waiter.add(reader.as_fd(), Interest::READ, at as u64).map_err(|error| (at, error))?;
        }
        Ok(())
    }

    /// Removes the first readers from the waiter.
    ///
    /// # Errors
    /// The waiter's.
    pub fn leave(&self, waiter: &mut dyn Waiter, watched: usize) -> Result<(), WaitError> {
        self.readers[..watched].iter().try_for_each(|reader| waiter.remove(reader.as_fd()))
    }

    /// Sends one byte to `active` readers, evenly spaced; as many as there are at most.
    ///
    /// # Errors
    /// When the kernel refuses one.
    pub fn begin(&mut self, active: usize, writes: usize) -> Result<(), RoundError> {
        let active = active.clamp(1, self.used);
        let space = self.used / active;
        for at in 0..active {
            send(&self.writers[at * space], b"e", SendFlags::empty())
                .map_err(|e| failed("sendto")(e.into()))?;
        }
        (self.received, self.sent, self.writes) = (0, active, writes);
        Ok(())
    }

    /// Whether all that was sent has been received.
    #[inline]
    pub fn is_over(&self) -> bool {
        self.received >= self.sent
    }

    /// Receives the sent bytes, until none are left. This is the timed part.
    ///
    /// # Errors
    /// The waiter's, and [`RoundError::Lost`] when it reports nothing although there is something.
    pub fn run(&mut self, waiter: &mut dyn Waiter, events: &mut Events) -> Result<(), RoundError> {
        let capabilities = &waiter.declaration().capabilities;
        let timeout = Some(if self.partner.is_some() { PATIENCE } else { Duration::ZERO });
        let mut empty = 0;
        while !self.is_over() {
            if waiter.wait(events, timeout)? == 0 {
                empty += 1;
                if self.partner.is_some() || empty > EMPTY_LOOKS {
                    let Self { sent, received, .. } = *self;
                    return Err(RoundError::Lost { sent, received });
                }
                continue;
            }
            empty = 0;
            if capabilities.receives {
                for at in 0..events.len() {
                    let token = events.as_slice()[at].token as usize;
                    (0..events.received(at).len()).for_each(|_| self.has_read(token));
                }
                continue;
            }
            match capabilities.trigger {
                Trigger::Level => events.iter().for_each(|e| _ = self.read(e.token as usize)),
                Trigger::Edge => {
                    events.iter().for_each(|e| while self.read(e.token as usize) {});
                }
                Trigger::OneShot => {
                    for event in &*events {
                        let at = event.token as usize;
                        self.read(at);
                        waiter.modify(self.readers[at].as_fd(), Interest::READ, event.token)?;
                    }
                }
            }
        }
        Ok(())
    }

    /// A reader was reported; returns whether it had a byte.
    ///
    /// # Panics
    /// When there is no such pair.
    // Always inlined: a return behind the calls would be part of the measurement (see
    // `iotomy_sys::epoll::epoll_wait`).
    #[inline(always)]
    pub fn read(&mut self, at: usize) -> bool {
        let had = recv(&self.readers[at], &mut [0_u8; 1], RecvFlags::empty()).is_ok();
        if had {
            self.has_read(at);
        }
        had
    }

    #[inline(always)]
    fn has_read(&mut self, at: usize) {
        self.received += 1;
        if self.writes == 0 {
            return;
        }
        let next = if at + 1 == self.used { 0 } else { at + 1 };
        let is_sent = match &self.partner {
            None => send(&self.writers[next], b"e", SendFlags::empty()).is_ok(),
            Some(partner) => partner.tell(next),
        };
        if is_sent {
            (self.writes, self.sent) = (self.writes - 1, self.sent + 1);
        }
    }
}

impl Partner {
    fn tell(&self, pair: usize) -> bool {
        let number = u32::try_from(pair).unwrap_or(u32::MAX).to_ne_bytes();
        self.told.as_ref().is_some_and(|told| rustix::io::write(told, &number) == Ok(4))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Probe, Settings, WAITERS};

    #[test]
    fn every_waiter_that_tells_the_truth_ends_every_round() {
        for declaration in WAITERS.iter().filter(|one| !one.calls.wait.is_empty()) {
            if let Probe::Unsupported(reason) = (declaration.probe)() {
                let reason = format!("{}: {reason}", declaration.name);
                iotomy_test_requirements::skip(iotomy_test_requirements::Need::Machine, &reason);
                continue;
            }
            let mut waiter = (declaration.open)(&Settings::default()).unwrap();
            let mut events = Events::with_capacity(8);
            let mut ring = Ring::new(12).unwrap();
            for (used, active, writes, by_partner) in
                [(12, 1, 30, false), (12, 12, 0, false), (7, 3, 50, false), (12, 4, 40, true)]
            {
                ring.take_first(used);
                ring.set_partner(by_partner).unwrap();
                ring.register(waiter.as_mut()).unwrap();
                waiter.wait(&mut events, Some(Duration::ZERO)).unwrap();
                assert!(events.is_empty(), "{}", declaration.name);
                ring.begin(active, writes).unwrap();
                ring.run(waiter.as_mut(), &mut events).unwrap();
                assert_eq!((ring.received, ring.writes), (active + writes, 0));
                ring.leave(waiter.as_mut(), used).unwrap();
            }
        }
    }

    #[test]
    fn a_waiter_that_tells_nothing_is_found_out() {
        let mut waiter = (crate::waiter("epoll").unwrap().open)(&Settings::default()).unwrap();
        let mut ring = Ring::new(2).unwrap();
        ring.begin(2, 0).unwrap();
        let lost = ring.run(waiter.as_mut(), &mut Events::with_capacity(8)).unwrap_err();
        assert!(lost.to_string().starts_with("2 bytes were sent, 0 received"), "{lost}");
    }
}
