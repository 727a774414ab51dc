//! What tests say where they cannot be run.

use std::io::Write;
use std::sync::atomic::{AtomicU32, Ordering};

static SKIPS: AtomicU32 = AtomicU32::new(0);

/// Says that a test cannot be run here: past the harness, which would keep it to itself.
pub(crate) fn skip(reason: &str) {
    let count = SKIPS.fetch_add(1, Ordering::Relaxed) + 1;
    let thread = std::thread::current();
    let test = thread.name().unwrap_or("?");
    let _ = writeln!(std::io::stderr(), "skip {count}: {test}: {reason}");
}
