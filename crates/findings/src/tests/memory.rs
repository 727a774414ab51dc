//! Files beside memory: what can be true of rates, holes, the page cache and mappings.

use super::*;

#[test]
fn no_file_reads_faster_than_memory() {
    // 2,300 MB in 100 ms are 23 GB/s; a tenth above the limit of 20 is let pass.
    let read = |mega: u64| found(vec![], vec![source(mega * 1_000_000, 100)]);
    assert_eq!(ids(&read(2_150)), ["page-cache"]);
    let found = read(2_300);
    assert_eq!(ids(&found), ["impossible-rate", "page-cache"]);
    assert!(found[0].1.contains("23 GB/s"), "{found:?}");
    assert!(found[0].1.contains("The record does not show the cause"), "{found:?}");
}

#[test]
fn a_small_file_read_over_and_over_may_beat_memory() {
    let again = FileUse { size_bytes: Some(MIB), ..source(4_000 * MIB, 4_000) };
    assert!(!ids(&found(vec![], vec![again])).contains(&"impossible-rate"));
}

#[test]
fn a_mapping_handed_to_the_null_device_is_impossible_for_a_known_cause() {
    let mapped = FileUse {
        map_calls: 128,
        mapped_bytes: 4_000 * MIB,
        read_calls: 0,
        read_bytes: 0,
        ..source(4_000 * MIB, 0)
    };
    let null = sink(FileKind::Char, "/dev/null", 4_000 * MIB, 128);
    let found = found(vec![moved("write", 128, 4_000 * MIB)], vec![mapped, null]);
    assert_eq!(ids(&found), ["impossible-rate", "mapped-untouched", "null-sink"]);
    assert!(found[0].1.contains("passed on unread"), "{found:?}");
    assert!(found[0].1.contains("/dev/null, which discards"), "{found:?}");
    assert!(found[1].1.contains("100 page faults can have touched 200 MiB of it"), "{found:?}");
}

#[test]
fn a_mapping_whose_pages_were_touched_was_read() {
    let mapped =
        FileUse { map_calls: 1, mapped_bytes: 400 * MIB, read_bytes: 0, ..source(400 * MIB, 0) };
    let target = sink(FileKind::File, "/data/g", 400 * MIB, 1);
    let mut run = Trace { files: vec![mapped, target], ..trace() };
    run.processes[0].minor_faults = 10;
    assert!(ids(&judged(run.clone())).contains(&"mapped-untouched"));
    // A fault may bring in a huge page.
    run.processes[0].minor_faults = 100;
    assert!(!ids(&judged(run.clone())).contains(&"mapped-untouched"));
    run.processes[0].minor_faults = 10;
    // A fault there may bring in 1 GiB.
    let mut huge = run.clone();
    huge.files[0].file_system = Some("hugetlbfs".into());
    assert!(!ids(&judged(huge)).contains(&"mapped-untouched"));
    // A loader touches the pages of libraries when they are called.
    run.files[0].path = "/usr/lib/libpython3.11.so.1.0".into();
    assert!(!ids(&judged(run)).contains(&"mapped-untouched"));
}

#[test]
fn without_limits_nothing_is_called_impossible_and_what_is_missing_is_said() {
    let run = Trace { files: vec![source(9_000 * MIB, 100)], ..trace() };
    let judgement = crate::trace(&run, None);
    assert!(judgement.findings.iter().all(|found| found.verdict != Verdict::Impossible));
    assert!(judgement.missing.contains("memory-copy-all"), "{:?}", judgement.missing);
    let slow = Trace { files: vec![source(50 * MIB, 100)], ..trace() };
    assert!(crate::trace(&slow, None).missing.is_empty());
}

#[test]
fn holes_are_told_from_what_is_stored_and_only_where_files_do_not_shrink() {
    let sparse = |on: &str, stored| FileUse {
        allocated_bytes: Some(stored),
        file_system: Some(on.into()),
        ..source(64 * MIB, 64)
    };
    let has = |file| ids(&found(vec![], vec![file])).contains(&"holes");
    assert!(has(sparse("ext4", 0)));
    assert!(!has(sparse("ext4", 60 * MIB)));
    // These compress, or have no blocks to count.
    for on in ["zfs", "proc", "sysfs", "cgroup2", "0x64626720", "fuse", "overlay"] {
        assert!(!has(sparse(on, 0)), "{on}");
    }
}

#[test]
fn what_was_cached_and_what_was_not_is_said_of_files_on_devices() {
    let cached = |on: &str, bytes| FileUse {
        cached_bytes: bytes,
        file_system: Some(on.into()),
        ..source(64 * MIB, 64)
    };
    let text = |file| found(vec![], vec![file]).first().map(|found| found.1.clone());
    assert!(
        text(cached("ext4", Some(64 * MIB)))
            .unwrap()
            .contains("all of /data/f (64 MiB) was in the page cache")
    );
    assert!(
        text(cached("ext4", Some(MIB)))
            .unwrap()
            .contains("1 MiB of 64 MiB of /data/f were in the page cache")
    );
    assert_eq!(text(cached("ext4", Some(50 * MIB))), None);
    assert_eq!(text(cached("tmpfs", Some(64 * MIB))), None);
    assert_eq!(text(cached("ext4", None)), None);
    // A hole is not read from a device.
    let sparse = FileUse { allocated_bytes: Some(0), ..cached("ext4", Some(0)) };
    assert!(text(sparse).unwrap().contains("has holes"));
}

#[test]
fn what_is_in_memory_only_is_still_dirty() {
    let written =
        |dirty| FileUse { dirty_bytes: dirty, ..sink(FileKind::File, "/data/g", 64 * MIB, 64) };
    let text = |dirty| found(vec![], vec![written(dirty)]).first().map(|found| found.1.clone());
    assert!(text(Some(64 * MIB)).unwrap().contains("no call that syncs was made"));
    assert_eq!(text(Some(MIB)), None);
    assert_eq!(text(None), None);
}
