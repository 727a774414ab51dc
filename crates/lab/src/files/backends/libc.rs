//! `libc`: program → function of the C library (shared object) → system call.

use super::Backend;

pub(super) static BACKEND: Backend = Backend {
    name: "libc",
    summary: "functions of the C library, linked dynamically",
    program: include_bytes!(concat!(env!("OUT_DIR"), "/worker-libc")),
    reason: include_str!(concat!(env!("OUT_DIR"), "/worker-libc.reason")),
    has_depth: false,
};
