//! The finding `open-not-read` of the built command: opens that stay in the file system, and opens that
//! have to ask the device.

use crate::support;

use std::fs;
use std::path::Path;

use iotomy_record::{Finding, store};
use support::sampling::fast_rate;
use support::volume::Volume;
use support::{Need, doubled_until, iotomy, skip};

/// What is found of a shell's opening files in a folder, if so little is found at all; `None` where anatomy does not
/// work.
fn of_opens(folder: &Path, script: &str) -> Option<Option<Finding>> {
    let records = tempfile::tempdir().unwrap();
    let record = records.path().join("record.json");
    let mut command = iotomy(&["anatomy", "--rate", &fast_rate(), "--json"]);
    command.arg(&record).args(["--", "sh", "-c", script]).current_dir(folder);
    let output = command.output().unwrap();
    let Ok(record) = store::load_anatomy(&record) else {
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(!support::root(), "{stderr}");
        skip(Need::Bpf, "anatomy does not work for this user");
        return None;
    };
    assert!(output.status.success(), "{output:?}");
    let found = record.trace.findings.into_iter().find(|found| found.id == "open-not-read");
    // Shown where it is not the one that is waited for.
    let samples: Vec<_> = record.calls.iter().map(|row| (&row.syscall, row.samples)).collect();
    let opens = record.trace.calls.iter().find(|call| call.syscall == "openat");
    eprintln!("samples {samples:?}; opens {:?}; {found:?}", opens.map(|call| call.calls));
    Some(found)
}

/// The finding of so many rounds that `tells` is true of it.
fn until_found(
    first: u32,
    tells: impl Fn(&Finding) -> bool,
    of_rounds: impl FnMut(u32) -> Option<Option<Finding>>,
) -> Option<Finding> {
    let is_found = |found: &Option<Option<Finding>>| match found {
        None => true,
        Some(found) => found.as_ref().is_some_and(&tells),
    };
    doubled_until(first, is_found, of_rounds)?
}

#[test]
fn files_opened_in_memory_stay_in_the_file_system() {
    let Ok(folder) = tempfile::tempdir_in("/dev/shm") else {
        return skip(Need::Machine, "there is no /dev/shm");
    };
    // Made once, then opened without being read: each some µs, so that it takes many for some samples.
    let mut rounds = 0;
    let found = until_found(
        20_000,
        |found| found.text.contains(" stayed in the file system"),
        |number| {
            rounds = number;
            let script =
                format!("i=0; while [ $i -lt {number} ]; do : > f; : < f; i=$((i + 1)); done");
            of_opens(folder.path(), &script)
        },
    );
    let Some(found) = found else { return };
    assert_eq!(found.evidence["below_ns"], 0, "{:?}", found.evidence);
    let calls = found.evidence["calls"].as_u64().unwrap();
    assert!(calls >= 4 * u64::from(rounds), "{:?}", found.evidence);
    assert!(found.evidence["samples"].as_u64().unwrap() >= 30, "{:?}", found.evidence);
}

#[test]
fn files_opened_that_nothing_has_cached_are_asked_of_the_device() {
    let Some(volume) = Volume::ext4() else { return };
    let found = until_found(
        1_000,
        |found| found.text.contains(" did not stay in"),
        |number| {
            for at in 0..number {
                fs::write(volume.path().join(format!("f{at}")), "").unwrap();
            }
            // Their inodes are read when they are opened; the names are given, and not listed.
            volume.mount_again();
            let script = format!("i=0; while [ $i -lt {number} ]; do : < f$i; i=$((i + 1)); done");
            of_opens(&volume.path(), &script)
        },
    );
    let Some(found) = found else { return };
    assert!(found.evidence["below_ns"].as_u64().unwrap() > 0, "{:?}", found.evidence);
}
