//! The overhead of a sample for the thread it interrupts, measured on this machine.
//!
//! A thread of this process reads the clock round after round, with a short call in between, and is
//! sampled meanwhile, often. A round in which a sample fell takes longer than the others by the
//! sample's whole price: the interrupt, the program, the way back. There were as many such rounds as
//! samples, and they are the longest; their median is not moved by the few that something else made
//! long.

use std::fs::File;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::sync_channel;
use std::time::{Duration, Instant};

use iotomy_sys::perf_event::{Scope, open_sampler};
use rustix::thread::{gettid, sched_getcpu};

use super::calibrate::stay_on;
use super::object::{Adoption, Session};
use super::sample_object::Loaded;

/// Samples a second meanwhile, below any usual bound (`kernel.perf_event_max_sample_rate`).
const HZ: u32 = 10_000;
const LENGTH: Duration = Duration::from_millis(15);
/// Rounds that are kept: more than fit into `LENGTH`.
const ROUNDS: usize = 100_000;

/// The price of a sample in ns; 0 where no sample came.
///
/// # Errors
/// The error that kept the event from being opened or attached.
pub(super) fn price(loaded: &mut Loaded, session: &Session) -> Result<f64, String> {
    let zero = File::open("/dev/zero").map_err(|e| format!("cannot open /dev/zero: {e}"))?;
    let (tell, hear) = sync_channel(0);
    let go = AtomicBool::new(false);
    let before = loaded.counted().samples;
    let rounds = std::thread::scope(|scope| {
        let caller = std::thread::Builder::new().spawn_scoped(scope, || {
            let cpu = sched_getcpu();
            stay_on(cpu);
            if tell.send((gettid(), cpu)).is_err() {
                return Vec::new();
            }
            while !go.load(Ordering::Acquire) {
                std::thread::yield_now();
            }
            rounds(&zero)
        });
        let caller = caller.map_err(|e| format!("cannot start a thread to calibrate with: {e}"))?;
        let ready = hear.recv().map_err(|_| "cannot calibrate: the thread ended".to_owned());
        let ready = ready.and_then(|(tid, cpu)| {
            session.adopt(Adoption::Thread(tid.as_raw_nonzero().get().unsigned_abs()))?;
            // The first event of a thread has the kernel wait for every CPU; one of a CPU does not.
            let cpu = Scope::Cpu(u32::try_from(cpu).unwrap_or_default());
            let event = open_sampler(loaded.ticker(), cpu, HZ.min(most()))
                .map_err(|error| format!("cannot open a perf event: {error}"))?;
            loaded.attach_event(event)
        });
        go.store(true, Ordering::Release);
        let rounds = caller.join().unwrap_or_default();
        ready.map(|()| rounds)
    })?;
    let samples = loaded.counted().samples - before;
    loaded.detach_last();
    Ok(per_sample(rounds, samples))
}

fn most() -> u32 {
    let most = iotomy_host::kernel_text("/proc/sys/kernel/perf_event_max_sample_rate");
    most.ok().and_then(|text| text.trim().parse().ok()).unwrap_or(HZ)
}

/// How long each round took, in ns.
fn rounds(zero: &File) -> Vec<u64> {
    let mut page = [0; 4096];
    let mut rounds = Vec::with_capacity(ROUNDS);
    let began = Instant::now();
    let mut last = began;
    while last - began < LENGTH && rounds.len() < ROUNDS {
        let _ = rustix::io::read(zero, &mut page);
        let now = Instant::now();
        rounds.push(u64::try_from((now - last).as_nanos()).unwrap_or(u64::MAX));
        last = now;
    }
    rounds
}

/// The median of the `samples` longest rounds, less that of all.
fn per_sample(mut rounds: Vec<u64>, samples: u64) -> f64 {
    rounds.sort_unstable_by(|a, b| b.cmp(a));
    let hit = usize::try_from(samples).unwrap_or(usize::MAX).min(rounds.len());
    let (Some(long), Some(usual)) = (rounds[..hit].get(hit / 2), rounds.get(rounds.len() / 2))
    else {
        return 0.0;
    };
    long.saturating_sub(*usual) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_price_is_what_the_hit_rounds_take_longer() {
        let mut rounds = vec![500; 1_000];
        rounds.extend([4_500; 9]);
        rounds.push(90_000);
        assert!((per_sample(rounds, 10) - 4_000.0).abs() < 0.5);
        assert!(per_sample(Vec::new(), 10).abs() < 0.5 && per_sample(vec![5; 5], 0).abs() < 0.5);
    }
}
