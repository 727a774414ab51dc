//! What counts have grown by since they were last seen.

/// What a counter has beyond the most seen.
pub(crate) fn more(now: u64, seen: &mut u64) -> u64 {
    let more = now.saturating_sub(*seen);
    *seen = now.max(*seen);
    more
}
