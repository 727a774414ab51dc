//! An `io_uring(7)` for requests that do nothing: the cost of one call through a ring.
//!
//! The one invariant: at most one request is in flight, and it refers to no memory.

use std::io;
use std::time::{Duration, Instant};

use io_uring::{IoUring, opcode};

/// How long the kernel's thread polls an idle ring before it sleeps, in ms: longer than any pause
/// between two requests here.
const POLL_MS: u32 = 100;

/// Polls of the completion queue between two readings of the clock.
const LOOKS: u32 = 1 << 12;

/// The longest a completion is waited for.
const PATIENCE: Duration = Duration::from_secs(2);

/// A ring for one request at a time.
pub struct NopRing {
    ring: IoUring,
    polled: bool,
}

impl NopRing {
    /// A ring that is entered for each request.
    ///
    /// # Errors
    /// As `io_uring_setup(2)`.
    pub fn entered() -> io::Result<Self> {
        Ok(Self { ring: IoUring::new(8)?, polled: false })
    }

    /// A ring that a thread of the kernel watches, which is kept on a CPU.
    ///
    /// # Errors
    /// As `io_uring_setup(2)`.
    pub fn polled_on(cpu: u32) -> io::Result<Self> {
        let ring = IoUring::builder().setup_sqpoll(POLL_MS).setup_sqpoll_cpu(cpu).build(8)?;
        Ok(Self { ring, polled: true })
    }

    /// Hands over a request that does nothing and takes its completion: by one
    /// `io_uring_enter(2)`, or by looking until the kernel's thread has put it there.
    ///
    /// # Errors
    /// As `io_uring_enter(2)`; the kernel's error for the request; `ETIME` when its thread does not
    /// respond. The ring cannot be used afterwards.
    pub fn round_trip(&mut self) -> io::Result<()> {
        let request = opcode::Nop::new().build();
        // SAFETY: a request that does nothing refers to no memory.
        let pushed = unsafe { self.ring.submission().push(&request) };
        pushed.map_err(|_| io::Error::from_raw_os_error(libc::EBUSY))?;
        if !self.polled {
            self.ring.submit_and_wait(1)?;
            return self.take().unwrap_or_else(|| Err(io::Error::from_raw_os_error(libc::EAGAIN)));
        }
        // Enters the kernel only when its thread has fallen asleep.
        self.ring.submit()?;
        let mut since = None;
        loop {
            for _ in 0..LOOKS {
                if let Some(done) = self.take() {
                    return done;
                }
                std::hint::spin_loop();
            }
            // The kernel's thread may need this very CPU.
            std::thread::yield_now();
            if since.get_or_insert_with(Instant::now).elapsed() > PATIENCE {
                return Err(io::Error::from_raw_os_error(libc::ETIME));
            }
        }
    }

    fn take(&mut self) -> Option<io::Result<()>> {
        let result = self.ring.completion().next()?.result();
        Some(if result < 0 { Err(io::Error::from_raw_os_error(-result)) } else { Ok(()) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_come_back_one_by_one() {
        for (kind, ring) in [("entered", NopRing::entered()), ("polled", NopRing::polled_on(0))] {
            match ring {
                Ok(mut ring) => (0..100).for_each(|_| ring.round_trip().unwrap()),
                Err(e) => iotomy_test_requirements::skip(
                    iotomy_test_requirements::Need::IoUring,
                    &format!("no ring that is {kind}: {e}"),
                ),
            }
        }
    }
}
