//! The cost of a page fault and of a system call on this machine: pages of fresh memory are touched
//! once, and a call that does next to nothing is repeated.

use std::time::Instant;

use nix::sys::resource::{UsageWho, getrusage};

/// Below the size from which memory may come in huge pages.
const CHUNK: usize = 1 << 20;
const CHUNKS: usize = 4;
const PAGE: usize = 4096;

const CALLS: u32 = 5_000;

/// Entering and leaving the kernel, in ns: the least of a few tries.
pub(super) fn of_a_call() -> Option<f64> {
    (0..9)
        .map(|_| {
            let began = Instant::now();
            (0..CALLS).for_each(|_| _ = std::hint::black_box(nix::unistd::getppid()));
            began.elapsed().as_nanos() as f64 / f64::from(CALLS)
        })
        .min_by(f64::total_cmp)
}

/// The least of a few tries, in ns; `None` when the pages were there already.
pub(super) fn of_a_fault() -> Option<f64> {
    (0..5).filter_map(|_| once()).min_by(f64::total_cmp)
}

fn once() -> Option<f64> {
    // An allocation of zeroes this large is memory that was never touched.
    let mut chunks: Vec<Vec<u8>> = (0..CHUNKS).map(|_| vec![0; CHUNK]).collect();
    let before = faults()?;
    let began = Instant::now();
    for chunk in &mut chunks {
        for page in chunk.iter_mut().step_by(PAGE) {
            *page = 1;
        }
    }
    let spent = began.elapsed();
    let made = faults()?.checked_sub(before)?;
    std::hint::black_box(&chunks);
    (made >= (CHUNK / PAGE) as u64).then(|| spent.as_nanos() as f64 / made as f64)
}

fn faults() -> Option<u64> {
    let usage = getrusage(UsageWho::RUSAGE_THREAD).ok()?;
    u64::try_from(usage.minor_page_faults()).ok()
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_call_costs_something() {
        assert!(super::of_a_call().unwrap() > 1.0);
    }

    #[test]
    fn a_fault_costs_something() {
        match super::of_a_fault() {
            Some(ns) => assert!(ns > 1.0, "{ns}"),
            None => iotomy_test_requirements::skip(
                iotomy_test_requirements::Need::Machine,
                "there are fewer faults than pages",
            ),
        }
    }
}
