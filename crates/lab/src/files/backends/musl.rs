//! `musl`: program → function of musl (in the program) → system call.

use super::Backend;

pub(super) static BACKEND: Backend = Backend {
    name: "musl",
    summary: "functions of musl, linked statically",
    program: include_bytes!(concat!(env!("OUT_DIR"), "/worker-musl")),
    reason: include_str!(concat!(env!("OUT_DIR"), "/worker-musl.reason")),
    has_depth: false,
};
