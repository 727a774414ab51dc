//! An `io_uring(7)` that carries out requests in batches: one `io_uring_enter(2)` submits a batch and
//! waits for its completions.
//!
//! The one invariant: memory that the kernel may still read into is not freed. The ring owns the
//! buffers, and leaves them to the kernel for good if it ends while a request is in flight.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

use io_uring::{IoUring, opcode, squeue, types};

/// The size of a read.
const PAGE: usize = 4096;

/// The request of which a batch is made.
#[derive(Debug, Clone, Copy)]
pub enum BatchRequest<'f> {
    /// Does nothing.
    Nop,
    /// Reads 4 KiB of a file, each request of a batch the next ones.
    Read(BorrowedFd<'f>),
}

/// A ring for batches of one request.
pub struct BatchRing {
    ring: IoUring,
    requests: Vec<squeue::Entry>,
    buffers: Vec<u8>,
    expected: i32,
    in_flight: usize,
}

impl BatchRing {
    /// A ring whose batches have `size` requests. The file must stay open.
    ///
    /// # Errors
    /// As `io_uring_setup(2)`.
    pub fn new(size: u32, request: BatchRequest<'_>) -> io::Result<Self> {
        let ring = IoUring::new(size)?;
        let mut buffers = vec![0; size as usize * PAGE];
        let requests =
            buffers.chunks_exact_mut(PAGE).enumerate().map(|(at, buffer)| match request {
                BatchRequest::Nop => opcode::Nop::new().build(),
                BatchRequest::Read(file) => {
                    let file = types::Fd(file.as_raw_fd());
                    let read = opcode::Read::new(file, buffer.as_mut_ptr(), PAGE as u32);
                    read.offset((at * PAGE) as u64).build()
                }
            });
        let requests = requests.collect();
        let expected = if matches!(request, BatchRequest::Nop) { 0 } else { PAGE as i32 };
        Ok(Self { ring, requests, buffers, expected, in_flight: 0 })
    }

    /// Carries out a batch.
    ///
    /// # Errors
    /// As `io_uring_enter(2)`; the kernel's error for a request; `EIO` where one read less. The ring
    /// cannot be used afterwards.
    pub fn round(&mut self) -> io::Result<()> {
        // SAFETY: the buffers are this ring's and outlive every request (`drop`); nothing else
        // refers to them.
        let pushed = unsafe { self.ring.submission().push_multiple(&self.requests) };
        pushed.map_err(|_| io::Error::from_raw_os_error(libc::EBUSY))?;
        self.in_flight = self.requests.len();
        while self.in_flight > 0 {
            self.ring.submit_and_wait(self.in_flight)?;
            for completion in self.ring.completion() {
                self.in_flight -= 1;
                match completion.result() {
                    result if result == self.expected => {}
                    error if error < 0 => return Err(io::Error::from_raw_os_error(-error)),
                    _ => return Err(io::Error::from_raw_os_error(libc::EIO)),
                }
            }
        }
        Ok(())
    }
}

impl Drop for BatchRing {
    fn drop(&mut self) {
        if self.in_flight > 0 {
            std::mem::take(&mut self.buffers).leak();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Seek, Write};
    use std::os::fd::AsFd;

    use super::*;

    fn skip(error: &io::Error) {
        iotomy_test_requirements::skip(
            iotomy_test_requirements::Need::IoUring,
            &format!("no ring: {error}"),
        );
    }

    #[test]
    fn a_batch_reads_its_part_of_the_file() {
        let name = std::env::temp_dir().join(format!("iotomy-batch-ring-{}", std::process::id()));
        let mut file =
            std::fs::File::options().read(true).write(true).create_new(true).open(&name).unwrap();
        std::fs::remove_file(name).unwrap();
        (1..=4u8).for_each(|page| file.write_all(&[page; PAGE]).unwrap());
        file.rewind().unwrap();
        let mut ring = match BatchRing::new(4, BatchRequest::Read(file.as_fd())) {
            Ok(ring) => ring,
            Err(error) => return skip(&error),
        };
        for _ in 0..3 {
            ring.buffers.fill(0);
            ring.round().unwrap();
            let pages: Vec<u8> = ring.buffers.chunks(PAGE).map(|page| page[PAGE - 1]).collect();
            assert_eq!((pages, ring.in_flight), (vec![1, 2, 3, 4], 0));
        }
        file.set_len(PAGE as u64).unwrap();
        assert_eq!(ring.round().unwrap_err().raw_os_error(), Some(libc::EIO));
    }

    #[test]
    fn a_batch_of_nothing_completes() {
        match BatchRing::new(32, BatchRequest::Nop) {
            Ok(mut ring) => (0..10).for_each(|_| ring.round().unwrap()),
            Err(error) => skip(&error),
        }
    }
}
