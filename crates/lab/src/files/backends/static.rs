//! `static`: program → function of the C library (in the program) → system call.

use super::Backend;

pub(super) static BACKEND: Backend = Backend {
    name: "static",
    summary: "the same functions, linked statically",
    program: include_bytes!(concat!(env!("OUT_DIR"), "/worker-static")),
    reason: include_str!(concat!(env!("OUT_DIR"), "/worker-static.reason")),
    has_depth: false,
};
