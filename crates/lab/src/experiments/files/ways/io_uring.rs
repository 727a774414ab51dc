//! `io-uring`: program → ring; a chain of linked requests a file, `depth` files at once.
//!
//! Requests that create or unlink are always carried out by the kernel's own threads, one a file, so
//! that files under way at once are worked on at once.

use super::Way;

pub(super) static WAY: Way = Way {
    name: "io-uring",
    summary: "chains of linked requests, a ring entered once for several files",
    program: include_bytes!(concat!(env!("OUT_DIR"), "/worker-io-uring")),
    reason: include_str!(concat!(env!("OUT_DIR"), "/worker-io-uring.reason")),
    has_depth: true,
};
