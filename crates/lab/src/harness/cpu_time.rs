//! CPU time and run queue delay of threads and processes.

use std::time::Instant;

use rustix::time::{ClockId, clock_gettime};

/// Returns the CPU time that this thread has used, in ns.
pub(crate) fn thread_ns() -> f64 {
    now_ns(ClockId::ThreadCPUTime)
}

/// Returns the CPU time that all threads of this process have used, in ns.
pub(crate) fn process_ns() -> f64 {
    now_ns(ClockId::ProcessCPUTime)
}

fn now_ns(clock: ClockId) -> f64 {
    let now = clock_gettime(clock);
    now.tv_sec as f64 * 1e9 + now.tv_nsec as f64
}

/// A measurement of this thread's CPU usage.
pub(crate) struct Usage {
    began: Instant,
    cpu: f64,
    queued: Option<u64>,
}

impl Usage {
    pub(crate) fn begin() -> Self {
        Self { queued: queued(), began: Instant::now(), cpu: thread_ns() }
    }

    /// Returns the share of the available CPU time that was used, and the CPU time.
    pub(crate) fn end(self) -> (f64, f64) {
        let cpu = thread_ns() - self.cpu;
        let wall = self.began.elapsed().as_nanos() as f64;
        let queued = queued().zip(self.queued).map_or(0, |(now, then)| now.saturating_sub(then));
        // The two clocks are read one after the other.
        ((cpu / (wall - queued as f64).max(cpu)).clamp(0.0, 1.0), cpu)
    }
}

fn queued() -> Option<u64> {
    queued_ns(&[rustix::thread::gettid().as_raw_nonzero().get()])
}

/// Returns the total run queue delay of the processes so far, in ns; `None` if the kernel does not
/// count it, or if one of the processes has ended.
pub(crate) fn queued_ns(pids: &[i32]) -> Option<u64> {
    scheduled(pids, 1)
}

/// Returns the total on-CPU time of the processes so far, in ns, or `None` in the same cases.
pub(crate) fn used_ns(pids: &[i32]) -> Option<u64> {
    scheduled(pids, 0)
}

/// Sums a field of `/proc/PID/schedstat` over the processes.
fn scheduled(pids: &[i32], field: usize) -> Option<u64> {
    let of = |pid: &i32| {
        let text = iotomy_host::kernel_text(format!("/proc/{pid}/schedstat")).ok()?;
        text.split_whitespace().nth(field)?.parse::<u64>().ok()
    };
    pids.iter().map(of).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_counts_are_read() {
        assert_eq!(queued_ns(&[]), Some(0));
        assert_eq!(queued_ns(&[-1]), None);
        assert!(used_ns(&[std::process::id().cast_signed()]).is_none_or(|used| used > 0));
    }
}
