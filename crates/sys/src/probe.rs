//! Trials of what the kernel lets this process do: each function makes one request, and undoes it
//! before it returns.
//!
//! It owns the calls; the callers interpret a refusal and give the remedy.
//!
//! The one invariant: nothing is left behind. Descriptors and mappings close with their owner; a
//! trial that would change the process itself (its namespaces, limits, scheduling, filters) runs in
//! a child that ends at once.

pub mod bpf;
mod child;
pub mod io_uring;
pub mod limits;
pub mod memory;
pub mod namespaces;
pub mod perf_event;
pub mod privileges;
pub mod ptrace;

use std::io;

/// A call the kernel refused.
#[derive(Debug, thiserror::Error)]
#[error("{call}: {source}")]
pub struct Refusal {
    /// The call, with the operation where one call has many.
    pub call: &'static str,
    /// The kernel's error.
    pub source: io::Error,
}

impl Refusal {
    /// The refusal of `call` with `source`; the order suits `map_err(|e| …)`.
    pub fn new(call: &'static str, source: impl Into<io::Error>) -> Self {
        Self { call, source: source.into() }
    }

    /// The refusal of `call` with the C library's `errno`.
    fn last(call: &'static str) -> Self {
        Self { call, source: io::Error::last_os_error() }
    }

    /// The number of the error, or 0 when the kernel gave none.
    pub fn errno(&self) -> i32 {
        self.source.raw_os_error().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Run with `--nocapture` to see the results of this machine.
    #[test]
    fn every_trial_answers_and_names_its_call() {
        let trials: [(&str, Result<(), Refusal>); 14] = [
            ("map", bpf::map_create()),
            ("program", bpf::prog_load()),
            ("fentry", bpf::fentry(u32::MAX)),
            ("sampling", perf_event::sample_cpu_clock()),
            ("cycles", perf_event::count_cycles().map(drop)),
            ("kprobe", perf_event::kprobe(u32::MAX, c"vfs_fsync_range")),
            ("ring", io_uring::setup().map(drop)),
            ("polled ring", io_uring::setup_polled()),
            ("descriptors", limits::raise_descriptors(64)),
            ("locked memory", limits::lock_memory(1 << 16)),
            ("network", namespaces::network()),
            ("filter", privileges::seccomp_filter()),
            ("ptrace", ptrace::seize_child()),
            ("pidfd", ptrace::copy_descriptor()),
        ];
        for (name, result) in trials {
            println!("{name}: {result:?}");
            if let Err(refusal) = result {
                assert!(!refusal.call.is_empty() && refusal.errno() != 0, "{name}: {refusal}");
            }
        }
    }

    #[test]
    fn pages_of_a_file_in_memory_are_counted() {
        use std::io::Write;
        use std::os::fd::AsFd;
        let path = std::env::temp_dir().join(format!("iotomy-cachestat-{}", std::process::id()));
        let mut file = std::fs::File::create(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        file.write_all(&[1; 8192]).unwrap();
        match memory::cachestat(file.as_fd()) {
            Ok(cached) => assert!((1..=2).contains(&cached.pages), "{cached:?}"),
            Err(refusal) => assert_eq!(refusal.call, "cachestat"),
        }
    }
}
