//! How fast this machine copies memory: what a copy that really copies is held against.
//!
//! One thread copies between two buffers far above any cache, in pieces small enough that the
//! library does not turn to stores past the cache, which no kernel copy makes either. The bytes are
//! counted once.

use std::time::Instant;

/// Bytes of a buffer.
const BUFFER: usize = 256 << 20;
/// Bytes copied at once.
const PIECE: usize = 64 << 10;
/// Passes, of which the fastest counts: it is a ceiling that is looked for.
const PASSES: usize = 7;

/// Bytes a second.
pub(crate) fn memory_copy() -> f64 {
    let from = vec![0x5A_u8; BUFFER];
    let mut to = vec![0xA5_u8; BUFFER];
    let fastest = (0..PASSES)
        .map(|_| {
            let start = Instant::now();
            for (from, to) in from.chunks_exact(PIECE).zip(to.chunks_exact_mut(PIECE)) {
                to.copy_from_slice(from);
                std::hint::black_box(&mut *to);
            }
            start.elapsed().as_secs_f64()
        })
        .fold(f64::INFINITY, f64::min);
    BUFFER as f64 / fastest
}
