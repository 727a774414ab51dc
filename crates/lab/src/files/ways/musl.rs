//! `musl`: program → function of musl (in the program) → system call.

use super::Way;

pub(super) static WAY: Way = Way {
    name: "musl",
    summary: "functions of musl, linked statically",
    program: include_bytes!(concat!(env!("OUT_DIR"), "/worker-musl")),
    reason: include_str!(concat!(env!("OUT_DIR"), "/worker-musl.reason")),
    has_depth: false,
};
