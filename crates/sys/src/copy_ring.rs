//! An `io_uring(7)` that reads from one descriptor and writes to another, with buffers of its own.
//!
//! The one invariant: a buffer that the kernel may still read from or write into is neither read
//! nor freed. The ring owns the buffers; a slot's buffer is not lent while a request of its slot is
//! in flight, and dropping the ring cancels the requests in flight and waits for the last
//! completion.
//!
//! No wait is endless: Linux (seen once on 6.18, writing to btrfs) can accept a request and never
//! give it to a worker. When nothing has completed for as long as the ring's patience, the pending
//! requests are cancelled. Those that the kernel releases complete with `ECANCELED` and can be
//! submitted again; those that are really in progress continue, and the next wait for them is twice
//! as long.
//!
//! The kernel also cancels requests that it can create no worker for (`RLIMIT_NPROC`). Submitting
//! them again does not help: [`CopyRing::is_refused`].

use std::io;
use std::ops::Range;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::time::Duration;

use io_uring::{IoUring, opcode, squeue, types};

use crate::buffer::Aligned;

/// The two registered descriptors.
const SOURCE: types::Fixed = types::Fixed(0);
const TARGET: types::Fixed = types::Fixed(1);

/// The offset that means the descriptor's position.
const POSITION: u64 = u64::MAX;

/// How often the kernel may cancel as many requests as a ring holds before it is taken at its word.
const ROUNDS: usize = 3;

/// How often in a row the kernel may have no room for requests or completions, a millisecond apart, before that is an
/// error.
const IN_VAIN: u32 = 1000;

/// The half of a move that a completion belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Half {
    /// Into the buffer.
    Read,
    /// Out of it.
    Write,
}

/// A request that has ended.
#[derive(Debug)]
pub struct Completion {
    /// The slot whose buffer it used.
    pub slot: usize,
    /// The half it was.
    pub half: Half,
    /// How many bytes it moved. `ECANCELED` is a write linked to a read that came short, or a request
    /// that was taken back because nothing had completed for too long: it has moved nothing.
    pub result: io::Result<usize>,
}

/// A ring with `slots` buffers.
pub struct CopyRing {
    // Dropped before the buffers; nothing is in flight by then.
    ring: IoUring,
    buffers: Vec<Aligned>,
    under_way: Vec<u32>,
    /// The slots of queued requests, the last ones at the end; those that the kernel has taken are
    /// removed at the next check.
    queued: Vec<usize>,
    /// Whether nothing may be handed to the kernel any more.
    closed: bool,
    registered_buffers: bool,
    /// How long nothing may complete before the requests in flight are cancelled.
    patience: Duration,
    /// The same for the next wait: doubled after each wait without a completion, so that slow
    /// requests complete.
    waits: Duration,
    /// How many requests in a row were cancelled since the ring last did that itself.
    cancelled: usize,
}

/// `struct io_uring_getevents_arg` of `linux/io_uring.h`.
#[repr(C)]
struct GetEvents {
    sigmask: u64,
    sigmask_bytes: u32,
    min_wait_us: u32,
    timeout: u64,
}

/// `struct __kernel_timespec` of `linux/time_types.h`.
#[repr(C)]
struct KernelTime {
    seconds: i64,
    nanoseconds: i64,
}

impl From<Duration> for KernelTime {
    fn from(duration: Duration) -> Self {
        Self {
            seconds: i64::try_from(duration.as_secs()).unwrap_or(i64::MAX),
            nanoseconds: duration.subsec_nanos().into(),
        }
    }
}

impl CopyRing {
    /// A ring between two descriptors. Buffers are registered where the limit on locked memory
    /// allows it. When nothing has completed for `patience`, the requests in flight are cancelled.
    ///
    /// # Errors
    /// The call that failed, with why: as `io_uring_setup(2)` and `io_uring_register(2)`, and `mmap(2)` of
    /// the buffers.
    pub fn new(
        source: BorrowedFd<'_>,
        target: BorrowedFd<'_>,
        slots: u32,
        block_bytes: usize,
        patience: Duration,
    ) -> Result<Self, (&'static str, io::Error)> {
        let slots = slots.max(1);
        // Each slot has at most a read and a write in flight.
        let entries = (2 * slots).next_power_of_two();
        let ring = IoUring::new(entries).map_err(|e| ("io_uring_setup", e))?;
        let files = [source.as_raw_fd(), target.as_raw_fd()];
        ring.submitter().register_files(&files).map_err(|e| ("io_uring_register", e))?;
        let buffers: io::Result<Vec<_>> =
            (0..slots).map(|_| Aligned::try_new(block_bytes)).collect();
        let mut buffers = buffers.map_err(|e| ("mmap", e))?;
        let vectors: Vec<_> = buffers
            .iter_mut()
            .map(|buffer| libc::iovec {
                iov_base: buffer.as_mut_ptr().cast(),
                iov_len: buffer.len(),
            })
            .collect();
        // SAFETY: the buffers live as long as the ring, which is dropped first and unregisters them.
        let registered = unsafe { ring.submitter().register_buffers(&vectors) };
        let under_way = vec![0; buffers.len()];
        let registered_buffers = registered.is_ok();
        let queued = Vec::with_capacity(2 * buffers.len());
        Ok(Self {
            ring,
            buffers,
            under_way,
            queued,
            closed: false,
            registered_buffers,
            patience,
            waits: patience,
            cancelled: 0,
        })
    }

