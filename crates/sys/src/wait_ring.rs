//! An `io_uring(7)` that watches descriptors: requests that complete again and again, each time
//! something has happened (multishot), and buffers the kernel receives into (provided).
//!
//! The one invariant: a buffer is the kernel's from the moment it is provided until a completion
//! names it, and again from [`WaitRing::give_back`]; it is read only between the two. The ring is
//! dropped when its last request has completed, and the buffers after it.

use std::io;
use std::os::fd::RawFd;
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::Duration;

use io_uring::types::{BufRingEntry, CancelBuilder, Fd, SubmitArgs, Timespec};
use io_uring::{IoUring, cqueue, opcode, squeue};

use crate::buffer::Aligned;

const GETEVENTS: u32 = 1;
const EXT_ARG: u32 = 8;

/// Requests that can be queued before they are handed over.
const QUEUED: u32 = 256;

/// The user data of completed cancellations; no request may have it.
pub const CANCELLED: u64 = u64::MAX;

/// The only group of buffers.
const GROUP: u16 = 0;

/// A completion of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Completion {
    /// The user data of the request.
    pub user_data: u64,
    /// The return value that the corresponding call would have, or the error number below 0.
    pub result: i32,
    /// Whether the request goes on; else this was its last word.
    pub more: bool,
    /// The buffer that was received into, to be given back.
    pub buffer: Option<u16>,
}

/// A ring for requests that go on.
pub struct WaitRing {
    // Dropped before the buffers, by hand.
    ring: Option<IoUring>,
    buffers: Option<Buffers>,
    /// Requests that have not had their last word.
    live: usize,
}

/// Buffers for the kernel to choose from, and the ring it takes them from.
struct Buffers {
    list: Vec<Aligned>,
    ring: Aligned,
    tail: u16,
}

impl WaitRing {
    /// A ring with room for this many completions until they are read; further ones are kept by the
    /// kernel, and end their request. For one thread: the one that makes it.
    ///
    /// # Errors
    /// The call that failed, with why: as `io_uring_setup(2)`; `EOPNOTSUPP` where the kernel is too
    /// old for time-outs.
    pub fn new(completions: u32) -> Result<Self, (&'static str, io::Error)> {
        let mut newest = IoUring::builder();
        newest.setup_cqsize(completions).setup_clamp();
        let mut builder = newest.clone();
        // Not `IORING_SETUP_DEFER_TASKRUN`: it runs the work of 20 requests a call and no more, so that
        // a thousand that are ready would take fifty calls.
        builder.setup_coop_taskrun();
        let ring = builder.build(QUEUED).or_else(|error| match error.raw_os_error() {
            // Before Linux 5.19 there is no such flag.
            Some(libc::EINVAL) => newest.build(QUEUED),
            _ => Err(error),
        });
        let ring = ring.map_err(|e| ("io_uring_setup", e))?;
        if !ring.params().is_feature_ext_arg() {
            let old = io::Error::from_raw_os_error(libc::EOPNOTSUPP);
            return Err(("io_uring_enter IORING_ENTER_EXT_ARG", old));
        }
        Ok(Self { ring: Some(ring), buffers: None, live: 0 })
    }

    /// Provides buffers: `count`, a power of two, of this many bytes.
    ///
    /// # Errors
    /// As [`WaitRing::new`], for `io_uring_register(2)`.
    pub fn provide(&mut self, count: u16, bytes: usize) -> Result<(), (&'static str, io::Error)> {
        let buffers = Buffers::new(count, bytes);
        let start = buffers.ring.as_ptr() as u64;
        let submitter = self.ring().submitter();
        // SAFETY: the memory is page-aligned, has room for `count` entries, and outlives the ring:
        // `drop` sees to the order.
        let registered = unsafe { submitter.register_buf_ring_with_flags(start, count, GROUP, 0) };
        registered.map_err(|e| ("io_uring_register IORING_REGISTER_PBUF_RING", e))?;
        self.buffers = Some(buffers);
        Ok(())
    }

    /// Requests a completion whenever one of `bits` of poll(2) occurs on the descriptor.
    ///
    /// # Errors
    /// As [`WaitRing::enter`], when the queue was full and had to be handed over first.
    pub fn poll(&mut self, fd: RawFd, bits: u32, user_data: u64) -> io::Result<()> {
        let entry = opcode::PollAdd::new(Fd(fd), bits).multi(true).build();
        self.push(entry.user_data(user_data))?;
        self.live += 1;
        Ok(())
    }

