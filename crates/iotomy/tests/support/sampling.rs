//! How often tests sample.

/// For `--rate`: 5000 a second, or what this kernel allows. It lowers its limit by itself where interrupts of samples
/// have taken long, and may do so again before the command starts.
pub(crate) fn fast_rate() -> String {
    let most = std::fs::read_to_string("/proc/sys/kernel/perf_event_max_sample_rate");
    let most = most.ok().and_then(|text| text.trim().parse::<u32>().ok()).unwrap_or(u32::MAX);
    (most / 2).clamp(1, 5_000).to_string()
}