    /// How many slots there are.
    pub fn slots(&self) -> usize {
        self.buffers.len()
    }

    /// Bytes a slot's buffer holds.
    pub fn block_bytes(&self) -> usize {
        self.buffers[0].len()
    }

    /// The content of a slot's buffer.
    ///
    /// # Panics
    /// When a request of the slot is in flight.
    pub fn buffer(&self, slot: usize) -> &[u8] {
        assert_eq!(self.under_way[slot], 0, "a buffer the kernel uses is not lent");
        &self.buffers[slot]
    }

    /// Queues a read of `bytes` into the slot's buffer, from an offset or from the position.
    ///
    /// # Panics
    /// When the buffer is smaller, or a request of the slot is in flight.
    pub fn read(&mut self, slot: usize, bytes: usize, offset: Option<u64>) {
        assert_eq!(self.under_way[slot], 0, "one read a slot");
        let entry = self.read_entry(slot, bytes, offset);
        self.push(slot, entry);
    }

    /// Queues a write of a part of the slot's buffer, to an offset or to the position.
    ///
    /// # Panics
    /// When the part is not inside the buffer, or a request of the slot is in flight.
    pub fn write(&mut self, slot: usize, part: Range<usize>, offset: Option<u64>) {
        assert_eq!(self.under_way[slot], 0, "one write a slot");
        let entry = self.write_entry(slot, part, offset);
        self.push(slot, entry);
    }

    /// Queues a read and a write of the same bytes that the kernel begins when the read has been
    /// whole, without asking. Two completions will come.
    ///
    /// # Panics
    /// As [`CopyRing::read`].
    pub fn read_then_write(&mut self, slot: usize, bytes: usize, from: u64, to: u64) {
        assert_eq!(self.under_way[slot], 0, "one move a slot");
        let read = self.read_entry(slot, bytes, Some(from)).flags(squeue::Flags::IO_LINK);
        let write = self.write_entry(slot, 0..bytes, Some(to));
        self.push(slot, read);
        self.push(slot, write);
    }

    /// Removes the queued requests and cancels those in progress. Requests that could not be
    /// cancelled must still be waited for; no new one may be submitted.
    pub fn cancel(&mut self) {
        self.close();
        if self.is_busy() {
            self.take_back();
        }
    }

    /// Cancels the requests in flight, without waiting for them.
    fn take_back(&self) {
        let at_once = Some(types::Timespec::new());
        // Before Linux 6.0 there is no such call: all requests in flight complete by themselves.
        let _ = self.ring.submitter().register_sync_cancel(at_once, types::CancelBuilder::any());
    }

    /// Forgets the requests that the kernel has not taken.
    fn close(&mut self) {
        if !self.closed {
            self.closed = true;
            let left = self.ring.submission().len();
            let taken = self.queued.len().saturating_sub(left);
            for slot in self.queued.drain(taken..) {
                self.under_way[slot] -= 1;
            }
        }
    }

    /// Whether a request is in flight or queued.
    pub fn is_busy(&self) -> bool {
        self.under_way.iter().any(|n| *n > 0)
    }

    /// Whether a request of this slot is in flight or queued.
    pub fn is_slot_busy(&self, slot: usize) -> bool {
        self.under_way[slot] > 0
    }

    /// Whether the kernel cancels every request: it will do so again.
    pub fn is_refused(&self) -> bool {
        self.cancelled >= ROUNDS * 2 * self.slots()
    }

    /// Submits the queued requests and waits for a completion. When none arrives for too long, the
    /// requests in flight are cancelled, and waited for again.
    ///
    /// # Errors
    /// As `io_uring_enter(2)`, not as a failed request: the queued requests have then been
    /// forgotten, and those in flight can still be waited for. `EINTR` is not passed on, and `EAGAIN` and
    /// `EBUSY` only once they have been the answer for about a second.
    ///
    /// # Panics
    /// When nothing is in flight: it would wait for ever.
    pub fn wait(&mut self) -> io::Result<Completion> {
        assert!(self.is_busy(), "something to wait for");
        let mut in_vain = 0;
        loop {
            if let Some(completion) = self.next() {
                return Ok(completion);
            }
            match self.enter() {
                Ok(()) => {}
                Err(e) if e.raw_os_error() == Some(libc::EINTR) => {}
                Err(e) if is_transient(&e) && in_vain < IN_VAIN => {
                    in_vain += 1;
                    // Memory, or room for completions, may come.
                    std::thread::sleep(Duration::from_millis(1));
                }
                Err(e) if e.raw_os_error() == Some(libc::ETIME) => {
                    self.take_back();
                    self.cancelled = 0;
                    self.waits = self.waits.saturating_mul(2);
                }
                Err(e) => {
                    self.close();
                    return Err(e);
                }
            }
        }
    }

