//! Time between moments.

use std::time::Instant;

/// From one moment to a later one, in ns.
pub(crate) fn nanoseconds(from: Instant, to: Instant) -> u64 {
    u64::try_from(to.saturating_duration_since(from).as_nanos()).unwrap_or(u64::MAX)
}
