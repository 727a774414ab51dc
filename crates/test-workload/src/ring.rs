//! A ring of io_uring.

use io_uring::{IoUring, squeue};

/// A ring, and how many completions it has had.
pub(crate) struct Ring {
    pub(crate) ring: IoUring,
    reaped: u64,
}

impl Ring {
    pub(crate) fn new() -> Self {
        Self::of(IoUring::new(64))
    }

    pub(crate) fn of(ring: std::io::Result<IoUring>) -> Self {
        Self { ring: ring.expect("a ring"), reaped: 0 }
    }

    pub(crate) fn push(&mut self, request: &squeue::Entry) {
        // SAFETY: what the requests here refer to lives until the program ends.
        unsafe { self.ring.submission().push(request) }.expect("room for it");
    }

    /// Submits what was pushed.
    pub(crate) fn submit(&self) {
        self.ring.submit().expect("they are taken");
    }

    /// Waits until this many completions have come in all, and returns the last's result.
    pub(crate) fn reap(&mut self, all: u64) -> i32 {
        let mut last = 0;
        while self.reaped < all {
            self.ring.submit_and_wait(1).expect("a completion");
            for entry in self.ring.completion() {
                last = entry.result();
                self.reaped += 1;
            }
        }
        last
    }

    /// One after another, each with its completion.
    pub(crate) fn each(&mut self, count: u64, request: &squeue::Entry) {
        for _ in 0..count {
            self.push(request);
            let all = self.reaped + 1;
            self.reap(all);
        }
    }
}

/// A buffer that is never freed.
pub(crate) fn buffer() -> &'static mut [u8; 4096] {
    Box::leak(Box::new([7; 4096]))
}
