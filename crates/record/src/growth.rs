//! What counts have grown by since they were last seen.

/// What a counter has beyond the most seen.
pub(crate) fn more(now: u64, seen: &mut u64) -> u64 {
    let more = now.saturating_sub(*seen);
    *seen = now.max(*seen);
    more
}

pub(crate) fn more_known(now: Option<u64>, seen: &mut Option<u64>) -> Option<u64> {
    now.map(|now| more(now, seen.get_or_insert_default()))
}
