//! The machine's memory copy bandwidth: the reference for every copy that moves the bytes.
//!
//! One thread copies between two buffers that are far larger than any cache. The pieces are so
//! small that the library does not use non-temporal stores, which no kernel copy uses either. The
//! bytes are counted once.

use std::time::Instant;

/// Size of a buffer in bytes.
const BUFFER: usize = 256 << 20;
/// Bytes copied at once.
const PIECE: usize = 64 << 10;
/// Number of passes. The fastest counts, because the result is a ceiling.
const PASSES: usize = 7;

/// Returns the bandwidth in bytes per second.
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