    /// Submits the queued requests, unless the ring is closed, and waits as long as the patience
    /// lasts.
    fn enter(&mut self) -> io::Result<()> {
        // `IORING_ENTER_GETEVENTS`, `IORING_ENTER_EXT_ARG`.
        const GET_EVENTS: u32 = 1;
        const EXTENDED: u32 = 8;
        let queued = if self.closed { 0 } else { self.ring.submission().len() };
        let queued = u32::try_from(queued).expect("two requests a slot");
        let time = KernelTime::from(self.waits);
        let timeout = (&raw const time).expose_provenance() as u64;
        let events = GetEvents { sigmask: 0, sigmask_bytes: 0, min_wait_us: 0, timeout };
        let submitter = self.ring.submitter();
        let entered = if self.ring.params().is_feature_ext_arg() {
            // SAFETY: `events`, and `time` it points to, outlive the call. The submitted requests
            // point to buffers of this ring.
            unsafe { submitter.enter(queued, 1, GET_EVENTS | EXTENDED, Some(&events)) }
        } else {
            // SAFETY: passes no argument that would have to be valid. The submitted requests point
            // to buffers of this ring.
            unsafe { submitter.enter::<()>(queued, 1, GET_EVENTS, None) }
        };
        if !self.closed {
            let left = self.ring.submission().len();
            let taken = self.queued.len().saturating_sub(left);
            self.queued.drain(..taken);
        }
        entered.map(drop)
    }

    fn next(&mut self) -> Option<Completion> {
        let entry = self.ring.completion().next()?;
        let slot = usize::try_from(entry.user_data() >> 1).expect("a slot's number");
        let half = if entry.user_data() & 1 == 0 { Half::Read } else { Half::Write };
        self.under_way[slot] -= 1;
        let result = usize::try_from(entry.result())
            .map_err(|_| io::Error::from_raw_os_error(-entry.result()));
        if result.is_ok() {
            self.waits = self.patience;
        }
        self.cancelled = match &result {
            Err(e) if e.raw_os_error() == Some(libc::ECANCELED) => self.cancelled + 1,
            _ => 0,
        };
        Some(Completion { slot, half, result })
    }

    fn read_entry(&mut self, slot: usize, bytes: usize, offset: Option<u64>) -> squeue::Entry {
        let into = &mut self.buffers[slot][..bytes];
        let length = u32::try_from(into.len()).expect("a block below 4 GiB");
        let (start, offset) = (into.as_mut_ptr(), offset.unwrap_or(POSITION));
        let entry = if self.registered_buffers {
            let index = u16::try_from(slot).expect("a slot's number");
            opcode::ReadFixed::new(SOURCE, start, length, index).offset(offset).build()
        } else {
            opcode::Read::new(SOURCE, start, length).offset(offset).build()
        };
        entry.user_data((slot as u64) << 1)
    }

    fn write_entry(&self, slot: usize, part: Range<usize>, offset: Option<u64>) -> squeue::Entry {
        let from = &self.buffers[slot][part];
        let length = u32::try_from(from.len()).expect("a block below 4 GiB");
        let (start, offset) = (from.as_ptr(), offset.unwrap_or(POSITION));
        let entry = if self.registered_buffers {
            let index = u16::try_from(slot).expect("a slot's number");
            opcode::WriteFixed::new(TARGET, start, length, index).offset(offset).build()
        } else {
            opcode::Write::new(TARGET, start, length).offset(offset).build()
        };
        entry.user_data((slot as u64) << 1 | 1)
    }

    fn push(&mut self, slot: usize, entry: squeue::Entry) {
        assert!(!self.closed, "nothing is asked of a closed ring");
        // SAFETY: what the entry points to is a buffer of this ring, and those live until `drop` has
        // seen the last completion.
        let pushed = unsafe { self.ring.submission().push(&entry) };
        pushed.expect("room for two requests a slot");
        self.under_way[slot] += 1;
        self.queued.push(slot);
    }
}

fn is_transient(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EAGAIN | libc::EBUSY))
}

impl Drop for CopyRing {
    fn drop(&mut self) {
        self.cancel();
        while self.is_busy() {
            if self.wait().is_err() {
                // The kernel may still use the buffers, and never reports the end: they must stay.
                for buffer in self.buffers.drain(..) {
                    std::mem::forget(buffer);
                }
                return;
            }
        }
        // Closing a ring lets go of its files only later; a reader of the target's pipe would wait
        // for its end meanwhile.
        let _ = self.ring.submitter().unregister_files();
        if self.registered_buffers {
            let _ = self.ring.submitter().unregister_buffers();
        }
    }
}

#[cfg(test)]
mod tests;
