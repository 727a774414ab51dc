//! Samples of a program that reports what it did and where.

use crate::harness;

use harness::{Need, command, skip, subject};
use iotomy_observe::anatomy::SampleSettings;
use iotomy_observe::{Probe, anatomy};
use iotomy_record::Exit;

/// `mov $4000000, %ecx; 1: dec %ecx; jnz 1b; ret`: about a millisecond.
const CODE: [u8; 10] = [0xb9, 0x00, 0x09, 0x3d, 0x00, 0xff, 0xc9, 0x75, 0xfc, 0xc3];

#[test]
fn time_is_of_the_file_that_is_mapped_and_not_of_the_one_that_was_mapped_there_before() {
    if let Probe::Unsupported { reason, .. } = anatomy::probe() {
        return skip(Need::Bpf, &reason);
    }
    let folder = tempfile::tempdir().unwrap();
    let paths = ["first.so", "second.so"].map(|name| folder.path().join(name));
    for path in &paths {
        let mut page = [0; 4096];
        page[..CODE.len()].copy_from_slice(&CODE);
        std::fs::write(path, page).unwrap();
    }
    let [first, second] = paths.each_ref().map(|path| path.to_str().unwrap());
    // Doubles the turns until there are enough samples: the number of samples per turn depends on the machine's speed.
    let mut samples = [0, 0];
    // Both files ran the same code, in turn. With this many samples, a factor of two exceeds five standard errors; on
    // CPUs that are held up it takes more.
    let tells = |[first, second]: [u64; 2]| {
        first + second >= 300 && first < 2 * second && second < 2 * first
    };
    for doubling in 0..8 {
        let turns = (40_u64 << doubling).to_string();
        let request = command(subject(), &["swaps", &turns, first, second]);
        let asked = SampleSettings { hz: fast_rate(), ..SampleSettings::default() };
        let (observation, found) = anatomy::watch(&request, asked).unwrap();
        assert_eq!(observation.exit, Some(Exit::Code(0)), "{observation:?}");
        for (at, name) in ["library first.so", "library second.so"].iter().enumerate() {
            let layers = found.calls.iter().flat_map(|row| &row.layers);
            let found = layers.filter(|layer| layer.layer == *name).map(|layer| layer.samples);
            samples[at] += found.sum::<u64>();
        }
        if tells(samples) {
            return;
        }
    }
    panic!("{samples:?} samples");
}

/// 5000 samples a second, or what this kernel allows: it lowers its limit by itself where their interrupts took long.
fn fast_rate() -> u32 {
    let most = std::fs::read_to_string("/proc/sys/kernel/perf_event_max_sample_rate");
    let most = most.ok().and_then(|text| text.trim().parse::<u32>().ok()).unwrap_or(u32::MAX);
    (most / 2).clamp(1, 5_000)
}

/// The usual rate, which is not synchronous with the kernel's tick: at a synchronous rate, all samples would be at the
/// same points of such a turn.
#[test]
fn what_a_timer_wakes_has_as_many_samples_as_time() {
    const USUAL: u32 = 997;
    if let Probe::Unsupported { reason, .. } = anatomy::probe() {
        return skip(Need::Bpf, &reason);
    }
    // Repeats the watch until, by the exact times, this many samples of each call are due; how long that takes depends
    // on the machine's speed.
    const DUE: f64 = 300.0;
    let (mut samples, mut ns) = ([0, 0], [0, 0]);
    let due = |ns: u64| ns as f64 / 1e9 * f64::from(USUAL);
    // With this many samples, five standard errors of the ratio are less than a half; on CPUs that are held up it takes
    // more.
    let ratio = |samples: [u64; 2], ns: [u64; 2]| {
        let [read, pread] = [0, 1].map(|at| samples[at] as f64 / due(ns[at]));
        read / pread
    };
    let tells = |samples, ns: [u64; 2]| {
        ns.iter().all(|ns| due(*ns) >= DUE) && (0.6..1.67).contains(&ratio(samples, ns))
    };
    for _ in 0..100 {
        let request = command(subject(), &["woken", "1000"]);
        let asked = SampleSettings { hz: USUAL, ..SampleSettings::default() };
        let (observation, found) = anatomy::watch(&request, asked).unwrap();
        assert_eq!(observation.exit, Some(Exit::Code(0)), "{observation:?}");
        for (at, name) in ["read", "pread64"].iter().enumerate() {
            let rows = found.calls.iter().filter(|row| row.syscall.as_deref() == Some(*name));
            for row in rows {
                samples[at] += row.samples;
                ns[at] += row.on_cpu_ns;
            }
        }
        if tells(samples, ns) {
            return;
        }
    }
    panic!("{samples:?} samples in {ns:?} ns");
}
