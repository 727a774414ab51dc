//! The finding `open-not-read` of the built command: opens that stay in the file system, and opens that
//! have to ask the device.

use crate::support;

use std::fs;
use std::path::Path;

use iotomy_record::{Finding, store};
use support::volume::Volume;
use support::{Need, iotomy, skip};

/// What is found of a shell's opening files in a folder; `None` where anatomy does not work.
fn of_opens(folder: &Path, script: &str) -> Option<Finding> {
    let records = tempfile::tempdir().unwrap();
    let record = records.path().join("record.json");
    let mut command = iotomy(&["anatomy", "--rate", "5000", "--json"]);
    command.arg(&record).args(["--", "sh", "-c", script]).current_dir(folder);
    let output = command.output().unwrap();
    let Ok(record) = store::load_anatomy(&record) else {
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(!support::root(), "{said}");
        skip(Need::Bpf, "anatomy does not work for this user");
        return None;
    };
    assert!(output.status.success(), "{output:?}");
    let found = record.trace.findings.into_iter().find(|found| found.id == "open-not-read");
    assert!(found.is_some(), "{output:?}");
    found
}

#[test]
fn files_opened_in_memory_stay_in_the_file_system() {
    let Ok(folder) = tempfile::tempdir_in("/dev/shm") else {
        return skip(Need::Machine, "there is no /dev/shm");
    };
    // Made once, then opened without being read: each some µs, so that there are samples enough.
    let script = "i=0; while [ $i -lt 40000 ]; do : > f; : < f; i=$((i + 1)); done";
    let Some(found) = of_opens(folder.path(), script) else { return };
    assert!(found.text.contains(" stayed in the file system"), "{}", found.text);
    assert_eq!(found.evidence["below_ns"], 0, "{:?}", found.evidence);
    assert!(found.evidence["calls"].as_u64().unwrap() >= 160_000, "{:?}", found.evidence);
    assert!(found.evidence["samples"].as_u64().unwrap() >= 30, "{:?}", found.evidence);
}

#[test]
fn files_opened_that_nothing_has_cached_are_asked_of_the_device() {
    let Some(volume) = Volume::ext4() else { return };
    for at in 0..1_000 {
        fs::write(volume.path().join(format!("f{at}")), "").unwrap();
    }
    // Their inodes are read when they are opened; the names are given, and not listed.
    volume.mount_again();
    let script = "i=0; while [ $i -lt 1000 ]; do : < f$i; i=$((i + 1)); done";
    let Some(found) = of_opens(&volume.path(), script) else { return };
    assert!(found.text.contains(" did not stay in the file system"), "{}", found.text);
    assert!(found.evidence["below_ns"].as_u64().unwrap() > 0, "{:?}", found.evidence);
}
