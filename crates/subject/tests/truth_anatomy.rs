//! Samples of a program that says what it did where.

mod harness;

use harness::{command, skip, subject};
use iotomy_observe::anatomy::Asked;
use iotomy_observe::{Probe, anatomy};
use iotomy_record::Exit;

/// `mov $4000000, %ecx; 1: dec %ecx; jnz 1b; ret`: a millisecond or some.
const CODE: [u8; 10] = [0xb9, 0x00, 0x09, 0x3d, 0x00, 0xff, 0xc9, 0x75, 0xfc, 0xc3];

#[test]
fn time_is_of_the_file_that_is_mapped_and_not_of_the_one_that_was_mapped_there_before() {
    if let Probe::Unsupported { reason, .. } = anatomy::probe() {
        return skip("anatomy", &reason);
    }
    let folder = tempfile::tempdir().unwrap();
    let paths = ["first.so", "second.so"].map(|name| folder.path().join(name));
    for path in &paths {
        let mut page = [0; 4096];
        page[..CODE.len()].copy_from_slice(&CODE);
        std::fs::write(path, page).unwrap();
    }
    let [first, second] = paths.each_ref().map(|path| path.to_str().unwrap());
    let request = command(subject(), &["swaps", "40", first, second]);
    let asked = Asked { hz: 5_000, ..Asked::default() };
    let (observation, found) = anatomy::watch(&request, asked).unwrap();
    assert_eq!(observation.exit, Some(Exit::Code(0)), "{observation:?}");
    let samples = |name: &str| -> u64 {
        let layers = found.calls.iter().flat_map(|row| &row.layers);
        layers.filter(|layer| layer.layer == name).map(|layer| layer.samples).sum()
    };
    let [first, second] = ["library first.so", "library second.so"].map(samples);
    // Both ran the same, in turn. What is meanwhile spent outside of them by chance is alike.
    assert!(first > 20 && second > 20, "{first} and {second} samples");
    assert!(first < 2 * second && second < 2 * first, "{first} and {second} samples");
}

/// The usual rate, which is not in step with the kernel's tick: at one that is, all samples fall on the
/// same moments of such a turn.
#[test]
fn what_a_timer_wakes_has_as_many_samples_as_time() {
    const USUAL: u32 = 997;
    if let Probe::Unsupported { reason, .. } = anatomy::probe() {
        return skip("anatomy", &reason);
    }
    let request = command(subject(), &["woken", "2500"]);
    let (observation, found) =
        anatomy::watch(&request, Asked { hz: USUAL, ..Asked::default() }).unwrap();
    assert_eq!(observation.exit, Some(Exit::Code(0)), "{observation:?}");
    let call = |name: &str| {
        let rows = || found.calls.iter().filter(|row| row.syscall.as_deref() == Some(name));
        let samples: u64 = rows().map(|row| row.samples).sum();
        let ns: u64 = rows().map(|row| row.on_cpu_ns).sum();
        (samples, samples as f64 / ns as f64)
    };
    let [(reads, read), (preads, pread)] = ["read", "pread64"].map(call);
    // Their times are exact. Of so many samples five standard errors are less than a half.
    assert!(reads > 100 && preads > 50, "{reads} and {preads} samples");
    assert!((0.6..1.67).contains(&(read / pread)), "{read} and {pread} samples a ns");
}