    /// Requests the bytes that a socket receives.
    ///
    /// # Errors
    /// As [`WaitRing::poll`].
    pub fn receive(&mut self, fd: RawFd, user_data: u64) -> io::Result<()> {
        let entry = opcode::RecvMulti::new(Fd(fd), GROUP).build();
        self.push(entry.user_data(user_data))?;
        self.live += 1;
        Ok(())
    }

    /// Requests the end of a request. A completion that carries [`CANCELLED`] has the result, and
    /// the request gets a last completion.
    ///
    /// # Errors
    /// As [`WaitRing::poll`].
    pub fn cancel(&mut self, user_data: u64) -> io::Result<()> {
        self.push(opcode::AsyncCancel::new(user_data).build().user_data(CANCELLED))
    }

    /// Submits the queued requests and waits for a completion, for this long, or for ever; a zero
    /// time-out only polls. One `io_uring_enter(2)`.
    ///
    /// # Errors
    /// As io_uring_enter(2), `EINTR` with the rest; that the time is up is none.
    pub fn enter(&mut self, timeout: Option<Duration>) -> io::Result<()> {
        let ring = self.ring.as_mut().expect("there until it is dropped");
        let queued = u32::try_from(ring.submission().len()).expect("a queue of 256");
        let entered = match timeout {
            None => {
                // SAFETY: what is queued refers to no memory but provided buffers; no argument.
                unsafe { ring.submitter().enter::<()>(queued, 1, GETEVENTS, None) }
            }
            Some(Duration::ZERO) => {
                // SAFETY: as above.
                unsafe { ring.submitter().enter::<()>(queued, 0, GETEVENTS, None) }
            }
            Some(timeout) => {
                // Times above 68 years are equal.
                let seconds = timeout.as_secs().min(i32::MAX.unsigned_abs().into());
                let time = Timespec::new().sec(seconds).nsec(timeout.subsec_nanos());
                let arguments = SubmitArgs::new().timespec(&time);
                let flags = GETEVENTS | EXT_ARG;
                // SAFETY: as above; the argument is the structure the flag tells of, and outlives
                // the call.
                unsafe { ring.submitter().enter(queued, 1, flags, Some(&arguments)) }
            }
        };
        match entered {
            Ok(_) => Ok(()),
            // Completions are to be taken before there can be more of them.
            Err(e) if matches!(e.raw_os_error(), Some(libc::ETIME | libc::EBUSY)) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Takes a completion.
    #[inline]
    pub fn take(&mut self) -> Option<Completion> {
        let ring = self.ring.as_mut().expect("there until it is dropped");
        let entry = ring.completion().next()?;
        let (user_data, flags) = (entry.user_data(), entry.flags());
        let more = cqueue::more(flags);
        if !more && user_data != CANCELLED {
            self.live -= 1;
        }
        let buffer = cqueue::buffer_select(flags);
        Some(Completion { user_data, result: entry.result(), more, buffer })
    }

    /// Whether completions found no room, and the kernel keeps them.
    pub fn is_overflown(&mut self) -> bool {
        let ring = self.ring.as_mut().expect("there until it is dropped");
        ring.submission().cq_overflow()
    }

    /// The bytes that the kernel received into a buffer that a completion named.
    ///
    /// # Panics
    /// When there is no such buffer.
    pub fn buffer(&self, id: u16, length: usize) -> &[u8] {
        let buffers = self.buffers.as_ref().expect("buffers were provided");
        &buffers.list[usize::from(id)][..length]
    }

    /// Gives a buffer that a completion named back to the kernel.
    ///
    /// # Panics
    /// When there is no such buffer.
    pub fn give_back(&mut self, id: u16) {
        self.buffers.as_mut().expect("buffers were provided").provide(id);
    }

    fn ring(&self) -> &IoUring {
        self.ring.as_ref().expect("there until it is dropped")
    }

    fn push(&mut self, entry: squeue::Entry) -> io::Result<()> {
        loop {
            let ring = self.ring.as_mut().expect("there until it is dropped");
            // SAFETY: the entry refers to no memory but the provided buffers, which outlive the ring.
            if unsafe { ring.submission().push(&entry) }.is_ok() {
                return Ok(());
            }
            match ring.submit() {
                Ok(_) => {}
                Err(e) if e.raw_os_error() == Some(libc::EINTR) => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Brings all requests to their end.
    fn end_all(&mut self) -> io::Result<()> {
        if self.live > 0 {
            let entry = opcode::AsyncCancel2::new(CancelBuilder::any()).build();
            self.push(entry.user_data(CANCELLED))?;
        }
        while self.live > 0 {
            let Some(completion) = self.take() else {
                match self.enter(None) {
                    Err(e) if e.raw_os_error() != Some(libc::EINTR) => return Err(e),
                    _ => continue,
                }
            };
            if completion.user_data == CANCELLED && completion.result < 0 {
                // Before Linux 5.19 they cannot be cancelled all at once.
                return Err(io::Error::from_raw_os_error(-completion.result));
            }
        }
        Ok(())
    }
}

impl Drop for WaitRing {
    fn drop(&mut self) {
        // Closing a ring releases its files only later, to the surprise of callers that close them
        // now.
        let ended = self.end_all();
        self.ring = None;
        if ended.is_err() {
            // The kernel may still receive into the buffers, and never reports the end: they must
            // stay.
            std::mem::forget(self.buffers.take());
        }
    }
}

impl Buffers {
    fn new(count: u16, bytes: usize) -> Self {
        let list = (0..count).map(|_| Aligned::new(bytes)).collect();
        let ring = Aligned::new(usize::from(count) * size_of::<BufRingEntry>());
        let mut buffers = Self { list, ring, tail: 0 };
        (0..count).for_each(|id| buffers.provide(id));
        buffers
    }

    fn provide(&mut self, id: u16) {
        let buffer = &mut self.list[usize::from(id)];
        let (start, bytes) = (buffer.as_mut_ptr() as u64, buffer.len());
        // The count is a power of two.
        let place = usize::from(self.tail) & (self.list.len() - 1);
        let first: *mut BufRingEntry = self.ring.as_mut_ptr().cast();
        // SAFETY: the ring has room for as many entries as there are buffers.
        let entry = unsafe { first.add(place) };
        // SAFETY: the place is none the kernel reads from before the tail is behind it; zeroed
        // memory is a valid entry, and nobody else refers to it.
        let entry = unsafe { &mut *entry };
        entry.set_addr(start);
        entry.set_len(u32::try_from(bytes).expect("a buffer below 4 GiB"));
        entry.set_bid(id);
        self.tail = self.tail.wrapping_add(1);
        // SAFETY: the first entry is inside the ring, and holds the tail.
        let tail = unsafe { BufRingEntry::tail(first) };
        // SAFETY: the tail is aligned, lives as long as the ring, and is read by the kernel only.
        let tail = unsafe { AtomicU16::from_ptr(tail.cast_mut()) };
        tail.store(self.tail, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use iotomy_test_requirements::{Need, skip};
    use std::io::{Read, Write};
    use std::os::fd::AsRawFd;
    use std::os::unix::net::UnixStream;

    /// A ring with as many completions as it may have at least: as many as requests.
    fn ring() -> Option<WaitRing> {
        let ring = WaitRing::new(QUEUED);
        ring.map_err(|(call, error)| skip(Need::IoUring, &format!("{call}: {error}"))).ok()
    }

    fn next(ring: &mut WaitRing) -> Completion {
        loop {
            if let Some(completion) = ring.take() {
                return completion;
            }
            ring.enter(Some(Duration::from_secs(60))).unwrap();
        }
    }

    #[test]
    fn a_request_tells_again_and_again_until_it_is_cancelled() {
        let Some(mut ring) = ring() else { return };
        let (mut out, mut into) = io::pipe().unwrap();
        ring.poll(out.as_raw_fd(), 1, 7).unwrap();
        for _ in 0..3 {
            into.write_all(b"a").unwrap();
            let told = next(&mut ring);
            assert_eq!((told.user_data, told.result, told.more), (7, 1, true));
            out.read_exact(&mut [0]).unwrap();
        }
        ring.enter(Some(Duration::ZERO)).unwrap();
        assert_eq!(ring.take(), None);
        ring.cancel(7).unwrap();
        let mut words = [next(&mut ring), next(&mut ring)];
        words.sort_by_key(|word| word.user_data);
        assert_eq!((words[0].user_data, words[0].more), (7, false));
        assert_eq!((words[1].user_data, words[1].result), (CANCELLED, 0));
    }

    #[test]
    fn buffers_go_round_and_what_is_received_is_in_them() {
        let Some(mut ring) = ring() else { return };
        if let Err((call, error)) = ring.provide(4, 64) {
            return skip(Need::IoUring, &format!("{call}: {error}"));
        }
        let (one, mut other) = UnixStream::pair().unwrap();
        ring.receive(one.as_raw_fd(), 3).unwrap();
        for round in 0..50_u8 {
            other.write_all(&[round; 40]).unwrap();
            let told = next(&mut ring);
            assert_eq!((told.user_data, told.result, told.more), (3, 40, true));
            let id = told.buffer.unwrap();
            assert_eq!(ring.buffer(id, 40), [round; 40]);
            ring.give_back(id);
        }
        drop(ring);
        // No other owner of the socket is left.
        drop(one);
        assert_eq!(other.read(&mut [0]).unwrap(), 0);
    }
}
