//! `io-uring`: program → ring; a chain of linked requests per file, `depth` files at once.
//!
//! Requests that create or unlink are always carried out by threads that the kernel adds to the
//! process; the rest of the chain stays with them. This thread describes one half of the files
//! while those threads work on the other, and polls for completions instead of blocking:
//! `worker/ring.h` explains why.

use super::Backend;

pub(super) static BACKEND: Backend = Backend {
    name: "io-uring",
    summary: "chains of linked requests; one ring entry for several files",
    program: include_bytes!(concat!(env!("OUT_DIR"), "/worker-io-uring")),
    reason: include_str!(concat!(env!("OUT_DIR"), "/worker-io-uring.reason")),
    has_depth: true,
};
