//! Copies, by the traffic of their bytes.

use super::*;

/// A copy of 1 GiB in a given time, with this many bytes referenced and copied.
fn copied(target: &str, ms: u64, referenced: u64, copied: u64, dirty: Option<u64>) -> Vec<String> {
    let record = CopyRun {
        schema: CopyRun::SCHEMA.into(),
        started: "2026-01-01T00:00:00.000Z".into(),
        machine: machine(),
        sources: vec!["f".into()],
        target: target.into(),
        mover: None,
        bytes: 1 << 30,
        referenced_bytes: referenced,
        copied_bytes: copied,
        touched_bytes: 0,
        wall_ns: ms * MS,
        fsync_ns: None,
        verified: None,
        errors: 0,
        messages: Vec::new(),
        contract: String::new(),
        copies: vec![CopyPart {
            source: "f".into(),
            source_is: String::new(),
            target: target.into(),
            target_is: String::new(),
            mover: None,
            bytes: 1 << 30,
            referenced_bytes: referenced,
            copied_bytes: copied,
            touched_bytes: 0,
            wall_ns: ms * MS,
            plan: CopyPlan::default(),
            error: None,
            dirty_bytes: dirty,
        }],
        findings: Vec::new(),
    };
    let limits = limits();
    crate::copy(&record, Some(&limits)).findings.into_iter().map(|found| found.id).collect()
}

#[test]
fn a_copy_is_judged_by_what_happened_to_its_bytes() {
    const GIB: u64 = 1 << 30;
    assert_eq!(copied("g", 500, GIB, GIB, Some(0)), [""; 0]);
    assert_eq!(copied("g", 500, GIB, GIB, Some(GIB)), ["still-dirty"]);
    assert_eq!(copied("g", 500, GIB, GIB, None), [""; 0]);
    assert_eq!(copied("g", 1, GIB, 0, Some(0)), ["impossible-rate", "by-reference"]);
    assert_eq!(copied("/dev/null", 1, 0, 0, None), ["impossible-rate", "null-sink"]);
    assert_eq!(copied("g", 10, GIB, GIB, None), ["impossible-rate"]);
}
