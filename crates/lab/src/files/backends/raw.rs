//! `raw`: program → system call, by the system call instruction.

use super::Backend;

pub(super) static BACKEND: Backend = Backend {
    name: "raw",
    summary: "system calls by the instruction, without the library's functions",
    program: include_bytes!(concat!(env!("OUT_DIR"), "/worker-raw")),
    reason: include_str!(concat!(env!("OUT_DIR"), "/worker-raw.reason")),
    has_depth: false,
};
